//! What is to be done: one transaction, as a value.

use tyr::{Bytes, Number, Relation, Timestamp, Transform, TransformKind};

use crate::layout::header::{ENTRIES_AT, FENCE, FENCE_AT, SUBDIRECTORIES_AT};
use crate::layout::key::Blob;
use crate::layout::record::{CTIME_AT, Identity, LINKS_AT, MTIME_AT, Time};

/// What must hold for a transaction to take effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// These bytes are there.
    Bytes(Blob, u64, Bytes),
    /// The number there stands so to this one.
    Number(Blob, u64, Relation, Number),
    /// There is no such blob.
    Absent(Blob),
    /// Nothing of the blob has changed since.
    Unchanged(Blob, Timestamp),
}

impl Condition {
    /// The file there is this one.
    pub fn identity(blob: &Blob, identity: Identity) -> Self {
        Self::Bytes(blob.clone(), 0, Bytes::copy_from_slice(&identity.encode()))
    }
}

/// What a transaction does.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Makes this a blob's content.
    Put(Blob, Bytes),
    /// Writes bytes.
    Write(Blob, u64, Bytes),
    /// Appends bytes.
    Append(Blob, Bytes),
    /// Cuts or extends a blob.
    Truncate(Blob, u64),
    /// Makes a hole of so many bytes from there on; what is behind the end stays as it is.
    Clear(Blob, u64, u64),
    /// Removes a blob.
    Delete(Blob),
    /// Arithmetic in place.
    Apply(Blob, u64, Transform),
}

/// One transaction, and what the operation answers once it is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft<T> {
    /// What must hold before.
    pub conditions: Vec<Condition>,
    /// What is done, in this order.
    pub changes: Vec<Change>,
    /// The answer.
    pub answer: T,
}

impl Draft<()> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { conditions: Vec::new(), changes: Vec::new(), answer: () }
    }

    /// With its answer.
    pub fn answering<T>(self, answer: T) -> Draft<T> {
        Draft { conditions: self.conditions, changes: self.changes, answer }
    }

    /// A condition more.
    pub fn require(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// Whoever is there is this one.
    pub fn require_identity(&mut self, blob: &Blob, identity: Identity) {
        self.require(Condition::identity(blob, identity));
    }

    /// Bytes are there.
    pub fn require_bytes(&mut self, blob: &Blob, offset: u64, bytes: impl AsRef<[u8]>) {
        let bytes = Bytes::copy_from_slice(bytes.as_ref());
        self.require(Condition::Bytes(blob.clone(), offset, bytes));
    }

    /// A change more.
    pub fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Makes bytes a blob's content.
    pub fn put(&mut self, blob: &Blob, bytes: impl AsRef<[u8]>) {
        let bytes = Bytes::copy_from_slice(bytes.as_ref());
        self.change(Change::Put(blob.clone(), bytes));
    }

    /// Writes bytes.
    pub fn write(&mut self, blob: &Blob, offset: u64, bytes: impl AsRef<[u8]>) {
        let bytes = Bytes::copy_from_slice(bytes.as_ref());
        self.change(Change::Write(blob.clone(), offset, bytes));
    }

    /// Removes a blob.
    pub fn delete(&mut self, blob: Blob) {
        self.change(Change::Delete(blob));
    }

    /// The record there is changed now: its ctime only rises.
    pub fn touch(&mut self, blob: &Blob, now: Time) {
        let transform = Transform::max(Number::I64(now.0));
        self.change(Change::Apply(blob.clone(), CTIME_AT, transform));
    }

    /// The content there is changed now: mtime is now, whatever it was set to before.
    pub fn modify(&mut self, blob: &Blob, now: Time) {
        self.write(blob, MTIME_AT, now.0.to_le_bytes());
        self.touch(blob, now);
    }

    /// A name more or less of the file whose inode is there.
    pub fn add_link(&mut self, blob: &Blob, is_more: bool) {
        let kind = if is_more { TransformKind::Add } else { TransformKind::Sub };
        let transform = Transform::new(kind, Number::U32(1)).expect("it is no division");
        self.change(Change::Apply(blob.clone(), LINKS_AT, transform));
    }

    /// The names of a directory change, now: so many more of them, and so many more directories.
    /// Its fence must hold.
    pub fn enter(&mut self, directory: u64, entries: i64, subdirectories: i64, now: Time) {
        let header = Blob::header(directory);
        self.require_bytes(&header, FENCE_AT, FENCE);
        for (at, count) in [(ENTRIES_AT, entries), (SUBDIRECTORIES_AT, subdirectories)] {
            if count != 0 {
                let transform = Transform::add(Number::I64(count));
                self.change(Change::Apply(header.clone(), at, transform));
            }
        }
        self.modify(&header, now);
    }
}
