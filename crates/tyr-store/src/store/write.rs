//! Writing: what a commit needs before it takes the arbiter's lock, and what happens under it.

use std::sync::Arc;

use parking_lot::MutexGuard;
use smallvec::SmallVec;
use tyr_types::{
    BlobName, ByteRange, Bytes, ExtentRef, KeyspaceId, Operation, Outcome, Result, Timestamp,
    Transaction,
};

use super::Store;
use crate::recent::plan::Missing;
use crate::recent::{Applying, BlobCell, BlobState, ExtentLease, Readers};

/// The blobs of a transaction in memory, one for each of its entries, held until it is applied.
pub type Cells = SmallVec<[Arc<BlobCell>; 4]>;

impl Store {
    /// Brings the attributes of every blob of `transaction` into memory, and the bytes that its
    /// transforms and conditions look at.
    ///
    /// # Errors
    /// `InvalidArgument` when an append would make a blob too large; `Corrupt` and `Unavailable` as
    /// the disk has it.
    pub fn prepare(&self, transaction: &Transaction) -> Result<Cells> {
        let mut cells = Cells::with_capacity(transaction.blobs.len());
        for entry in &transaction.blobs {
            let cell = self.cell(&entry.blob)?;
            check_appends(cell.lock().attributes().size, &entry.operations)?;
            for range in entry.operations.iter().filter_map(needed) {
                self.make_resident(&cell, range)?;
            }
            cells.push(cell);
        }
        Ok(cells)
    }

