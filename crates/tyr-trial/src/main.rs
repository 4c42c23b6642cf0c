//! The program `tyr-trial`: runs, single tests, checks of histories, and the node they run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use tyr_trial::arrays::{self, Arrays, Without};
use tyr_trial::check::{self, porcupine};
use tyr_trial::cluster::{Program, Sizes};
use tyr_trial::fabric::{self, Fabric, namespaces::Namespaces, relays::Relays};
use tyr_trial::fault::Fault;
use tyr_trial::history;
use tyr_trial::ledger::{self, Ledger};
use tyr_trial::node::{self, NodeArguments};
use tyr_trial::puppet::{self, PuppetArguments};
use tyr_trial::run::{Run, run};
use tyr_trial::single::Single;
use tyr_trial::suite;
use tyr_trial::worker::{self, Language, WorkerArguments};
use tyr_trial::workload::Workload;
use tyr_types::{Error, Result};

/// Real nodes under faults, and histories that are checked twice.
#[derive(Parser, Debug)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// A cluster under faults for some minutes; both checks in the end.
    Run(RunArguments),
    /// A test of one thing, on a cluster of its own; `all` for every one.
    Single {
        /// Its name.
        name: String,
        /// How much it does, where that can be set: classes of `hostile` (10,000), replacements of
        /// `classes` (1,000, and as many while nodes are killed), programs that `sequencer` kills
        /// (100, and a fifth as many nodes).
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        times: Option<u64>,
        /// The network between the nodes: best, namespaces, relays.
        #[arg(long, default_value = "best")]
        fabric: String,
    },
    /// What continuous integration runs: fixed seeds, some three minutes.
    Suite,
    /// Lists workloads, faults and single tests.
    List,
    /// Checks a history that was kept.
    Check {
        /// The lines.
        file: PathBuf,
    },
    /// Runs one node, in the foreground.
    Node(NodeArguments),
    /// Clients in these languages are killed in the middle of commits, again and again.
    Ledger(LedgerArguments),
    /// Users of arrays and tables in Python, on a cluster whose nodes are killed.
    Arrays(ArraysArguments),
    /// Runs one client of a trial, which does what its input says.
    Puppet(PuppetArguments),
    /// Runs a client in Rust, which does what its input says, as those in other languages do.
    Worker(WorkerArguments),
}

#[derive(Args, Debug)]
struct LedgerArguments {
    /// What the clients are written in, with commas.
    #[arg(long, default_value = "c,python,java")]
    workers: String,
    /// How often a client is killed, of each language and at each place.
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// How often a commit is left without an answer, of each language, in a cluster.
    #[arg(long, default_value_t = 10)]
    timeouts: u64,
    /// The seed of what is killed when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Args, Debug)]
struct ArraysArguments {
    /// A Python that has the package `tyr` with fsspec and Zarr, xarray, pyarrow and duckdb.
    #[arg(long)]
    python: PathBuf,
    /// How long.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// What is left out, `transactions` or `snapshots`: to see that regions are torn then.
    #[arg(long)]
    without: Option<String>,
}

#[derive(Args, Debug)]
struct RunArguments {
    /// The seed of faults and workloads.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long faults are begun.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The faults, by name and with commas; `all` for all that can be, `none` for none. Default:
    /// all that can be but cuts of 90 s.
    #[arg(long)]
    faults: Option<String>,
    /// The workloads, by name and with commas. Default: all but `zlogs`.
    #[arg(long, visible_alias = "workload")]
    workloads: Option<String>,
    /// What plays the clients of workloads that workers can play: c, python, java, rust, with
    /// commas. Unless others are named, these workloads alone run then.
    #[arg(long)]
    workers: Option<String>,
    /// Replicas, as `1,2,3`: each workload's blobs are spread over a keyspace of each, and what it
    /// does at once is done across them. Default: one keyspace of three.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=9))]
    replications: Vec<u8>,
    /// Nodes of the cluster.
    #[arg(long, default_value_t = 3)]
    nodes: u16,
    /// Clients of each workload.
    #[arg(long, default_value_t = 2)]
    clients: u64,
    /// Clients wait so long after each operation.
    #[arg(long, default_value_t = 10)]
    pace_ms: u64,
    /// MiB of memory that a node has for recent operations and cache. Default: the program's.
    #[arg(long)]
    cache_mib: Option<u64>,
    /// MiB of log after which a fold begins.
    #[arg(long, default_value_t = Sizes::default().fold_log_mib)]
    fold_log_mib: u64,
    /// The network between the nodes: best, namespaces, relays.
    #[arg(long, default_value = "best")]
    fabric: String,
    /// A `tyr` whose `serve` runs, instead of the one in this program's folder.
    #[arg(long)]
    program: Option<PathBuf>,
    /// An older `tyr` whose `serve` runs until the fault `upgrade`.
    #[arg(long)]
    previous: Option<PathBuf>,
    /// The node of `tyr-trial` runs, even where there is a `tyr`: it tells what it has in flight.
    #[arg(long)]
    own: bool,
    /// The rule that nodes break: to see that the checks notice.
    #[arg(long)]
    broken: Option<String>,
    /// The folder of histories and logs stays even if nothing is wrong.
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Run(arguments) => run_one(&arguments),
        Verb::Single { name, times, fabric } => run_single(&name, times, &fabric),
        Verb::Suite => suite::run(),
        Verb::List => {
            list();
            Ok(true)
        }
        Verb::Check { file } => check_file(&file),
        Verb::Node(arguments) => node::run(&arguments).map(|()| true),
        Verb::Ledger(arguments) => run_ledger(&arguments),
        Verb::Arrays(arguments) => run_arrays(arguments),
        Verb::Puppet(arguments) => puppet::serve(&arguments).map(|()| true),
        Verb::Worker(arguments) => worker::serve(&arguments).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("tyr-trial: {error}");
            ExitCode::from(2)
        }
    }
}

