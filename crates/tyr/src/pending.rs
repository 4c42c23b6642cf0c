//! What a transaction has gathered so far: its operations, blob by blob, and what it read.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, Data, Error, KeyRange, KeyspaceId, Operation, OperationId, Payload,
    ReadCheck, Result, limits,
};

use crate::backend::{Backend, Commit, ExtentLease, ReadVersions, RemoteUpload, Space};

/// Transactions of up to this many blobs look for a blob by comparing names.
const FEW_BLOBS: usize = 8;

/// Operations and reads of a transaction that has not been committed.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    blobs: Vec<BlobOperations>,
    /// Where a blob's entry is, once there are too many to compare names.
    by_name: HashMap<BlobName, u32>,
    /// What it read, to be validated at commit.
    reads: Vec<ReadCheck>,
    /// What it read at a moment that needs no validation while it only reads.
    settled: Vec<ReadCheck>,
    /// Keys that it has listed.
    listed: usize,
    leases: Vec<Arc<ExtentLease>>,
    /// What was uploaded ahead of it, to a cluster.
    uploads: Vec<RemoteUpload>,
    operations: usize,
    /// Bytes that a transaction of a cluster carries.
    carried: usize,
}

/// Where a payload goes in its blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// It is all that the blob has.
    Replace,
    /// To this offset.
    Write(u64),
    /// To the blob's end, which is expected to be there if that is said.
    Append(Option<u64>),
}

impl Target {
    /// What puts the payload there.
    pub fn operation(self, payload: Payload) -> Operation {
        match self {
            Self::Replace => Operation::Replace { payload },
            Self::Write(offset) => Operation::Write { offset, payload },
            Self::Append(expected) => Operation::Append { payload, expected },
        }
    }
}

/// Refuses more bytes than a transaction of a cluster carries.
pub(crate) fn check_carried(len: usize) -> Result<()> {
    if len > limits::TRANSACTION_INLINE_MAX {
        return Err(Error::invalid(format!(
            "a transaction of a cluster carries at most {} bytes (16 MiB) of small payloads, \
             stamped ones and appends, this one has {len}; split it. In a cluster whose nodes are \
             not all of this release that goes for all payloads: upgrade them",
            limits::TRANSACTION_INLINE_MAX
        )));
    }
    Ok(())
}

impl Pending {
    /// Adds an operation.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits; the transaction stays as it was.
    pub fn add(&mut self, name: BlobName, operation: Operation) -> Result<OperationId> {
        operation.validate()?;
        if self.operations == limits::TRANSACTION_OPERATIONS_MAX {
            return Err(Error::invalid(format!(
                "a transaction has at most {} operations; commit this one and begin another",
                limits::TRANSACTION_OPERATIONS_MAX
            )));
        }
        self.operations += 1;
        let blob = self.entry(name);
        let operations = &mut self.blobs[blob as usize].operations;
        operations.push(operation);
        Ok(OperationId { blob, operation: operations.len() as u32 - 1 })
    }

    /// Turns data into a payload: by value when short, stamped or for a cluster, else written to
    /// extents at once.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails; `InvalidArgument` beyond what a transaction of
    /// a cluster carries.
    pub fn payload(&mut self, space: &Space, data: Data, target: Target) -> Result<Payload> {
        if let Space::Remote(space) = space
            && !(goes_ahead(&data, target) && space.may_upload())
        {
            self.carried += data.len();
            check_carried(self.carried)?;
        }
        let bytes = match data {
            Data::Bytes(bytes) => bytes,
            // What goes to extents is written before anybody knows what fills it.
            Data::Stamped(stamped) => return Ok(Payload::Stamped(Arc::new(stamped))),
        };
        let space = match space {
            Space::Embedded(space) if bytes.len() >= limits::EXTENT_PAYLOAD_MIN => space,
            Space::Embedded(_) | Space::Remote(_) => return Ok(Payload::Inline(bytes)),
        };
        let mut extents = Vec::new();
        for piece in bytes.chunks(limits::EXTENT_LEN_MAX as usize) {
            let lease = space.upload(piece)?;
            extents.push(lease.extent());
            self.leases.push(lease);
        }
        Ok(Payload::Extents(extents))
    }

    /// Takes responsibility for what was written by somebody else, to extents or to a cluster.
    pub fn hold(&mut self, leases: Vec<Arc<ExtentLease>>, upload: Option<RemoteUpload>) {
        self.leases.extend(leases);
        self.uploads.extend(upload);
    }

    /// Notes what was read, to be validated at commit; what is `settled`, only if the transaction
    /// does more than read.
    pub fn note_read(&mut self, check: ReadCheck, is_settled: bool) {
        match is_settled {
            true => self.settled.push(check),
            false => self.reads.push(check),
        }
    }

