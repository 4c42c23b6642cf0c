//! What the monitors want done.

use std::sync::Arc;

use tyr_types::{Epoch, NodeId, Result};

use crate::commit::OutcomeRetention;
use crate::map::ClusterMap;

/// What the monitors want done. The order among them does not matter; any may be lost.
#[derive(Debug)]
pub enum Effect {
    /// Tell the node that it has its lease.
    Grant {
        /// The node.
        to: NodeId,
        /// The incarnation that asked.
        incarnation: u64,
        /// When it asked, by its own clock.
        sent_us: u64,
        /// How long the lease lasts from then.
        duration_us: u64,
        /// The epoch of the map in effect.
        epoch: Epoch,
        /// How far all live nodes are done, and the highest clock (F10).
        retention: OutcomeRetention,
    },
    /// Ask the node to stop using what this map takes from it, and to say so.
    Prepare {
        /// The node.
        to: NodeId,
        /// The proposed map.
        map: Arc<ClusterMap>,
    },
    /// Tell everybody: this map is in effect.
    Publish(Arc<ClusterMap>),
    /// Tell one that is behind: this map is in effect.
    Inform {
        /// The node.
        to: NodeId,
        /// The map.
        map: Arc<ClusterMap>,
    },
    /// Answer a proposal: the epoch from which it is in effect, or why it cannot be.
    Answer {
        /// The number of the proposal.
        proposal: u64,
        /// What became of it.
        result: Result<Epoch>,
    },
}
