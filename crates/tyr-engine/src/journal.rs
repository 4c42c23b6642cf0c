//! The log of a node of a cluster: records in the order they were given, and who waits for which.
//!
//! ```text
//!   Persist ──► append (memory) ──► Piece: extents, write, sync ──► settle ──► Persisted
//! ```
//!
//! The engine owns it, but for the log's end, from which whoever syncs takes what is there when it
//! comes to it: one piece at a time, so that records become durable in order.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tyr_protocol::member::Record;
use tyr_protocol::wire::{self, Outgoing};
use tyr_store::log::{EncodedRecord, Log, PendingWrite, Preparation, Removal};
use tyr_store::store::Store;
use tyr_types::{Error, Result, Timestamp};

/// The log's end, and who waits.
pub struct Journal {
    log: Arc<Mutex<Log>>,
    encoded: EncodedRecord,
    outgoing: Outgoing,
    /// Sequences of records whose durability is waited for, with the numbers the member gave them;
    /// bounded by what the member has in flight.
    waiting: VecDeque<(u64, u64)>,
    /// Whether a piece is on its way to the disk.
    is_busy: bool,
    failure: Option<Error>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journal(next {}, {} waited for)", self.next_sequence(), self.waiting.len())
    }
}

impl Journal {
    /// Goes on where `log` ends.
    pub fn new(log: Log) -> Self {
        debug_assert_eq!(log.synced_to() + 1, log.next_sequence(), "what was read is durable");
        Self {
            log: Arc::new(Mutex::new(log)),
            encoded: EncodedRecord::new(),
            outgoing: Outgoing::new(),
            waiting: VecDeque::new(),
            is_busy: false,
            failure: None,
        }
    }

    /// Takes a record in, and answers its sequence; with a `number`, somebody waits for it to be
    /// durable.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full, or failed before; then the record is not in the log.
    pub fn append(&mut self, record: &Record, number: Option<u64>) -> Result<u64> {
        if let Some(failure) = &self.failure {
            return Err(failure.duplicate());
        }
        wire::encode_record(record, &mut self.outgoing);
        self.encoded.encode_node(&mut self.outgoing)?;
        // Records are played in their own order; when they were written does not matter.
        let sequence = self.log.lock().append(&self.encoded, Timestamp::ZERO)?;
        if let Some(number) = number {
            // They are answered up to a sequence.
            let before = self.waiting.back().map_or(0, |(before, _)| *before);
            assert!(before < sequence, "record {sequence} is waited for after {before}");
            debug_assert!(
                self.waiting.back().is_none_or(|(_, before)| *before < number),
                "records are told of in the order in which they were given: {number}"
            );
            self.waiting.push_back((sequence, number));
        }
        Ok(sequence)
    }

    /// The log, for who writes and syncs it.
    pub fn log(&self) -> Arc<Mutex<Log>> {
        Arc::clone(&self.log)
    }

    /// Whether what is there is to be taken, written and synced: if nothing is on its way and
    /// somebody waits, or `is_due`. It counts as on its way then, until it is settled.
    pub fn begin(&mut self, is_due: bool) -> bool {
        let is_wanted = !self.waiting.is_empty() || is_due && self.log.lock().pending_bytes() > 0;
        let begins = is_wanted && !self.is_busy;
        self.is_busy |= begins;
        begins
    }

    /// The next segment, if it is time to make it ahead.
    pub fn prepare(&mut self) -> Option<Preparation> {
        self.log.lock().prepare()
    }

    /// What was taken is durable, or failed to become so. Answers the numbers of those who waited
    /// for it.
    pub fn settle(&mut self, piece: Piece, result: &Result<()>) -> Vec<u64> {
        let pending = piece.pending;
        debug_assert!(self.is_busy, "a piece of the log comes back that nobody began");
        self.is_busy = false;
        let last = match result {
            Ok(()) => pending.last_sequence(),
            Err(error) => {
                self.failure.get_or_insert(error.duplicate());
                u64::MAX
            }
        };
        self.log.lock().give_back(pending);
        // Who is told that a record is durable answers a client by that.
        let synced_to = self.synced_to();
        assert!(result.is_err() || last <= synced_to, "{last} is told of, durable is {synced_to}");
        let count = self.waiting.partition_point(|(sequence, _)| *sequence <= last);
        self.waiting.drain(..count).map(|(_, number)| number).collect()
    }

    /// Why nothing more is written.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Whether all that was taken in is durable, or never will be.
    pub fn is_settled(&self) -> bool {
        self.failure.is_some() || !self.is_busy && self.log.lock().pending_bytes() == 0
    }

    /// The sequence that the next record gets.
    pub fn next_sequence(&self) -> u64 {
        self.log.lock().next_sequence()
    }

    /// All records up to this sequence are durable.
    pub fn synced_to(&self) -> u64 {
        self.log.lock().synced_to()
    }

    /// Bytes that a restart would read.
    pub fn bytes(&self) -> u64 {
        self.log.lock().bytes()
    }

    /// Lets go of what lies below `sequence`; running the answer removes the files.
    pub fn cut(&mut self, sequence: u64) -> Removal {
        let synced_to = self.synced_to();
        assert!(sequence <= synced_to + 1, "cut below {sequence}, durable up to {synced_to}");
        self.log.lock().truncate_before(sequence)
    }
}

/// A piece of the log on its way to the disk: what there was when it was taken.
///
/// ```text
///   extents durable ──► records written ──► records durable
/// ```
///
/// What records refer to is durable before they are.
#[derive(Debug)]
pub struct Piece {
    store: Arc<Store>,
    pending: PendingWrite,
    next: Next,
}

/// What is next to be done about a piece.
#[derive(Clone, Copy, Debug)]
enum Next {
    Extents,
    Write,
    Sync,
}

impl Piece {
    /// What is in memory of the log, for whom the journal has [begun](Journal::begin).
    pub fn take(store: &Arc<Store>, log: &Mutex<Log>) -> Self {
        Self { store: Arc::clone(store), pending: log.lock().take_pending(), next: Next::Extents }
    }

    /// Does what is next; answers what all of it came to when nothing is left to be done.
    pub fn step(&mut self) -> Option<Result<()>> {
        let (done, next) = match self.next {
            Next::Extents => (self.store.extents().sync(), Some(Next::Write)),
            Next::Write => (self.pending.write(), Some(Next::Sync)),
            Next::Sync => (self.pending.sync(), None),
        };
        match (done, next) {
            (Ok(()), Some(next)) => {
                self.next = next;
                None
            }
            (done, _) => Some(done),
        }
    }

    /// Does all that is left.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses; the log takes no more then.
    pub fn finish(&mut self) -> Result<()> {
        loop {
            if let Some(done) = self.step() {
                return done;
            }
        }
    }
}
