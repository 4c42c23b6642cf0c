//! A transaction, for async code.

use std::collections::BTreeSet;

use tyr_types::{
    BlobName, ByteRange, Bytes, Data, Number, OperationId, Relation, Result, Scan, ScanPage, Stat,
    Timestamp, Transform, limits,
};

use crate::committed::Committed;
use crate::copying::BlobCopy;
use crate::key::ToKey;
use crate::{Keyspace, Lock, blocking};

/// Operations on any blobs of any keyspaces that take effect together or not at all.
///
/// Writes are gathered here and sent at commit. Reads are at one version, see this transaction's
/// own writes, and are validated at commit. Dropping it without commit rolls it back.
#[derive(Debug)]
pub struct Transaction {
    inner: blocking::Transaction,
}

/// Passes a method that only gathers on to the blocking transaction.
macro_rules! gather {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// `InvalidArgument` beyond the limits; `Unavailable` when a large payload meets a full
        /// disk.
        pub fn $name(
            &mut self,
            keyspace: &Keyspace,
            key: impl ToKey,
            $($argument: $type),*
        ) -> Result<OperationId> {
            self.inner.$name(keyspace.as_blocking(), key, $($argument),*)
        }
    };
}

impl Transaction {
    pub(crate) fn from_blocking(inner: blocking::Transaction) -> Self {
        Self { inner }
    }

    /// The same transaction, for threads.
    pub fn into_blocking(self) -> blocking::Transaction {
        self.inner
    }

    gather! {
        /// Makes an empty blob; the commit fails with `AlreadyExists` if there is one.
        create()
    }
    gather! {
        /// Makes a blob's content `data` and nothing else.
        put(data: impl Into<Data>)
    }
    gather! {
        /// Writes `data` at `offset`; makes the blob if there is none; a gap reads as zeros.
        write(offset: u64, data: impl Into<Data>)
    }
    gather! {
        /// Appends `data`; the offset it got is in [`Committed`].
        append(data: impl Into<Data>)
    }
    gather! {
        /// Appends `data` if the blob ends at `expected_offset` then; else the commit fails with
        /// `Conflict`.
        append_at(expected_offset: u64, data: impl Into<Data>)
    }
    gather! {
        /// Cuts a blob to `len` bytes, or extends it with zeros.
        truncate(len: u64)
    }
    gather! {
        /// Makes a hole of `len` bytes at `offset`: they read as zeros, and take no space. What
        /// lies behind the blob's end stays as it is, and so does an absent blob.
        clear(offset: u64, len: u64)
    }
    gather! {
        /// Removes a blob; whether there was one is in [`Committed`].
        delete()
    }
    gather! {
        /// Does arithmetic in place; the new value is in [`Committed`].
        apply(offset: u64, transform: Transform)
    }
    gather! {
        /// Adds a condition: the commit fails with `Conflict` unless exactly `expected` is at
        /// `offset`.
        compare(offset: u64, expected: impl Into<Bytes>)
    }
    gather! {
        /// Adds a condition: the commit fails with `Conflict` unless the number at `offset`, of
        /// the type of `value`, stands so to it, before the writes of this transaction: `x
        /// relation value`. One that was never written is zero. In a cluster it lies in one chunk.
        compare_number(offset: u64, relation: Relation, value: Number)
    }
    gather! {
        /// Adds a condition: the commit fails with `AlreadyExists` if there is a blob, after what
        /// this transaction did to it before.
        expect_absent()
    }
    gather! {
        /// Adds a condition: the commit fails with `NotFound` unless there is a blob, after what
        /// this transaction did to it before.
        expect_present()
    }

