//! The life of a commit.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::MutexGuard;
use tyr_protocol::commit::Event;
use tyr_store::log::{EncodedRecord, PendingWrite};
use tyr_store::recent::ExtentLease;
use tyr_store::store::{Cells, Store};
use tyr_types::{Durability, Error, ReadCheck, Result, Timestamp, Transaction};

use crate::arbiter::{Applied, Due, Waiting, append};
use crate::inner::Inner;
use crate::snapshot::SnapshotGuard;
use tyr_runtime::clock;
use tyr_runtime::ticket::{Committed, Ticket};

/// The share of memory from which on writers are slowed down.
const PACED_FROM_PERCENT: usize = 70;

/// How long each waits at most while there is room.
const PAUSE_MAX: Duration = Duration::from_millis(8);

/// Shorter ones would take longer than they are.
const PAUSE_MIN: Duration = Duration::from_micros(20);

/// How often a thread that waits for the log to be written lets others run before it sleeps.
const YIELDS_MAX: u32 = 200;

/// What a transaction keeps alive until it is decided.
#[derive(Debug, Default)]
pub struct Held {
    /// The extents of its payloads.
    pub leases: Vec<Arc<ExtentLease>>,
    /// What its reads are of; it must stay in use until they have been validated (C1).
    pub snapshot: Option<Arc<SnapshotGuard>>,
    /// The blobs of which something was read before that snapshot, or known without reading it:
    /// what is known of their versions stays in memory until it has been validated (C1).
    pub known: Cells,
}

impl Held {
    /// The transaction took effect: its blobs answer for the extents now.
    pub(super) fn adopt(&self) {
        for lease in &self.leases {
            lease.adopt();
        }
    }

    /// Holds what nothing else does of these reads.
    fn hold(&mut self, reads: &[ReadCheck], store: &Store) -> Result<()> {
        let at = self.snapshot.as_ref().map(|snapshot| snapshot.at());
        let before = reads.iter().filter(|read| at.is_none_or(|at| read.at < at));
        self.known = store.hold(before.map(|read| &read.blob))?;
        Ok(())
    }

    /// Whether what was read is still held, so that validation could tell whether it changed.
    pub(super) fn check(&self) -> Result<()> {
        self.snapshot.as_ref().map_or(Ok(()), |snapshot| snapshot.check())
    }
}

thread_local! {
    /// Reused, so that encoding allocates nothing.
    static RECORD: RefCell<EncodedRecord> = RefCell::default();
}

impl Inner {
    /// Commits a transaction. `held` stays alive until it is decided.
    pub(crate) fn commit(&self, transaction: Transaction, held: Held) -> Ticket {
        let begun = RECORD.with_borrow_mut(|record| self.begin(transaction, held, record));
        match begun {
            Ok(ticket) => ticket,
            Err(error) => {
                self.counters.aborts.add(1);
                Ticket::ready(Err(error))
            }
        }
    }

    fn begin(
        &self,
        transaction: Transaction,
        mut held: Held,
        record: &mut EncodedRecord,
    ) -> Result<Ticket> {
        transaction.validate()?;
        let durability = {
            let entries = self.keyspaces.look();
            record.encode(&transaction, |keyspace| entries.is_logged(keyspace))?;
            entries.durability(&transaction)?
        };
        if transaction.is_writing() {
            self.check_writable()?;
            self.admit()?;
        }
        let cells = self.store.prepare(&transaction)?;
        held.hold(&transaction.reads, &self.store)?;
        if durability < Durability::Sync
            && let Some(committed) = self.commit_alone(&transaction, &held, record, &cells)
        {
            return committed.map(|committed| Ticket::ready(Ok(committed)));
        }
        self.submit(transaction, held, std::mem::take(record), cells, durability)
    }

    /// The inlined path: nothing that overlaps is in flight, and nobody waits for a sync.
    /// `None` when something is in flight.
    fn commit_alone(
        &self,
        transaction: &Transaction,
        held: &Held,
        record: &EncodedRecord,
        cells: &Cells,
    ) -> Option<Result<Committed>> {
        let (committed, end) = {
            let mut arbiter = self.arbiter.lock();
            if let Err(error) = held.check() {
                return Some(Err(error));
            }
            let decided = {
                let entries = self.keyspaces.look();
                // One of them may have been dropped since the transaction was prepared.
                if let Err(error) = entries.durability(transaction) {
                    return Some(Err(error));
                }
                let view = Applied { store: &self.store, entries: &entries };
                arbiter.machine.commit_alone(clock::now_us(), transaction, &view)?
            };
            let done = decided.map_err(Error::from).and_then(|at| {
                let end = append(arbiter.log.as_mut(), record, at)?;
                let outcomes = self.apply(transaction, cells, at).inspect_err(|error| {
                    self.poison(error);
                })?;
                Ok((Committed { at, outcomes }, end))
            });
            match done {
                Ok(done) => done,
                Err(error) => return Some(Err(error)),
            }
        };
        held.adopt();
        self.counters.commits.add(1);
        match end {
            Some(end) => Some(self.write_log(end).map(|()| committed)),
            None => Some(Ok(committed)),
        }
    }

