//! What was read so far, in the course of one operation.

use std::collections::BTreeMap;

use tyr::{Bytes, Timestamp};

use super::{Plan, Stop};
use crate::error::{Error, Result};
use crate::layout::forward::Place;
use crate::layout::header::Header;
use crate::layout::key::{Blob, Role, Space};
use crate::layout::record::{Access, Entry, RECORD_LEN, Record};

/// Something that has to be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// Size and version of a blob, and so many of its first bytes.
    Blob(Blob, u64),
    /// Rights, owner and group of the directory of this number: what does not change with the names
    /// in it, so that nobody who adds or removes some is waited for.
    Access(u64),
    /// The bytes of a blob from here on, to its end. The draft requires its version.
    Tail(Blob, u64),
    /// Inode, forward and first segment of the file of this number, at one moment.
    File(u64),
    /// The segments of a file that there are, from this one on, highest last; of more than
    /// [`SEGMENTS_MAX`] the highest.
    Segments(u64, u32),
    /// Whether the file is open in this program; it stays so until the operation is over.
    IsOpen(u64),
    /// The sessions of other programs.
    Others,
}

/// The sessions of other programs that use the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// How often sessions had begun or ended, as stored: with another number there are others.
    pub changes: Bytes,
    /// Those that may still be there.
    pub sessions: Vec<u64>,
}

/// How many segments are listed, or deleted in a transaction.
pub const SEGMENTS_MAX: usize = 64;

/// A blob that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its size.
    pub size: u64,
    /// Its version.
    pub version: Timestamp,
    /// Its first bytes, as many as were wanted.
    pub bytes: Bytes,
}

/// What the first group of a file has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// The inode, and its version.
    pub inode: Option<(Record, Timestamp)>,
    /// Where a file that lies in an entry has gone to.
    pub forward: Option<Place>,
    /// The first segment.
    pub first: Option<Found>,
}

impl FileFacts {
    /// Of the blobs of the group.
    ///
    /// # Errors
    /// `EIO` for what is damaged, naming the blob.
    pub fn decode(found: impl IntoIterator<Item = (Blob, Found)>) -> Result<Self> {
        let mut facts = Self::default();
        for (blob, found) in found {
            match blob.parse()? {
                Role::Inode(number) => {
                    let record = named(&blob, Record::decode(&found.bytes))?;
                    check_number(&blob, number, record.identity.number)?;
                    facts.inode = Some((record, found.version));
                }
                Role::Forward(_) => {
                    facts.forward = Some(named(&blob, Place::decode(&found.bytes))?);
                }
                Role::Content(..) => facts.first = Some(found),
                Role::Xattrs(_) => {}
                Role::Superblock
                | Role::NextNumber
                | Role::SessionChanges
                | Role::Header(_)
                | Role::Entry(..)
                | Role::Session(_)
                | Role::Orphan(_) => {
                    unreachable!("{blob:?} is in the other keyspace")
                }
            }
        }
        Ok(facts)
    }
}

/// What was read so far.
#[derive(Debug, Default)]
pub struct Known {
    /// With how many first bytes.
    blobs: BTreeMap<Blob, (u64, Option<Found>)>,
    accesses: BTreeMap<u64, Option<Access>>,
    tails: BTreeMap<(Blob, u64), Bytes>,
    files: BTreeMap<u64, FileFacts>,
    segments: BTreeMap<(u64, u32), Vec<u32>>,
    open: BTreeMap<u64, bool>,
    others: Option<Others>,
    /// Whether nothing is assumed that could be read: what was assumed before did not hold.
    pub is_careful: bool,
}

impl Known {
    /// Nothing, after something that was assumed or known did not hold.
    pub fn careful() -> Self {
        Self { is_careful: true, ..Self::default() }
    }

    /// A blob, or that there is none.
    pub fn learn_blob(&mut self, blob: Blob, len: u64, found: Option<Found>) {
        self.blobs.insert(blob, (len, found));
    }

    /// The bytes of the rights of a directory, or that there is none.
    ///
    /// # Errors
    /// `EIO` for what is damaged, naming the blob.
    pub fn learn_access(&mut self, directory: u64, bytes: Option<Bytes>) -> Result<()> {
        let decode = |bytes: Bytes| named(&Blob::header(directory), Access::decode(&bytes));
        self.accesses.insert(directory, bytes.map(decode).transpose()?);
        Ok(())
    }

