//! What nodes, clients and monitors say to each other, and the envelope around it.
//!
//! Everything that crosses a wire is one of these values. They are shared words and nothing more:
//! what is done about a message is the affair of the machine that receives it ([`crate::session`]
//! at the client, `member` at a node, `lease` at the monitors), how it looks as bytes of `wire`.
//!
//! ```text
//!   client ──Submit, Read, CancelRead, SnapshotEnded, FetchMap, Scan, Upload──► node
//!   client ──Moment──────────────────────────────────────────────► node
//!   client ◄──Reply, Part, Refused, NotHere, NotUnderstood, NewerMap, Scanned, Upload── node
//!   node   ◄──Upload────────────────────────────────────────────► node
//!   node   ◄──Commit, Recovery, Read (forwarded, or a copy)─────► node
//!   node   ◄──Read (to compare), Part, Refused, NotUnderstood───► node
//!   node   ──Renew, Prepared, CaughtUp, Return, FetchMap────────► monitors
//!   node   ◄──Granted, Prepare, Effective──────────────────────── monitors
//!   client ◄──KeyLease, KeyWatch────────────────────────────────► node
//! ```
//!
//! Before there was `Scan`, answered by `Scanned`, there was `ListKeys`, answered by `Keys`: it is
//! what is said in a cluster of a lower level.
//!
//! Any message may be lost, doubled, late or overtaken by another.

use std::sync::Arc;

use tyr_types::{
    BlobName, ByteRange, Bytes, Epoch, KeyRange, KeyspaceId, NodeId, Scan, ScanPage, Timestamp,
    Transaction, TransactionId, limits,
};

use crate::abort::Abort;
use crate::chain::Ends;
use crate::commit::OutcomeRetention;
use crate::commit::recovery;
use crate::commit::{self, Decision, Outcomes};
use crate::key_lease;
use crate::key_watch;
use crate::map::ClusterMap;
use crate::movement;
use crate::read::Kind;
use crate::upload;

/// The time as a driver passes it in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since 1970 by the machine's clock, which may jump and go back.
    pub wall_us: u64,
    /// Microseconds since any fixed moment, on a clock that neither jumps nor goes back.
    pub monotonic_us: u64,
}

/// Who sends a message, or gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A node.
    Node(NodeId),
    /// A client, by the number it drew: the upper half of its transactions' ids.
    Client(u64),
    /// The monitors, as one.
    Monitors,
}

/// A message with what its receiver checks before it looks inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The epoch of the sender's map.
    pub epoch: Epoch,
    /// The sender's incarnation, when it is a node; else 0.
    pub incarnation: u64,
    /// The sender.
    pub from: Address,
    /// The message.
    pub body: Body,
}

/// A read as a client asks it of a node, a node hands it to the authority, a recipient asks for its
/// copy, or an authority asks to compare (D4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// The number that the asker gave it. The same again is the same read, asked once more.
    pub read: u64,
    /// Who gets the answer, whoever passed the request on.
    pub asker: Address,
    /// The blob.
    pub blob: BlobName,
    /// Bytes of one chunk; may be empty, then it is of chunk 0.
    pub range: ByteRange,
    /// Whether size and existence are wanted too; of a version manager only. `Whole`, `First` and
    /// `Clock` always have them. Only then is the size in the answer more than a hint.
    pub is_attributes: bool,
    /// How it is placed among the transactions. `Whole`, `First` and `Clock` go to version
    /// managers; the first two begin a snapshot there, known by the asker and the number of the
    /// read (V1).
    pub kind: Kind,
    /// Whether a recipient asks, for its copy of the chunk.
    pub is_copy: bool,
}

/// The answer to a [`ReadRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPart {
    /// The number of the read.
    pub read: u64,
    /// The bytes that were asked for.
    pub range: ByteRange,
    /// The timestamp it was read at; `None` for the newest (R1). For `Clock` the clock.
    pub at: Option<Timestamp>,
    /// The newest version that overlaps what was asked for, at that timestamp.
    pub version: Timestamp,
    /// What the chunk holds of the range, from its start; may be short (R7).
    pub bytes: Bytes,
    /// Of a version manager: the size, `Some(None)` when the blob is absent.
    pub size: Option<Option<u64>>,
    /// The node's clock.
    pub clock: Timestamp,
}

/// Which blobs are to be listed, of those that the node is the authority of (Q1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// What the answer names; apart from the numbers of the asker's reads. The same again is the
    /// same question, asked once more.
    pub number: u64,
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// Keys that begin so.
    pub prefix: Bytes,
    /// And come after this one.
    pub after: Option<Bytes>,
    /// At most so many.
    pub limit: u32,
    /// As they were at this timestamp; `None` for the newest.
    pub at: Option<Timestamp>,
}

/// A blob that is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlob {
    /// Its key.
    pub key: Bytes,
    /// Its size then.
    pub size: u64,
    /// Its version then.
    pub version: Timestamp,
}

