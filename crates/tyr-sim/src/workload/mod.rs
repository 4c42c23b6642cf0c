//! What clients do.
//!
//! A workload is some tens of lines: what must be there first (`set_up`), what a client does next
//! (`next`), and its own idea of what must come of it (`check`). It speaks of whole deeds, not of
//! calls; the [`runner`] makes the calls, one deed at a time for each client, and keeps the
//! history. What it writes is unique where it can be, so that what a client read says who wrote it.
//!
//! [`bank`], [`borders`], [`lists`], [`registers`], [`counters`], [`log`], [`rewrites`], [`ends`],
//! [`pages`], [`rooms`], [`sides`], [`snapshots`], [`stocks`], [`locks`], [`caches`], [`watches`],
//! [`uploads`], [`copies`] and [`calls`] are the workloads; [`locking`] is what is done with a
//! lease, [`uploading`] what goes ahead of a transaction, [`copying`] what nodes fill of that,
//! [`calling`] what methods do in one, [`stretching`] what is asked of stretches, [`probe`] what
//! every run ends with.

pub mod bank;
pub mod borders;
pub mod caches;
pub mod calling;
pub mod calls;
pub mod copies;
pub mod copying;
pub mod counters;
pub mod ends;
pub mod holes;
pub mod lists;
pub mod locking;
pub mod locks;
pub mod log;
pub mod pages;
mod paging;
mod probe;
pub mod registers;
pub mod rewrites;
pub mod rooms;
pub mod runner;
pub mod sides;
pub mod snapshots;
pub mod stamps;
pub mod stocks;
mod stretching;
#[cfg(test)]
mod tests;
mod uploading;
pub mod uploads;
pub mod watches;

use tyr_protocol::session::Want;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Key, KeyspaceId, Operation, Payload, Scan,
    WatchTarget,
};

use crate::checker::{Deed, Entry, History, Replayed, Seen};
use crate::random::Random;

use self::calling::Run;
use self::copying::Copied;
use self::locking::Locked;
pub use self::runner::{Next, Runner};
use self::uploading::Afterwards;

/// Something that clients do, with its own idea of what must come of it.
pub trait Workload {
    /// Its name, as scenarios have it.
    fn name(&self) -> &'static str;

    /// What is committed before anything else, one after the other. May happen twice.
    fn set_up(&mut self) -> Vec<Vec<BlobOperations>>;

    /// What `client` does next.
    fn next(&mut self, client: u16, random: &mut Random) -> Work;

    /// What came of what `client` did last.
    fn answered(&mut self, client: u16, entry: &Entry) {
        let _ = (client, entry);
    }

    /// What must have come of it all, beyond what every history must show. `deeds` are its own,
    /// `end` has what is there in the end, as every replica has it.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String>;
}

/// What a transaction does once it has read.
pub type Then = Box<dyn FnOnce(&[Seen]) -> Vec<BlobOperations>>;

/// Something for a client to do.
pub enum Work {
    /// Commit this.
    Commit(Vec<BlobOperations>),
    /// Upload what these operations need, then commit them, or do not; with so long a pause before
    /// each call but the first.
    Upload {
        /// The operations.
        blobs: Vec<BlobOperations>,
        /// What is done when all is uploaded.
        afterwards: Afterwards,
        /// The pause in microseconds.
        pause_us: u64,
    },
    /// Read part of a blob, have nodes copy what it had then into another, and commit that.
    Copy {
        /// What is copied to where.
        copied: Copied,
        /// The pause in microseconds before each call but the first.
        pause_us: u64,
    },
    /// Read, then commit what follows from what was read.
    Transact {
        /// What to read, one after the other.
        reads: Vec<Want>,
        /// What to do then; nothing makes it a transaction that only reads.
        then: Then,
    },
    /// Call methods: read what they ask for, then commit what came of them.
    Call(Run),
    /// Read one blob, list its group at the S of that, one after the other, then commit what
    /// follows from what was read and listed.
    TransactListing {
        /// What is read first: a blob by the name of the group's prefix, whether there is one or
        /// not.
        first: Want,
        /// What is listed of the group, one after the other.
        scans: Vec<Scan>,
        /// The blobs that there may be: of each it is known then whether it was there.
        among: Vec<BlobName>,
        /// What to do then.
        then: Then,
    },
    /// Read once.
    Read(Want),
    /// Read one after the other from one snapshot, with so long a pause before each but the first.
    Snapshot {
        /// What to read.
        reads: Vec<Want>,
        /// The pause in microseconds.
        pause_us: u64,
    },
    /// Take a moment of everything, then read there one after the other, with so long a pause
    /// before each.
    Moment {
        /// What to read.
        reads: Vec<Want>,
        /// The pause in microseconds.
        pause_us: u64,
    },
    /// Read one blob in a snapshot, then list there, with so long a pause before each page.
    List {
        /// What is read first.
        first: Want,
        /// What is listed of its keyspace, one after the other.
        scans: Vec<Scan>,
        /// The blobs that there may be: of each it is known then whether it was there.
        among: Vec<BlobName>,
        /// The pause in microseconds.
        pause_us: u64,
    },
    /// Read one blob in a snapshot, then ask there which of its bytes are written, chunk by chunk.
    Stretches {
        /// What is read first: where the blob ends.
        first: Want,
        /// The bytes that are asked about.
        range: ByteRange,
        /// The chunk size of its keyspace.
        chunk_size: u64,
        /// The pause in microseconds before each.
        pause_us: u64,
    },
    /// Do this, which reads at one moment, at a kept one, if there is any.
    AtKept(Box<Work>),
    /// Read all at one timestamp, no older than now.
    ReadMany(Vec<Want>),
    /// Take a lease, read and write under it, and give it back.
    Locked(Locked),
    /// Watch, and read what is told of, until the run is over.
    Watch(Watched),
    /// Send a notice to who watches a blob, with so many microseconds to acknowledge it.
    Notify {
        /// The blob.
        blob: BlobName,
        /// The time.
        timeout_us: u64,
    },
}

