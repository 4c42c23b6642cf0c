//! A transaction, for threads.

use std::sync::Arc;

use tyr_node::{Node, SnapshotGuard, Ticket};
use tyr_types::{
    BlobName, ByteRange, Bytes, Operation, Result, Stat, Timestamp, Transform, limits,
};

use super::Keyspace;
use super::keyspace::{read_range, too_large};
use crate::committed::Committed;
use crate::key::ToKey;
use crate::overlay::{View, needed_range};
use crate::pending::{OperationId, Pending};

/// Operations on any blobs of any keyspaces that take effect together or not at all.
///
/// Writes are gathered here and sent at commit. Reads are at one version, see this transaction's
/// own writes, and are validated at commit. Dropping it without commit rolls it back.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) node: Arc<Node>,
    pub(crate) pending: Pending,
    /// The version that is read, from the first read on.
    snapshot: Option<Arc<SnapshotGuard>>,
}

/// What has to be read from the store for one read of a transaction.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    pub name: BlobName,
    pub guard: Arc<SnapshotGuard>,
    /// What the user wants.
    wanted: ByteRange,
    /// What has to be read for it.
    pub needed: ByteRange,
    has_own_writes: bool,
}

impl Transaction {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, pending: Pending::default(), snapshot: None }
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
        data: impl Into<Bytes>,
    ) -> Result<OperationId> {
        let name = keyspace.blob(key)?;
        let payload = self.pending.payload(&self.node, &keyspace.entry, data.into())?;
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
        data: impl Into<Bytes>,
    ) -> Result<OperationId> {
        let (name, data) = (keyspace.blob(key)?, data.into());
        ByteRange::at(offset, data.len() as u64)?;
        let payload = self.pending.payload(&self.node, &keyspace.entry, data)?;
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
        data: impl Into<Bytes>,
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
        data: impl Into<Bytes>,
    ) -> Result<OperationId> {
        self.append_if(keyspace, key, data.into(), Some(expected_offset))
    }

    fn append_if(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        data: Bytes,
        expected: Option<u64>,
    ) -> Result<OperationId> {
        let name = keyspace.blob(key)?;
        let payload = self.pending.payload(&self.node, &keyspace.entry, data)?;
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
        let operation = Operation::Compare { offset, expected: expected.into() };
        self.pending.add(keyspace.blob(key)?, operation)
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
        let plan = self.plan_read(keyspace, key, read_range(offset, len)?)?;
        plan.guard.settle()?;
        let answer = self.node.read(&keyspace.entry, &plan.name, plan.needed, plan.guard.at())?;
        let answer = answer.map(|(attributes, bytes)| (attributes.size, bytes));
        self.finish_read(keyspace, plan, answer).map(|(_, bytes)| bytes)
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

    /// A blob's size, with this transaction's own writes, and the version that was read.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub fn stat(&mut self, keyspace: &Keyspace, key: impl ToKey) -> Result<Stat> {
        let plan = self.plan_read(keyspace, key, ByteRange { start: 0, end: 0 })?;
        plan.guard.settle()?;
        let found = self.node.attributes(&keyspace.entry, &plan.name, plan.guard.at())?;
        let version = found.map_or(Timestamp::ZERO, |attributes| attributes.version);
        let answer = found.map(|attributes| (attributes.size, Bytes::new()));
        let (size, _) = self.finish_read(keyspace, plan, answer)?;
        Ok(Stat { size, version })
    }

    /// Commits: everything takes effect, at once, or nothing.
    ///
    /// # Errors
    /// `Conflict` when something that was read has changed, or a condition does not hold;
    /// `AlreadyExists` for a `create`; `Unavailable`. Nothing changed then.
    pub fn commit(self) -> Result<Committed> {
        let (ticket, shape) = self.begin_commit();
        Ok(Committed::new(ticket.wait()?, shape))
    }

    /// Takes everything back. Dropping the transaction does the same.
    pub fn rollback(self) {
        drop(self);
    }

    /// Sends it.
    pub(crate) fn begin_commit(self) -> (Ticket, Vec<u32>) {
        let shape = self.pending.shape();
        (self.pending.commit(&self.node, self.snapshot), shape)
    }

    pub(crate) fn plan_read(
        &mut self,
        keyspace: &Keyspace,
        key: impl ToKey,
        wanted: ByteRange,
    ) -> Result<ReadPlan> {
        let name = keyspace.blob(key)?;
        let guard = match &self.snapshot {
            Some(guard) => Arc::clone(guard),
            None => {
                let guard = Arc::new(self.node.snapshot()?);
                self.snapshot = Some(Arc::clone(&guard));
                guard
            }
        };
        let operations = self.pending.operations_on(&name);
        let needed = needed_range(operations, wanted);
        let has_own_writes = !operations.is_empty();
        Ok(ReadPlan { name, guard, wanted, needed, has_own_writes })
    }

    /// Notes the read and lays the transaction's own writes over `answer` (size and bytes of the
    /// needed range; `None`: absent). Answers the size and the wanted bytes.
    pub(crate) fn finish_read(
        &mut self,
        keyspace: &Keyspace,
        plan: ReadPlan,
        answer: Option<(u64, Bytes)>,
    ) -> Result<(u64, Bytes)> {
        let is_short = answer.as_ref().is_none_or(|(size, _)| *size < plan.wanted.end);
        let is_attributes = is_short || plan.wanted.is_empty() || plan.has_own_writes;
        let at = plan.guard.at();
        self.pending.note_read(plan.name.clone(), plan.needed, is_attributes, at);
        if !plan.has_own_writes {
            return answer.ok_or_else(|| keyspace.absent(&plan.name));
        }
        let (size, bytes) = match answer {
            Some((size, bytes)) => (Some(size), bytes),
            None => (None, Bytes::new()),
        };
        let mut bytes = bytes.to_vec();
        bytes.resize(plan.needed.len() as usize, 0);
        let mut view = View { range: plan.needed, bytes, size };
        view.play(&self.node, self.pending.operations_on(&plan.name))?;
        let size = view.size.ok_or_else(|| keyspace.absent(&plan.name))?;
        let wanted = plan.wanted.intersection(ByteRange { start: 0, end: size });
        let start = (wanted.start - plan.needed.start) as usize;
        let bytes = Bytes::from(view.bytes).slice(start..start + wanted.len() as usize);
        Ok((size, bytes))
    }
}
