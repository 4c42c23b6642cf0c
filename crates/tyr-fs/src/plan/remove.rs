//! Taking names away, and with the last one the file.

use rustix::io::Errno;
use tyr::{Number, Relation};

use super::draft::{Condition, Draft};
use super::known::{Known, Others};
use super::lookup::no_such;
use super::{Operation, Plan, Stop};
use crate::error::Error;
use crate::layout::forward::Place;
use crate::layout::header::ENTRIES_AT;
use crate::layout::key::Blob;
use crate::layout::orphan;
use crate::layout::record::{Entry, Identity, Kind, LINKS_AT, RECORD_LEN, Record, Reference, Time};

/// What became of the file whose name was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It has other names.
    Name,
    /// It is gone.
    File,
    /// It is an orphan, with this number: its blobs stay until nobody has it open.
    Orphan(u64),
}

/// Takes a name away.
#[derive(Clone, Debug)]
pub struct Remove {
    /// The name.
    pub place: Place,
    /// Whether it is one of a directory, which has to be empty.
    pub is_directory: bool,
    /// Whose it is where it is open here.
    pub session: u64,
    /// How long segments are.
    pub segment_bits: u8,
    /// Now.
    pub now: Time,
}

impl Operation for Remove {
    type Answer = Removed;

    fn plan(&self, known: &Known) -> Plan<Draft<Removed>> {
        let place = &self.place;
        let Some((entry, _)) = known.entry(place, 0)? else { return Err(no_such(place).into()) };
        let is_directory = entry.kind() == Kind::Directory;
        check_kind(place, is_directory, self.is_directory)?;
        let mut draft = Draft::new();
        let end = End { session: self.session, segment_bits: self.segment_bits, now: self.now };
        let removed = end.name(known, &mut draft, place, &entry)?;
        draft.delete(Blob::entry(place.directory, &place.name));
        draft.enter(place.directory, -1, -i64::from(is_directory), self.now);
        Ok(draft.answering(removed))
    }
}

/// Refuses a directory where a file is meant, and a file where a directory is.
pub fn check_kind(place: &Place, is_directory: bool, is_wanted: bool) -> Result<(), Error> {
    match (is_directory, is_wanted) {
        (true, false) => Err(Error::new(Errno::ISDIR, format!("{} is a directory", place.name))),
        (false, true) => Err(Error::new(Errno::NOTDIR, format!("{} is no directory", place.name))),
        (true, true) | (false, false) => Ok(()),
    }
}

/// How names end.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Who has files open here.
    pub session: u64,
    /// How long segments are.
    pub segment_bits: u8,
    /// Now.
    pub now: Time,
}

impl End {
    /// A name ends: everything of it but the entry itself, which the caller deletes or replaces,
    /// and the directory's counters.
    pub fn name(
        self,
        known: &Known,
        draft: &mut Draft<()>,
        place: &Place,
        entry: &Entry,
    ) -> Plan<Removed> {
        match entry {
            Entry::File(record) => self.small(known, draft, place, record),
            Entry::Reference(reference) => {
                let blob = Blob::entry(place.directory, &place.name);
                draft.require_bytes(&blob, 0, reference.encode());
                match reference.kind {
                    Kind::Directory => Self::directory(known, draft, place, reference),
                    _ => self.inode(known, draft, reference.number),
                }
            }
        }
    }

    fn small(
        self,
        known: &Known,
        draft: &mut Draft<()>,
        place: &Place,
        record: &Record,
    ) -> Plan<Removed> {
        let Identity { number, flags, .. } = record.identity;
        let blob = Blob::entry(place.directory, &place.name);
        if flags.is_moved {
            draft.delete(Blob::forward(number));
        }
        let holders = self.holders(known, draft, number)?;
        if holders.is_empty() {
            draft.require_identity(&blob, record.identity);
            if flags.has_xattrs {
                draft.delete(Blob::xattrs(number));
            }
            return Ok(Removed::File);
        }
        let Some((_, found)) = known.entry(place, u64::MAX)? else { return Err(Stop::Again) };
        draft.require(Condition::Unchanged(blob, found.version));
        let mut inode = as_inode(record, self.segment_bits);
        inode.identity.flags.is_orphan = true;
        inode.links = 0;
        inode.times.ctime = self.now.max(inode.times.ctime);
        draft.put(&Blob::inode(number), inode.encode());
        draft.put(&Blob::content(number, 0), &found.bytes[RECORD_LEN..]);
        draft.put(&Blob::orphan(number), orphan::encode(&holders));
        Ok(Removed::Orphan(number))
    }

