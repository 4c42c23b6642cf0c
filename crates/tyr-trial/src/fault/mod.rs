//! What is done to a cluster while clients use it, and when.
//!
//! [`mod@schedule`] draws from the seed what happens and for how long; [`inject`] does it and mends
//! it, [`cuts`] takes lines away. Faults come one at a time, so that each has its own line in the
//! report: how long nothing went on, and when the cluster was whole again. Only cuts that last
//! longer than everything that nodes wait for, or remember, have others within.

pub mod cuts;
pub mod inject;
pub mod schedule;

pub use self::inject::Injected;
pub use self::schedule::{Planned, schedule};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumCount)]
pub enum Fault {
    /// Any node is killed, and started again a while later.
    Kill,
    /// The head of some blob's chain is.
    KillHead,
    /// The tail is.
    KillTail,
    /// The leader of the monitors is.
    KillLeader,
    /// Two nodes are, at once.
    KillTwo,
    /// All nodes are, at once.
    KillAll,
    /// Any node stands still for longer than its lease.
    Pause,
    /// The leader of the monitors does.
    PauseLeader,
    /// A node is cut off from the others; clients still reach it.
    Partition,
    /// A node is cut off from the others and from clients.
    Isolate,
    /// What a node sends reaches no other node, or what they send does not reach it.
    OneWay,
    /// Two nodes cannot talk to each other; a third talks to both.
    Bridge,
    /// Two groups of nodes do not hear each other, for a minute and a half.
    CutFull,
    /// Nor do these, but a node between them hears both; or some lines are cut one way.
    CutPartial,
    /// Two groups have no TCP with each other as long, while the datagrams of gossip pass.
    CutTcp,
    /// A node's lines are slow and lose packets.
    Slow,
    /// A node's disk is full.
    Disk,
    /// A node's wall clock jumps, and jumps back.
    Clock,
    /// It does so by hours, ahead or back.
    ClockHours,
    /// All nodes are stopped cleanly and started again, one after the other.
    Rolling,
    /// The same, and they come back as another program.
    Upgrade,
    /// A node joins, and leaves again.
    Join,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Kill,
        Self::KillHead,
        Self::KillTail,
        Self::KillLeader,
        Self::KillTwo,
        Self::KillAll,
        Self::Pause,
        Self::PauseLeader,
        Self::Partition,
        Self::Isolate,
        Self::OneWay,
        Self::Bridge,
        Self::CutFull,
        Self::CutPartial,
        Self::CutTcp,
        Self::Slow,
        Self::Disk,
        Self::Clock,
        Self::ClockHours,
        Self::Rolling,
        Self::Upgrade,
        Self::Join,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::KillHead => "kill-head",
            Self::KillTail => "kill-tail",
            Self::KillLeader => "kill-leader",
            Self::KillTwo => "kill-two",
            Self::KillAll => "kill-all",
            Self::Pause => "pause",
            Self::PauseLeader => "pause-leader",
            Self::Partition => "partition",
            Self::Isolate => "isolate",
            Self::OneWay => "one-way",
            Self::Bridge => "bridge",
            Self::CutFull => "cut-full",
            Self::CutPartial => "cut-partial",
            Self::CutTcp => "cut-tcp",
            Self::Slow => "slow",
            Self::Disk => "disk",
            Self::Clock => "clock",
            Self::ClockHours => "clock-hours",
            Self::Rolling => "rolling",
            Self::Upgrade => "upgrade",
            Self::Join => "join",
        }
    }

    /// What it does, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Kill => "kill -9 of any node, started again later",
            Self::KillHead => "kill -9 of the head of a blob's chain",
            Self::KillTail => "kill -9 of the tail of a blob's chain",
            Self::KillLeader => "kill -9 of the leader of the monitors",
            Self::KillTwo => "kill -9 of two nodes at once",
            Self::KillAll => "kill -9 of all nodes at once",
            Self::Pause => "SIGSTOP of a node for longer than its lease",
            Self::PauseLeader => "SIGSTOP of the leader of the monitors",
            Self::Partition => "a node cut off from the others, not from clients",
            Self::Isolate => "a node cut off from the others and from clients",
            Self::OneWay => "a node cut off one way only",
            Self::Bridge => "two nodes cut off from each other, not from a third",
            Self::CutFull => "two groups of nodes apart for 90 s",
            Self::CutPartial => "the same with a node between them, or some lines cut one way",
            Self::CutTcp => "two groups without TCP for 90 s, while gossip's UDP passes",
            Self::Slow => "a node behind a slow line that loses packets",
            Self::Disk => "a full disk at one node (which gets a small one)",
            Self::Clock => "the wall clock of a node jumps by up to an hour",
            Self::ClockHours => "the same by one hour to three days, ahead or back",
            Self::Rolling => "clean restart of each node in turn",
            Self::Upgrade => "the same, from the program given by --previous to this one",
            Self::Join => "one more node joins, takes its share, and is drained",
        }
    }

    /// The fault of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether it lasts longer than everything that nodes wait for, or remember: runs of a few
    /// minutes have it only when they are told so.
    pub fn is_long(self) -> bool {
        match self {
            Self::CutFull | Self::CutPartial | Self::CutTcp => true,
            Self::Kill
            | Self::KillHead
            | Self::KillTail
            | Self::KillLeader
            | Self::KillTwo
            | Self::KillAll
            | Self::Pause
            | Self::PauseLeader
            | Self::Partition
            | Self::Isolate
            | Self::OneWay
            | Self::Bridge
            | Self::Slow
            | Self::Disk
            | Self::Clock
            | Self::ClockHours
            | Self::Rolling
            | Self::Upgrade
            | Self::Join => false,
        }
    }

    /// Whether it may come while lines are cut: it asks no monitor, which may not answer then, and
    /// its mending joins no line.
    pub fn may_be_within(self) -> bool {
        match self {
            Self::Kill | Self::Pause | Self::Clock | Self::ClockHours => true,
            Self::KillHead
            | Self::KillTail
            | Self::KillLeader
            | Self::KillTwo
            | Self::KillAll
            | Self::PauseLeader
            | Self::Partition
            | Self::Isolate
            | Self::OneWay
            | Self::Bridge
            | Self::CutFull
            | Self::CutPartial
            | Self::CutTcp
            | Self::Slow
            | Self::Disk
            | Self::Rolling
            | Self::Upgrade
            | Self::Join => false,
        }
    }
}
