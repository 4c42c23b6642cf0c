//! Users of arrays and tables, on a cluster whose nodes are killed: no region is ever torn.
//!
//! ```text
//!   2 × xarray  ── regions of one Zarr array, many chunks each ──┐
//!   pyarrow     ── several Parquet files and their total ────────┤──► three nodes, one of them
//!   duckdb      ── asks whether the files add up to the total ───┘    killed now and then
//! ```
//!
//! Each is a process of Python's, `workers/arrays.py`, on the package `tyr` as it was installed.
//! What is written at once has one stamp, in all cells; who reads takes a snapshot. [`told`] is
//! what they say of it, [`check`] whether that can be, [`tally`] how much it was.
//!
//! With something left [out](Without), regions are torn, and that must be seen.

mod check;
mod tally;
pub mod told;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use tyr_types::{Error, Result};

use self::check::Verdict;
use self::tally::Tally;
use self::told::Told;
use crate::cluster::{Cluster, PATIENCE, Plan, Program, Sizes};
use crate::fabric::Fabric;
use crate::lines::Lines;
use crate::worker;

/// The program.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/workers/arrays.py");

/// Nodes of the cluster.
const NODES: u16 = 3;

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A run has so many parts: one before a node was killed, one after each.
const PARTS: u32 = 3;

/// A killed node is away for this share of the run.
const AWAY: u32 = 12;

/// So many of what is wrong are told.
const TOLD_MAX: usize = 5;

/// What is played, in order; the first and the third make what is read.
const PLAYERS: [Player; 4] = [
    Player { name: "xarray-1", role: "fields", makes: true, writes: true, reads: true },
    Player { name: "xarray-2", role: "fields", makes: false, writes: true, reads: true },
    Player { name: "pyarrow", role: "tables", makes: true, writes: true, reads: false },
    Player { name: "duckdb", role: "queries", makes: false, writes: false, reads: true },
];

/// A process.
#[derive(Clone, Copy, Debug)]
struct Player {
    name: &'static str,
    role: &'static str,
    makes: bool,
    writes: bool,
    reads: bool,
}

/// What is left out, to see that it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// What is written comes piece by piece.
    Transactions,
    /// What is read is read piece by piece.
    Snapshots,
}

impl Without {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transactions => "transactions",
            Self::Snapshots => "snapshots",
        }
    }

    /// That of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Transactions, Self::Snapshots].into_iter().find(|it| it.name() == name)
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Arrays {
    /// A Python that has `tyr[fsspec,zarr]`, xarray, pyarrow and duckdb.
    pub python: PathBuf,
    /// How long.
    pub lasts: Duration,
    /// What is left out.
    pub without: Option<Without>,
    /// Where stores, logs and what was told go.
    pub folder: PathBuf,
}

/// What a thread and those that hear processes share.
#[derive(Debug, Default)]
struct Stage {
    part: AtomicUsize,
    is_over: AtomicBool,
}

/// What a process told, each line with the part of the run that it was told in.
type Heard = Vec<(usize, Told)>;

/// Runs it; answers what was done and seen, in words.
///
/// # Errors
/// `Corrupt` with what is wrong: a torn region, something read that cannot be, a process that ended
/// or got nothing done; where something is left out, that nothing was torn. `Unavailable` when the
/// system refuses.
pub fn run(arrays: &Arrays, fabric: Arc<dyn Fabric>) -> Result<String> {
    let plan = Plan {
        nodes: NODES,
        folder: arrays.folder.clone(),
        program: Program::usual()?,
        broken: None,
        small_disk: None,
        sizes: Sizes::default(),
        log_level: None,
    };
    let mut cluster = Cluster::form(plan, fabric)?;
    let processes = started(arrays, &cluster)?;
    let stage = Stage::default();
    let (kills, heard) = std::thread::scope(|scope| {
        let threads: Vec<_> = processes
            .into_iter()
            .zip(PLAYERS)
            .map(|(lines, player)| {
                let log = arrays.folder.join(format!("{}.jsonl", player.name));
                let stage = &stage;
                scope.spawn(move || listen(lines, &log, stage))
            })
            .collect();
        let kills = trouble(arrays.lasts, &mut cluster, &stage, &threads);
        stage.is_over.store(true, Ordering::Relaxed);
        let heard: Vec<Result<Heard>> = threads
            .into_iter()
            .map(|it| it.join().unwrap_or_else(|_| Err(Error::corrupt("a thread panicked"))))
            .collect();
        (kills, heard)
    });
    let heard = heard.into_iter().collect::<Result<Vec<_>>>()?;
    summary(arrays, &kills?, &heard)
}

