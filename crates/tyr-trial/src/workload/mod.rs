//! What clients do while the cluster is troubled. Each workload is one question about a promise.
//!
//! | workload | blobs | what must hold |
//! |---|---|---|
//! | [`lists`] | lists of values | strict serializability of transactions |
//! | [`bank`] | accounts | every audit finds the same sum |
//! | [`counters`] | numbers that all add to in place | each addition counts once, and none aborts |
//! | [`log`] | a blob in each keyspace, appended to | what was acknowledged is there, in order |
//! | [`registers`] | single values | linearizability, blob by blob |
//! | [`listings`] | pairs that come and go together | a listing is of one moment (Q1, Q2) |
//! | [`stamps`] | journals with stamps | stamps are commit timestamps (C10) |
//! | [`holes`] | sheets of cells | what was cleared is zeros, and nothing else is |
//! | [`locks`] | locks, and what they guard | who holds a lock no more writes no more (K4) |
//! | [`uploads`] | payloads of several MiB | what is read is whole, of one version (U1) |
//! | [`groups`] | entries, counted in a header | the header is right, in any reading (H) |
//! | [`watches`] | cells, watched | who watches hears of each change (K5) |
//! | [`kept`] | pairs of blobs, and snapshots that are kept | what is kept stays as it was (V7) |
//! | [`shared_logs`] | logs of `tyr-log` | one order, each entry once, to each reader and group |
//! | [`zlogs`] | logs of `tyr-zlog` | each entry has one position, in order |
//!
//! A workload writes what it does into the [`history`](crate::history) and judges nothing: that is
//! [`check`](crate::check)'s. What fails is written down and goes on.

pub mod bank;
pub mod counters;
pub mod groups;
pub mod holes;
pub mod kept;
pub mod listings;
pub mod lists;
pub mod locks;
pub mod log;
pub mod registers;
pub mod shared_logs;
pub mod stamps;
pub mod uploads;
pub mod watches;
pub mod zlogs;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tyr_types::{Durability, KeyspaceConfig, PlacedBy, Result};

use crate::client::{Caller, DELIMITER};
use crate::history::{Book, Scribe};
use crate::puppet;
use crate::random::Random;

