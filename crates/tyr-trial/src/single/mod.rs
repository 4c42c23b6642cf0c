//! Tests of one thing each, on a cluster of their own.
//!
//! Each says in words what it saw, with times, or fails with what it should have seen.

mod gone;
mod lease;
mod mixed;
mod overload;
mod replace;
mod strangers;

use std::path::PathBuf;
use std::sync::Arc;

use tyr_types::{Error, Result};

use self::overload::Length;
use crate::cluster::{Cluster, Plan, Program, Sizes};
use crate::fabric::Fabric;

/// A single test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount)]
pub enum Single {
    /// A node paused past its lease.
    PausedLease,
    /// The same with a node that ignores its lease.
    PausedUnleased,
    /// One of three nodes is gone.
    OneGone,
    /// A node is replaced by another.
    Replace,
    /// Many more clients than are served.
    Overload,
    /// The same for a shorter time.
    OverloadBrief,
    /// Who speaks no protocol of ours.
    Strangers,
    /// Programs of two releases, of which the later has one more operation.
    Mixed,
}

/// Where a single test takes place.
#[derive(Clone)]
pub struct Ground {
    /// The network.
    pub fabric: Arc<dyn Fabric>,
    /// Its folder.
    pub folder: PathBuf,
    /// What runs.
    pub program: Program,
}

impl Ground {
    /// A cluster of so many nodes that break this rule.
    ///
    /// # Errors
    /// As [`Cluster::form`].
    pub fn cluster(&self, nodes: u16, broken: Option<&str>) -> Result<Cluster> {
        // Only our own node breaks rules.
        let program = match broken {
            Some(_) => Program::own()?,
            None => self.program.clone(),
        };
        let plan = Plan {
            nodes,
            folder: self.folder.clone(),
            program,
            broken: broken.map(str::to_owned),
            small_disk: None,
            sizes: Sizes::default(),
        };
        Cluster::form(plan, Arc::clone(&self.fabric))
    }
}

impl Single {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::PausedLease,
        Self::PausedUnleased,
        Self::OneGone,
        Self::Replace,
        Self::Overload,
        Self::OverloadBrief,
        Self::Strangers,
        Self::Mixed,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::PausedLease => "paused",
            Self::PausedUnleased => "paused-broken",
            Self::OneGone => "one-gone",
            Self::Replace => "replace",
            Self::Overload => "overload",
            Self::OverloadBrief => "overload-brief",
            Self::Strangers => "strangers",
            Self::Mixed => "mixed",
        }
    }

    /// What it shows, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::PausedLease => "a node paused past its lease never answers a stale read",
            Self::PausedUnleased => "one that ignores its lease (M3) does, and that is seen",
            Self::OneGone => "with one of three nodes gone reads and writes go on within 5 s",
            Self::Replace => "what a lost node held is on another soon",
            Self::Overload => "too many clients are refused, memory stays bounded",
            Self::OverloadBrief => "the same, for a quarter of the time",
            Self::Strangers => "scanners, browsers and noise do not disturb a cluster",
            Self::Mixed => "a release with one more operation comes node by node, others go on",
        }
    }

    /// The test of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|single| single.name() == name)
    }

    /// Whether continuous integration runs it.
    pub fn is_in_suite(self) -> bool {
        match self {
            Self::PausedLease
            | Self::PausedUnleased
            | Self::OneGone
            | Self::OverloadBrief
            | Self::Strangers
            | Self::Mixed => true,
            Self::Replace | Self::Overload => false,
        }
    }

    /// Runs it; answers what was seen.
    ///
    /// # Errors
    /// What should not have been.
    pub fn run(self, ground: &Ground) -> Result<String> {
        match self {
            Self::PausedLease => match lease::stale_reads(ground, None)? {
                (reads, 0) => Ok(format!("{reads} reads at the paused node, none stale")),
                (reads, stale) => {
                    Err(Error::corrupt(format!("{stale} of {reads} reads were stale")))
                }
            },
            Self::PausedUnleased => match lease::stale_reads(ground, Some("M3"))? {
                (reads, 0) => Err(Error::corrupt(format!("none of {reads} reads was stale"))),
                (reads, stale) => Ok(format!("{stale} of {reads} reads were stale, as expected")),
            },
            Self::OneGone => gone::run(ground),
            Self::Replace => replace::run(ground),
            Self::Overload => overload::run(ground, Length::Full),
            Self::OverloadBrief => overload::run(ground, Length::Brief),
            Self::Strangers => strangers::run(ground),
            Self::Mixed => mixed::run(ground),
        }
    }
}
