//! What can be set about a node.

use tyr_types::NodeId;

use crate::commit::recovery::BALLOTS_MAX;
use crate::level::LEVEL;
use crate::movement::scrub::ScrubConfig;
use crate::movement::{PieceLengths, Recipient};

/// What can be set about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// How long a snapshot may last, in microseconds (V1).
    pub read_timeout_us: u64,
    /// How long a read may wait here, in microseconds; then its asker has to ask again.
    pub wait_max_us: u64,
    /// How long a node waits for what is in flight on chains that a planned map changes, in
    /// microseconds; what is in flight longer is driven anew under the new map.
    pub drain_max_us: u64,
    /// Bytes a second at which a recipient copies at most; `None` for as many as come.
    pub copy_rate: Option<u64>,
    /// In what pieces a recipient copies chunks.
    pub copy_pieces: PieceLengths,
    /// Chunks that are looked at for a page of a list of what moves, at least 1.
    pub list_page: usize,
    /// How fast replicas are compared (D4). Not at all, unless something else is set.
    pub scrub: ScrubConfig,
    /// The highest feature level that its program speaks.
    pub level: u8,
    /// About so many transactions the node asks at a time what became of them, at least one.
    pub ballots_max: usize,
}

impl Default for MemberConfig {
    fn default() -> Self {
        Self {
            read_timeout_us: crate::SnapshotTable::TIMEOUT_US_DEFAULT,
            wait_max_us: 10_000_000,
            drain_max_us: 500_000,
            copy_rate: None,
            copy_pieces: PieceLengths::default(),
            list_page: 1024, // Some milliseconds of work.
            scrub: ScrubConfig::default(),
            level: LEVEL,
            ballots_max: BALLOTS_MAX,
        }
    }
}

impl MemberConfig {
    /// A recipient that copies as is set.
    pub(super) fn recipient(&self, node: NodeId, incarnation: u64) -> Recipient {
        let recipient = Recipient::new(node, incarnation).at_rate(self.copy_rate);
        recipient.in_pieces(self.copy_pieces)
    }
}
