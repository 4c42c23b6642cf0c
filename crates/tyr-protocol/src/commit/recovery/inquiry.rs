//! The coordinator: asks everyone who may know, and concludes (F2, F3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_types::{ErrorKind, NodeId, Timestamp, Transaction, TransactionId};

use super::inquiries::Turn;
use super::message::{Known, Message};
use crate::abort::Abort;
use crate::chain::{Chain, Ends, Hop, Part};
use crate::commit::record::Subject;
use crate::commit::{self, Attempt, Commit, Effect};
use crate::map::ClusterMap;
use crate::rule::{Rule, Rules};
use crate::upload::is_uploaded;
use crate::view::View;

/// Why the outcome of a transaction is unknown for good (F11).
const FORGOTTEN: &str = "the transaction is older than what the cluster remembers: whether it took \
                         effect shows in what it wrote";

/// Why a transaction is given up that a client asked about and nobody has (F12).
pub(crate) const NEVER_BEGUN: &str = "the transaction had not reached any node when it was asked \
                                      about; it did not take effect and never will: commit it anew";

/// A ballot on what became of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    pub attempt: Attempt,
    /// The newest attempt that someone who was asked has promised to, if newer.
    pub promised: Option<Attempt>,
    /// Whether it is asked.
    pub turn: Turn,
    pub transaction: Arc<Transaction>,
    /// The cluster's clock when the client first submitted it.
    pub begun: Timestamp,
    /// Whether a client's question began it, of which this node knew nothing (F12).
    pub is_question: bool,
    /// What it came to, if that is an abort: `waiting` are those who have not said that it is
    /// durable (F9).
    pub closing: Option<Abort>,
    /// The chains it had, as far as they are known.
    pub chains: Vec<Chain>,
    /// Who was asked and has not answered.
    pub waiting: BTreeSet<NodeId>,
    pub reports: BTreeMap<NodeId, Known>,
    /// When it began, on the clock of `Tick`.
    pub began_us: u64,
    /// How often it began anew.
    pub rounds: u8,
}

/// What the reports come to.
enum Conclusion {
    Committed(Timestamp, Ends),
    Aborted(Abort),
    Unknown,
}

impl Commit {
    /// An attempt of this node, above all that it has promised to.
    pub(crate) fn next_attempt(&self, id: TransactionId) -> Attempt {
        let recovery = self.recovery.as_ref();
        let record = self.records.slot(id).map(|slot| self.records[slot].attempt);
        let fence =
            recovery.and_then(|recovery| recovery.memory.get(id)).map(|entry| entry.attempt);
        let inquiry = recovery.and_then(|recovery| recovery.inquiries.get(id));
        let own = inquiry.map(|inquiry| inquiry.attempt.max(inquiry.promised.unwrap_or_default()));
        let highest = record.max(fence).max(own).unwrap_or_default();
        // It promises to nothing of an epoch that its clock has not come to (F1). Whoever does
        // must come out above that too, or its ballot would be behind its own promise for ever.
        let epoch = self.clock.epoch.max(highest.epoch);
        let before = if highest.epoch == epoch { highest.number } else { 0 };
        let next = Attempt { epoch, number: before + 1, coordinator: self.node };
        debug_assert!(next > highest, "F2, F8: above all that was promised: {next:?}");
        next
    }

    /// Takes part in no attempt older than this one, which this node begins (F8).
    pub(super) fn promise(&mut self, id: TransactionId, attempt: Attempt) {
        debug_assert_eq!(attempt.coordinator, self.node, "F8: its own attempt, that it begins");
        let clock = self.clock;
        match (self.records.slot(id), &mut self.recovery) {
            (Some(slot), _) => {
                let record = &mut self.records[slot];
                record.attempt = record.attempt.max(attempt);
            }
            (None, Some(recovery)) => recovery.memory.fence(id, attempt, clock),
            (None, None) => {}
        }
        let is_kept = !self.rules.hold(Rule::F10) || self.promised(id) >= Some(attempt);
        debug_assert!(is_kept || self.recovery.is_none(), "F8: begun, and not promised to");
    }

