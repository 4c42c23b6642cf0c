//! A run: a cluster, clients, faults one after the other, and in the end both checks.
//!
//! ```text
//!   form ─► clients begin ─► quiet, fault, mend, wait until whole ─► … ─► clients end
//!                                                                          │
//!        report ◄─ check, replicas ◄─ read everything once more ◄──────────┘
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_types::{BlobName, Error, Result};

use crate::check::{self, porcupine};
use crate::client::connection::TIMEOUT;
use crate::client::{Caller, connect};
use crate::cluster::{Cluster, PATIENCE, Plan, Program, Sizes};
use crate::fabric::Fabric;
use crate::fault::{Fault, Planned, inject, schedule};
use crate::history::{Book, TROUBLE_BEGINS, TROUBLE_ENDS};
use crate::puppet;
use crate::replicas;
use crate::report::{Report, Suffered};
use crate::worker::{self, Language, Worker, Workshop};
use crate::workload::{Stage, Workload};

/// What nodes found wrong with replicas is told so often at most.
const FINDINGS_MAX: usize = 5;

/// What a run is to be.
#[derive(Clone, Debug)]
pub struct Run {
    /// The seed of faults and workloads.
    pub seed: u64,
    /// How long faults are begun.
    pub lasts: Duration,
    /// Nodes of the cluster.
    pub nodes: u16,
    /// The faults that happen.
    pub faults: Vec<Fault>,
    /// What clients do.
    pub workloads: Vec<Workload>,
    /// Replicas of the keyspaces that each workload's blobs lie in; none for one keyspace of three.
    pub replications: Vec<u8>,
    /// Clients of each workload; where workers play, as many as there are of these at least.
    pub clients: u64,
    /// What plays the clients of workloads that workers can play; none for our own.
    pub workers: Vec<Language>,
    /// Clients wait so long after each operation.
    pub pace: Duration,
    /// Where histories and logs go.
    pub folder: PathBuf,
    /// What runs in the beginning.
    pub program: Program,
    /// The rule that nodes break.
    pub broken: Option<String>,
    /// What a node may have.
    pub sizes: Sizes,
}

/// Runs it. Faults of the product are in the report, not errors.
///
/// # Errors
/// `Unavailable` when there is no cluster to begin with, or the system refuses.
pub fn run(run: &Run, fabric: Arc<dyn Fabric>) -> Result<Report> {
    let begun = Instant::now();
    let book = Arc::new(Book::create(&run.folder.join("history.jsonl"))?);
    let plan = Plan {
        nodes: run.nodes,
        folder: run.folder.clone(),
        program: run.program.clone(),
        broken: run.broken.clone(),
        small_disk: run.faults.contains(&Fault::Disk).then_some((run.seed % 3) as u16),
        sizes: run.sizes,
        log_level: None,
    };
    let mut cluster = Cluster::form(plan, Arc::clone(&fabric))?;
    let mut report = Report::new(run, fabric.name(), begun.elapsed());
    let stages = stages(run, &cluster, &book)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let played = play(run, &mut cluster, &stages, &is_over, &mut report);
    if let Err(error) = played {
        cluster.inquire();
        report.wrong(format!("the run broke off: {error}"));
    }
    report.ran = begun.elapsed();
    match finish(&mut cluster, &stages) {
        Ok(compared) => report.compared = compared,
        Err(error) => {
            cluster.inquire();
            report.wrong(format!("in the end: {error}"));
        }
    }
    for node in cluster.dead() {
        report.wrong(format!("node {node} ended by itself; its log says why"));
    }
    for finding in cluster.findings()?.into_iter().take(FINDINGS_MAX) {
        report.wrong(format!("a replica was not like the others: {finding}"));
    }
    let events = book.events()?;
    report.measure(&events);
    let verdict = check::check(&events);
    report.tally = verdict.tally;
    verdict.anomalies.into_iter().for_each(|text| report.wrong(text));
    match porcupine::check(&run.folder.join("history.jsonl"))? {
        porcupine::Second::Wrong(text) => {
            report.wrong(format!("Porcupine: {text}"));
        }
        porcupine::Second::Fine(text) => report.second = text,
        porcupine::Second::Missing(text) => report.second = format!("no second check: {text}"),
    }
    Ok(report)
}

/// A stage for each client of each workload, with a connection of its own.
fn stages(run: &Run, cluster: &Cluster, book: &Arc<Book>) -> Result<Vec<Stage>> {
    let (mut stages, mut cast) = (Vec::new(), Cast::new(run, cluster)?);
    for workload in &run.workloads {
        let keyspaces = workload.keyspaces(&run.replications);
        let caller = || Caller::of_all(&connect(&cluster.control)?, &keyspaces);
        let mut first = Stage::new(*workload, caller()?, book, run.seed);
        first.pace = run.pace;
        first.puppets = puppet::Plan {
            addresses: cluster.control.addresses().to_vec(),
            keyspaces: keyspaces.iter().map(|(name, _)| name.clone()).collect(),
            timeout: None,
        };
        first.prepare()?;
        let is_played = workload.can_be_played() && !run.workers.is_empty();
        if !is_played {
            for _ in 1..workload.clients(run.clients) {
                stages.push(first.with(caller()?));
            }
            stages.push(first);
            continue;
        }
        let clients = 0..run.clients.max(run.workers.len() as u64);
        let workers = clients.map(|_| cast.next(&first.puppets.keyspaces));
        for mut worker in workers.collect::<Result<Vec<_>>>()? {
            worker.wait()?;
            stages.push(first.with(caller()?.played_by(worker)));
        }
        cast.turn();
    }
    Ok(stages)
}

