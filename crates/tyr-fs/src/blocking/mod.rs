//! A file system, for threads.
//!
//! [`driver`] reads what plans want and commits their drafts; [`store`] opens the keyspaces, takes
//! numbers and a session; [`opens`] counts what is open here, and [`orphans`] lets go of what is
//! not any more. The calls themselves: [`names`] by directory and name, [`paths`] by path,
//! [`files`] of a file, [`holes`] of what has no bytes in it, [`listing`] of a directory,
//! [`open_file`] of one that is open. [`rights`] refuses what a user may not do.

mod driver;
mod files;
mod holes;
mod listing;
mod names;
mod open_file;
mod opens;
mod orphans;
mod paths;
mod rights;
mod store;

pub use self::listing::{DirectoryEntry, Page};
pub use self::open_file::{OpenFile, OpenFor};
pub use self::store::FileSystem;
