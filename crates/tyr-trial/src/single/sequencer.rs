//! Who has the sequencer of a `tyr-zlog` log is killed again and again: no position is written
//! twice, each acknowledged entry stays where it was put, and what nobody wrote is filled.
//!
//! A sequencer is held by a program or by a node, and both are killed: a program between two of its
//! appends, with positions that it never writes; a node under appends of several clients, of which
//! one writes a position late that it got of the sequencer before.
//!
//! Another program, which stands by, has the next position within the lease and a second. Where a
//! node dies that cannot hold: with it goes the authority of keys, whose next one gives no lease
//! for 11 s, since it does not know who has one (K3). So of nodes times are told and not judged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr::Tyr;
use tyr_client::block_on;
use tyr_types::{Error, ErrorKind, Result};
use tyr_zlog::{Log, Opening, Options, Sequencing, Slot};

use super::times::{Times, millis};
use super::{Extent, Ground, again, checked_again, is_passing};
use crate::check;
use crate::client::connection::TIMEOUT;
use crate::cluster::{Cluster, PATIENCE};
use crate::history::{Book, Moment, Scribe, Step};
use crate::puppet::{self, LogOrder, Puppet};
use crate::random::Random;
use crate::workload::{Workload, zlogs};

/// Logs whose programs are killed, side by side.
const LOGS: u64 = 4;

/// The lease of a program's sequencer: as short as it may be.
const LEASE_MS: u64 = 1_000;

/// The longest that nobody may have the sequencer of a program that died.
const UNHELD_MAX: Duration = Duration::from_millis(LEASE_MS + 1_000);

/// A killed program dies within so many microseconds of an append that it begins.
const DIES_WITHIN_US: u64 = 8_000;

/// Clients that append by the sequencer of a node.
const CLIENTS: u64 = 3;

/// They wait so long after each append.
const PACE: Duration = Duration::from_millis(3);

/// The keyspace of the logs, and the history of what is done with them.
const KEYSPACE: &str = "sequenced";
const HISTORY: &str = "sequencer.jsonl";

pub(super) fn run(ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let (programs, nodes) = match extent {
        Extent::Full => (ground.times(100).div_ceil(LOGS), ground.times(100).div_ceil(5)),
        Extent::Brief => (1, 0),
    };
    let stand = Stand::new(ground, cluster)?;
    let unheld = stand.kill_programs(programs)?;
    let of_nodes = stand.kill_nodes(cluster, nodes)?;
    let mut wrong = check::check(&stand.book.events()?).anomalies;
    if extent == Extent::Full && unheld.at(1.0).is_none_or(|longest| longest > UNHELD_MAX) {
        let most = millis(UNHELD_MAX);
        wrong.push(format!("after the death of a program a position takes {most} ms at most"));
    }
    let killed = LOGS * programs;
    let text = format!(
        "{killed} programs were killed with the sequencer; the first position of one that stood \
         by came {unheld} later\n{of_nodes}"
    );
    match (wrong.is_empty(), extent) {
        (true, Extent::Brief) => Ok(text),
        (true, Extent::Full) => checked_again(&ground.folder.join(HISTORY), text),
        (false, _) => Err(Error::corrupt(format!("{text}; {}", wrong.join("; ")))),
    }
}

/// What all logs share.
struct Stand {
    store: Tyr,
    book: Arc<Book>,
    plan: puppet::Plan,
    values: std::sync::atomic::AtomicU64,
}

impl Stand {
    fn new(ground: &Ground, cluster: &Cluster) -> Result<Self> {
        let addresses = cluster.control.addresses().to_vec();
        let store = Tyr::connect_options().timeout(TIMEOUT).connect(addresses.join(","));
        let book = Arc::new(Book::create(&ground.folder.join(HISTORY))?);
        let plan =
            puppet::Plan { addresses, keyspaces: vec![KEYSPACE.to_owned()], ..Default::default() };
        Ok(Self { store: block_on(store)?, book, plan, values: Default::default() })
    }

    fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn create(&self, name: &str) -> Result<Log> {
        let keyspace = KEYSPACE.to_owned();
        let options = Options { keyspace, width: 2, slots: 32, ..Options::default() };
        block_on(Log::create(&self.store, name, &options))
    }

