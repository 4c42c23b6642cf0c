//! The way of a piece of the log to the thread that writes and syncs it, one at a time.

use parking_lot::{Condvar, Mutex};
use tyr_store::log::PendingWrite;

/// Where the next piece is put down.
#[derive(Debug, Default)]
pub(super) struct Syncer {
    slot: Mutex<Slot>,
    is_given: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    pending: Option<PendingWrite>,
    is_closed: bool,
}

impl Syncer {
    /// Puts a piece down; the one before has come back.
    pub fn give(&self, pending: PendingWrite) {
        let mut slot = self.slot.lock();
        assert!(slot.pending.is_none(), "one piece of the log is on its way at a time");
        slot.pending = Some(pending);
        drop(slot);
        self.is_given.notify_one();
    }

    /// Waits for a piece; `None` when none comes any more.
    pub fn wait(&self) -> Option<PendingWrite> {
        let mut slot = self.slot.lock();
        loop {
            if let Some(pending) = slot.pending.take() {
                return Some(pending);
            }
            if slot.is_closed {
                return None;
            }
            self.is_given.wait(&mut slot);
        }
    }

    /// No piece comes any more.
    pub fn close(&self) {
        self.slot.lock().is_closed = true;
        self.is_given.notify_all();
    }
}
