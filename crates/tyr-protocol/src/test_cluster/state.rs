//! The applied state of a node of the test cluster, as lists of who wrote an object.
//!
//! A list shows the exact order in which writes took effect, so whoever reads it has seen that
//! order. Sizes and the bytes of slots are kept beside, for conditions and appends.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{
    BlobName, ByteRange, KeyspaceId, Listed, NodeId, Number, NumberType, Operation, Payload,
    Timestamp, Transaction,
};

use super::layout::{CHUNK, Layout, Object, SLOT, SLOTS, blob_name, blob_number, slot_range};
use crate::view::View;

/// Who wrote an object: the last eight bytes of the transaction's id, and when.
pub type Written = (Timestamp, u64);

/// What was applied.
#[derive(Clone, Debug)]
pub struct State {
    layout: Layout,
    /// Whose state it is; `None` when it is everybody's.
    node: Option<NodeId>,
    lists: BTreeMap<Object, Vec<Written>>,
    bytes: BTreeMap<(u8, u8), [u8; SLOT as usize]>,
    sizes: BTreeMap<u8, u64>,
}

impl State {
    /// Nothing is there yet at `node`; without one, of all that there will be.
    pub fn new(layout: Layout, node: Option<NodeId>) -> Self {
        let (lists, bytes, sizes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { layout, node, lists, bytes, sizes }
    }

    /// Who wrote `object`, in order.
    pub fn list(&self, object: Object) -> &[Written] {
        self.lists.get(&object).map_or(&[], |list| list)
    }

    /// Who wrote `object` up to `at`, in order; all without `at`.
    pub fn list_at(&self, object: Object, at: Option<Timestamp>) -> Vec<Written> {
        let list = self.list(object).iter();
        list.filter(|(written_at, _)| at.is_none_or(|at| *written_at <= at)).copied().collect()
    }

    /// The bytes of a slot.
    pub fn slot(&self, blob: u8, slot: u8) -> [u8; SLOT as usize] {
        self.bytes.get(&(blob, slot)).copied().unwrap_or_default()
    }

    /// Applies a transaction; answers the offsets of its first append on each blob.
    ///
    /// # Errors
    /// When something newer was applied to the same object before.
    pub fn apply(
        &mut self,
        transaction: &Transaction,
        at: Timestamp,
    ) -> Result<BTreeMap<u8, u64>, String> {
        let id = transaction.id.0 as u64;
        let mut touched = BTreeSet::new();
        let mut offsets = BTreeMap::new();
        for entry in &transaction.blobs {
            let blob = blob_number(&entry.blob);
            let old_size = self.sizes.get(&blob).copied();
            for operation in &entry.operations {
                if let Operation::Append { .. } = operation {
                    let offset = self.sizes.get(&blob).copied().unwrap_or(0);
                    offsets.entry(blob).or_insert(offset);
                }
                self.operate(blob, operation, &mut touched);
            }
            let is_writing = entry.operations.iter().any(Operation::is_write);
            if self.layout.is_log(blob) {
                touched.extend(is_writing.then_some(Object::Log(blob)));
            } else if old_size != self.sizes.get(&blob).copied() {
                touched.insert(Object::Attributes(blob));
            }
        }
        let is_held = |object: &Object| {
            self.node.is_none_or(|node| self.layout.replicas(*object).contains(&node))
        };
        for object in touched.into_iter().filter(is_held) {
            let list = self.lists.entry(object).or_default();
            if let Some((last, by)) = list.last()
                && *last >= at
            {
                return Err(format!("{object:?}: {id} at {at} is applied after {by} at {last}"));
            }
            list.push((at, id));
        }
        Ok(offsets)
    }

    fn operate(&mut self, blob: u8, operation: &Operation, touched: &mut BTreeSet<Object>) {
        let size = self.sizes.get(&blob).copied();
        let (range, new_size) = match operation {
            Operation::Compare { .. } | Operation::Expect { .. } => return,
            Operation::Create => (slot_range(0, 0), Some(0)),
            Operation::Write { offset, payload } => {
                let end = offset + payload.len();
                (ByteRange { start: *offset, end }, Some(size.unwrap_or(0).max(end)))
            }
            Operation::Append { payload, .. } => {
                (slot_range(0, 0), Some(size.unwrap_or(0) + payload.len()))
            }
            Operation::Apply { offset, transform } => {
                let end = offset + transform.width() as u64;
                (ByteRange { start: *offset, end }, Some(size.unwrap_or(0).max(end)))
            }
            Operation::Truncate { len } => (ByteRange::from(*len), Some(*len)),
            // Behind the end, too: not every node knows where that is, and zeros are there.
            Operation::Clear { range } => (*range, size),
            Operation::Delete => (ByteRange::ALL, None),
            Operation::Replace { payload } => (ByteRange::ALL, Some(payload.len())),
        };
        match new_size {
            Some(size) => self.sizes.insert(blob, size),
            None => self.sizes.remove(&blob),
        };
        if self.layout.is_log(blob) {
            return;
        }
        for slot in (0..SLOTS).filter(|slot| slot_range(*slot, 1).overlaps(range)) {
            touched.insert(Object::Slot(blob, slot));
            let mut bytes = self.slot(blob, slot);
            let start = slot_range(slot, 1).start;
            match operation {
                Operation::Write { offset, payload: Payload::Inline(data) } => {
                    let skip = (start - offset) as usize;
                    bytes.copy_from_slice(&data[skip..skip + SLOT as usize]);
                }
                Operation::Apply { transform, .. } => {
                    transform.apply(&mut bytes);
                }
                Operation::Replace { payload: Payload::Inline(data) } => {
                    let data = data.get(start as usize..(start + SLOT) as usize);
                    bytes = data.map_or([0; 8], |data| data.try_into().unwrap());
                }
                _ => bytes = [0; SLOT as usize],
            }
            self.bytes.insert((blob, slot), bytes);
        }
    }
}

impl View for State {
    fn newest_overlapping(
        &self,
        blob: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Timestamp {
        let blob = blob_number(blob);
        let objects = self.layout.objects().into_iter().filter(|object| match object {
            Object::Slot(of, slot) => *of == blob && slot_range(*slot, 1).overlaps(range),
            Object::Attributes(of) => *of == blob && is_attributes,
            Object::Log(of) => *of == blob,
        });
        let newest = objects.filter_map(|object| self.list(object).last());
        newest.map(|(at, _)| *at).max().unwrap_or(Timestamp::ZERO)
    }

    fn is_listing_stale(&self, _: KeyspaceId, listed: &Listed, at: Timestamp) -> bool {
        let objects = self.layout.objects().into_iter();
        let mut attributes = objects.filter(|object| match object {
            Object::Attributes(of) => listed.keys.contains(blob_name(*of).key.as_bytes()),
            Object::Slot(..) | Object::Log(_) => false,
        });
        attributes.any(|object| self.list(object).last().is_some_and(|(newest, _)| *newest > at))
    }

    fn stat(&self, blob: &BlobName) -> Option<u64> {
        self.sizes.get(&blob_number(blob)).copied()
    }

    fn matches(&self, blob: &BlobName, offset: u64, expected: &[u8]) -> bool {
        // Compares are of whole slots, of bytes that the blob has at its authority.
        let blob = blob_number(blob);
        let slots = expected.chunks_exact(SLOT as usize).zip((offset / SLOT) as u8..);
        slots.into_iter().all(|(expected, slot)| self.slot(blob, slot) == expected)
    }

    fn number(&self, blob: &BlobName, offset: u64, number_type: NumberType) -> Option<Number> {
        // Numbers are whole slots.
        Some(Number::load(number_type, &self.slot(blob_number(blob), (offset / SLOT) as u8)))
    }

    fn chunk_size(&self, _keyspace: KeyspaceId) -> u64 {
        CHUNK
    }
}
