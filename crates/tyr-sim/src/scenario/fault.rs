//! What goes wrong, and when: the fault statements of a scenario.
//!
//! A statement may leave choices open (`random`, `it`, a span of times, `sometimes`). Drawing
//! closes them; after that a statement names moments and nodes.

use std::fmt;

use crate::fault::{Group, Upset};

use super::quantity::{Micros, Share, Span};

/// A statement: when, what, for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultLine {
    /// When it happens.
    pub when: When,
    /// What happens.
    pub fault: Fault,
    /// How long until it is undone; for ever (until healing) when not said.
    pub lasts: Option<Span<Micros>>,
    /// Whether each occurrence is left to chance, one in two.
    pub is_sometimes: bool,
}

/// When a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Once, at a moment of this span.
    At(Span<Micros>),
    /// Again and again, each time after a pause of this span, until healing.
    Every(Span<Micros>),
}

/// A node that something happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Any node to which it can happen.
    Random,
    /// The node of the statement before that named one.
    It,
    /// This one.
    Node(u16),
}

/// How a partition divides the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Two random halves; the monitors are with one of them or with both.
    RandomHalves,
    /// Two random halves that one node belongs to both of.
    RandomBridge,
    /// One node alone, without monitors.
    One(Target),
    /// These groups; a node in none of them is alone.
    Groups(Vec<Group>),
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node's process ends; what was not synced is lost. Undone by a restart.
    Crash(Target),
    /// A node's process ends in order; nothing is lost. Undone by a restart.
    Stop(Target),
    /// Every node's process ends in order, at some moment of the next so many microseconds; drawn,
    /// it is a [`Fault::Stop`] of each. Undone by restarts.
    StopAll(Micros),
    /// A node that is down starts again from its disk.
    Restart(Target),
    /// A node starts again with an empty disk.
    Replace(Target),
    /// All nodes lose power at once. Undone by restarting all of them.
    PowerLoss,
    /// A node stands still; its clocks go on. Undone by going on.
    Pause(Target),
    /// Nodes of one side and those of the other do not hear each other.
    Partition(Sides),
    /// What the first sends does not reach the second.
    OneWay(Target, Target),
    /// A node does not reach the monitors, nor they it.
    Unseen(Target),
    /// All that goes between the two takes so much longer.
    SlowLink(Target, Target, Micros),
    /// This share of all messages is lost.
    Loss(Share),
    /// This share of all messages comes twice.
    Duplicate(Share),
    /// A node's wall clock jumps.
    ClockJump(Target, Jump),
    /// A node's disk takes so many times longer to sync.
    SlowDisk(Target, u32),
    /// A node's disk takes no more.
    FullDisk(Target),
    /// Some bytes on a node's disk cannot be read any more.
    Rot(Target),
    /// A new node joins: the one with the next free number, or this one.
    Join(Option<u16>),
    /// A node gives its data away and leaves.
    Drain(Target),
    /// A node gets this weight; 100 is usual.
    Weight(Target, u32),
    /// The monitors are asked to declare a node's process down, rightly or not.
    OrderDown(Target),
    /// Nobody hears of the monitors. Undone by others who lead, or the same ones.
    Monitors(Upset),
    /// An operator drops the keyspace of this name, whatever is in flight there.
    Drop(String),
    /// An operator accepts that what nodes that are down alone had of this keyspace is lost.
    AcceptLoss(String),
    /// An operator keeps a snapshot (V7).
    Keep,
    /// An operator drops the oldest kept snapshot.
    Unkeep,
    /// The machine of a client, of any or of this one, sleeps: what is sent to it is lost.
    Sleep(Option<u16>),
    /// The wall clock of this client's machine jumps, and stays so.
    ClientJump(u16, Jump),
}

/// How far a clock jumps, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// How far.
    pub by: Micros,
    /// Whether back in time.
    pub is_back: bool,
}

