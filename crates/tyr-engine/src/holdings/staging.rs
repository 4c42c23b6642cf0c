//! Large payloads of transactions in flight: written once, where they will stay.
//!
//! When a transaction is validated its large payloads go to extents, cut where chunks end; the log
//! refers to them, and so does the store when the transaction is applied. They are written with the
//! sync of that log record, which many share. What is not applied here, because it was aborted or
//! belongs to chunks of others, dies with its lease.
//!
//! ```text
//!   Validated ──stage──► extents ◄── log record      Decided ──take──► extents ◄── recent, base
//! ```
//!
//! The member keeps the payload itself: it may have to pass it on.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use tyr_store::recent::ExtentLease;
use tyr_store::store::Store;
use tyr_types::{
    BlobOperations, ByteRange, Bytes, ExtentRef, Operation, Payload, Result, Transaction,
    TransactionId, limits,
};

/// A payload that lies in extents.
#[derive(Debug)]
struct Staged {
    blob: usize,
    operation: usize,
    leases: Vec<Arc<ExtentLease>>,
}

/// Payloads of transactions in flight; bounded by what is in flight.
#[derive(Debug, Default)]
pub struct Staging(HashMap<TransactionId, Vec<Staged>, FixedState>);

/// Where the extents of a transaction's payloads were written, for one blob.
#[derive(Debug, Default)]
pub struct Written {
    leases: Vec<Arc<ExtentLease>>,
}

impl Staging {
    /// Writes the large payloads of a transaction to extents; answers it as the log keeps it, or
    /// `None` when it has no large payloads.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses; then nothing is kept.
    pub fn stage(
        &mut self,
        store: &Store,
        transaction: &Transaction,
        keyspace: impl Fn(&BlobOperations) -> (u64, bool),
    ) -> Result<Option<Transaction>> {
        if !transaction.blobs.iter().any(is_worth_it) {
            return Ok(None);
        }
        let staged = match self.0.entry(transaction.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(room) => room.insert(write(store, transaction, keyspace)?),
        };
        let mut kept = transaction.clone();
        for Staged { blob, operation, leases } in staged {
            // The log would have no byte of it.
            assert!(!leases.is_empty(), "a payload is logged before it is applied, not after");
            let extents = leases.iter().map(|lease| lease.extent()).collect();
            let operation = &mut kept.blobs[*blob].operations[*operation];
            *operation = operation.with_payload(Payload::Extents(extents));
        }
        Ok(Some(kept))
    }

    /// The operations on a blob of a transaction, with extents in the place of large payloads where
    /// that was prepared; and what answers for those.
    pub fn take(
        &mut self,
        id: TransactionId,
        blob: usize,
        entry: &BlobOperations,
    ) -> Option<(Vec<Operation>, Written)> {
        let staged = self.0.get_mut(&id)?;
        let mut operations: Option<Vec<Operation>> = None;
        let mut written = Written::default();
        for one in staged.iter_mut().filter(|it| it.blob == blob && !it.leases.is_empty()) {
            let operations = operations.get_or_insert_with(|| entry.operations.clone());
            let extents = one.leases.iter().map(|lease| lease.extent()).collect();
            let operation = &mut operations[one.operation];
            *operation = operation.with_payload(Payload::Extents(extents));
            written.leases.append(&mut one.leases);
        }
        Some((operations?, written))
    }

    /// The transaction is over here.
    pub fn end(&mut self, id: TransactionId) {
        if !self.0.is_empty() {
            self.0.remove(&id);
        }
    }

