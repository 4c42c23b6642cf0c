//! Listing blobs as they were at a moment, with what is asked of each (Q1, Q2).
//!
//! ```text
//!   untold in memory ─► base ─► untold in memory again ─► what each was at S, and its first bytes
//! ```
//!
//! The base tells of blobs as they are; those of which it tells nothing, or not what they were at
//! S, are in memory: they were written since, or are gone. Memory is looked at on both sides of the
//! base: what a fold moves from memory to the base meanwhile, and what it takes out of the base, is
//! seen all the same. Of what is in neither, it has to be known from when on nothing was forgotten.
//!
//! Attributes and bytes of a blob come from one look at it, so they are of one version (Q2). A
//! group is passed by: the walk goes on behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::chunk::Place;
use tyr_types::scan::{Filling, behind, just_behind};
use tyr_types::{
    BlobName, ByteRange, Bytes, Error, ErrorKind, Key, KeyRange, KeyspaceId, Listed, Result, Scan,
    ScanEntry, ScanPage, Stat, Timestamp, limits,
};

use super::Store;
use super::read::too_old;
use crate::base::BlobBase;
use crate::recent::BlobCell;

/// Blobs that are looked at in one go.
const STEP_MAX: usize = 512;

/// The same behind a group that was passed by, for another one may follow soon; and at least, of a
/// page that has few. Twice as many are looked at from step to step.
const STEP_MIN: usize = 16;

const _: () = assert!(0 < STEP_MIN && STEP_MIN <= STEP_MAX);

/// When the blobs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// As they were then; `None` for each as it is now.
    pub at: Option<Timestamp>,
    /// When their bytes are read. It is the same moment (Q2); a test has another.
    pub bytes_at: Option<Timestamp>,
}

impl Moment {
    /// That moment, or now.
    pub fn of(at: Option<Timestamp>) -> Self {
        Self { at, bytes_at: at }
    }
}

/// What is known of a blob before it is looked up.
enum Trace {
    Base(BlobBase),
    Memory(Arc<BlobCell>),
}

/// Blobs up to some key, all of which are known.
pub(super) struct Step<T> {
    pub traces: BTreeMap<Key, T>,
    /// From where on something was not looked at; `None` when there is nothing behind.
    pub end: Option<Bytes>,
}

impl Store {
    /// A page of those blobs of `scan` that are wanted and were there at the moment. Everything at
    /// or below it must be applied.
    ///
    /// # Errors
    /// `SnapshotTooOld` when it is not known any more what was there; `InvalidArgument` for a scan
    /// out of range; `Corrupt` and `Unavailable` as the disk has it.
    pub fn scan(
        &self,
        keyspace: KeyspaceId,
        scan: &Scan,
        moment: Moment,
        is_wanted: impl Fn(&Key) -> bool,
    ) -> Result<ScanPage> {
        let step = |keys: &KeyRange, len| {
            let mut step = self.step(keyspace, keys, len)?;
            step.traces.retain(|key, _| is_wanted(key));
            Ok(step)
        };
        let page = self.walk(keyspace, scan, step, |name, trace, range, is_key_only| {
            self.entry(name, trace, moment, range, is_key_only)
        })?;
        self.check_known(moment.at)?;
        Ok(page)
    }

