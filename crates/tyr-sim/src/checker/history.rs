//! What clients did and saw: all that a user could hold the store to.
//!
//! A history knows nothing of nodes and messages. Times are those of the run, in microseconds; who
//! ended in the same microsecond as another began counts as concurrent with it.

use std::collections::BTreeMap;

use tyr_protocol::Abort;
use tyr_protocol::session::Want;
use tyr_types::{
    BlobName, BlobOperations, Bytes, LeaseMode, Leased, Notified, Outcome, PieceId, Scan, ScanPage,
    Timestamp, TransactionId, WatchTarget, Watcher,
};

/// What clients did and saw, in the order in which it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// One entry for each thing that a client did.
    pub entries: Vec<Entry>,
    /// The leases that clients held.
    pub holdings: Vec<Holding>,
    /// The pieces that clients uploaded.
    pub pieces: BTreeMap<PieceId, Piece>,
    /// What clients watched.
    pub watches: Vec<WatchedSince>,
    /// The notices that clients sent.
    pub notices: Vec<Noticed>,
    /// Those that watches got.
    pub heard: Vec<HeardNotice>,
}

/// Something that a client watched.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedSince {
    /// The client.
    pub client: u16,
    /// By which nodes know the watch.
    pub watcher: Watcher,
    /// What it watched.
    pub target: WatchTarget,
    /// When it heard that it is told.
    pub from_us: u64,
    /// When it was ended.
    pub until_us: u64,
}

impl WatchedSince {
    /// Whether it is told of this key.
    pub fn covers(&self, blob: &BlobName) -> bool {
        let WatchTarget { keyspace, prefix, is_exact } = &self.target;
        let key = blob.key.as_bytes();
        *keyspace == blob.keyspace
            && if *is_exact { key == &prefix[..] } else { key.starts_with(prefix) }
    }
}

/// A notice that a client sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Noticed {
    /// The client.
    pub client: u16,
    /// To who watches this.
    pub blob: BlobName,
    /// What it said: no two said the same.
    pub payload: Bytes,
    /// When it was sent.
    pub start_us: u64,
    /// When it was answered.
    pub end_us: Option<u64>,
    /// How; `None` where nobody knows what became of it.
    pub notified: Option<Notified>,
}

/// A notice that a watch got.
#[derive(Clone, Debug, PartialEq)]
pub struct HeardNotice {
    /// The watch.
    pub watcher: Watcher,
    /// What it said; it is acknowledged with the same.
    pub payload: Bytes,
    /// When.
    pub at_us: u64,
}

/// A piece that a client uploaded ahead of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The transaction, by its place among the entries.
    pub entry: usize,
    /// Whether its client said that it does not need it (U2).
    pub is_dropped: bool,
}

/// A lease that a client held.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// The client.
    pub client: u16,
    /// The number by which it knows the lease.
    pub lease: u64,
    /// Of what.
    pub of: Leased,
    /// How.
    pub mode: LeaseMode,
    /// When it heard that it holds it.
    pub from_us: u64,
    /// When it gave it back, or took it for over by its own clock.
    pub until_us: u64,
}

/// Something that a client did.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The client.
    pub client: u16,
    /// The workload that wanted it, by its place in the run's list.
    pub workload: usize,
    /// When the first call of it was made.
    pub start_us: u64,
    /// When the last answer came; `None` while it is under way.
    pub end_us: Option<u64>,
    /// What it was.
    pub deed: Deed,
    /// The pages that it listed, at the moment of its snapshot. What they show of each blob is
    /// among what it read.
    pub pages: Vec<Listed>,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// What was to be listed, from where on.
    pub scan: Scan,
    /// What was.
    pub page: ScanPage,
}

/// What a client did.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Read, perhaps, and then tried to commit.
    Transaction(Attempted),
    /// Read once, outside a transaction.
    Read(Seen),
    /// Read one after the other from a snapshot.
    Snapshot(Vec<Seen>),
    /// Took a moment of everything, then read there, one after the other.
    Moment(Vec<Seen>),
    /// Read several at one timestamp, named up front.
    ReadMany(Vec<Seen>),
}

/// A transaction as its client saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempted {
    /// Its id, once it was submitted and the answer told.
    pub id: Option<TransactionId>,
    /// What it read before, in order. Those of one blob share a timestamp.
    pub reads: Vec<Seen>,
    /// What it does.
    pub blobs: Vec<BlobOperations>,
    /// What became of it.
    pub fate: Fate,
    /// What its operations answered.
    pub answers: Vec<Answer>,
    /// The calls of methods that its operations came of.
    pub calls: Vec<Called>,
}

/// A call of a method in a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// The object, by the name of its blob.
    pub object: BlobName,
    /// The version of the class that it ran by.
    pub version: u64,
    /// The method.
    pub method: &'static str,
    /// Its input.
    pub input: Bytes,
    /// By which it is told from others.
    pub id: TransactionId,
    /// When it began, as the method saw it.
    pub now_us: u64,
    /// What it answered, or how it failed.
    pub answer: Result<Bytes, String>,
}

