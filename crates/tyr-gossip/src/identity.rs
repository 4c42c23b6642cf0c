//! Who a member is to SWIM: a node, in one incarnation, in one life of it.
//!
//! SWIM never takes a member back that was declared down; it comes back as somebody else. A node
//! that starts again has a higher incarnation (M4). One that was declared down while it lived, cut
//! off or asleep, goes on with the same incarnation in its next life, without anybody's help.
//!
//! Must not know: where a node is found. That is in the map, and may change.

use tyr_types::NodeId;

/// A member of the gossip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub node: NodeId,
    /// Of the process (M4): above 0, higher with each start. 0: not known, in a first question.
    pub incarnation: u64,
    /// How often this incarnation was taken for dead by mistake.
    pub life: u32,
}

impl Identity {
    /// Somebody of whom nothing is known but its number.
    pub fn unknown(node: NodeId) -> Self {
        Self { node, incarnation: 0, life: 0 }
    }

    /// Whether this is what became of the other, or the same.
    pub fn is_at_least(&self, other: &Self) -> bool {
        (self.incarnation, self.life) >= (other.incarnation, other.life)
    }
}

impl foca::Identity for Identity {
    type Addr = NodeId;

    fn renew(&self) -> Option<Self> {
        Some(Self { life: self.life.checked_add(1)?, ..*self })
    }

    fn addr(&self) -> NodeId {
        self.node
    }

    fn win_addr_conflict(&self, other: &Self) -> bool {
        self.is_at_least(other)
    }
}

#[cfg(test)]
mod tests {
    use foca::Identity as _;

    use super::*;

    #[test]
    fn the_next_life_and_the_next_incarnation_win_over_those_before() {
        let first = Identity { node: NodeId(3), incarnation: 2, life: 0 };
        let renewed = first.renew().unwrap();
        let restarted = Identity { incarnation: 3, ..first };
        assert!(renewed.win_addr_conflict(&first) && !first.win_addr_conflict(&renewed));
        assert!(restarted.win_addr_conflict(&renewed) && !renewed.win_addr_conflict(&restarted));
        assert!(first.win_addr_conflict(&Identity::unknown(NodeId(3))));
        assert_eq!(Identity { life: u32::MAX, ..first }.renew(), None);
    }
}