/// What a client watches, and what it reads when it is told of it.
pub struct Watched {
    /// What it watches.
    pub target: WatchTarget,
    /// What it reads of blobs that it is told of.
    pub wants: Vec<Want>,
}

/// Bytes of a cell: what workloads mostly write, one number at a time.
pub const CELL: u64 = 8;

/// Where a workload has its blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// The keyspaces that blobs are in, one after the other, so that transactions span them; each
    /// with its chunk size.
    keyspaces: Vec<(KeyspaceId, u64)>,
    /// Workloads of the same name before this one: their blobs have other keys.
    alike: usize,
    /// The chunk size in bytes; the smallest of several keyspaces.
    pub chunk_size: u64,
}

impl Space {
    /// One keyspace with chunks of so many bytes.
    pub fn new(keyspace: KeyspaceId, chunk_size: u64) -> Self {
        Self::over(&[(keyspace, chunk_size)], 0)
    }

    /// Keyspaces, each with its chunk size, for a workload that so many of its name come before.
    ///
    /// # Panics
    /// When there is no keyspace.
    pub fn over(keyspaces: &[(KeyspaceId, u64)], alike: usize) -> Self {
        let chunk_size = keyspaces.iter().map(|(_, size)| *size).min();
        let chunk_size = chunk_size.expect("a workload is in some keyspace");
        Self { keyspaces: keyspaces.to_vec(), alike, chunk_size }
    }

    /// The name of a blob here.
    pub fn blob(&self, kind: &str, number: usize) -> BlobName {
        let key = match self.alike {
            0 => format!("{kind}/{number}"),
            alike => format!("{kind}{}/{number}", alike + 1),
        };
        let key = Key::new(key).expect("a short text is a key");
        BlobName { keyspace: self.keyspaces[number % self.keyspaces.len()].0, key }
    }

    /// Where a cell is: two to a blob, the second in its third chunk, with nothing before it.
    pub fn sparse_cell(&self, kind: &str, number: usize) -> (BlobName, u64) {
        let offset = (number % 2) as u64 * (2 * self.chunk_size + 3 * CELL);
        (self.blob(kind, number / 2), offset)
    }

    /// The chunk size of the keyspace that a blob is in.
    pub fn chunk_size_of(&self, blob: &BlobName) -> u64 {
        let its = self.keyspaces.iter().find(|(keyspace, _)| *keyspace == blob.keyspace);
        its.map_or(self.chunk_size, |(_, chunk_size)| *chunk_size)
    }

    /// More bytes than any blob of a workload gets.
    pub fn whole(&self) -> ByteRange {
        ByteRange { start: 0, end: 64 * self.chunk_size }
    }
}

/// Whether a number is changed or compared that lies in two chunks, which is refused.
pub fn is_in_two_chunks(written: &BlobOperations, chunk_size: u64) -> bool {
    let mut numbers = written.operations.iter().filter_map(Operation::number_range);
    numbers.any(|number| number.start / chunk_size != (number.end - 1) / chunk_size)
}

/// Numbers that are drawn once in a run.
#[derive(Clone, Copy, Debug)]
pub struct Unique(u64);

impl Unique {
    /// Those of one workload, told from others by the letter it is known by. None is zero.
    pub fn new(letter: u8) -> Self {
        Self(u64::from(letter) << 32)
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// The operations of a transaction on one blob.
pub fn on(blob: &BlobName, operations: impl Into<Vec<Operation>>) -> BlobOperations {
    BlobOperations { blob: blob.clone(), operations: operations.into() }
}

/// A number as the bytes of a cell.
pub fn cell(number: u64) -> Payload {
    cells(number, 1)
}

/// So many cells of one number.
pub fn cells(number: u64, count: u64) -> Payload {
    Payload::Inline(Bytes::from(number.to_le_bytes().repeat(count as usize)))
}

/// The numbers in the cells of what was read; none where it was not.
pub fn numbers(seen: &Seen) -> impl Iterator<Item = u64> {
    numbers_of(seen.bytes())
}

/// The numbers in the cells of these bytes.
pub fn numbers_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let cells = bytes.chunks_exact(CELL as usize);
    cells.map(|cell| u64::from_le_bytes(cell.try_into().expect("a cell has eight bytes")))
}

/// Checks each workload of a run, after its history was found right.
pub fn check(
    workloads: &[Box<dyn Workload>],
    history: &History,
    end: &Replayed<'_>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, workload) in workloads.iter().enumerate() {
        let entries = history.entries.iter();
        let deeds: Vec<&Entry> = entries.filter(|entry| entry.workload == number).collect();
        let verdict = workload.check(&deeds, end);
        wrong.extend(verdict.err().map(|text| format!("{}: {text}", workload.name())));
    }
    wrong
}

/// What deeds read at one timestamp over several blobs, all of it answered: each as one list.
/// Committed transactions, snapshots and `read_many`.
pub fn views<'a>(deeds: &[&'a Entry]) -> impl Iterator<Item = (&'a Entry, &'a [Seen])> {
    let is_view = |entry: &&&Entry| match &entry.deed {
        Deed::Transaction(attempted) => attempted.is_committed(),
        Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => true,
        Deed::Read(_) => false,
    };
    let views = deeds.iter().filter(is_view).map(|entry| (*entry, entry.seen()));
    let views: Vec<_> = views.filter(|(_, seen)| seen.iter().all(Seen::is_answered)).collect();
    views.into_iter()
}
