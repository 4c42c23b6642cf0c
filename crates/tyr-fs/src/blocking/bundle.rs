//! Operations that are committed together: each is planned on one moment of the store, with what
//! those before it have drafted over it, and nothing is written until all of them are done.
//!
//! What another program does between that moment and the commit fails a condition there, and then
//! all of them run again, at a later moment. Reading alone depends on nothing but the moment.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use tyr::Scan;
use tyr::blocking::{Snapshot, Transaction};

use super::driver::{READS_MAX, absent_is_none};
use super::store::{FileSystem, Shared};
use crate::error::{Error, Result};
use crate::layout::key::{self, Blob, Role, Space};
use crate::layout::record::{Access, MODE_AT, RECORD_LEN};
use crate::plan::known::{FileFacts, Others, SEGMENTS_MAX};
use crate::plan::overlay::{Overlay, Part};
use crate::plan::{Basis, Change, Condition, Draft, Found, Known, Operation, Stop, Want};

/// First bytes of a blob as the store had them at the moment, and how many were asked for.
type Bases = BTreeMap<Blob, (u64, Option<Found>)>;

/// Up to how many bytes of a blob are kept: a small file, and its record.
const BASE_LEN_MAX: usize = 128 << 10;

/// How many of them are kept of what is only read.
const BASES_KEPT_MAX: usize = 1_000;

/// Entries of a directory, and the key from which on a listing of it goes on, if there may be more.
pub type NamesPage = (Vec<(Blob, Found)>, Option<Vec<u8>>);

/// Operations that are committed together.
#[derive(Debug)]
pub struct Bundle {
    moment: Snapshot,
    /// What is committed with them, of other keyspaces.
    transaction: Transaction,
    /// Whether anything was done with that.
    is_store_used: bool,
    overlay: Overlay,
    bases: Bases,
    others: Option<Others>,
    /// Whether sessions are listed anew: what was known of them may not have held.
    is_again: bool,
    /// Whether anything is to be committed, so that it matters what was read.
    is_changing: bool,
    /// Files that were not open when their last name was taken.
    closed: BTreeSet<u64>,
    /// Files without a name, to be let go of when it is committed.
    orphans: Vec<u64>,
    /// Whether it is clear already that it has to run again.
    is_conflict: bool,
}

/// What the driver reads from.
struct Source<'a> {
    shared: &'a Shared,
    moment: &'a Snapshot,
    bases: &'a mut Bases,
}

impl Source<'_> {
    /// A part of a blob, as it was at the moment.
    fn read(&mut self, blob: &Blob, part: Part) -> Result<Option<Found>> {
        if part.start > 0 {
            return self.read_middle(blob, part);
        }
        match self.bases.get(blob) {
            Some((_, None)) => return Ok(None),
            Some((len, Some(found))) if *len >= part.end.min(found.size) => {
                return Ok(Some(cut(found, part.end)));
            }
            _ => {}
        }
        // A plan wants the record of what another has looked at, as a rule.
        let len = part.end.max(RECORD_LEN as u64);
        let found = self.read_first(blob, len)?;
        if found.as_ref().is_none_or(|found| found.bytes.len() <= BASE_LEN_MAX) {
            self.bases.insert(blob.clone(), (len, found.clone()));
        }
        Ok(found.map(|found| cut(&found, part.end)))
    }

    fn read_first(&self, blob: &Blob, len: u64) -> Result<Option<Found>> {
        if len > tyr::limits::SCAN_RANGE_LEN_MAX {
            return self.read_middle(blob, 0..len);
        }
        let end = [blob.key.as_bytes(), &[0]].concat();
        let scan = Scan::new().prefix(&blob.key.as_bytes()[..usize::from(key::GROUP_LEN)]);
        let scan = scan.from(blob.key.as_bytes()).to(end).limit(1).first_bytes(len);
        let page = self.moment.scan_page(self.shared.keyspace(blob.space), &scan)?;
        Ok(page.entries.into_iter().next().map(|entry| found(entry).1))
    }

    fn read_middle(&self, blob: &Blob, part: Part) -> Result<Option<Found>> {
        let keyspace = self.shared.keyspace(blob.space);
        let Some(stat) = absent_is_none(self.moment.stat(keyspace, &blob.key))? else {
            return Ok(None);
        };
        let len = part.end.min(stat.size).saturating_sub(part.start);
        let bytes = match len {
            0 => tyr::Bytes::new(),
            _ => self.moment.read(keyspace, &blob.key, part.start, len)?,
        };
        Ok(Some(Found { size: stat.size, version: stat.version, bytes }))
    }
}

