//! A node, as the cluster map has it.

use tyr_types::Epoch;

/// Whether a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It holds what the ring gives it.
    Up,
    /// It is back after it was down: it gets every write, and serves nothing before it has caught
    /// up (M4).
    Returning,
    /// It takes no part. On the ring it keeps its place until it is removed.
    Down,
}

impl NodeState {
    /// Its name, as in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Returning => "returning",
            Self::Down => "down",
        }
    }
}

/// Whether a node is on the ring, or on its way to it or from it. Follows from the two rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// On the ring, and stays there.
    In,
    /// On the next ring only.
    Joining,
    /// On the ring, not on the next one.
    Leaving,
    /// On neither: it left, and may join again.
    Out,
}

impl Membership {
    /// Its name, as in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Joining => "joining",
            Self::Leaving => "leaving",
            Self::Out => "out",
        }
    }
}

/// A node of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapNode {
    /// Grows with each restart; messages of an older one are not listened to (M4).
    pub incarnation: u64,
    /// Whether it takes part.
    pub state: NodeState,
    /// The epoch in which it last went down, came back or started again; when epochs were proposed
    /// and given up before it came back or started again, the first of them. Transactions of older
    /// epochs that pass it are driven anew (F1).
    pub since: Epoch,
    /// The highest feature level that its program speaks, as it said when it joined or last came
    /// back.
    pub level: u8,
}

impl MapNode {
    /// Whether it takes part: is up or returning.
    pub fn is_live(&self) -> bool {
        match self.state {
            NodeState::Up | NodeState::Returning => true,
            NodeState::Down => false,
        }
    }
}
