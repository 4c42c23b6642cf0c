//! A keyspace, as the cluster map has it.

use tyr_types::{KeyspaceConfig, KeyspaceName};

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
}

impl MapKeyspace {
    /// The keyspace that a simulation or test has as its `number`-th.
    pub(super) fn numbered(number: u32, config: &KeyspaceConfig) -> Self {
        let name = KeyspaceName::new(&format!("keyspace-{number}"))
            .expect("letters, a hyphen and digits are a name");
        let seed = u64::from(number).wrapping_mul(0xD134_2543_DE82_EF95);
        Self { name, config: config.explicit(), seed, is_dropped: false }
    }
}
