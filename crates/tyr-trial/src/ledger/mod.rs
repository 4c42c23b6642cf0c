//! A ledger kept by clients that are killed in the middle of commits, again and again.
//!
//! ```text
//!   start ─► is the ledger as it must be? ─► commits ─► one more, SIGKILL ─┐
//!     ▲                                                                   │
//!     └───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Of each language, a [worker] keeps one in a folder and one in a cluster. Entry
//! `n` is one transaction over two keyspaces: `n` is appended to two lists, the entries are
//! counted, and a payload is replaced. So at any moment the lists are equal, the count is their
//! length, and the payload is that of the last entry: [`Book`] looks. What a client had been told
//! of is there for ever; what it was killed in may be there, but not by half.
//!
//! In a cluster all nodes stand still now and then until a commit has had no answer in time; then
//! its outcome must be told, and be true.

mod book;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr_types::{Error, ErrorKind, Result};

use self::book::{Book, KEYSPACES};
use crate::cluster::{Cluster, PATIENCE, Plan, Program, Sizes};
use crate::fabric::Fabric;
use crate::random::Random;
use crate::worker::{self, Language, Mode, Order, Told, Worker, Workshop};

/// How long a call of a client may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A client commits up to so many entries before the one that it is killed in.
const ENTRIES_MAX: u64 = 6;

/// A kill that comes when the answer is there does not count: so many kills at most for one.
const TRIES_MAX: u64 = 8;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// What clients are written in.
    pub languages: Vec<Language>,
    /// Kills of a client in the middle of a commit, at each place.
    pub kills: u64,
    /// Commits without an answer, in a cluster.
    pub timeouts: u64,
    /// The seed.
    pub seed: u64,
    /// Where stores and logs go.
    pub folder: PathBuf,
}

/// Runs it, and says what was done, a line for each language and place; answers how many there are.
///
/// # Errors
/// `Corrupt` with what is wrong; `Unavailable` when the system refuses, or nobody answers.
pub fn run(ledger: &Ledger, fabric: Arc<dyn Fabric>) -> Result<usize> {
    let workshop = Workshop::new(ledger.folder.join("workers"))?;
    let plan = Plan {
        nodes: 3,
        folder: ledger.folder.clone(),
        program: Program::usual()?,
        broken: None,
        small_disk: None,
        sizes: Sizes::default(),
        log_level: None,
    };
    let mut cluster = Cluster::form(plan, fabric)?;
    let mut kept = 0;
    for language in &ledger.languages {
        let (command, name) = (workshop.build(*language)?, language.name());
        let keyspaces = KEYSPACES.map(|part| format!("{name}-{part}")).to_vec();
        let store = ledger.folder.join(format!("store-{name}"));
        let places =
            [store.display().to_string(), worker::address(cluster.control.addresses(), TIMEOUT)];
        for (place, is_cluster) in places.into_iter().zip([false, true]) {
            let plan = worker::Plan {
                language: *language,
                mode: Mode::Blocking,
                command: command.clone(),
                place,
                keyspaces: keyspaces.clone(),
            };
            let mut series = Series {
                plan,
                book: Book::default(),
                random: Random::of(ledger.seed, name, u64::from(is_cluster)),
                within: Duration::from_millis(1),
                tally: Tally::default(),
            };
            let cluster = is_cluster.then_some(&mut cluster);
            let line = series.play(ledger, cluster).map_err(|error| series.named(&error))?;
            println!("{line}");
            kept += 1;
        }
        sound(&store)?;
    }
    match cluster.findings()?.first() {
        Some(finding) => {
            Err(Error::corrupt(format!("a replica was not like the others: {finding}")))
        }
        None => Ok(kept),
    }
}

/// Whether a store in a folder has no damage.
fn sound(store: &std::path::Path) -> Result<()> {
    let report = tyr::check(store, &mut |_| {})?;
    match report.is_sound() {
        true => Ok(()),
        false => Err(Error::corrupt(format!("{}: {:?}", store.display(), report.findings))),
    }
}

/// What became of kills and commits.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    commits: u64,
    kills: u64,
    late: u64,
    timeouts: u64,
    asked: u64,
    took_effect: u64,
}

/// A language at a place.
struct Series {
    plan: worker::Plan,
    book: Book,
    random: Random,
    /// A client is killed within so long after it was told to commit: less than that takes.
    within: Duration,
    tally: Tally,
}

impl Series {
    fn named(&self, error: &Error) -> Error {
        let Self { plan, tally, .. } = self;
        let text = format!("{} at {}: {error} ({tally:?})", plan.language.name(), plan.place);
        Error::new(error.kind(), text)
    }

