//! How many transactions of this client a node takes at a time, as far as its refusals tell.
//!
//! A node that is full refuses at its door, after the message has come all the way. So a client
//! that was refused sends less: half of what was in flight after a refusal, one more for each time
//! that all of it was answered, as congestion control has it (Chiu and Jain, 1989). What is beyond
//! that waits its turn here for a moment, as what was refused waits before it is sent again; both
//! fail in the node's words if that takes too long.
//! Nodes that did not refuse anything lately have no limit. A few small ones may always be in
//! flight, since it costs a node little to refuse them: so a client that asks for little finds out
//! at once that others have gone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tyr_types::NodeId;

use super::event::CallId;
use crate::abort::Abort;

/// Of its time a call leaves this part, one in so many, to what comes when a node has room: until
/// then a transaction waits for that. What a node takes in is done in a quarter of a second; but
/// thousands may have come before it, and a node whose memory is full of what is not written back
/// yet takes nothing more until a part of that is on its disk, which takes seconds.
pub(super) const ROOM_RESERVE: u64 = 4;

/// Between a refusal and the next time that the same transaction is sent, in microseconds; doubled
/// with each refusal, up to [`ROOM_PAUSE_MAX_US`].
pub(super) const ROOM_PAUSE_US: u64 = 5_000;

/// In microseconds.
pub(super) const ROOM_PAUSE_MAX_US: u64 = 100_000;

/// Bytes of the transactions that wait so, of all nodes together; what is beyond is refused at
/// once.
const WAITING_LEN_MAX: u64 = 64 << 20;

/// Without a refusal for so long the limit goes up with every answer.
const CALM_US: u64 = 2_000_000;

/// Without a refusal for so long there is no limit.
const FORGOTTEN_US: u64 = 10_000_000;

/// So many may always be in flight that carry no more than [`FEW_LEN`] bytes together.
const FEW: usize = 8;

/// Bytes.
const FEW_LEN: u64 = 1 << 20;

const _: () = {
    assert!(FEW > 0, "or a node that refused something would never be asked again");
    assert!(CALM_US < FORGOTTEN_US, "a limit grows before it is forgotten");
    assert!(FEW_LEN <= WAITING_LEN_MAX, "what may be in flight may wait");
};

/// What is known of one node.
#[derive(Clone, Debug, Default)]
struct Of {
    /// Transactions that it was sent and has not answered.
    in_flight: usize,
    /// Bytes that they carry.
    in_flight_len: u64,
    limit: Option<Limit>,
    /// The bytes of those that wait until it may be sent more, by when their calls end: whoever has
    /// the least time left goes first, also who was sent and refused. Some may have gone.
    waiting: BTreeMap<(u64, CallId), u64>,
}

impl Of {
    fn is_needed(&self) -> bool {
        self.in_flight > 0 || self.limit.is_some() || !self.waiting.is_empty()
    }
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
pub(super) struct Limits {
    nodes: BTreeMap<NodeId, Of>,
    /// Those that wait, at all nodes, and their bytes.
    waiting: usize,
    waiting_len: u64,
}

impl Limits {
    /// Why the node is not to be sent one more, of `len` bytes, in the words in which it refused
    /// what it was sent before.
    pub fn refusal(&self, node: NodeId, len: u64, now_us: u64) -> Option<Abort> {
        let of = self.nodes.get(&node)?;
        let limit = of.limit.as_ref().filter(|limit| !limit.is_forgotten(now_us))?;
        let are_few = of.in_flight < FEW && of.in_flight_len + len <= FEW_LEN;
        (of.in_flight >= limit.max && !are_few).then(|| limit.why.clone())
    }

    /// A transaction of `len` bytes waits from now on until the node may be sent more, in a call
    /// that ends at `deadline_us`; `false` when too much waits already.
    pub fn wait(&mut self, node: NodeId, call: CallId, deadline_us: u64, len: u64) -> bool {
        let waiting = &mut self.nodes.entry(node).or_default().waiting;
        let Entry::Vacant(place) = waiting.entry((deadline_us, call)) else { return true };
        if self.waiting_len + len > WAITING_LEN_MAX {
            return false;
        }
        place.insert(len);
        (self.waiting, self.waiting_len) = (self.waiting + 1, self.waiting_len + len);
        true
    }

    /// The next that has waited and may be sent to its node; it does not wait any more.
    pub fn next(&mut self, now_us: u64) -> Option<(NodeId, CallId)> {
        if self.waiting == 0 {
            return None;
        }
        let is_next = |(node, of): (&NodeId, &Of)| {
            let ((_, call), len) = of.waiting.first_key_value()?;
            self.refusal(*node, *len, now_us).is_none().then_some((*node, *call))
        };
        let (node, call) = self.nodes.iter().find_map(is_next)?;
        let of = self.nodes.get_mut(&node).expect("somebody waits for it");
        let (_, len) = of.waiting.pop_first().expect("it was just there");
        (self.waiting, self.waiting_len) = (self.waiting - 1, self.waiting_len - len);
        debug_assert!(self.waiting > 0 || self.waiting_len == 0, "what waits is counted");
        Some((node, call))
    }

    /// A transaction of `len` bytes goes to the node.
    pub fn sent(&mut self, node: NodeId, len: u64) {
        let of = self.nodes.entry(node).or_default();
        of.in_flight += 1;
        of.in_flight_len += len;
    }

