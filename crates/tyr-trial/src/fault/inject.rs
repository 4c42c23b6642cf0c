//! Faults, done to a cluster and mended.

use std::time::Duration;

use tyr_protocol::map::{Change, Membership};
use tyr_types::{BlobName, Error, NodeId, Result};

use super::cuts::{self, Cut, Lines};
use super::{Fault, Planned};
use crate::cluster::{Cluster, PATIENCE, Program};
use crate::fabric::Slowness;
use crate::random::Random;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// Clocks jump so far at most: past a change of the day, and whatever is kept for hours.
const JUMP_MAX: Duration = Duration::from_secs(72 * 3600);

/// What was done, and what mends it.
#[derive(Debug)]
pub struct Injected {
    /// What was done to whom, in words.
    pub text: String,
    mending: Mending,
}

#[derive(Debug)]
enum Mending {
    Start(Vec<u16>),
    Resume(u16),
    Join(Lines),
    Hasten(u16),
    EmptyDisk(u16),
    SetClock(u16),
    Nothing,
}

/// Does a fault. Some take their time: they are over when this returns.
///
/// # Errors
/// `Unavailable` when the system, or the cluster, does not do what it should.
pub fn inject(cluster: &mut Cluster, planned: &Planned, blob: &BlobName) -> Result<Injected> {
    let mut random = Random::of(planned.pick, "target", 0);
    let mut nodes = cluster.numbers();
    random.shuffle(&mut nodes);
    let any = nodes[0];
    match planned.fault {
        Fault::Kill => Ok(kill(cluster, &[any])),
        Fault::KillHead => {
            let head = ends(cluster, blob)?.0;
            Ok(kill(cluster, &[head]))
        }
        Fault::KillTail => {
            let tail = ends(cluster, blob)?.1;
            Ok(kill(cluster, &[tail]))
        }
        Fault::KillLeader => {
            let leader = cluster.leader().unwrap_or(any);
            Ok(kill(cluster, &[leader]))
        }
        Fault::KillTwo => Ok(kill(cluster, &nodes[..2.min(nodes.len())])),
        Fault::KillAll => Ok(kill(cluster, &nodes)),
        Fault::Pause => Ok(pause(cluster, any)),
        Fault::PauseLeader => {
            let leader = cluster.leader().unwrap_or(any);
            Ok(pause(cluster, leader))
        }
        Fault::Partition => cut(cluster, Cut::Others, &nodes, &mut random),
        Fault::Isolate => cut(cluster, Cut::Everybody, &nodes, &mut random),
        Fault::OneWay => cut(cluster, Cut::OneWay, &nodes, &mut random),
        Fault::Bridge => cut(cluster, Cut::One, &nodes, &mut random),
        Fault::CutFull => cut(cluster, Cut::Groups, &nodes, &mut random),
        Fault::CutPartial => cut(cluster, Cut::Some, &nodes, &mut random),
        Fault::CutTcp => cut(cluster, Cut::Tcp, &nodes, &mut random),
        Fault::Slow => slow(cluster, any, &mut random),
        Fault::Disk => fill(cluster),
        Fault::Clock => {
            let longest = if random.below(2) == 0 { MINUTE } else { HOUR };
            let by = random.between(longest.as_secs() / 60, longest.as_secs());
            jump(cluster, any, by, &mut random)
        }
        Fault::ClockHours => {
            let by = random.between(HOUR.as_secs(), JUMP_MAX.as_secs());
            jump(cluster, any, by, &mut random)
        }
        Fault::Rolling => {
            let program = cluster.plan.program.clone();
            roll(cluster, &program)
        }
        Fault::Upgrade => {
            let program = Program::usual()?;
            roll(cluster, &program)
        }
        Fault::Join => join(cluster),
    }
}

impl Injected {
    /// Mends it.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    pub fn mend(self, cluster: &mut Cluster) -> Result<()> {
        match self.mending {
            Mending::Start(nodes) => nodes.into_iter().try_for_each(|node| cluster.start(node)),
            Mending::Resume(node) => {
                cluster.process(node).resume();
                Ok(())
            }
            Mending::Join(lines) => lines.set(&*cluster.fabric, false),
            Mending::Hasten(node) => cluster.fabric.slow(node, None),
            Mending::EmptyDisk(node) => {
                cluster.process(node).empty_disk();
                Ok(())
            }
            Mending::SetClock(node) => cluster.process(node).shift_clock(0),
            Mending::Nothing => Ok(()),
        }
    }
}

