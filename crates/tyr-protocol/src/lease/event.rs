//! What the monitors are told.

use tyr_types::{Epoch, NodeId};

use crate::commit::OutcomeRetention;
use crate::map::Change;

/// What the monitors are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node asks for its lease.
    Renew {
        /// The node.
        node: NodeId,
        /// Its incarnation.
        incarnation: u64,
        /// The epoch of its map.
        epoch: Epoch,
        /// When it asked, by its own clock; goes back to it.
        sent_us: u64,
        /// How far it is done, and its clock (F10).
        retention: OutcomeRetention,
    },
    /// A node has stopped using what the proposed map of this epoch takes from it.
    Prepared {
        /// The node.
        node: NodeId,
        /// Its incarnation.
        incarnation: u64,
        /// The epoch of the proposed map.
        epoch: Epoch,
    },
    /// A node has everything that it is a recipient of by the map of this epoch. It says so again
    /// from time to time, and for every new map, until it is a recipient no more.
    CaughtUp {
        /// The node.
        node: NodeId,
        /// Its incarnation.
        incarnation: u64,
        /// The epoch of its map.
        epoch: Epoch,
    },
    /// A node has started again. It says so from time to time until a map has its incarnation.
    Return {
        /// The node.
        node: NodeId,
        /// Its new incarnation.
        incarnation: u64,
        /// The epoch of its map.
        epoch: Epoch,
        /// Whether it still has what it stored.
        has_disk: bool,
        /// The highest feature level that its program speaks.
        level: u8,
    },
    /// Somebody wants a change.
    Propose {
        /// The number under which it is answered.
        proposal: u64,
        /// The change.
        change: Change,
    },
    /// Time has passed. To be told every 100 ms or so.
    Tick,
    /// These monitors take over from others, whose leases they know nothing of.
    Lead,
}
