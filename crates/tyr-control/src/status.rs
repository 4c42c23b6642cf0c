//! How the monitors are, and what a client needs to begin: plain values that travel.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tyr_protocol::lease::Grants;
use tyr_protocol::map::ClusterMap;
use tyr_protocol::wire;
use tyr_types::{Error, Result};

use super::record::NodeRecord;

/// How the monitors are, as one of them sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The node that answers.
    pub node: u16,
    /// Who leads, as far as it knows.
    pub leader: Option<u16>,
    /// Raft's term.
    pub term: u64,
    /// The monitors that vote.
    pub voters: Vec<u16>,
    /// Those that only follow.
    pub learners: Vec<u16>,
    /// The last entry of its log.
    pub last_index: Option<u64>,
    /// The last entry that it has applied.
    pub applied_index: Option<u64>,
    /// The revision of its metadata.
    pub revision: u64,
    /// The epoch of the map in effect.
    pub epoch: Option<u32>,
    /// What only the leader knows.
    pub leadership: Option<Leadership>,
}

/// What the leader of the monitors knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leadership {
    /// The epoch of the map that waits to take effect.
    pub pending: Option<u32>,
    /// Who has not prepared for it.
    pub waiting: Vec<u16>,
    /// Each node that the map knows.
    pub seats: BTreeMap<u16, SeatStatus>,
}

/// What the leader knows of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatStatus {
    /// `up`, `returning` or `down`.
    pub state: String,
    /// Its incarnation.
    pub incarnation: u64,
    /// How long it has been silent, in microseconds; counted from when the leader began at most.
    pub silent_us: u64,
    /// How long it may hold a lease yet, in microseconds.
    pub lease_us: u64,
}

impl Leadership {
    /// What the leader knows at `now_us` of its clock.
    pub fn of(grants: &Grants, now_us: u64) -> Self {
        let pending = grants.pending().map(|map| map.epoch.0);
        let waiting = grants.waiting().map(|node| node.0).collect();
        let seats = grants.node_infos().iter().filter_map(|(node, seat)| {
            let known = grants.map().nodes.get(node)?;
            let status = SeatStatus {
                state: known.state.name().to_owned(),
                incarnation: known.incarnation,
                silent_us: now_us.saturating_sub(seat.heard_us),
                lease_us: seat.expires_us.saturating_sub(now_us),
            };
            Some((node.0, status))
        });
        Self { pending, waiting, seats: seats.collect() }
    }
}

/// What a client needs to begin, and a node to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// The cluster; `None` while it forms.
    pub cluster: Option<u128>,
    /// The map in effect, as the wire has it; `None` while the cluster forms.
    pub map: Option<Bytes>,
    /// What each node told of itself.
    pub nodes: BTreeMap<u16, NodeRecord>,
    /// Who leads the monitors, as far as is known.
    pub leader: Option<u16>,
    /// The revision that all this is of.
    pub revision: u64,
}

impl Bootstrap {
    /// The map in effect.
    ///
    /// # Errors
    /// `Unavailable` while the cluster forms; `Corrupt` when it is no map.
    pub fn cluster_map(&self) -> Result<ClusterMap> {
        let Some(map) = &self.map else {
            return Err(Error::unavailable(
                "the cluster is still being formed: not all initial nodes have reported yet",
            ));
        };
        wire::decode_map(map)
    }
}
