//! A file system as commands read it: as it is now, or as it was when a snapshot was kept.

use tyr::Bytes;
use tyr_fs::blocking::{FileSystem, Moment, OpenFile, Page};
use tyr_fs::{Attributes, Node, Seen};

use crate::failure::Outcome;

/// What commands read.
pub enum FsView {
    /// As it is now.
    Now(FileSystem),
    /// As it was, and what it is in.
    Then(FileSystem, Moment),
}

/// Calls that both have.
macro_rules! calls {
    ($($name:ident($($given:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(
            pub fn $name(&self, $($given: $type),*) -> tyr_fs::Result<$answer> {
                match self {
                    Self::Now(files) => files.$name($($given),*),
                    Self::Then(_, moment) => moment.$name($($given),*),
                }
            }
        )*
    };
}

impl FsView {
    calls! {
        find(path: &str) -> Seen;
        find_symlink(path: &str) -> Seen;
        attributes(node: &Node) -> Attributes;
        list_directory(directory: &Node, cookie: u64, limit: usize) -> Page;
        read(node: &Node, offset: u64, len: u64) -> Bytes;
        read_link(node: &Node) -> Bytes;
    }

    /// As it was when the snapshot of this name was kept, or as it is without one.
    pub fn of(files: FileSystem, kept: Option<&str>) -> Outcome<Self> {
        Ok(match kept {
            None => Self::Now(files),
            Some(kept) => {
                let moment = files.moment_at(kept)?;
                Self::Then(files, moment)
            }
        })
    }

    /// A file that stays until this is dropped, whatever becomes of its name; what was, stays.
    pub fn hold(&self, node: &Node) -> Outcome<Option<OpenFile>> {
        match self {
            Self::Now(files) => Ok(Some(files.open_file(node)?)),
            Self::Then(..) => Ok(None),
        }
    }

    /// Ends the session.
    pub fn close(self) -> Outcome {
        match self {
            Self::Now(files) => Ok(files.close()?),
            Self::Then(files, moment) => {
                drop(moment);
                Ok(files.close()?)
            }
        }
    }
}
