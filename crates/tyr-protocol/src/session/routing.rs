//! Which replica a question goes to.
//!
//! In turn, so that reads spread over the replicas (R1); those that were slow to answer lately are
//! left out while there are others, and those already asked the same are asked last.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use tyr_types::{Epoch, NodeId};

/// How long a node is avoided after it was silent: as long as its lease at most.
const AVOIDED_US: u64 = 2_000_000;

const _: () =
    assert!(AVOIDED_US <= crate::lease::config::DURATION_US, "who is back is asked again soon");

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub to: NodeId,
    /// The epoch of the map it was sent by.
    pub epoch: Epoch,
    pub at_us: u64,
}

/// A node that was asked, and whether it may still answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Try {
    pub node: NodeId,
    pub is_open: bool,
}

/// The nodes that were asked the same. Bounded by the retries until the deadline.
pub(super) type Tries = SmallVec<[Try; 3]>;

/// Whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Routing {
    turn: u64,
    /// Until when nodes are avoided. Bounded by the nodes of the map.
    silent: BTreeMap<NodeId, u64>,
}

impl Routing {
    /// `seed` makes different clients begin with different replicas.
    pub fn new(seed: u64) -> Self {
        Self { turn: seed, silent: BTreeMap::new() }
    }

    /// The next of `nodes` to ask; `None` when there are none.
    pub fn choose(&mut self, nodes: &[NodeId], tries: &Tries, now_us: u64) -> Option<NodeId> {
        if nodes.is_empty() {
            return None;
        }
        self.turn = self.turn.wrapping_add(1);
        let first = (self.turn % nodes.len() as u64) as usize;
        let in_turn = nodes[first..].iter().chain(&nodes[..first]);
        let price = |node: &&NodeId| {
            let asked = tries.iter().filter(|tried| tried.node == **node).count();
            (asked, self.is_silent(**node, now_us))
        };
        let chosen = in_turn.min_by_key(price).copied();
        debug_assert!(chosen.is_some(), "one of several is asked, silent or not");
        chosen
    }

    /// The node did not answer in time.
    pub fn is_late(&mut self, node: NodeId, now_us: u64) {
        self.silent.insert(node, now_us + AVOIDED_US);
    }

    /// The node answered.
    pub fn has_answered(&mut self, node: NodeId) {
        self.silent.remove(&node);
    }

    /// Forgets nodes that are not avoided any more.
    pub fn expire(&mut self, now_us: u64) {
        self.silent.retain(|_, until| *until > now_us);
    }

    fn is_silent(&self, node: NodeId, now_us: u64) -> bool {
        self.silent.get(&node).is_some_and(|until| *until > now_us)
    }
}

/// How long to wait for an answer: doubles with each try from `first_us` to `max_us`, and differs
/// by up to a quarter, so that those who failed together do not come back together.
pub(super) fn pause_us(first_us: u64, max_us: u64, tries: u32, salt: u64) -> u64 {
    debug_assert!(first_us > 0, "without a pause it is asked again at once, for ever");
    let doubled = first_us.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(max_us);
    let spread = salt.wrapping_add(u64::from(tries)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (doubled + (doubled / 4) * spread / (1 << 32)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [NodeId; 3] = [NodeId(1), NodeId(4), NodeId(6)];

    #[test]
    fn replicas_are_asked_in_turn() {
        let mut routing = Routing::new(7);
        let mut chosen: Vec<_> =
            (0..3).filter_map(|_| routing.choose(&NODES, &Tries::new(), 0)).collect();
        chosen.sort_unstable();
        assert_eq!(chosen, NODES);
    }

    #[test]
    fn a_silent_replica_is_avoided_for_a_while_unless_it_is_the_only_one() {
        let mut routing = Routing::new(0);
        routing.is_late(NodeId(4), 100);
        let chosen = |routing: &mut Routing, now: u64| {
            (0..9).filter(|_| routing.choose(&NODES, &Tries::new(), now) == Some(NodeId(4))).count()
        };
        assert_eq!(chosen(&mut routing, 200), 0);
        assert_eq!(chosen(&mut routing, 100 + AVOIDED_US), 3);
        assert_eq!(routing.choose(&[NodeId(4)], &Tries::new(), 200), Some(NodeId(4)));
        routing.has_answered(NodeId(4));
        assert_eq!(chosen(&mut routing, 200), 3);
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_differ_a_little() {
        let pause = |tries, salt| pause_us(100, 1_000, tries, salt);
        for salt in 0..50 {
            assert!((100..=125).contains(&pause(1, salt)));
            assert!((200..=250).contains(&pause(2, salt)));
            assert!((1_000..=1_250).contains(&pause(9, salt)));
        }
        assert!((0..50).any(|salt| pause(9, salt) != pause(9, 0)));
    }
}
