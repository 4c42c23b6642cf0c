//! Numbers that the kernel knows files by, and the directories that a mount has of its own.
//!
//! ```text
//!   bits 48..64                            bits 0..48
//!   0                                      a file as it is now
//!   1 to 32,767                            its number in a kept snapshot       .snap/NAME
//!   32,768 to 65,534                       its number in a moment              .tyr/now/NAME
//!   65,535                                 which directory of the mount it is
//! ```
//!
//! So programs that compare numbers do not take a file of then for the one of now.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::time::SystemTime;

use fuser::{FileAttr, FileType, INodeNo};

use super::answers::file_attr;
use crate::fuse::answers::bare_attr;
use crate::plan::lookup::Attributes;
use crate::plan::node::Node;

/// Bits of a file's own number.
const FILE_BITS: u32 = 48;

/// Views that are kept snapshots.
pub const KEPT: RangeInclusive<u16> = 1..=32_767;

/// Views that are moments.
pub const TAKEN: RangeInclusive<u16> = 32_768..=65_534;

/// What stands for the directories of the mount in place of a view.
const OWN: u16 = u16::MAX;

const _: () = assert!(*KEPT.end() < *TAKEN.start() && *TAKEN.end() < OWN);

/// A file as the kernel knows it: the view of the file system that it is in, 0 for how that is now,
/// and its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub view: u16,
    pub file: u64,
}

impl Place {
    pub fn of(number: INodeNo) -> Self {
        let view = u16::try_from(number.0 >> FILE_BITS).expect("sixteen bits are left");
        Self { view, file: number.0 & ((1 << FILE_BITS) - 1) }
    }

    /// The numbers of all files of a view.
    pub fn numbers(view: u16) -> RangeInclusive<u64> {
        let first = u64::from(view) << FILE_BITS;
        first..=first | ((1 << FILE_BITS) - 1)
    }

    pub fn number(self) -> INodeNo {
        debug_assert!(self.file >> FILE_BITS == 0, "numbers are given in order");
        INodeNo(u64::from(self.view) << FILE_BITS | self.file)
    }

    /// Whether it is a file as it is now.
    pub fn is_now(self) -> bool {
        self.view == 0
    }

    /// Attributes of a file there.
    pub fn attr(self, attributes: &Attributes) -> FileAttr {
        FileAttr { ino: self.number(), ..file_attr(attributes) }
    }
}

/// A directory of the mount, which is in no file system, and which no listing of the root shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// `.snap`: the kept snapshots.
    Snapshots,
    /// `.tyr`: what else a mount has.
    Control,
    /// `.tyr/now`: the moments that were taken.
    Moments,
}

impl Own {
    const ALL: [Self; 3] = [Self::Snapshots, Self::Control, Self::Moments];

    /// Which one the kernel knows by this number, if any.
    pub fn of(number: INodeNo) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.number() == number)
    }

    /// Which one has this name there, if any.
    pub fn named(parent: INodeNo, name: &OsStr) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.parent() == parent && own.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshots => ".snap",
            Self::Control => ".tyr",
            Self::Moments => "now",
        }
    }

    pub fn number(self) -> INodeNo {
        let file = match self {
            Self::Snapshots => 0,
            Self::Control => 1,
            Self::Moments => 2,
        };
        Place { view: OWN, file }.number()
    }

    /// The directory that it is in.
    pub fn parent(self) -> INodeNo {
        match self {
            Self::Snapshots | Self::Control => INodeNo(Node::ROOT.number),
            Self::Moments => Self::Control.number(),
        }
    }

    /// Its attributes: root may keep and drop snapshots, anybody takes moments.
    pub fn attr(self) -> FileAttr {
        let perm = match self {
            Self::Snapshots | Self::Control => 0o755,
            Self::Moments => 0o777,
        };
        let now = SystemTime::now();
        let attr = bare_attr(self.number(), FileType::Directory);
        FileAttr { perm, nlink: 2, mtime: now, ctime: now, atime: now, ..attr }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_which_view_and_which_file() {
        for (view, file) in [(0, 1), (1, 1), (7, (1 << 48) - 1), (*TAKEN.end(), 9)] {
            let place = Place { view, file };
            assert_eq!(Place::of(place.number()), place);
            assert!(Place::numbers(view).contains(&place.number().0));
            assert!(!Place::numbers(view + 1).contains(&place.number().0));
            assert_eq!(place.is_now(), view == 0);
            assert_eq!(Own::of(place.number()), None);
        }
        assert_eq!(Place::of(INodeNo(99)), Place { view: 0, file: 99 });
    }

    #[test]
    fn directories_of_the_mount_are_found_by_number_and_by_name() {
        for own in Own::ALL {
            assert_eq!(Own::of(own.number()), Some(own));
            assert_eq!(Own::named(own.parent(), OsStr::new(own.name())), Some(own));
            assert!(!Place::of(own.number()).is_now());
        }
        assert_eq!(Own::named(INodeNo(Node::ROOT.number), OsStr::new("now")), None);
    }
}
