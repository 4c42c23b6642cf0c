//! `tyr bench`: what an operation costs here, in wall time and in CPU time.
//!
//! Every measurement runs in a child process of its own, in a fresh folder, so that memory and
//! CPU figures are its own. The parent runs all cases once, then all again, so that a slow minute
//! of the machine hits one run of each and not all runs of one; it prints medians.
//!
//! ```text
//! plan ──cases──► child process ──figures──► report
//!                 case.rs picks:  monalisa  reads  transforms  mix  stream  random  random-node
//!                     return  restart  open  log  endurance
//!                 on: workload (who writes and reads what), pace (threads and time), latencies,
//!                     meter
//! ```

mod calls;
mod case;
mod cluster;
mod endurance;
mod filling;
mod latencies;
mod log;
mod machine;
mod meter;
mod mix;
mod monalisa;
mod open;
mod pace;
mod place;
mod plan;
mod random;
mod reads;
mod report;
mod restarting;
mod returning;
mod stream;
mod transforms;
mod workload;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use tyr::Error;

use crate::data::parse_size;
use crate::failure::{Failure, Outcome};
use crate::session::Session;
use case::Case;
use meter::Figures;
use pace::Pace;
use plan::{Folder, Item, Sizes, plan};
use report::Results;

/// `tyr bench`
#[derive(Args, Debug)]
#[command(after_help = "\
CPU time is that of the whole process (CLOCK_PROCESS_CPUTIME_ID: all threads, user and kernel), \
divided by the operations of the measured time. It includes the benchmark's own loop: drawing \
random numbers, two clock readings and one histogram entry an operation, about 0.1 µs.

  monalisa    the transaction of a monitoring store: a 16-byte append to one of 1000 generator \
blobs, and count and sum added in place in three aggregates, all in the same minute; after the \
run, counts and sizes are compared with what was acknowledged
  reads       800 bytes, zipf 0.99 over 2021 blobs
  transforms  monalisa by arithmetic in place against read-modify-write transactions
  mix         32 threads, 5 to 95 % of them writers; all readers on one CPU and all writers on the \
other, and readers' rates per second of their own CPU time (their thread clocks), so that their \
share of the CPU is held equal
  stream      a large blob in 1 MiB pieces against a plain file with the same syncs
  random      32 threads overwrite a large blob at random places: 512 bytes to 64 KiB each; then \
reads of 4 KiB at random, and of all of it, beside what that took before; every read is verified. \
It takes long, and runs only where --only names it
  random-node the cases of random with 4 KiB, on a node, which is the whole cluster; CPU time is \
that of both processes. It runs only where --only names it
  return      three nodes on this machine, one of which is killed; some blobs change 8 s long, and \
it is started again: how long until it serves, what it compares, copies and takes, and how long \
another client waits for a write at most. It runs only where --only names it
  restart     one node, which is killed when it was filled, and started again: how long until it \
serves, and the memory that it holds. It runs only where --only names it
  endurance   everything at once on one store for --seconds: measurements, overwrites at random, \
snapshots of 30 s, listings; rates, CPU time, memory and bytes on disk of a twelfth of the time \
each, and of the second half beside the first. It runs only where --only names it
  open        many blobs of 100 bytes: time to open, resident memory
  log         the shared log, one partition: appends of one entry of 100 bytes, batches of 64 KiB \
of them, and a consumer that pops 100 at a time; what was appended is counted afterwards

Example:
  tyr bench --only monalisa,reads --runs 3
  tyr bench --only return --blobs 5000000 --runs 1
  tyr bench --only endurance --seconds 7200 --runs 1")]
pub struct BenchArguments {
    /// Only these, separated by commas; default: all but random, random-node, return, restart and
    /// endurance
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Scenario>,
    /// How often each case runs; medians are printed
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seconds measured of each timed case, after a fifth of it as warm-up; all that `endurance`
    /// takes
    #[arg(long, default_value = "5", value_parser = parse_seconds)]
    seconds: f64,
    /// Bytes of the stream, of which the blobs of `random` and `endurance` have a half or an eighth
    #[arg(long, value_parser = parse_size, default_value = "4GiB", value_name = "SIZE")]
    bytes: u64,
    /// Blobs of `open` (default 1000000), and small ones of `return` and `restart` (default 200000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    blobs: Option<u64>,
    /// Where the fresh folders go; default: the system's folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Tiny sizes, one run: shows that it works, measures nothing
    #[arg(long = "quick")]
    is_quick: bool,
    /// Measure a cluster of three nodes on this machine instead: transactions, reads, large
    /// writes, listings, leases, a shared log, calls; CPU time of all four processes
    #[arg(long = "cluster", conflicts_with_all = ["only", "bytes", "blobs", "dir"])]
    is_cluster: bool,
    /// Only those of its cases that have these words in their names, as `minute, 128`
    #[arg(long, value_name = "WORDS", requires = "is_cluster")]
    case: Option<String>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::EnumCount)]
#[allow(missing_docs, reason = "the help text describes them")]
pub enum Scenario {
    Monalisa,
    Reads,
    Transforms,
    Mix,
    Stream,
    Random,
    RandomNode,
    Return,
    Restart,
    Open,
    Log,
    Calls,
    Endurance,
}