/// What is to be listed of the blobs that the node is the authority of (Q2): a [`Scan`] as it
/// travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRequest {
    /// What the answer names, among the numbers of the asker's reads. The same again is the same
    /// question, asked once more.
    pub number: u64,
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// What keys begin with; groups are made of what follows.
    pub prefix: Bytes,
    /// The lowest key; empty for the lowest there is.
    pub start: Bytes,
    /// What they come before.
    pub end: Option<Bytes>,
    /// At most so many entries and groups.
    pub limit: u32,
    /// What groups end with.
    pub delimiter: Option<Bytes>,
    /// The bytes of each blob's first chunk that are wanted too.
    pub range: Option<ByteRange>,
    /// Whether size and version are not wanted.
    pub is_keys_only: bool,
    /// As they were at this timestamp; `None` for the newest.
    pub at: Option<Timestamp>,
}

impl ScanRequest {
    /// A question of this number for what the scan says, as it was at `at`.
    pub fn new(number: u64, keyspace: KeyspaceId, scan: &Scan, at: Option<Timestamp>) -> Self {
        let KeyRange { start, end } = scan.keys();
        let limit = u32::try_from(scan.get_limit()).unwrap_or(u32::MAX);
        Self {
            number,
            keyspace,
            prefix: scan.get_prefix().clone(),
            start,
            end,
            limit,
            delimiter: scan.get_delimiter().cloned(),
            range: scan.get_range(),
            is_keys_only: scan.is_keys_only(),
            at,
        }
    }

    /// The keys that are listed.
    pub fn keys(&self) -> KeyRange {
        KeyRange { start: self.start.clone(), end: self.end.clone() }
    }

    /// The scan that it is of; perhaps out of range.
    pub fn scan(&self) -> Scan {
        let limit = (self.limit as usize).clamp(1, limits::SCAN_LIMIT_MAX);
        let scan = Scan::new().prefix(&self.prefix).from(&self.start).limit(limit);
        let scan = self.end.iter().fold(scan, Scan::to);
        let scan = self.delimiter.iter().fold(scan, Scan::delimiter);
        let scan = self.range.into_iter().fold(scan, Scan::range);
        if self.is_keys_only { scan.keys_only() } else { scan }
    }
}

/// What those ask who know no scans is one.
impl From<ListRequest> for ScanRequest {
    fn from(request: ListRequest) -> Self {
        let ListRequest { number, keyspace, prefix, after, limit, at } = request;
        let KeyRange { start, end } = KeyRange::of(&prefix, after.as_deref());
        let (delimiter, range, is_keys_only) = (None, None, false);
        Self { number, keyspace, prefix, start, end, limit, delimiter, range, is_keys_only, at }
    }
}

/// Which message answers a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListForm {
    /// `Keys`, for `ListKeys`.
    Keys,
    /// `Scanned`, for `Scan`.
    Page,
}

impl ListForm {
    /// The answer to the question of this number.
    pub fn answer(self, number: u64, page: ScanPage) -> Body {
        match self {
            Self::Page => Body::Scanned { number, page },
            Self::Keys => {
                let is_end = page.is_end();
                let listed = page.entries.into_iter().filter_map(|entry| {
                    let (key, stat) = (Bytes::copy_from_slice(entry.key.as_bytes()), entry.stat?);
                    Some(ListedBlob { key, size: stat.size, version: stat.version })
                });
                Body::Keys { number, keys: listed.collect(), is_end }
            }
        }
    }
}

/// What a node did not take in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A transaction submitted.
    Transaction(TransactionId),
    /// A read, by its number.
    Read(u64),
}

/// What is known of a message that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The epoch of the sender's map.
    pub epoch: Epoch,
    /// The sender's incarnation, when it is a node; else 0.
    pub incarnation: u64,
    /// The sender.
    pub from: Address,
    /// What the sender waits for an answer about.
    pub asked: Option<Asked>,
    /// Whether it is a transaction on its way over its chain that nobody has decided.
    pub is_forwarded: bool,
    /// The lowest feature level that reads it.
    pub level: u8,
    /// What is not known here.
    pub what: &'static str,
}