fn cut(found: &Found, end: u64) -> Found {
    let len = usize::try_from(end).unwrap_or(usize::MAX).min(found.bytes.len());
    Found { bytes: found.bytes.slice(..len), ..found.clone() }
}

/// A key and what is there, of a listing with attributes.
fn found(entry: tyr::ScanEntry) -> (tyr::Key, Found) {
    let stat = entry.stat.expect("attributes were asked for");
    (entry.key, Found { size: stat.size, version: stat.version, bytes: entry.bytes })
}

/// That it has to run again, to who asks meanwhile.
fn conflict() -> Error {
    Error::new(Errno::AGAIN, "others changed what the transaction read")
}

impl Bundle {
    /// What is done behind each other, and committed together.
    pub fn new(shared: &Shared, is_again: bool) -> Result<Self> {
        Ok(Self { is_again, is_changing: true, ..Self::of(shared, shared.tyr.snapshot()?) })
    }

    /// What is only read, at this moment.
    pub fn of(shared: &Shared, moment: Snapshot) -> Self {
        Self {
            moment,
            transaction: shared.tyr.begin(),
            is_store_used: false,
            overlay: Overlay::default(),
            bases: BTreeMap::new(),
            others: None,
            is_again: false,
            is_changing: false,
            closed: BTreeSet::new(),
            orphans: Vec::new(),
            is_conflict: false,
        }
    }

    /// Whether it is to be committed.
    pub fn is_changing(&self) -> bool {
        self.is_changing
    }

    pub fn is_conflict(&self) -> bool {
        self.is_conflict
    }

    /// What is committed with it, of other keyspaces.
    pub fn store(&mut self) -> &mut Transaction {
        self.is_store_used = true;
        &mut self.transaction
    }

    /// A number that a file made here may get.
    pub fn add_fresh(&mut self, number: u64) {
        self.overlay.add_fresh(number);
    }

    /// A file has no name any more, if it is committed.
    pub fn orphaned(&mut self, number: u64) {
        self.orphans.push(number);
    }

    /// A part of a blob, as it is here.
    pub fn see(&mut self, shared: &Shared, blob: &Blob, part: Part) -> Result<Option<Found>> {
        let Self { moment, bases, overlay, is_changing, .. } = self;
        if !*is_changing && bases.len() > BASES_KEPT_MAX {
            bases.clear();
        }
        let mut source = Source { shared, moment, bases };
        overlay.see(blob, part, |part| source.read(blob, part))
    }

    /// Nothing of a blob that was read may change until it is committed.
    pub fn require_version(&mut self, shared: &Shared, blob: &Blob) -> Result<()> {
        let Self { moment, bases, overlay, is_changing, .. } = self;
        if !*is_changing {
            return Ok(());
        }
        let base = Source { shared, moment, bases }.read(blob, 0..0)?;
        overlay.require_version(blob, base.as_ref());
        Ok(())
    }

    /// Takes a draft.
    fn take(&mut self, shared: &Shared, draft: Draft<()>) -> Result<()> {
        let Self { moment, bases, overlay, is_changing, .. } = self;
        if !*is_changing {
            return match draft.changes.is_empty() {
                true => Ok(()),
                false => Err(Error::new(Errno::ROFS, "what was cannot be changed")),
            };
        }
        let mut source = Source { shared, moment, bases };
        for condition in draft.conditions {
            if !overlay.require(condition, &mut |blob, part| source.read(blob, part))? {
                self.is_conflict = true;
                return Err(conflict());
            }
        }
        for change in draft.changes {
            self.overlay.change(change);
        }
        Ok(())
    }