    /// Asks those who were not asked yet: the live nodes of the chains it had and of the one it
    /// has by the newest map.
    pub(super) fn ask_members(
        &mut self,
        now_us: u64,
        id: TransactionId,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(recovery) = &mut self.recovery else { return };
        let Some(map) = recovery.map.clone() else { return };
        let Some(inquiry) = recovery.inquiries.get_mut(id) else { return };
        debug_assert!(inquiry.turn != Turn::PutOff, "what is put off is asked nobody: {id:?}");
        debug_assert!(
            inquiry.closing.is_none(),
            "F9: what was concluded is not asked again: {id:?}"
        );
        let mut members: BTreeSet<NodeId> = BTreeSet::new();
        for chain in &inquiry.chains {
            let live = chain.hops().iter().map(|hop| hop.node).filter(|node| map.is_live(*node));
            members.extend(live);
        }
        // Without a chain by the newest map nothing can be concluded; a later round finds one.
        let (transaction, ends) = (&inquiry.transaction, inquiry.chains[0].ends());
        let Ok(chain) = chain_of_begun(self.rules, &map, transaction, ends) else { return };
        members.extend(chain.hops().iter().map(|hop| hop.node));
        members.insert(self.node);
        let is_new =
            |node: &NodeId| !inquiry.waiting.contains(node) && !inquiry.reports.contains_key(node);
        let fresh: Vec<NodeId> = members.into_iter().filter(is_new).collect();
        inquiry.waiting.extend(&fresh);
        let is_asked = inquiry.waiting.contains(&self.node);
        let is_own = is_asked || inquiry.reports.contains_key(&self.node);
        debug_assert!(is_own, "F3: what this node knows counts too: {id:?}");
        let (attempt, begun) = (inquiry.attempt, inquiry.begun);
        for to in fresh {
            self.tell(now_us, to, Message::Query { id, attempt, begun }, view, effects);
        }
    }

    /// Gives a message to a node, which may be this one.
    pub(crate) fn tell(
        &mut self,
        now_us: u64,
        to: NodeId,
        message: Message,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        match to == self.node {
            true => self.recover(now_us, message, view, effects),
            false => effects.push(Effect::Recover { to, message }),
        }
    }

    /// Someone who was asked has promised to a newer attempt: the next round goes beyond it, and
    /// comes soon; of two that get ahead of each other the lower node does not wait at all.
    pub(super) fn fell_behind(
        &mut self,
        now_us: u64,
        id: TransactionId,
        attempt: Attempt,
        promised: Attempt,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(recovery) = &mut self.recovery else { return };
        let inquiry = recovery.inquiries.get_mut(id);
        let Some(inquiry) = inquiry.filter(|inquiry| inquiry.attempt == attempt) else { return };
        inquiry.promised = inquiry.promised.max(Some(promised));
        if self.node <= promised.coordinator {
            let (transaction, begun) = (Arc::clone(&inquiry.transaction), inquiry.begun);
            let chain = inquiry.chains[0].clone();
            self.inquire(now_us, Subject { transaction, chain, begun }, false, view, effects);
        } else {
            (inquiry.rounds, inquiry.began_us) = (0, recovery.elapsed_us);
        }
    }

    /// Takes what a node knows of the transaction; whether it was waited for.
    pub(super) fn note_report(
        &mut self,
        id: TransactionId,
        attempt: Attempt,
        from: NodeId,
        known: Known,
    ) -> bool {
        let Some(recovery) = &mut self.recovery else { return false };
        let Some(inquiry) = recovery.inquiries.get_mut(id) else { return false };
        let is_current = inquiry.attempt == attempt && inquiry.closing.is_none();
        if !is_current || !inquiry.waiting.remove(&from) {
            return false; // Of an earlier round, or it came twice.
        }
        if let Known::Validated { chain, .. } = &known
            && !inquiry.chains.contains(chain)
        {
            inquiry.chains.push(chain.clone());
        }
        let before = inquiry.reports.insert(from, known);
        debug_assert!(before.is_none(), "F3: who is waited for has not reported: {from:?}");
        true
    }

    /// Asks whom else there is to ask, and concludes when all have reported.
    pub(super) fn go_on(
        &mut self,
        now_us: u64,
        id: TransactionId,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        self.ask_members(now_us, id, view, effects);
        let is_complete = |inquiry: &Inquiry| inquiry.waiting.is_empty();
        let recovery = self.recovery.as_mut().expect("it was just there");
        if recovery.inquiries.get(id).is_some_and(is_complete) {
            let inquiry = recovery.inquiries.remove(id).expect("it was just there");
            self.conclude(now_us, inquiry, view, effects);
        }
    }

