//! A client's transaction, at the head of its chain.

use std::sync::Arc;

use tyr_types::{ErrorKind, Timestamp, Transaction};

use super::execution::refused;
use super::{Store, Turn};
use crate::chain::Ends;
use crate::commit::recovery;
use crate::commit::{self, Decision, Outcomes, namesake};
use crate::level::level_of;
use crate::map::DROPPED;
use crate::message::{Address, Asked, Body};

/// How far ahead of this node a timestamp that a client brings may be, in microseconds.
///
/// What a client brings is what nodes told it, carried on for a few seconds. Each node hears with
/// its lease of the fastest clock, so it is as far within a second of when another told a client,
/// however wrong that one's day is. Who is further ahead than this has to ask again: either this
/// node has yet to hear of it, or nobody told it, and it must not pull the cluster along.
pub const AHEAD_MAX_US: u64 = 10_000_000;

impl<S: Store> Turn<'_, S> {
    /// A client submits a transaction, for the first time or again (F4).
    ///
    /// Whoever says no here has promised nothing and remembers nothing, so it says `NotHere`, and
    /// the client asks on; an abort would be one that nobody remembers.
    pub(super) fn submit(
        &mut self,
        client: u64,
        transaction: Arc<Transaction>,
        ends: Ends,
        begun_us: u64,
        is_retry: bool,
    ) {
        let id = transaction.id;
        let Some(map) = self.member.map.clone() else { return };
        if id.0 >> 64 != u128::from(client) {
            return; // Somebody else's.
        }
        if let Err(error) = transaction.validate() {
            // So it is whenever it comes: nothing has to be remembered.
            let decision = refused(ErrorKind::InvalidArgument, error.message().to_owned());
            return self.reply(id, decision, Outcomes::new());
        }
        let is_remembered = self.member.commit.remembers(id);
        let written = transaction.blobs.iter().map(|entry| entry.blob.keyspace);
        let mut keyspaces = written.chain(transaction.reads.iter().map(|read| read.blob.keyspace));
        let is_dropped = keyspaces.any(|keyspace| map.is_dropped(keyspace));
        if is_dropped && !is_retry && !is_remembered {
            return self.reply(id, refused(ErrorKind::NotFound, DROPPED), Outcomes::new());
        }
        if let Err(error) = map.check_level(level_of(&transaction))
            && !is_remembered
        {
            // Of what was submitted before another may know: then it was allowed.
            return match is_retry {
                false => {
                    let decision = refused(error.kind(), error.message().to_owned());
                    self.reply(id, decision, Outcomes::new())
                }
                true => self.not_here(client, Asked::Transaction(id)),
            };
        }
        let begun = Timestamp { epoch: map.epoch, clock: begun_us, node: 0 };
        if self.member.commit.is_namesake(id, begun) {
            let decision = Decision::Abort(namesake::refusal());
            return self.reply(id, decision, Outcomes::new());
        }
        let now_us = self.member.commit.clock().clock.max(self.member.now.wall_us);
        let is_ahead = begun_us > now_us.saturating_add(AHEAD_MAX_US);
        let chain = match map.chain(&transaction, &ends) {
            // What began before may have ended: that is asked about, whoever is down.
            Ok(chain) if is_retry || is_remembered || map.check_served(&chain).is_ok() => chain,
            Ok(_) => return self.not_here(client, Asked::Transaction(id)),
            Err(abort) if is_lasting(abort.kind) && !is_retry && !is_remembered => {
                let decision = Decision::Abort(abort);
                return self.reply(id, decision, Outcomes::new());
            }
            Err(_) => return self.not_here(client, Asked::Transaction(id)),
        };
        let is_head = chain.position(self.member.node) == Some(0);
        let is_going =
            self.is_planned_away(|planned| planned.is_affected(&chain, &transaction, map.epoch));
        // The commit machine would refuse it with an abort that it does not remember.
        let is_full = match is_retry {
            false => {
                self.member.commit.len() >= commit::IN_FLIGHT_MAX
                    || self.member.commit.remembers_too_much()
            }
            true => !self.member.has_room && !is_remembered,
        };
        if is_ahead || !is_head || is_going || is_full {
            return self.not_here(client, Asked::Transaction(id));
        }
        let is_partial = self.is_partial(&transaction);
        if (!is_remembered || is_partial) && self.is_forgotten(begun) {
            // Where only a part of its answers is known, those who had the others need not (F11).
            return self.reply(id, forgotten(now_us.saturating_sub(begun_us)), Outcomes::new());
        }
        self.member.commit.observe(begun);
        self.commit_with_pieces(match (is_partial, is_retry) {
            (true, _) => {
                commit::Event::Recover(recovery::Message::Ask { transaction, chain, begun })
            }
            (false, false) => commit::Event::Submit { transaction, chain, begun },
            (false, true) => commit::Event::Retry { transaction, chain, begun },
        });
    }

    /// Whether the transaction is known to be committed, but not all that its operations answer: a
    /// head that started again knows its own answers only. Then it passes its chain once more, and
    /// the others' come back with it.
    fn is_partial(&self, transaction: &Transaction) -> bool {
        let (id, commit) = (transaction.id, &self.member.commit);
        let record = commit.records.slot(id).map(|slot| &commit.records[slot]);
        let noted = commit.recovery.as_deref().and_then(|it| it.memory.get(id)?.outcome.as_ref());
        let mut outcomes = match (record, noted) {
            (Some(record), _) if record.is_applied() && record.is_passed => record.outcomes.clone(),
            (None, Some((Decision::Commit(_), outcomes))) => outcomes.clone(),
            (Some(_), _) | (None, Some((Decision::Abort(_), _)) | None) => return false,
        };
        self.member.commit.complete(id, &mut outcomes);
        lacks_answers(transaction, &outcomes)
    }

    /// Whether a transaction that began then may have been forgotten here.
    fn is_forgotten(&self, begun: Timestamp) -> bool {
        self.member.commit.is_forgotten(begun)
    }

    /// Tells a client to ask elsewhere, or again.
    pub(super) fn not_here(&mut self, client: u64, asked: Asked) {
        self.send(Address::Client(client), Body::NotHere(asked));
    }
}

/// Whether operations of a committed transaction answered what is not among these.
pub(super) fn lacks_answers(transaction: &Transaction, outcomes: &Outcomes) -> bool {
    let operations = transaction.blobs.iter().flat_map(|entry| &entry.operations);
    outcomes.len() < operations.filter(|operation| operation.is_answering()).count()
}

/// Nobody knows any more what became of a transaction that began so long ago (F11).
fn forgotten(age_us: u64) -> Decision {
    let reason = format!(
        "the transaction began {} s ago, before what the cluster remembers: whether it took effect \
         shows in what it wrote",
        age_us / 1_000_000
    );
    refused(ErrorKind::TimedOut, reason)
}

/// Whether what is wrong with a transaction is wrong with it whenever it comes, so that nobody has
/// to remember that it was refused.
fn is_lasting(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidArgument | ErrorKind::NotFound)
}