/// The first and the last node of a blob's chain.
fn ends(cluster: &Cluster, blob: &BlobName) -> Result<(u16, u16)> {
    let holders = cluster.control.map()?.holders(blob, 0);
    match (holders.first(), holders.last()) {
        (Some(head), Some(tail)) => Ok((head.0, tail.0)),
        (None, _) | (_, None) => Err(Error::unavailable("nobody holds the blob")),
    }
}

fn kill(cluster: &mut Cluster, nodes: &[u16]) -> Injected {
    let leader = cluster.leader();
    for node in nodes {
        cluster.process(*node).kill();
    }
    let is_led = leader.is_some_and(|leader| nodes.contains(&leader));
    let text = format!("killed {nodes:?}{}", if is_led { ", the leader among them" } else { "" });
    Injected { text, mending: Mending::Start(nodes.into()) }
}

fn pause(cluster: &mut Cluster, node: u16) -> Injected {
    cluster.process(node).pause();
    Injected { text: format!("paused {node}"), mending: Mending::Resume(node) }
}

fn cut(cluster: &Cluster, which: Cut, nodes: &[u16], random: &mut Random) -> Result<Injected> {
    let (text, lines) = cuts::cut(cluster, which, nodes, random)?;
    Ok(Injected { text, mending: Mending::Join(lines) })
}

fn slow(cluster: &Cluster, node: u16, random: &mut Random) -> Result<Injected> {
    let delay = Duration::from_millis(random.between(20, 200));
    let slowness = Slowness { delay, loss_percent: random.between(0, 5) as u8 };
    cluster.fabric.slow(node, Some(slowness))?;
    let text = format!("{node} slow: {delay:?}, {} % lost", slowness.loss_percent);
    Ok(Injected { text, mending: Mending::Hasten(node) })
}

fn fill(cluster: &mut Cluster) -> Result<Injected> {
    let Some(node) = cluster.plan.small_disk else {
        return Ok(Injected { text: "no small disk".to_owned(), mending: Mending::Nothing });
    };
    cluster.process(node).fill_disk()?;
    Ok(Injected { text: format!("disk of {node} full"), mending: Mending::EmptyDisk(node) })
}

/// The clock of a node goes ahead, or back, by so many seconds.
fn jump(cluster: &mut Cluster, node: u16, by_s: u64, random: &mut Random) -> Result<Injected> {
    let by_s = by_s.cast_signed() * if random.below(2) == 0 { -1 } else { 1 };
    cluster.process(node).shift_clock(by_s * 1_000_000)?;
    let text = match by_s.unsigned_abs() < HOUR.as_secs() {
        true => format!("clock of {node} off by {by_s} s"),
        false => format!("clock of {node} off by {:.1} h", by_s as f64 / HOUR.as_secs_f64()),
    };
    Ok(Injected { text, mending: Mending::SetClock(node) })
}

/// Each node in turn: stopped, started as this program, and waited for.
fn roll(cluster: &mut Cluster, program: &Program) -> Result<Injected> {
    let mut took = Vec::new();
    cluster.plan.program = program.clone();
    for node in cluster.numbers() {
        cluster.process(node).stop()?;
        cluster.start(node)?;
        took.push(format!("{:.1}", cluster.wait_until_whole(PATIENCE)?.as_secs_f64()));
    }
    let text = format!("restarted all; whole again after {} s", took.join(", "));
    Ok(Injected { text, mending: Mending::Nothing })
}

/// One more node: it joins, has its share, is drained, and stops.
fn join(cluster: &mut Cluster) -> Result<Injected> {
    let node = cluster.numbers().last().map_or(0, |last| last + 1);
    cluster.add(node, true)?;
    cluster.start(node)?;
    cluster.control.let_in(NodeId(node))?;
    let joined = cluster.wait_until(node, Membership::In, PATIENCE)?.as_secs_f64();
    cluster.control.propose(Change::Drain(NodeId(node)))?;
    let left = cluster.wait_until(node, Membership::Out, PATIENCE)?.as_secs_f64();
    cluster.remove(node)?;
    let text = format!("{node} joined in {joined:.1} s, left in {left:.1} s");
    Ok(Injected { text, mending: Mending::Nothing })
}