    /// F3: everyone has answered.
    fn conclude(
        &mut self,
        now_us: u64,
        inquiry: Inquiry,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let (id, attempt) = (inquiry.transaction.id, inquiry.attempt);
        debug_assert!(inquiry.waiting.is_empty(), "F3: all who may know have answered: {id:?}");
        debug_assert!(inquiry.closing.is_none(), "F9: what was concluded is not asked again");
        debug_assert!(inquiry.turn != Turn::PutOff, "nobody answers what was not asked: {id:?}");
        let conclusion = match self.rules.hold(Rule::F3) {
            true => inquiry.conclusion(),
            false => Conclusion::Unknown,
        };
        match conclusion {
            Conclusion::Committed(at, ends) => {
                self.drive(now_us, &inquiry, Some((at, ends)), view, effects);
            }
            Conclusion::Aborted(abort) => self.close_with(now_us, inquiry, abort, view, effects),
            Conclusion::Unknown if self.rules.hold(Rule::F11) && inquiry.is_forgotten() => {
                let abort = Abort::new(ErrorKind::TimedOut, FORGOTTEN);
                self.close_with(now_us, inquiry, abort, view, effects);
            }
            Conclusion::Unknown if self.rules.hold(Rule::F12) && inquiry.is_about_nothing() => {
                let abort = Abort::new(ErrorKind::Unavailable, NEVER_BEGUN);
                self.close_with(now_us, inquiry, abort, view, effects);
            }
            // It may have been answered: who is left may have forgotten so when it crashed (F13).
            Conclusion::Unknown => {
                for to in inquiry.reports.keys() {
                    self.tell(now_us, *to, Message::Clear { id, attempt }, view, effects);
                }
                self.drive(now_us, &inquiry, None, view, effects);
            }
        }
    }

    /// F13: whether fewer of those that hold what it writes are up than their keyspaces demand, so
    /// that its client may not be told yet that it is committed.
    pub(crate) fn is_short_of_replicas(&self, transaction: &Transaction, ends: &Ends) -> bool {
        let Some(map) = self.recovery.as_ref().and_then(|it| it.map.as_ref()) else { return false };
        let refused = map.chain(transaction, ends).err();
        self.rules.hold(Rule::F13) && refused.is_some_and(|it| it.kind == ErrorKind::Unavailable)
    }

    /// F9: it is aborted, and nobody hears so before all who were asked have it durably.
    fn close_with(
        &mut self,
        now_us: u64,
        mut inquiry: Inquiry,
        abort: Abort,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(recovery) = &mut self.recovery else { return };
        let (id, attempt) = (inquiry.transaction.id, inquiry.attempt);
        let everyone: Vec<NodeId> = inquiry.reports.keys().copied().collect();
        debug_assert!(!everyone.is_empty(), "F9: an abort that nobody confirms is never answered");
        inquiry.closing = Some(abort.clone());
        inquiry.waiting = everyone.iter().copied().collect();
        inquiry.reports.clear();
        inquiry.began_us = recovery.elapsed_us;
        recovery.inquiries.insert(id, inquiry);
        for to in everyone {
            let message = Message::Abort { id, attempt, abort: abort.clone() };
            self.tell(now_us, to, message, view, effects);
        }
    }

    /// Someone has the abort durably; when all have, the client may know (F9).
    pub(super) fn abort_heard(
        &mut self,
        id: TransactionId,
        attempt: Attempt,
        from: NodeId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(recovery) = &mut self.recovery else { return };
        let Some(inquiry) = recovery.inquiries.get_mut(id) else { return };
        if inquiry.attempt != attempt || inquiry.closing.is_none() {
            return;
        }
        inquiry.waiting.remove(&from);
        if !inquiry.waiting.is_empty() {
            return;
        }
        debug_assert!(inquiry.reports.is_empty(), "F9: it is closed when all have confirmed");
        let closed = recovery.inquiries.remove(id).and_then(|inquiry| inquiry.closing);
        recovery.memory.close(id);
        effects.push(Effect::aborted(id, closed.expect("it was just there")));
    }

    /// Sends the transaction over its chain again. One that is committed also passes those who had
    /// it and would not get it by the newest map, so that they hear of it.
    fn drive(
        &mut self,
        now_us: u64,
        inquiry: &Inquiry,
        known: Option<(Timestamp, Ends)>,
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let Some(map) = self.recovery.as_ref().and_then(|recovery| recovery.map.clone()) else {
            return;
        };
        let ends = known.as_ref().map_or(inquiry.chains[0].ends(), |(_, ends)| ends);
        let Ok(mut chain) = chain_of_begun(self.rules, &map, &inquiry.transaction, ends) else {
            return;
        };
        if known.is_some() {
            let old = inquiry.chains.iter().flat_map(Chain::hops).map(|hop| hop.node);
            chain = with_others(chain, old.filter(|node| map.is_live(*node)));
        }
        debug_assert!(inquiry.attempt.number > 0, "F9: no ballot takes a first pass's number");
        let (to, known) = (chain.hops()[0].node, known.map(|(at, _)| at));
        let message = commit::Message::Forward {
            transaction: Arc::clone(&inquiry.transaction),
            chain,
            attempt: inquiry.attempt,
            begun: inquiry.begun,
            highest: Timestamp::ZERO,
            known,
            usages: Vec::new(),
        };
        // It may hold a chunk more by the newest map: then it asks for the pieces first (U4).
        let may_lack = known.is_none() && is_uploaded(&inquiry.transaction);
        match to == self.node && !may_lack {
            true => self.receive(now_us, message, view, effects),
            false => effects.push(Effect::Send { to, message }),
        }
    }

