//! Leases of keys that a client holds (K1).

use std::fmt;
use std::sync::Weak;

use tyr_protocol::session::Call;
use tyr_runtime::lease_state::LeaseState;

use super::answer::Waiter;
use super::driver::Driver;

/// A lease of a key. It is renewed until it is dropped; then it is given back.
pub struct KeyLease {
    driver: Weak<Driver>,
    lease: u64,
    state: LeaseState,
}

impl fmt::Debug for KeyLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyLease({}, {:?})", self.lease, self.state)
    }
}

impl KeyLease {
    pub(super) fn new(driver: Weak<Driver>, lease: u64, state: LeaseState) -> Self {
        Self { driver, lease, state }
    }

    /// What is known of it.
    pub fn state(&self) -> &LeaseState {
        &self.state
    }
}

impl Drop for KeyLease {
    fn drop(&mut self) {
        self.state.lose();
        if let Some(driver) = self.driver.upgrade() {
            driver.call(Call::GiveBack { lease: self.lease }, Waiter::Nobody);
        }
    }
}