    /// Brings blobs into memory for as long as the answer is held, so that
    /// [`Store::newest_overlapping`] knows of them whatever was folded.
    ///
    /// # Errors
    /// As [`Store::prepare`].
    pub fn hold<'a>(&self, blobs: impl IntoIterator<Item = &'a BlobName>) -> Result<Cells> {
        blobs.into_iter().map(|blob| self.cell(blob)).collect()
    }

    /// Applies a committed transaction to all its blobs at once; answers one outcome an operation.
    ///
    /// Call it in timestamp order, one at a time (C6). `readers` says who reads older versions of
    /// a keyspace: the fold under way always does.
    ///
    /// # Errors
    /// Only when bytes that a transform needs cannot be read again: some left memory meanwhile,
    /// and nothing has been applied then; or it changes a large payload of its own transaction,
    /// and then only reopening shows the transaction whole.
    pub fn apply<'a>(
        &self,
        transaction: &Transaction,
        cells: &[Arc<BlobCell>],
        at: Timestamp,
        readers: impl Fn(KeyspaceId) -> Readers<'a>,
    ) -> Result<Vec<Outcome>> {
        assert_eq!(
            transaction.blobs.len(),
            cells.len(),
            "each blob is held, or it would be left out"
        );
        debug_assert!(
            transaction.blobs.iter().zip(cells).all(|(entry, cell)| entry.blob == *cell.name()),
            "the blobs that are held are the transaction's, in its order"
        );
        let mut states = self.lock_resident(transaction, cells)?;
        let mut outcomes = Vec::with_capacity(transaction.blobs.len() * 2);
        for ((entry, cell), state) in transaction.blobs.iter().zip(cells).zip(&mut states) {
            let readers = readers(entry.blob.keyspace);
            let applying = Applying { at, readers, dead: self.recent.dead() };
            self.recent.change(cell, state, |state| {
                // A large payload takes what it covers out of memory, where transforms behind it
                // need it.
                for operations in entry.operations.split_inclusive(Operation::has_extents) {
                    for range in operations.iter().filter_map(Operation::transformed) {
                        self.fetch_own(&entry.blob, state, range)?;
                    }
                    let first = outcomes.len();
                    outcomes.resize(first + operations.len(), Outcome::Done);
                    for (number, outcome) in state.apply(operations, applying) {
                        outcomes[first + number] = outcome;
                    }
                }
                Ok(())
            })?;
        }
        let operations = transaction.blobs.iter().map(|entry| entry.operations.len());
        debug_assert_eq!(outcomes.len(), operations.sum(), "an outcome for each operation");
        Ok(outcomes)
    }

    /// Locks every blob of the transaction, each with what its transforms need in memory.
    fn lock_resident<'a>(
        &self,
        transaction: &Transaction,
        cells: &'a [Arc<BlobCell>],
    ) -> Result<SmallVec<[MutexGuard<'a, BlobState>; 4]>> {
        loop {
            let states: SmallVec<[_; 4]> = cells.iter().map(|cell| cell.lock()).collect();
            let lacking = transaction.blobs.iter().zip(cells).zip(&states).find_map(
                |((entry, cell), state)| {
                    let transforms = entry.operations.iter().filter_map(Operation::transformed);
                    let mut lacking = transforms.filter(|range| !state.is_resident(*range));
                    lacking.next().map(|range| (Arc::clone(cell), range))
                },
            );
            let Some((cell, range)) = lacking else { return Ok(states) };
            drop(states);
            self.make_resident(&cell, range)?;
        }
    }

    /// Brings what a transform changes into memory, where an operation before it in the same
    /// transaction has put a large payload. Everything else is there already.
    fn fetch_own(&self, name: &BlobName, state: &mut BlobState, range: ByteRange) -> Result<()> {
        if state.is_resident(range) {
            return Ok(());
        }
        for missing in state.missing(range).iter().flat_map(Missing::by_block) {
            let mut bytes = vec![0; missing.range.len() as usize];
            self.fetch_part(name, &missing, &mut bytes)?;
            state.materialize(&missing, &bytes);
        }
        debug_assert!(state.is_resident(range), "{name}: {range:?} would be changed unread");
        Ok(())
    }

    /// Writes a piece of a large payload where it will stay; the lease answers for it.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails.
    pub fn write_extent(&self, data: &[u8], is_compressed: bool) -> Result<Arc<ExtentLease>> {
        crate::disk::check_room(&*self.disk, self.disk.describe(), data.len() as u64)?;
        let extent = self.extents.write(data, is_compressed)?;
        Ok(ExtentLease::new(extent, self.recent.dead()))
    }

    /// The same, written and made durable by the next sync of the extents; it can be read at once.
    /// What is compressed is written now.
    ///
    /// # Errors
    /// As [`Store::write_extent`].
    pub fn write_extent_later(&self, data: Bytes, is_compressed: bool) -> Result<Arc<ExtentLease>> {
        if is_compressed {
            return self.write_extent(&data, true);
        }
        crate::disk::check_room(&*self.disk, self.disk.describe(), data.len() as u64)?;
        let extent = self.extents.write_later(data)?;
        Ok(ExtentLease::new(extent, self.recent.dead()))
    }

    /// Reads part of an extent that a lease keeps alive.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn read_extent(&self, extent: &ExtentRef, skip: u32, out: &mut [u8]) -> Result<()> {
        self.extents.read(extent, skip, out)
    }
}

/// Refuses an append that would make a blob of `size` bytes too large.
fn check_appends(size: u64, operations: &[Operation]) -> Result<()> {
    let mut size = Some(size);
    for operation in operations {
        if let Operation::Append { payload, .. } = operation {
            ByteRange::at(size.unwrap_or(0), payload.len())?;
        }
        size = operation.size_after(size);
    }
    Ok(())
}

/// The bytes that must be in memory before the operation can be validated or applied.
fn needed(operation: &Operation) -> Option<ByteRange> {
    match operation {
        Operation::Compare { offset, expected } => {
            let range = expected.range(*offset);
            (!range.is_empty()).then_some(range)
        }
        Operation::Apply { .. } => operation.transformed(),
        Operation::Create
        | Operation::Write { .. }
        | Operation::Append { .. }
        | Operation::Truncate { .. }
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Replace { .. }
        | Operation::Expect { .. } => None,
    }
}
