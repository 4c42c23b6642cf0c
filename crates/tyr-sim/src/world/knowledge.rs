//! Who would still know, after a crash, what became of each transaction.
//!
//! What the protocol promises holds while every written chunk keeps a replica that is neither lost
//! nor has forgotten (F7). Faults are drawn at random, and a few runs go beyond: a transaction was
//! applied where it may have been read, and every node that knew of its decision has been declared
//! down since, or lost the end of its log, before anybody else knew. What follows then is nobody's
//! fault, and such a run is ended there and not judged. This decides which runs those are, by what
//! nodes wrote, whatever the machines make of it.
//!
//! A node knows that a transaction is decided
//!
//! - by its log: that it is decided, that it was validated at the tail (F3), that another remembers
//!   it; as long as the log is there up to that record, also while the node is down. A log that is
//!   cut counts as whole: a checkpoint stands for it;
//! - by a message, until its process ends;
//! - by a copy of a chunk that it is in. Who was declared down and came back has everything by
//!   copy: nodes that are lost one after the other lose nothing.

use std::collections::{BTreeSet, HashMap, HashSet};

use foldhash::fast::FixedState;
use tyr_protocol::Part;
use tyr_protocol::commit::{self, Decision};
use tyr_protocol::member::Record;
use tyr_protocol::message::Body;
use tyr_types::{KeyspaceId, NodeId, TransactionId};

/// A record in a node's log, by the length of the log that has it.
type Place = (NodeId, usize);

/// Who has written down what became of transactions.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// Where it is written that a transaction is decided, or at no place, who has heard of it. At
    /// the tail its validation says so (F3).
    written: HashMap<TransactionId, Vec<Place>, FixedState>,
    /// The authorities of what each writes, in all its chains.
    authorities: HashMap<TransactionId, BTreeSet<NodeId>, FixedState>,
    /// What of each lies at an authority alone, if its keyspace has one replica.
    alone: HashMap<TransactionId, BTreeSet<(NodeId, KeyspaceId)>, FixedState>,
    /// Those that an authority has applied: only now they may have been shown to anybody.
    shown: HashSet<TransactionId, FixedState>,
    /// One that nobody knows the decision of any more.
    lost: Option<TransactionId>,
}

impl Knowledge {
    /// A node that takes part wrote a record, with which its log is so long.
    pub fn wrote(&mut self, node: NodeId, record: &Record, log_len: usize) {
        match record {
            Record::Validated { transaction, chain, .. } => {
                let anchors = chain.anchors().iter().map(|place| chain.hops()[*place].node);
                self.authorities.entry(transaction.id).or_default().extend(anchors);
                let pieces = chain.hops().iter().flat_map(|hop| match &hop.part {
                    Part::Whole => [].iter(),
                    Part::Pieces(pieces) => pieces.iter(),
                });
                let its = pieces.map(|piece| (piece.authority, piece.blob.keyspace));
                self.alone.entry(transaction.id).or_default().extend(its);
                if chain.hops().last().is_some_and(|hop| hop.node == node) {
                    self.written.entry(transaction.id).or_default().push((node, log_len));
                }
            }
            Record::Decided { id, .. } => {
                if self.authorities.get(id).is_some_and(|all| all.contains(&node)) {
                    self.shown.insert(*id);
                }
                self.written.entry(*id).or_default().push((node, log_len));
            }
            Record::Recalled { outcomes } => {
                let is_commit = |decision: &Decision| matches!(decision, Decision::Commit(_));
                for remembered in outcomes.iter().filter(|it| is_commit(&it.decision)) {
                    self.written.entry(remembered.id).or_default().push((node, log_len));
                }
            }
            Record::Map(_)
            | Record::Fenced { .. }
            | Record::Aborted { .. }
            | Record::Answered { .. }
            | Record::Finished { .. }
            | Record::Installed { .. } => {}
            Record::Remembered { .. }
            | Record::Marked { .. }
            | Record::Standing { .. }
            | Record::Aside { .. } => {
                unreachable!("a checkpoint is not written to the log")
            }
        }
    }

