//! What a client watches (K5).

use std::fmt;
use std::sync::Weak;

use tyr_protocol::session::Call;
use tyr_runtime::watch_state::WatchState;
use tyr_types::{Bytes, NoticeId};

use super::answer::Waiter;
use super::driver::Driver;

/// A watch of keys. It is told of until it is dropped.
pub struct KeyWatch {
    driver: Weak<Driver>,
    watch: u64,
    state: WatchState,
}

impl fmt::Debug for KeyWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyWatch({}, {:?})", self.watch, self.state)
    }
}

impl KeyWatch {
    pub(super) fn new(driver: Weak<Driver>, watch: u64, state: WatchState) -> Self {
        Self { driver, watch, state }
    }

    /// What there is to tell.
    pub fn state(&self) -> &WatchState {
        &self.state
    }

    /// Acknowledges a notice that it has got (K6).
    pub fn acknowledge(&self, id: NoticeId, reply: Bytes) {
        if let Some(driver) = self.driver.upgrade() {
            let watch = self.watch;
            driver.call(Call::Acknowledge { watch, id, reply }, Waiter::Nobody);
        }
    }
}

impl Drop for KeyWatch {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.upgrade() {
            driver.call(Call::EndWatch { watch: self.watch }, Waiter::Nobody);
        }
    }
}
