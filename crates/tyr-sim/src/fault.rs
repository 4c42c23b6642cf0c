//! What goes wrong in a run, and when.

use std::collections::BTreeSet;

use tyr_types::{KeyspaceId, NodeId};

use crate::random::Random;

/// Something that goes wrong, or is mended, or is done by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed: what it had in memory is gone, what it had given to the disk without
    /// a sync is there up to a random point.
    Crash(NodeId),
    /// The process ends in order: all that it had given to the disk is there.
    Stop(NodeId),
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
    /// Some bytes of a chunk on the node's disk cannot be read any more, of a chunk that all other
    /// holders can read. Does nothing if there is none.
    Rot(NodeId),
    /// The process does nothing for so many microseconds; its clocks go on, messages queue up.
    Pause(NodeId, u64),
    /// An operator adds this node, with an empty disk.
    Add(NodeId),
    /// An operator removes this node once its data is elsewhere.
    Drain(NodeId),
    /// An operator gives this node another weight.
    Weight(NodeId, u32),
    /// Somebody wants the process that runs as this node, or ran last, declared down, as gossip
    /// does; whether it is gone or not.
    OrderDown(NodeId),
    /// Nobody hears of the monitors any more.
    Upset(Upset),
    /// It is over: others lead, or the same ones again.
    Lead(Upset),
    /// An operator drops this keyspace.
    DropKeyspace(KeyspaceId),
    /// An operator accepts that what nodes that are down alone had of this keyspace is lost.
    AcceptLoss(KeyspaceId),
    /// An operator keeps a snapshot.
    Keep,
    /// An operator drops the oldest kept snapshot.
    DropKept,
    /// This client's machine sleeps for so many microseconds: what is sent to it meanwhile is lost,
    /// and its clocks go on.
    Sleep(u16, u64),
    /// The wall clock of this client's machine jumps by so many microseconds, and stays so.
    ClientJump(u16, i64),
}

/// What happens to the monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upset {
    /// Who leads fails. Others follow, who know what is in consensus and no more.
    Change,
    /// Who leads hears and decides on, and nobody hears of it. Others follow, as above.
    Mute,
    /// Who leads has no majority for a while, and decides nothing.
    Pause,
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

    /// Whether nodes only come and change their weights.
    pub fn is_growth(&self) -> bool {
        self.0.iter().all(|(_, fault)| matches!(fault, Fault::Add(_) | Fault::Weight(..)))
    }

    /// Whether nothing but clocks jumps.
    pub fn is_of_clocks(&self) -> bool {
        self.0.iter().all(|(_, fault)| matches!(fault, Fault::ClockJump(..)))
    }

    /// Whether something on disks goes bad.
    pub fn has_rot(&self) -> bool {
        self.0.iter().any(|(_, fault)| matches!(fault, Fault::Rot(_)))
    }

    /// The keyspaces that are dropped, each with the time when that is first wanted.
    pub fn dropped(&self) -> Vec<(KeyspaceId, u64)> {
        let dropped = self.0.iter().filter_map(|(at_us, fault)| {
            let Fault::DropKeyspace(keyspace) = fault else { return None };
            Some((*keyspace, *at_us))
        });
        dropped.collect()
    }

    /// The same plan without the `place`-th fault.
    #[must_use]
    pub fn without(&self, place: usize) -> Self {
        let mut faults = self.0.clone();
        faults.remove(place);
        Self(faults)
    }

    /// A plan of all kinds of faults at random over so many microseconds, for a cluster of `nodes`
    /// nodes to which one more may be added.
    ///
    /// Each is mended before the next of its kind, and of the nodes one at a time is down, cut off
    /// or empty, but for losses of power everywhere, which no disk notices.
    pub fn random(random: &mut Random, nodes: u16, duration_us: u64) -> Self {
        let mut plan = Vec::new();
        let mut at_us = random.between(200_000, 2_000_000);
        let mut has_changed = false;
        while at_us < duration_us {
            let lasts_us = match random.percent(30) {
                true => random.between(2_000_000, 6_000_000),
                false => random.between(10_000, 2_000_000),
            };
            let kind = random.below(19);
            let is_change = (13..16).contains(&kind);
            if is_change && has_changed {
                continue; // One change of the ring in a run: each takes its time.
            }
            has_changed |= is_change;
            draw(random, nodes, kind, at_us, lasts_us, &mut plan);
            at_us += lasts_us + random.between(50_000, 3_000_000);
        }
        Self::new(plan)
    }
}

