//! Renaming and exchanging, of files and of directories of any size: names change, and what lies
//! behind them stays where it is. But a small file moves as a whole, and leaves a forward for who
//! has it open.

use std::collections::BTreeSet;

use rustix::io::Errno;
use tyr::Bytes;

use super::draft::{Change, Condition, Draft};
use super::known::{Found, Known};
use super::lookup::{exists, no_such};
use super::remove::{End, Removed, check_kind};
use super::{Operation, Plan, Stop};
use crate::error::Error;
use crate::layout::forward::Place;
use crate::layout::header::{DirectoryPlace, PARENT_LEN, PLACE_AT};
use crate::layout::key::{Blob, ROOT};
use crate::layout::record::{Entry, Kind, RECORD_LEN, Time};

/// What happens to what has the new name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// It is replaced.
    Replace,
    /// It stays, and the rename fails.
    NoReplace,
    /// It gets the old name.
    Exchange,
}

/// Gives a file another name instead of the one it has.
#[derive(Clone, Debug)]
pub struct Rename {
    /// The name it has.
    pub from: Place,
    /// The name it gets.
    pub to: Place,
    /// What happens to what has it.
    pub mode: RenameMode,
    /// How names end.
    pub end: End,
}

/// A name and what it stands for.
struct Named<'a> {
    place: &'a Place,
    entry: Entry,
    found: &'a Found,
}

impl Named<'_> {
    fn is_directory(&self) -> bool {
        self.entry.kind() == Kind::Directory
    }

    fn blob(&self) -> Blob {
        Blob::entry(self.place.directory, &self.place.name)
    }
}

impl Operation for Rename {
    type Answer = Removed;

    fn plan(&self, known: &Known) -> Plan<Draft<Removed>> {
        let (from, to, now) = (&self.from, &self.to, self.end.now);
        let Some(source) = named(known, from)? else { return Err(no_such(from).into()) };
        let target = named(known, to)?;
        known.expect_parent(to.directory)?;
        let done = Draft::new().answering(Removed::Name);
        let target = match (self.mode, target) {
            (RenameMode::NoReplace, Some(_)) => {
                let is_there = Condition::Bytes(
                    source.blob(),
                    0,
                    Bytes::copy_from_slice(&source.found.bytes[..16]),
                );
                return Err(Stop::FailIf(exists(to), vec![is_there]));
            }
            (RenameMode::Exchange, None) => return Err(no_such(to).into()),
            (_, Some(target)) if target.entry.number() == source.entry.number() => {
                return Ok(done);
            }
            (_, target) => target,
        };
        let mut draft = Draft::new();
        if source.is_directory() && from.directory != to.directory {
            refuse_loop(known, &mut draft, source.entry.number(), to.directory)?;
        }
        if self.mode == RenameMode::Exchange {
            let target = target.expect("it was looked at");
            if target.is_directory() && from.directory != to.directory {
                refuse_loop(known, &mut draft, target.entry.number(), from.directory)?;
            }
            put(known, &mut draft, &source, to, now)?;
            put(known, &mut draft, &target, from, now)?;
            let more = i64::from(source.is_directory()) - i64::from(target.is_directory());
            enter_both(&mut draft, from, to, [(0, -more), (0, more)], now);
            return Ok(draft.answering(Removed::Name));
        }
        let is_directory = i64::from(source.is_directory());
        let (removed, entries, subdirectories) = match &target {
            Some(target) => {
                check_kind(to, target.is_directory(), source.is_directory())?;
                let removed = self.end.name(known, &mut draft, to, &target.entry)?;
                // The one that comes replaces the one that goes.
                (removed, 0, 0)
            }
            None => {
                draft.require(Condition::Absent(Blob::entry(to.directory, &to.name)));
                (Removed::Name, 1, is_directory)
            }
        };
        put(known, &mut draft, &source, to, now)?;
        draft.delete(source.blob());
        let counts = [(-1, -is_directory), (entries, subdirectories)];
        enter_both(&mut draft, from, to, counts, now);
        Ok(draft.answering(removed))
    }
}

fn named<'a>(known: &'a Known, place: &'a Place) -> Plan<Option<Named<'a>>> {
    let found = known.entry(place, u64::MAX)?;
    Ok(found.map(|(entry, found)| Named { place, entry, found }))
}

/// Changes the counters of two directories, or of one twice.
fn enter_both(
    draft: &mut Draft<()>,
    from: &Place,
    to: &Place,
    [(less, less_directories), (more, more_directories)]: [(i64, i64); 2],
    now: Time,
) {
    if from.directory == to.directory {
        draft.enter(from.directory, less + more, less_directories + more_directories, now);
        return;
    }
    draft.enter(from.directory, less, less_directories, now);
    draft.enter(to.directory, more, more_directories, now);
}

