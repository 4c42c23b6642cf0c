//! Changes of the map that can be proposed, as they travel.

use serde::{Deserialize, Serialize};
use tyr_protocol::map::{Change, Domain, Newcomer, Share};
use tyr_types::{
    Durability, Error, KeptName, KeyspaceConfig, KeyspaceId, KeyspaceName, NodeId, PlacedBy, Result,
};

/// A change of the map that somebody asks for. What nodes report for themselves is not among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proposal {
    /// These join.
    Join(Vec<Joiner>),
    /// The node leaves, once others have what it holds.
    Drain(u16),
    /// The node, which is down, is not waited for any more.
    Remove(u16),
    /// The node gets another weight.
    SetWeight {
        /// The node.
        node: u16,
        /// The weight.
        weight: u32,
    },
    /// The change of the ring under way is given up.
    CancelMove,
    /// The node takes no part any more.
    Down(u16),
    /// A new keyspace.
    CreateKeyspace {
        /// Its name.
        name: String,
        /// What it is created with.
        config: Keyspace,
        /// The seed of its hash.
        seed: u64,
    },
    /// The keyspace takes no new transactions any more.
    DropKeyspace(u32),
    /// The keyspace, dropped long ago, leaves the map.
    ForgetKeyspace(u32),
    /// What nodes that are down alone had of the keyspace is lost.
    AcceptLoss(u32),
    /// A new keyspace whose blobs are placed by a part of their keys.
    CreatePlacedKeyspace {
        /// Its name.
        name: String,
        /// What it is created with beside that.
        config: Keyspace,
        /// The seed of its hash.
        seed: u64,
        /// What places its blobs.
        placed_by: Placing,
    },
    /// A new keyspace that is guarded by the leases of its keys.
    CreateGuardedKeyspace {
        /// Its name.
        name: String,
        /// What it is created with beside that.
        config: Keyspace,
        /// The seed of its hash.
        seed: u64,
        /// What places its blobs; without, the whole key.
        placed_by: Option<Placing>,
    },
    /// A snapshot is kept.
    Keep {
        /// Its name.
        name: String,
        /// The day that it is taken for, in microseconds since 1970.
        day_us: u64,
    },
    /// A kept snapshot is dropped.
    DropKept(String),
}

/// [`PlacedBy`] other than the whole key, as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placing {
    /// The first so many bytes.
    First(u8),
    /// What comes before this byte.
    UpTo(u8),
}

impl Placing {
    fn of(placed_by: PlacedBy) -> Option<Self> {
        match placed_by {
            PlacedBy::Key => None,
            PlacedBy::First(count) => Some(Self::First(count)),
            PlacedBy::UpTo(byte) => Some(Self::UpTo(byte)),
        }
    }
}

impl From<Placing> for PlacedBy {
    fn from(placing: Placing) -> Self {
        match placing {
            Placing::First(count) => Self::First(count),
            Placing::UpTo(byte) => Self::UpTo(byte),
        }
    }
}

/// A node that joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joiner {
    /// Its number.
    pub node: u16,
    /// Its incarnation.
    pub incarnation: u64,
    /// How much it takes of the ring.
    pub weight: u32,
    /// Its failure domain.
    pub domain: Option<u32>,
    /// The highest feature level that its program speaks.
    pub level: u8,
}

/// [`KeyspaceConfig`], as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyspace {
    chunk_size: u64,
    replication: u8,
    live_replicas_min: u8,
    is_multi_versioned: bool,
    /// 0 memory, 1 buffered, 2 sync.
    durability: u8,
    is_compressed: bool,
}

impl From<&KeyspaceConfig> for Keyspace {
    fn from(config: &KeyspaceConfig) -> Self {
        let KeyspaceConfig {
            chunk_size,
            replication,
            live_replicas_min: _,
            is_multi_versioned,
            durability,
            is_compressed,
            // Proposals of their own, which older programs do not understand.
            placed_by: _,
            is_guarded: _,
        } = config.clone();
        let durability = match durability {
            Durability::Memory => 0,
            Durability::Buffered => 1,
            Durability::Sync => 2,
        };
        Self {
            chunk_size,
            replication,
            live_replicas_min: config.live_replicas_needed(),
            is_multi_versioned,
            durability,
            is_compressed,
        }
    }
}

impl TryFrom<Keyspace> for KeyspaceConfig {
    type Error = Error;

    fn try_from(keyspace: Keyspace) -> Result<Self> {
        let Keyspace {
            chunk_size,
            replication,
            live_replicas_min,
            is_multi_versioned,
            durability,
            is_compressed,
        } = keyspace;
        let durability = match durability {
            0 => Durability::Memory,
            1 => Durability::Buffered,
            2 => Durability::Sync,
            other => return Err(Error::invalid(format!("no durability has the number {other}"))),
        };
        let config = Self {
            chunk_size,
            replication,
            live_replicas_min: Some(live_replicas_min),
            is_multi_versioned,
            durability,
            is_compressed,
            placed_by: PlacedBy::Key,
            is_guarded: false,
        };
        config.validate()?;
        Ok(config)
    }
}

