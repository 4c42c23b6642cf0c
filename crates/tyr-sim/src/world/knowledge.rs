//! Who would still know, after a crash, what became of each transaction.
//!
//! What the protocol promises holds while every written chunk keeps a replica that is neither lost
//! nor has forgotten (F7). Faults are drawn at random, and a few runs go beyond: a transaction was
//! applied where it may have been read, and every node that knew of its decision has been declared
//! down since, or lost the end of its log, before anybody else knew. What was read may then change
//! its place, so such a run is not judged, but for one thing: a transaction without reads and
//! conditions is *owed* when a disk that is left has it validated. If it was answered it takes
//! effect, wherever (F3, F13). Where nothing is owed the run is ended. This decides which runs
//! those are, by what nodes wrote, whatever the machines make of it.
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
use tyr_types::{KeyspaceId, NodeId, Operation, Transaction, TransactionId};

/// A record in a node's log, by the length of the log that has it.
type Place = (NodeId, usize);

/// Who has written down what became of transactions.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// Where the blind ones, which cannot be refused for what is there, are written as validated.
    validated: HashMap<TransactionId, Vec<Place>, FixedState>,
    /// Where it is written that a transaction is decided, or at no place, who has heard of it. At
    /// the tail its validation says so (F3).
    written: HashMap<TransactionId, Vec<Place>, FixedState>,
    /// The authorities of what each writes, in all its chains.
    authorities: HashMap<TransactionId, BTreeSet<NodeId>, FixedState>,
    /// What of each lies at an authority alone, if its keyspace has one replica.
    alone: HashMap<TransactionId, BTreeSet<(NodeId, KeyspaceId)>, FixedState>,
    /// Those that an authority has applied: only now they may have been shown to anybody.
    shown: HashSet<TransactionId, FixedState>,
    /// One that nobody knew the decision of at some moment.
    lost: Option<TransactionId>,
    /// Those of them that disks which were left then had as validated.
    owed: BTreeSet<TransactionId>,
}

/// Whether nothing that is there can make it abort.
fn is_blind(transaction: &Transaction) -> bool {
    let is_sure = |operation: &Operation| operation.is_write() && !operation.is_condition();
    let mut operations = transaction.blobs.iter().flat_map(|blob| &blob.operations);
    transaction.reads.is_empty() && operations.all(is_sure)
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
                if is_blind(transaction) {
                    self.validated.entry(transaction.id).or_default().push((node, log_len));
                }
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
            | Record::Staged { .. }
            | Record::Unstaged { .. }
            | Record::CompleteTo { .. }
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
        for (id, places) in self.validated.iter_mut().filter(|(id, _)| !kept.contains(id)) {
            places.retain(|(who, len)| *who != node || *len <= log_len);
            if places.is_empty() {
                // Nobody has it any more.
                self.owed.remove(id);
            }
        }
        let mut lost: Vec<TransactionId> = Vec::new();
        for (id, places) in self.written.iter_mut().filter(|(id, _)| !kept.contains(id)) {
            let count = places.len();
            places.retain(|(who, len)| *who != node || *len <= log_len);
            if places.is_empty() && count > 0 && self.shown.contains(id) {
                lost.push(*id);
            }
        }
        let is_there = |id: &TransactionId| self.validated.get(id).is_some_and(|it| !it.is_empty());
        self.owed.extend(lost.iter().copied().filter(is_there));
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

    /// A transaction that may have been shown, and of which nobody knew any more that it is
    /// decided.
    pub fn lost(&self) -> Option<TransactionId> {
        self.lost
    }

    /// Whether a run in which one is lost has something left that is judged.
    pub fn is_anything_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Those that are owed and of which still nobody knows that they are decided.
    pub fn unpaid(&self) -> impl Iterator<Item = TransactionId> {
        let is_unknown = |id: &TransactionId| self.written.get(id).is_none_or(Vec::is_empty);
        self.owed.iter().copied().filter(move |id| is_unknown(id))
    }
}

#[cfg(test)]
mod tests {
    use tyr_protocol::Ends;
    use tyr_protocol::commit::{Attempt, Placements};
    use tyr_protocol::map::ClusterMap;
    use tyr_types::{BlobName, BlobOperations, Key, KeyspaceConfig, Timestamp};

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

    fn validated(operations: Vec<Operation>) -> Record {
        let map = ClusterMap::of(3, &[KeyspaceConfig::default()]);
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() };
        let blobs = vec![BlobOperations { blob, operations }];
        let transaction = Transaction { id: ID, blobs, reads: Vec::new() };
        let chain = map.chain(&transaction, &Ends::new()).unwrap();
        let (attempt, begun, proposal) = (Attempt::default(), Timestamp::ZERO, Timestamp::ZERO);
        let placed = Placements::new();
        Record::Validated {
            transaction: transaction.into(),
            chain,
            attempt,
            begun,
            proposal,
            placed,
        }
    }

    #[test]
    fn what_nothing_can_abort_is_owed_while_a_disk_has_it() {
        for (operation, is_blind) in [(Operation::Delete, true), (Operation::Create, false)] {
            let mut knowledge = Knowledge::default();
            knowledge.shown.insert(ID);
            knowledge.wrote(NodeId(0), &validated(vec![operation.clone()]), 4);
            knowledge.wrote(NodeId(1), &validated(vec![operation]), 2);
            knowledge.wrote(NodeId(1), &decided(), 3);
            knowledge.lose(NodeId(1), 0);
            assert_eq!(knowledge.lost(), Some(ID));
            assert_eq!(
                knowledge.unpaid().collect::<Vec<_>>(),
                Vec::from_iter(is_blind.then_some(ID))
            );
            knowledge.wrote(NodeId(0), &decided(), 5);
            assert_eq!(knowledge.unpaid().next(), None, "it is known again");
            knowledge.lose(NodeId(0), 3);
            assert!(!knowledge.is_anything_owed(), "nobody has it");
        }
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
