//! The node that runs the policy.
//!
//! ```text
//!   a policy is installed ──► balancer/leader is absent? ──► put it, bound to a presence (M5)
//!   each tick ──► seat-loads/ ──► the policy ──► seats/assigned/…, if balancer/leader is
//!                                                still of that revision (B1)
//! ```
//!
//! Each node has such a thread, and one of them leads. If it dies, its key goes with its presence,
//! and another leads, whose policy goes on with what it kept (`balancer/state`). Who stood still
//! meanwhile assigns nothing any more: its moves are made on condition of its key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tyr::blocking::{Metadata, Presence, Tyr};
use tyr::metadata::{Expected, Path, Transaction};
use tyr::{ErrorKind, Result};
use tyr_mantle::{Balancer, Mode, Move, NodeMetrics, Policy, SeatMetrics, Tick};
use tyr_object::{
    Assignment, HostedStore, Hosting, NodeSeats, Proviso, SeatDirectory, SeatMode, SeatName,
};
use tyr_runtime::repeats::RepeatLimit;

use super::LOG_MARK;
use super::installed::{self, RECORD, Record};

/// Who leads.
const LEADER: &str = "balancer/leader";

/// What the policy keeps, for who leads next.
const STATE: &str = "balancer/state";

/// After so long without a word another leads.
const THERE: Duration = Duration::from_secs(5);

/// How long the thread waits before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(250);

/// How long it waits for the monitors before it tries again.
const AGAIN: Duration = Duration::from_secs(2);

/// What a failure is said of again after.
const SAID_AGAIN: Duration = Duration::from_secs(600);

/// Texts that are remembered for that: failures of each node of a large cluster, and of its seats.
const LATELY_MAX: usize = 64;

/// So many lines of a policy a minute go to the cluster log, and the same one once in
/// [`SAID_AGAIN`]: a node has twenty a minute for all that it has to say there, damage on its disk
/// and failures of the policy among it.
const POLICY_LINES_MAX: u64 = 5;
const POLICY_LINES: Duration = Duration::from_secs(60);

/// Takes a line for the cluster log.
pub type Say = Box<dyn Fn(String) + Send>;

/// The thread of a node. It ends soon after this is dropped: whatever it waits for then is not
/// waited for.
pub struct BalancerHost {
    is_over: Arc<AtomicBool>,
}

impl BalancerHost {
    /// Begins it; `say` puts a line into the cluster log.
    pub fn begin(node: u16, hosting: &Hosting, say: Say) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let mut work = Work::new(node, say, told, Instant::now());
        let thread = std::thread::Builder::new().name("tyr-balancer".to_owned());
        let store = hosting.store();
        let thread = thread.spawn(move || work.run(&store));
        if let Err(error) = thread {
            tracing::warn!(%error, "no thread for the balancer: this node does not lead it");
        }
        Self { is_over }
    }
}

