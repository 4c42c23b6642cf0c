//! The transactions that this node knows of and has not finished with.
//!
//! A record lives from a transaction's arrival until it is applied, passed back, and stable at
//! every authority whose chunks are held here, or until it is aborted. A head begins one only while
//! it has fewer than [`super::IN_FLIGHT_MAX`], those of other heads counted; so a node has at most
//! that times the number of heads, and what those are done with and it has not heard to be stable.
//! Drivers set bounds that are far lower.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use tyr_types::{BlobName, NodeId, Timestamp, Transaction, TransactionId};

use super::effect::Placements;
use super::event::Attempt;
use super::outcomes::Outcomes;
use crate::abort::Abort;
use crate::chain::Chain;

/// A transaction, a chain that it is to pass, and when it began by the cluster's clock: what is
/// submitted, and what a ballot is about.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub transaction: Arc<Transaction>,
    pub chain: Chain,
    pub begun: Timestamp,
}

/// How far a transaction is at this node.
///
/// ```text
///   Waiting ──► Persisting ──► Validated ──► Decided ──► Applied ──► (forgotten)
///      │            │              │
///      ├────────────┴──────────────┴──► Aborted ──► (forgotten, in the same step)
///      ├──────────────► Fenced ◄───┘         └ at a head of several: Aborting first
///      └──► Parked
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// It waits for others before it is validated (C1, C2).
    Waiting,
    /// It waits for others to be applied, and holds nobody up meanwhile (C9).
    Parked,
    /// Nothing of it counts here until the attempt that was promised comes by (F2, F3).
    Fenced,
    /// Validated here with this proposal; the record is not durable yet (C3).
    Persisting(Timestamp),
    /// Validated here with this proposal, durable, passed on.
    Validated(Timestamp),
    /// It commits at this timestamp, and is not applied here yet (C5, C6).
    Decided(Timestamp),
    /// Applied here at this timestamp, not yet stable everywhere (R2).
    Applied(Timestamp),
    /// It is given up, and the client is told when that is durable (F4).
    Aborting,
    /// It is given up; never seen between steps.
    Aborted,
}

impl State {
    /// The timestamp below which it cannot take effect, while it is in flight: its proposal, or
    /// what was decided.
    pub fn in_flight_at(self) -> Option<Timestamp> {
        match self {
            Self::Persisting(at) | Self::Validated(at) | Self::Decided(at) => Some(at),
            Self::Waiting
            | Self::Parked
            | Self::Fenced
            | Self::Applied(_)
            | Self::Aborting
            | Self::Aborted => None,
        }
    }

    /// Whether it waits to be validated.
    pub fn is_waiting(self) -> bool {
        match self {
            Self::Waiting | Self::Parked => true,
            Self::Fenced
            | Self::Persisting(_)
            | Self::Validated(_)
            | Self::Decided(_)
            | Self::Applied(_)
            | Self::Aborting
            | Self::Aborted => false,
        }
    }

    /// Whether it keeps others off here, or a place before them, whatever came before it.
    pub fn is_claiming(self) -> bool {
        match self {
            Self::Waiting
            | Self::Persisting(_)
            | Self::Validated(_)
            | Self::Decided(_)
            | Self::Applied(_) => true,
            Self::Parked | Self::Fenced | Self::Aborting | Self::Aborted => false,
        }
    }

    /// Whether it is validated here and nobody here knows yet what becomes of it.
    pub fn is_undecided(self) -> bool {
        match self {
            Self::Persisting(_) | Self::Validated(_) => true,
            Self::Waiting
            | Self::Parked
            | Self::Fenced
            | Self::Decided(_)
            | Self::Applied(_)
            | Self::Aborting
            | Self::Aborted => false,
        }
    }

    /// The timestamp at which it commits, where that is known.
    pub fn decided_at(self) -> Option<Timestamp> {
        match self {
            Self::Decided(at) | Self::Applied(at) => Some(at),
            Self::Waiting
            | Self::Parked
            | Self::Fenced
            | Self::Persisting(_)
            | Self::Validated(_)
            | Self::Aborting
            | Self::Aborted => None,
        }
    }
}