    /// Reads what a plan wants.
    fn learn(&mut self, shared: &Shared, known: &mut Known, want: &Want) -> Result<()> {
        match want {
            Want::Blob(blob, len) => {
                let found = self.see(shared, blob, 0..*len)?;
                known.learn_blob(blob.clone(), *len, found);
            }
            Want::Access(directory) => {
                let range = MODE_AT..MODE_AT + Access::LEN as u64;
                let found = self.see(shared, &Blob::header(*directory), range)?;
                known.learn_access(*directory, found.map(|found| found.bytes))?;
            }
            Want::Tail(blob, from) => {
                let found = self.see(shared, blob, *from..u64::MAX)?;
                let bytes = found.map(|found| found.bytes).unwrap_or_default();
                known.learn_tail(blob.clone(), *from, bytes);
            }
            Want::File(number) => {
                let mut found = Vec::new();
                for blob in key::first_group(*number) {
                    let blob_found = self.see(shared, &blob, 0..RECORD_LEN as u64)?;
                    found.extend(blob_found.map(|it| (blob, it)));
                }
                known.learn_file(*number, FileFacts::decode(found)?);
            }
            Want::Segments(number, from) => {
                let segments = self.segments(shared, *number, *from)?;
                known.learn_segments(*number, *from, segments);
            }
            Want::Others => {
                if self.others.is_none() {
                    self.others = Some(shared.others(self.is_again)?);
                }
                known.learn_others(self.others.clone().expect("they were just listed"));
            }
            Want::IsOpen(number) => {
                let is_open = shared.opens.is_open(*number);
                if !is_open {
                    self.closed.insert(*number);
                }
                known.learn_open(*number, is_open);
            }
        }
        Ok(())
    }

    /// The highest segments of a file from this one on.
    fn segments(&mut self, shared: &Shared, number: u64, from: u32) -> Result<Vec<u32>> {
        let (first, prefix) = (Blob::content(number, from), number.to_be_bytes());
        let scan = Scan::new().prefix(prefix).from(first.key.as_bytes()).keys_only();
        let mut segments = BTreeSet::new();
        for page in self.moment.scan_pages(shared.keyspace(Space::Data), &scan) {
            for entry in page?.entries {
                let blob = Blob { space: Space::Data, key: entry.key };
                if let Role::Content(_, segment) = blob.parse()? {
                    segments.insert(segment);
                }
            }
        }
        let changed: Vec<_> =
            self.overlay.changed(&first, &Blob::inode(number + 1)).cloned().collect();
        for blob in changed {
            let Role::Content(_, segment) = blob.parse()? else { continue };
            match self.see(shared, &blob, 0..0)? {
                Some(_) => segments.insert(segment),
                None => segments.remove(&segment),
            };
        }
        let too_many = segments.len().saturating_sub(SEGMENTS_MAX);
        Ok(segments.into_iter().skip(too_many).collect())
    }

    /// A page of a listing of names, as they are here, and where the next one begins.
    pub fn page(
        &mut self,
        shared: &Shared,
        directory: u64,
        from: &[u8],
        limit: usize,
    ) -> Result<NamesPage> {
        let prefix = key::entries(directory);
        let scan = Scan::new().prefix(prefix).from(from).first_bytes(RECORD_LEN as u64);
        let page = self.moment.scan_page(&shared.meta, &scan.limit(limit))?;
        let next = page.resume.as_ref().map(|from| from.to_vec());
        let mut entries: BTreeMap<Blob, Found> = BTreeMap::new();
        for entry in page.entries {
            let (key, found) = found(entry);
            entries.insert(Blob { space: Space::Meta, key }, found);
        }
        let end = next.clone().unwrap_or_else(|| key::behind_entries(directory));
        let blob = |key: &[u8]| Blob {
            space: Space::Meta,
            key: tyr::Key::new(key).expect("it is as short as others"),
        };
        let changed: Vec<_> = self.overlay.changed(&blob(from), &blob(&end)).cloned().collect();
        for blob in changed {
            match self.see(shared, &blob, 0..RECORD_LEN as u64)? {
                Some(found) => drop(entries.insert(blob, found)),
                None => drop(entries.remove(&blob)),
            }
        }
        Ok((entries.into_iter().collect(), next))
    }
}

