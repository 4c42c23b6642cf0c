//! Which bytes of a blob, or of a chunk, are written: memory first, then the base.

use std::sync::Arc;

use tyr_types::chunk::Place;
use tyr_types::{BlobName, ByteRange, Result, Stretches, Timestamp, limits, stretch};

use super::Store;
use super::read::{ATTEMPTS_MAX, overtaken, too_old};
use crate::recent::layout::Layout;
use crate::recent::{Attributes, BlobCell};

impl Store {
    /// A page of what is written of `range` of a blob as of `at`, [`Timestamp::MAX`] for the newest
    /// version; `None` when there is no such blob.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn stretches(
        &self,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Option<(Attributes, Stretches)>> {
        let Some(cell) = self.find(name)? else { return Ok(None) };
        let found = self.look_for_stretches(&cell, range, at, limits::STRETCHES_MAX)?;
        Ok(Some(found).filter(|(attributes, _)| attributes.exists))
    }

    /// All that is written of `range` of a blob, which lies in the chunk that is kept under this
    /// name. At most [`limits::STRETCHES_MAX`] stretches: of more, those close together are told as
    /// one.
    ///
    /// # Errors
    /// As [`Store::plan_chunk_read`].
    pub fn chunk_stretches(
        &self,
        stored: &BlobName,
        place: Place,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Vec<ByteRange>> {
        let cell = self.chunk(stored)?;
        if !cell.lock().is_readable(at) {
            return Err(too_old(stored));
        }
        let local = place.local(range);
        let (_, found) = self.look_for_stretches(&cell, local, at, usize::MAX)?;
        Ok(stretch::joined(found.written.into_iter().map(|local| place.in_blob(local))))
    }

    /// The first stretches of `range`, so many at most.
    fn look_for_stretches(
        &self,
        cell: &Arc<BlobCell>,
        range: ByteRange,
        at: Timestamp,
        limit: usize,
    ) -> Result<(Attributes, Stretches)> {
        for _ in 0..ATTEMPTS_MAX {
            let layout = cell.lock().layout(range, at).ok_or_else(|| too_old(cell.name()))?;
            if let Some(found) = self.finish_layout(cell, layout, range, limit)? {
                return Ok(found);
            }
        }
        Err(overtaken(cell.name()))
    }

    /// Asks the base for what `layout` misses; `None` when a fold overtook that.
    pub(super) fn finish_layout(
        &self,
        cell: &Arc<BlobCell>,
        mut layout: Layout,
        range: ByteRange,
        limit: usize,
    ) -> Result<Option<(Attributes, Stretches)>> {
        let asked = self.ask_base(cell.name(), &mut layout, limit);
        if cell.lock().has_overtaken(&layout) {
            return Ok(None);
        }
        let known_to = asked?;
        let mut found = Stretches { written: Vec::new(), resume: known_to };
        layout.written.sort_unstable_by_key(|range| range.start);
        let known = ByteRange { start: 0, end: known_to.unwrap_or(range.end) };
        let written = layout.written.iter().map(|range| range.intersection(known));
        found.extend(written.filter(|range| !range.is_empty()));
        if let Some(next) = found.written.get(limit) {
            found.resume = Some(next.start);
            found.written.truncate(limit);
        }
        Ok(Some((layout.attributes, found)))
    }

    /// Adds what the base has, so many stretches at most; up to where all is known if that is not
    /// the end.
    fn ask_base(&self, name: &BlobName, layout: &mut Layout, limit: usize) -> Result<Option<u64>> {
        layout.in_base.sort_unstable_by_key(|range| range.start);
        let mut left = limit;
        for missing in &layout.in_base {
            let stored = self.base.stretches(name, *missing, left)?;
            left -= stored.len();
            let last = stored.last().map(|range| range.end);
            layout.written.extend(stored);
            if let (0, Some(end)) = (left, last) {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
