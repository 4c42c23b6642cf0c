//! The end of the file being written: where the next extent goes, and the space for it.

use std::io;
use std::sync::Arc;

use tyr_types::{Error, Result};

use super::files::Files;
use super::{Extents, FRAME_LEN};
use crate::disk::{self, DiskFile};

/// Frames for which space is reserved at a time, as far as the file goes: 16 MiB.
const RESERVED_FRAMES: u64 = 4096;

/// The file being written, and where its next extent goes.
pub(super) struct Tail {
    pub number: u32,
    pub file: Arc<dyn DiskFile>,
    /// The same file, past the system's cache, once something was written so.
    direct: Option<Arc<dyn DiskFile>>,
    next_frame: u64,
    /// Up to here there is space on the disk.
    reserved_to: u64,
    /// It is left before it has more.
    frames_max: u64,
}

impl Tail {
    /// The file, to be written past the system's cache.
    pub fn direct(&mut self, files: &Files) -> io::Result<Arc<dyn DiskFile>> {
        let direct = match self.direct.take() {
            Some(direct) => direct,
            None => files.open_direct(self.number)?,
        };
        Ok(Arc::clone(self.direct.insert(direct)))
    }

    /// Reserves space for the next frames, so that writing them later does not meet a full disk.
    pub fn reserve(&mut self, frames: u64) -> io::Result<()> {
        let from = self.reserved_to.max(self.next_frame);
        let needed = (self.next_frame + frames).saturating_sub(from);
        if needed == 0 {
            debug_assert!(self.next_frame + frames <= self.reserved_to);
            return Ok(());
        }
        let allocate = |frames| {
            self.file.allocate(from * FRAME_LEN as u64, frames * FRAME_LEN as u64).map(|()| frames)
        };
        let usual = RESERVED_FRAMES.min(self.frames_max.saturating_sub(from));
        let reserved = match allocate(needed.max(usual)) {
            Ok(reserved) => reserved,
            Err(_) => allocate(needed)?,
        };
        self.reserved_to = from + reserved;
        assert!(
            self.next_frame + frames <= self.reserved_to,
            "{frames} frames from {} on are promised, and space ends at {}",
            self.next_frame,
            self.reserved_to
        );
        Ok(())
    }

    /// Gives back what was reserved and is not needed, as the file is left.
    fn leave(&self) -> io::Result<()> {
        match self.reserved_to > self.next_frame {
            true => self.file.set_len(self.next_frame * FRAME_LEN as u64),
            false => Ok(()),
        }
    }
}

impl Extents {
    /// Takes space for `frames` frames at the end of the file being written, or of a new one;
    /// answers its number, the first of the frames, and the handle that `prepare` chose.
    pub(super) fn take_space(
        &self,
        frames: u64,
        prepare: impl FnOnce(&mut Tail) -> io::Result<Arc<dyn DiskFile>>,
    ) -> Result<(u32, u64, Arc<dyn DiskFile>)> {
        assert!(frames > 0, "an extent of no frame has no place of its own");
        let mut tail = self.tail.lock();
        let frames_max = self.options.file_len_max / FRAME_LEN as u64;
        // A file takes at least one extent, however small its bound.
        let is_full = |tail: &Tail| tail.next_frame > 1 && tail.next_frame + frames > frames_max;
        let current = match tail.take_if(|tail| is_full(tail)) {
            Some(full) => {
                // What cannot be given back now is when the store is opened next.
                let _ = full.leave();
                None
            }
            None => tail.as_mut(),
        };
        let tail = match current {
            Some(tail) => tail,
            None => tail.insert(self.begin_file()?),
        };
        let number = tail.number;
        let refused = |error| disk::refusal(self.files.path(number), error);
        let handle = prepare(tail).map_err(refused)?;
        let first = tail.next_frame;
        debug_assert!(first > 0, "frame 0 is the header");
        tail.next_frame += frames;
        Ok((number, first, handle))
    }

    fn begin_file(&self) -> Result<Tail> {
        let mut next_number = self.next_number.lock();
        let number = *next_number;
        if number == u32::MAX {
            let text = format!("{}: all numbers of extent files are used", self.files.describe());
            return Err(Error::unavailable(text));
        }
        let file = self.files.create(number)?;
        *next_number = number + 1;
        let mut unsynced = self.unsynced.lock();
        unsynced.has_new_names = true;
        let other = unsynced.files.insert(number, file.clone());
        debug_assert!(other.is_none(), "the number of a file that is written is given again");
        let frames_max = self.options.file_len_max / FRAME_LEN as u64;
        Ok(Tail { number, file, direct: None, next_frame: 1, reserved_to: 0, frames_max })
    }
}