/// Who plays the next client: languages take turns, and ways of calling.
struct Cast {
    plans: Vec<worker::Plan>,
    given: usize,
}

impl Cast {
    fn new(run: &Run, cluster: &Cluster) -> Result<Self> {
        let workshop = Workshop::new(run.folder.join("workers"))?;
        let place = worker::address(cluster.control.addresses(), TIMEOUT);
        let plan = |language: &Language| {
            let (command, mode) = (workshop.build(*language)?, worker::Mode::Blocking);
            let keyspaces = Vec::new();
            Ok(worker::Plan { language: *language, mode, command, place: place.clone(), keyspaces })
        };
        Ok(Self { plans: run.workers.iter().map(plan).collect::<Result<_>>()?, given: 0 })
    }

    fn next(&mut self, keyspaces: &[String]) -> Result<Worker> {
        let plan = &self.plans[self.given % self.plans.len()];
        let mode = match (self.given / self.plans.len()) % 2 {
            0 => worker::Mode::Blocking,
            _ => worker::Mode::Started,
        };
        self.given += 1;
        Worker::start(&worker::Plan { mode, keyspaces: keyspaces.to_vec(), ..plan.clone() })
    }

    /// So that the next workload is not called as this one was.
    fn turn(&mut self) {
        self.given = (self.given.div_ceil(self.plans.len())) * self.plans.len();
    }
}

fn play(
    run: &Run,
    cluster: &mut Cluster,
    stages: &[Stage],
    is_over: &AtomicBool,
    report: &mut Report,
) -> Result<()> {
    let end = Instant::now() + run.lasts;
    std::thread::scope(|scope| {
        for (stage, client) in stages.iter().zip(0..) {
            scope.spawn(move || stage.play(client));
        }
        let mut done = Ok(());
        for planned in schedule(run.seed, &run.faults) {
            if Instant::now() + planned.after > end || done.is_err() {
                break;
            }
            done = suffer(cluster, stages, &planned, report);
        }
        if done.is_ok() {
            // Faults may be few, or none.
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
        }
        is_over.store(true, Ordering::Release);
        stages.iter().for_each(|stage| stage.is_over.store(true, Ordering::Release));
        done
    })
}

/// Quiet, a fault, its mending, and the wait until the cluster is whole.
fn suffer(
    cluster: &mut Cluster,
    stages: &[Stage],
    planned: &Planned,
    report: &mut Report,
) -> Result<()> {
    std::thread::sleep(planned.after);
    let first = stages.first().ok_or_else(|| Error::invalid("a run has a workload"))?;
    let book = Arc::clone(&first.book);
    let begun_us = book.now_us();
    book.note(format!("{TROUBLE_BEGINS}{planned}"));
    let blob = first.caller.blob(first.keys().last().map_or("any", String::as_str));
    let injected = inject::inject(cluster, planned, &blob)?;
    let mut text = injected.text.clone();
    book.note(text.clone());
    println!("{:>7.1} s  {:<12} {text}", begun_us as f64 / 1e6, planned.fault.name());
    let until = Instant::now() + planned.lasts;
    for inner in &planned.within {
        text += &format!("; {}", suffer_within(cluster, inner, &blob, &book)?);
    }
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
    injected.mend(cluster)?;
    book.note(format!("mended: {text}"));
    let mended_us = book.now_us();
    let whole = cluster.wait_until_whole(PATIENCE);
    let whole_us = book.now_us();
    if whole.is_ok() {
        book.note(TROUBLE_ENDS);
    }
    let fault = planned.fault;
    report.suffered.push(Suffered { fault, text, begun_us, mended_us, whole_us, gaps: Vec::new() });
    let dead = cluster.dead();
    if !dead.is_empty() {
        return Err(Error::unavailable(format!("nodes {dead:?} ended by themselves")));
    }
    whole.map(drop)
}

/// Quiet, a fault and its mending while another lasts, so that the cluster need not be whole; says
/// what was done.
fn suffer_within(
    cluster: &mut Cluster,
    planned: &Planned,
    blob: &BlobName,
    book: &Book,
) -> Result<String> {
    std::thread::sleep(planned.after);
    let at_s = book.now_us() as f64 / 1e6;
    let injected = inject::inject(cluster, planned, blob)?;
    let text = injected.text.clone();
    book.note(format!("meanwhile: {text}"));
    println!("{at_s:>7.1} s  - {:<10} {text}", planned.fault.name());
    std::thread::sleep(planned.lasts);
    injected.mend(cluster)?;
    book.note(format!("mended: {text}"));
    Ok(text)
}

/// Reads everything once more, and compares the replicas; answers what was compared.
fn finish(cluster: &mut Cluster, stages: &[Stage]) -> Result<String> {
    cluster.wait_until_whole(PATIENCE)?;
    let mut done = Vec::new();
    for stage in stages {
        if !done.contains(&stage.workload) {
            done.push(stage.workload);
            finish_one(stage)?;
        }
    }
    let mut all = replicas::Compared::default();
    let mut firsts: Vec<&Stage> = Vec::new();
    for stage in stages {
        if !firsts.iter().any(|first| first.workload == stage.workload) {
            firsts.push(stage);
        }
    }
    for stage in firsts {
        let chunk = stage.workload.config().chunk_size;
        replicas::compare(&cluster.control, &stage.caller, &stage.keys(), chunk, &mut all)?;
    }
    Ok(all.to_string())
}

/// The last reads of a workload; a cluster that is just whole again may refuse some.
fn finish_one(stage: &Stage) -> Result<()> {
    let begun = Instant::now();
    loop {
        match stage.finish() {
            Err(_) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(200));
            }
            done => return done,
        }
    }
}
