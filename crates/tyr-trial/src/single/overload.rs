//! Ten times more calls than the cluster answers: what is too much is refused, memory stays
//! bounded, and afterwards all is as before.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_types::{Error, KeyspaceConfig, Operation, Payload, Result};

use super::Ground;
use crate::client::{Caller, connect};

/// Clients, each with so many calls in flight.
const CLIENTS: usize = 8;
const CALLS: usize = 64;
/// Bytes of a write.
const WRITE_LEN: usize = 16 << 10;
const LASTS: Duration = Duration::from_secs(60);
/// Of a node's memory, above what it had before: its cache, its queues, and what allocators keep.
const MEMORY_MAX: u64 = 1 << 30;

pub(super) fn run(ground: &Ground) -> Result<String> {
    let mut cluster = ground.cluster(3, None)?;
    let config = KeyspaceConfig::default();
    let callers = (0..CLIENTS)
        .map(|_| Caller::new(&connect(&cluster.office)?, "overload", &config))
        .collect::<Result<Vec<Caller>>>()?;
    let before = rate(&callers[..1], 4, Duration::from_secs(5), || {})?;
    let resident = |cluster: &mut crate::cluster::Cluster| {
        (0..3).map(|node| cluster.process(node).resident_len()).max().unwrap_or(0)
    };
    let first = resident(&mut cluster);
    let mut most = 0;
    let during = rate(&callers, CALLS, LASTS, || most = most.max(resident(&mut cluster)))?;
    let after = rate(&callers[..1], 4, Duration::from_secs(5), || {})?;
    let dead = cluster.dead();
    let text = format!(
        "before {before}\nduring {during}\nafter  {after}\nmemory of the largest node: {} MiB \
         before, {} MiB at most",
        first >> 20,
        most >> 20
    );
    let only_refused = during.failed.keys().all(|kind| ["Unavailable", "TimedOut"].contains(kind));
    let is_good = dead.is_empty()
        && only_refused
        && most <= first + MEMORY_MAX
        && after.failed.is_empty()
        && after.done * 2 >= before.done;
    match is_good {
        true => Ok(text),
        false => Err(Error::unavailable(format!("{text}\nended by themselves: {dead:?}"))),
    }
}

/// What calls came to.
struct Rate {
    done: u64,
    lasted: Duration,
    failed: BTreeMap<&'static str, u64>,
    slowest: Duration,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (each, slowest) = (self.lasted.as_secs_f64(), self.slowest.as_secs_f64());
        let rate = self.done as f64 / each;
        write!(f, "{rate:.0} writes/s, the slowest {slowest:.2} s, failed {:?}", self.failed)
    }
}

/// So many threads a caller write for a while; `look` is called meanwhile.
fn rate(callers: &[Caller], calls: usize, lasts: Duration, mut look: impl FnMut()) -> Result<Rate> {
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let failed = Mutex::new(BTreeMap::new());
    let slowest = Mutex::new(Duration::ZERO);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for (number, caller) in (0..calls).flat_map(|n| callers.iter().map(move |it| (n, it))) {
            let (is_over, done, failed, slowest) = (&is_over, &done, &failed, &slowest);
            scope.spawn(move || {
                while !is_over.load(Ordering::Acquire) {
                    let begun = Instant::now();
                    let payload = Payload::Inline(vec![7; WRITE_LEN].into());
                    let mut deal = caller.begin();
                    deal.add(&format!("blob-{number}"), Operation::Write { offset: 0, payload });
                    match deal.commit() {
                        Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => {
                            *failed.lock().entry(error.kind().name()).or_insert(0) += 1;
                        }
                    }
                    let mut slowest = slowest.lock();
                    *slowest = begun.elapsed().max(*slowest);
                }
            });
        }
        while begun.elapsed() < lasts {
            look();
            std::thread::sleep(Duration::from_millis(200));
        }
        is_over.store(true, Ordering::Release);
    });
    let done = done.into_inner();
    let lasted = begun.elapsed();
    Ok(Rate { done, lasted, failed: failed.into_inner(), slowest: slowest.into_inner() })
}
