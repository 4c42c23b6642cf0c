//! How long everything about leases takes.

/// How long a lease lasts, by default.
pub const DURATION_US: u64 = 2_000_000;
/// How often a node asks for its lease: so often that three lost messages do not cost it.
pub const RENEW_EVERY_US: u64 = DURATION_US / 4;

/// How long a node that returns may be silent, where gossip tells of one that has ended. It looks
/// through all names of its chunks in one step when it is let in, about a second for a million.
pub const RETURNING_SILENT_US: u64 = 30_000_000;

/// The monitors' patience, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// How long a lease lasts for the node that got it, counted from when it asked.
    pub duration_us: u64,
    /// How long a node is silent before it is declared down. Longer than a lease, so that nothing
    /// has to be waited for then.
    pub down_after_us: u64,
    /// The same of a node that returns and has not caught up yet; not shorter.
    pub returning_down_after_us: u64,
    /// How long a node is down before others get what it held; `None` for never.
    pub remove_after_us: Option<u64>,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        Self {
            duration_us: DURATION_US,
            down_after_us: 2 * DURATION_US,
            returning_down_after_us: 2 * DURATION_US,
            remove_after_us: Some(10 * 60 * 1_000_000),
        }
    }
}

impl LeaseConfig {
    /// How long the monitors count a lease, from when they granted it: a tenth more, for a node
    /// whose clock is slower than theirs.
    pub fn counted_us(&self) -> u64 {
        self.duration_us + self.duration_us / 10
    }
}

const _: () = {
    assert!(2 * DURATION_US > DURATION_US + DURATION_US / 10);
    assert!(3 * RENEW_EVERY_US < DURATION_US, "three lost messages do not cost a lease");
};