impl TryFrom<Change> for Proposal {
    type Error = Error;

    fn try_from(change: Change) -> Result<Self> {
        Ok(match change {
            Change::Join(newcomers) => {
                Self::Join(newcomers.into_iter().map(Joiner::from).collect())
            }
            Change::Drain(node) => Self::Drain(node.0),
            Change::Remove(node) => Self::Remove(node.0),
            Change::SetWeight { node, weight } => Self::SetWeight { node: node.0, weight },
            Change::CancelMove => Self::CancelMove,
            Change::Down(node) => Self::Down(node.0),
            Change::CreateKeyspace { name, config, seed } => {
                let (name, is_guarded) = (name.as_str().to_owned(), config.is_guarded);
                let placed_by = Placing::of(config.placed_by);
                let config = Keyspace::from(&config);
                match placed_by {
                    _ if is_guarded => {
                        Self::CreateGuardedKeyspace { name, config, seed, placed_by }
                    }
                    None => Self::CreateKeyspace { name, config, seed },
                    Some(placed_by) => Self::CreatePlacedKeyspace { name, config, seed, placed_by },
                }
            }
            Change::DropKeyspace(id) => Self::DropKeyspace(id.0),
            Change::ForgetKeyspace(id) => Self::ForgetKeyspace(id.0),
            Change::AcceptLoss(id) => Self::AcceptLoss(id.0),
            Change::Keep { name, day_us } => Self::Keep { name: name.as_str().into(), day_us },
            Change::DropKept(name) => Self::DropKept(name.as_str().into()),
            Change::Return { .. } | Change::Settle(_) | Change::RaiseLevel => {
                return Err(Error::invalid(
                    "nodes report for themselves that they are back or caught up, and what they \
                     speak",
                ));
            }
        })
    }
}

impl TryFrom<Proposal> for Change {
    type Error = Error;

    fn try_from(proposal: Proposal) -> Result<Self> {
        Ok(match proposal {
            Proposal::Join(joiners) => Self::Join(joiners.into_iter().map(Into::into).collect()),
            Proposal::Drain(node) => Self::Drain(NodeId(node)),
            Proposal::Remove(node) => Self::Remove(NodeId(node)),
            Proposal::SetWeight { node, weight } => Self::SetWeight { node: NodeId(node), weight },
            Proposal::CancelMove => Self::CancelMove,
            Proposal::Down(node) => Self::Down(NodeId(node)),
            Proposal::CreateKeyspace { name, config, seed } => {
                create_keyspace(&name, config.try_into()?, seed)?
            }
            Proposal::CreatePlacedKeyspace { name, config, seed, placed_by } => {
                let config = KeyspaceConfig { placed_by: placed_by.into(), ..config.try_into()? };
                create_keyspace(&name, config, seed)?
            }
            Proposal::CreateGuardedKeyspace { name, config, seed, placed_by } => {
                let placed_by = placed_by.map_or(PlacedBy::Key, PlacedBy::from);
                let config = KeyspaceConfig { placed_by, is_guarded: true, ..config.try_into()? };
                create_keyspace(&name, config, seed)?
            }
            Proposal::DropKeyspace(id) => Self::DropKeyspace(KeyspaceId(id)),
            Proposal::ForgetKeyspace(id) => Self::ForgetKeyspace(KeyspaceId(id)),
            Proposal::AcceptLoss(id) => Self::AcceptLoss(KeyspaceId(id)),
            Proposal::Keep { name, day_us } => Self::Keep { name: KeptName::new(&name)?, day_us },
            Proposal::DropKept(name) => Self::DropKept(KeptName::new(&name)?),
        })
    }
}

fn create_keyspace(name: &str, config: KeyspaceConfig, seed: u64) -> Result<Change> {
    let name = KeyspaceName::new(name)?;
    config.validate()?;
    check_durability(&config)?;
    Ok(Change::CreateKeyspace { name, config, seed })
}

/// A cluster syncs every commit: the log of a node is one for all keyspaces, and what a commit was
/// answered by is on as many disks as the keyspace says. So it does more than `buffered` asks for,
/// and cannot forget, as `memory` says. Keyspaces that were made before this was refused go on.
fn check_durability(config: &KeyspaceConfig) -> Result<()> {
    match config.durability {
        Durability::Sync | Durability::Buffered => Ok(()),
        Durability::Memory => Err(Error::invalid(
            "a cluster has no keyspaces with durability memory: it syncs every commit, in a log \
             that all keyspaces share, and nothing is gone after a restart; leave the durability \
             out, or say sync",
        )),
    }
}

impl From<Newcomer> for Joiner {
    fn from(Newcomer { node, incarnation, share, level }: Newcomer) -> Self {
        let domain = share.domain.map(|domain| domain.0);
        Self { node: node.0, incarnation, weight: share.weight, domain, level }
    }
}

impl From<Joiner> for Newcomer {
    fn from(Joiner { node, incarnation, weight, domain, level }: Joiner) -> Self {
        let share = Share { weight, domain: domain.map(Domain) };
        Self { node: NodeId(node), incarnation, share, level }
    }
}