    /// Adds the condition that nobody has got the lock since (K4): the commit fails with `Conflict`
    /// if somebody has, whatever this process thinks that it holds.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn fence(&mut self, lock: &Lock) -> Result<OperationId> {
        lock.fence(&mut self.inner)
    }

    /// Adds a condition: the commit fails with `Conflict` if anything of the blob was written after
    /// `version`, which [`Stat`] or a commit told: whether it is there, its size, or any byte. It
    /// is what a `stat` of this transaction would have added then.
    ///
    /// # Errors
    /// `InvalidArgument` for a key beyond the limits.
    pub fn expect_version(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        version: Timestamp,
    ) -> Result<()> {
        self.inner.expect_version(keyspace.as_blocking(), key, version)
    }

    /// Adds a condition on what the caller knows without reading it: the commit fails with
    /// `Conflict` if any of the `len` bytes at `offset` was written, cut off or deleted after
    /// `version`. That is any moment of this store at which they were as the caller knows them:
    /// what a commit, a [`Stat`] or a snapshot told. The store need not remember which of the bytes
    /// beside each other were written when: a write near them, after that moment, may be a conflict
    /// too, and then they are to be read anew. Of no bytes nothing is assumed.
    ///
    /// # Errors
    /// `InvalidArgument` above 64 MiB and beyond the limits.
    pub fn assume(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        len: u64,
        version: Timestamp,
    ) -> Result<()> {
        self.inner.assume(keyspace.as_blocking(), key, offset, len, version)
    }

    /// Reads up to `len` bytes at `offset`; fewer where the blob ends.
    ///
    /// # Errors
    /// `NotFound` (which is validated at commit like any answer), `InvalidArgument` above 64 MiB,
    /// `SnapshotTooOld` after 5 minutes, `Corrupt`.
    pub async fn read(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        len: u64,
    ) -> Result<Bytes> {
        let range = blocking::read_range(offset, len)?;
        self.read_range(keyspace, key, range).await.map(|(_, bytes)| bytes)
    }

    /// Reads a whole blob of up to 64 MiB.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub async fn get(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<Bytes> {
        let key = key.to_key()?;
        let size = self.stat(keyspace, &key).await?.size;
        if size > limits::READ_LEN_MAX {
            return Err(blocking::too_large(&key, size));
        }
        self.read(keyspace, &key, 0, size).await
    }

    /// A blob's size, with this transaction's own writes, and the version that was read. Both are
    /// validated at commit: whatever others write of the blob meanwhile is a conflict. Who depends
    /// on some bytes only reads those.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub async fn stat(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<Stat> {
        self.read_range(keyspace, key, ByteRange::NOTHING).await.map(|(stat, _)| stat)
    }

    /// Copies a blob, or a range of one, into another with this transaction; answers how many
    /// bytes, holes among them. It is a read of the source, at the version at which the transaction
    /// reads that blob, and validated at commit like any other; and a write of what was read. The
    /// rest is as [`Tyr::copy`](crate::Tyr::copy) has it.
    ///
    /// # Errors
    /// As [`Tyr::copy`](crate::Tyr::copy), and `InvalidArgument` for a source that this transaction
    /// has written: copy first. A transaction in which a copy failed is not to be committed.
    pub async fn copy(&mut self, copy: &BlobCopy) -> Result<u64> {
        self.inner.fetch_copy(copy).await
    }

    /// Lists a page of the keys of one group, with sizes and versions, and first bytes if they are
    /// asked for, at one version and with this transaction's own writes. What it shows is validated
    /// at commit: a key that came or went in what it covers, or, unless only keys were listed, a
    /// blob in it that was written is a conflict. That is up to where the page ends.
    /// [`Scan::resumed`] goes on behind it.
    ///
    /// # Errors
    /// `InvalidArgument` where the keys may be of several groups, which the keyspace's
    /// [`PlacedBy`](tyr_types::PlacedBy) says, for a delimiter, and beyond 10,000 keys;
    /// `SnapshotTooOld`; `Unavailable` in a cluster of before feature level 13.
    pub async fn scan_page(&mut self, keyspace: &Keyspace, scan: &Scan) -> Result<ScanPage> {
        self.inner.fetch_page(keyspace.as_blocking(), scan).await
    }

    /// The blobs that it has read, when it has done nothing else.
    pub(crate) fn only_read(&self) -> Option<BTreeSet<BlobName>> {
        self.inner.only_read()
    }

    /// Commits: everything takes effect, at once, or nothing.
    ///
    /// # Errors
    /// `Conflict` when something that was read has changed, or a condition does not hold, which
    /// [`Error::operation`](tyr_types::Error::operation) tells;
    /// `AlreadyExists` for a `create` or `expect_absent`; `NotFound` for an `expect_present`;
    /// `Unavailable`. Nothing changed then.
    pub async fn commit(self) -> Result<Committed> {
        let (commit, shape) = self.inner.begin_commit();
        Ok(Committed::new(commit.await?, shape))
    }

    /// Takes everything back. Dropping the transaction does the same.
    pub fn rollback(self) {
        drop(self);
    }

    async fn read_range(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        range: ByteRange,
    ) -> Result<(Stat, Bytes)> {
        self.inner.fetch_part(keyspace.as_blocking(), key, range).await
    }
}