    /// The sessions that may have a file open whose last name goes. One that begins meanwhile may
    /// open it too: then it is looked again.
    fn holders(self, known: &Known, draft: &mut Draft<()>, number: u64) -> Plan<Vec<u64>> {
        let Others { changes, sessions } = known.others()?;
        draft.require(Condition::Bytes(Blob::session_changes(), 0, changes.clone()));
        let here = known.is_open(number)?.then_some(self.session);
        Ok(here.into_iter().chain(sessions.iter().copied()).collect())
    }

    fn inode(self, known: &Known, draft: &mut Draft<()>, number: u64) -> Plan<Removed> {
        let Some((record, _)) = &known.file(number)?.inode else { return Err(Stop::Again) };
        let blob = Blob::inode(number);
        draft.require_identity(&blob, record.identity);
        let (relation, is_last) = match record.links {
            0..=1 => (Relation::Equal, true),
            _ => (Relation::Greater, false),
        };
        draft.require(Condition::Number(blob.clone(), LINKS_AT, relation, Number::U32(1)));
        if !is_last {
            draft.add_link(&blob, false);
            draft.touch(&blob, self.now);
            return Ok(Removed::Name);
        }
        let mut holders = self.holders(known, draft, number)?;
        if holders.is_empty() && record.last_segment > 0 {
            // It takes more than one transaction.
            holders.push(self.session);
        }
        if !holders.is_empty() {
            let mut identity = record.identity;
            identity.flags.is_orphan = true;
            draft.write(&blob, 0, identity.encode());
            draft.add_link(&blob, false);
            draft.touch(&blob, self.now);
            draft.put(&Blob::orphan(number), orphan::encode(&holders));
            return Ok(Removed::Orphan(number));
        }
        let last = &0_u32.to_le_bytes();
        draft.require_bytes(&blob, crate::layout::record::LAST_SEGMENT_AT, last);
        draft.delete(blob);
        draft.delete(Blob::content(number, 0));
        if record.identity.flags.has_xattrs {
            draft.delete(Blob::xattrs(number));
        }
        Ok(Removed::File)
    }

    fn directory(
        known: &Known,
        draft: &mut Draft<()>,
        place: &Place,
        reference: &Reference,
    ) -> Plan<Removed> {
        let Some(header) = known.directory(reference.number)? else { return Err(Stop::Again) };
        let blob = Blob::header(reference.number);
        let count =
            |relation| Condition::Number(blob.clone(), ENTRIES_AT, relation, Number::I64(0));
        if header.entries > 0 {
            let entry = Blob::entry(place.directory, &place.name);
            let named = tyr::Bytes::copy_from_slice(&reference.encode());
            let text = format!("directory {} has {} names", place.name, header.entries);
            return Err(Stop::FailIf(
                Error::new(Errno::NOTEMPTY, text),
                vec![Condition::Bytes(entry, 0, named), count(Relation::Greater)],
            ));
        }
        draft.require_identity(&blob, header.record.identity);
        draft.require(count(Relation::Equal));
        draft.delete(blob);
        if header.record.identity.flags.has_xattrs {
            draft.delete(Blob::xattrs(reference.number));
        }
        Ok(Removed::File)
    }
}

/// The record of a file that leaves its entry for an inode.
pub fn as_inode(record: &Record, segment_bits: u8) -> Record {
    let mut inode = record.clone();
    inode.identity.flags.is_moved = false;
    inode.last_segment = 0;
    inode.segment_bits = segment_bits;
    inode
}
