//! Reading at a kept moment: memory as long as the folds have not passed it, then what the base
//! holds for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::scan::just_behind;
use tyr_types::{
    BlobName, ByteRange, Bytes, KeyRange, KeyspaceId, Result, Scan, ScanEntry, ScanPage, Stretches,
    Timestamp, limits,
};

use super::Store;
use super::read::{ATTEMPTS_MAX, Answer, overtaken, too_old};
use super::scan::{Step, filled};
use crate::base::{BlobBase, KeptStretches};
use crate::recent::{Attributes, BlobCell};

impl Store {
    /// Reads `range` of a blob as of a kept moment.
    ///
    /// # Errors
    /// `NotFound` when it is kept no more; `Corrupt` and `Unavailable` as the disk has it.
    pub fn read_kept(&self, name: &BlobName, range: ByteRange, at: Timestamp) -> Result<Answer> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(cell) = self.unfolded(name, at) else {
                let found = self.base.read_kept(name, range, at)?;
                return Ok(found.map(|(blob, bytes)| (attributes(&blob), Bytes::from(bytes))));
            };
            let planned = {
                let state = cell.lock();
                if state.is_passed(at) {
                    continue;
                }
                state.plan(range, at)
            };
            let Some(mut plan) = planned else {
                // A fold has passed the moment meanwhile, or this is none that is kept.
                if self.is_folded(at) { continue } else { return Err(too_old(name)) }
            };
            let fetched = self.fetch(name, &mut plan);
            if cell.lock().is_overtaken(&plan) {
                continue;
            }
            fetched?;
            let found = (plan.attributes, Bytes::from(plan.into_bytes()));
            return Ok(Some(found).filter(|(attributes, _)| attributes.exists));
        }
        Err(overtaken(name))
    }

    /// The blob's attributes as of a kept moment; `None` when there was no such blob.
    ///
    /// # Errors
    /// As [`Store::read_kept`].
    pub fn attributes_kept(&self, name: &BlobName, at: Timestamp) -> Result<Option<Attributes>> {
        Ok(self.read_kept(name, ByteRange::NOTHING, at)?.map(|(attributes, _)| attributes))
    }

    /// A page of what was written of `range` of a blob at a kept moment; `None` when there was no
    /// such blob.
    ///
    /// # Errors
    /// As [`Store::read_kept`].
    pub fn stretches_kept(
        &self,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Option<(Attributes, Stretches)>> {
        let limit = limits::STRETCHES_MAX;
        for _ in 0..ATTEMPTS_MAX {
            let Some(cell) = self.unfolded(name, at) else {
                let found = self.base.stretches_kept(name, range, at, limit)?;
                return Ok(found.map(|KeptStretches { blob, written, resume }| {
                    let mut page = Stretches { written: Vec::new(), resume };
                    page.extend(written);
                    if let Some(next) = page.written.get(limit) {
                        page.resume = Some(next.start);
                        page.written.truncate(limit);
                    }
                    (attributes(&blob), page)
                }));
            };
            let layout = {
                let state = cell.lock();
                if state.is_passed(at) {
                    continue;
                }
                state.layout(range, at)
            };
            let Some(layout) = layout else {
                if self.is_folded(at) { continue } else { return Err(too_old(name)) }
            };
            if let Some(found) = self.finish_layout(&cell, layout, range, limit)? {
                return Ok(Some(found).filter(|(attributes, _)| attributes.exists));
            }
        }
        Err(overtaken(name))
    }

    /// A page of those blobs of `scan` that were there at a kept moment.
    ///
    /// # Errors
    /// As [`Store::read_kept`]; `InvalidArgument` for a scan out of range.
    pub fn scan_kept(&self, keyspace: KeyspaceId, scan: &Scan, at: Timestamp) -> Result<ScanPage> {
        let step = |keys: &KeyRange, len| self.step_kept(keyspace, keys, len, at);
        self.walk(keyspace, scan, step, |name, (), range, is_key_only| {
            let asked = range.unwrap_or(ByteRange::NOTHING);
            let Some((attributes, bytes)) = self.read_kept(name, asked, at)? else {
                return Ok(None);
            };
            let whole = asked.intersection(ByteRange { start: 0, end: attributes.size });
            let stat = attributes.stat().filter(|_| !is_key_only);
            let bytes = filled(bytes, whole.len());
            Ok(Some(ScanEntry { key: name.key.clone(), stat, bytes }))
        })
    }

    /// The next blobs that there are or were. What a fold moves meanwhile goes from memory to the
    /// base, and from there to what is held: whoever looks in that order misses nothing.
    pub(super) fn step_kept(
        &self,
        keyspace: KeyspaceId,
        keys: &KeyRange,
        len: usize,
        at: Timestamp,
    ) -> Result<Step<()>> {
        let memory = self.recent.untold_from(keyspace, keys, len);
        let base = self.base.scan_traces(keyspace, keys, len)?;
        let held = self.base.kept_keys(keyspace, keys, at, len)?;
        let of_memory = memory.last().filter(|_| memory.len() == len);
        let of_memory = of_memory.map(|cell| cell.name().key.clone());
        let of_base = base.last().filter(|_| base.len() == len).map(|(key, _)| key.clone());
        let last = [of_memory, of_base, held.known_to].into_iter().flatten().min();
        let memory = memory.iter().map(|cell| cell.name().key.clone());
        let found = memory.chain(base.into_iter().map(|(key, _)| key)).chain(held.keys);
        let is_in = |key: &tyr_types::Key| last.as_ref().is_none_or(|last| key <= last);
        let traces: BTreeMap<_, ()> = found.filter(is_in).map(|key| (key, ())).collect();
        let end = last.map(|last| Bytes::from(just_behind(last.as_bytes())));
        Ok(Step { traces, end: end.filter(|end| keys.is_before_end(end)) })
    }

    /// Whether the folds have passed a moment.
    fn is_folded(&self, at: Timestamp) -> bool {
        at <= self.base.last_checkpoint().timestamp
    }

    /// The cell of a blob of which the base may lack something as of `at`.
    fn unfolded(&self, name: &BlobName, at: Timestamp) -> Option<Arc<BlobCell>> {
        if self.is_folded(at) {
            return None;
        }
        self.recent.find(name).filter(|cell| !cell.lock().is_passed(at))
    }
}

fn attributes(blob: &BlobBase) -> Attributes {
    Attributes { exists: blob.exists, size: blob.size, version: blob.version }
}