impl Drop for BalancerHost {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

struct Work {
    node: u16,
    say: Say,
    is_over: Arc<AtomicBool>,
    begun: Instant,
    /// What was said to fail.
    failed: Lately,
    /// Lines of the policy that were passed on.
    passed: Lately,
    /// How many may be.
    lines: RepeatLimit<()>,
}

/// The node leads.
struct Leading {
    presence: Presence,
    /// Of its key.
    revision: u64,
    balancer: Option<Balancer>,
    /// What the metadata has of what the policy keeps.
    kept: Kept,
    next: Instant,
}

impl Leading {
    /// Writes down what the policy keeps, if that has changed; whether this node still leads.
    fn keep(&mut self, metadata: &Metadata, version: u32) -> Result<bool> {
        let states = self.balancer.as_ref().map(|it| it.states().clone()).unwrap_or_default();
        let kept = Kept { version, states };
        if kept == self.kept {
            return Ok(true);
        }
        match kept.write(metadata, self.revision) {
            Ok(()) => self.kept = kept,
            // Somebody else leads.
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

/// What a version of the policy keeps, by node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    version: u32,
    states: BTreeMap<u16, String>,
}

impl Kept {
    /// What is kept for this version; nothing where that is of another, or cannot be read.
    fn find(metadata: &Metadata, version: u32) -> Result<Self> {
        let entry = metadata.get(STATE)?;
        let kept = entry.and_then(|entry| serde_json::from_slice::<Self>(&entry.value).ok());
        let none = Self { version, ..Self::default() };
        Ok(kept.filter(|kept| kept.version == version).unwrap_or(none))
    }

    /// Writes it, if this node still leads by the key of that revision.
    fn write(&self, metadata: &Metadata, leader: u64) -> Result<()> {
        let value = serde_json::to_vec(self).expect("numbers and texts are JSON");
        let transaction = Transaction::new().when(Path::new(LEADER)?, Expected::Revision(leader));
        metadata.transact(transaction.put(Path::new(STATE)?, value)).map(drop)
    }
}

/// What was said in the last [`SAID_AGAIN`], and when.
#[derive(Default)]
struct Lately {
    texts: Vec<(String, Instant)>,
}

impl Lately {
    fn has(&mut self, text: &str, now: Instant) -> bool {
        self.texts.retain(|(_, at)| now.duration_since(*at) < SAID_AGAIN);
        self.texts.iter().any(|(said, _)| said == text)
    }

    /// The oldest goes where there are too many.
    fn note(&mut self, text: String, now: Instant) {
        if self.texts.len() >= LATELY_MAX {
            self.texts.remove(0);
        }
        self.texts.push((text, now));
    }
}

impl Work {
    fn new(node: u16, say: Say, is_over: Arc<AtomicBool>, begun: Instant) -> Self {
        let lines = RepeatLimit::new(POLICY_LINES_MAX, POLICY_LINES, 1);
        let (failed, passed) = (Lately::default(), Lately::default());
        Self { node, say, is_over, begun, failed, passed, lines }
    }

    fn run(&mut self, store: &HostedStore) {
        while let Some(store) = store.get().filter(|_| !self.is_over()) {
            let followed = store.and_then(|store| self.follow(&store));
            if let Err(error) = followed {
                tracing::debug!(%error, "the policy of the balancer is not followed; tried again");
                std::thread::park_timeout(AGAIN);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Follows the policy until an error, or the end.
    fn follow(&mut self, store: &Tyr) -> Result<()> {
        let metadata = store.metadata();
        let revision = metadata.list(RECORD, None, 1)?.revision;
        let mut watch = metadata.watch(RECORD, revision);
        let mut record = installed::find(&metadata)?.0;
        let mut leading: Option<Leading> = None;
        let mut claim = Instant::now();
        while !self.is_over() {
            let wait = leading
                .as_ref()
                .map_or(LOOK, |it| it.next.saturating_duration_since(Instant::now()).min(LOOK));
            if watch.next_within(wait)?.is_some() {
                record = installed::find(&metadata)?.0;
                // Another leads on with it, or this one, from its first tick on.
                leading = leading.filter(|_| record.current.is_some());
                if let Some(leading) = &mut leading {
                    leading.balancer = None;
                }
            }
            if record.current.is_none() {
                continue;
            }
            let tick = Duration::from_millis(record.tick_ms);
            match leading.take().filter(|it| it.presence.is_there()) {
                None if Instant::now() < claim => {}
                None => {
                    claim = Instant::now() + AGAIN;
                    leading = self.lead(&metadata, tick)?;
                }
                Some(it) if Instant::now() < it.next => leading = Some(it),
                Some(mut it) => {
                    it.next = Instant::now() + tick;
                    let is_leading = self.tick(store, &record, &mut it)?;
                    leading = is_leading.then_some(it);
                }
            }
        }
        Ok(())
    }

    /// Leads, if nobody does.
    fn lead(&self, metadata: &Metadata, tick: Duration) -> Result<Option<Leading>> {
        if metadata.get(LEADER)?.is_some() {
            return Ok(None);
        }
        let presence = metadata.presence(THERE)?;
        let path = Path::new(LEADER)?;
        let claim = Transaction::new().when(path.clone(), Expected::Absent);
        match presence.transact(claim.put(path, self.node.to_string())) {
            Ok(revision) => {
                let next = Instant::now() + tick;
                let (balancer, kept) = (None, Kept::default());
                Ok(Some(Leading { presence, revision, balancer, kept, next }))
            }
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs the policy; whether this node still leads.
    fn tick(&mut self, store: &Tyr, record: &Record, leading: &mut Leading) -> Result<bool> {
        let Some(version) = record.running() else { return Ok(true) };
        let (name, number) = (&version.name, version.number);
        let balancer = match &mut leading.balancer {
            Some(balancer) => balancer,
            None => {
                let script = installed::script(&store.metadata(), number)?;
                match self.compile(&script, record.tick_ms) {
                    Ok(balancer) => {
                        self.say(format!("policy {name}, version {number}, runs here"));
                        leading.kept = Kept::find(&store.metadata(), number)?;
                        leading.balancer.insert(balancer.keeping(leading.kept.states.clone()))
                    }
                    Err(error) => {
                        self.fail(format!("policy {name}, version {number}: {error}"));
                        return Ok(true);
                    }
                }
            }
        };
        let directory = SeatDirectory::of(store);
        let nodes: Vec<NodeMetrics> = directory.list()?.nodes.iter().map(metrics).collect();
        let now_us = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let Tick { moves, lines, failure } = balancer.tick(now_us, &nodes);
        if !leading.keep(&store.metadata(), number)? {
            return Ok(false);
        }
        for line in lines {
            self.pass_on(format!("{}: {}", line.level, line.text), Instant::now());
        }
        if let Some((node, text)) = failure {
            self.fail(format!(
                "policy {name}, version {number}, fails for node {node}, and nothing is moved: \
                 {text}"
            ));
        }
        let proviso = Proviso { path: LEADER.to_owned(), revision: leading.revision };
        for moved in moves {
            let Move { seat, from, to, .. } = &moved;
            match carry_out(&directory, &moved, &proviso) {
                Ok(()) => self.say(format!(
                    "seat {seat} goes from node {from} to node {to}, by policy {name}, version \
                     {number}"
                )),
                // Somebody else leads, or the node goes just now.
                Err(error) if error.kind() == ErrorKind::Conflict => return Ok(false),
                Err(error) => {
                    self.fail(format!("seat {seat} cannot be assigned to node {to}: {error}"));
                }
            }
        }
        Ok(true)
    }

    /// The policy at work, each run of which may take half a tick.
    fn compile(&self, script: &str, tick_ms: u64) -> Result<Balancer> {
        let begun = self.begun;
        let clock = Arc::new(move || begun.elapsed());
        let policy = Policy::compile(script, Duration::from_millis(tick_ms) / 2, clock)?;
        Ok(Balancer::new(policy, tick_ms * 1_000))
    }

    fn say(&self, text: String) {
        (self.say)(format!("{LOG_MARK}{text}"));
    }

    /// Says a line of the policy, if it is another, and the policy does not say too much.
    fn pass_on(&mut self, text: String, now: Instant) {
        if self.passed.has(&text, now) {
            return;
        }
        match self.lines.admit((), now) {
            None => return,
            Some(0) => self.say(text.clone()),
            Some(more) => self.say(format!("{text} (and {more} lines before, left out)")),
        }
        self.passed.note(text, now);
    }

    /// Says a failure now.
    fn fail(&mut self, text: String) {
        self.fail_at(text, Instant::now());
    }

    /// Says a failure, if it is another than those that were said lately.
    fn fail_at(&mut self, text: String, now: Instant) {
        if !self.failed.has(&text, now) {
            self.say(text.clone());
            self.failed.note(text, now);
        }
    }
}

fn carry_out(directory: &SeatDirectory, moved: &Move, proviso: &Proviso) -> Result<()> {
    let mode = match moved.mode {
        Mode::Client => SeatMode::Client,
        Mode::Proxy => SeatMode::Proxy,
    };
    let name: SeatName = moved.seat.parse()?;
    let assignment = Assignment { node: moved.to, mode, by: "balancer".to_owned() };
    directory.assign(&name, Some(&assignment), Some(proviso))
}

/// What a policy is told of a node.
fn metrics(node: &NodeSeats) -> NodeMetrics {
    let seats = node.seats.iter().map(|seat| SeatMetrics {
        name: seat.name.clone(),
        kind: seat.kind.clone(),
        rate: seat.rate,
        waiting: seat.waiting as f64,
        since: seat.seconds as f64,
    });
    let (number, cpu, values) = (node.node, node.cpu, BTreeMap::new());
    NodeMetrics { node: number, cpu, values, seats: seats.collect() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn failures_that_take_turns_are_said_once_each() {
        let (says, said) = mpsc::channel();
        let say: Say = Box::new(move |text| says.send(text).expect("the test listens"));
        let begun = Instant::now();
        let mut work = Work::new(1, say, Arc::default(), begun);
        for turn in 0..10 {
            work.fail_at(format!("node {}", turn % 3), begun);
        }
        assert_eq!(said.try_iter().count(), 3);
        work.fail_at("node 1".to_owned(), begun + SAID_AGAIN);
        assert_eq!(said.try_iter().count(), 1, "that was long ago");
        for other in 0..3 * LATELY_MAX {
            work.fail_at(format!("seat {other}"), begun + SAID_AGAIN);
        }
        assert_eq!(work.failed.texts.len(), LATELY_MAX);
    }

    #[test]
    fn a_policy_says_five_other_lines_a_minute_however_much_it_says() {
        let (says, said) = mpsc::channel();
        let say: Say = Box::new(move |text| says.send(text).expect("the test listens"));
        let begun = Instant::now();
        let mut work = Work::new(1, say, Arc::default(), begun);
        let mut said_at = |minute: u32, texts: &mut dyn Iterator<Item = String>| {
            texts.for_each(|text| work.pass_on(text, begun + minute * POLICY_LINES));
            said.try_iter().collect::<Vec<_>>()
        };
        assert_eq!(said_at(0, &mut (0..100).map(|_| "asked".to_owned())).len(), 1);
        assert_eq!(said_at(0, &mut (0..100).map(|at| format!("load {at}"))).len(), 4);
        let next = said_at(1, &mut (100..200).map(|at| format!("load {at}")));
        assert_eq!(next.len(), 5, "another minute, and others");
        assert_eq!(next[0], format!("{LOG_MARK}load 100 (and 96 lines before, left out)"));
        assert_eq!(said_at(10, &mut ["asked".to_owned()].into_iter()).len(), 1, "long ago");
    }
}