    /// Nothing is in flight any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Writes the large payloads of a transaction.
fn write(
    store: &Store,
    transaction: &Transaction,
    keyspace: impl Fn(&BlobOperations) -> (u64, bool),
) -> Result<Vec<Staged>> {
    let mut staged = Vec::new();
    for (blob, entry) in transaction.blobs.iter().enumerate() {
        let (chunk_size, is_compressed) = keyspace(entry);
        for (operation, what) in entry.operations.iter().enumerate() {
            let Some(bytes) = large(what).filter(|_| is_worth_it(entry)) else { continue };
            let pieces = pieces(start(what), bytes, chunk_size);
            let leases: Result<Vec<_>> =
                pieces.map(|piece| store.write_extent_later(piece, is_compressed)).collect();
            let leases: Vec<Arc<ExtentLease>> = leases?;
            let written: u64 = leases.iter().map(|lease| u64::from(lease.extent().len)).sum();
            assert_eq!(written, bytes.len() as u64, "a payload is written whole");
            staged.push(Staged { blob, operation, leases });
        }
    }
    Ok(staged)
}

impl Written {
    /// The store answers for these from now on.
    pub fn adopt(&self, placed: &BTreeSet<ExtentRef>) {
        for lease in self.leases.iter().filter(|lease| placed.contains(&lease.extent())) {
            lease.adopt();
        }
    }
}

/// Where extents lie in the blob, if each lies in one chunk of this size; `start` is where an
/// append goes.
pub(super) fn spans(
    operations: &[Operation],
    append_at: u64,
    chunk_size: u64,
) -> Option<Vec<(ExtentRef, ByteRange)>> {
    let mut spans = Vec::new();
    for operation in operations {
        let Some(Payload::Extents(extents)) = operation.payload() else { continue };
        let mut at = match operation {
            Operation::Append { expected, .. } => expected.unwrap_or(append_at),
            other => start(other),
        };
        for extent in extents {
            let span = ByteRange { start: at, end: at + u64::from(extent.len) };
            if span.start / chunk_size != (span.end - 1) / chunk_size {
                return None;
            }
            spans.push((*extent, span));
            at = span.end;
        }
    }
    Some(spans)
}

/// The operations with bytes in the place of extents.
///
/// # Errors
/// `Corrupt` and `Unavailable` as the disk has it.
pub fn inline(store: &Store, operations: &[Operation]) -> Result<Vec<Operation>> {
    let read = |operation: &Operation| -> Result<Operation> {
        let Some(Payload::Extents(extents)) = operation.payload() else {
            return Ok(operation.clone());
        };
        let mut bytes = vec![0; extents.iter().map(|extent| extent.len as usize).sum()];
        let mut rest = &mut bytes[..];
        for extent in extents {
            let (piece, next) = rest.split_at_mut(extent.len as usize);
            store.read_extent(extent, 0, piece)?;
            rest = next;
        }
        assert!(rest.is_empty(), "{} bytes of a payload were not read", rest.len());
        Ok(operation.with_payload(Payload::Inline(Bytes::from(bytes))))
    };
    operations.iter().map(read).collect()
}

/// The extents that payloads of a transaction lie in.
pub fn extents(transaction: &Transaction) -> impl Iterator<Item = &ExtentRef> {
    let operations = transaction.blobs.iter().flat_map(|entry| &entry.operations);
    let payloads = operations.filter_map(|operation| operation.payload());
    payloads.flat_map(|payload| match payload {
        Payload::Extents(extents) => &extents[..],
        Payload::Inline(_) | Payload::Stamped(_) | Payload::Uploaded(_) => &[],
    })
}

/// Whether any payload is by reference.
pub fn has_extents(transaction: &Transaction) -> bool {
    extents(transaction).next().is_some()
}

/// Whether a blob has large payloads, and nothing is computed over them in the same transaction.
fn is_worth_it(entry: &BlobOperations) -> bool {
    let is_apply = |operation: &Operation| matches!(operation, Operation::Apply { .. });
    entry.operations.iter().any(|operation| large(operation).is_some())
        && !entry.operations.iter().any(is_apply)
}

fn large(operation: &Operation) -> Option<&Bytes> {
    match operation.payload() {
        Some(Payload::Inline(bytes)) if bytes.len() >= limits::EXTENT_PAYLOAD_MIN => Some(bytes),
        // What a stamp is filled with is known when it is applied, and extents are written before.
        // What was uploaded ahead is there already.
        Some(
            Payload::Inline(_) | Payload::Extents(_) | Payload::Stamped(_) | Payload::Uploaded(_),
        )
        | None => None,
    }
}

/// Where a payload begins in its blob. An append that does not say lies in one chunk, wherever that
/// begins (C4).
fn start(operation: &Operation) -> u64 {
    match operation {
        Operation::Write { offset, .. } => *offset,
        Operation::Append { expected, .. } => expected.unwrap_or(0),
        Operation::Create
        | Operation::Truncate { .. }
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Apply { .. }
        | Operation::Compare { .. }
        | Operation::Replace { .. }
        | Operation::Expect { .. } => 0,
    }
}

/// `bytes`, which begin at `start`, cut where chunks end, and where extents have to.
fn pieces(start: u64, bytes: &Bytes, chunk_size: u64) -> impl Iterator<Item = Bytes> {
    let (mut at, mut rest) = (start, bytes.clone());
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let to_chunk_end = chunk_size - at % chunk_size;
        let len = to_chunk_end.min(limits::EXTENT_LEN_MAX.into()).min(rest.len() as u64);
        debug_assert_eq!(at / chunk_size, (at + len - 1) / chunk_size, "a piece is of one chunk");
        at += len;
        Some(rest.split_to(len as usize))
    })
}