impl Jump {
    /// The microseconds to add.
    pub fn by_us(&self) -> i64 {
        let by = i64::try_from(self.by.0).unwrap_or(i64::MAX);
        if self.is_back { -by } else { by }
    }
}

impl Fault {
    /// Whether it has an end, so that `for` may follow.
    pub fn is_undoable(&self) -> bool {
        match self {
            Self::Crash(_)
            | Self::Stop(_)
            | Self::StopAll(_)
            | Self::PowerLoss
            | Self::Pause(_)
            | Self::Partition(_)
            | Self::OneWay(..)
            | Self::Unseen(_)
            | Self::SlowLink(..)
            | Self::Loss(_)
            | Self::Duplicate(_)
            | Self::SlowDisk(..)
            | Self::FullDisk(_)
            | Self::Monitors(_)
            | Self::Sleep(_) => true,
            Self::Restart(_)
            | Self::Replace(_)
            | Self::ClockJump(..)
            | Self::Rot(_)
            | Self::Join(_)
            | Self::Drain(_)
            | Self::Weight(..)
            | Self::OrderDown(_)
            | Self::Drop(_)
            | Self::AcceptLoss(_)
            | Self::Keep
            | Self::Unkeep
            | Self::ClientJump(..) => false,
        }
    }

    /// Whether `for` must follow: it does not last until healing.
    pub fn must_end(&self) -> bool {
        match self {
            Self::Pause(_) | Self::StopAll(_) | Self::Monitors(_) | Self::Sleep(_) => true,
            Self::Crash(_)
            | Self::Stop(_)
            | Self::PowerLoss
            | Self::Partition(_)
            | Self::OneWay(..)
            | Self::Unseen(_)
            | Self::SlowLink(..)
            | Self::Loss(_)
            | Self::Duplicate(_)
            | Self::SlowDisk(..)
            | Self::FullDisk(_)
            | Self::Restart(_)
            | Self::Replace(_)
            | Self::ClockJump(..)
            | Self::Rot(_)
            | Self::Join(_)
            | Self::Drain(_)
            | Self::Weight(..)
            | Self::OrderDown(_)
            | Self::Drop(_)
            | Self::AcceptLoss(_)
            | Self::Keep
            | Self::Unkeep
            | Self::ClientJump(..) => false,
        }
    }

    /// The nodes it happens to, where the statement names them one by one.
    pub fn targets_mut(&mut self) -> [Option<&mut Target>; 2] {
        match self {
            Self::Crash(target)
            | Self::Stop(target)
            | Self::Restart(target)
            | Self::Replace(target)
            | Self::Pause(target)
            | Self::Unseen(target)
            | Self::ClockJump(target, _)
            | Self::SlowDisk(target, _)
            | Self::FullDisk(target)
            | Self::Rot(target)
            | Self::Drain(target)
            | Self::Weight(target, _)
            | Self::OrderDown(target)
            | Self::Partition(Sides::One(target)) => [Some(target), None],
            Self::OneWay(from, to) | Self::SlowLink(from, to, _) => [Some(from), Some(to)],
            Self::Partition(Sides::RandomHalves | Sides::RandomBridge | Sides::Groups(_))
            | Self::StopAll(_)
            | Self::PowerLoss
            | Self::Loss(_)
            | Self::Duplicate(_)
            | Self::Join(_)
            | Self::Monitors(_)
            | Self::Drop(_)
            | Self::AcceptLoss(_)
            | Self::Keep
            | Self::Unkeep
            | Self::Sleep(_)
            | Self::ClientJump(..) => [None, None],
        }
    }

