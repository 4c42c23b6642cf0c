//! What lies where in the test cluster.
//!
//! A *slotted* blob has two chunks of four slots of eight bytes; each chunk has replicas of its
//! own. A *log* is appended to; all its chunks lie on the same replicas. What a test looks at are
//! objects: a slot, the attributes of a slotted blob, a whole log.

use std::collections::BTreeMap;

use tyr_types::{BlobName, ByteRange, Key, KeyspaceId, NodeId, Operation, Transaction};

use super::random::Random;
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::footprint::Footprint;

/// Bytes of a slot.
pub const SLOT: u64 = 8;
/// Bytes of a chunk.
pub const CHUNK: u64 = 32;
/// Slots of a slotted blob.
pub const SLOTS: u8 = 8;

/// What a test writes and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// A slot of a slotted blob.
    Slot(u8, u8),
    /// Size and existence of a slotted blob.
    Attributes(u8),
    /// A log, all of it.
    Log(u8),
}

impl Object {
    /// Its blob.
    pub fn blob(self) -> u8 {
        match self {
            Self::Slot(blob, _) | Self::Attributes(blob) | Self::Log(blob) => blob,
        }
    }

    /// What a read of it wants.
    pub fn footprint(self) -> Footprint {
        match self {
            Self::Slot(_, slot) => Footprint::bytes(slot_range(slot, 1)),
            Self::Attributes(_) => Footprint::ATTRIBUTES,
            Self::Log(_) => Footprint::BLOB,
        }
    }
}

/// The bytes of `count` slots from `slot` on.
pub fn slot_range(slot: u8, count: u8) -> ByteRange {
    let start = u64::from(slot) * SLOT;
    ByteRange { start, end: start + u64::from(count) * SLOT }
}

/// The blob of this number.
pub fn blob_name(blob: u8) -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new([b'a' + blob]).unwrap() }
}

/// The number of this blob.
pub fn blob_number(name: &BlobName) -> u8 {
    name.key.as_bytes()[0] - b'a'
}

/// Which nodes hold what.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Blobs below this are slotted, the others are logs.
    pub slotted: u8,
    /// Number of blobs.
    pub blobs: u8,
    /// Replicas of a chunk, in node order, by blob and chunk (0 and 1).
    replicas: BTreeMap<(u8, u8), Vec<NodeId>>,
}

impl Layout {
    /// Blobs spread at random over `nodes` nodes, `replication` replicas each.
    pub fn random(random: &mut Random, nodes: u16, replication: usize) -> Self {
        let (slotted, blobs) = (2, 4);
        let all: Vec<NodeId> = (0..nodes).map(NodeId).collect();
        let mut replicas = BTreeMap::new();
        for blob in 0..blobs {
            for chunk in 0..=u8::from(blob < slotted) {
                let mut chosen = random.sample(&all, replication);
                chosen.sort_unstable();
                replicas.insert((blob, chunk), chosen);
            }
        }
        Self { slotted, blobs, replicas }
    }

    /// Whether this blob is a log.
    pub fn is_log(&self, blob: u8) -> bool {
        blob >= self.slotted
    }

    /// All objects.
    pub fn objects(&self) -> Vec<Object> {
        let slots = |blob| (0..SLOTS).map(move |slot| Object::Slot(blob, slot));
        let slotted =
            (0..self.slotted).flat_map(|blob| slots(blob).chain([Object::Attributes(blob)]));
        slotted.chain((self.slotted..self.blobs).map(Object::Log)).collect()
    }

    /// The replicas of an object, its authority first.
    pub fn replicas(&self, object: Object) -> &[NodeId] {
        match object {
            Object::Slot(blob, slot) => &self.replicas[&(blob, u8::from(slot >= SLOTS / 2))],
            Object::Attributes(blob) | Object::Log(blob) => self.version_managers(blob),
        }
    }

    /// The version managers of a blob, their authority first.
    pub fn version_managers(&self, blob: u8) -> &[NodeId] {
        &self.replicas[&(blob, 0)]
    }

    fn pieces(&self, name: &BlobName, blob: u8) -> Vec<(Piece, &[NodeId])> {
        let chunks = self.replicas.range((blob, 0)..=(blob, 1));
        let pieces = chunks.map(|((_, chunk), replicas)| {
            let start = u64::from(*chunk) * CHUNK;
            let range = match (self.is_log(blob), chunk) {
                (true, _) => ByteRange::ALL,
                (false, 0) => ByteRange { start, end: CHUNK },
                (false, _) => ByteRange::from(start),
            };
            let (is_attributes, authority) = (*chunk == 0, replicas[0]);
            let is_written = true;
            let piece = Piece { blob: name.clone(), range, is_attributes, is_written, authority };
            (piece, replicas.as_slice())
        });
        pieces.collect()
    }

    /// The chain of a transaction: every replica of what it writes, the version managers of every
    /// blob it writes, the authority of what it reads or requires.
    pub fn chain(&self, transaction: &Transaction) -> Chain {
        let mut hops: BTreeMap<NodeId, Vec<Piece>> = BTreeMap::new();
        let mut add = |name: &BlobName, footprint: Footprint, is_read: bool| {
            for (piece, replicas) in self.pieces(name, blob_number(name)) {
                if footprint.within(&piece).is_some() {
                    let holders = if is_read { &replicas[..1] } else { replicas };
                    for node in holders {
                        let pieces = hops.entry(*node).or_default();
                        let is_same = |other: &&mut Piece| {
                            other.blob == piece.blob && other.range == piece.range
                        };
                        match pieces.iter_mut().find(is_same) {
                            Some(other) => other.is_written |= !is_read,
                            None => {
                                pieces.push(Piece { is_written: !is_read, ..piece.clone() });
                            }
                        }
                    }
                }
            }
        };
        for entry in &transaction.blobs {
            for operation in &entry.operations {
                let written = match operation {
                    // Slotted blobs are never appended to; a log is one piece.
                    Operation::Append { .. } => Some(Footprint::BLOB),
                    other => Footprint::written(other, 0),
                };
                if let Some(written) = written {
                    add(&entry.blob, written, false);
                }
                if let Some(required) = Footprint::required(operation) {
                    add(&entry.blob, required, true);
                }
            }
        }
        for read in &transaction.reads {
            let footprint = Footprint { range: read.range, is_attributes: read.is_attributes };
            add(&read.blob, footprint, true);
        }
        let hop = |(node, pieces)| Hop { node, part: Part::Pieces(pieces) };
        Chain::new(hops.into_iter().map(hop).collect(), Ends::new()).unwrap()
    }
}
