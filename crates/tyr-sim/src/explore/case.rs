//! What is explored: where two blobs lie, and what up to three clients do to them.

use std::sync::Arc;

use tyr_protocol::map::{Change, ClusterMap};
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Key, KeyspaceConfig, KeyspaceId, NodeId, Operation,
    Payload, ReadCheck, Timestamp, Transaction, TransactionId,
};

/// Nodes of the cluster.
pub const NODES: u16 = 3;
/// Bytes that a write writes, at the beginning of its blob.
pub const LEN: u64 = 8;
/// Where all clocks begin, in microseconds: later than outcomes are remembered for.
pub const BEGIN_US: u64 = 1_000_000_000;

/// The first or the second blob.
pub type Blob = usize;
/// A transaction, by its place in [`Case::plans`].
pub type Number = usize;

/// One thing that a transaction does.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Writes its own number.
    Write(Blob),
    /// Appends its own number.
    Append(Blob),
    /// The blob must begin with what that transaction writes.
    Compare(Blob, Number),
    /// It has read the blob before anyone wrote it.
    ReadNothing(Blob),
    /// It has read what that transaction wrote, as its answer said; nothing, if it was aborted.
    Read(Blob, Number),
}

/// A transaction of a case.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it does.
    pub acts: Vec<Act>,
    /// It is submitted when that one is answered; without one, at the beginning.
    pub after: Option<Number>,
}

/// A set of transactions on a layout.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The replicas of each blob.
    pub replicas: [&'static [u16]; 2],
    /// How far the nodes' clocks are ahead.
    pub ahead_us: [u64; NODES as usize],
    /// Whether the first node was down before: it gets what is written, and is no authority.
    pub is_first_returning: bool,
    /// The transactions.
    pub plans: Vec<Plan>,
}

/// Where the two blobs lie: together, overlapping, or apart.
pub const LAYOUTS: [[&[u16]; 2]; 5] =
    [[&[0], &[1]], [&[0], &[2]], [&[0, 1], &[1, 2]], [&[0, 2], &[1, 2]], [&[0, 1, 2], &[0, 1, 2]]];

/// Clocks that agree, and such that the tail or the middle is far ahead of the head.
pub const CLOCKS: [[u64; NODES as usize]; 3] = [[0, 0, 0], [0, 10, 20], [20, 10, 0]];

/// What the transactions of the library do, with their names.
fn library() -> Vec<(&'static str, Vec<Plan>)> {
    use Act::{Append, Compare, Read, ReadNothing, Write};
    let plan = |acts: &[Act]| Plan { acts: acts.to_vec(), after: None };
    let after = |number, acts: &[Act]| Plan { acts: acts.to_vec(), after: Some(number) };
    vec![
        // One writes both, one reads the first and writes the second, one writes the first.
        (
            "mixed",
            vec![plan(&[Write(0), Write(1)]), plan(&[ReadNothing(0), Write(1)]), plan(&[Write(0)])],
        ),
        // Two that each read what the other writes, and one that writes both.
        (
            "crossed",
            vec![
                plan(&[ReadNothing(0), Write(1)]),
                plan(&[ReadNothing(1), Write(0)]),
                plan(&[Write(0), Write(1)]),
            ],
        ),
        // A condition on the first blob, which holds only between the other two.
        (
            "compare",
            vec![plan(&[Write(0), Write(1)]), plan(&[Compare(0, 0), Write(1)]), plan(&[Write(0)])],
        ),
        // The third is submitted when the second is answered, both on one blob each.
        ("after", vec![plan(&[Write(0), Write(1)]), plan(&[Write(1)]), after(1, &[Write(0)])]),
        // The third has read what the first wrote.
        (
            "read",
            vec![plan(&[Write(0)]), plan(&[Write(0), Write(1)]), after(0, &[Read(0, 0), Write(1)])],
        ),
        // Writes that do not commute with appends, and a condition on what was appended.
        (
            "append",
            vec![
                plan(&[Append(0), Append(1)]),
                plan(&[Append(0)]),
                plan(&[Compare(1, 0), Append(0)]),
            ],
        ),
    ]
}

