//! A transaction, for threads.

use std::collections::BTreeSet;

use tyr_runtime::waiting::block_on;
use tyr_types::{
    BlobName, ByteRange, Bytes, Data, Error, Existence, Expected, Number, Operation, OperationId,
    ReadCheck, Relation, Result, Stat, Timestamp, Transform, limits,
};

use super::Keyspace;
use super::keyspace::{read_range, too_large};
use crate::backend::{Backend, Commit, Found, Moment, ReadVersions, VersionedRead};
use crate::committed::Committed;
use crate::copying::BlobCopy;
use crate::key::ToKey;
use crate::overlay::{View, needed_range};
use crate::pending::{Pending, Target};

/// Operations on any blobs of any keyspaces that take effect together or not at all.
///
/// Writes are gathered here and sent at commit. Reads are at one version, see this transaction's
/// own writes, and are validated at commit. Dropping it without commit rolls it back.
#[derive(Debug)]
pub struct Transaction {
    backend: Backend,
    pub(super) pending: Pending,
    pub(super) versions: ReadVersions,
    /// Where it reads, when it is run again because of a conflict (R8).
    pub(super) moment: Option<Moment>,
    /// Whether everything it has read keeps older versions.
    pub(super) is_versioned: bool,
}

/// What has to be read from the store for one read of a transaction.
#[derive(Debug)]
struct ReadPlan {
    name: BlobName,
    /// What the user wants.
    wanted: ByteRange,
    /// What has to be read for it.
    needed: ByteRange,
    /// Whether the answer depends on where the blob ends, however much is read.
    is_attributes: bool,
    has_own_writes: bool,
}

impl Transaction {
    pub(crate) fn new(backend: Backend, moment: Option<Moment>) -> Self {
        let versions = ReadVersions::new(&backend, moment.as_ref());
        Self { backend, pending: Pending::default(), versions, moment, is_versioned: true }
    }

    /// The blobs that it has read, when it has done nothing else and could read them at a moment.
    pub(crate) fn only_read(&self) -> Option<BTreeSet<BlobName>> {
        self.pending.only_read().filter(|_| self.is_versioned)
    }

    /// Makes an empty blob; the commit fails with `AlreadyExists` if there is one.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits; so for every operation.
    pub fn create(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<OperationId> {
        self.pending.add(keyspace.blob(key)?, Operation::Create)
    }

    /// Makes a blob's content `data` and nothing else.
    ///
    /// # Errors
    /// `Unavailable` when a large payload meets a full disk; so for every operation with data.
    pub fn put(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        data: impl Into<Data>,
    ) -> Result<OperationId> {
        let name = keyspace.blob(key)?;
        let payload = self.pending.payload(&keyspace.space, data.into(), Target::Replace)?;
        self.pending.add(name, Operation::Replace { payload })
    }

    /// Writes `data` at `offset`; makes the blob if there is none; a gap reads as zeros.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn write(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        data: impl Into<Data>,
    ) -> Result<OperationId> {
        let (name, data) = (keyspace.blob(key)?, data.into());
        ByteRange::at(offset, data.len() as u64)?;
        let payload = self.pending.payload(&keyspace.space, data, Target::Write(offset))?;
        self.pending.add(name, Operation::Write { offset, payload })
    }

