//! A file as it was seen, and how it is found again wherever it has gone since.
//!
//! ```text
//!   entry at the place ──(it is another, or none)──► the group of its number
//!        │ it is this file                             ├─ inode     the file is there
//!        ▼                                             ├─ forward   it is in another entry
//!     its record, or: it is elsewhere ────────────►    └─ nothing   it is gone
//! ```

use rustix::io::Errno;

use super::draft::Draft;
use super::known::{Found, Known};
use super::{Condition, Plan, Stop};
use crate::error::Error;
use crate::layout::forward::Place;
use crate::layout::header::Header;
use crate::layout::key::{Blob, ROOT};
use crate::layout::record::{Access, Entry, Kind, RECORD_LEN, Record};

/// A file, as it was seen: which it is, and where its record was. It stays good whatever is renamed
/// since, as long as the file is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// The entry that it was in; `None` for directories and files with an inode.
    pub(crate) place: Option<Place>,
}

impl Node {
    /// The directory that everything is below.
    pub const ROOT: Self = Self { number: ROOT, kind: Kind::Directory, place: None };

    /// A file that has an inode, or a directory.
    pub(crate) fn of_its_own(kind: Kind, number: u64) -> Self {
        Self { number, kind, place: None }
    }

    /// Refuses what is no directory.
    pub(crate) fn require_directory(&self) -> Result<u64, Error> {
        match self.kind {
            Kind::Directory => Ok(self.number),
            _ => Err(Error::new(Errno::NOTDIR, format!("a {} has no names", self.kind.name()))),
        }
    }
}

/// Where a file's record is.
#[derive(Debug)]
pub enum Home<'a> {
    /// In its entry.
    Entry(Place, Record, &'a Found),
    /// In an inode.
    Inode(Record),
    /// In a directory's header.
    Directory(Header),
}

impl Home<'_> {
    /// The blob that the record is in.
    pub fn blob(&self) -> Blob {
        match self {
            Self::Entry(place, ..) => Blob::entry(place.directory, &place.name),
            Self::Inode(record) => Blob::inode(record.identity.number),
            Self::Directory(header) => Blob::header(header.record.identity.number),
        }
    }

    /// The record.
    pub fn record(&self) -> &Record {
        match self {
            Self::Entry(_, record, _) | Self::Inode(record) => record,
            Self::Directory(header) => &header.record,
        }
    }

    /// The draft's file must be this.
    pub fn require(&self, draft: &mut Draft<()>) {
        draft.require(Condition::identity(&self.blob(), self.record().identity));
    }
}

impl Known {
    /// Where a file is, with so many bytes of its content if it lies in an entry.
    pub(super) fn home(&self, node: &Node, content: u64) -> Plan<Home<'_>> {
        if node.kind == Kind::Directory {
            let header = self.directory(node.number)?;
            return header.map(Home::Directory).ok_or_else(|| gone(node).into());
        }
        if let Some(place) = &node.place
            && let Some((Entry::File(record), found)) = self.entry(place, content)?
            && record.identity.number == node.number
        {
            return Ok(Home::Entry(place.clone(), record, found));
        }
        let facts = self.file(node.number)?;
        if let Some((record, _)) = &facts.inode {
            return Ok(Home::Inode(record.clone()));
        }
        let Some(place) = &facts.forward else { return Err(gone(node).into()) };
        match self.entry(place, content)? {
            Some((Entry::File(record), found)) if record.identity.number == node.number => {
                Ok(Home::Entry(place.clone(), record, found))
            }
            _ => Err(Stop::Again),
        }
    }

    /// A directory in which a name is looked for or changed.
    pub(super) fn parent(&self, number: u64) -> Plan<Header> {
        self.directory(number)?.ok_or_else(|| removed(number).into())
    }

    /// There is a directory in which a name is made: its fence is required, so that only who is
    /// careful looks.
    pub(super) fn expect_parent(&self, number: u64) -> Plan<()> {
        if self.is_careful {
            self.parent(number)?;
        }
        Ok(())
    }

    /// The rights of a directory in which a name is made. Who is careful looks at all of it.
    pub(super) fn parent_access(&self, number: u64) -> Plan<Access> {
        match self.is_careful {
            true => Ok(self.parent(number)?.record.access),
            false => self.access(number)?.ok_or_else(|| removed(number).into()),
        }
    }

    /// The size of the file whose record is there.
    pub(super) fn size(&self, home: &Home<'_>) -> Plan<u64> {
        match home {
            Home::Entry(_, _, found) => Ok(found.size.saturating_sub(RECORD_LEN as u64)),
            Home::Directory(header) => Ok(header.entries.cast_unsigned()),
            Home::Inode(record) => {
                let before = u64::from(record.last_segment) << record.segment_bits;
                Ok(before + self.last_segment(record)?.size)
            }
        }
    }

    /// The segment that a file ends in.
    pub(super) fn last_segment(&self, record: &Record) -> Plan<&Found> {
        let number = record.identity.number;
        let found = match record.last_segment {
            0 => self.file(number)?.first.as_ref(),
            last => self.blob(&Blob::content(number, last), 0)?,
        };
        found.ok_or(Stop::Again)
    }
}

fn removed(directory: u64) -> Error {
    Error::new(Errno::NOENT, format!("the directory (number {directory}) was removed"))
}

fn gone(node: &Node) -> Error {
    let text = format!("the {} (number {}) was removed", node.kind.name(), node.number);
    Error::new(Errno::STALE, text)
}