impl FileSystem {
    /// Plans an operation behind those before it.
    pub(super) fn run_bundled<O: Operation>(&self, operation: &O) -> Result<O::Answer> {
        let mut bundle = self.bundle()?;
        let (shared, mut known, mut wants) = (&*self.shared, Known::careful(), Vec::new());
        loop {
            match operation.plan(&known) {
                Ok(draft) => {
                    let Draft { conditions, changes, answer } = draft;
                    bundle.take(shared, Draft { conditions, changes, answer: () })?;
                    match O::BASIS {
                        Basis::Versions => bundle.depend(shared, &wants)?,
                        Basis::Draft | Basis::Nothing => {}
                    }
                    return Ok(answer);
                }
                Err(Stop::Read(want)) if wants.len() < READS_MAX as usize => {
                    bundle.learn(shared, &mut known, &want)?;
                    wants.push(want);
                }
                Err(Stop::Read(want)) => {
                    let text = format!("an operation asks without end: {want:?}");
                    return Err(Error::new(Errno::IO, text));
                }
                Err(Stop::Fail(error)) => {
                    bundle.depend(shared, &wants)?;
                    return Err(error);
                }
                Err(Stop::FailIf(error, conditions)) => {
                    bundle.take(shared, Draft { conditions, changes: vec![], answer: () })?;
                    return Err(error);
                }
                Err(Stop::Again) => {
                    bundle.is_conflict = true;
                    return Err(conflict());
                }
            }
        }
    }

    /// What was bundled so far, to add to it.
    ///
    /// # Errors
    /// `EAGAIN` when it has to run again.
    pub(super) fn bundle(&self) -> Result<parking_lot::MutexGuard<'_, Bundle>> {
        let bundle = self.bundle.as_ref().expect("it is only asked for where there is one");
        let bundle = bundle.lock();
        match bundle.is_conflict {
            true => Err(conflict()),
            false => Ok(bundle),
        }
    }
}

impl Bundle {
    /// Everything that was read must stay as it is until it is committed.
    fn depend(&mut self, shared: &Shared, wants: &[Want]) -> Result<()> {
        for want in wants {
            match want {
                Want::Blob(blob, _) | Want::Tail(blob, _) => self.require_version(shared, blob)?,
                Want::Access(directory) => {
                    self.require_version(shared, &Blob::header(*directory))?;
                }
                Want::File(number) => {
                    for blob in key::first_group(*number) {
                        self.require_version(shared, &blob)?;
                    }
                }
                // They follow from the inode, and from what the draft requires.
                Want::Segments(..) | Want::IsOpen(_) | Want::Others => {}
            }
        }
        Ok(())
    }
}

/// What is to be committed.
#[derive(Debug)]
pub struct Bundled {
    pub conditions: Vec<Condition>,
    pub changes: Vec<Change>,
    pub transaction: Transaction,
    pub closed: BTreeSet<u64>,
    pub orphans: Vec<u64>,
}

impl Bundle {
    /// All of it; reading alone leaves nothing to be committed.
    pub fn into_bundled(self) -> Bundled {
        let is_change = self.overlay.is_change() || self.is_store_used;
        let (conditions, changes) = match is_change {
            true => self.overlay.into_parts(),
            false => (Vec::new(), Vec::new()),
        };
        let Self { transaction, closed, orphans, .. } = self;
        Bundled { conditions, changes, transaction, closed, orphans }
    }
}
