//! A file system, for threads.
//!
//! [`driver`] reads what plans want and commits their drafts; [`store`] opens the keyspaces, takes
//! numbers and a session; [`opens`] counts what is open here, and [`orphans`] lets go of what is
//! not any more. The calls themselves: [`names`] by directory and name, [`paths`] by path,
//! [`files`] of a file, [`listing`] of a directory, [`open_file`] of one that is open.

mod driver;
mod files;
mod listing;
mod names;
mod open_file;
mod opens;
mod orphans;
mod paths;
mod store;

pub use self::listing::{DirectoryEntry, Page};
pub use self::open_file::OpenFile;
pub use self::store::FileSystem;
