//! Extents whose place is taken, and whose bytes are written with the next sync.
//!
//! ```text
//!   write_later ──► queue ══sync══► neighbours together, 1 MiB at a time ──► file
//! ```
//!
//! What many transactions wrote is synced together, and lies side by side: one large write costs a
//! fraction of many small ones, and whoever waits for a transaction to be validated does not wait
//! for the copy. They are written past the system's cache, where the file system allows it: what
//! is written here is rarely read soon, and memory taken for it costs more than the write itself.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tyr_types::Bytes;

use super::frame::{self, FRAME_LEN, FRAME_PAYLOAD, FramePlace};
use crate::disk::{Blocks, DIRECT_ALIGNMENT, DiskFile};

/// Frames of one write.
const RUN_FRAMES: usize = 256;

const _: () = assert!(FRAME_LEN.is_multiple_of(DIRECT_ALIGNMENT), "frames are written directly");

/// Bytes that wait to be written, and where they go: from a frame on to be found there.
#[derive(Clone)]
pub(super) struct Queued {
    pub data: Bytes,
    pub file: Arc<dyn DiskFile>,
}

/// Everything that waits to be written, by file and first frame.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<BTreeMap<FramePlace, Queued>>,
    /// Bytes of all of it; so that who reads extents need not lock when there is none.
    len: AtomicUsize,
}

impl Queue {
    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    pub fn put(&self, place: FramePlace, queued: Queued) {
        assert!(!queued.data.is_empty(), "an extent of no byte would take no frame: {place:?}");
        debug_assert!(place.frame > 0, "frame 0 is the file's header");
        let len = queued.data.len();
        let mut waiting = self.waiting.lock();
        let old = waiting.insert(place, queued);
        assert!(old.is_none(), "a place is taken once: {place:?}");
        self.len.fetch_add(len, Ordering::Release);
    }

    /// The bytes of the extent that begins there, if they wait.
    pub fn get(&self, place: FramePlace) -> Option<Bytes> {
        if self.len() == 0 {
            return None;
        }
        self.waiting.lock().get(&place).map(|queued| queued.data.clone())
    }

    /// Everything that waits now, in order. It stays readable until it is removed.
    pub fn all(&self) -> Vec<(FramePlace, Queued)> {
        if self.len() == 0 {
            return Vec::new();
        }
        let waiting = self.waiting.lock();
        waiting.iter().map(|(place, queued)| (*place, queued.clone())).collect()
    }

    /// It is written, or nobody wants it any more.
    pub fn remove(&self, place: FramePlace) {
        let mut waiting = self.waiting.lock();
        if let Some(queued) = waiting.remove(&place) {
            let before = self.len.fetch_sub(queued.data.len(), Ordering::Release);
            assert!(before >= queued.data.len(), "more bytes go than waited: {before}");
        }
    }
}

/// Frames that lie side by side, put together in memory to be written at once.
pub(super) struct Run {
    blocks: Blocks,
    used: usize,
    first: FramePlace,
}

impl Run {
    pub fn new() -> Self {
        let blocks = Blocks::zeros(RUN_FRAMES * FRAME_LEN);
        Self { blocks, used: 0, first: FramePlace { file: 0, frame: 0 } }
    }

    /// Writes all of these.
    ///
    /// # Errors
    /// What the disk says of which file; then any part of them may have been written.
    pub fn write_all(&mut self, queued: &[(FramePlace, Queued)]) -> Result<(), (u32, io::Error)> {
        debug_assert!(
            queued.windows(2).all(|pair| end(&pair[0]) <= pair[1].0),
            "what waits is in order, and no two share a frame"
        );
        self.used = 0;
        let mut file: Option<&Arc<dyn DiskFile>> = None;
        for (place, queued) in queued {
            let mut place = *place;
            for payload in queued.data.chunks(FRAME_PAYLOAD) {
                if !self.continues(place) {
                    self.write(file)?;
                    (self.first, file) = (place, Some(&queued.file));
                }
                let room = &mut self.blocks.bytes_mut()[self.used..];
                frame::seal(&mut room[..FRAME_LEN], place, payload);
                self.used += FRAME_LEN;
                place = place.next();
            }
        }
        self.write(file)
    }

    /// Whether a frame is the next one, and there is room for it.
    fn continues(&self, place: FramePlace) -> bool {
        let frames = self.used / FRAME_LEN;
        let next = FramePlace { frame: self.first.frame + frames as u64, ..self.first };
        frames > 0 && frames < RUN_FRAMES && place == next
    }

    fn write(&mut self, file: Option<&Arc<dyn DiskFile>>) -> Result<(), (u32, io::Error)> {
        debug_assert!(self.used.is_multiple_of(FRAME_LEN) && self.used <= RUN_FRAMES * FRAME_LEN);
        debug_assert_eq!(self.used > 0, file.is_some(), "frames are of a file");
        let Some(file) = file else { return Ok(()) };
        assert!(self.first.frame > 0, "the header of file {} is not an extent's", self.first.file);
        let bytes = &self.blocks.bytes()[..self.used];
        self.used = 0;
        let position = self.first.frame * FRAME_LEN as u64;
        file.write_at(bytes, position).map_err(|error| (self.first.file, error))
    }
}

/// The place behind an extent that waits.
fn end((place, queued): &(FramePlace, Queued)) -> FramePlace {
    let frames = frame::frames_for(queued.data.len()) as u64;
    FramePlace { frame: place.frame + frames, ..*place }
}
