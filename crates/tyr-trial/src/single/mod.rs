//! Tests of one thing each, on a cluster of their own.
//!
//! Each says in words what it saw, with times, or fails with what it should have seen.

mod consumers;
mod fencing;
mod files;
mod gone;
mod handover;
mod hostile;
mod lease;
mod mixed;
mod overload;
mod programs;
mod replace;
mod replaced;
mod sequencer;
mod strangers;
mod times;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr_types::{Error, ErrorKind, Result};

use self::overload::Length;
use self::times::Times;
use crate::check::porcupine::{self, Second};
use crate::cluster::{Cluster, PATIENCE, Plan, Program, Sizes};
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
    /// Holders of locks that stand still past their leases, and then write.
    Fencing,
    /// The same where nothing is compared.
    FencingBroken,
    /// Consumers of a log that are killed.
    Consumers,
    /// Who has the sequencer of a log is killed.
    Sequencer,
    /// Classes that are replaced under calls, while nodes are killed.
    Classes,
    /// Classes that mean no good.
    Hostile,
    /// Programs that change a file system and are killed, as nodes are.
    Files,
    /// Ten thousand tasks make files in one directory.
    FilesCrowd,
    /// A node comes and one goes under changes of a file system.
    FilesMoved,
    /// A seat that goes from node to node under requests.
    HandOver,
    /// These eight, for a short time.
    Programs,
}

/// How long a test takes. Times are judged in full alone: what runs in brief shares its machine
/// with whatever else continuous integration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// As much as proves it: minutes.
    Full,
    /// As much as shows that it works: seconds.
    Brief,
}

/// Whether this says no more than that nodes are away or slow, or that others were faster.
fn is_passing(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Conflict
        | ErrorKind::Unavailable
        | ErrorKind::TimedOut
        | ErrorKind::SnapshotTooOld => true,
        ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::InvalidArgument
        | ErrorKind::PermissionDenied
        | ErrorKind::QuotaExceeded
        | ErrorKind::Corrupt => false,
    }
}

/// Tries again what fails while nodes are away, for as long as a cluster may take.
fn again<T>(mut act: impl FnMut() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        match act() {
            Err(error) if is_passing(&error) && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(15));
            }
            done => return done,
        }
    }
}

/// What is said of a history, with what the second check says of it.
fn checked_again(history: &Path, text: String) -> Result<String> {
    match porcupine::check(history)? {
        Second::Wrong(found) => Err(Error::corrupt(format!("{text}; {found}"))),
        Second::Fine(seen) => Ok(format!("{text}; second check: {seen}")),
        Second::Missing(why) => Ok(format!("{text}; no second check: {why}")),
    }
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
    /// How much a test does that [counts](Single::counts); none for as much as it does in full.
    pub times: Option<u64>,
}

impl Ground {
    /// A cluster of so many nodes that break this rule.
    ///
    /// # Errors
    /// As [`Cluster::form`].
    pub fn cluster(&self, nodes: u16, broken: Option<&str>) -> Result<Cluster> {
        Cluster::form(self.plan(nodes, broken)?, Arc::clone(&self.fabric))
    }

    fn plan(&self, nodes: u16, broken: Option<&str>) -> Result<Plan> {
        // Only our own node breaks rules.
        let program = match broken {
            Some(_) => Program::own()?,
            None => self.program.clone(),
        };
        Ok(Plan {
            nodes,
            folder: self.folder.clone(),
            program,
            broken: broken.map(str::to_owned),
            small_disk: None,
            sizes: Sizes::default(),
            log_level: None,
        })
    }

    /// How much a test does that does so much in full.
    fn times(&self, full: u64) -> u64 {
        self.times.unwrap_or(full)
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
        Self::Fencing,
        Self::FencingBroken,
        Self::Consumers,
        Self::Sequencer,
        Self::Classes,
        Self::Hostile,
        Self::Files,
        Self::FilesCrowd,
        Self::FilesMoved,
        Self::HandOver,
        Self::Programs,
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
            Self::Fencing => "fencing",
            Self::FencingBroken => "fencing-broken",
            Self::Consumers => "consumers",
            Self::Sequencer => "sequencer",
            Self::Classes => "classes",
            Self::Hostile => "hostile",
            Self::Files => "files",
            Self::FilesCrowd => "files-crowd",
            Self::FilesMoved => "files-moved",
            Self::HandOver => "handover",
            Self::Programs => "programs",
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
            Self::Fencing => "of 1,000 holders paused past their lease none writes",
            Self::FencingBroken => "without the compare each does, and that is seen",
            Self::Consumers => "300 consumers are killed; each entry at least, just, at most once",
            Self::Sequencer => "killed 120 times: no position twice, holes are filled",
            Self::Classes => "replaced 1,000 times under calls and kills: no call runs an old one",
            Self::Hostile => "of 10,000 hostile classes none does anything; nodes go on",
            Self::Files => "1,000 programs are killed in changes of files, and 500 nodes",
            Self::FilesCrowd => "10,000 tasks make 2,000,000 files in one directory that is listed",
            Self::FilesMoved => "a node comes, one goes: no change of a file fails or takes 5 s",
            Self::HandOver => "how long a seat takes to another node, and requests meanwhile",
            Self::Programs => "the eight above, for a short time",
        }
    }

    /// The test of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|single| single.name() == name)
    }

    /// Whether how much it does can be set.
    pub fn counts(self) -> bool {
        match self {
            Self::Hostile | Self::Classes | Self::Sequencer | Self::Files | Self::FilesCrowd => {
                true
            }
            Self::PausedLease
            | Self::PausedUnleased
            | Self::OneGone
            | Self::Replace
            | Self::Overload
            | Self::OverloadBrief
            | Self::Strangers
            | Self::Mixed
            | Self::Fencing
            | Self::FencingBroken
            | Self::Consumers
            | Self::FilesMoved
            | Self::HandOver
            | Self::Programs => false,
        }
    }

    /// Whether continuous integration runs it.
    pub fn is_in_suite(self) -> bool {
        match self {
            Self::PausedLease
            | Self::PausedUnleased
            | Self::OneGone
            | Self::OverloadBrief
            | Self::Strangers
            | Self::Mixed
            | Self::Programs => true,
            Self::Replace
            | Self::Overload
            | Self::Fencing
            | Self::FencingBroken
            | Self::Consumers
            | Self::Sequencer
            | Self::Classes
            | Self::Hostile
            | Self::Files
            | Self::FilesCrowd
            | Self::FilesMoved
            | Self::HandOver => false,
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
            Self::Fencing => programs::one(ground, fencing::fenced),
            Self::FencingBroken => programs::one(ground, fencing::unfenced),
            Self::Consumers => programs::one(ground, consumers::run),
            Self::Sequencer => programs::one(ground, sequencer::run),
            Self::Classes => programs::one(ground, replaced::run),
            Self::Hostile => programs::one(ground, hostile::run),
            Self::Files => programs::one(ground, files::run),
            Self::FilesCrowd => programs::one(ground, files::run_crowd),
            Self::FilesMoved => programs::one(ground, files::run_moved),
            Self::HandOver => programs::one(ground, handover::run),
            Self::Programs => programs::all(ground),
        }
    }
}
