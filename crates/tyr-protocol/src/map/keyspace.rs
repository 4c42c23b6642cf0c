//! A keyspace, as the cluster map has it.

use std::collections::BTreeMap;

use tyr_types::{Epoch, Key, KeyspaceConfig, KeyspaceName, NodeId};

use super::hash::{self, BlobHash};

/// Why what is new is refused in a keyspace that was dropped.
pub const DROPPED: &str = "the keyspace was dropped; look its name up again, or create it anew";

/// A keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapKeyspace {
    /// Its name. Unique among those that are not dropped.
    pub name: KeyspaceName,
    /// What it was created with.
    pub config: KeyspaceConfig,
    /// Seeds the hash of its keys: keyspaces spread alike keys differently.
    pub seed: u64,
    /// Whether it was dropped: it takes no new transactions, and those in flight end as ever. It
    /// stays in the map until nobody can ask for those.
    pub is_dropped: bool,
    /// With one replica: nodes whose part of it was given up, and in which epoch. What they had is
    /// lost; others hold their ranges, from empty on, until they are back and have caught up.
    pub lost: BTreeMap<NodeId, Epoch>,
}

impl MapKeyspace {
    /// The hash of a blob: the places of its chunks follow from it. Blobs of one group have one
    /// hash for their first chunks, and each its own for the others (H).
    pub fn hash(&self, key: &Key) -> BlobHash {
        let part = self.config.placed_by.part(key.as_bytes());
        debug_assert!(key.as_bytes().starts_with(part), "H: a part from elsewhere would say more");
        let group = hash::key(self.seed, part);
        match part.len() == key.as_bytes().len() {
            true => BlobHash { group, own: group },
            false => BlobHash { group, own: hash::key(self.seed, key.as_bytes()) },
        }
    }

    /// The place of the first chunk of every blob whose key begins with `prefix`, where that says
    /// which group they are in (H).
    pub fn place_of_all(&self, prefix: &[u8]) -> Option<u64> {
        let part = self.config.placed_by.part_of_all(prefix)?;
        Some(hash::place(hash::key(self.seed, part), 0))
    }

    /// What says where its chunks lie.
    pub fn layout(&self) -> Layout<'_> {
        Layout { replication: usize::from(self.config.replication), lost: &self.lost }
    }

    /// The keyspace that a simulation or test has as its `number`-th.
    pub(super) fn numbered(number: u32, config: &KeyspaceConfig) -> Self {
        let name = KeyspaceName::new(&format!("keyspace-{number}"))
            .expect("letters, a hyphen and digits are a name");
        let seed = u64::from(number).wrapping_mul(0xD134_2543_DE82_EF95);
        Self { name, config: config.explicit(), seed, is_dropped: false, lost: BTreeMap::new() }
    }
}

/// How many nodes hold a chunk, and which of them are passed over: with the ring this says where
/// everything of a keyspace lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout<'a> {
    /// The number of replicas.
    pub replication: usize,
    /// See [`MapKeyspace::lost`].
    pub lost: &'a BTreeMap<NodeId, Epoch>,
}

impl Layout<'_> {
    /// Whether each chunk has one replica, so that nobody else has what its holder has.
    pub fn is_single(&self) -> bool {
        self.replication == 1
    }
}