/// What this node knows of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub transaction: Arc<Transaction>,
    pub chain: Chain,
    /// This node's place in the chain.
    pub position: usize,
    /// The newest attempt promised to; messages of older ones do nothing.
    pub attempt: Attempt,
    /// The attempt whose forward pass came here last.
    pub entered_in: Attempt,
    /// The coordinator's clock when that began.
    pub begun: Timestamp,
    /// When it came, counted in arrivals at this node.
    pub arrival: u64,
    pub state: State,
    /// The highest proposal of the nodes up to and with this one.
    pub highest: Timestamp,
    /// The timestamp, when an earlier attempt decided it (F3).
    pub known: Option<Timestamp>,
    /// Appends whose offset is settled.
    pub placed: Placements,
    /// The authorities of what it writes here that have not passed it back yet (R2).
    pub unstable: SmallVec<[NodeId; 1]>,
    /// Whether it writes something at this node.
    pub is_writing_here: bool,
    /// Whether the read machine wants to hear of it.
    pub is_watched: bool,
    /// The anchors before this node that have not said that it is clear what comes before it (C9).
    pub unanchored: SmallVec<[NodeId; 1]>,
    /// Whether the attempt has reached the tail, so that everyone after this node listens to it.
    pub is_heard: bool,
    /// Whether this node has said so to those after it.
    pub is_anchored: bool,
    /// Whether everyone after this node in the chain has applied it (C7).
    pub is_behind: bool,
    /// Whether it was passed back from here.
    pub is_passed: bool,
    /// Whether it was validated before a restart.
    pub is_restored: bool,
    /// Whether the log has that it commits, while it cannot be applied (F14).
    pub heard: Heard,
    /// Who comes before it, of those found last the one nearest to it (C6, C9).
    pub blocker: Option<Blocker>,
    /// Those whose blocker this is; some may be past that.
    pub holds_up: SmallVec<[Slot; 2]>,
    /// Whom it waits for before it is validated, if that wakes it: then nobody else does.
    pub waits_for: Option<Slot>,
    /// Those that wait for this to be decided, applied or given up, by arrival; some may be past
    /// that.
    pub holds_back: SmallVec<[(u64, Slot); 1]>,
    /// What the nodes from here to the tail answer.
    pub outcomes: Outcomes,
    /// What its operations answered at this node.
    pub answers: Outcomes,
    /// Why it is given up, while that is not durable.
    pub abort: Option<Box<Abort>>,
    /// When it last got further, on the clock of `Tick` (F6).
    pub touched_us: u64,
    /// How often it was asked about since.
    pub asked: u8,
}

/// How far a commit that was heard of is on its way to the log (F14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Heard {
    /// Not at all; most are applied before the next tick, and then the log has them by that.
    #[default]
    Unwritten,
    /// A tick has found it not applied: the next one writes it down.
    Due,
    /// It is written.
    Written,
}

/// Who came before a transaction when that was looked for, as it was then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocker {
    pub slot: Slot,
    pub arrival: u64,
    pub entered_in: Attempt,
    /// Whether it writes what they share.
    pub is_writing: bool,
}

impl Record {
    /// What a ballot on it is about.
    pub fn subject(&self) -> Subject {
        let (transaction, chain) = (Arc::clone(&self.transaction), self.chain.clone());
        Subject { transaction, chain, begun: self.begun }
    }

    /// The blobs it writes and reads; one read and written comes twice, reads of one blob in a
    /// row once. Those that it listed are not among them.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobName> {
        let reads = self.transaction.reads.chunk_by(|left, right| left.blob == right.blob);
        let reads = reads.filter(|reads| reads.iter().any(|read| read.listed.is_none()));
        let written = self.transaction.blobs.iter().map(|entry| &entry.blob);
        written.chain(reads.map(|reads| &reads[0].blob))
    }

    /// The timestamp at which it commits, where that is known and it cannot be applied yet.
    pub fn heard_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Decided(at) => Some(at),
            State::Waiting
            | State::Parked
            | State::Fenced
            | State::Persisting(_)
            | State::Validated(_) => self.known,
            State::Applied(_) | State::Aborting | State::Aborted => None,
        }
    }

    /// Whether it is done at this node, whatever others still have to say.
    pub fn is_applied(&self) -> bool {
        matches!(self.state, State::Applied(_))
    }

    /// Whether it begins here: it was not in the log when this node started, and does not pass
    /// again because it is known to be committed (F3). Then no client can have been answered.
    pub fn is_new(&self) -> bool {
        !self.is_restored && self.known.is_none()
    }

    /// Whether messages that it needs to be applied have come: from behind (C7), and from the
    /// anchors before (C9).
    pub fn is_applicable(&self) -> bool {
        self.is_behind && self.unanchored.is_empty()
    }

    /// Whether nothing more can come of it here.
    pub fn is_finished(&self) -> bool {
        match self.state {
            State::Applied(_) => self.unstable.is_empty() && self.is_passed,
            State::Aborted => true,
            State::Waiting
            | State::Parked
            | State::Fenced
            | State::Persisting(_)
            | State::Validated(_)
            | State::Decided(_)
            | State::Aborting => false,
        }
    }
}
/// A record's place in the table; another record may take it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u32);