impl Scenario {
    const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Monalisa,
        Self::Reads,
        Self::Transforms,
        Self::Mix,
        Self::Stream,
        Self::Random,
        Self::RandomNode,
        Self::Return,
        Self::Restart,
        Self::Open,
        Self::Log,
        Self::Calls,
        Self::Endurance,
    ];

    /// Whether it runs where `--only` names none: all do but what takes long.
    fn is_default(self) -> bool {
        match self {
            Self::Monalisa
            | Self::Reads
            | Self::Transforms
            | Self::Mix
            | Self::Stream
            | Self::Open
            | Self::Log
            | Self::Calls => true,
            Self::Random | Self::RandomNode | Self::Return | Self::Restart | Self::Endurance => {
                false
            }
        }
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=86_400.0).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err("give seconds from 0.05 to 86400, a day".to_owned()),
    }
}

/// `tyr bench-child`: one measurement; `bench` starts it.
#[derive(Args, Debug)]
pub struct ChildArguments {
    #[arg(long)]
    case: String,
    #[arg(long)]
    pace: String,
    #[arg(long)]
    dir: PathBuf,
}

/// Runs every case in children, and prints the medians.
pub fn run(session: &mut Session, arguments: &BenchArguments) -> Outcome {
    if arguments.is_cluster {
        let (runs, seconds) =
            if arguments.is_quick { (1, 0.2) } else { (arguments.runs, arguments.seconds) };
        return cluster::run(session, arguments.case.as_deref().unwrap_or(""), (runs, seconds));
    }
    let parent = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder =
        tempfile::Builder::new().prefix("tyr-bench-").tempdir_in(&parent).map_err(|error| {
            Error::io(format!("cannot make a folder in {}", parent.display()), error)
        })?;
    let (pace, items, runs) = settings(arguments);
    let mut results = Results::new(machine::describe(folder.path()), runs);
    if !session.output.is_json() {
        session.output.line(&results.preface())?;
        session.output.flush()?;
    }
    for run in 0..runs {
        for (index, item) in items.iter().enumerate() {
            session.interrupt.check()?;
            if item.is_once && run > 0 {
                continue;
            }
            eprintln!("run {} of {runs}: {}", run + 1, item.case.label());
            let dir = match item.folder {
                Folder::Fresh => folder.path().join(format!("{run}-{index}")),
                Folder::Kept(name) => folder.path().join(name),
            };
            let figures = run_in_child(&item.case, pace, &dir)?;
            results.add(&item.case, figures);
            if item.folder == Folder::Fresh {
                // What is left behind goes with the parent folder.
                let _ = std::fs::remove_dir_all(&dir);
            }
        }
    }
    session.output.record(&results.as_json(), &results.as_text())
}

fn settings(arguments: &BenchArguments) -> (Pace, Vec<Item>, u32) {
    let (seconds, runs, sizes) = if arguments.is_quick {
        let (opened, small, large) = (3_000, 3_000, 16);
        (0.1, 1, Sizes { bytes: 16 << 20, opened, small, large })
    } else {
        let (opened, small) = (arguments.blobs.unwrap_or(1_000_000), arguments.blobs);
        let (small, large) = (small.unwrap_or(200_000), 1_500);
        let sizes = Sizes { bytes: arguments.bytes, opened, small, large };
        (arguments.seconds, arguments.runs, sizes)
    };
    let wanted: Vec<Scenario> = if arguments.only.is_empty() {
        Scenario::ALL.into_iter().filter(|scenario| scenario.is_default()).collect()
    } else {
        arguments.only.clone()
    };
    (Pace::of_seconds(seconds), plan(&wanted, sizes), runs)
}

/// Starts this program again for one case, and waits for its figures.
fn run_in_child(case: &Case, pace: Pace, dir: &Path) -> Outcome<Figures> {
    let complain = |error| Error::io("cannot start a child process", error);
    let program = std::env::current_exe().map_err(complain)?;
    let output = Command::new(program)
        .args(["bench-child", "--json", "--case", &encode(case), "--pace", &encode(&pace)])
        .arg("--dir")
        .arg(dir)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(complain)?;
    if !output.status.success() {
        return Err(Failure::Differences(format!(
            "the case \"{}\" failed: {}",
            case.label(),
            output.status
        )));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| {
        Error::unavailable(format!("the case \"{}\" gave no figures", case.label()))
            .with_source(error)
            .into()
    })
}

fn encode(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("cases and paces are plain values")
}

/// Runs one case here.
pub fn run_child(session: &mut Session, arguments: &ChildArguments) -> Outcome {
    let decode = |error: serde_json::Error| Failure::Usage(format!("not from `bench`: {error}"));
    let case: Case = serde_json::from_str(&arguments.case).map_err(decode)?;
    let pace: Pace = serde_json::from_str(&arguments.pace).map_err(decode)?;
    let mut figures = case.run(pace, &arguments.dir)?;
    figures.set("memory_peak_mib", meter::memory_mib("VmHWM"));
    session.output.json(&figures.as_json())
}