/// After a failure a client waits so long: it is not to fill the history with refusals.
const PAUSE: Duration = Duration::from_millis(20);

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumCount)]
pub enum Workload {
    /// Transactions on lists.
    Lists,
    /// Transfers and audits.
    Bank,
    /// Additions in place.
    Counters,
    /// Appends to one blob.
    Log,
    /// Single values.
    Registers,
    /// Pairs of blobs, listed.
    Listings,
    /// Journals with stamps.
    Stamps,
    /// Sheets of cells, written and cleared.
    Holes,
    /// Locks, and what is written under them.
    Locks,
    /// Payloads of several MiB.
    Uploads,
    /// Entries and their count, in groups.
    Groups,
    /// Cells that others watch.
    Watches,
    /// Pairs of blobs, and snapshots that are kept.
    Kept,
    /// Logs of `tyr-log`.
    SharedLogs,
    /// Logs of `tyr-zlog`.
    Zlogs,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Lists,
        Self::Bank,
        Self::Counters,
        Self::Log,
        Self::Registers,
        Self::Listings,
        Self::Stamps,
        Self::Holes,
        Self::Locks,
        Self::Uploads,
        Self::Groups,
        Self::Watches,
        Self::Kept,
        Self::SharedLogs,
        Self::Zlogs,
    ];

    /// Those that run where none is named: all but logs whose clients wait for leases most of the
    /// time, which do little in a short run.
    pub fn usual() -> Vec<Self> {
        Self::ALL.into_iter().filter(|it| *it != Self::Zlogs).collect()
    }

    /// Its name, on the command line and in histories.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lists => "lists",
            Self::Bank => "bank",
            Self::Counters => "counters",
            Self::Log => "log",
            Self::Registers => "registers",
            Self::Listings => "listings",
            Self::Stamps => "stamps",
            Self::Holes => "holes",
            Self::Locks => "locks",
            Self::Uploads => "uploads",
            Self::Groups => "groups",
            Self::Watches => "watches",
            Self::Kept => "kept",
            Self::SharedLogs => "shared-logs",
            Self::Zlogs => "zlogs",
        }
    }

    /// The workload of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// How its keyspace is made. Small chunks, so that blobs have several; `buffered` where a
    /// process is lost and no power.
    pub fn config(self) -> KeyspaceConfig {
        let durability = match self {
            Self::Lists | Self::Bank | Self::Registers | Self::Stamps | Self::Locks => {
                Durability::Sync
            }
            Self::Counters
            | Self::Log
            | Self::Listings
            | Self::Holes
            | Self::Uploads
            | Self::Groups
            | Self::Watches
            | Self::Kept
            | Self::SharedLogs
            | Self::Zlogs => Durability::Buffered,
        };
        let chunk_size = match self {
            Self::Uploads | Self::Zlogs => 1 << 20,
            // A segment lies in one chunk, with the longest batch that there can be.
            Self::SharedLogs => 16 << 20,
            Self::Lists
            | Self::Bank
            | Self::Counters
            | Self::Log
            | Self::Registers
            | Self::Listings
            | Self::Stamps
            | Self::Holes
            | Self::Locks
            | Self::Groups
            | Self::Watches
            | Self::Kept => 4096,
        };
        let placed_by = match self {
            Self::Groups | Self::Watches => PlacedBy::UpTo(DELIMITER),
            Self::SharedLogs | Self::Zlogs => PlacedBy::UpTo(0),
            Self::Lists
            | Self::Bank
            | Self::Registers
            | Self::Stamps
            | Self::Locks
            | Self::Counters
            | Self::Log
            | Self::Listings
            | Self::Holes
            | Self::Uploads
            | Self::Kept => PlacedBy::Key,
        };
        KeyspaceConfig { chunk_size, durability, placed_by, ..KeyspaceConfig::default() }
    }

    /// Whether its clients do nothing but what [workers](crate::worker) can.
    pub fn can_be_played(self) -> bool {
        match self {
            Self::Lists | Self::Bank | Self::Counters | Self::Log | Self::Registers => true,
            Self::Listings
            | Self::Stamps
            | Self::Holes
            | Self::Locks
            | Self::Uploads
            | Self::Groups
            | Self::Watches
            | Self::Kept
            | Self::SharedLogs
            | Self::Zlogs => false,
        }
    }

    /// How many clients it has where `all` others have so many: what is about who comes in whose
    /// way has two at least, and what is watched one who writes and two who watch. Logs have
    /// three, too: each does one thing after the other.
    pub fn clients(self, all: u64) -> u64 {
        match self {
            Self::Locks | Self::Uploads => all.max(2),
            Self::Watches | Self::SharedLogs | Self::Zlogs => all.max(3),
            Self::Lists
            | Self::Bank
            | Self::Counters
            | Self::Log
            | Self::Registers
            | Self::Listings
            | Self::Stamps
            | Self::Holes
            | Self::Groups
            | Self::Kept => all,
        }
    }

    /// The keyspaces that its blobs are spread over: one of its name, or one for each of these
    /// numbers of replicas.
    pub fn keyspaces(self, replications: &[u8]) -> Vec<(String, KeyspaceConfig)> {
        let of = |replication: &u8| {
            let config = KeyspaceConfig { replication: *replication, ..self.config() };
            (format!("{}-of-{replication}", self.name()), config)
        };
        match replications {
            [] => vec![(self.name().to_owned(), self.config())],
            some => some.iter().map(of).collect(),
        }
    }
}

/// What all clients of a workload share.
pub struct Stage {
    /// The workload.
    pub workload: Workload,
    /// How the cluster is called.
    pub caller: Caller,
    /// Where all is written.
    pub book: Arc<Book>,
    /// The clients end when this is set.
    pub is_over: Arc<AtomicBool>,
    /// Clients wait so long after each operation.
    pub pace: Duration,
    /// The run's seed.
    pub seed: u64,
    /// What clients in processes of their own are told.
    pub puppets: puppet::Plan,
    /// Keys of blobs that nobody can tell before the last readings.
    pub found: Arc<Mutex<BTreeSet<String>>>,
    values: Arc<AtomicU64>,
}

impl Stage {
    /// A stage with a caller of the workload's own keyspace.
    pub fn new(workload: Workload, caller: Caller, book: &Arc<Book>, seed: u64) -> Self {
        Self {
            workload,
            caller,
            book: Arc::clone(book),
            is_over: Arc::default(),
            pace: Duration::ZERO,
            seed,
            puppets: puppet::Plan::default(),
            found: Arc::default(),
            values: Arc::default(),
        }
    }

    /// The same for another client with a caller of its own.
    pub fn with(&self, caller: Caller) -> Self {
        Self {
            workload: self.workload,
            caller,
            book: Arc::clone(&self.book),
            is_over: Arc::clone(&self.is_over),
            pace: self.pace,
            seed: self.seed,
            puppets: self.puppets.clone(),
            found: Arc::clone(&self.found),
            values: Arc::clone(&self.values),
        }
    }

    /// A value that nobody else writes; never 0.
    pub fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many values there were.
    pub fn written(&self) -> u64 {
        self.values.load(Ordering::Relaxed)
    }

