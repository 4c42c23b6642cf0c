//! What the session asks of its driver, and what it answers its user.

use std::sync::Arc;

use tyr_types::{
    ByteRange, Bytes, Changes, NodeId, Notice, Notified, PieceRef, ReadCheck, ScanPage, Timestamp,
    Transaction,
};

use super::event::{Began, CallId, Want};
use crate::abort::Abort;
use crate::commit::Outcomes;
use crate::message::Envelope;

/// What a read saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What was asked for.
    pub want: Want,
    /// S, when the read was placed at a timestamp; `None` when it is the newest of one chunk.
    pub at: Option<Timestamp>,
    /// The newest version among what was read.
    pub version: Timestamp,
    /// The bytes; fewer than wanted where the blob ends, none where it is absent.
    pub bytes: Bytes,
    /// The size, `Some(None)` when the blob is absent. Known whenever it was wanted, or the bytes
    /// are fewer than wanted.
    pub size: Option<Option<u64>>,
    /// Whether the answer depends on the blob's size or existence.
    pub is_sized: bool,
    /// What is to be ended by [`super::Call::End`], of a transaction's or snapshot's first read.
    pub began: Option<Began>,
}

impl Seen {
    /// Whether the blob is known to be absent.
    pub fn is_absent(&self) -> bool {
        self.size == Some(None)
    }

    /// What a transaction that did this read hands in to be validated (C1): the bytes that were
    /// there, and the attributes if the answer depends on them. `None` for a read that was not
    /// placed at a timestamp.
    pub fn check(&self) -> Option<ReadCheck> {
        let start = self.want.range.start;
        let range = ByteRange { start, end: start + self.bytes.len() as u64 };
        let (blob, is_attributes) = (self.want.blob.clone(), self.is_sized);
        self.at.map(|at| ReadCheck { blob, range, is_attributes, at, listed: None })
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The transaction took effect.
    Committed {
        /// The transaction, named.
        transaction: Arc<Transaction>,
        /// Its timestamp.
        at: Timestamp,
        /// What its operations answer.
        outcomes: Outcomes,
    },
    /// The transaction did not take effect, or, with `TimedOut`, nobody knows: ask again.
    Aborted {
        /// The transaction, named.
        transaction: Arc<Transaction>,
        /// Why.
        abort: Abort,
    },
    /// What a read saw.
    Read(Seen),
    /// What a read of many blobs saw.
    Many {
        /// The timestamp of all of them.
        at: Timestamp,
        /// In the order of the wants.
        seen: Vec<Seen>,
    },
    /// What a scan found.
    Page(ScanPage),
    /// The lease is held.
    Leased {
        /// The number by which it is given back, and by which news of it come.
        lease: u64,
        /// Until when it is held, by the monotonic clock, unless it is renewed.
        until_us: u64,
    },
    /// It is watched; what there is to tell comes as [`Effect::Watch`].
    Watching {
        /// The number by which it is ended, and by which news of it come.
        watch: u64,
    },
    /// What became of a notice.
    Notified(Notified),
    /// The piece is durable wherever its chunk is: a transaction may refer to it so.
    Staged(PieceRef),
    /// A moment of everything; of a cluster of a lower level than that of V5 it is told as `Many`.
    Moment {
        /// Where it is; `None` in a cluster without a keyspace.
        at: Option<Timestamp>,
        /// What is to be ended by [`super::Call::End`].
        began: Option<Began>,
    },
    /// What was to be ended is on its way to the nodes.
    Ended,
    /// Nothing came of it, and nothing changed.
    Failed(Abort),
}

/// What the driver does for the session. In any order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Give this message to that node; it may be lost.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        envelope: Envelope,
    },
    /// Tell the user.
    Done {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// Tell who holds the lease.
    Lease {
        /// The lease.
        lease: u64,
        /// What there is to tell.
        news: LeaseNews,
    },
    /// Tell who watches.
    Watch {
        /// The watch.
        watch: u64,
        /// What there is to tell.
        news: WatchNews,
    },
}

/// What there is to tell of what is watched (K5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchNews {
    /// From now on what changes is told. What changed before may not have been: it is to be looked
    /// at what is there.
    Began,
    /// Something has changed; whoever reads now finds it.
    Changed(Changes),
    /// Somebody has sent a notice, and waits for it to be acknowledged.
    Notice(Notice),
    /// Nothing is told any more, for this reason.
    Ended(Abort),
}

/// What becomes of a lease that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseNews {
    /// It was renewed.
    Held {
        /// Until when, by the monotonic clock.
        until_us: u64,
    },
    /// Somebody waits for it. Told once.
    Recalled,
    /// It is over.
    Lost,
}
