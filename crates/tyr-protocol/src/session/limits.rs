//! How many transactions of this client a node takes at a time, as far as its refusals tell.
//!
//! A node that is full refuses at its door, after the message has come all the way. So a client
//! that was refused sends less, and answers what is beyond that itself: half of what was in flight
//! after a refusal, one more for each time that all of it was answered, as congestion control has
//! it (Chiu and Jain, 1989). Nodes that did not refuse anything lately have no limit. A few small
//! ones may always be in flight, since it costs a node little to refuse them: so a client that asks
//! for little finds out at once that others have gone.

use std::collections::BTreeMap;

use tyr_types::NodeId;

use crate::abort::Abort;

/// Without a refusal for so long the limit goes up with every answer.
const CALM_US: u64 = 2_000_000;

/// Without a refusal for so long there is no limit.
const FORGOTTEN_US: u64 = 10_000_000;

/// So many may always be in flight that carry no more than [`FEW_LEN`] bytes together.
const FEW: usize = 8;

/// Bytes.
const FEW_LEN: u64 = 1 << 20;

/// What is known of one node.
#[derive(Clone, Debug, Default)]
struct Of {
    /// Transactions that it was sent and has not answered.
    in_flight: usize,
    /// Bytes that they carry.
    in_flight_len: u64,
    limit: Option<Limit>,
}

/// A node refused something lately.
#[derive(Clone, Debug)]
struct Limit {
    max: usize,
    why: Abort,
    /// Answers since it went up by one.
    answered: usize,
    /// When something was refused last.
    refused_us: u64,
    /// When it was halved: what was sent before is of the same crowd.
    halved_us: u64,
}

impl Limit {
    fn is_forgotten(&self, now_us: u64) -> bool {
        now_us >= self.refused_us + FORGOTTEN_US
    }
}

/// The limits of all nodes that have something, or refused something lately. Bounded by the nodes
/// that transactions go to.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits(BTreeMap<NodeId, Of>);

impl Limits {
    /// Why the node is not to be sent one more, of `len` bytes, in the words in which it refused
    /// what it was sent before.
    pub fn refusal(&self, node: NodeId, len: u64, now_us: u64) -> Option<Abort> {
        let of = self.0.get(&node)?;
        let limit = of.limit.as_ref().filter(|limit| !limit.is_forgotten(now_us))?;
        let are_few = of.in_flight < FEW && of.in_flight_len + len <= FEW_LEN;
        (of.in_flight >= limit.max && !are_few).then(|| limit.why.clone())
    }

    /// A transaction of `len` bytes goes to the node.
    pub fn sent(&mut self, node: NodeId, len: u64) {
        let of = self.0.entry(node).or_default();
        of.in_flight += 1;
        of.in_flight_len += len;
    }

    /// It is not waited for any more.
    pub fn over(&mut self, node: NodeId, len: u64) {
        let of = self.0.get_mut(&node).expect("it was sent");
        of.in_flight -= 1;
        of.in_flight_len -= len;
        if of.in_flight == 0 && of.limit.is_none() {
            self.0.remove(&node);
        }
    }

    /// The node answered what it took.
    pub fn answered(&mut self, node: NodeId, now_us: u64) {
        let Some(limit) = self.0.get_mut(&node).and_then(|of| of.limit.as_mut()) else { return };
        limit.answered += 1;
        if limit.answered >= limit.max || now_us >= limit.refused_us + CALM_US {
            (limit.max, limit.answered) = (limit.max + 1, 0);
        }
    }

    /// The node has no room for what was sent at `sent_us`.
    pub fn refused(&mut self, node: NodeId, why: &Abort, (sent_us, now_us): (u64, u64)) {
        let of = self.0.entry(node).or_default();
        let half = (of.in_flight / 2).max(1);
        match &mut of.limit {
            Some(limit) => {
                (limit.why, limit.refused_us) = (why.clone(), now_us);
                if sent_us > limit.halved_us {
                    (limit.max, limit.answered) = (half.min(limit.max), 0);
                    limit.halved_us = now_us;
                }
            }
            None => {
                let (refused_us, halved_us) = (now_us, now_us);
                let why = why.clone();
                of.limit = Some(Limit { max: half, why, answered: 0, refused_us, halved_us });
            }
        }
    }