impl Slot {
    /// The first there is.
    pub const FIRST: Self = Self(0);
    /// The last there may be.
    pub const LAST: Self = Self(u32::MAX);

    /// All there are.
    #[cfg(test)]
    pub fn numbered() -> impl Iterator<Item = Self> {
        (0..).map(Self)
    }
}

/// The table of records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    slots: Vec<Option<Record>>,
    free: Vec<Slot>,
    by_id: HashMap<TransactionId, Slot, FixedState>,
    /// Bytes that each transaction carried when it was put in, and of all together.
    payload_lens: Vec<u64>,
    payload_len: u64,
    /// Removed so far, and the bytes that they carried.
    finished: (u64, u64),
}

impl Records {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Bytes that the transactions carry.
    pub fn payload_len(&self) -> u64 {
        self.payload_len
    }

    /// How many were removed so far, and the bytes that their transactions carried.
    pub fn finished(&self) -> (u64, u64) {
        self.finished
    }

    pub fn slot(&self, id: TransactionId) -> Option<Slot> {
        self.by_id.get(&id).copied()
    }

    /// Puts in a record of a transaction that has none.
    pub fn insert(&mut self, record: Record) -> Slot {
        let id = record.transaction.id;
        let payload_len = record.transaction.payload_len();
        self.payload_len += payload_len;
        let slot = match self.free.pop() {
            Some(slot) => {
                debug_assert!(self.get(slot).is_none(), "a free slot has no record: {slot:?}");
                self.slots[slot.0 as usize] = Some(record);
                self.payload_lens[slot.0 as usize] = payload_len;
                slot
            }
            None => {
                self.slots.push(Some(record));
                self.payload_lens.push(payload_len);
                Slot(u32::try_from(self.slots.len() - 1).expect("bounded by IN_FLIGHT_MAX a head"))
            }
        };
        debug_assert_eq!(self.slots.len(), self.payload_lens.len(), "each slot has its bytes");
        let old = self.by_id.insert(id, slot);
        assert!(old.is_none(), "a transaction has one record: {id:?}");
        debug_assert_eq!(self.len() + self.free.len(), self.slots.len(), "a slot is live or free");
        slot
    }

    pub fn remove(&mut self, slot: Slot) -> Record {
        let record = self.slots[slot.0 as usize].take().expect("only a live slot is removed");
        let found_as = self.by_id.remove(&record.transaction.id);
        debug_assert_eq!(found_as, Some(slot), "a record is found by its id until it goes");
        let payload_len = self.payload_lens[slot.0 as usize];
        self.payload_len -= payload_len;
        self.finished = (self.finished.0 + 1, self.finished.1 + payload_len);
        self.free.push(slot);
        debug_assert_eq!(self.len() + self.free.len(), self.slots.len(), "a slot is live or free");
        debug_assert!(!self.is_empty() || self.payload_len == 0, "nobody carries anything");
        record
    }

    pub fn get(&self, slot: Slot) -> Option<&Record> {
        self.slots.get(slot.0 as usize).and_then(Option::as_ref)
    }

    /// The places that are free, the next to be taken last.
    #[cfg(feature = "broken-rules")]
    pub fn free(&self) -> &[Slot] {
        &self.free
    }

    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Record)> {
        let with_slot = |(place, record): (usize, &'_ Option<Record>)| {
            record.as_ref()?;
            look();
            Some(Slot(u32::try_from(place).expect("slots are numbered by u32")))
        };
        let slots = self.slots.iter().enumerate().filter_map(with_slot);
        slots.map(|slot| (slot, &self[slot]))
    }
}

/// Somebody who goes over all records, or ballots, looked at one. Tests count that.
#[cfg(not(test))]
#[inline]
pub(super) fn look() {}

#[cfg(test)]
pub(super) fn look() {
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// How many were looked at, on this thread.
    pub(super) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl std::ops::Index<Slot> for Records {
    type Output = Record;

    fn index(&self, slot: Slot) -> &Record {
        self.slots[slot.0 as usize].as_ref().expect("the slot of a live record")
    }
}

impl std::ops::IndexMut<Slot> for Records {
    fn index_mut(&mut self, slot: Slot) -> &mut Record {
        self.slots[slot.0 as usize].as_mut().expect("the slot of a live record")
    }
}