/// What became of a transaction, as far as its client knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It was not submitted (yet): the client is reading, or gave up when a read was refused.
    NotSubmitted,
    /// It was submitted and not answered yet.
    Pending,
    /// It took effect at this timestamp.
    Committed(Timestamp),
    /// It took no effect.
    Aborted(Abort),
    /// The client gave up waiting for the outcome.
    Unknown,
}

/// What an operation of a committed transaction answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The blob, by its place in [`Attempted::blobs`].
    pub blob: usize,
    /// The operation, by its place in the blob's.
    pub operation: usize,
    /// The answer.
    pub outcome: Outcome,
}

/// What a client read.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// What it wanted.
    pub want: Want,
    /// When it asked.
    pub start_us: u64,
    /// When it was answered; `None` while it waits.
    pub end_us: Option<u64>,
    /// The timestamp it was read at, where the answer told; a single read of one chunk does not.
    pub at: Option<Timestamp>,
    /// What it got.
    pub found: Found,
}

/// What a read got.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// No answer yet.
    Nothing,
    /// These bytes, fewer than wanted where the blob ends.
    Bytes {
        /// The bytes.
        bytes: Bytes,
        /// The blob's size, if the answer told.
        size: Option<u64>,
    },
    /// The blob was absent.
    Absent,
    /// It was refused.
    Refused(Abort),
}

impl Seen {
    /// A read that was asked for and not answered yet.
    pub fn asked(want: Want, now_us: u64) -> Self {
        Self { want, start_us: now_us, end_us: None, at: None, found: Found::Nothing }
    }

    /// Whether it was answered, and not refused.
    pub fn is_answered(&self) -> bool {
        matches!(self.found, Found::Bytes { .. } | Found::Absent)
    }

    /// The bytes it got; none where it got no answer or the blob was absent.
    pub fn bytes(&self) -> &[u8] {
        match &self.found {
            Found::Bytes { bytes, .. } => bytes,
            Found::Nothing | Found::Absent | Found::Refused(_) => &[],
        }
    }

    /// Whether the answer says where the blob ends, or that it is absent.
    pub fn shows_end(&self) -> bool {
        match &self.found {
            Found::Bytes { bytes, .. } => {
                self.want.is_attributes || (bytes.len() as u64) < self.want.range.len()
            }
            Found::Absent => true,
            Found::Nothing | Found::Refused(_) => false,
        }
    }
}

impl Attempted {
    /// Whether its client was told that it committed.
    pub fn is_committed(&self) -> bool {
        matches!(self.fate, Fate::Committed(_))
    }

    /// Whether it may have taken effect, as far as its client knows.
    pub fn is_possible(&self) -> bool {
        matches!(self.fate, Fate::Committed(_) | Fate::Pending | Fate::Unknown)
    }
}

impl History {
    /// A client uploaded a piece for the transaction of this entry.
    pub fn uploaded(&mut self, id: PieceId, entry: usize) {
        self.pieces.insert(id, Piece { entry, is_dropped: false });
    }

    /// A client said that it does not need what it uploaded for this entry.
    pub fn drop_pieces(&mut self, entry: usize) {
        let own = self.pieces.values_mut().filter(|piece| piece.entry == entry);
        own.for_each(|piece| piece.is_dropped = true);
    }

    /// The transactions, each with its place among the entries.
    pub fn transactions(&self) -> impl Iterator<Item = (usize, &Entry, &Attempted)> {
        self.entries.iter().enumerate().filter_map(|(place, entry)| match &entry.deed {
            Deed::Transaction(attempted) => Some((place, entry, attempted)),
            Deed::Read(_) | Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => None,
        })
    }

    /// All that was read, each with its place among the entries.
    pub fn seen(&self) -> impl Iterator<Item = (usize, &Seen)> {
        self.entries
            .iter()
            .enumerate()
            .flat_map(|(place, entry)| entry.seen().iter().map(move |seen| (place, seen)))
    }
}

impl Entry {
    /// What was read in it.
    pub fn seen(&self) -> &[Seen] {
        match &self.deed {
            Deed::Transaction(attempted) => &attempted.reads,
            Deed::Read(seen) => std::slice::from_ref(seen),
            Deed::Snapshot(seen) | Deed::Moment(seen) | Deed::ReadMany(seen) => seen,
        }
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        let kind = match &self.deed {
            Deed::Transaction(Attempted { id: Some(id), .. }) => {
                format!("transaction {:x}", id.0)
            }
            Deed::Transaction(_) => "an unsubmitted transaction".to_owned(),
            Deed::Read(seen) => format!("a read of \"{}\"", seen.want.blob.key),
            Deed::Snapshot(_) => "a snapshot".to_owned(),
            Deed::Moment(_) => "a snapshot of everything".to_owned(),
            Deed::ReadMany(_) => "a read_many".to_owned(),
        };
        let end = self.end_us.map_or_else(|| "..".to_owned(), |end_us| format!("{end_us}"));
        format!("{kind} of client {} ({}..{end} us)", self.client, self.start_us)
    }
}
