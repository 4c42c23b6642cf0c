//! What a transaction has gathered so far: its operations, blob by blob, and what it read.

use std::collections::HashMap;
use std::sync::Arc;

use tyr_node::{ExtentLease, Held, KeyspaceEntry, Node, SnapshotGuard, Ticket};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Error, Operation, Payload, ReadCheck, Result,
    Timestamp, Transaction, limits,
};

/// Transactions of up to this many blobs look for a blob by comparing names.
const FEW_BLOBS: usize = 8;

/// Which operation of a transaction an outcome belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationId {
    blob: u32,
    operation: u32,
}

/// Operations and reads of a transaction that has not been committed.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    blobs: Vec<BlobOperations>,
    /// Where a blob's entry is, once there are too many to compare names.
    by_name: HashMap<BlobName, u32>,
    reads: Vec<ReadCheck>,
    leases: Vec<Arc<ExtentLease>>,
    operations: usize,
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

    /// Turns bytes into a payload: by value when short, else written to extents at once.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails.
    pub fn payload(
        &mut self,
        node: &Node,
        keyspace: &KeyspaceEntry,
        bytes: Bytes,
    ) -> Result<Payload> {
        if bytes.len() < limits::EXTENT_PAYLOAD_MIN {
            return Ok(Payload::Inline(bytes));
        }
        let mut extents = Vec::new();
        for piece in bytes.chunks(limits::EXTENT_LEN_MAX as usize) {
            let lease = node.upload(keyspace, piece)?;
            extents.push(lease.extent());
            self.leases.push(lease);
        }
        Ok(Payload::Extents(extents))
    }

    /// Takes responsibility for extents written by somebody else.
    pub fn hold(&mut self, leases: Vec<Arc<ExtentLease>>) {
        self.leases.extend(leases);
    }

    /// Notes what was read, to be validated at commit.
    pub fn note_read(
        &mut self,
        blob: BlobName,
        range: ByteRange,
        is_attributes: bool,
        at: Timestamp,
    ) {
        self.reads.push(ReadCheck { blob, range, is_attributes, at });
    }

    /// What the transaction does to a blob so far.
    pub fn operations_on(&self, name: &BlobName) -> &[Operation] {
        self.position(name).map_or(&[], |position| &self.blobs[position as usize].operations)
    }

    /// Commits it. `snapshot` is what its reads are of: it stays in use until they have been
    /// validated.
    pub fn commit(self, node: &Node, snapshot: Option<Arc<SnapshotGuard>>) -> Ticket {
        let transaction =
            Transaction { id: node.next_transaction_id(), blobs: self.blobs, reads: self.reads };
        node.commit(transaction, Held { leases: self.leases, snapshot })
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

impl OperationId {
    /// Where the outcome lies among all outcomes, given the operations per blob.
    pub(crate) fn index(self, shape: &[u32]) -> Option<usize> {
        let blob = self.blob as usize;
        if *shape.get(blob)? <= self.operation {
            return None;
        }
        let before: u32 = shape[..blob].iter().sum();
        Some((before + self.operation) as usize)
    }
}
