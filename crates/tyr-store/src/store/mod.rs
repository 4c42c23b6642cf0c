//! The store: log, extents, index and recent operations, put together.
//!
//! ```text
//!   write ──> extents (large payloads) ──> log ──> recent ──fold──> base (index + extents)
//!   read  <────────────────────────────────────── recent, then base
//! ```
//!
//! It decides nothing: when to commit, at which timestamp, when to sync and when to fold is the
//! node's affair. Reading order: opening (here), [`mod@write`], [`read`], [`scan`], [`fold`]
//! with [`folded_to`], [`kept`]; then [`chunks`], which is what a node of a cluster keeps, and
//! [`promises`], which stand for its log where that was cut. `usage` is how much of everything
//! there is.

pub mod chunks;
#[cfg(test)]
mod fixtures;
mod fold;
mod folded_to;
mod kept;
mod open;
mod promises;
mod read;
pub mod scan;
mod stretches;
mod usage;
mod write;

use std::sync::Arc;

use parking_lot::Mutex;
use tyr_types::{BlobName, ByteRange, Error, Number, NumberType, Result, Timestamp};

use crate::base::{Base, BlobBase};
use crate::check::Report;
use crate::disk::{Disk, refusal};
use crate::extents::Extents;
use crate::log::TornTail;
use crate::recent::{BlobCell, BlobState, Recent};

use self::folded_to::FoldedTo;
pub use crate::recent::Attributes;
pub use fold::Fold;
pub use open::{Opened, OpenedNode, Parts, Reread, Visit};
pub use promises::PromisesWriter;
pub use read::{Answer, too_old};
pub use write::Cells;

/// Everything that a node remembers, but for the log, which its arbiter holds.
pub struct Store {
    disk: Arc<dyn Disk>,
    extents: Arc<Extents>,
    base: Base,
    recent: Recent,
    /// Taken by each step of a fold, and by who does several things between two of them. Nothing
    /// is waited for with it but the disk.
    folding: Mutex<()>,
    folded_to: FoldedTo,
    /// Where the log is damaged, in a store that was opened all the same.
    damage: Option<Error>,
    /// What a crash left at the end of the log, and opening left out.
    torn_tail: Option<TornTail>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.disk.describe())
    }
}

impl Store {
    /// The base.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The extents.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// The recent operations.
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Bytes that users' data may still take on its disk.
    ///
    /// # Errors
    /// `Unavailable` when the disk does not tell.
    pub fn room(&self) -> Result<u64> {
        self.disk.room().map_err(|error| refusal(self.disk.describe(), error))
    }

    /// Where the log is damaged: what was opened read-only then ends before that place. Blobs that
    /// were folded later are as of then.
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// What a crash left at the end of the log that was not whole: opening cut it off, or passes
    /// over it when it is read-only.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.torn_tail.as_ref()
    }

    /// Verifies everything on disk; `progress` gets the share done, 0 to 1.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails. Damage is in the report.
    pub fn check(&self, progress: &mut dyn FnMut(f64)) -> Result<Report> {
        crate::check::run(&*self.disk, &self.extents, &self.base, progress)
    }

    /// The newest version in memory that overlaps `range` (C1). What is only in the base is older
    /// than every reader; of what was read before that, the blobs are [held](Store::hold).
    pub fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp {
        let cell = self.recent.find(blob);
        cell.map_or(Timestamp::ZERO, |cell| cell.lock().newest_overlapping(range, is_attributes))
    }

    /// The size of a blob that [`Store::prepare`] brought into memory; `None` when it is absent.
    pub fn resident_size(&self, blob: &BlobName) -> Option<u64> {
        let attributes = self.recent.find(blob)?.lock().attributes();
        attributes.exists.then_some(attributes.size)
    }

    /// Whether a blob that [`Store::prepare`] brought into memory has exactly these bytes.
    pub fn resident_matches(&self, blob: &BlobName, offset: u64, expected: &[u8]) -> bool {
        self.recent.find(blob).is_some_and(|cell| cell.lock().matches(offset, expected))
    }

    /// The number at `offset` of a blob that [`Store::prepare`] brought into memory; zero as far as
    /// nothing was written. `None` when memory does not know.
    pub fn resident_number(
        &self,
        blob: &BlobName,
        offset: u64,
        number_type: NumberType,
    ) -> Option<Number> {
        match self.recent.find(blob) {
            Some(cell) => cell.lock().number(offset, number_type),
            None => Some(Number::load_written(number_type, &[])),
        }
    }

    /// The blob's cell; `None` when there is no such blob, now or for any reader.
    fn find(&self, name: &BlobName) -> Result<Option<Arc<BlobCell>>> {
        self.recent.find_or_load(name, || {
            let found = self.base.attributes(name)?;
            Ok(found.filter(|blob| blob.exists).map(|blob| loaded(&blob)))
        })
    }

    /// The blob's cell, made if there is no such blob.
    fn cell(&self, name: &BlobName) -> Result<Arc<BlobCell>> {
        let cell = self.recent.find_or_load(name, || {
            let found = self.base.attributes(name)?;
            Ok(Some(match found {
                Some(blob) => loaded(&blob),
                // It may have been there: looked at after the base, what left memory counts.
                None => BlobState::new(Attributes::default(), Timestamp::ZERO)
                    .with_forgotten(self.recent.known_from()),
            }))
        })?;
        cell.ok_or_else(|| Error::corrupt(format!("{name}: the table of blobs in memory is wrong")))
    }
}

/// The state of a blob of which the base says this.
fn loaded(blob: &BlobBase) -> BlobState {
    let attributes = Attributes { exists: blob.exists, size: blob.size, version: blob.version };
    let mut state = BlobState::new(attributes, blob.folded_at).with_ahead(blob.ahead);
    if let Some(content) = &blob.content {
        state.fill_small(content);
    }
    state
}