    /// A node that takes part hears of a decision: it knows until it stops.
    pub fn heard(&mut self, node: NodeId, body: &Body) {
        if let Body::Commit(
            commit::Message::Decided { id, .. }
            | commit::Message::Backward { id, decision: Decision::Commit(_), .. },
        ) = body
        {
            self.written.entry(*id).or_default().push((node, usize::MAX));
        }
    }

    /// A node that takes part has copied a chunk that has these in it, with which its log is so
    /// long.
    pub fn copied(
        &mut self,
        node: NodeId,
        ids: impl Iterator<Item = TransactionId>,
        log_len: usize,
    ) {
        for id in ids {
            if let Some(places) = self.written.get_mut(&id) {
                places.push((node, log_len));
            }
        }
    }

    /// Of a node's log only so much is left; nothing, when it was declared down.
    pub fn lose(&mut self, node: NodeId, log_len: usize) {
        self.lose_but(node, log_len, &HashSet::new());
    }

    fn lose_but(&mut self, node: NodeId, log_len: usize, kept: &HashSet<TransactionId>) {
        let mut lost: Vec<TransactionId> = Vec::new();
        for (id, places) in self.written.iter_mut().filter(|(id, _)| !kept.contains(id)) {
            let count = places.len();
            places.retain(|(who, len)| *who != node || *len <= log_len);
            if places.is_empty() && count > 0 && self.shown.contains(id) {
                lost.push(*id);
            }
        }
        self.lost = self.lost.or(lost.into_iter().min());
    }

    /// A node was declared down: what it knows does not count any more, but of transactions that
    /// touch what only it has, of these keyspaces.
    pub fn expel(&mut self, node: NodeId, alone: &[KeyspaceId]) {
        let is_alone = |id: &TransactionId| {
            let places = self.alone.get(id).into_iter().flatten();
            places.clone().any(|(who, keyspace)| *who == node && alone.contains(keyspace))
        };
        let kept: HashSet<TransactionId> = self.written.keys().copied().filter(is_alone).collect();
        self.lose_but(node, 0, &kept);
    }

    /// A transaction that may have been shown, and of which nobody knows any more that it is
    /// decided.
    pub fn lost(&self) -> Option<TransactionId> {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::Timestamp;

    use super::*;

    const ID: TransactionId = TransactionId(7);

    fn decided() -> Record {
        Record::Decided { id: ID, at: Timestamp::ZERO }
    }

    #[test]
    fn a_decision_is_lost_with_the_last_log_that_has_it() {
        let mut knowledge = Knowledge::default();
        knowledge.shown.insert(ID);
        knowledge.wrote(NodeId(0), &decided(), 5);
        knowledge.wrote(NodeId(1), &decided(), 9);
        knowledge.lose(NodeId(0), 0);
        knowledge.lose(NodeId(1), 9);
        assert_eq!(knowledge.lost(), None, "the record is the last that is left");
        knowledge.lose(NodeId(1), 8);
        assert_eq!(knowledge.lost(), Some(ID));
    }

    #[test]
    fn who_copied_what_it_is_in_before_the_others_were_lost_knows_it_too() {
        for is_copied in [true, false] {
            let mut knowledge = Knowledge::default();
            knowledge.shown.insert(ID);
            knowledge.wrote(NodeId(0), &decided(), 5);
            knowledge.wrote(NodeId(1), &decided(), 3);
            knowledge.lose(NodeId(0), 0);
            if is_copied {
                knowledge.copied(NodeId(0), [ID].into_iter(), 12);
            }
            knowledge.lose(NodeId(1), 0);
            assert_eq!(knowledge.lost(), (!is_copied).then_some(ID));
            knowledge.lose(NodeId(0), 11);
            assert_eq!(knowledge.lost(), Some(ID), "the copy was not durable");
        }
    }

    #[test]
    fn who_was_told_before_the_others_were_lost_knows_it_too() {
        let mut knowledge = Knowledge::default();
        knowledge.shown.insert(ID);
        knowledge.wrote(NodeId(0), &decided(), 5);
        knowledge.wrote(NodeId(1), &decided(), 3);
        knowledge.lose(NodeId(0), 0);
        knowledge.wrote(NodeId(0), &decided(), 6);
        knowledge.lose(NodeId(1), 0);
        assert_eq!(knowledge.lost(), None);
    }
}