    /// The general path: the machine keeps the transaction in flight until it is durable.
    fn submit(
        &self,
        transaction: Transaction,
        held: Held,
        record: EncodedRecord,
        cells: Cells,
        durability: Durability,
    ) -> Result<Ticket> {
        let (answer, ticket) = Ticket::waiting();
        let id = transaction.id;
        let waiting = Waiting {
            cells,
            held,
            record,
            durability,
            answer,
            outcomes: Vec::new(),
            failure: None,
        };
        let mut due = Vec::new();
        let (end, is_sync_wanted) = {
            let mut arbiter = self.arbiter.lock();
            // One of its keyspaces may have been dropped since it was prepared.
            self.keyspaces.look().durability(&transaction)?;
            let other = arbiter.waiting.insert(id, waiting);
            debug_assert!(other.is_none(), "a transaction's id is used once");
            let chain = arbiter.chain.clone();
            let event =
                Event::Submit { transaction: Arc::new(transaction), chain, begun: Timestamp::ZERO };
            arbiter.drive(self, event, &mut due);
            let end = arbiter.log.as_ref().map(|log| log.next_sequence());
            (end, !arbiter.to_sync.is_empty())
        };
        if is_sync_wanted {
            self.sync_wanted.notify_one();
        }
        let written = match end {
            Some(end) if !due.is_empty() => self.write_log(end),
            Some(_) | None => Ok(()),
        };
        self.deliver(due, written);
        Ok(ticket)
    }

    /// Gives answers out, those of commits only if what they rest on was `written`.
    pub(crate) fn deliver(&self, due: Vec<Due>, written: Result<()>) {
        for (answer, result) in due {
            let result = match (&written, result) {
                (Err(error), Ok(_)) => Err(error.duplicate()),
                (_, result) => result,
            };
            let counters = &self.counters;
            let counter = if result.is_ok() { &counters.commits } else { &counters.aborts };
            counter.add(1);
            // Whoever dropped the ticket does not want to know.
            let _ = answer.send(result);
        }
    }

    /// Gives the operating system every log record below `end`.
    pub(crate) fn write_log(&self, end: u64) -> Result<()> {
        if self.written.load(Ordering::Acquire) >= end {
            return Ok(());
        }
        let Some(mut writing) = self.wait_to_write(end) else { return Ok(()) };
        self.check_sound()?;
        let pending = {
            let mut arbiter = self.arbiter.lock();
            let Some(log) = arbiter.log.as_mut() else { return Ok(()) };
            if let Some(done) = writing.take() {
                log.give_back(done);
            }
            log.take_pending()
        };
        // A new segment says that everything before it is durable, extents included.
        let ready = if pending.begins_segment() { self.store.extents().sync() } else { Ok(()) };
        let written = ready.and_then(|()| pending.write());
        match &written {
            Ok(()) => {
                let written = pending.last_sequence() + 1;
                assert!(end <= written, "records below {end} are waited for, {written} is next");
                self.written.fetch_max(written, Ordering::Release);
            }
            Err(error) => self.poison(error),
        }
        *writing = Some(pending);
        written
    }

    /// Waits for its turn to write; `None` when somebody else has written what is below `end`.
    ///
    /// A write takes about a microsecond and covers everybody who waits, so waiting threads let
    /// others run for a while before they go to sleep: waking one costs more than the write.
    fn wait_to_write(&self, end: u64) -> Option<MutexGuard<'_, Option<PendingWrite>>> {
        for _ in 0..YIELDS_MAX {
            if self.written.load(Ordering::Acquire) >= end {
                return None;
            }
            if let Some(writing) = self.log_writer.try_lock() {
                return Some(writing);
            }
            std::thread::yield_now();
        }
        let writing = self.log_writer.lock();
        (self.written.load(Ordering::Acquire) < end).then_some(writing)
    }

    /// Gives the log its buffer back.
    pub(crate) fn recycle(&self, pending: PendingWrite) {
        if let Some(log) = self.arbiter.lock().log.as_mut() {
            log.give_back(pending);
        }
    }

    /// Holds a writer back while memory is full of what has not been folded, and slows it down
    /// before: the fuller, the more, so that together they go as fast as folds take it from there.
    ///
    /// # Errors
    /// `Unavailable` when folding fails, for a full disk perhaps, and memory is full.
    fn admit(&self) -> Result<()> {
        let limit = self.options.cache_bytes as usize;
        let dirty = self.store.recent().dirty_memory();
        if dirty < limit {
            if let Some(pause) = pause(dirty, limit) {
                std::thread::sleep(pause);
            }
            return Ok(());
        }
        let mut state = self.folding.state.lock();
        let ended = state.ended;
        while state.ended == ended
            && !state.is_stopping
            && self.store.recent().dirty_memory() >= limit
        {
            state.is_wanted = true;
            self.folding.wanted.notify_one();
            self.folding.done.wait_for(&mut state, Duration::from_millis(100));
        }
        match &state.failure {
            Some(failure) if self.store.recent().dirty_memory() >= limit => {
                Err(Error::unavailable(format!(
                    "memory is full of changes that cannot be written back; make room on the \
                     disk, then try again: {failure}"
                )))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// How long a writer waits while so much of the memory is full.
fn pause(dirty: usize, limit: usize) -> Option<Duration> {
    let from = limit / 100 * PACED_FROM_PERCENT;
    let share = dirty.checked_sub(from)? as f64 / (limit - from).max(1) as f64;
    let pause = PAUSE_MAX.mul_f64(share.min(1.0) * share.min(1.0));
    (pause >= PAUSE_MIN).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_wait_the_longer_the_fuller_memory_is() {
        let limit = 128 << 20;
        let at = |percent: usize| pause(limit / 100 * percent, limit);
        assert_eq!((at(10), at(PACED_FROM_PERCENT)), (None, None));
        let pauses: Vec<Duration> = [80, 85, 90, 95, 99].into_iter().filter_map(at).collect();
        assert!(pauses.len() >= 4 && pauses.is_sorted(), "{pauses:?}");
        assert!(pauses.last().is_some_and(|last| *last > PAUSE_MAX / 2 && *last <= PAUSE_MAX));
        assert_eq!(pause(limit * 2, limit), Some(PAUSE_MAX), "and no longer");
    }
}
