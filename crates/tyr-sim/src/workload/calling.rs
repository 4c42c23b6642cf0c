//! Calls of methods in a transaction of a client: what they read is read, what came of them is
//! committed.
//!
//! ```text
//!   methods ──► Within ── is it read already? ─┬─ yes: that, and on
//!      ▲                                       └─ no: the run is in vain
//!      └──────────── once more ◄── read ◄───────────┘
//!   they are through ──► what they wrote, as operations ──► commit, with all reads
//! ```
//!
//! A method runs in one go, and a client of a run makes one call after the other. So methods run
//! again from the beginning whenever they ask for what was not read yet: what is read of a blob is
//! of one timestamp, so they come at least as far. What counts is the run in which they asked for
//! nothing. That is before the commit; there is no class where nodes are, so nothing runs after it.
//!
//! How calls become operations is not said here: that is `tyr_class::object`, as in a node.

use tyr_class::Blobs;
use tyr_protocol::session::Want;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Error, Key, KeyspaceId, Operation, Payload, Result,
    Stat, Timestamp,
};

use super::on;
use crate::checker::{Called, Found, Seen};

/// Runs methods on what was read so far, at this time.
pub type Run = Box<dyn FnMut(&[Seen], u64) -> Ran>;

/// What came of running methods.
pub enum Ran {
    /// They need this, too.
    Wants(Want),
    /// They are through.
    Through {
        /// What they wrote.
        blobs: Vec<BlobOperations>,
        /// What was called, and answered.
        calls: Vec<Called>,
    },
}

/// A transaction, as methods see one.
pub struct Gathered<'a> {
    seen: &'a [Seen],
    /// What was asked for first and not read yet.
    missing: Option<Want>,
    written: Vec<BlobOperations>,
}

impl<'a> Gathered<'a> {
    /// One that has read this.
    pub fn new(seen: &'a [Seen]) -> Self {
        Self { seen, missing: None, written: Vec::new() }
    }

    /// Its blobs in a keyspace.
    pub fn within(&mut self, keyspace: KeyspaceId) -> Within<'_, 'a> {
        Within { gathered: self, keyspace }
    }

    /// What was found, or an error where it was not read yet.
    ///
    /// # Errors
    /// `Unavailable`, which ends a call.
    pub fn find(&mut self, want: Want) -> Result<&'a Seen> {
        let is_written = self.written.iter().any(|entry| entry.blob == want.blob);
        assert!(!is_written, "a draft reads before it hands on");
        let found = self.seen.iter().find(|seen| seen.want == want);
        found.ok_or_else(|| {
            self.missing.get_or_insert(want);
            Error::unavailable("it was not read yet")
        })
    }

    /// What was asked for first that was not read.
    pub fn missing(&self) -> Option<Want> {
        self.missing.clone()
    }

    /// Nothing of what was written is committed.
    pub fn drop_written(&mut self) {
        self.written.clear();
    }

    /// What was written.
    pub fn into_written(self) -> Vec<BlobOperations> {
        self.written
    }

    fn write(&mut self, blob: BlobName, operation: Operation) {
        match self.written.iter_mut().find(|entry| entry.blob == blob) {
            Some(entry) => entry.operations.push(operation),
            None => self.written.push(on(&blob, [operation])),
        }
    }
}

/// Blobs of a keyspace in a transaction.
pub struct Within<'a, 'b> {
    gathered: &'a mut Gathered<'b>,
    keyspace: KeyspaceId,
}

impl Within<'_, '_> {
    fn name(&self, key: &Key) -> BlobName {
        BlobName { keyspace: self.keyspace, key: key.clone() }
    }

    fn change(&mut self, key: &Key, operation: Operation) -> Result<()> {
        let blob = self.name(key);
        self.gathered.write(blob, operation);
        Ok(())
    }
}

impl Blobs for Within<'_, '_> {
    /// The version is not told: nobody here answers by it.
    fn stat(&mut self, key: &Key) -> Result<Option<Stat>> {
        let seen = self.gathered.find(Want::stat(self.name(key)))?;
        Ok(match &seen.found {
            Found::Bytes { size, .. } => {
                let size = size.expect("the attributes were asked for");
                Some(Stat { size, version: Timestamp::ZERO })
            }
            Found::Absent | Found::Nothing | Found::Refused(_) => None,
        })
    }

    fn read(&mut self, key: &Key, offset: u64, len: u64) -> Result<Bytes> {
        let range = ByteRange::at(offset, len)?;
        let want = Want { blob: self.name(key), range, is_attributes: range.is_empty() };
        Ok(Bytes::copy_from_slice(self.gathered.find(want)?.bytes()))
    }

    fn write(&mut self, key: &Key, offset: u64, data: Bytes) -> Result<()> {
        self.change(key, Operation::Write { offset, payload: Payload::Inline(data) })
    }

    fn truncate(&mut self, key: &Key, size: u64) -> Result<()> {
        self.change(key, Operation::Truncate { len: size })
    }

    fn delete(&mut self, key: &Key) -> Result<()> {
        self.change(key, Operation::Delete)
    }
}