/// What is said.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    // Between nodes.
    /// About a transaction on its way.
    Commit(commit::Message),
    /// About a transaction that was held up.
    Recovery(recovery::Message),
    /// About chunks that move.
    Movement(movement::Message),
    /// About pieces that are uploaded ahead of their transaction; also from and to clients.
    Upload(upload::Message),

    // From a client to a node.
    /// A transaction, to the head of its chain.
    Submit {
        /// The transaction, checked by [`Transaction::validate`].
        transaction: Arc<Transaction>,
        /// Guesses of where blobs end that the transaction appends to or cuts.
        ends: Ends,
        /// The clock of the cluster in microseconds, as the client saw it when it first submitted
        /// the transaction. The head moves its clock past it, as past every timestamp (C8).
        begun_us: u64,
        /// Whether it was sent before: the head finds out what became of it (F4).
        is_retry: bool,
        /// All transactions of the client with sequences below this are answered; their outcomes
        /// may be forgotten.
        settled: u64,
    },
    /// A read; also from a node to the authority, from a recipient, and from an authority that
    /// compares replicas.
    Read(ReadRequest),
    /// Nobody waits for this read of the sender any more.
    CancelRead {
        /// The number of the read.
        read: u64,
    },
    /// The sender needs the snapshot no more that this read of it began (V1).
    SnapshotEnded {
        /// The number of the read.
        read: u64,
    },
    /// A moment of everything, in two questions (V5). First the node's clock, please: from there on
    /// every version of all blobs that the node manages is in use. Then where it is: from now on
    /// only what is current at that timestamp is, until the sender says that the snapshot of this
    /// number has ended. Either is answered by a `Part` at its timestamp, or by `NotHere`.
    Moment {
        /// The number of the question, among those of the sender's reads.
        read: u64,
        /// The number of the first question, and the moment; `None` in that one.
        placed: Option<(u64, Timestamp)>,
    },
    /// The newest map, please. A client is answered by `NewerMap`, whatever its epoch; a node if
    /// its own is older.
    FetchMap,
    /// The blobs that the node is the authority of, please (Q1). Answered by `Keys`, `Refused`, or
    /// `NotHere` with the number of a read.
    ListKeys(ListRequest),
    /// A page of the blobs that the node is the authority of, please (Q2). Answered by `Scanned`,
    /// `Refused`, or `NotHere` with the number of a read.
    Scan(Arc<ScanRequest>),

    // Between clients and nodes.
    /// About a lease of a key or a group (K1, K7).
    KeyLease(key_lease::Message),
    /// About a watch of keys (K5).
    KeyWatch(key_watch::Message),

    // From a node to a client.
    /// What became of a transaction.
    Reply {
        /// The transaction.
        id: TransactionId,
        /// What became of it. `TimedOut` when the node does not know.
        decision: Decision,
        /// What its operations answer.
        outcomes: Outcomes,
        /// The node's clock; [`Timestamp::ZERO`] from who refused to look at what was submitted,
        /// and says nothing of what else was sent of this transaction.
        clock: Timestamp,
    },
    /// The answer to `ListKeys`: exactly the blobs that were there at its moment and that this node
    /// is the authority of, by every map with the placement of the asker's.
    Keys {
        /// The number of the question.
        number: u64,
        /// In order.
        keys: Vec<ListedBlob>,
        /// Whether those are all.
        is_end: bool,
    },
    /// The answer to `Scan`: of exactly the blobs that were there at its moment and that this node
    /// is the authority of, by every map with the placement of the asker's.
    Scanned {
        /// The number of the question.
        number: u64,
        /// What was found, up to where it ends.
        page: ScanPage,
    },
    /// The answer to a read; also to an authority that compares replicas.
    Part(ReadPart),
    /// A read is not answered here, and why.
    Refused {
        /// The number of the read.
        read: u64,
        /// Why.
        abort: Abort,
    },
    /// The newest map that the sender knows: asked for, or because the receiver's is older. What
    /// showed that it is older is handled all the same.
    NewerMap(Arc<ClusterMap>),
    /// The node did not take this in: it has no lease, is not the head, or does not hold what is
    /// wanted. Where the asker's map is older, `NewerMap` goes before it.
    NotHere(Asked),
    /// The sender's program does not understand what was asked, and did nothing: it is of an older
    /// release. To a client, or to a node.
    NotUnderstood {
        /// What was asked.
        asked: Asked,
        /// The highest feature level that the sender speaks.
        level: u8,
    },

    // Between nodes and monitors.
    /// A node asks for its lease (M3).
    Renew {
        /// The node's incarnation.
        incarnation: u64,
        /// The epoch of its map.
        epoch: Epoch,
        /// When it sent this, by its monotonic clock.
        sent_us: u64,
        /// How far it is done with transactions, and its clock (F10).
        retention: OutcomeRetention,
    },
    /// The lease, counted from when it was asked for.
    Granted {
        /// `incarnation` of the request: another one's clock may have begun anew.
        incarnation: u64,
        /// `sent_us` of the request.
        sent_us: u64,
        /// How long it lasts.
        duration_us: u64,
        /// The newest effective epoch.
        epoch: Epoch,
        /// How far all live nodes are done, and the highest clock (F10).
        retention: OutcomeRetention,
    },
    /// A planned change: stop using what this map takes away, then say so.
    Prepare(Arc<ClusterMap>),
    /// The sender has stopped using what the map of this epoch takes from it, and has nothing in
    /// flight that was validated under an older one.
    Prepared {
        /// The epoch.
        epoch: Epoch,
    },
    /// This map holds from now on.
    Effective(Arc<ClusterMap>),
    /// The sender has copied everything that it is a recipient of in this epoch.
    CaughtUp {
        /// The epoch.
        epoch: Epoch,
    },
    /// A node has started (again).
    Return {
        /// Its new incarnation.
        incarnation: u64,
        /// Whether it still has what it stored.
        has_disk: bool,
        /// The highest feature level that its program speaks.
        level: u8,
    },
}
