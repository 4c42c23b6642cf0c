//! What goes into a machine and what comes out.
//!
//! Must not know: how the one becomes the other.

use std::net::SocketAddr;

use tyr_types::{Epoch, NodeId};

use super::config::GossipConfig;
use super::peer::PeerState;
use tyr_net::access::Key;

/// Who gossips, and how.
#[derive(Clone, Debug)]
pub struct MachineParts {
    /// This node.
    pub node: NodeId,
    /// Its incarnation (M4): above 0, and higher than in all its earlier processes.
    pub incarnation: u64,
    /// The cluster, when it is known.
    pub cluster: Option<u128>,
    /// The cluster's secret, if it has one.
    pub secret: Option<Key>,
    /// Intervals and bounds.
    pub config: GossipConfig,
    /// Of random choices: whom to ask next.
    pub seed: u64,
}

/// What happens to a machine.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A datagram came.
    Datagram {
        /// Whence.
        from: SocketAddr,
        /// All of it.
        bytes: &'a [u8],
    },
    /// It is [`super::Machine::wakes_at`].
    Tick,
}

/// What a machine wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A datagram is to be sent; it may be lost.
    Send {
        /// Where to.
        to: SocketAddr,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// Something was found.
    Event(GossipEvent),
}

/// What gossip finds. It proposes; only the monitors decide (M2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GossipEvent {
    /// The node lives.
    Alive {
        /// The node.
        node: NodeId,
        /// Its incarnation.
        incarnation: u64,
    },
    /// The node does not answer.
    Suspect {
        /// The node.
        node: NodeId,
        /// Its incarnation.
        incarnation: u64,
    },
    /// The node is gone: it was silent for too long, or said goodbye.
    Down {
        /// The node.
        node: NodeId,
        /// Its incarnation; 0 if it was never heard.
        incarnation: u64,
    },
    /// There is a map with a higher epoch than all that were known here.
    Epoch {
        /// The epoch.
        epoch: Epoch,
        /// Who has the map.
        node: NodeId,
    },
}

/// A node as it looks from here.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The node.
    pub node: NodeId,
    /// Its incarnation; 0 if it was never heard.
    pub incarnation: u64,
    /// Whether it lives.
    pub state: PeerState,
    /// How sure one may be that it is gone: 0 when it owes no answer, 8 is very sure.
    pub phi: f64,
    /// When it was heard last, itself or around others, in microseconds before now.
    pub heard_us_ago: Option<u64>,
    /// How long its answers take, smoothed.
    pub round_trip_us: Option<u64>,
}
