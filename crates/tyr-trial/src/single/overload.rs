//! Far more calls than the cluster can answer: what is too much is refused, memory and the wait of
//! what is taken stay bounded, and afterwards all is as before.
//!
//! Three times: with many small writes to ever new blobs, so that what a node has to write back
//! fills its memory; to the same ones, so that it runs out of patience by their number; and with
//! fewer large ones, so that it runs out of patience by their bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_client::Client;
use tyr_runtime::ticket::Ticket;
use tyr_types::{BlobOperations, Error, KeyspaceConfig, Operation, Payload, Result};

use super::Ground;
use crate::client::{Caller, connect};
use crate::cluster::Cluster;

/// Clients, each with connections of its own.
const CLIENTS: usize = 8;

/// Of a node's memory, above what it had before: its cache, its queues, and what allocators keep.
const MEMORY_MAX: u64 = 1 << 30;

/// Who is refused tries again after so long: the error says "in a moment".
const REST: Duration = Duration::from_millis(500);

/// A cluster that is asked for too much has something wait for so long, or refuses it: clients wait
/// themselves for a node that refuses, and tell their callers only after a while.
const OVERLOADED: Duration = Duration::from_millis(500);

/// Nothing that is taken waits longer.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// How much is asked for.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    /// Calls of each client at a time. Some 32 at a time from all together keep a cluster busy.
    calls: usize,
    /// Bytes of a write.
    write_len: usize,
    /// Whether each write makes a blob; else those of a client are written again and again.
    is_fresh: bool,
    lasts: Duration,
}

const USUAL: Load = Load {
    name: "usual",
    calls: 4,
    write_len: 16 << 10,
    is_fresh: false,
    lasts: Duration::from_secs(5),
};
const MANY: Load = Load { name: "many", calls: 1024, lasts: Duration::from_secs(60), ..USUAL };
const FRESH: Load = Load { name: "fresh", is_fresh: true, lasts: Duration::from_secs(10), ..MANY };
const LARGE: Load =
    Load { name: "large", calls: 64, write_len: 1 << 20, lasts: Duration::from_secs(20), ..USUAL };

/// How long the cluster is asked for too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// A minute and a half.
    Full,
    /// A quarter of that.
    Brief,
}

pub(super) fn run(ground: &Ground, length: Length) -> Result<String> {
    let mut cluster = ground.cluster(3, None)?;
    let config = KeyspaceConfig::default();
    let callers = (0..CLIENTS)
        .map(|_| Caller::new(&connect(&cluster.control)?, "overload", &config))
        .collect::<Result<Vec<Caller>>>()?;
    let before = put_on(&USUAL, &callers, &mut cluster);
    let during = [FRESH, MANY, LARGE].map(|load| {
        let lasts = match length {
            Length::Full => load.lasts,
            Length::Brief => load.lasts / 4,
        };
        put_on(&Load { lasts, ..load }, &callers, &mut cluster)
    });
    let after = put_on(&USUAL, &callers, &mut cluster);
    let dead = cluster.dead();
    let [fresh, many, large] = &during;
    let text = format!("{before}\n{fresh}\n{many}\n{large}\n{after}");
    let is_overload =
        |it: &Outcome| it.failed.contains_key("Unavailable") || it.slowest >= OVERLOADED;
    let only_refused =
        |it: &Outcome| it.failed.keys().all(|kind| ["Unavailable", "TimedOut"].contains(kind));
    let is_bounded =
        |it: &Outcome| it.slowest <= WAIT_MAX && it.memory <= before.memory + MEMORY_MAX;
    let wrong = [
        (!dead.is_empty(), format!("nodes {dead:?} ended by themselves")),
        (!during.iter().all(is_overload), "nothing had to wait: it was no overload".to_owned()),
        (!during.iter().all(only_refused), "it failed otherwise than by refusal".to_owned()),
        (!during.iter().all(is_bounded), "memory or waits are not bounded".to_owned()),
        (!after.failed.is_empty(), "it fails although the load is gone".to_owned()),
        (after.done * 2 < before.done, "it did not recover".to_owned()),
    ];
    let wrong: Vec<String> =
        wrong.into_iter().filter_map(|(is_wrong, text)| is_wrong.then_some(text)).collect();
    match wrong.is_empty() {
        true => Ok(text),
        false => Err(Error::unavailable(format!("{text}\n{}", wrong.join("; ")))),
    }
}