    /// Notes what was listed, `count` keys of it there: a page that goes on where the last one
    /// ended is one with it.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits; the transaction stays as it was.
    pub fn note_listing(&mut self, check: ReadCheck, count: usize, is_settled: bool) -> Result<()> {
        self.listed += count;
        if self.listed > limits::TRANSACTION_LISTED_MAX {
            self.listed -= count;
            return Err(Error::invalid(format!(
                "a transaction lists at most {} keys; list more in a snapshot, and have the \
                 transaction read what it depends on",
                limits::TRANSACTION_LISTED_MAX
            )));
        }
        let reads = if is_settled { &mut self.settled } else { &mut self.reads };
        match reads.iter_mut().find(|before| goes_on(before, &check)) {
            Some(ReadCheck { listed: Some(before), .. }) => {
                before.keys.end = check.listed.and_then(|listed| listed.keys.end);
            }
            Some(_) | None => reads.push(check),
        }
        Ok(())
    }

    /// The blobs of a keyspace with these keys that it writes, in order, with what it does to each.
    pub fn written_in(
        &self,
        keyspace: KeyspaceId,
        keys: &KeyRange,
    ) -> impl Iterator<Item = &BlobOperations> {
        let mut written: Vec<&BlobOperations> = self
            .blobs
            .iter()
            .filter(|entry| {
                entry.blob.keyspace == keyspace
                    && keys.contains(entry.blob.key.as_bytes())
                    && entry.operations.iter().any(Operation::is_write)
            })
            .collect();
        written.sort_unstable_by(|left, right| left.blob.cmp(&right.blob));
        written.into_iter()
    }

    /// The blobs that it has read; `None` when it does more than read.
    pub fn only_read(&self) -> Option<BTreeSet<BlobName>> {
        let all = self.reads.iter().chain(&self.settled).map(|check| check.blob.clone());
        self.blobs.is_empty().then(|| all.collect())
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.blobs.is_empty()
    }

    /// What the transaction does to a blob so far.
    pub fn operations_on(&self, name: &BlobName) -> &[Operation] {
        self.position(name).map_or(&[], |position| &self.blobs[position as usize].operations)
    }

    /// Commits it. `versions` are those that it read: they stay in use until they have been
    /// validated.
    pub fn commit(mut self, backend: &Backend, versions: ReadVersions) -> Commit {
        if !self.blobs.is_empty() {
            self.reads.append(&mut self.settled);
        }
        backend.commit(self.blobs, self.reads, versions, self.leases, self.uploads)
    }

    /// Operations per blob, to find an outcome by its id later.
    pub fn shape(&self) -> Vec<u32> {
        self.blobs.iter().map(|blob| blob.operations.len() as u32).collect()
    }

    fn entry(&mut self, blob: BlobName) -> u32 {
        if let Some(position) = self.position(&blob) {
            return position;
        }
        let position = self.blobs.len() as u32;
        if self.blobs.len() == FEW_BLOBS {
            let numbered = self.blobs.iter().zip(0..);
            self.by_name = numbered.map(|(entry, n)| (entry.blob.clone(), n)).collect();
        }
        if self.blobs.len() >= FEW_BLOBS {
            self.by_name.insert(blob.clone(), position);
        }
        self.blobs.push(BlobOperations { blob, operations: Vec::with_capacity(2) });
        position
    }

    fn position(&self, name: &BlobName) -> Option<u32> {
        if self.blobs.len() > FEW_BLOBS {
            return self.by_name.get(name).copied();
        }
        let position = self.blobs.iter().position(|entry| entry.blob == *name);
        position.map(|position| position as u32)
    }
}

/// Whether a listing begins where the one before ended.
fn goes_on(before: &ReadCheck, check: &ReadCheck) -> bool {
    let (Some(one), Some(next)) = (&before.listed, &check.listed) else { return false };
    before.blob == check.blob
        && before.at == check.at
        && one.is_keys_only == next.is_keys_only
        && one.keys.end.as_ref() == Some(&next.keys.start)
}

/// Whether a transaction of a cluster may leave these bytes to be uploaded ahead of it. What is
/// appended wherever the blob ends is, beyond what it carries: then it expects an end.
fn goes_ahead(data: &Data, target: Target) -> bool {
    let Data::Bytes(bytes) = data else { return false };
    match target {
        Target::Append(None) => bytes.len() > limits::TRANSACTION_INLINE_MAX,
        Target::Replace | Target::Write(_) | Target::Append(Some(_)) => {
            bytes.len() >= limits::EXTENT_PAYLOAD_MIN
        }
    }
}