fn run_one(arguments: &RunArguments) -> Result<bool> {
    let fabric = fabric(&arguments.fabric)?;
    let planned = plan(arguments, fabric.name())?;
    let report = run(&planned, fabric)?;
    println!("\n{report}");
    suite::tidy(&planned.folder, report.wrong.is_empty() && !arguments.keep);
    if !report.wrong.is_empty() {
        let words: Vec<String> = std::env::args().skip(1).collect();
        println!("again: tyr-trial {}", words.join(" "));
    }
    Ok(report.wrong.is_empty())
}

fn run_ledger(arguments: &LedgerArguments) -> Result<bool> {
    let LedgerArguments { kills, timeouts, seed, .. } = *arguments;
    let languages = named(&arguments.workers, "language of workers", Language::named)?;
    let folder = suite::folder("ledger")?;
    let ledger = Ledger { languages, kills, timeouts, seed, folder: folder.clone() };
    let done = ledger::run(&ledger, fabric("best")?);
    suite::tidy(&folder, done.is_ok());
    match done {
        Ok(ledgers) => {
            println!("{ledgers} ledgers are as they must be");
            Ok(true)
        }
        Err(error) => {
            println!("WRONG: {error}");
            Ok(false)
        }
    }
}

fn run_arrays(arguments: ArraysArguments) -> Result<bool> {
    let unknown = |name| Error::invalid(format!("{name} cannot be left out"));
    let without = arguments.without.map(|it| Without::named(&it).ok_or_else(|| unknown(it)));
    let folder = suite::folder("arrays")?;
    let arrays = Arrays {
        python: arguments.python,
        lasts: Duration::from_secs_f64(arguments.minutes * 60.0),
        without: without.transpose()?,
        folder: folder.clone(),
    };
    let done = arrays::run(&arrays, fabric("best")?);
    suite::tidy(&folder, done.is_ok());
    match &done {
        Ok(text) => println!("{text}\nas it must be"),
        Err(error) => println!("WRONG: {error}"),
    }
    Ok(done.is_ok())
}

