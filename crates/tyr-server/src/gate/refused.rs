//! What a gate refused: counted, and said to auditors, but not too often.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_runtime::repeats::RepeatLimit;
use tyr_types::Error;

/// Of each user without the right one line is written in this time.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Users of whom lines are written in that time.
const USERS_MAX: usize = 1024;

/// What was refused.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Requests without the right to them.
    pub permission: AtomicU64,
    /// Requests for which there was no room.
    pub overload: AtomicU64,
    /// Messages that their sender may not send.
    pub forged: AtomicU64,
    /// Requests beyond a keyspace's quota.
    pub quota: AtomicU64,
    /// What auditors hear of those without the right, by user.
    lines: Mutex<RepeatLimit<String>>,
}

impl Default for Refused {
    fn default() -> Self {
        let [permission, overload, forged, quota] = [const { AtomicU64::new(0) }; 4];
        let lines = Mutex::new(RepeatLimit::new(1, LINE_INTERVAL, USERS_MAX));
        Self { permission, overload, forged, quota, lines }
    }
}

impl Refused {
    /// Notes a request of this user, who does not have the right to it.
    pub fn note_permission(&self, user: &str, error: &Error) {
        let refused = self.permission.fetch_add(1, Ordering::Relaxed) + 1;
        // Who asks for ever fills no disk; the counter has all of them.
        if self.lines.lock().admit(user.to_owned(), Instant::now()).is_some() {
            tracing::warn!(target: "audit", refused, %error, "refused");
        }
    }
}
