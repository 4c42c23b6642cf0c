//! What stands for the log up to some place of it, so that it can be cut there.
//!
//! ```text
//!   checkpoint_page … checkpoint ──s──► applied_to reaches the clock of s ──► base, checkpoint
//!   ─────────────────── log below s ────┼──────────── log from s on ───────────► durable: cut
//! ```
//!
//! A checkpoint is records, as the log has them. Replayed into a fresh member over a base that has
//! all that was applied by then, and before the log from there on, they give a member that promises
//! what this one did (L1, L3). What a driver does with it, step by step, is in
//! `docs/internals/member.md`.

use std::sync::Arc;

use tyr_types::{Timestamp, Transaction};

use super::{ChunkName, Member, Record, Store, Turn};
use crate::chain::Chain;
use crate::commit::record::State;
use crate::commit::{self, Marked};
use crate::level::LEVEL_ALONE;
use crate::map::ClusterMap;
use crate::movement;
use crate::rule::Rule;

/// Transactions on a page of what is remembered, as a rule: about a millisecond of work.
pub const CHECKPOINT_PAGE: usize = 1024;

/// Chunks that are looked at in one go for what is copied already.
const HELD_PAGE: usize = 1024;

impl Member {
    /// Everything at or below this is applied here, and nothing will be applied any more at or
    /// below it, but to chunks whose base is [awaited](Store::is_awaited): so the base may be
    /// folded up to it (L2). Its cost grows with what is in flight.
    pub fn applied_to(&self) -> Timestamp {
        let to = match self.commit.rules.hold(Rule::L2) {
            true => self.commit.applied_to(),
            false => self.commit.clock(),
        };
        debug_assert!(to <= self.commit.clock(), "L2: what comes is proposed above the clock");
        to
    }

    /// A page of at least `limit` of what is remembered, of what was noted after the clock `after`,
    /// and where the next one begins. `None` when less is left: that comes with
    /// [`Member::checkpoint`]. Steps may lie between pages: what is noted anew comes again.
    pub fn checkpoint_page(&self, after: u64, limit: usize) -> Option<(Record, u64)> {
        let (entries, next) = self.remembered_page(after, limit);
        next.map(|next| (self.as_record(entries), next))
    }

    /// The rest of a checkpoint, after the pages up to the clock `after`: all that is needed of the
    /// log up to here besides what the base holds. What is written to the log from the next step on
    /// follows it.
    ///
    /// Of pieces that were uploaded ahead it has the names: the caller adds what is in them
    /// ([`Record::with_content`]).
    ///
    /// Pieces that were copied of a chunk do not count before the last one is here: chunks in the
    /// middle of that begin anew.
    pub fn checkpoint(&mut self, after: u64) -> Vec<Record> {
        self.recipient.begin_pieces_anew();
        let (mut records, mut from) = (Vec::new(), Some(after));
        while let Some(after) = from {
            let (entries, next) = self.remembered_page(after, CHECKPOINT_PAGE);
            records.push(self.as_record(entries));
            debug_assert!(next.is_none_or(|next| next > after), "L1: pages go on, or never end");
            from = next;
        }
        records.extend(self.difference.record());
        records.push(Record::Standing {
            map: self.map.clone(),
            has_disk: self.has_disk,
            clock: self.commit.clock(),
            floor: self.commit.recovery.as_deref().map_or(0, |it| it.memory.floor()),
        });
        if self.commit.rules.hold(Rule::U2) {
            records.extend(self.staged_records());
        }
        if self.commit.rules.hold(Rule::L3) {
            let map = self.map.as_deref();
            records.extend(map.into_iter().flat_map(|map| self.aside.records(self.node, map)));
        }
        if self.commit.rules.hold(Rule::L1) {
            self.add_applied(&|_| true, &mut records);
            self.add_in_flight(&|_| true, &mut records);
        }
        records
    }

