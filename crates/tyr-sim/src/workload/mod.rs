//! What clients do.
//!
//! A workload is some tens of lines: what must be there first (`set_up`), what a client does next
//! (`next`), and its own idea of what must come of it (`check`). It speaks of whole deeds, not of
//! calls; the [`runner`] makes the calls, one deed at a time for each client, and keeps the
//! history. Everything that it writes is unique, so that what a client read says who wrote it.

use tyr_types::{BlobName, BlobOperations, Key, KeyspaceId};

use crate::checker::{Entry, History, Seen, Wanted};
use crate::random::Random;

/// Something that clients do, with its own idea of what must come of it.
pub trait Workload {
    /// Its name, as scenarios have it.
    fn name(&self) -> &'static str;

    /// What is done before anything else, one after the other, each until it commits.
    fn set_up(&mut self) -> Vec<Work>;

    /// What `client` does next.
    fn next(&mut self, client: u16, random: &mut Random) -> Work;

    /// What came of what `client` did last.
    fn answered(&mut self, client: u16, entry: &Entry) {
        let _ = (client, entry);
    }

    /// What must have come of it all, beyond what every history must show. `number` is the
    /// workload's place in the run, by which the history knows its entries.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    fn check(&self, number: usize, history: &History, end: &dyn EndState) -> Result<(), String>;
}

/// What is there in the end, as every replica has it.
pub trait EndState {
    /// The bytes of a blob; `None` when it is absent.
    fn blob(&self, blob: &BlobName) -> Option<Vec<u8>>;
}

/// Something for a client to do.
pub enum Work {
    /// Commit this.
    Commit(Vec<BlobOperations>),
    /// Read, then commit what follows from what was read.
    Transact {
        /// What to read, one after the other.
        reads: Vec<Wanted>,
        /// What to do then; nothing makes it a transaction that only reads.
        then: Box<dyn FnOnce(&[Seen]) -> Vec<BlobOperations>>,
    },
    /// Read once.
    Read(Wanted),
    /// Read one after the other from one snapshot, with so long a pause before each but the first.
    Snapshot {
        /// What to read.
        reads: Vec<Wanted>,
        /// The pause in microseconds.
        pause_us: u64,
    },
    /// Read all at one timestamp, no older than now.
    ReadMany(Vec<Wanted>),
}

/// Where a workload has its blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// Its chunk size in bytes.
    pub chunk_size: u64,
}

impl Space {
    /// The name of a blob here.
    pub fn blob(&self, kind: &str, number: usize) -> BlobName {
        let key = Key::new(format!("{kind}/{number}")).expect("a short text is a key");
        BlobName { keyspace: self.keyspace, key }
    }
}
