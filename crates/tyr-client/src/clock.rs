//! The clock of a client: a thread that wakes the session when it asked for that.
//!
//! It sleeps until the first thing is due. What is due later than that, as most new calls are, does
//! not wake it: when it wakes in vain, it asks what is due next. So it wakes a few times a second
//! while there are calls, and not at all while there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use tyr_protocol::session::Event;

use super::driver::Driver;

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// What the clock's thread waits for.
#[derive(Debug)]
pub(super) struct Alarm {
    /// When it rings; changed under the lock only.
    at_us: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Somebody has driven for long enough.
    is_handed_over: bool,
    is_closed: bool,
}

/// What the clock's thread is to do.
enum Ring {
    Tick,
    Drive,
    End,
}

impl Default for Alarm {
    fn default() -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { at_us: AtomicU64::new(NEVER), state, changed }
    }
}

impl Alarm {
    /// It is to ring then, if not sooner.
    pub fn set(&self, due_us: Option<u64>) {
        let due_us = due_us.unwrap_or(NEVER);
        if due_us >= self.at_us.load(Ordering::Relaxed) {
            return;
        }
        let state = self.state.lock();
        self.at_us.store(due_us, Ordering::Relaxed);
        drop(state);
        self.changed.notify_one();
    }

    /// The clock's thread is to drive on; `false` when it does nothing any more.
    pub fn hand_over(&self) -> bool {
        let mut state = self.state.lock();
        state.is_handed_over = true;
        self.changed.notify_one();
        !state.is_closed
    }

    /// It is not to ring any more.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn wait(&self, driver: &Driver) -> Ring {
        let mut state = self.state.lock();
        loop {
            if std::mem::take(&mut state.is_handed_over) {
                return Ring::Drive;
            }
            if state.is_closed {
                return Ring::End;
            }
            let at_us = self.at_us.load(Ordering::Relaxed);
            debug_assert!(!state.is_closed && !state.is_handed_over, "there is nothing to do yet");
            if at_us == NEVER {
                self.changed.wait(&mut state);
                continue;
            }
            let due = driver.instant(at_us);
            if std::time::Instant::now() >= due {
                self.at_us.store(NEVER, Ordering::Relaxed);
                return Ring::Tick;
            }
            self.changed.wait_until(&mut state, due);
        }
    }
}

/// Wakes the session until the client is closed.
pub(super) fn run(driver: &Arc<Driver>) {
    loop {
        match driver.alarm.wait(driver) {
            Ring::Tick => driver.tell(Event::Tick),
            Ring::Drive => driver.drive(),
            Ring::End => return,
        }
    }
}