    /// Walks through the keys of a scan, in steps; `look` says what of a blob is listed, with its
    /// bytes in a range or its key alone, if it was there.
    pub(super) fn walk<T>(
        &self,
        keyspace: KeyspaceId,
        scan: &Scan,
        step: impl Fn(&KeyRange, usize) -> Result<Step<T>>,
        look: impl Fn(&BlobName, T, Option<ByteRange>, bool) -> Result<Option<ScanEntry>>,
    ) -> Result<ScanPage> {
        scan.validate()?;
        let (mut filling, mut keys) = (Filling::new(scan), scan.keys());
        let mut len = match scan.get_delimiter() {
            Some(_) => STEP_MIN,
            // With one behind the page, which tells that there is more.
            None => scan.get_limit().saturating_add(1).clamp(STEP_MIN, STEP_MAX),
        };
        let page = 'page: loop {
            let step = step(&keys, len)?;
            let before = keys.start.clone();
            for (key, trace) in step.traces {
                if key.as_bytes() < &*keys.start {
                    continue;
                }
                let name = BlobName { keyspace, key };
                let group = scan.group_of(name.key.as_bytes());
                let (range, is_key_only) = match group {
                    Some(_) => (None, true),
                    None => (scan.get_range(), scan.is_keys_only()),
                };
                let Some(entry) = look(&name, trace, range, is_key_only)? else { continue };
                if filling.is_full() {
                    break 'page filling.finish_here();
                }
                match group.map(|group| (Bytes::copy_from_slice(group), behind(group))) {
                    None => filling.push(entry),
                    Some((group, behind)) => {
                        filling.push_group(group);
                        match behind {
                            Some(behind) => keys.start = behind.into(),
                            None => break 'page filling.finish(None),
                        }
                    }
                }
            }
            let Some(end) = step.end else { break filling.finish(None) };
            let is_passed_by = keys.start > end;
            len = if is_passed_by { STEP_MIN } else { (2 * len).min(STEP_MAX) };
            keys.start = keys.start.max(end);
            debug_assert!(before < keys.start, "the next step lies behind this");
        };
        Ok(page)
    }

    /// The next blobs that there are or were, up to where memory and the base have been asked.
    fn step(&self, keyspace: KeyspaceId, keys: &KeyRange, len: usize) -> Result<Step<Trace>> {
        let untold = || self.recent.untold_from(keyspace, keys, len);
        let before = untold();
        let base = self.base.scan_traces(keyspace, keys, len)?;
        let after = untold();
        let of_memory = |cells: &[Arc<BlobCell>]| {
            cells.last().filter(|_| cells.len() == len).map(|cell| cell.name().key.clone())
        };
        let of_base = base.last().filter(|_| base.len() == len).map(|(key, _)| key.clone());
        let lasts = [of_memory(&before), of_base, of_memory(&after)];
        let last = lasts.into_iter().flatten().min();
        let base = base.into_iter().map(|(key, blob)| (key, Trace::Base(blob)));
        let memory = before.into_iter().chain(after);
        let memory = memory.map(|cell| (cell.name().key.clone(), Trace::Memory(cell)));
        let is_in = |(key, _): &(Key, Trace)| last.as_ref().is_none_or(|last| key <= last);
        // Memory comes last: it has the newer word.
        let traces = base.chain(memory).filter(is_in).collect();
        let end = last.map(|last| Bytes::from(just_behind(last.as_bytes())));
        Ok(Step { traces, end: end.filter(|end| keys.is_before_end(end)) })
    }

    /// What the blob was, with those bytes of it, or its key alone; `None` when it was not there.
    fn entry(
        &self,
        name: &BlobName,
        trace: Trace,
        moment: Moment,
        range: Option<ByteRange>,
        is_key_only: bool,
    ) -> Result<Option<ScanEntry>> {
        let key = name.key.clone();
        let told = |stat: Option<Stat>, bytes| {
            stat.map(|stat| ScanEntry { key, stat: (!is_key_only).then_some(stat), bytes })
        };
        let Moment { at, bytes_at } = moment;
        let cell = match trace {
            Trace::Memory(cell) => cell,
            Trace::Base(blob) => match self.recent.find(name) {
                Some(cell) => cell,
                // Whatever was written since was not there at `at`.
                None if at.is_none_or(|at| blob.version <= at) => {
                    let stat = Stat { size: blob.size, version: blob.version };
                    let stat = blob.exists.then_some(stat);
                    match (range, &blob.content) {
                        (None, _) => return Ok(told(stat, Bytes::new())),
                        (Some(range), Some(content)) => {
                            return Ok(told(stat, part(content, range, blob.size)));
                        }
                        (Some(_), None) if stat.is_none() => return Ok(None),
                        (Some(_), None) => self.chunk(name)?,
                    }
                }
                None => self.chunk(name)?,
            },
        };
        if let Some(range) = range {
            return Ok(self
                .first_bytes(&cell, range, at, bytes_at)?
                .and_then(|(stat, bytes)| told(Some(stat), bytes)));
        }
        let state = cell.lock();
        let Some(at) = at else { return Ok(told(state.attributes().stat(), Bytes::new())) };
        let attributes = state.attributes_told_at(at).ok_or_else(|| too_old(name))?;
        Ok(told(attributes.stat(), Bytes::new()))
    }

    /// The attributes and those bytes of the first chunk of a blob, by one look at it.
    fn first_bytes(
        &self,
        cell: &Arc<BlobCell>,
        range: ByteRange,
        at: Option<Timestamp>,
        bytes_at: Option<Timestamp>,
    ) -> Result<Option<(Stat, Bytes)>> {
        let place = Place { range: ByteRange { start: 0, end: range.end } };
        let read = self.plan_chunk_read(cell, place, range, bytes_at)?;
        let attributes = if at == bytes_at {
            None
        } else {
            let told = cell.lock().attributes_told_at(at.unwrap_or(Timestamp::MAX));
            Some(told.ok_or_else(|| too_old(cell.name()))?)
        };
        let reading = self.finish_chunk_read(read)?;
        let attributes = attributes.unwrap_or(reading.attributes);
        let stat = attributes.stat();
        let whole = range.intersection(ByteRange { start: 0, end: attributes.size });
        debug_assert!(at != bytes_at || reading.bytes.len() as u64 <= whole.len(), "Q2");
        Ok(stat.map(|stat| (stat, filled(reading.bytes, whole.len()))))
    }

    /// Whether what a listing showed at `at` is not so any more (Q3): one of these keys came or
    /// went since, or, unless only keys were listed, was written; or it is not known. Everything
    /// decided must be applied, and nothing else is meanwhile.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn is_listing_stale(
        &self,
        keyspace: KeyspaceId,
        listed: &Listed,
        at: Timestamp,
    ) -> Result<bool> {
        let (mut keys, mut count) = (listed.keys.clone(), 0);
        loop {
            let step = self.step(keyspace, &keys, STEP_MAX)?;
            for (key, trace) in step.traces {
                let name = BlobName { keyspace, key };
                let (is_there, is_changed) = self.change(&name, trace, listed, at)?;
                count += usize::from(is_there);
                // Nobody has listed so many.
                if is_changed || count > limits::TRANSACTION_LISTED_MAX {
                    return Ok(true);
                }
            }
            let Some(end) = step.end else { break };
            debug_assert!(keys.start < end, "the next step lies behind this");
            keys.start = end;
        }
        // Looked at last: by then nothing is forgotten of which this does not tell.
        Ok(at < self.recent.known_from())
    }

    /// Whether the blob is there, and whether it is not as it was listed at `at`.
    fn change(
        &self,
        name: &BlobName,
        trace: Trace,
        listed: &Listed,
        at: Timestamp,
    ) -> Result<(bool, bool)> {
        let cell = match trace {
            Trace::Memory(cell) => cell,
            Trace::Base(blob) => match self.recent.find(name) {
                Some(cell) => cell,
                None if blob.version <= at => return Ok((blob.exists, false)),
                None => self.chunk(name)?,
            },
        };
        let state = cell.lock();
        let now = state.attributes();
        let is_changed = match listed.is_keys_only {
            _ if now.version <= at => false,
            false => true,
            true => state.attributes_told_at(at).is_none_or(|then| then.exists != now.exists),
        };
        Ok((now.exists, is_changed))
    }

    /// Whether nothing was forgotten that was there at `at`.
    fn check_known(&self, at: Option<Timestamp>) -> Result<()> {
        let known_from = self.recent.known_from();
        if at.is_none_or(|at| known_from <= at) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::SnapshotTooOld,
            format!(
                "what was deleted before {known_from} is not known any more; start a new snapshot"
            ),
        ))
    }
}

/// What a small blob of `size` bytes has of `range`.
fn part(content: &Bytes, range: ByteRange, size: u64) -> Bytes {
    let whole = range.intersection(ByteRange { start: 0, end: size });
    let held = range.intersection(ByteRange { start: 0, end: content.len() as u64 });
    let bytes = match held.is_empty() {
        true => Bytes::new(),
        // A page must not hold on to what it does not have.
        false => Bytes::copy_from_slice(&content[held.start as usize..held.end as usize]),
    };
    filled(bytes, whole.len())
}

/// The bytes, with zeros up to `len`: the rest of the range is a hole.
pub(super) fn filled(bytes: Bytes, len: u64) -> Bytes {
    let len = usize::try_from(len).expect("a scan's range is short");
    if bytes.len() >= len {
        return bytes;
    }
    let mut all = Vec::from(bytes);
    all.resize(len, 0);
    all.into()
}

#[cfg(test)]
mod tests;