/// The processes, of which none does anything yet but to make what is read.
fn started(arrays: &Arrays, cluster: &Cluster) -> Result<Vec<Lines>> {
    let place = worker::address(cluster.control.addresses(), TIMEOUT);
    let mut processes = Vec::new();
    for (number, player) in (1_u64..).zip(PLAYERS) {
        let mut command = Command::new(&arrays.python);
        command.args(["-B", PROGRAM, player.role, &place, &number.to_string()]);
        command.args(arrays.without.map(Without::name));
        // What is tried is what is installed.
        command.env_remove("PYTHONPATH");
        processes.push(Lines::start(command, player.name.to_owned())?);
    }
    for (lines, player) in processes.iter_mut().zip(PLAYERS).filter(|(_, it)| it.makes) {
        lines.send("make")?;
        let made = told::read(&lines.hear()?)?;
        if made != Told::Made {
            return Err(Error::corrupt(format!("{} told {made:?} first", player.name)));
        }
    }
    processes.iter_mut().try_for_each(|lines| lines.send("go"))?;
    Ok(processes)
}

/// Hears a process to its end.
fn listen(mut lines: Lines, log: &Path, stage: &Stage) -> Result<Heard> {
    let trouble = |error| Error::io(log.display().to_string(), error);
    let mut log_file = File::create(log).map_err(trouble)?;
    let (mut heard, mut is_told) = (Vec::new(), false);
    loop {
        let line = lines.hear()?;
        log_file.write_all(line.as_bytes()).map_err(trouble)?;
        match told::read(&line)? {
            Told::Ended => return Ok(heard),
            told => heard.push((stage.part.load(Ordering::Relaxed), told)),
        }
        if stage.is_over.load(Ordering::Relaxed) && !is_told {
            lines.send("end")?;
            is_told = true;
        }
    }
}

