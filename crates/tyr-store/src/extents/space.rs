//! The space of what nobody refers to any more: holes in the files, and whole files.

use tyr_types::{Error, ExtentRef, Result};

use super::frame::FRAME_LEN;
use super::{Extents, place_of};
use crate::disk;

impl Extents {
    /// Gives the space of extents back, of those side by side in one step: each takes the file
    /// system about as long. They are in ascending order. Nobody may read them any more.
    ///
    /// # Errors
    /// `Corrupt` when a reference cannot be one; `Unavailable` when the disk refuses.
    pub fn free(&self, extents: &[ExtentRef]) -> Result<()> {
        debug_assert!(
            extents.is_sorted_by_key(|extent| (extent.file, extent.position)),
            "not in order: {extents:?}"
        );
        let end = |extent: &ExtentRef| extent.position + Self::stored_len(extent);
        for extent in extents {
            self.check_reference(extent)?;
            if self.queue.get(place_of(extent)).is_some() {
                let _nobody_writes_it = self.sync.lock();
                self.queue.remove(place_of(extent));
            }
        }
        let touch = |left: &ExtentRef, right: &ExtentRef| {
            left.file == right.file && end(left) == right.position
        };
        for side_by_side in extents.chunk_by(touch) {
            let (first, last) = (&side_by_side[0], &side_by_side[side_by_side.len() - 1]);
            let file = self.files.get(first.file)?;
            file.punch(first.position, end(last) - first.position)
                .map_err(|error| disk::refusal(self.files.path(first.file), error))?;
        }
        Ok(())
    }

    /// Removes a whole file, of which nothing is in use any more.
    ///
    /// The file of the highest number is emptied instead, so that its number is not given again.
    ///
    /// # Errors
    /// `InvalidArgument` for the file being written; `Unavailable` when the disk refuses.
    pub fn remove_file(&self, number: u32) -> Result<()> {
        self.check_closed(number)?;
        // A higher file must be durable before it can keep the numbers below it from coming again.
        self.sync()?;
        if self.files.numbers()?.last() == Some(&number) {
            return self.files.cut(number, FRAME_LEN as u64);
        }
        self.files.remove(number)
    }

    /// Gives back everything in a file that is not in `live` (ascending by position): what a crash
    /// or an abandoned upload left. Answers how many bytes that was.
    ///
    /// # Errors
    /// `InvalidArgument` for the file being written; `Corrupt` when an extent is none of this file;
    /// `Unavailable` when the disk refuses.
    pub fn reclaim(&self, number: u32, live: &[ExtentRef]) -> Result<u64> {
        self.check_closed(number)?;
        let before = self.files.disk_bytes(number)?;
        if live.is_empty() {
            self.remove_file(number)?;
            let is_there = self.files.numbers()?.contains(&number);
            return Ok(if is_there { before - self.files.disk_bytes(number)? } else { before });
        }
        let file = self.files.get(number)?;
        let refused = |error| disk::refusal(self.files.path(number), error);
        let len = self.files.len(number)?;
        let mut end = FRAME_LEN as u64;
        for extent in live {
            self.check_reference(extent)?;
            if extent.file != number || extent.position < end {
                return Err(self.corrupt(extent, "overlaps another, or is of another file"));
            }
            if end < extent.position {
                file.punch(end, extent.position - end).map_err(refused)?;
            }
            end = extent.position + Self::stored_len(extent);
        }
        if end < len {
            self.files.cut(number, end)?;
        }
        Ok(before.saturating_sub(self.files.disk_bytes(number)?))
    }

    fn check_closed(&self, number: u32) -> Result<()> {
        match &*self.tail.lock() {
            Some(tail) if tail.number == number => Err(Error::invalid(format!(
                "{} is being written and cannot be removed or reclaimed",
                self.files.path(number)
            ))),
            Some(_) | None => Ok(()),
        }
    }
}