    fn play(&mut self, ledger: &Ledger, mut cluster: Option<&mut Cluster>) -> Result<String> {
        let begun = Instant::now();
        let mut due = 0;
        while self.tally.kills < ledger.kills {
            if self.tally.late > TRIES_MAX * ledger.kills {
                return Err(Error::unavailable("clients are not killed in the middle of commits"));
            }
            // Both ways of calling are killed.
            self.plan.mode = match self.tally.kills % 2 {
                0 => Mode::Blocking,
                _ => Mode::Started,
            };
            let mut worker = self.start()?;
            for _ in 0..self.random.below(ENTRIES_MAX) {
                self.commit(&mut worker)?;
            }
            if let Some(cluster) = cluster.as_deref_mut()
                && due < ledger.timeouts
                && self.tally.kills >= due * ledger.kills / ledger.timeouts
            {
                due += 1;
                self.time_out(&mut worker, cluster)?;
            }
            self.kill(&mut worker)?;
        }
        drop(self.start()?);
        let Tally { commits, kills, late, timeouts, asked, took_effect } = self.tally;
        let (name, place) = (self.plan.language.name(), place(&self.plan.place));
        Ok(format!(
            "{name} in a {place}: {kills} kills in the middle of a commit ({late} came too late), \
             {} of these took effect; {commits} commits told; {timeouts} without an answer, \
             {took_effect} of which took effect, told after asking {asked} times; {:.0} s",
            self.book.took_effect(),
            begun.elapsed().as_secs_f64()
        ))
    }

    /// Starts a client, which looks whether the ledger is as it must be.
    fn start(&mut self) -> Result<Worker> {
        let mut worker = Worker::start(&self.plan)?;
        worker.wait()?;
        self.book.verify(&mut worker)?;
        Ok(worker)
    }

    /// Commits an entry, and learns what became of it.
    fn commit(&mut self, worker: &mut Worker) -> Result<()> {
        let (entry, order) = self.book.next();
        let done = worker.ask(&order);
        self.ended(worker, entry, done)
    }

    /// What the answer to a commit comes to.
    fn ended(&mut self, worker: &mut Worker, entry: u64, done: Result<Vec<Told>>) -> Result<()> {
        match done {
            Ok(told) => {
                self.tally.commits += 1;
                self.book.told(entry, &told)
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                self.tally.timeouts += 1;
                self.resolve(worker, entry)
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                self.book.refused(entry);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Asks what became of a commit until that is told.
    fn resolve(&mut self, worker: &mut Worker, entry: u64) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.tally.asked += 1;
            match worker.ask(&Order::Outcome) {
                Ok(told) => {
                    self.tally.took_effect += 1;
                    return self.book.told(entry, &told);
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    if begun.elapsed() > PATIENCE {
                        return Err(Error::corrupt(format!("no outcome of {entry}: {error}")));
                    }
                }
                // Why it took no effect; if that is not true, the next look shows it.
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    self.book.refused(entry);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Has a commit end without an answer: all nodes stand still soon after it was sent.
    fn time_out(&mut self, worker: &mut Worker, cluster: &mut Cluster) -> Result<()> {
        let (entry, order) = self.book.next();
        let is_early = self.random.below(2) == 0;
        if is_early {
            cluster.numbers().iter().for_each(|node| cluster.process(*node).pause());
        }
        worker.send(&order)?;
        if !is_early {
            std::thread::sleep(self.some_time());
            cluster.numbers().iter().for_each(|node| cluster.process(*node).pause());
        }
        std::thread::sleep(TIMEOUT + TIMEOUT / 4);
        cluster.numbers().iter().for_each(|node| cluster.process(*node).resume());
        let done = worker.hear();
        self.ended(worker, entry, done)?;
        cluster.wait_until_whole(PATIENCE).map(drop)
    }

    /// Kills the client in the middle of a commit, or so.
    fn kill(&mut self, worker: &mut Worker) -> Result<()> {
        let (entry, order) = self.book.next();
        worker.send(&order)?;
        std::thread::sleep(self.some_time());
        worker.kill();
        let told = worker.hear();
        // It ended, and had told nothing.
        let ended = told.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corrupt);
        if ended {
            self.tally.kills += 1;
            self.within = (self.within * 5 / 4).min(TIMEOUT);
            self.book.killed(entry);
            return Ok(());
        }
        self.tally.late += 1;
        self.within = (self.within * 4 / 5).max(Duration::from_micros(10));
        match told {
            Ok(told) => {
                self.tally.commits += 1;
                self.book.told(entry, &told)?;
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => self.book.killed(entry),
            Err(_) => self.book.refused(entry),
        }
        Ok(())
    }

    fn some_time(&mut self) -> Duration {
        Duration::from_micros(self.random.below(self.within.as_micros() as u64))
    }
}

fn place(place: &str) -> &'static str {
    if place.starts_with("tyr://") { "cluster" } else { "folder" }
}