/// Kills a node after each part but the last, and starts it again; says whom, and what it took.
/// First it is the node that leads the monitors.
fn trouble(
    lasts: Duration,
    cluster: &mut Cluster,
    stage: &Stage,
    threads: &[ScopedJoinHandle<'_, Result<Heard>>],
) -> Result<Vec<String>> {
    let (begun, mut kills) = (Instant::now(), Vec::new());
    // Who ended early has failed, and there is nothing to wait for.
    let wait_until = |at: Duration| {
        while begun.elapsed() < at && !threads.iter().any(ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let first = cluster.leader().unwrap_or_default();
    for part in 1..PARTS {
        let node = (first + part as u16 - 1) % NODES;
        wait_until(lasts * part / PARTS);
        cluster.process(node).kill();
        stage.part.store(part as usize, Ordering::Relaxed);
        let killed = begun.elapsed();
        wait_until(killed + lasts / AWAY);
        let away = begun.elapsed() - killed;
        cluster.start(node)?;
        let whole = cluster.wait_until_whole(PATIENCE)?;
        kills.push(format!(
            "node {node} was killed after {:.0} s, away for {:.0} s, whole again {:.1} s later",
            killed.as_secs_f64(),
            away.as_secs_f64(),
            whole.as_secs_f64()
        ));
    }
    wait_until(lasts);
    match cluster.dead().first() {
        Some(node) => Err(Error::corrupt(format!("node {node} ended by itself"))),
        None => Ok(kills),
    }
}

/// What came of it.
fn summary(arrays: &Arrays, kills: &[String], heard: &[Heard]) -> Result<String> {
    let mut texts = kills.to_vec();
    let mut idle = Vec::new();
    for (heard, player) in heard.iter().zip(PLAYERS) {
        let tally = Tally::of(heard.iter().map(|(_, told)| told));
        texts.push(format!("{}: {tally}", player.name));
        idle.extend(idle_in(heard, player).map(|part| format!("{} in part {part}", player.name)));
    }
    let Verdict { torn, wrong } = check::check(heard.iter().flatten().map(|(_, told)| told));
    let (torn_count, wrong_count) = (torn.len(), wrong.len());
    texts.push(format!("{torn_count} regions and tables seen torn, {wrong_count} wrong otherwise"));
    let tell = |texts: &mut Vec<String>, of: &[String]| {
        texts.extend(of.iter().take(TOLD_MAX).map(|text| format!("- {text}")));
    };
    tell(&mut texts, &torn);
    tell(&mut texts, &wrong);
    if !idle.is_empty() {
        texts.push(format!("nothing was done by {}", idle.join(", ")));
    }
    let is_good = match arrays.without {
        None => torn.is_empty() && wrong.is_empty() && idle.is_empty(),
        Some(_) => !torn.is_empty(),
    };
    let text = texts.join("\n");
    if is_good { Ok(text) } else { Err(Error::corrupt(text)) }
}

/// The first part of a run, from 1 on, in which a process did not do all that it is there for.
fn idle_in(heard: &Heard, player: Player) -> Option<u32> {
    let has = |part: u32, is_it: fn(&Told) -> bool| {
        heard.iter().any(|(of, told)| *of == part as usize && is_it(told))
    };
    let wrote = |told: &Told| matches!(told, Told::Written { .. });
    let read = |told: &Told| matches!(told, Told::Read { .. });
    let is_busy = |part| (!player.writes || has(part, wrote)) && (!player.reads || has(part, read));
    (0..PARTS).find(|part| !is_busy(*part)).map(|part| part + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(part: usize) -> (usize, Told) {
        (part, Told::Written { of: "table".to_owned(), stamp: 1, at: 1 })
    }

    fn read(part: usize, stamps: &[u64]) -> (usize, Told) {
        let (of, stamps) = ("table".to_owned(), stamps.to_vec());
        (part, Told::Read { of, stamps, sums: Vec::new(), begun: 1, at: 2 })
    }

    fn arrays(without: Option<Without>) -> Arrays {
        Arrays { python: PathBuf::new(), lasts: Duration::ZERO, without, folder: PathBuf::new() }
    }

    /// What four processes told that did all they are there for; all reads have these stamps.
    fn heard(stamps: &[u64]) -> Vec<Heard> {
        let parts = || (0..PARTS as usize).flat_map(|part| [written(part), read(part, stamps)]);
        let begins = Told::Begins { of: "table".to_owned(), stamp: 1, at: 0 };
        let mut heard = vec![parts().collect::<Heard>(); PLAYERS.len()];
        heard[0].insert(0, (0, begins));
        heard
    }

    #[test]
    fn a_torn_read_fails_the_run_and_is_named_unless_something_is_left_out() {
        assert!(summary(&arrays(None), &[], &heard(&[1])).is_ok());
        let error = summary(&arrays(None), &[], &heard(&[1, 17])).unwrap_err();
        assert!(error.to_string().contains("table, read in 0 ms: it has the stamps [1, 17]"));
        for without in [Without::Transactions, Without::Snapshots] {
            assert_eq!(Without::named(without.name()), Some(without));
            assert!(summary(&arrays(Some(without)), &[], &heard(&[1, 17])).is_ok());
            assert!(summary(&arrays(Some(without)), &[], &heard(&[1])).is_err());
        }
    }

    #[test]
    fn a_process_that_does_nothing_in_a_part_fails_the_run() {
        for (place, (what, name)) in
            [("write", "xarray-1"), ("read", "xarray-2"), ("write", "pyarrow"), ("read", "duckdb")]
                .into_iter()
                .enumerate()
        {
            let mut heard = heard(&[1]);
            let is_it = |told: &Told| matches!(told, Told::Read { .. }) == (what == "read");
            heard[place].retain(|(part, told)| {
                *part != 1 || !is_it(told) || matches!(told, Told::Begins { .. })
            });
            let error = summary(&arrays(None), &[], &heard).unwrap_err().to_string();
            assert!(error.contains(&format!("nothing was done by {name} in part 2")), "{error}");
        }
    }
}
