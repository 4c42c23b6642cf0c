//! The index: four ordered tables of keys and values, behind a narrow trait.
//!
//! An existing LSM library does the work ([`fjall`]); this trait is all that the store knows of it,
//! so that it can be exchanged, and so that [`memory`] can stand in for it where a test wants to
//! say which batches a loss of power takes. The trait must not know what the tables mean: that is
//! the affair of [`crate::base`].
//!
//! Two promises go beyond what libraries give, and hold for every implementation:
//! - every value carries a checksum over table, key and value ([`seal`]), checked on every read;
//! - batches are numbered densely, and the number of the last one can be asked for, so that
//!   whoever wrote it down elsewhere notices when acknowledged batches are gone.

mod elsewhere;
pub mod fjall;
mod journal;
pub mod memory;
mod overwritten;
mod preflight;
mod seal;
mod settings;
mod tables;

#[cfg(test)]
mod conformance;

use bytes::Bytes;
use tyr_types::{Error, Result};

/// A table of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::EnumCount)]
pub enum Table {
    /// Keyspaces, totals, what waits to be freed, and the last batch's number.
    Meta,
    /// One entry a blob: attributes, and the whole content of a small one.
    Blobs,
    /// Where the bytes of larger blobs are.
    Segments,
    /// Which blob owns which extent.
    Extents,
}

impl Table {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Meta, Self::Blobs, Self::Segments, Self::Extents];

    /// Its name, as in messages and on disk.
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Blobs => "blobs",
            Self::Segments => "segments",
            Self::Extents => "extents",
        }
    }
}

const _: () = {
    let mut place = 0;
    while place < Table::ALL.len() {
        // The code is also in every value's checksum.
        assert!(Table::ALL[place] as usize == place, "a table's code is its place in an array");
        place += 1;
    }
};

/// The key in [`Table::Meta`] that every batch sets to its own number; reserved for the index.
pub const BATCH_KEY: &[u8] = b"\0batch";

/// One change of a batch.
#[derive(Clone, Debug)]
struct Change {
    table: Table,
    key: Vec<u8>,
    /// The sealed value; `None` removes the key.
    value: Option<Vec<u8>>,
}

/// Changes that take effect together or not at all.
#[derive(Clone, Debug, Default)]
pub struct IndexBatch {
    changes: Vec<Change>,
    bytes: usize,
}

impl IndexBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value`. The last change of a key in a batch wins.
    pub fn put(&mut self, table: Table, key: Vec<u8>, mut value: Vec<u8>) {
        seal::close(table, &key, &mut value);
        self.bytes += key.len() + value.len();
        self.changes.push(Change { table, key, value: Some(value) });
    }

    /// Removes `key`, whether or not it is there.
    pub fn remove(&mut self, table: Table, key: Vec<u8>) {
        self.bytes += key.len();
        self.changes.push(Change { table, key, value: None });
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes of keys and values in it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Is given each key and value of a scan; answers whether to go on.
pub type Visit<'a> = dyn FnMut(&[u8], &Bytes) -> Result<bool> + 'a;

/// Is given each key of a walk, with its value or what is wrong with it.
pub type Inspect<'a> = dyn FnMut(&[u8], Result<Bytes>) + 'a;

/// Ordered tables with atomic batches. Keys are 1 to 65,535 bytes.
///
/// All answers see every batch committed before; a scan sees one state of its table throughout.
/// `Corrupt` is answered for damaged bytes and names the table and, where known, the key.
pub trait Index: Send + Sync {
    /// The value of `key`.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>>;

    /// Visits all from `from` on, in key order, up to and without `to`.
    ///
    /// # Errors
    /// `Corrupt` at the first damaged value; what `visit` answers.
    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<()>;

    /// Visits all from `from` on, up to and without `to`, in reverse key order.
    ///
    /// # Errors
    /// `Corrupt` at the first damaged value; what `visit` answers.
    fn scan_back(&self, table: Table, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<()>;

    /// Makes all changes of the batch visible, atomically; answers the batch's number.
    ///
    /// It survives the loss of power after the next [`Index::sync`]; without one, a loss of power
    /// takes some number of the last batches.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses; the batch may be there after reopening.
    fn commit(&self, batch: IndexBatch) -> Result<u64>;

    /// Makes every batch committed so far survive the loss of power.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses: the index must be reopened.
    fn sync(&self) -> Result<()>;

    /// The number of the last batch: 0 in a new index, then one more with each.
    fn last_batch(&self) -> u64;

    /// Waits for who uses it, and lets go of files, locks and threads; then the folder can be
    /// opened again. What comes later is answered with `Unavailable`. Closing twice does nothing.
    fn close(&self);

    /// Bytes on disk.
    fn disk_bytes(&self) -> u64;

    /// Walks a whole table, and goes on behind damaged values.
    ///
    /// # Errors
    /// `Corrupt` when the rest of the table cannot be read.
    fn inspect(&self, table: Table, inspect: &mut Inspect<'_>) -> Result<()>;

    /// Checks what no walk over entries reads; `found` hears of each damaged place.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    fn verify(&self, found: &mut dyn FnMut(Error)) -> Result<()>;
}
