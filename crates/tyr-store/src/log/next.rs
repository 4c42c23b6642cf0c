//! The next segment, made ahead of its first record.
//!
//! ```text
//!   Log::prepare ──► Preparation::step, again and again ──► log/next ──► begin_segment: renamed
//! ```
//!
//! Space that was only reserved makes the first sync of each of its blocks dear: the file system
//! notes in its journal that the block has content now, and the sync waits for that too. So the
//! space of the next segment is written with zeros before a record comes to it; then a sync is the
//! record's own write and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tyr_types::Result;

use super::pending::WriteState;
use super::segment;
use crate::disk::{self, Blocks, DIRECT_ALIGNMENT, Disk, DiskFile};

/// Zeros that are written at once: what a sync of the log may have to wait for.
const PIECE_LEN: usize = 1 << 20;

const _: () = assert!(PIECE_LEN.is_multiple_of(DIRECT_ALIGNMENT), "pieces are written directly");

/// A segment that has no name of its own yet.
pub(super) struct Ready {
    pub file: Arc<dyn DiskFile>,
    /// Bytes written with zeros.
    pub len: u64,
}

#[derive(Default)]
enum Slot {
    #[default]
    Missing,
    /// It is being made.
    Begun,
    Ready(Ready),
    /// It could not be made; the one after it is tried.
    Failed,
}

/// Where the next segment waits; shared by the log and who makes it.
#[derive(Default)]
pub(super) struct NextSegment {
    slot: Mutex<Slot>,
    /// Held while something is done about it.
    making: Mutex<()>,
    is_closed: AtomicBool,
}

impl NextSegment {
    /// Whether the caller is to make one.
    pub fn begin(&self) -> bool {
        let mut slot = self.slot.lock();
        let is_missing = matches!(*slot, Slot::Missing);
        if is_missing {
            *slot = Slot::Begun;
        }
        is_missing
    }

    /// The one that is ready, if it has room for so many bytes.
    pub fn take(&self, len: u64) -> Option<Ready> {
        let mut slot = self.slot.lock();
        match std::mem::take(&mut *slot) {
            Slot::Ready(ready) if ready.len >= len => Some(ready),
            Slot::Failed => None,
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Nobody takes it any more: its space is given back.
    pub fn close(&self, disk: &dyn Disk) {
        let _making = self.making.lock();
        self.is_closed.store(true, Ordering::Release);
        if let Slot::Begun | Slot::Ready(_) = std::mem::take(&mut *self.slot.lock()) {
            // What stays is removed by the next opening.
            let _ = disk.remove(segment::NEXT);
        }
    }
}

/// The next segment, to be made while the log goes on.
pub struct Preparation {
    state: Arc<WriteState>,
    len: u64,
    begun: Option<Begun>,
}

/// A segment that is partly written.
struct Begun {
    file: Arc<dyn DiskFile>,
    done: u64,
    zeros: Blocks,
}

impl std::fmt::Debug for Preparation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Preparation({} bytes)", self.len)
    }
}

impl Preparation {
    pub(super) fn new(state: Arc<WriteState>, len: u64) -> Self {
        Self { state, len, begun: None }
    }

    /// Makes some of it; false when there is nothing more to do. Who waits a little between two
    /// steps leaves the disk to others. When it fails, as on a disk that is nearly full, the log
    /// makes its next segment itself, without zeros.
    pub fn step(&mut self) -> bool {
        let (next, disk) = (&self.state.next, self.state.disk());
        let _making = next.making.lock();
        if next.is_closed.load(Ordering::Acquire) {
            return false;
        }
        let slot = match write_some(disk, self.len, &mut self.begun) {
            Ok(None) => return true,
            Ok(Some(ready)) => Slot::Ready(ready),
            Err(_) => {
                let _ = disk.remove(segment::NEXT);
                Slot::Failed
            }
        };
        let before = std::mem::replace(&mut *next.slot.lock(), slot);
        debug_assert!(matches!(before, Slot::Begun), "a segment is made by who began it");
        false
    }
}

/// Writes the next zeros; answers the segment when it is whole.
fn write_some(disk: &dyn Disk, len: u64, begun: &mut Option<Begun>) -> Result<Option<Ready>> {
    let refused = |error| disk::refusal(segment::NEXT, error);
    let begun = match begun {
        Some(begun) => begun,
        None => {
            let file = segment::create_next(disk, len)?;
            begun.insert(Begun { file, done: 0, zeros: Blocks::zeros(PIECE_LEN) })
        }
    };
    debug_assert!(begun.done.is_multiple_of(DIRECT_ALIGNMENT as u64), "pieces are whole blocks");
    let piece = (len - begun.done).min(PIECE_LEN as u64);
    if piece > 0 {
        let zeros = &begun.zeros.bytes()[..piece as usize];
        begun.file.write_at(zeros, begun.done).map_err(refused)?;
        begun.done += piece;
        return Ok(None);
    }
    begun.file.sync().map_err(refused)?;
    Ok(Some(Ready { file: Arc::clone(&begun.file), len }))
}
