//! What a machine may ask of the applied state of its node.
//!
//! The store and the simulator answer. Answers are synchronous: the driver makes sure that what a
//! transaction can ask about is resident before it hands the transaction to the machine. They
//! show exactly what was applied by the effects executed so far.

use tyr_types::{
    BlobName, ByteRange, Expected, KeyRange, KeyspaceId, LeaseMode, Listed, Number, NumberType,
    Timestamp,
};

/// The applied state of a node, as far as validation needs it.
pub trait View {
    /// The newest applied version that overlaps `range` (C1), [`Timestamp::ZERO`] if there is
    /// none; with `is_attributes` also the newest that changed the blob's size or existence, and of
    /// [`ByteRange::NOTHING`] the newest that wrote anything of the blob, which [`tyr_types::Stat`]
    /// shows. Version managers know that: chunk 0 is in every chain that writes the blob (C4).
    fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp;

    /// Whether what a listing of a keyspace showed at `at` is not so any more (Q3): one of these
    /// keys came or went after that, or, unless only keys were listed, was written. Where it is not
    /// known any more what there was then, it is not so. All keys are of a group whose authority
    /// this node is.
    fn is_listing_stale(&self, keyspace: KeyspaceId, listed: &Listed, at: Timestamp) -> bool;

    /// The size of the blob in bytes, `None` when it is absent (or its size is not known here:
    /// only version managers are asked where it matters).
    fn stat(&self, blob: &BlobName) -> Option<u64>;

    /// Whether exactly these bytes are at `offset`. A blob that ends earlier, or is absent, does
    /// not match.
    fn matches(&self, blob: &BlobName, offset: u64, expected: &[u8]) -> bool;

    /// The number at `offset`, all of it in one chunk that is held here: zero as far as nothing was
    /// written. `None` when what is stored cannot be read.
    fn number(&self, blob: &BlobName, offset: u64, number_type: NumberType) -> Option<Number>;

    /// Whether what is at `offset` is as a compare expects it.
    fn is_as_expected(&self, blob: &BlobName, offset: u64, expected: &Expected) -> bool {
        match expected {
            Expected::Bytes(bytes) => self.matches(blob, offset, bytes),
            Expected::Number { relation, value } => {
                let found = self.number(blob, offset, value.number_type());
                found.is_some_and(|found| relation.holds(found, *value))
            }
        }
    }

    /// Bytes of a chunk of this keyspace.
    fn chunk_size(&self, keyspace: KeyspaceId) -> u64;

    /// Whether leases of the blob that others may hold keep off who would need it so (K2): to
    /// itself to change it, shared to look at it. Asked at the authority of its first chunk. An
    /// embedded store has one client, whom nobody keeps off.
    fn keeps_off(&self, _client: u64, _blob: &BlobName, _mode: LeaseMode) -> bool {
        false
    }

    /// Whether such leases, also of what is not there, keep off who lists these keys of a group.
    fn keeps_off_listing(&self, _client: u64, _keyspace: KeyspaceId, _keys: &KeyRange) -> bool {
        false
    }
}
