//! What the threads of a store share: commits and reads, by the machines' rules.
//!
//! ```text
//!   commit ── prepare (no lock) ──> arbiter lock: validate, timestamp, log ──> apply ──> reply
//!                                        │                                       ▲
//!                                        └── sync wanted: group commit ──────────┘
//!   read ──── the blob's lock only; snapshots wait once for what was in flight when they began
//! ```
//!
//! Lock order: arbiter, snapshots, keyspaces, then the store's own. A reader takes only the
//! store's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use tyr_store::log::PendingWrite;
use tyr_store::store::Store;
use tyr_types::{Error, Result, TransactionId};

use crate::arbiter::Arbiter;
use crate::keyspaces::Keyspaces;
use crate::leases::Leases;
use crate::metadata::Metadata;
use crate::notices::Notices;
use crate::options::Options;
use crate::snapshot::Snapshots;
use crate::watches::Watches;
use tyr_runtime::clock;
use tyr_runtime::statistics::Counters;

/// Everything that the threads of a store share.
#[derive(Debug)]
pub struct Inner {
    pub(crate) store: Store,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) snapshots: Snapshots,
    /// Held by whoever keeps or drops a snapshot.
    pub(crate) keeping: Mutex<()>,
    pub(crate) metadata: Metadata,
    pub(crate) leases: Leases,
    pub(crate) watches: Watches,
    pub(crate) notices: Notices,
    pub(crate) counters: Counters,
    pub(crate) options: Options,
    pub(crate) arbiter: Mutex<Arbiter>,
    /// Whoever writes the log holds this, so that pieces are written in order; with the last piece,
    /// whose buffer is used again.
    pub(crate) log_writer: Mutex<Option<PendingWrite>>,
    /// Whoever syncs the log holds this, so that answers come in the order of records.
    pub(crate) log_syncer: Mutex<()>,
    /// Log records below this sequence have been given to the operating system.
    pub(crate) written: AtomicU64,
    /// Wakes the committer: somebody waits for a sync.
    pub(crate) sync_wanted: Condvar,
    /// Why writes are refused, once they are.
    pub(crate) refusal: Mutex<Option<Refusal>>,
    /// Whether the store has been closed.
    pub(crate) is_closed: AtomicBool,
    /// Wakes whoever waits for memory to be folded, and the folder itself.
    pub(crate) folding: Folding,
    client: u64,
    sequence: AtomicU64,
}

/// Why a store does not take writes any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It was opened read-only.
    ReadOnly,
    /// It was closed.
    Closed,
    /// The disk failed after something had been promised to it; only reopening finds out what
    /// is really there.
    Poisoned(String),
}

/// How the folder and those who wait for it meet.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    pub state: Mutex<FoldState>,
    /// Somebody wants a fold, or the end.
    pub wanted: Condvar,
    /// A fold has ended.
    pub done: Condvar,
    /// Held by whoever folds.
    pub alone: Mutex<()>,
    /// Held while blobs move into the base: by whoever folds, for a step; and by who counts both.
    pub moving: Mutex<()>,
}

/// What the folder and its callers tell each other.
#[derive(Debug, Default)]
pub(crate) struct FoldState {
    pub is_wanted: bool,
    pub is_stopping: bool,
    /// Folds ended so far, also those that failed.
    pub ended: u64,
    /// Why the last one failed, if it did: what it was to fold stays in memory and log.
    pub failure: Option<String>,
    /// Bytes in the log when one last succeeded.
    pub log_bytes_after: u64,
}

impl Inner {
    pub(crate) fn new(store: Store, arbiter: Arbiter, options: Options) -> Arc<Self> {
        let keyspaces = Keyspaces::new(store.base().keyspaces());
        let refusal = options.is_read_only.then_some(Refusal::ReadOnly);
        let timeout_us = options.snapshot_timeout.as_micros();
        let timeout_us = u64::try_from(timeout_us).unwrap_or(u64::MAX);
        let snapshots = Snapshots::new(timeout_us);
        snapshots.look_at_kept(|| store.base().kept_unfolded());
        Arc::new(Self {
            store,
            keyspaces,
            snapshots,
            keeping: Mutex::default(),
            metadata: Metadata::new(options.is_read_only),
            leases: Leases::default(),
            watches: Watches::default(),
            notices: Notices::default(),
            counters: Counters::default(),
            options,
            arbiter: Mutex::new(arbiter),
            log_writer: Mutex::default(),
            log_syncer: Mutex::default(),
            written: AtomicU64::new(0),
            sync_wanted: Condvar::new(),
            refusal: Mutex::new(refusal),
            is_closed: AtomicBool::new(false),
            folding: Folding::default(),
            client: clock::random_u64(),
            sequence: AtomicU64::new(0),
        })
    }

    /// A new transaction's name.
    pub fn next_transaction_id(&self) -> TransactionId {
        TransactionId::new(self.client, self.sequence.fetch_add(1, Ordering::Relaxed))
    }

    /// Bytes in the log's segments.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.arbiter.lock().log.as_ref().map_or(0, |log| log.bytes())
    }

    /// Refuses writes when the store does not take any.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match &*self.refusal.lock() {
            None => Ok(()),
            Some(refusal) => Err(refusal.error()),
        }
    }

    /// Refuses to go on where a write of the log failed: who was to write took the records of all
    /// who wait, and what is written next has none of them.
    pub(crate) fn check_sound(&self) -> Result<()> {
        match &*self.refusal.lock() {
            Some(refusal @ Refusal::Poisoned(_)) => Err(refusal.error()),
            Some(Refusal::ReadOnly | Refusal::Closed) | None => Ok(()),
        }
    }

    /// Refuses everything after close.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.is_closed.load(Ordering::Acquire) {
            true => Err(Refusal::Closed.error()),
            false => Ok(()),
        }
    }

    /// From now on writes are refused: what the disk has is not known any more.
    pub(crate) fn poison(&self, why: &Error) {
        let mut refusal = self.refusal.lock();
        if refusal.is_none() {
            *refusal = Some(Refusal::Poisoned(why.to_string()));
        }
    }
}

impl Refusal {
    pub fn error(&self) -> Error {
        match self {
            Self::ReadOnly => Error::new(
                tyr_types::ErrorKind::PermissionDenied,
                "the store was opened read-only; open it without that to write",
            ),
            Self::Closed => Error::unavailable("the store is closed; open it again"),
            Self::Poisoned(why) => Error::unavailable(format!(
                "the disk failed, so writes are refused until the store is opened again: {why}"
            )),
        }
    }
}
