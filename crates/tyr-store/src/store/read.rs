//! Reading: memory first, then the base and the extents, without any lock during I/O.

use std::sync::Arc;

use tyr_types::{BlobName, ByteRange, Bytes, Error, ErrorKind, Result, Timestamp};

use super::Store;
use crate::pages::PAGE_LEN;
use crate::recent::block::BLOCK_SIZE;
use crate::recent::plan::{Buffer, Missing, Plan, Source};
use crate::recent::{Attributes, BlobCell, BlobState};

/// Missing bytes up to here are fetched in whole pages or blocks and stay in the cache; more would
/// push everything else out of it.
const CACHED_READ_MAX: u64 = 4 * BLOCK_SIZE;

/// What is fetched at least: what one read of the disk brings.
const PAGE_SIZE: u64 = PAGE_LEN as u64;

const _: () = assert!(BLOCK_SIZE.is_multiple_of(PAGE_SIZE));

/// How often a read that folds overtake begins again. Each time takes a whole fold.
pub(super) const ATTEMPTS_MAX: usize = 100;

/// What a read answers: the blob's attributes and the bytes, cut to its size. `None`: no such blob.
pub type Answer = Option<(Attributes, Bytes)>;

impl Store {
    /// Reads `range` of a blob as of `at`, [`Timestamp::MAX`] for the newest version.
    ///
    /// # Errors
    /// `SnapshotTooOld` when that version is gone; `Corrupt` and `Unavailable` as the disk has it.
    pub fn read(&self, name: &BlobName, range: ByteRange, at: Timestamp) -> Result<Answer> {
        match self.find(name)? {
            Some(cell) => self.read_cell(&cell, range, at),
            None => Ok(None),
        }
    }

    /// The same, if memory alone can answer; `None` when the disk is needed.
    pub fn read_resident(
        &self,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Option<Result<Answer>> {
        let plan = match range.len() <= BLOCK_SIZE {
            true => self.recent.look(name, |state| state.plan(range, at))?,
            false => self.recent.find(name)?.lock().plan(range, at),
        };
        match plan {
            None => Some(Err(too_old(name))),
            Some(plan) if plan.missing.is_empty() => Some(Ok(answer(plan))),
            Some(_) => None,
        }
    }

    /// Reads all of `range`, which must lie within the blob, into `out`, which is as long, past the
    /// cache. Answers the attributes, `None` when there is no such blob.
    ///
    /// # Errors
    /// As [`Store::read`]; `InvalidArgument` when the blob ends within the range.
    pub fn read_into(
        &self,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
        out: &mut [u8],
    ) -> Result<Option<Attributes>> {
        assert_eq!(range.len(), out.len() as u64, "a buffer of another length than the range");
        let Some(cell) = self.find(name)? else { return Ok(None) };
        for _ in 0..ATTEMPTS_MAX {
            let planned = cell.lock().plan_into(range, at, Buffer::Borrowed(&mut *out));
            let mut plan = planned.ok_or_else(|| too_old(name))?;
            if !plan.attributes.exists {
                return Ok(None);
            }
            if plan.range != range {
                return Err(Error::invalid(format!("{name} ends within {range:?}")));
            }
            let fetched = self.fetch(name, &mut plan);
            if !cell.lock().is_overtaken(&plan) {
                return fetched.map(|()| Some(plan.attributes));
            }
        }
        Err(overtaken(name))
    }

    /// The blob's attributes as of `at`; `None` when there is no such blob.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn attributes(&self, name: &BlobName, at: Timestamp) -> Result<Option<Attributes>> {
        let Some(cell) = self.find(name)? else { return Ok(None) };
        let attributes = cell.lock().attributes_at(at).ok_or_else(|| too_old(name))?;
        Ok(attributes.exists.then_some(attributes))
    }

    /// The same, if memory alone can answer; `None` when the disk is needed.
    pub fn attributes_resident(
        &self,
        name: &BlobName,
        at: Timestamp,
    ) -> Option<Result<Option<Attributes>>> {
        let attributes = self.recent.look(name, |state| state.attributes_at(at))?;
        Some(attributes.map(|it| it.exists.then_some(it)).ok_or_else(|| too_old(name)))
    }

