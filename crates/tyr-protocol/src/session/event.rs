//! What the session is told: calls of its user, messages of nodes, the time.

use std::sync::Arc;

use smallvec::SmallVec;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, KeyspaceId, LeaseMode, Leased, NodeId, NoticeId,
    PieceId, ReadCheck, Scan, Timestamp, Transaction, WatchTarget,
};

use crate::map::ClusterMap;
use crate::message::Envelope;
use crate::upload::PieceSource;

/// A call, by the number its user gave it; no two in flight have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What a read wants of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The blob.
    pub blob: BlobName,
    /// The bytes; may reach beyond the blob's end.
    pub range: ByteRange,
    /// Whether size and existence are wanted too.
    pub is_attributes: bool,
}

impl Want {
    /// Bytes alone.
    pub fn bytes(blob: BlobName, range: ByteRange) -> Self {
        Self { blob, range, is_attributes: false }
    }

    /// Size and existence alone.
    pub fn stat(blob: BlobName) -> Self {
        Self { blob, range: ByteRange::NOTHING, is_attributes: true }
    }
}

/// How a read is placed among the transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// By itself: it contains everything acknowledged before it began (R1, R3).
    Newest,
    /// The first of this blob in a transaction (R3). The answer says S, where all later reads of
    /// the blob in the transaction are to be placed, and what to end.
    Transaction,
    /// The first of a snapshot (R6). The answer says S, where all later reads of any blob are to
    /// be placed, and what to end.
    Snapshot,
    /// At this timestamp, which an earlier answer said (R4, R5, R6).
    At(Timestamp),
    /// The same, of bytes in one chunk; but the answer has in the place of the bytes which of them
    /// are written ([`crate::read::layout`]).
    Layout(Timestamp),
}

/// A snapshot that version managers keep for a read, until it is ended (V1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Began {
    /// The number of the read that began it.
    pub read: u64,
    /// The nodes that may know of it.
    pub nodes: SmallVec<[NodeId; 3]>,
}

/// A lease that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseCall {
    /// Of what.
    pub of: Leased,
    /// How it is to be held.
    pub mode: LeaseMode,
    /// How long it lasts without being renewed, in microseconds.
    pub duration_us: u64,
    /// How long to wait where others are in the way, in microseconds; `None` for not at all.
    pub wait_us: Option<u64>,
}

/// A notice that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyCall {
    /// To who watches this key.
    pub blob: BlobName,
    /// What is said.
    pub payload: Bytes,
    /// How long they have to acknowledge it, in microseconds.
    pub timeout_us: u64,
}

/// What a user of the session can ask for.
#[derive(Clone, Debug)]
pub enum Call {
    /// Commit a transaction. The session names it; the answer says how.
    Commit {
        /// What it does.
        blobs: Vec<BlobOperations>,
        /// What it read.
        reads: Vec<ReadCheck>,
    },
    /// Ask what became of a transaction of this session whose commit ended as `TimedOut`; it takes
    /// effect once (F4).
    Ask {
        /// The transaction, as the answer gave it back.
        transaction: Arc<Transaction>,
    },
    /// Read one blob.
    Read {
        /// What to read.
        want: Want,
        /// How it is placed.
        place: Place,
    },
    /// Read many blobs at one timestamp that contains everything acknowledged before (R6).
    ReadMany {
        /// What to read; at most [`tyr_types::limits::READ_MANY_MAX`].
        wants: Vec<Want>,
    },
    /// List a page of a keyspace (Q2).
    Scan {
        /// The keyspace.
        keyspace: KeyspaceId,
        /// What to list.
        scan: Box<Scan>,
        /// When: at a timestamp that an earlier answer said, or each node now.
        at: Option<Timestamp>,
    },
    /// Hold a lease of a key (K1).
    Lease(LeaseCall),
    /// A lease is not needed any more.
    GiveBack {
        /// The lease, as the answer named it.
        lease: u64,
    },
    /// Watch a key, or those with a prefix (K5).
    Watch {
        /// What.
        target: WatchTarget,
    },
    /// What is watched is not to be told any more.
    EndWatch {
        /// The watch, as the answer named it.
        watch: u64,
    },
    /// Send a notice to who watches a key (K6).
    Notify(NotifyCall),
    /// A notice that a watch has got is acknowledged. The first time counts.
    Acknowledge {
        /// The watch, as the answer named it.
        watch: u64,
        /// The notice.
        id: NoticeId,
        /// What is replied.
        reply: Bytes,
    },
    /// Upload a piece of a payload ahead of its transaction (U1). The session names it; the answer
    /// says how. It is kept for a day, or until [`Call::Unstage`].
    Stage {
        /// The blob that it will be written to.
        blob: BlobName,
        /// The chunk in which it will lie, from its first to its last byte.
        chunk: u64,
        /// What is in it: at most [`tyr_types::limits::PIECE_LEN_MAX`].
        bytes: Bytes,
    },
    /// Fill a piece with what a blob had at a moment, inside the cluster (U5); else as
    /// [`Call::Stage`]. The moment has to be kept meanwhile, as for reads at it.
    Copy {
        /// The blob that it will be written to.
        blob: BlobName,
        /// The chunk in which it will lie, from its first to its last byte.
        chunk: u64,
        /// What is to be in it.
        source: PieceSource,
    },
    /// Pieces of a chunk are not needed, and there will be no transaction that refers to them.
    Unstage {
        /// The blob.
        blob: BlobName,
        /// The chunk.
        chunk: u64,
        /// The pieces.
        ids: Vec<PieceId>,
    },
    /// Take a moment of everything (R6): all that was acknowledged before is at or below it, and
    /// what is read there of any blob stays until it is ended (V5).
    Moment,
    /// A transaction or snapshot is over: what it kept may go (V1).
    End {
        /// What the answers to its reads began.
        began: Vec<Began>,
    },
}

/// What the session is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// Its user asks for something. Answered once, by [`super::Effect::Done`].
    Call {
        /// The number of the call.
        call: CallId,
        /// What is asked for.
        what: Call,
    },
    /// The user does not wait for this call any more; it is not answered. A transaction that was
    /// submitted may take effect all the same.
    Cancel {
        /// The call.
        call: CallId,
    },
    /// A message arrived.
    Receive(Envelope),
    /// A map that its user learned from the monitors.
    Learn(Arc<ClusterMap>),
    /// Time has passed. At [`super::Session::due_us`], or every 50 ms or so.
    Tick,
}