    /// What must be there before the clients begin.
    ///
    /// # Errors
    /// What the client answers.
    pub fn prepare(&self) -> Result<()> {
        match self.workload {
            Workload::Bank => bank::prepare(self),
            Workload::Lists
            | Workload::Counters
            | Workload::Log
            | Workload::Registers
            | Workload::Listings
            | Workload::Stamps
            | Workload::Holes
            | Workload::Locks
            | Workload::Uploads
            | Workload::Groups
            | Workload::Watches
            | Workload::Kept
            | Workload::SharedLogs
            | Workload::Zlogs => Ok(()),
        }
    }

    /// One client, until it is over.
    pub fn play(&self, client: u64) {
        let mut scribe = Scribe::new(&self.book, self.workload.name());
        let mut random = Random::of(self.seed, self.workload.name(), client);
        let mut pairs = listings::Pairs::default();
        let mut sheets = holes::Sheets::default();
        let mut puppet = None;
        let mut writer = uploads::Writer::default();
        let mut watcher = watches::Watcher::default();
        let mut collection = kept::Collection::default();
        let mut library = shared_logs::Library::default();
        let mut shelf = zlogs::Shelf::default();
        while !self.is_over.load(Ordering::Acquire) {
            let done = match self.workload {
                Workload::Lists => lists::act(self, &mut scribe, &mut random),
                Workload::Bank => bank::act(self, &mut scribe, &mut random),
                Workload::Counters => counters::act(self, &mut scribe, &mut random),
                Workload::Log => log::act(self, &mut scribe, &mut random),
                Workload::Registers => registers::act(self, &mut scribe, &mut random),
                Workload::Listings => listings::act(self, &mut pairs, &mut scribe, &mut random),
                Workload::Stamps => stamps::act(self, &mut scribe, &mut random),
                Workload::Holes => holes::act(self, &mut sheets, &mut scribe, &mut random),
                Workload::Locks => locks::act(self, &mut puppet, &mut scribe, &mut random),
                Workload::Uploads => uploads::act(self, &mut writer, &mut scribe, &mut random),
                Workload::Groups => groups::act(self, &mut scribe, &mut random),
                Workload::Watches => {
                    watches::act(self, client, &mut watcher, &mut scribe, &mut random)
                }
                Workload::Kept => {
                    kept::act(self, client, &mut collection, &mut scribe, &mut random)
                }
                Workload::SharedLogs => {
                    shared_logs::act(self, client, &mut library, &mut scribe, &mut random)
                }
                Workload::Zlogs => zlogs::act(self, client, &mut shelf, &mut scribe, &mut random),
            };
            std::thread::sleep(if done.is_ok() { self.pace } else { PAUSE.max(self.pace) });
        }
        watches::drain(self, watcher, &mut scribe);
        kept::drain(self, collection, &mut scribe);
        if self.workload == Workload::SharedLogs {
            shared_logs::drain(self, library, &mut scribe);
        }
    }

    /// Reads everything once more, when nobody writes any more.
    ///
    /// # Errors
    /// What the client answers: then the history cannot be judged.
    pub fn finish(&self) -> Result<()> {
        let mut scribe = Scribe::new(&self.book, self.workload.name());
        match self.workload {
            Workload::Lists => lists::finish(self, &mut scribe),
            Workload::Bank => bank::finish(self, &mut scribe),
            Workload::Counters => counters::finish(self, &mut scribe),
            Workload::Log => log::finish(self, &mut scribe),
            Workload::Registers => registers::finish(self, &mut scribe),
            Workload::Listings => listings::finish(self, &mut scribe),
            Workload::Stamps => stamps::finish(self, &mut scribe),
            Workload::Holes => holes::finish(self, &mut scribe),
            Workload::Locks => locks::finish(self, &mut scribe),
            Workload::Uploads => uploads::finish(self, &mut scribe),
            Workload::Groups => groups::finish(self, &mut scribe),
            Workload::Watches => Ok(()), // Who watches has looked at all there is.
            Workload::Kept => kept::finish(self, &mut scribe),
            Workload::SharedLogs => shared_logs::finish(self, &mut scribe),
            Workload::Zlogs => zlogs::finish(self, &mut scribe),
        }
    }

    /// The keys of all blobs that it may have made.
    pub fn keys(&self) -> Vec<String> {
        match self.workload {
            Workload::Lists => lists::keys(self),
            Workload::Bank => bank::keys(),
            Workload::Counters => counters::keys(),
            Workload::Log => log::keys(self),
            Workload::Registers => registers::keys(self),
            Workload::Listings => listings::keys(self),
            Workload::Stamps => stamps::keys(),
            Workload::Holes => holes::keys(),
            Workload::Locks => locks::keys(self),
            Workload::Uploads => uploads::keys(self),
            Workload::Groups => groups::keys(self),
            Workload::Watches => watches::keys(self),
            Workload::Kept => listings::keys(self),
            Workload::SharedLogs => shared_logs::keys(self),
            Workload::Zlogs => zlogs::keys(self),
        }
    }
}
