//! Gives the space of what is dead back to the file system, bit by bit, while folds go on: telling
//! the file system takes longer than writing did, and longer still where the disk hears of it.

use tyr_types::{ExtentRef, Result};

use super::{Base, key, record};
use crate::index::{IndexBatch, Table};

/// Extents, or frames of some, that are given back in one step: some milliseconds.
const EXTENTS_AT_ONCE: usize = 64;

/// So many wait in memory, some megabytes; more stay noted in the index.
pub(super) const WAITING_MAX: usize = 1 << 17;

const _: () = assert!(EXTENTS_AT_ONCE < WAITING_MAX);

impl Base {
    /// Gives back some of what is dead since before the last checkpoint, if there is something;
    /// answers whether there may be more. Folds and readers go on meanwhile.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses: what was not given back is tried again after the next
    /// checkpoint.
    pub fn give_back(&self) -> Result<bool> {
        let _one = self.giving.lock();
        let has_given = self.give_extents_back()?;
        Ok(self.give_pages_back()? || has_given)
    }

    /// Gives back all that can be, or until it is to stop.
    ///
    /// # Errors
    /// As [`Base::give_back`].
    pub fn give_all_back(&self, is_stopping: impl Fn() -> bool) -> Result<()> {
        while !is_stopping() && self.give_back()? {}
        Ok(())
    }

    /// Gives back what must not wait, though a fold waits for that, and writers: there is little
    /// room on the disk.
    pub(super) fn give_back_in_need(&self) -> Result<()> {
        self.give_all_back(|| !self.is_short_of_room())
    }

    fn give_extents_back(&self) -> Result<bool> {
        let some: Vec<ExtentRef> = {
            let mut waiting = self.dead_extents.lock();
            std::iter::from_fn(|| waiting.pop_first()).take(EXTENTS_AT_ONCE).collect()
        };
        if some.is_empty() {
            return Ok(false);
        }
        self.extents.free(&some)?;
        let _alone = self.changing.lock();
        let mut batch = IndexBatch::new();
        for extent in &some {
            let key = key::extent(key::DEAD, extent.file, extent.position);
            let value = self.index.get(Table::Meta, &key)?;
            // More of it may have died since: that has the same place, and is for later.
            if value.is_some_and(|value| value == record::encode_dead(extent)) {
                batch.remove(Table::Meta, key);
            }
        }
        if !batch.is_empty() {
            self.index.commit(batch)?;
        }
        Ok(true)
    }
}
