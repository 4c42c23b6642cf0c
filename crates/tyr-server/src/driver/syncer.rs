//! The thread that writes and syncs the log: what there is when it wakes, one piece at a time.

use parking_lot::{Condvar, Mutex};

/// Whether there is something to sync.
#[derive(Debug, Default)]
pub(super) struct Syncer {
    state: Mutex<State>,
    is_wanted: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_wanted: bool,
    is_closed: bool,
}

impl Syncer {
    /// There is something to sync; the piece before has come back.
    pub fn want(&self) {
        let mut state = self.state.lock();
        assert!(!state.is_wanted, "one piece of the log is on its way at a time");
        state.is_wanted = true;
        drop(state);
        self.is_wanted.notify_one();
    }

    /// Waits until there is; false when there never is any more.
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while !state.is_wanted && !state.is_closed {
            self.is_wanted.wait(&mut state);
        }
        debug_assert!(state.is_wanted || state.is_closed, "it waits for nothing else");
        std::mem::take(&mut state.is_wanted)
    }

    /// There is nothing any more.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.is_wanted.notify_all();
    }
}
