//! Listing blobs by their first chunks, as they were at a moment (Q1).
//!
//! ```text
//!   untold in memory ─► base ─► untold in memory again ─► what each was at S
//! ```
//!
//! The base tells of blobs as they are; those of which it tells nothing, or not what they were at
//! S, are in memory: they were written since, or are gone. Memory is looked at on both sides of the
//! base: what a fold moves from memory to the base meanwhile, and what it takes out of the base, is
//! seen all the same. Of what is in neither, it has to be known from when on nothing was forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::{BlobName, Error, ErrorKind, Key, KeyspaceId, Result, Stat, Timestamp};

use crate::base::BlobBase;
use crate::recent::BlobCell;
use crate::store::Store;
use crate::store::read::too_old;

/// Blobs that are looked at in one go.
const PAGE: usize = 512;

/// Which blobs are listed.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// Of this keyspace.
    pub keyspace: KeyspaceId,
    /// Their keys begin so.
    pub prefix: &'a [u8],
    /// And come after this one.
    pub after: Option<&'a Key>,
}

/// What is known of a blob before it is looked up.
enum Trace {
    Base(BlobBase),
    Memory(Arc<BlobCell>),
}

/// Blobs up to some key, all of which are known.
struct Page {
    traces: BTreeMap<Key, Trace>,
    /// The last key that it has everything up to; `None` when there is nothing behind.
    end: Option<Key>,
}

impl Store {
    /// The first `limit` of those blobs that are wanted and were there at `at`, or are there now if
    /// there is none, in key order; and whether those are all. Everything at or below `at` must be
    /// applied.
    ///
    /// # Errors
    /// `SnapshotTooOld` when it is not known any more what was there; `Corrupt` and `Unavailable`
    /// as the disk has it.
    pub fn list(
        &self,
        range: Range<'_>,
        limit: usize,
        at: Option<Timestamp>,
        is_wanted: impl Fn(&Key) -> bool,
    ) -> Result<(Vec<(Key, Stat)>, bool)> {
        let mut found = Vec::new();
        let mut after = range.after.cloned();
        loop {
            let page = self.page(Range { after: after.as_ref(), ..range })?;
            for (key, trace) in page.traces.into_iter().filter(|(key, _)| is_wanted(key)) {
                let Some(stat) = self.stat_at(range.keyspace, &key, trace, at)? else { continue };
                if found.len() == limit {
                    self.check_known(at)?;
                    return Ok((found, false));
                }
                found.push((key, stat));
            }
            match page.end {
                Some(end) => {
                    debug_assert!(after.as_ref() < Some(&end), "the next page lies behind this");
                    after = Some(end);
                }
                None => break,
            }
        }
        self.check_known(at)?;
        debug_assert!(found.len() <= limit && found.is_sorted_by(|a, b| a.0 < b.0));
        Ok((found, true))
    }

    /// The next blobs that there are or were, up to where memory and the base have been asked.
    fn page(&self, range: Range<'_>) -> Result<Page> {
        let Range { keyspace, prefix, after } = range;
        let untold = || self.recent.untold_from(keyspace, prefix, after, PAGE);
        let before = untold();
        let base = self.base.scan_traces(keyspace, prefix, after.map(Key::as_bytes), PAGE)?;
        let behind = untold();
        let of_memory = |cells: &[Arc<BlobCell>]| {
            cells.last().filter(|_| cells.len() == PAGE).map(|cell| cell.name().key.clone())
        };
        let of_base = base.last().filter(|_| base.len() == PAGE).map(|(key, _)| key.clone());
        let ends = [of_memory(&before), of_base, of_memory(&behind)];
        let end = ends.into_iter().flatten().min();
        let base = base.into_iter().map(|(key, blob)| (key, Trace::Base(blob)));
        let memory = before.into_iter().chain(behind);
        let memory = memory.map(|cell| (cell.name().key.clone(), Trace::Memory(cell)));
        let is_in = |(key, _): &(Key, Trace)| end.as_ref().is_none_or(|end| key <= end);
        // Memory comes last: it has the newer word.
        let traces = base.chain(memory).filter(is_in).collect();
        Ok(Page { traces, end })
    }

    /// What the blob was at `at`; `None` when it was not there.
    fn stat_at(
        &self,
        keyspace: KeyspaceId,
        key: &Key,
        trace: Trace,
        at: Option<Timestamp>,
    ) -> Result<Option<Stat>> {
        let name = BlobName { keyspace, key: key.clone() };
        let cell = match trace {
            Trace::Memory(cell) => cell,
            Trace::Base(blob) => match self.recent.find(&name) {
                Some(cell) => cell,
                // Whatever was written since was not there at `at`.
                None if at.is_none_or(|at| blob.version <= at) => {
                    let stat = Stat { size: blob.size, version: blob.version };
                    return Ok(blob.exists.then_some(stat));
                }
                None => self.chunk(&name)?,
            },
        };
        let state = cell.lock();
        let Some(at) = at else { return Ok(state.attributes().stat()) };
        let attributes = state.attributes_told_at(at).ok_or_else(|| too_old(&name))?;
        Ok(attributes.stat())
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

#[cfg(test)]
mod tests;