    /// The targets, as [`Fault::targets_mut`] finds them.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        let mut copy = self.clone();
        copy.targets_mut().map(|target| target.copied()).into_iter().flatten()
    }

    /// The client that it names by number.
    pub fn named_client(&self) -> Option<u16> {
        if let Self::ClientJump(client, _) = self {
            return Some(*client);
        }
        if let Self::Sleep(client) = self { *client } else { None }
    }

    /// The nodes that it names by number.
    pub fn named_nodes(&self) -> Vec<u16> {
        if let Self::Partition(Sides::Groups(groups)) = self {
            return groups.iter().flat_map(|group| &group.nodes).map(|node| node.0).collect();
        }
        if let Self::Join(Some(node)) = self {
            return vec![*node];
        }
        let named = self.targets().filter_map(|target| match target {
            Target::Node(node) => Some(node),
            Target::Random | Target::It => None,
        });
        named.collect()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::It => f.write_str("it"),
            Self::Node(node) => write!(f, "node {node}"),
        }
    }
}

impl fmt::Display for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RandomHalves => f.write_str("random halves"),
            Self::RandomBridge => f.write_str("random bridge"),
            Self::One(target) => write!(f, "{target}"),
            Self::Groups(groups) => {
                f.write_str("nodes")?;
                for (place, group) in groups.iter().enumerate() {
                    f.write_str(if place > 0 { " |" } else { "" })?;
                    group.nodes.iter().try_for_each(|node| write!(f, " {}", node.0))?;
                    f.write_str(if group.has_monitors { " monitors" } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.is_back { "back" } else { "forward" };
        write!(f, "{direction} {}", self.by)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash(target) => write!(f, "crash {target}"),
            Self::Stop(target) => write!(f, "stop {target}"),
            Self::StopAll(within) => write!(f, "stop all within {within}"),
            Self::Restart(target) => write!(f, "restart {target}"),
            Self::Replace(target) => write!(f, "replace {target}"),
            Self::PowerLoss => f.write_str("power loss"),
            Self::Pause(target) => write!(f, "pause {target}"),
            Self::Partition(sides) => write!(f, "partition {sides}"),
            Self::OneWay(from, to) => write!(f, "one-way {from} to {to}"),
            Self::Unseen(target) => write!(f, "unseen {target}"),
            Self::SlowLink(one, other, by) => write!(f, "slow link {one} to {other} by {by}"),
            Self::Loss(share) => write!(f, "loss {share}"),
            Self::Duplicate(share) => write!(f, "duplicate {share}"),
            Self::ClockJump(target, jump) => write!(f, "jump {target} {jump}"),
            Self::SlowDisk(target, times) => write!(f, "slow disk {target} times {times}"),
            Self::FullDisk(target) => write!(f, "full disk {target}"),
            Self::Rot(target) => write!(f, "rot {target}"),
            Self::Join(None) => f.write_str("join"),
            Self::Join(Some(node)) => write!(f, "join node {node}"),
            Self::Drain(target) => write!(f, "drain {target}"),
            Self::Weight(target, weight) => write!(f, "weight {target} {weight}"),
            Self::OrderDown(target) => write!(f, "order down {target}"),
            Self::Monitors(Upset::Change) => f.write_str("monitors change"),
            Self::Monitors(Upset::Mute) => f.write_str("monitors mute"),
            Self::Monitors(Upset::Pause) => f.write_str("monitors pause"),
            Self::ClientJump(client, jump) => write!(f, "jump client {client} {jump}"),
            Self::Drop(name) => write!(f, "drop {name}"),
            Self::AcceptLoss(name) => write!(f, "accept loss {name}"),
            Self::Keep => f.write_str("keep"),
            Self::Unkeep => f.write_str("unkeep"),
            Self::Sleep(None) => f.write_str("sleep random"),
            Self::Sleep(Some(client)) => write!(f, "sleep client {client}"),
        }
    }
}

impl fmt::Display for FaultLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.when {
            When::At(span) => write!(f, "at {span} ")?,
            When::Every(span) => write!(f, "every {span} ")?,
        }
        write!(f, "{}", self.fault)?;
        if let Some(lasts) = self.lasts {
            write!(f, " for {lasts}")?;
        }
        if self.is_sometimes {
            f.write_str(" sometimes")?;
        }
        Ok(())
    }
}
