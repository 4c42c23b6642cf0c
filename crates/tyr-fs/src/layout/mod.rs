//! What lies where: keys, and the bytes behind them.
//!
//! A file system is two keyspaces, both placed by the first twelve bytes of the key. A file has its
//! [`record`] in one of two *homes*: its [entry](key::Blob::entry) in a directory, with its content
//! behind it, while it is small and has one name; or an [inode](key::Blob::inode) of its own, and
//! its content in segments. An entry that is no home is a *reference*: the first bytes of a record.
//! A directory's record is its [`header`].
//!
//! [`superblock`] says what format this is; [`xattrs`] and [`forward`] are what else there is.

pub mod forward;
pub mod header;
pub mod key;
pub mod name;
pub mod orphan;
pub mod record;
pub mod superblock;
pub mod xattrs;

#[cfg(test)]
mod tests;