/// What a load came to.
struct Outcome {
    name: &'static str,
    done: u64,
    lasted: Duration,
    failed: BTreeMap<&'static str, u64>,
    /// What one of the failures said.
    said: Option<String>,
    /// The longest wait of a call that was done.
    slowest: Duration,
    /// Of the largest node, in bytes, at most.
    memory: u64,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, done, failed, said, memory, .. } = self;
        let rate = *done as f64 / self.lasted.as_secs_f64();
        let slowest = self.slowest.as_secs_f64();
        let memory = memory >> 20;
        write!(
            f,
            "{name:6} {rate:6.0} writes/s, the slowest {slowest:.2} s, largest node {memory} MiB, \
             failed {failed:?}"
        )?;
        said.iter().try_for_each(|said| write!(f, ", as in: {said}"))
    }
}

/// Puts a load on the cluster.
fn put_on(load: &Load, callers: &[Caller], cluster: &mut Cluster) -> Outcome {
    let begun = Instant::now();
    let is_over = &AtomicBool::new(false);
    let mut outcome = Outcome {
        name: load.name,
        done: 0,
        lasted: Duration::ZERO,
        failed: BTreeMap::new(),
        said: None,
        slowest: Duration::ZERO,
        memory: 0,
    };
    let numbers = cluster.numbers();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..)
            .zip(callers)
            .map(|(number, caller)| {
                scope.spawn(move || Pressing::new(load, number, caller).run(is_over))
            })
            .collect();
        while begun.elapsed() < load.lasts {
            let resident = numbers.iter().map(|node| cluster.process(*node).resident_len());
            outcome.memory = resident.fold(outcome.memory, u64::max);
            std::thread::sleep(Duration::from_millis(200));
        }
        is_over.store(true, Ordering::Release);
        for client in clients {
            let pressing = client.join().expect("a client that presses does not panic");
            outcome.done += pressing.done;
            outcome.slowest = outcome.slowest.max(pressing.slowest);
            for (kind, count) in pressing.failed {
                *outcome.failed.entry(kind).or_insert(0) += count;
            }
            outcome.said = pressing.said.or(outcome.said.take());
        }
    });
    outcome.lasted = begun.elapsed();
    outcome
}

/// A client that begins a call whenever one is answered, and rests when one is refused.
struct Pressing<'a> {
    load: &'a Load,
    number: usize,
    caller: &'a Caller,
    payload: Payload,
    /// In the order in which they began.
    open: VecDeque<(Instant, Ticket)>,
    /// Those that were refused, by when they are begun again.
    resting: VecDeque<Instant>,
    begun: usize,
    done: u64,
    failed: BTreeMap<&'static str, u64>,
    said: Option<String>,
    slowest: Duration,
}

impl<'a> Pressing<'a> {
    fn new(load: &'a Load, number: usize, caller: &'a Caller) -> Self {
        Self {
            load,
            number,
            caller,
            payload: Payload::Inline(vec![7; load.write_len].into()),
            open: VecDeque::new(),
            resting: VecDeque::new(),
            begun: 0,
            done: 0,
            failed: BTreeMap::new(),
            said: None,
            slowest: Duration::ZERO,
        }
    }

    fn run(mut self, is_over: &AtomicBool) -> Self {
        while !is_over.load(Ordering::Acquire) {
            let now = Instant::now();
            while self.resting.front().is_some_and(|until| *until <= now) {
                self.resting.pop_front();
            }
            while self.open.len() + self.resting.len() < self.load.calls {
                let ticket = self.begin(self.caller.client());
                self.open.push_back((Instant::now(), ticket));
            }
            match (self.open.is_empty(), self.resting.front()) {
                (true, Some(until)) => std::thread::sleep(until.duration_since(now)),
                (true, None) | (false, _) => self.finish_first(),
            }
        }
        while !self.open.is_empty() {
            self.finish_first();
        }
        self
    }

    fn begin(&mut self, client: &Arc<Client>) -> Ticket {
        // Each call writes a blob of its own: nobody waits for another.
        let Load { name, calls, is_fresh, .. } = self.load;
        let key = match is_fresh {
            true => format!("{name}-{}-{}", self.number, self.begun),
            false => format!("blob-{}-{}", self.number, self.begun % calls),
        };
        self.begun += 1;
        let blob = self.caller.blob(&key);
        let operations = vec![Operation::Write { offset: 0, payload: self.payload.clone() }];
        client.commit(vec![BlobOperations { blob, operations }], Vec::new(), Vec::new())
    }

    /// Waits for the call that began first. The longest wait of all is exact so, though a single
    /// one may be looked at late.
    fn finish_first(&mut self) {
        let Some((begun, ticket)) = self.open.pop_front() else { return };
        match ticket.wait() {
            Ok(_) => {
                self.done += 1;
                self.slowest = self.slowest.max(begun.elapsed());
            }
            Err(error) => {
                *self.failed.entry(error.kind().name()).or_insert(0) += 1;
                self.said = Some(error.to_string());
                self.resting.push_back(Instant::now() + REST);
            }
        }
    }
}