    /// Drives a transaction that is known here to be committed over its chain again, for one who
    /// asked.
    pub(crate) fn drive_known(
        &mut self,
        now_us: u64,
        Subject { transaction, chain, begun }: Subject,
        known: (Timestamp, Ends),
        view: &impl View,
        effects: &mut Vec<Effect>,
    ) {
        let id = transaction.id;
        let attempt = self.next_attempt(id);
        if self.rules.hold(Rule::F8) {
            self.promise(id, attempt);
        }
        let inquiry = Inquiry {
            attempt,
            promised: None,
            turn: Turn::Overdue, // It is asked nobody.
            transaction,
            begun,
            is_question: false,
            closing: None,
            chains: vec![chain],
            waiting: BTreeSet::new(),
            reports: BTreeMap::new(),
            began_us: 0,
            rounds: 0,
        };
        self.drive(now_us, &inquiry, Some(known), view, effects);
    }
}

impl Inquiry {
    /// What it is about: the transaction, a chain that it had, and when it began.
    pub fn subject(&self) -> Subject {
        let (transaction, chain) = (Arc::clone(&self.transaction), self.chains[0].clone());
        Subject { transaction, chain, begun: self.begun }
    }

    fn conclusion(&self) -> Conclusion {
        let mut aborted = None;
        for known in self.reports.values() {
            match known {
                Known::Committed { at, ends } => {
                    return Conclusion::Committed(*at, ends.clone());
                }
                Known::Aborted(abort) => aborted = Some(abort.clone()),
                Known::Nothing | Known::Validated { .. } | Known::Forgotten => {}
            }
        }
        match (aborted, self.validated_to_the_tail()) {
            (Some(abort), _) => Conclusion::Aborted(abort),
            (None, Some((at, ends))) => Conclusion::Committed(at, ends),
            (None, None) => Conclusion::Unknown,
        }
    }

    /// C5 from what is left of it: when the tail of an attempt has validated it, everyone before
    /// has, and it is decided at the tail's proposal, whether anybody has heard of it or not.
    fn validated_to_the_tail(&self) -> Option<(Timestamp, Ends)> {
        self.reports.iter().find_map(|(node, known)| match known {
            Known::Validated { chain, proposal, .. } => {
                let is_tail = chain.hops().last().is_some_and(|hop| hop.node == *node);
                is_tail.then(|| (*proposal, chain.ends().clone()))
            }
            Known::Nothing | Known::Committed { .. } | Known::Aborted(_) | Known::Forgotten => None,
        })
    }

    /// F11: whether someone may have known what became of it, and forgotten.
    fn is_forgotten(&self) -> bool {
        self.reports.values().any(|known| *known == Known::Forgotten)
    }

    /// F12: whether a client asks about what nobody has.
    fn is_about_nothing(&self) -> bool {
        self.is_question && self.reports.values().all(|known| *known == Known::Nothing)
    }
}

/// The chain of what has begun: over whoever is up, also where a keyspace demands more live
/// replicas (F13).
///
/// # Errors
/// Those of [`ClusterMap::remaining_chain`].
pub(crate) fn chain_of_begun(
    rules: Rules,
    map: &ClusterMap,
    transaction: &Transaction,
    ends: &Ends,
) -> Result<Chain, Abort> {
    match rules.hold(Rule::F13) {
        true => map.remaining_chain(transaction, ends),
        false => map.chain(transaction, ends),
    }
}

/// The chain, passing these nodes too; they hold nothing of it.
fn with_others(chain: Chain, others: impl Iterator<Item = NodeId>) -> Chain {
    let missing: BTreeSet<NodeId> = others.filter(|node| chain.position(*node).is_none()).collect();
    if missing.is_empty() {
        return chain;
    }
    let mut hops = chain.hops().to_vec();
    hops.extend(missing.into_iter().map(|node| Hop { node, part: Part::Pieces(Vec::new()) }));
    hops.sort_unstable_by_key(|hop| hop.node);
    let longer = Chain::new(hops, chain.ends().clone())
        .expect("sorted, each node once, none of several whole");
    // Who only passes it on has nothing to show, so nobody waits for what comes before it there.
    debug_assert_eq!(longer.anchors().len(), chain.anchors().len(), "C9: it has the same anchors");
    longer
}