    /// Some entries and positions of one program after the other, each of which dies; answers how
    /// long nobody had the sequencer then.
    fn kill_programs(&self, each: u64) -> Result<Times> {
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..LOGS).map(|it| scope.spawn(move || self.die_again(it, each))).collect();
            let broke = || Error::unavailable("a thread panicked");
            let mut times = Times::default();
            for thread in threads {
                times.extend(thread.join().map_err(|_| broke())??);
            }
            Ok(times)
        })
    }

    /// A program that has a log open, and not its sequencer.
    fn program(&self, log: &str) -> Result<Puppet> {
        let mut program = Puppet::start(&self.plan)?;
        let order = LogOrder::Sequence { log: log.to_owned(), lease_ms: LEASE_MS };
        again(|| program.ask(&order.clone().into()))?;
        Ok(program)
    }

    fn die_again(&self, number: u64, times: u64) -> Result<Vec<Duration>> {
        let mut random = Random::of(1, "sequencer", number);
        let mut scribe = Scribe::new(&self.book, Workload::Zlogs.name());
        let name = format!("program-{number}");
        let log = again(|| self.create(&name))?;
        let (mut waits, mut died) = (Vec::new(), None::<Instant>);
        let mut next = self.program(&name)?;
        for _ in 0..=times {
            let mut program = next;
            self.place_one(&mut program, &mut scribe, &name)?;
            waits.extend(died.take().map(|at| at.elapsed()));
            next = self.program(&name)?;
            for _ in 0..random.below(6) {
                match random.below(3) {
                    0 => drop(program.ask(&LogOrder::Skip.into())?),
                    _ => self.place_one(&mut program, &mut scribe, &name)?,
                }
            }
            let within = Duration::from_micros(random.below(DIES_WITHIN_US));
            self.place(&mut program, &mut scribe, &name, Some(within))?;
            died = Some(Instant::now());
        }
        self.read_all(&log, &mut scribe)?;
        Ok(waits)
    }

    /// An append of a program, which dies meanwhile where a time is given.
    fn place(
        &self,
        program: &mut Puppet,
        scribe: &mut Scribe,
        name: &str,
        dies_within: Option<Duration>,
    ) -> Result<()> {
        let value = self.value();
        let step = |at| Step::Placed { key: name.to_owned(), value, at };
        let done = scribe.record("append", Moment::Strict, vec![step(None)], |steps| {
            program.send(&LogOrder::Place { value }.into())?;
            if let Some(within) = dies_within {
                std::thread::sleep(within);
                program.kill();
                // It may be in the log, and nobody was told.
                let text = "its program was killed";
                return Err(Error::new(ErrorKind::TimedOut, text));
            }
            steps[0] = step(Some(program.hear()?));
            Ok(())
        });
        match done {
            Err(error) if dies_within.is_none() => Err(error),
            _ => Ok(()),
        }
    }

    /// The same until one is acknowledged.
    fn place_one(&self, program: &mut Puppet, scribe: &mut Scribe, name: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.place(program, scribe, name, None) {
                Err(error) if is_passing(&error) && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PACE);
                }
                done => return done,
            }
        }
    }

    /// Reads all there is; then no position below the tail is open any more.
    fn read_all(&self, log: &Log, scribe: &mut Scribe) -> Result<u64> {
        again(|| zlogs::read(log, scribe, "final", 0))?;
        let tail = again(|| block_on(log.tail()))?;
        let mut holes = 0;
        for position in 0..tail {
            match again(|| block_on(log.slot(position)))? {
                Slot::Data(_) => {}
                Slot::Invalid => holes += 1,
                Slot::Unwritten => {
                    let text = format!("position {position} of {} is open", log.name());
                    return Err(Error::corrupt(text));
                }
            }
        }
        Ok(holes)
    }

    /// Kills the node that has the sequencer, again and again, under appends.
    fn kill_nodes(&self, cluster: &mut Cluster, times: u64) -> Result<String> {
        self.create("asked")?;
        let is_over = AtomicBool::new(false);
        let killed = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    scope.spawn({
                        let is_over = &is_over;
                        move || self.append_until(client, is_over)
                    })
                })
                .collect();
            let killed = self.kill_seats(cluster, times);
            is_over.store(true, Ordering::Release);
            let broke = || Error::unavailable("a thread panicked");
            for thread in threads {
                thread.join().map_err(|_| broke())??;
            }
            killed
        })?;
        let mut scribe = Scribe::new(&self.book, Workload::Zlogs.name());
        let holes = self.read_all(&self.asked()?, &mut scribe)?;
        let entries = again(|| block_on(self.asked()?.tail()))? - holes;
        Ok(format!(
            "{times} nodes were killed with the sequencer; the first position after that came \
             {killed} later; {entries} entries, and {holes} positions that nobody wrote are filled"
        ))
    }

    fn asked(&self) -> Result<Log> {
        let opening = Opening { sequencing: Sequencing::Asked, ..Opening::default() };
        block_on(Log::open_as(&self.store, KEYSPACE, "asked", opening))
    }

    fn kill_seats(&self, cluster: &mut Cluster, times: u64) -> Result<Times> {
        let (writer, log) = (again(|| self.asked())?, again(|| self.asked())?);
        let mut waits = Times::default();
        for _ in 0..times {
            let (node, unheld) = self.kill_seat(cluster, &writer, &log)?;
            waits.extend([unheld]);
            cluster.start(node)?;
            cluster.wait_until_whole(PATIENCE)?;
        }
        Ok(waits)
    }

    /// Kills the node that has just given a position, which is written when another gives them:
    /// that is one append, which began when its position was asked for. Answers which node that
    /// was, and how long nobody had the sequencer.
    fn kill_seat(&self, cluster: &mut Cluster, writer: &Log, log: &Log) -> Result<(u16, Duration)> {
        let mut late = Scribe::new(&self.book, Workload::Zlogs.name());
        let mut scribe = Scribe::new(&self.book, Workload::Zlogs.name());
        let value = self.value();
        let step = |at| Step::Placed { key: log.name().to_owned(), value, at };
        let mut killed = None;
        let done = late.record("late", Moment::Strict, vec![step(None)], |steps| {
            let given = again(|| block_on(writer.next_position()))?;
            let node = self.holder(cluster, log)?;
            let died = Instant::now();
            cluster.process(node).kill();
            self.append(log, &mut scribe, PATIENCE)?;
            killed = Some((node, died.elapsed()));
            match block_on(writer.write(given, value.to_le_bytes().to_vec()))? {
                true => {
                    steps[0] = step(Some(given.position));
                    Ok(())
                }
                false => Err(Error::conflict("it is not to be had any more")),
            }
        });
        match (done, killed) {
            (Err(error), _) if !is_passing(&error) => Err(error),
            (_, Some(killed)) => Ok(killed),
            (_, None) => Err(Error::unavailable("no position was given")),
        }
    }

    /// The node whose process has the lock: the process says its number there.
    fn holder(&self, cluster: &mut Cluster, log: &Log) -> Result<u16> {
        let begun = Instant::now();
        loop {
            let holder = again(|| block_on(log.status()))?.holder;
            let numbers = cluster.numbers();
            let has_it =
                |node: &u16| holder == Some(format!("process {}", cluster.process(*node).pid()));
            if let Some(node) = numbers.into_iter().find(has_it) {
                return Ok(node);
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::unavailable(format!("no node has the lock: {holder:?}")));
            }
            std::thread::sleep(PACE);
        }
    }

    fn append_until(&self, client: u64, is_over: &AtomicBool) -> Result<()> {
        let mut random = Random::of(1, "asking", client);
        let mut scribe = Scribe::new(&self.book, Workload::Zlogs.name());
        let log = again(|| self.asked())?;
        while !is_over.load(Ordering::Acquire) {
            if random.below(10) == 0 {
                match block_on(log.next_position()) {
                    Err(error) if !is_passing(&error) => return Err(error),
                    _ => {}
                }
            }
            match self.append(&log, &mut scribe, Duration::ZERO) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => std::thread::sleep(PACE),
            }
        }
        Ok(())
    }

    /// Appends a value, and others until one is acknowledged or this has taken so long.
    fn append(&self, log: &Log, scribe: &mut Scribe, patience: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            let value = self.value();
            let step = |at| Step::Placed { key: log.name().to_owned(), value, at };
            let done = scribe.record("append", Moment::Strict, vec![step(None)], |steps| {
                let position = block_on(log.append(value.to_le_bytes().to_vec()))?;
                steps[0] = step(Some(position));
                Ok(())
            });
            match done {
                Err(error) if is_passing(&error) && begun.elapsed() < patience => {
                    std::thread::sleep(PACE);
                }
                done => return done,
            }
        }
    }
}
