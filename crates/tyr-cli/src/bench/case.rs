//! One measurement, as a value that travels to a child process.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tyr::Durability;

use super::filling::Filling;
use super::meter::Figures;
use super::pace::Pace;
use super::place::Place;
use super::plan::SMALL_LEN;
use super::random::Overwrites;
use super::returning::Absence;
use super::{
    Scenario, calls, endurance, log, mix, monalisa, open, random, reads, restarting, returning,
    stream, transforms,
};
use crate::data::size_text;
use crate::failure::Outcome;

/// What a child measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Case {
    /// The transaction of a monitoring store.
    Monalisa {
        /// How it is acknowledged, by name.
        durability: String,
        /// Threads that commit.
        writers: usize,
    },
    /// Reads of 800 bytes.
    Reads {
        /// Threads that read.
        readers: usize,
    },
    /// Aggregates updated one way or the other.
    Transforms {
        /// By arithmetic in place, else by reading and writing.
        is_in_place: bool,
        /// Threads that commit.
        writers: usize,
    },
    /// Readers beside writers.
    Mix {
        /// Threads that commit.
        writers: usize,
        /// Threads that read.
        readers: usize,
    },
    /// A large blob, or a plain file.
    Stream {
        /// A plain file instead of a store.
        is_plain_file: bool,
        /// A sync every 64 MiB, else only at the end.
        is_synced: bool,
        /// Bytes written and read back.
        bytes: u64,
    },
    /// A large blob, overwritten at random places.
    Random {
        /// How an overwrite is acknowledged, by name.
        durability: String,
        /// Bytes of an overwrite.
        len: u64,
        /// Bytes of the blob.
        bytes: u64,
        /// On a node of its own, else in this process.
        is_on_node: bool,
    },
    /// A node of a cluster that was away comes back.
    Return {
        /// How many blobs the cluster holds.
        blobs: u64,
        /// Bytes of each.
        len: u64,
        /// How many of them change while the node is away.
        changed: u64,
    },
    /// A node that was killed serves again.
    Restart {
        /// How many blobs of 100 bytes it holds.
        blobs: u64,
    },
    /// Everything at once, for long.
    Endurance {
        /// Bytes of the blob that is overwritten.
        bytes: u64,
    },
    /// Makes the store that `Open` opens.
    Build {
        /// How many blobs of 100 bytes.
        blobs: u64,
    },
    /// Opens a store of many blobs.
    Open {
        /// How many blobs of 100 bytes.
        blobs: u64,
    },
    /// The shared log.
    Log {
        /// What is done to it.
        work: log::Work,
        /// How it is acknowledged, by name.
        durability: String,
        /// Threads that do it.
        threads: usize,
    },
    /// Calls of a method.
    Calls {
        /// Which, or a plain write.
        work: calls::Work,
        /// Threads that do it.
        threads: usize,
    },
}

impl Case {
    /// The scenario it belongs to.
    pub fn scenario(&self) -> Scenario {
        match self {
            Self::Monalisa { .. } => Scenario::Monalisa,
            Self::Reads { .. } => Scenario::Reads,
            Self::Transforms { .. } => Scenario::Transforms,
            Self::Mix { .. } => Scenario::Mix,
            Self::Stream { .. } => Scenario::Stream,
            Self::Random { is_on_node: false, .. } => Scenario::Random,
            Self::Random { is_on_node: true, .. } => Scenario::RandomNode,
            Self::Return { .. } => Scenario::Return,
            Self::Restart { .. } => Scenario::Restart,
            Self::Build { .. } | Self::Open { .. } => Scenario::Open,
            Self::Log { .. } => Scenario::Log,
            Self::Calls { .. } => Scenario::Calls,
            Self::Endurance { .. } => Scenario::Endurance,
        }
    }

    /// What tells it from the other cases of its scenario.
    pub fn label(&self) -> String {
        match self {
            Self::Monalisa { durability, writers } => {
                format!("monalisa, {durability}, {writers} writers")
            }
            Self::Reads { readers } => format!("reads, {readers} threads"),
            Self::Transforms { is_in_place: true, writers } => {
                format!("transforms, {writers} writers")
            }
            Self::Transforms { is_in_place: false, writers } => {
                format!("read-modify-write, {writers} writers")
            }
            Self::Mix { writers, readers } => {
                let share = 100.0 * *writers as f64 / (writers + readers) as f64;
                format!("mix, {writers} writers ({share:.0} %), {readers} readers")
            }
            Self::Stream { is_plain_file, is_synced, bytes } => format!(
                "{}, {}, sync {}",
                if *is_plain_file { "plain file" } else { "blob" },
                size_text(*bytes),
                if *is_synced { "every 64 MiB" } else { "at the end" }
            ),
            Self::Random { durability, len, bytes, is_on_node } => {
                let (len, bytes) = (size_text(*len), size_text(*bytes));
                let place = if *is_on_node { ", on a node" } else { "" };
                format!("random {len} overwrites, {durability}, {bytes}{place}")
            }
            Self::Return { blobs, len, changed } => {
                let len = size_text(*len);
                format!("return, {changed} of {blobs} blobs of {len} changed")
            }
            Self::Restart { blobs } => format!("restart, {blobs} blobs of 100 bytes"),
            Self::Endurance { bytes } => format!("endurance, {}", size_text(*bytes)),
            Self::Build { blobs } => format!("build {blobs} blobs of 100 bytes"),
            Self::Open { blobs } => format!("open {blobs} blobs of 100 bytes"),
            Self::Log { work, durability, threads } => {
                format!("log, {}, {durability}, {threads} threads", work.name())
            }
            Self::Calls { work, threads } => format!("{}, {threads} threads", work.name()),
        }
    }

    /// Measures it, in `dir`.
    pub fn run(&self, pace: Pace, dir: &Path) -> Outcome<Figures> {
        Ok(match self {
            Self::Monalisa { durability, writers } => {
                monalisa::run(pace, dir, Durability::parse(durability)?, *writers)?
            }
            Self::Reads { readers } => reads::run(pace, dir, *readers)?,
            Self::Transforms { is_in_place, writers } => {
                transforms::run(pace, dir, *is_in_place, *writers)?
            }
            Self::Mix { writers, readers } => mix::run(pace, dir, *writers, *readers)?,
            Self::Stream { is_plain_file: true, is_synced, bytes } => {
                stream::run_file(dir, *is_synced, *bytes)?
            }
            Self::Stream { is_plain_file: false, is_synced, bytes } => {
                stream::run_blob(dir, *is_synced, *bytes)?
            }
            Self::Random { durability, len, bytes, is_on_node } => {
                let durability = Durability::parse(durability)?;
                let place = if *is_on_node { Place::on_a_node(dir)? } else { Place::here(dir) };
                random::run(&place, &Overwrites { durability, len: *len, bytes: *bytes })?
            }
            Self::Return { blobs, len, changed } => {
                let filling = Filling { blobs: *blobs, len: *len };
                returning::run(dir, Absence { filling, changed: *changed })?
            }
            Self::Restart { blobs } => {
                restarting::run(dir, Filling { blobs: *blobs, len: SMALL_LEN })?
            }
            Self::Endurance { bytes } => endurance::run(dir, pace.measured(), *bytes)?,
            Self::Build { blobs } => open::build(dir, *blobs)?,
            Self::Open { blobs } => open::open(dir, *blobs)?,
            Self::Log { work, durability, threads } => {
                log::run(pace, dir, *work, Durability::parse(durability)?, *threads)?
            }
            Self::Calls { work, threads } => calls::run(pace, dir, *work, *threads)?,
        })
    }
}
