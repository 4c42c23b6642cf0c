//! What a call has left: safepoints, and time.
//!
//! The virtual machine asks at every safepoint. Once there is nothing left it is refused at each,
//! so that a script that catches the error gets no further than to its next safepoint.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use mlua::VmState;

use crate::failure::{Failure, Limit};
use crate::limits::{Limits, SAFEPOINTS_PER_LOOK};

/// A clock that never goes back, from any moment on. Whoever runs classes gives it, for there is
/// no other clock here.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What a machine's call has left.
pub struct Meter {
    left: Cell<u64>,
    until: Cell<Duration>,
    met: Cell<Option<Limit>>,
    clock: Clock,
}

impl Meter {
    /// For a machine between its calls.
    pub fn new(clock: Clock) -> Self {
        Self {
            left: Cell::new(u64::MAX),
            until: Cell::new(Duration::MAX),
            met: Cell::new(None),
            clock,
        }
    }

    /// A call begins.
    pub fn begin(&self, limits: &Limits) {
        self.left.set(limits.fuel);
        self.until.set((self.clock)().saturating_add(limits.time));
        self.met.set(None);
    }

    /// It is over; answers the limit that it met.
    pub fn end(&self) -> Option<Limit> {
        self.left.set(u64::MAX);
        self.until.set(Duration::MAX);
        self.met.take()
    }

    /// Stops the call at its next safepoint.
    pub fn stop(&self) {
        self.left.set(0);
    }

    /// A safepoint.
    pub fn pass(&self) -> mlua::Result<VmState> {
        let left = self.left.get();
        if left == 0 {
            self.met.set(Some(self.met.get().unwrap_or(Limit::Fuel)));
            return Err(mlua::Error::runtime("the call is over"));
        }
        self.left.set(left - 1);
        if left.is_multiple_of(SAFEPOINTS_PER_LOOK) && (self.clock)() > self.until.get() {
            self.met.set(Some(Limit::Time));
            self.stop();
        }
        Ok(VmState::Continue)
    }
}

/// What is said of a call that met a limit of its machine.
pub fn met(limit: Limit, limits: &Limits) -> Failure {
    let text = match limit {
        Limit::Fuel => format!(
            "the call ran for more than {} safepoints (calls, returns and turns of loops): do less \
             in one call, or give the class more fuel",
            limits.fuel
        ),
        Limit::Time => format!(
            "the call ran for more than {:?}: do less in one call, or try again where less is \
             going on",
            limits.time
        ),
        Limit::Memory => format!(
            "the call needed more than {} bytes of memory: keep less at a time",
            limits.memory
        ),
        Limit::Input | Limit::Read | Limit::Effect | Limit::Answer => {
            "the call met a limit".to_owned()
        }
    };
    Failure::Limit { limit, text }
}
