//! What continuous integration runs, and how a trial's folder comes and goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr_types::{Error, Result};

use crate::cluster::{Program, Sizes};
use crate::fabric::{self, Fabric};
use crate::fault::Fault;
use crate::run::{Run, run as run_one};
use crate::single::{Ground, Single};
use crate::worker::Language;
use crate::workload::Workload;

/// Runs of the suite: seed, seconds, faults. Together with the single tests some three minutes.
const RUNS: [(u64, u64, &[Fault]); 4] = [
    PLAYED,
    (11, 30, &[Fault::Kill, Fault::KillLeader, Fault::Pause, Fault::Partition, Fault::OneWay]),
    (12, 20, &[Fault::KillAll, Fault::Bridge, Fault::Clock, Fault::Rolling]),
    (13, 30, &[Fault::Join, Fault::Slow, Fault::Disk]),
];

/// The one whose clients are workers.
const PLAYED: (u64, u64, &[Fault]) = (14, 6, &[]);

/// Who they are: what is built without more than this suite.
const WORKERS: [Language; 2] = [Language::C, Language::Rust];

/// Runs it; whether nothing is wrong.
///
/// # Errors
/// `Unavailable` when the system refuses.
pub fn run() -> Result<bool> {
    let mut is_good = true;
    for single in Single::ALL.into_iter().filter(|single| single.is_in_suite()) {
        is_good &= self::single(single, None, Arc::from(fabric::best()?))?;
    }
    for (seed, seconds, faults) in RUNS {
        let is_played = seed == PLAYED.0;
        let mut workloads = Workload::usual();
        workloads.retain(|it| !is_played || it.can_be_played());
        let planned = Run {
            seed,
            lasts: Duration::from_secs(seconds),
            nodes: 3,
            faults: faults.into(),
            workloads,
            replications: Vec::new(),
            clients: 1,
            workers: if is_played { WORKERS.into() } else { Vec::new() },
            pace: Duration::from_millis(20),
            folder: folder(&format!("seed-{seed}"))?,
            program: Program::usual()?,
            broken: None,
            sizes: Sizes::default(),
        };
        let report = run_one(&planned, Arc::from(fabric::best()?))?;
        println!("\n{report}");
        tidy(&planned.folder, report.wrong.is_empty());
        is_good &= report.wrong.is_empty();
    }
    Ok(is_good)
}

/// Runs a single test, so much of it if that is said; whether it passed.
///
/// # Errors
/// `Unavailable` when the system refuses.
pub fn single(single: Single, times: Option<u64>, fabric: Arc<dyn Fabric>) -> Result<bool> {
    let (begun, folder) = (Instant::now(), folder(single.name())?);
    println!("== {}: {}", single.name(), single.about());
    let ground = Ground { fabric, folder: folder.clone(), program: Program::usual()?, times };
    let done = single.run(&ground);
    match &done {
        Ok(text) => println!("{text}\npassed in {:.1} s\n", begun.elapsed().as_secs_f64()),
        Err(error) => {
            let times = times.map_or(String::new(), |times| format!(" --times {times}"));
            println!("FAILED: {error}\nagain: tyr-trial single {}{times}", single.name());
        }
    }
    tidy(&folder, done.is_ok());
    Ok(done.is_ok())
}

/// A new folder for a trial.
///
/// # Errors
/// `Unavailable` when the system refuses.
pub fn folder(name: &str) -> Result<PathBuf> {
    // A killed process loses nothing that the system has, so memory does as well as a disk, and
    // does not wait for those who build on it. `TYR_TRIAL_FOLDER` says where else.
    let shared = Path::new("/dev/shm");
    let place = match std::env::var_os("TYR_TRIAL_FOLDER") {
        Some(place) => PathBuf::from(place),
        None if shared.is_dir() => shared.to_owned(),
        None => std::env::temp_dir(),
    };
    let made = tempfile::Builder::new().prefix(&format!("tyr-trial-{name}-")).tempdir_in(place);
    made.map(tempfile::TempDir::keep).map_err(|error| Error::io("a folder for the trial", error))
}

/// Removes a trial's folder when nothing is wrong; else says where it is.
pub fn tidy(folder: &Path, is_good: bool) {
    if !is_good {
        println!("histories and logs: {}", folder.display());
    } else if let Err(error) = std::fs::remove_dir_all(folder) {
        println!("{} stays: {error}", folder.display());
    }
}
