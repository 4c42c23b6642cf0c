//! How patient a session is, and how much it takes on.

/// How patient a session is.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    /// How long to wait for an answer to a read before another replica is asked.
    pub read_retry_us: u64,
    /// How long to wait for an answer to a commit before it is asked for again. A node that was
    /// not told the outcome asks by itself much sooner (F6), and asking again makes work.
    pub commit_retry_us: u64,
    /// The longest pause; they double up to it. Whoever waits for a node that is gone hears of the
    /// map without it at the next try, so this is how long that takes at most.
    pub retry_max_us: u64,
    /// How long a call may take. Below the time for which outcomes are remembered.
    pub deadline_us: u64,
    /// The most calls in flight; further ones fail as `Unavailable`.
    pub in_flight_max: usize,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            read_retry_us: 200_000,
            commit_retry_us: 1_000_000,
            retry_max_us: 1_000_000,
            deadline_us: 30_000_000,
            in_flight_max: 1024,
        }
    }
}
