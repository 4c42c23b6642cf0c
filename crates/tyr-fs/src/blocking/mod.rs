//! A file system, for threads.
//!
//! [`driver`] reads what plans want and commits their drafts, as often as [`attempts`] says;
//! [`store`] opens the keyspaces, takes numbers and a session; [`opens`] counts what is open here,
//! and [`orphans`] lets go of what is not any more. The calls themselves: [`names`] by directory
//! and name, [`paths`] by path, [`files`] of a file, [`holes`] of what has no bytes in it,
//! [`listing`] of a directory, [`open_file`] of one that is open. [`rights`] refuses what a user
//! may not do, [`quota`] what there is no room for. [`transaction`] is of several calls that take
//! effect together, which [`bundle`] collects, [`moment`] of all as it was at one time.

pub(crate) mod attempts;
mod bundle;
mod driver;
mod files;
mod holes;
mod listing;
mod moment;
mod names;
mod open_file;
mod opens;
mod orphans;
mod paths;
mod quota;
mod rights;
mod store;
mod transaction;

pub use self::listing::{DirectoryEntry, Page};
pub use self::moment::Moment;
pub use self::open_file::{OpenFile, OpenFor};
pub use self::quota::Used;
pub use self::store::FileSystem;
pub use self::transaction::Transaction;
