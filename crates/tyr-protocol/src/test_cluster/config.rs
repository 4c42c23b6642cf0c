//! What a run of the test cluster is like, and what it came to.

use crate::rule::Rule;

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub nodes: u16,
    pub replication: usize,
    pub transactions: u64,
    pub reads: usize,
    pub snapshots: usize,
    /// Whether real time is checked too.
    pub is_strict: bool,
    /// Claims on a blob up to which they are not a crowd.
    pub few_max: usize,
    /// A rule to take away.
    pub broken: Option<Rule>,
}

impl Default for Config {
    fn default() -> Self {
        let (transactions, reads, snapshots) = (16, 16, 6);
        Self {
            nodes: 5,
            replication: 3,
            transactions,
            reads,
            snapshots,
            is_strict: true,
            few_max: 3,
            broken: None,
        }
    }
}

/// What a run came to, when nothing was wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub committed: usize,
    pub aborted: usize,
    pub placed: usize,
    pub forwarded: usize,
    pub parked: usize,
    /// Decisions passed on by a relay.
    pub relayed: usize,
}
