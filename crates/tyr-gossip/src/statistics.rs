//! What gossip has done, in numbers.

use std::collections::BTreeMap;

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::EnumCount)]
pub enum Rejection {
    /// It is no datagram of this protocol, or not of this version.
    Malformed,
    /// It is of another cluster.
    Cluster,
    /// Its sender does not have the cluster's secret, or it was damaged on the way.
    Unauthentic,
    /// It came before, or is older than what its sender sent since.
    Replayed,
    /// Its sender is not in the map that this node has, or it is for another node.
    Stranger,
}

impl Rejection {
    /// All kinds.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Malformed, Self::Cluster, Self::Unauthentic, Self::Replayed, Self::Stranger];

    /// Its name, as in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Cluster => "cluster",
            Self::Unauthentic => "unauthentic",
            Self::Replayed => "replayed",
            Self::Stranger => "stranger",
        }
    }
}

/// What gossip has done since it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GossipStatistics {
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of all datagrams sent.
    pub sent_bytes: u64,
    /// Datagrams that came and were taken.
    pub received: u64,
    /// Datagrams that the system did not take, or for nodes without an address.
    pub unsent: u64,
    /// Datagrams that were dropped.
    pub rejected: BTreeMap<Rejection, u64>,
    /// How often this process was kept from running for so long that its clock was held.
    pub pauses: u64,
    /// For how long altogether.
    pub paused_us: u64,
    /// Probes that their node answered itself, in time for the next.
    pub probes_answered: u64,
    /// Probes that it did not answer although it lived: lost, or too late.
    pub probes_lost: u64,
}