    /// What a blob has from there on.
    pub fn learn_tail(&mut self, blob: Blob, from: u64, bytes: Bytes) {
        self.tails.insert((blob, from), bytes);
    }

    /// A file's first group.
    pub fn learn_file(&mut self, number: u64, facts: FileFacts) {
        self.files.insert(number, facts);
    }

    /// The segments of a file from this one on.
    pub fn learn_segments(&mut self, number: u64, from: u32, segments: Vec<u32>) {
        self.segments.insert((number, from), segments);
    }

    /// Whether a file is open.
    pub fn learn_open(&mut self, number: u64, is_open: bool) {
        self.open.insert(number, is_open);
    }

    /// The sessions of other programs.
    pub fn learn_others(&mut self, others: Others) {
        self.others = Some(others);
    }

    /// A blob with at least so many of its first bytes.
    pub(super) fn blob(&self, blob: &Blob, len: u64) -> Plan<Option<&Found>> {
        match self.blobs.get(blob) {
            Some((_, None)) => Ok(None),
            Some((known, Some(found))) if *known >= len.min(found.size) => Ok(Some(found)),
            _ => Err(Stop::Read(Want::Blob(blob.clone(), len))),
        }
    }

    /// The rights of a directory, `None` where it is gone.
    pub(super) fn access(&self, directory: u64) -> Plan<Option<Access>> {
        let known = self.accesses.get(&directory).copied();
        known.ok_or(Stop::Read(Want::Access(directory)))
    }

    /// What a blob has from there on, which is of whatever version it had when it was read.
    pub(super) fn tail(&self, blob: &Blob, from: u64) -> Plan<&Bytes> {
        let known = self.tails.get(&(blob.clone(), from));
        known.ok_or_else(|| Stop::Read(Want::Tail(blob.clone(), from)))
    }

    /// A file's first group.
    pub(super) fn file(&self, number: u64) -> Plan<&FileFacts> {
        self.files.get(&number).ok_or(Stop::Read(Want::File(number)))
    }

    /// The segments of a file from this one on.
    pub(super) fn segments(&self, number: u64, from: u32) -> Plan<&[u32]> {
        let known = self.segments.get(&(number, from));
        known.map(Vec::as_slice).ok_or(Stop::Read(Want::Segments(number, from)))
    }

    /// Whether a file is open in this program.
    pub(super) fn is_open(&self, number: u64) -> Plan<bool> {
        self.open.get(&number).copied().ok_or(Stop::Read(Want::IsOpen(number)))
    }

    /// The sessions of other programs.
    pub(super) fn others(&self) -> Plan<&Others> {
        self.others.as_ref().ok_or(Stop::Read(Want::Others))
    }

    /// What a name stands for, and the blob behind it with so many bytes of content, if any.
    pub(super) fn entry(&self, place: &Place, content: u64) -> Plan<Option<(Entry, &Found)>> {
        let blob = Blob::entry(place.directory, &place.name);
        let Some(found) = self.blob(&blob, content.saturating_add(RECORD_LEN as u64))? else {
            return Ok(None);
        };
        Ok(Some((named(&blob, Entry::decode(&found.bytes))?, found)))
    }

    /// A directory, `None` where it is gone.
    pub(super) fn directory(&self, number: u64) -> Plan<Option<Header>> {
        let blob = Blob::header(number);
        let Some(found) = self.blob(&blob, RECORD_LEN as u64)? else { return Ok(None) };
        let header = named(&blob, Header::decode(&found.bytes))?;
        check_number(&blob, number, header.record.identity.number)?;
        Ok(Some(header))
    }
}

/// The same, where an error says which blob it is of.
pub fn named<T>(blob: &Blob, result: Result<T>) -> Result<T> {
    result.map_err(|error| {
        let role = blob.parse().map_or_else(|_| "a blob".to_owned(), |role| format!("{role:?}"));
        let space = match blob.space {
            Space::Meta => "meta",
            Space::Data => "data",
        };
        error.context(format!("{role} at {} of keyspace {space}", blob.key))
    })
}

/// Refuses a record that is another file's.
pub fn check_number(blob: &Blob, expected: u64, number: u64) -> Result<()> {
    match number == expected {
        true => Ok(()),
        false => {
            let text = format!("it is of file {number}, not of {expected}");
            named(blob, Err(Error::damaged(text)))
        }
    }
}