/// Draws a fault of this kind, with what mends it, for a stretch that begins at `at_us`.
fn draw(
    random: &mut Random,
    nodes: u16,
    kind: u64,
    at_us: u64,
    lasts_us: u64,
    plan: &mut Vec<(u64, Fault)>,
) {
    let all: Vec<NodeId> = (0..nodes).map(NodeId).collect();
    let [node, other] = match random.sample(&all, 2)[..] {
        [node, other] => [node, other],
        _ => [NodeId(0); 2],
    };
    let end_us = at_us + lasts_us;
    let mut push = |at_us, fault| plan.push((at_us, fault));
    match kind {
        0..3 => {
            push(at_us, Fault::Crash(node));
            push(end_us, Fault::Restart(node));
        }
        3 => {
            push(at_us, Fault::PowerLoss);
            push(end_us, Fault::RestartAll);
        }
        4..6 => {
            let cut = random.between(1, (u64::from(nodes) / 2).max(1));
            let few: BTreeSet<NodeId> = random.sample(&all, cut as usize).into_iter().collect();
            let many = all.iter().copied().filter(|node| !few.contains(node)).collect();
            let has_monitors = random.percent(20);
            let groups = vec![
                Group { nodes: few, has_monitors },
                Group { nodes: many, has_monitors: !has_monitors },
            ];
            push(at_us, Fault::Partition(groups));
            push(end_us, Fault::Join);
        }
        6 => {
            push(at_us, Fault::OneWay(node, other));
            push(end_us, Fault::Join);
        }
        7 => {
            push(at_us, Fault::NoMonitors(node));
            push(end_us, Fault::Join);
        }
        8 => {
            push(at_us, Fault::Loss(20_000));
            push(at_us, Fault::Duplication(20_000));
            push(end_us, Fault::Loss(0));
            push(end_us, Fault::Duplication(0));
        }
        9 => {
            push(at_us, Fault::SlowLink(node, other, random.between(5_000, 300_000)));
            push(end_us, Fault::Join);
        }
        10 => {
            let by_us = random.between(1_000, 180_000_000) as i64;
            push(at_us, Fault::ClockJump(node, if random.percent(50) { by_us } else { -by_us }));
        }
        11 => {
            push(at_us, Fault::SlowDisk(node, random.between(5, 100) as u32));
            push(end_us, Fault::SlowDisk(node, 1));
            push(at_us, Fault::Pause(other, lasts_us));
        }
        12 => {
            push(at_us, Fault::FullDisk(node));
            push(end_us, Fault::RoomOnDisk(node));
            push(end_us, Fault::Crash(node));
            push(end_us + 100_000, Fault::Restart(node));
        }
        13 => push(at_us, Fault::Add(NodeId(nodes))),
        14 => push(at_us, Fault::Drain(node)),
        15 => push(at_us, Fault::Replace(node)),
        _ => plan.extend(draw_rest(random, node, kind, at_us, end_us)),
    }
}

/// The kinds that are about stops and about monitors.
fn draw_rest(
    random: &mut Random,
    node: NodeId,
    kind: u64,
    at_us: u64,
    end_us: u64,
) -> Vec<(u64, Fault)> {
    match kind {
        16 => vec![(at_us, Fault::Stop(node)), (end_us, Fault::Restart(node))],
        17 => {
            let upset = random.pick(&[Upset::Change, Upset::Mute, Upset::Pause]);
            vec![(at_us, Fault::Upset(upset)), (end_us, Fault::Lead(upset))]
        }
        _ => vec![(at_us, Fault::OrderDown(node))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_plan_is_in_order_and_comes_again() {
        for seed in 0..50 {
            let plan = FaultPlan::random(&mut Random::new(seed), 5, 30_000_000);
            assert!(!plan.faults().is_empty());
            assert!(plan.faults().is_sorted_by_key(|(at_us, _)| *at_us));
            assert_eq!(plan, FaultPlan::random(&mut Random::new(seed), 5, 30_000_000));
        }
    }

    #[test]
    fn a_cluster_of_one_has_faults_too() {
        FaultPlan::random(&mut Random::new(1), 1, 60_000_000);
    }
}