impl Case {
    /// All cases of the library.
    pub fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for (name, plans) in library() {
            for replicas in LAYOUTS {
                for ahead_us in CLOCKS {
                    let (is_first_returning, plans) = (false, plans.clone());
                    cases.push(Self { name, replicas, ahead_us, is_first_returning, plans });
                }
            }
        }
        cases
    }

    /// The case of the library of this name, on this layout and with these clocks.
    pub fn named(
        name: &str,
        replicas: [&'static [u16]; 2],
        ahead_us: [u64; NODES as usize],
    ) -> Option<Self> {
        let found = library().into_iter().find(|(other, _)| *other == name);
        let is_first_returning = false;
        found.map(|(name, plans)| Self { name, replicas, ahead_us, is_first_returning, plans })
    }

    /// Only its first transactions.
    #[must_use]
    pub fn first(mut self, transactions: usize) -> Self {
        self.plans.truncate(transactions);
        self
    }

    /// The same, but the first node was down before. Nothing was written yet, so it has all there
    /// is; but it serves nothing, and takes part in chains without being an authority.
    #[must_use]
    pub fn returning(self) -> Self {
        Self { is_first_returning: true, ..self }
    }

    /// How many replicas a blob has.
    pub fn replication(&self) -> usize {
        self.replicas[0].len()
    }

    /// The map at the beginning, and the names of the blobs: such that they lie as the case says.
    ///
    /// # Panics
    /// When no key lies so.
    pub fn map(&self) -> (ClusterMap, [BlobName; 2]) {
        let replication = u8::try_from(self.replication()).expect("at most NODES");
        // One live replica is enough: what is explored goes on whoever goes down.
        let live_replicas_min = Some(1);
        let config = KeyspaceConfig {
            chunk_size: 4096,
            replication,
            live_replicas_min,
            ..KeyspaceConfig::default()
        };
        let mut map = ClusterMap::of(NODES, &[config]);
        if self.is_first_returning {
            map = with_first_returning(&map);
        }
        let names = [0, 1].map(|blob: Blob| {
            let wanted: Vec<NodeId> =
                self.replicas[blob].iter().map(|node| NodeId(*node)).collect();
            let name = |number: u32| BlobName {
                keyspace: KeyspaceId(1),
                key: Key::new(format!("{}{number}", ["a", "b"][blob])).expect("short"),
            };
            let mut names = (0..10_000).map(name);
            let found = names.find(|name| replicas(&map, name) == wanted);
            found.expect("of thousands of keys some lie on any replicas")
        });
        (map, names)
    }

    /// The transaction of this number, once those that it comes after are answered; `committed`
    /// says when a transaction committed.
    pub fn transaction(
        &self,
        number: Number,
        names: &[BlobName; 2],
        committed: impl Fn(Number) -> Option<Timestamp>,
    ) -> Transaction {
        let mut transaction = Transaction { id: id(number), blobs: Vec::new(), reads: Vec::new() };
        for act in &self.plans[number].acts {
            let (blob, done) = match *act {
                Act::Write(blob) => {
                    (blob, Ok(Operation::Write { offset: 0, payload: payload(number) }))
                }
                Act::Append(blob) => {
                    (blob, Ok(Operation::Append { payload: payload(number), expected: None }))
                }
                Act::Compare(blob, other) => {
                    (blob, Ok(Operation::Compare { offset: 0, expected: bytes(other).into() }))
                }
                Act::ReadNothing(blob) => (blob, Err(Timestamp::ZERO)),
                Act::Read(blob, other) => (blob, Err(committed(other).unwrap_or(Timestamp::ZERO))),
            };
            let blob = names[blob].clone();
            match done {
                Ok(operation) => {
                    transaction.blobs.push(BlobOperations { blob, operations: vec![operation] });
                }
                Err(at) => {
                    let range = ByteRange { start: 0, end: LEN };
                    transaction.reads.push(ReadCheck {
                        blob,
                        range,
                        is_attributes: false,
                        at,
                        listed: None,
                    });
                }
            }
        }
        transaction
    }
}

/// The nodes that have what is written of this blob, in node order.
pub fn replicas(map: &ClusterMap, name: &BlobName) -> Vec<NodeId> {
    let mut replicas = [map.recipients(name, 0), map.holders(name, 0)].concat();
    replicas.sort_unstable();
    replicas
}

/// The map after the first node was down and has started again.
fn with_first_returning(map: &ClusterMap) -> ClusterMap {
    let (node, has_disk, level) = (NodeId(0), true, map.level);
    let incarnation = map.incarnation(node).unwrap_or_default() + 1;
    let changes = [Change::Down(node), Change::Return { node, incarnation, has_disk, level }];
    let changed = |map: ClusterMap, change: &Change| map.changed(change).expect("others have it");
    changes.iter().fold(map.clone(), changed)
}

/// The map without that node, in the next epoch; `None` when nobody else holds what it holds (F7).
pub fn without(map: &ClusterMap, node: NodeId) -> Option<Arc<ClusterMap>> {
    map.changed(&Change::Down(node)).ok().map(Arc::new)
}

/// The id of a transaction.
pub fn id(number: Number) -> TransactionId {
    TransactionId::new(1, number as u64)
}

/// The transaction of this id.
pub fn number(id: TransactionId) -> Number {
    Number::try_from(id.0 & 0xFF).expect("a byte")
}

/// What a transaction writes.
pub fn bytes(number: Number) -> Bytes {
    Bytes::from(vec![b'1' + u8::try_from(number).expect("few"); LEN as usize])
}

fn payload(number: Number) -> Payload {
    Payload::Inline(bytes(number))
}