fn plan(arguments: &RunArguments, fabric: &str) -> Result<Run> {
    let can_be = |fault: &Fault| can_be(*fault, fabric, arguments.previous.is_some());
    let possible = Fault::ALL.into_iter().filter(can_be);
    let faults = match arguments.faults.as_deref() {
        Some("none") => Vec::new(),
        Some("all") => possible.collect(),
        Some(names) => named(names, "fault", Fault::named)?,
        None => possible.filter(|fault| !fault.is_long()).collect(),
    };
    let workers = match arguments.workers.as_deref() {
        Some(names) => named(names, "language of workers", Language::named)?,
        None => Vec::new(),
    };
    let workloads = match arguments.workloads.as_deref() {
        Some(names) => named(names, "workload", Workload::named)?,
        None if workers.is_empty() => Workload::usual(),
        None => Workload::usual().into_iter().filter(|it| it.can_be_played()).collect(),
    };
    let program = match (&arguments.program, &arguments.previous) {
        (Some(path), _) => Program::Serve(path.clone()),
        (None, Some(path)) => Program::Serve(path.clone()),
        (None, None) if arguments.own || arguments.broken.is_some() => Program::own()?,
        (None, None) => Program::usual()?,
    };
    Ok(Run {
        seed: arguments.seed,
        lasts: Duration::from_secs_f64(arguments.minutes * 60.0),
        nodes: arguments.nodes,
        faults,
        workloads,
        replications: arguments.replications.clone(),
        clients: arguments.clients,
        workers,
        pace: Duration::from_millis(arguments.pace_ms),
        folder: suite::folder(&format!("seed-{}", arguments.seed))?,
        program,
        broken: arguments.broken.clone(),
        sizes: Sizes { cache_mib: arguments.cache_mib, fold_log_mib: arguments.fold_log_mib },
    })
}

/// Whether there can be this fault on this fabric.
fn can_be(fault: Fault, fabric: &str, has_previous: bool) -> bool {
    match fault {
        Fault::Upgrade => has_previous,
        // A small disk needs root, as namespaces do.
        Fault::Disk => fabric == "namespaces",
        Fault::Kill
        | Fault::KillHead
        | Fault::KillTail
        | Fault::KillLeader
        | Fault::KillTwo
        | Fault::KillAll
        | Fault::Pause
        | Fault::PauseLeader
        | Fault::Partition
        | Fault::Isolate
        | Fault::OneWay
        | Fault::Bridge
        | Fault::CutFull
        | Fault::CutPartial
        | Fault::CutTcp
        | Fault::Slow
        | Fault::Clock
        | Fault::ClockHours
        | Fault::Rolling
        | Fault::Join => true,
    }
}

fn named<T>(names: &str, what: &str, find: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    let unknown = |name| Error::invalid(format!("no {what} is called {name}; see tyr-trial list"));
    names.split(',').map(|name| find(name).ok_or_else(|| unknown(name))).collect()
}

fn fabric(name: &str) -> Result<Arc<dyn Fabric>> {
    match name {
        "best" => Ok(Arc::from(fabric::best()?)),
        "namespaces" => Ok(Arc::new(Namespaces::new()?)),
        "relays" => Ok(Arc::new(Relays::new()?)),
        _ => Err(Error::invalid("a fabric is best, namespaces or relays")),
    }
}

fn run_single(name: &str, times: Option<u64>, fabric_name: &str) -> Result<bool> {
    let singles = match name {
        "all" => Single::ALL.to_vec(),
        _ => named(name, "single test", Single::named)?,
    };
    if let Some(single) = singles.iter().find(|it| times.is_some() && !it.counts()) {
        let name = single.name();
        return Err(Error::invalid(format!("{name} does what it does: leave out --times")));
    }
    let mut is_good = true;
    for single in singles {
        is_good &= suite::single(single, times, fabric(fabric_name)?)?;
    }
    Ok(is_good)
}

fn check_file(file: &Path) -> Result<bool> {
    let verdict = check::check(&history::read(file)?);
    verdict.anomalies.iter().for_each(|text| println!("- {text}"));
    println!("first check: {} things are wrong", verdict.anomalies.len());
    let second = porcupine::check(file)?;
    println!("second check: {second:?}");
    Ok(verdict.anomalies.is_empty() && !matches!(second, porcupine::Second::Wrong(_)))
}

fn list() {
    println!("workloads");
    Workload::ALL.iter().for_each(|workload| println!("  {}", workload.name()));
    println!("faults");
    Fault::ALL.iter().for_each(|fault| println!("  {:<14} {}", fault.name(), fault.about()));
    println!("workers");
    Language::ALL.iter().for_each(|language| println!("  {}", language.name()));
    println!("single tests");
    Single::ALL.iter().for_each(|single| println!("  {:<14} {}", single.name(), single.about()));
}