    /// The transactions that this holds with their payloads, some more than once: in flight, not
    /// finished, asked about, laid aside. What a checkpoint tells of is among them, and what is
    /// sent to others.
    pub fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        let known = self.commit.records.iter().map(|(_, record)| &*record.transaction);
        let recovery = self.commit.recovery.as_deref().into_iter();
        let asked = recovery.flat_map(|it| it.inquiries.iter()).map(|(_, it)| &*it.transaction);
        known.chain(asked).chain(self.aside.transactions())
    }

    pub(super) fn remembered_page(&self, after: u64, limit: usize) -> (Vec<Marked>, Option<u64>) {
        let Some(recovery) = self.commit.recovery.as_deref() else { return (Vec::new(), None) };
        recovery.memory.kept(after, limit)
    }

    /// A page as the programs read it that the cluster may have: where an older one may come back,
    /// nobody is declared down for whom the marks would count.
    fn as_record(&self, entries: Vec<Marked>) -> Record {
        let is_read = self.map.as_ref().is_some_and(|map| map.level >= LEVEL_ALONE);
        match is_read && entries.iter().any(|it| !it.singles.is_empty()) {
            true => Record::Marked { entries },
            false => {
                Record::Remembered { entries: entries.into_iter().map(|it| it.kept).collect() }
            }
        }
    }

    /// What is applied and not finished with, in the order of timestamps: validated and decided, as
    /// the log has it. The base has its effects already, but those that are laid aside.
    pub(super) fn add_applied(
        &self,
        is_meant: &dyn Fn(&commit::record::Record) -> bool,
        records: &mut Vec<Record>,
    ) {
        let recovery = self.commit.recovery.as_deref();
        let is_remembered = |id| {
            recovery.is_some_and(|it| it.memory.get(id).is_some_and(|it| it.outcome.is_some()))
        };
        let applied = self.commit.records.iter().filter_map(|(_, record)| match record.state {
            State::Applied(at) => Some((at, record)),
            _ => None,
        });
        let mut applied: Vec<_> = applied
            .filter(|(_, record)| is_meant(record) && record.transaction.is_writing())
            .filter(|(_, record)| !is_remembered(record.transaction.id))
            .collect();
        applied.sort_unstable_by_key(|(at, _)| *at);
        for (at, record) in applied {
            let id = record.transaction.id;
            add_validated(record, at, records);
            records.push(Record::Decided { id, at });
            let outcomes = record.answers.clone();
            if !outcomes.is_empty() {
                records.push(Record::Answered { id, outcomes });
            }
        }
    }

    /// What is in flight, in the order of arrival: what was validated counts, as do promises to
    /// take part in nothing older. A decision that was only heard of is told as one (F14), and
    /// shows as a proposal, too: it will not take effect below it.
    pub(super) fn add_in_flight(
        &self,
        is_meant: &dyn Fn(&commit::record::Record) -> bool,
        records: &mut Vec<Record>,
    ) {
        let in_flight = self.commit.records.iter().map(|(_, it)| it);
        let mut in_flight: Vec<_> = in_flight.filter(|record| is_meant(record)).collect();
        in_flight.sort_unstable_by_key(|record| record.arrival);
        for record in in_flight {
            let (id, attempt) = (record.transaction.id, record.attempt);
            let is_writing = record.transaction.is_writing();
            match record.state {
                State::Persisting(at) | State::Validated(at) | State::Decided(at) => {
                    if is_writing {
                        add_validated(record, at, records);
                    }
                }
                // Withdrawn: nothing of it counts, but it is asked about until it has ended.
                State::Fenced if is_writing => {
                    add_validated(record, record.highest, records);
                    records.push(Record::Fenced { id, attempt, is_cleared: true });
                }
                // The first pass of a transaction promises nothing.
                State::Waiting | State::Parked | State::Fenced => {
                    if attempt.number > 0 {
                        records.push(Record::Fenced { id, attempt, is_cleared: false });
                    }
                }
                // What became of those is remembered.
                State::Applied(_) | State::Aborting | State::Aborted => {}
            }
            let heard = record.as_heard().filter(|_| self.commit.rules.hold(Rule::F14));
            records.extend(heard.map(|it| Record::Recalled { outcomes: vec![it] }));
        }
    }
}

/// The record that it was validated here, and the promise to take part in nothing older if it goes
/// further than that.
fn add_validated(record: &commit::record::Record, proposal: Timestamp, records: &mut Vec<Record>) {
    debug_assert!(record.attempt >= record.entered_in, "F2: what came by was promised to");
    records.push(Record::Validated {
        transaction: Arc::clone(&record.transaction),
        chain: record.chain.clone(),
        attempt: record.entered_in,
        begun: record.begun,
        proposal,
        placed: record.placed.clone(),
    });
    if record.attempt > record.entered_in {
        let (id, attempt) = (record.transaction.id, record.attempt);
        records.push(Record::Fenced { id, attempt, is_cleared: false });
    }
}

impl<S: Store> Turn<'_, S> {
    /// The log began with this map when it was cut. The base is of a later moment, so nothing of it
    /// is let go of: what comes after in the log sees to that.
    pub(super) fn stand(
        &mut self,
        map: Option<Arc<ClusterMap>>,
        has_disk: bool,
        clock: Timestamp,
        floor: u64,
    ) {
        self.member.commit.observe(clock);
        if let Some(recovery) = &mut self.member.commit.recovery {
            recovery.memory.raise_floor(floor);
        }
        self.member.has_disk |= has_disk;
        let Some(map) = map else { return };
        self.member.note_gained(None, &map); // When that was is not told.
        self.member.authorities = map.authorities();
        self.member.map = Some(Arc::clone(&map));
        self.member.placed_by = Some(Arc::clone(&map)).filter(|it| it.is_live(self.member.node));
        self.keep_snapshots(&map);
        self.member.has_recipients = !map.recipients_of_any().is_empty();
        self.note_singles(&map);
        self.take_seat();
        self.member.usage.change();
        let is_moving = map.next.is_some() || self.member.is_returning();
        self.supply(movement::Event::Map { is_moving, is_anew: true });
        // One that returns by difference knows by their versions which chunks stand.
        if is_moving && !self.is_returning_by_difference() {
            self.find_copied(&map);
        }
    }

    /// The chunks that this node is a recipient of and has whole: their copies are in the base.
    pub(super) fn find_copied(&mut self, map: &ClusterMap) {
        let mut after: Option<ChunkName> = None;
        loop {
            let held = self.store.held(after.as_ref(), HELD_PAGE);
            debug_assert!(held.is_sorted() && held.first() > after.as_ref() || held.is_empty());
            let is_end = held.len() < HELD_PAGE;
            after = held.last().cloned();
            for chunk in held {
                let is_recipient = map.recipients(&chunk.0, chunk.1).contains(&self.member.node);
                if is_recipient && !self.store.is_awaited(&chunk) {
                    self.supply(movement::Event::Stored(chunk));
                }
            }
            if is_end {
                return;
            }
        }
    }

    /// Something that was applied to a chunk whose base is awaited, or was when the log was cut.
    pub(super) fn lay_aside_again(
        &mut self,
        transaction: &Arc<Transaction>,
        chain: &Chain,
        at: Timestamp,
    ) {
        self.apply(transaction, chain, at);
        // The chunks of it that went to others since left nothing here.
        self.release_strays(chain);
    }
}