    /// Forgets what is long ago.
    pub fn expire(&mut self, now_us: u64) {
        self.0.retain(|_, of| {
            of.limit = of.limit.take().filter(|limit| !limit.is_forgotten(now_us));
            of.in_flight > 0 || of.limit.is_some()
        });
    }

    /// Transactions that each node was sent and has not answered.
    pub fn in_flight(&self) -> impl Iterator<Item = (NodeId, usize)> + '_ {
        self.0.iter().map(|(node, of)| (*node, of.in_flight)).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::ErrorKind;

    use super::*;

    const NODE: NodeId = NodeId(3);

    /// More than a few of these are too many.
    const LEN: u64 = FEW_LEN / 2 + 1;

    fn full() -> Abort {
        Abort::new(ErrorKind::Unavailable, "there is no room")
    }

    fn with_in_flight(count: usize) -> Limits {
        let mut limits = Limits::default();
        (0..count).for_each(|_| limits.sent(NODE, LEN));
        limits
    }

    fn room(limits: &mut Limits, now_us: u64) -> usize {
        let mut room = 0;
        while limits.refusal(NODE, LEN, now_us).is_none() && room < 10_000 {
            limits.sent(NODE, LEN);
            room += 1;
        }
        (0..room).for_each(|_| limits.over(NODE, LEN));
        room
    }

    #[test]
    fn a_crowd_that_is_refused_halves_the_limit_once() {
        let mut limits = with_in_flight(100);
        assert_eq!(room(&mut limits, 40), 10_000);
        for _ in 0..60 {
            limits.refused(NODE, &full(), (5, 10));
            limits.over(NODE, LEN);
        }
        assert_eq!(room(&mut limits, 40), 10, "of fifty there are forty");
        limits.sent(NODE, LEN);
        limits.refused(NODE, &full(), (11, 20));
        limits.over(NODE, LEN);
        assert!(limits.refusal(NODE, LEN, 20).is_some(), "forty are in flight, and twenty may be");
    }

    #[test]
    fn the_limit_grows_by_one_when_all_are_answered_and_with_each_when_it_is_calm() {
        let mut limits = with_in_flight(8);
        limits.refused(NODE, &full(), (5, 10));
        (0..8).for_each(|_| limits.over(NODE, LEN));
        assert_eq!(room(&mut limits, 40), 4);
        (0..3).for_each(|_| limits.answered(NODE, 20));
        assert_eq!(room(&mut limits, 40), 4);
        limits.answered(NODE, 20);
        assert_eq!(room(&mut limits, 40), 5);
        (0..3).for_each(|_| limits.answered(NODE, 10 + CALM_US));
        assert_eq!(room(&mut limits, 40), 8);
    }

    #[test]
    fn one_may_always_be_in_flight_and_what_is_long_ago_is_forgotten() {
        let mut limits = with_in_flight(1);
        for at in [10, 20, 30] {
            limits.refused(NODE, &full(), (at - 1, at));
        }
        limits.over(NODE, LEN);
        assert_eq!(room(&mut limits, 29 + FORGOTTEN_US), 1);
        assert_eq!(room(&mut limits, 30 + FORGOTTEN_US), 10_000);
        limits.expire(29 + FORGOTTEN_US);
        assert_eq!(limits.0.len(), 1);
        limits.expire(30 + FORGOTTEN_US);
        assert_eq!(limits.0.len(), 0);
    }

    #[test]
    fn a_few_small_ones_may_always_be_in_flight() {
        let mut limits = with_in_flight(1);
        limits.refused(NODE, &full(), (5, 10));
        limits.over(NODE, LEN);
        for _ in 0..FEW {
            assert_eq!(limits.refusal(NODE, 16 << 10, 20), None);
            limits.sent(NODE, 16 << 10);
        }
        assert_eq!(limits.refusal(NODE, 16 << 10, 20), Some(full()));
        limits.over(NODE, 16 << 10);
        assert_eq!(limits.refusal(NODE, FEW_LEN, 20), Some(full()), "that is not a small one");
    }
}