/// What a name stands for gets another one; the old entry is the caller's.
fn put(
    known: &Known,
    draft: &mut Draft<()>,
    source: &Named<'_>,
    to: &Place,
    now: Time,
) -> Plan<()> {
    let target = Blob::entry(to.directory, &to.name);
    match &source.entry {
        Entry::File(record) => {
            draft.require(Condition::Unchanged(source.blob(), source.found.version));
            let mut record = record.clone();
            record.identity.flags.is_moved = true;
            record.times.ctime = now.max(record.times.ctime);
            let content = &source.found.bytes[RECORD_LEN..];
            let moved = Bytes::from([&record.encode()[..], content].concat());
            draft.change(Change::Put(target, moved));
            draft.put(&Blob::forward(record.identity.number), to.encode());
        }
        Entry::Reference(reference) => {
            draft.require_bytes(&source.blob(), 0, reference.encode());
            draft.put(&target, reference.encode());
            let record = match reference.kind {
                Kind::Directory => {
                    move_directory(known, draft, source.place, to, reference.number)?
                }
                _ => {
                    let Some((record, _)) = &known.file(reference.number)?.inode else {
                        return Err(Stop::Again);
                    };
                    draft.require_identity(&Blob::inode(reference.number), record.identity);
                    Blob::inode(reference.number)
                }
            };
            draft.touch(&record, now);
        }
    }
    Ok(())
}

/// A directory's header learns where it is.
fn move_directory(
    known: &Known,
    draft: &mut Draft<()>,
    from: &Place,
    to: &Place,
    number: u64,
) -> Plan<Blob> {
    let Some(header) = known.directory(number)? else { return Err(Stop::Again) };
    let at =
        |place: &Place| DirectoryPlace { parent: place.directory, name: Some(place.name.clone()) };
    if header.place != at(from) {
        return Err(Stop::Again);
    }
    let blob = Blob::header(number);
    draft.require_bytes(&blob, PLACE_AT, at(from).encode());
    draft.write(&blob, PLACE_AT, at(to).encode());
    Ok(blob)
}

/// Refuses to put a directory into itself, or below. Those above the new parent stay where they
/// are until it is done.
fn refuse_loop(known: &Known, draft: &mut Draft<()>, moved: u64, parent: u64) -> Plan<()> {
    let (mut at, mut conditions, mut way) = (parent, Vec::new(), BTreeSet::new());
    while at != ROOT {
        if !way.insert(at) {
            // Their headers were read at different moments, between which others moved them.
            return Err(Stop::Again);
        }
        if at == moved {
            let text = format!("directory {moved} cannot be moved into itself");
            return Err(Stop::FailIf(Error::new(Errno::INVAL, text), conditions));
        }
        let Some(header) = known.directory(at)? else { return Err(Stop::Again) };
        let above = Bytes::copy_from_slice(&header.place.encode()[..PARENT_LEN]);
        conditions.push(Condition::Bytes(Blob::header(at), PLACE_AT, above));
        at = header.place.parent;
    }
    draft.conditions.extend(conditions);
    Ok(())
}

#[cfg(test)]
mod tests {
    use tyr::Timestamp;

    use super::*;
    use crate::layout::header::Header;
    use crate::layout::name::Name;
    use crate::layout::record::{Access, Record};

    fn learn(known: &mut Known, blob: Blob, bytes: &[u8]) {
        let (size, bytes) = (bytes.len() as u64, Bytes::copy_from_slice(bytes));
        known.learn_blob(blob, u64::MAX, Some(Found { size, version: Timestamp::ZERO, bytes }));
    }

    #[test]
    fn directories_that_were_read_at_different_moments_are_read_again() {
        let place =
            |directory: u64, name: &str| Place { directory, name: Name::new(name).unwrap() };
        let record = |number| {
            let access = Access { mode: 0o755, owner: 0, group: 0 };
            Record::new(Kind::Directory, number, access, Time(0))
        };
        let mut known = Known::careful();
        // Each was below the other when it was read: one of them was moved in between.
        for (number, parent) in [(70, 71), (71, 70)] {
            let place = DirectoryPlace { parent, name: Some(Name::new("x").unwrap()) };
            let header = Header::new(record(number), place).encode();
            learn(&mut known, Blob::header(number), &header);
        }
        let (from, to) = (place(ROOT, "moved"), place(70, "moved"));
        let entry = Blob::entry(from.directory, &from.name);
        learn(&mut known, entry, &record(72).reference().encode());
        known.learn_blob(Blob::entry(to.directory, &to.name), u64::MAX, None);
        let end = End { session: 1, segment_bits: 30, now: Time(1) };
        let rename = Rename { from, to, mode: RenameMode::Replace, end };
        assert!(matches!(rename.plan(&known), Err(Stop::Again)));
    }
}