    /// Appends `data`; the offset it got is in [`Committed`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn append(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        data: impl Into<Data>,
    ) -> Result<OperationId> {
        self.append_if(keyspace, key, data.into(), None)
    }

    /// Appends `data` if the blob ends at `expected_offset` then; else the commit fails with
    /// `Conflict`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn append_at(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        expected_offset: u64,
        data: impl Into<Data>,
    ) -> Result<OperationId> {
        self.append_if(keyspace, key, data.into(), Some(expected_offset))
    }

    fn append_if(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        data: Data,
        expected: Option<u64>,
    ) -> Result<OperationId> {
        let name = keyspace.blob(key)?;
        let payload = self.pending.payload(&keyspace.space, data, Target::Append(expected))?;
        self.pending.add(name, Operation::Append { payload, expected })
    }

    /// Cuts a blob to `len` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn truncate(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        len: u64,
    ) -> Result<OperationId> {
        self.pending.add(keyspace.blob(key)?, Operation::Truncate { len })
    }

    /// Makes a hole of `len` bytes at `offset`: they read as zeros, and take no space. What lies
    /// behind the blob's end stays as it is, and so does an absent blob.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn clear(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        len: u64,
    ) -> Result<OperationId> {
        let range = ByteRange::at(offset, len)?;
        self.pending.add(keyspace.blob(key)?, Operation::Clear { range })
    }

    /// Removes a blob; whether there was one is in [`Committed`].
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<OperationId> {
        self.pending.add(keyspace.blob(key)?, Operation::Delete)
    }

    /// Does arithmetic in place; the new value is in [`Committed`].
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn apply(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        transform: Transform,
    ) -> Result<OperationId> {
        self.pending.add(keyspace.blob(key)?, Operation::Apply { offset, transform })
    }

    /// Adds a condition: the commit fails with `Conflict` unless exactly `expected` is at
    /// `offset`, before the writes of this transaction.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn compare(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        expected: impl Into<Bytes>,
    ) -> Result<OperationId> {
        let operation = Operation::Compare { offset, expected: expected.into().into() };
        self.pending.add(keyspace.blob(key)?, operation)
    }

    /// Adds a condition: the commit fails with `Conflict` unless the number at `offset`, of the
    /// type of `value`, stands so to it, before the writes of this transaction: `x relation value`.
    /// One that was never written is zero. In a cluster it lies in one chunk.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn compare_number(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        relation: Relation,
        value: Number,
    ) -> Result<OperationId> {
        let expected = Expected::Number { relation, value };
        self.pending.add(keyspace.blob(key)?, Operation::Compare { offset, expected })
    }

    /// Adds a condition: the commit fails with `AlreadyExists` if there is a blob, after what this
    /// transaction did to it before.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn expect_absent(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<OperationId> {
        let operation = Operation::Expect { existence: Existence::Absent };
        self.pending.add(keyspace.blob(key)?, operation)
    }

    /// Adds a condition: the commit fails with `NotFound` unless there is a blob, after what this
    /// transaction did to it before.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn expect_present(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<OperationId> {
        let operation = Operation::Expect { existence: Existence::Present };
        self.pending.add(keyspace.blob(key)?, operation)
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
        self.expect_unchanged(keyspace, key, ByteRange::NOTHING, version)
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
        let range = read_range(offset, len)?;
        match range.is_empty() {
            true => keyspace.blob(key).map(drop),
            false => self.expect_unchanged(keyspace, key, range, version),
        }
    }

    /// As if the range, or with none size and version, had been read at `version` (C11).
    fn expect_unchanged(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        range: ByteRange,
        version: Timestamp,
    ) -> Result<()> {
        let (blob, is_attributes) = (keyspace.blob(key)?, range.is_empty());
        let check = ReadCheck { blob, range, is_attributes, at: version, listed: None };
        self.is_versioned &= keyspace.space.info().config.is_multi_versioned;
        self.pending.note_read(check, false);
        Ok(())
    }

    /// Reads up to `len` bytes at `offset`; fewer where the blob ends.
    ///
    /// # Errors
    /// `NotFound` (which is validated at commit like any answer), `InvalidArgument` above 64 MiB,
    /// `SnapshotTooOld` after 5 minutes, `Corrupt`.
    pub fn read(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        offset: u64,
        len: u64,
    ) -> Result<Bytes> {
        let range = read_range(offset, len)?;
        self.read_part(keyspace, key, range).map(|(_, bytes)| bytes)
    }

    /// Reads a whole blob of up to 64 MiB.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub fn get(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<Bytes> {
        let key = key.to_key()?;
        let size = self.stat(keyspace, &key)?.size;
        if size > limits::READ_LEN_MAX {
            return Err(too_large(&key, size));
        }
        self.read(keyspace, &key, 0, size)
    }

    /// A blob's size, with this transaction's own writes, and the version that was read. Both are
    /// validated at commit: whatever others write of the blob meanwhile is a conflict. Who depends
    /// on some bytes only reads those.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub fn stat(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<Stat> {
        self.read_part(keyspace, key, ByteRange::NOTHING).map(|(stat, _)| stat)
    }

    /// Copies a blob, or a range of one, into another with this transaction; answers how many
    /// bytes, holes among them. It is a read of the source, at the version at which the transaction
    /// reads that blob, and validated at commit like any other; and a write of what was read. The
    /// rest is as [`Tyr::copy`](super::Tyr::copy) has it.
    ///
    /// # Errors
    /// As [`Tyr::copy`](super::Tyr::copy), and `InvalidArgument` for a source that this transaction
    /// has written: copy first. A transaction in which a copy failed is not to be committed.
    pub fn copy(&mut self, copy: &BlobCopy) -> Result<u64> {
        block_on(self.fetch_copy(copy))
    }

    /// The same, for async code.
    pub(crate) async fn fetch_copy(&mut self, copy: &BlobCopy) -> Result<u64> {
        let (from, name) = copy.source();
        if !self.backend.is(&from.space.backend()) {
            return Err(Error::invalid(format!(
                "keyspace {} is of another store than the transaction; find it in the same one",
                from.name()
            )));
        }
        if !self.pending.operations_on(name).is_empty() {
            return Err(Error::invalid(format!(
                "this transaction has written {name}, and what it wrote is not copied: copy first, \
                 or commit what was written"
            )));
        }
        let (view, size) = self.versions.take_view_of(&from.space, name).await?;
        let range = size.map(|size| copy.range_in(size)).transpose()?;
        let check = ReadCheck {
            blob: name.clone(),
            range: range.unwrap_or(ByteRange::NOTHING),
            is_attributes: size.is_none_or(|size| copy.is_sized(size)),
            at: view.at(),
            listed: None,
        };
        self.note(from, check);
        let range = range.ok_or_else(|| from.absent(name))?;
        let gathered = copy.gather(&view, range).await;
        let gathered = gathered.map_err(|error| self.backend.named(error))?;
        let len = gathered.len();
        gathered.add_to(&mut self.pending)?;
        Ok(len)
    }

    /// Commits: everything takes effect, at once, or nothing.
    ///
    /// # Errors
    /// `Conflict` when something that was read has changed, or a condition does not hold, which
    /// [`Error::operation`](tyr_types::Error::operation) tells;
    /// `AlreadyExists` for a `create` or `expect_absent`; `NotFound` for an `expect_present`;
    /// `Unavailable`. Nothing changed then.
    pub fn commit(self) -> Result<Committed> {
        let (commit, shape) = self.begin_commit();
        Ok(Committed::new(commit.wait()?, shape))
    }

    /// The same transaction, with all that it has gathered and read, for async code.
    pub fn into_async(self) -> crate::Transaction {
        crate::Transaction::from_blocking(self)
    }

    /// Takes everything back. Dropping the transaction does the same.
    pub fn rollback(self) {
        drop(self);
    }

    /// Sends it.
    pub(crate) fn begin_commit(self) -> (Commit, Vec<u32>) {
        let shape = self.pending.shape();
        (self.pending.commit(&self.backend, self.versions), shape)
    }

    /// Reads a range, empty for size and version alone.
    pub(super) fn read_part(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        wanted: ByteRange,
    ) -> Result<(Stat, Bytes)> {
        let plan = self.plan_read(keyspace, key, wanted)?;
        let (name, needed, is_attributes) = (&plan.name, plan.needed, plan.is_attributes);
        let read = self.versions.read(&keyspace.space, name, needed, is_attributes)?;
        self.finish_read(keyspace, &plan, read)
    }

    /// The same, for async code.
    pub(crate) async fn fetch_part(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        wanted: ByteRange,
    ) -> Result<(Stat, Bytes)> {
        let plan = self.plan_read(keyspace, key, wanted)?;
        let (name, needed, is_attributes) = (&plan.name, plan.needed, plan.is_attributes);
        let read = self.versions.fetch(&keyspace.space, name, needed, is_attributes).await?;
        self.finish_read(keyspace, &plan, read)
    }

    fn plan_read(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        wanted: ByteRange,
    ) -> Result<ReadPlan> {
        let name = keyspace.blob(key)?;
        let operations = self.pending.operations_on(&name);
        let needed = needed_range(operations, wanted);
        let has_own_writes = !operations.is_empty();
        let is_attributes = wanted.is_empty() || has_own_writes;
        Ok(ReadPlan { name, wanted, needed, is_attributes, has_own_writes })
    }

    /// Notes what was read of a blob, to be validated.
    fn note(&mut self, keyspace: &Keyspace, check: ReadCheck) {
        let is_versioned = keyspace.space.info().config.is_multi_versioned;
        self.is_versioned &= is_versioned;
        let moment = self.moment.as_ref().filter(|_| is_versioned);
        let is_settled = moment.is_some_and(|moment| moment.settles(&check.blob));
        self.pending.note_read(check, is_settled);
    }

    /// Notes the read and lays the transaction's own writes over what was found. Answers size and
    /// version, and the wanted bytes.
    fn finish_read(
        &mut self,
        keyspace: &Keyspace,
        plan: &ReadPlan,
        read: VersionedRead,
    ) -> Result<(Stat, Bytes)> {
        self.note(keyspace, read.check);
        let version = read.answer.as_ref().map_or(Timestamp::ZERO, |found| found.version);
        // Where the size is not known, all that was wanted is there.
        let size = |found: &Found| found.size.unwrap_or(plan.needed.end);
        if !plan.has_own_writes {
            let found = read.answer.ok_or_else(|| keyspace.absent(&plan.name))?;
            return Ok((Stat { size: size(&found), version }, found.bytes));
        }
        let (size, bytes) = match read.answer {
            Some(found) => (Some(size(&found)), found.bytes),
            None => (None, Bytes::new()),
        };
        let mut bytes = bytes.to_vec();
        bytes.resize(plan.needed.len() as usize, 0);
        let mut view = View { range: plan.needed, bytes, size };
        view.play(&self.backend, self.pending.operations_on(&plan.name))?;
        let size = view.size.ok_or_else(|| keyspace.absent(&plan.name))?;
        let wanted = plan.wanted.intersection(ByteRange { start: 0, end: size });
        let start = (wanted.start - plan.needed.start) as usize;
        let bytes = Bytes::from(view.bytes).slice(start..start + wanted.len() as usize);
        Ok((Stat { size, version }, bytes))
    }
}