    /// Makes sure that memory holds all of `range`, which is short, in the newest version.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn make_resident(&self, cell: &Arc<BlobCell>, range: ByteRange) -> Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            let plan = {
                let state = cell.lock();
                if state.is_resident(range) {
                    return Ok(());
                }
                state.plan(widened(&state, range), Timestamp::MAX)
            };
            let plan = plan.expect("the newest version is always there");
            self.fetch_into_memory(cell, &plan)?;
        }
        Err(overtaken(cell.name()))
    }

    fn read_cell(&self, cell: &Arc<BlobCell>, range: ByteRange, at: Timestamp) -> Result<Answer> {
        for _ in 0..ATTEMPTS_MAX {
            let planned = cell.lock().plan(range, at);
            let mut plan = planned.ok_or_else(|| too_old(cell.name()))?;
            if plan.missing.is_empty() {
                return Ok(answer(plan));
            }
            if at == Timestamp::MAX && is_worth_caching(&plan) {
                let wide = {
                    let state = cell.lock();
                    state.plan(widened(&state, plan.range), at)
                };
                let mut wide = wide.expect("the newest version is always there");
                wide.missing.retain(|missing| matches!(missing.source, Source::Base));
                self.fetch_into_memory(cell, &wide)?;
                continue;
            }
            let fetched = self.fetch(cell.name(), &mut plan);
            if cell.lock().is_overtaken(&plan) {
                continue;
            }
            fetched?;
            return Ok(answer(plan));
        }
        Err(overtaken(cell.name()))
    }

    /// Fetches what `plan` misses into its bytes.
    pub(super) fn fetch(&self, name: &BlobName, plan: &mut Plan<'_>) -> Result<()> {
        for missing in std::mem::take(&mut plan.missing) {
            self.fetch_part(name, &missing, plan.part(missing.range))?;
        }
        Ok(())
    }

    /// Fetches what `plan`, of the newest version, misses, and keeps it in memory.
    fn fetch_into_memory(&self, cell: &Arc<BlobCell>, plan: &Plan<'_>) -> Result<()> {
        for missing in plan.missing.iter().flat_map(Missing::by_block) {
            let mut bytes = vec![0; missing.range.len() as usize];
            let fetched = self.fetch_part(cell.name(), &missing, &mut bytes);
            let mut state = cell.lock();
            if state.is_overtaken(plan) {
                return Ok(());
            }
            fetched?;
            let keep = |state: &mut BlobState| match &missing.source {
                Source::Base => state.fill(plan, missing.range, &bytes),
                Source::Extent { .. } => state.materialize(&missing, &bytes),
            };
            self.recent.change(cell, &mut state, keep);
        }
        Ok(())
    }

    pub(super) fn fetch_part(
        &self,
        name: &BlobName,
        missing: &Missing,
        out: &mut [u8],
    ) -> Result<()> {
        match &missing.source {
            Source::Base => self.base.read(name, missing.range, out),
            Source::Extent { lease, skip } => {
                let read = self.extents.read(&lease.extent(), *skip, out);
                read.map_err(|error| error.at(name.clone()))
            }
        }
    }
}

/// Whether what is missing is short and in the base. What lies in a fresh extent is not taken into
/// memory: there it would be a change that the next fold writes again.
fn is_worth_caching(plan: &Plan<'_>) -> bool {
    let is_in_base = |missing: &Missing| matches!(missing.source, Source::Base);
    let missing: u64 = plan.missing.iter().map(|missing| missing.range.len()).sum();
    missing <= CACHED_READ_MAX && plan.missing.iter().all(is_in_base)
}

fn answer(plan: Plan<'_>) -> Answer {
    debug_assert!(plan.missing.is_empty(), "what was not fetched would be read as zeros");
    plan.attributes.exists.then(|| (plan.attributes, Bytes::from(plan.into_bytes())))
}

/// `range` grown to whole pages, or to whole blocks where memory has what lies before it: whoever
/// reads on will want what comes next.
fn widened(state: &BlobState, range: ByteRange) -> ByteRange {
    let start = range.start / PAGE_SIZE * PAGE_SIZE;
    let goes_on = start == 0 || state.is_resident(ByteRange { start: start - 1, end: start });
    let len = if goes_on { BLOCK_SIZE } else { PAGE_SIZE };
    let wide = ByteRange { start: range.start / len * len, end: range.end.div_ceil(len) * len };
    debug_assert!(wide.contains(range), "{wide:?} lacks some of {range:?}");
    wide
}

/// What is told when the version that a snapshot needs is gone.
pub fn too_old(name: &BlobName) -> Error {
    Error::new(
        ErrorKind::SnapshotTooOld,
        format!("{name}: the version this snapshot needs is gone; start a new snapshot"),
    )
}

pub(super) fn overtaken(name: &BlobName) -> Error {
    Error::unavailable(format!("{name}: folds overtook the read again and again; try again"))
}

#[cfg(test)]
mod tests;
