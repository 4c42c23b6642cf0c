//! What the monitors know of a node beside the map.

use tyr_types::Epoch;

use crate::commit::OutcomeRetention;

/// What the monitors know of a node, by their own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeInfo {
    /// The node holds no lease from here on.
    pub expires_us: u64,
    /// When it was last heard of.
    pub heard_us: u64,
    /// When this incarnation of it was taken in; at the latest when these monitors took over, and
    /// not known of those that were there in the beginning.
    pub came_us: Option<u64>,
    /// When it was declared down; of use only while it is.
    pub down_us: u64,
    /// It gets no lease with an older map than this: somebody lost something by it.
    pub epoch_min: Epoch,
    /// It has started again, and no map says so yet.
    pub back: Option<Back>,
    /// The map by which it could neither be declared down nor taken back: there is no use in trying
    /// again before there is another.
    pub kept_in: Option<Epoch>,
    /// What it last said of how far it is done; also what an earlier process of it said, since that
    /// was durable (F10).
    pub retention: OutcomeRetention,
}

/// A node has started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Back {
    /// Its new incarnation.
    pub incarnation: u64,
    /// The epoch of the newest map that it said it has.
    pub epoch: Epoch,
    /// Whether it still has what it stored.
    pub has_disk: bool,
    /// The highest feature level that its program speaks.
    pub level: u8,
}