    /// It is not waited for any more.
    pub fn over(&mut self, node: NodeId, len: u64) {
        let of = self.nodes.get_mut(&node).expect("it was sent");
        of.in_flight -= 1;
        of.in_flight_len -= len;
        debug_assert!(of.in_flight > 0 || of.in_flight_len == 0, "what was sent ends as it was");
        if !of.is_needed() {
            self.nodes.remove(&node);
        }
    }

    /// The node answered what it took.
    pub fn answered(&mut self, node: NodeId, now_us: u64) {
        let limit = self.nodes.get_mut(&node).and_then(|of| of.limit.as_mut());
        let Some(limit) = limit else { return };
        limit.answered += 1;
        if limit.answered >= limit.max || now_us >= limit.refused_us + CALM_US {
            (limit.max, limit.answered) = (limit.max + 1, 0);
        }
    }

    /// The node has no room for what was sent at `sent_us`.
    pub fn refused(&mut self, node: NodeId, why: &Abort, sent_us: u64, now_us: u64) {
        let of = self.nodes.entry(node).or_default();
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
        self.nodes.retain(|_, of| {
            of.limit = of.limit.take().filter(|limit| !limit.is_forgotten(now_us));
            of.is_needed()
        });
    }

    pub fn invariants(&self) {
        let all = || self.nodes.values().flat_map(|of| &of.waiting);
        assert_eq!(all().count(), self.waiting, "who waits is counted");
        assert_eq!(all().map(|(_, len)| len).sum::<u64>(), self.waiting_len, "and what they carry");
        assert!(self.waiting_len <= WAITING_LEN_MAX, "what waits is bounded");
        let limits = self.nodes.values().filter_map(|of| of.limit.as_ref());
        for limit in limits {
            assert!(limit.max > 0, "one may always be in flight: {limit:?}");
            assert!(limit.halved_us <= limit.refused_us, "it is halved by a refusal: {limit:?}");
        }
    }

    /// Transactions that each node was sent and has not answered.
    pub fn in_flight(&self) -> impl Iterator<Item = (NodeId, usize)> + '_ {
        self.nodes.iter().map(|(node, of)| (*node, of.in_flight)).filter(|(_, count)| *count > 0)
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
            limits.refused(NODE, &full(), 5, 10);
            limits.over(NODE, LEN);
        }
        assert_eq!(room(&mut limits, 40), 10, "of fifty there are forty");
        limits.sent(NODE, LEN);
        limits.refused(NODE, &full(), 11, 20);
        limits.over(NODE, LEN);
        assert!(limits.refusal(NODE, LEN, 20).is_some(), "forty are in flight, and twenty may be");
    }

    #[test]
    fn the_limit_grows_by_one_when_all_are_answered_and_with_each_when_it_is_calm() {
        let mut limits = with_in_flight(8);
        limits.refused(NODE, &full(), 5, 10);
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
            limits.refused(NODE, &full(), at - 1, at);
        }
        limits.over(NODE, LEN);
        assert_eq!(room(&mut limits, 29 + FORGOTTEN_US), 1);
        assert_eq!(room(&mut limits, 30 + FORGOTTEN_US), 10_000);
        limits.expire(29 + FORGOTTEN_US);
        assert_eq!(limits.nodes.len(), 1);
        limits.expire(30 + FORGOTTEN_US);
        assert_eq!(limits.nodes.len(), 0);
    }

    #[test]
    fn a_few_small_ones_may_always_be_in_flight() {
        let mut limits = with_in_flight(1);
        limits.refused(NODE, &full(), 5, 10);
        limits.over(NODE, LEN);
        for _ in 0..FEW {
            assert_eq!(limits.refusal(NODE, 16 << 10, 20), None);
            limits.sent(NODE, 16 << 10);
        }
        assert_eq!(limits.refusal(NODE, 16 << 10, 20), Some(full()));
        limits.over(NODE, 16 << 10);
        assert_eq!(limits.refusal(NODE, FEW_LEN, 20), Some(full()), "that is not a small one");
    }

    #[test]
    fn those_who_wait_go_as_soon_as_there_is_room_for_who_has_the_least_time_left() {
        let mut limits = with_in_flight(12);
        limits.refused(NODE, &full(), 5, 10);
        for call in 0..3 {
            assert!(limits.wait(NODE, CallId(call), 30 - 10 * call, LEN));
        }
        assert!(!limits.wait(NODE, CallId(9), 10, WAITING_LEN_MAX - 2 * LEN), "that is too much");
        limits.invariants();
        (0..6).for_each(|_| limits.over(NODE, LEN));
        assert_eq!(limits.next(20), None, "six are in flight, and six may be");
        limits.over(NODE, LEN);
        assert_eq!(limits.next(20), Some((NODE, CallId(2))));
        limits.sent(NODE, LEN);
        assert_eq!(limits.next(20), None);
        assert_eq!(limits.next(10 + FORGOTTEN_US), Some((NODE, CallId(1))));
        limits.expire(10 + FORGOTTEN_US);
        assert_eq!(limits.next(10 + FORGOTTEN_US), Some((NODE, CallId(0))));
        limits.invariants();
    }
}
