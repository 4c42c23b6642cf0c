//! Eight consumers share a log, each a process, and are killed in the middle of what they do: who
//! takes and acknowledges gets each entry at least once, who works in the transaction that moves
//! the group does so exactly once, who pops at most once.
//!
//! ```text
//!   producer ──► log of three partitions ──► group ──► 8 processes, of which one after the other
//!                                                      dies between an order and its answer
//! ```
//!
//! Each way has a group of its own, over the same entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr::blocking::{Keyspace, Tyr};
use tyr_client::block_on;
use tyr_log::{Batch, Group, Log, Options, Start};
use tyr_types::{Error, ErrorKind, Result};

use super::{Extent, Ground, is_passing};
use crate::client::connection::TIMEOUT;
use crate::client::values;
use crate::cluster::Cluster;
use crate::history::Taking;
use crate::puppet::{self, LogOrder, Puppet};
use crate::random::Random;

/// Processes that share the entries.
const CONSUMERS: u64 = 8;

/// Partitions of the log.
const PARTITIONS: u16 = 3;

/// Entries that are appended together.
const TOGETHER: u64 = 20;

/// Entries that are asked for at a time, at most.
const MAX: u64 = 6;

/// How long what is taken is its consumer's own.
const LASTS: Duration = Duration::from_millis(1500);

/// Of so many orders one is the last that a process gets.
const DEADLY: u64 = 6;

/// It dies so many microseconds after it got that, at most: orders take some milliseconds.
const DIES_WITHIN_US: u64 = 12_000;

/// How long the entries may take to be given out.
const PATIENCE: Duration = Duration::from_secs(300);

/// What nobody has is looked for so often.
const LOOK: Duration = Duration::from_millis(20);

/// The keyspace, and the log in it.
const KEYSPACE: &str = "consumers";
const LOG: &str = "work";

pub(super) fn run(_ground: &Ground, cluster: &mut Cluster, extent: Extent) -> Result<String> {
    let (entries, deaths) = match extent {
        Extent::Full => (4_800, 100),
        Extent::Brief => (240, 0),
    };
    let addresses = cluster.control.addresses().to_vec();
    let store = Tyr::connect_options().timeout(TIMEOUT).connect_blocking(addresses.join(","))?;
    let options = Options {
        keyspace: KEYSPACE.to_owned(),
        partitions: PARTITIONS,
        segment_bytes: Some(64 << 10),
        ..Options::default()
    };
    let log = block_on(Log::create(&store.clone().into_async(), LOG, &options))?;
    let plan =
        puppet::Plan { addresses, keyspaces: vec![KEYSPACE.to_owned()], ..Default::default() };
    let mut texts = Vec::new();
    let ways = [Taking::Take(LASTS.as_millis() as u64), Taking::Work, Taking::Pop];
    for (number, how) in (0..).zip(ways) {
        // Each way has new entries, which come while they are consumed.
        let values = number * entries + 1..(number + 1) * entries + 1;
        let group = block_on(log.group(name(how), &Start::Newest))?;
        let shift = Shift {
            how,
            group,
            plan: &plan,
            has_all: AtomicBool::new(false),
            deaths: AtomicU64::new(0),
            seen: Mutex::default(),
        };
        let order = shift.play(&log, values.clone())?;
        let keyspace = store.keyspace(KEYSPACE)?;
        let text = shift.judge(values, &order, &keyspace)?;
        let killed = shift.deaths.load(Ordering::Relaxed);
        if killed < deaths {
            return Err(Error::corrupt(format!("only {killed} consumers were killed: {text}")));
        }
        texts.push(text);
    }
    Ok(texts.join("\n"))
}

fn name(how: Taking) -> &'static str {
    match how {
        Taking::Pop => "popped",
        Taking::Take(_) => "taken",
        Taking::Work => "worked",
    }
}

/// The blob that work is noted in.
fn ledger() -> String {
    "ledger".to_owned()
}

/// What the consumers of a group were told.
#[derive(Default)]
struct Seen {
    /// How often each value was given to somebody who lived to tell.
    given: BTreeMap<u64, u64>,
    /// Those of whose acknowledgement somebody was told that it was in time, with the moment.
    acknowledged: BTreeMap<u64, u64>,
    /// Grows with each order and each acknowledgement.
    moment: u64,
    /// Orders that nobody knows the end of.
    unknown: u64,
    wrong: Vec<String>,
}

impl Seen {
    fn pass(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }
}

/// The consumers of one group.
struct Shift<'a> {
    how: Taking,
    group: Group,
    plan: &'a puppet::Plan,
    has_all: AtomicBool,
    deaths: AtomicU64,
    seen: Mutex<Seen>,
}

impl Shift<'_> {
    /// Appends the values while they are consumed; answers those of each partition, in order.
    fn play(&self, log: &Log, values: std::ops::Range<u64>) -> Result<Vec<Vec<u64>>> {
        std::thread::scope(|scope| {
            let consumers: Vec<_> =
                (0..CONSUMERS).map(|it| scope.spawn(move || self.consume(it))).collect();
            let appended = append(log, values);
            self.has_all.store(true, Ordering::Release);
            let broke = || Error::unavailable("a consumer's thread panicked");
            for consumer in consumers {
                consumer.join().map_err(|_| broke())??;
            }
            appended
        })
    }

    fn consume(&self, number: u64) -> Result<()> {
        let mut random = Random::of(1, name(self.how), number);
        let (mut puppet, begun) = (None::<Puppet>, Instant::now());
        loop {
            if begun.elapsed() > PATIENCE {
                return Err(Error::unavailable("the entries are not given out"));
            }
            let client = match &mut puppet {
                Some(client) => client,
                none => none.insert(self.hire()?),
            };
            let has_all = self.has_all.load(Ordering::Acquire);
            let told = match self.once(client, &mut random) {
                Ok(Some(told)) => told,
                Ok(None) => {
                    puppet = None;
                    self.deaths.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            if told == 0 && has_all && self.is_empty()? {
                return Ok(());
            }
            if told == 0 {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// A new process.
    fn hire(&self) -> Result<Puppet> {
        let mut client = Puppet::start(self.plan)?;
        let (log, group) = (LOG.to_owned(), name(self.how).to_owned());
        client.ask(&LogOrder::Consume { log, group }.into())?;
        Ok(client)
    }

    /// One delivery; how many entries it had, and nothing when the process was killed.
    fn once(&self, client: &mut Puppet, random: &mut Random) -> Result<Option<usize>> {
        let begun = self.seen.lock().pass();
        let order = match self.how {
            Taking::Pop => LogOrder::Pop { max: MAX },
            Taking::Take(lasts_ms) => LogOrder::Take { max: MAX, lasts_ms },
            Taking::Work => LogOrder::Work { max: MAX, key: ledger() },
        };
        let Some(values) = self.order(client, random, order)? else { return Ok(None) };
        let mut seen = self.seen.lock();
        for value in &values {
            *seen.given.entry(*value).or_default() += 1;
            if seen.acknowledged.get(value).is_some_and(|at| *at < begun) {
                seen.wrong.push(format!("{value} came again when it was acknowledged"));
            }
        }
        drop(seen);
        if matches!(self.how, Taking::Take(_)) && !values.is_empty() {
            let Some(told) = self.order(client, random, LogOrder::Ack)? else { return Ok(None) };
            if told == [1] {
                let mut seen = self.seen.lock();
                let moment = seen.pass();
                seen.acknowledged.extend(values.iter().map(|value| (*value, moment)));
            }
        }
        Ok(Some(values.len()))
    }

    /// Has it do something, or die of it.
    fn order(
        &self,
        client: &mut Puppet,
        random: &mut Random,
        order: LogOrder,
    ) -> Result<Option<Vec<u64>>> {
        client.send(&order.into())?;
        if random.below(DEADLY) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(DIES_WITHIN_US)));
            client.kill();
            self.seen.lock().unknown += 1;
            return Ok(None);
        }
        let told = client.hear_all();
        if told.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut) {
            self.seen.lock().unknown += 1;
        }
        told.map(Some)
    }

    /// Whether nothing is left that would be given out, now or when its time is over.
    fn is_empty(&self) -> Result<bool> {
        let statuses = match block_on(self.group.status()) {
            Err(error) if is_passing(&error) => return Ok(false),
            statuses => statuses?,
        };
        Ok(statuses.iter().all(|status| status.behind_bytes == 0 && status.lent == 0))
    }

    /// What came of it, in words.
    fn judge(
        &self,
        values: std::ops::Range<u64>,
        order: &[Vec<u64>],
        keyspace: &Keyspace,
    ) -> Result<String> {
        let mut seen = self.seen.lock();
        let entries = values.end - values.start;
        let missing: Vec<u64> = values.clone().filter(|it| !seen.given.contains_key(it)).collect();
        let strange = seen.given.keys().copied().find(|value| !values.contains(value));
        if let Some(value) = strange {
            seen.wrong.push(format!("nobody appended {value}"));
        }
        let (unknown, again) =
            (seen.unknown, seen.given.values().map(|times| times - 1).sum::<u64>());
        let deaths = self.deaths.load(Ordering::Relaxed);
        let text = format!("{entries} entries, 8 consumers, {deaths} of them killed");
        let text = match self.how {
            Taking::Take(_) => {
                if !missing.is_empty() {
                    seen.wrong.push(format!("nobody got {missing:?}"));
                }
                format!("take and ack: {text}: each came, {again} of them again")
            }
            Taking::Pop => {
                if again > 0 {
                    seen.wrong.push(format!("{again} entries were popped twice"));
                }
                if missing.len() as u64 > unknown * MAX {
                    seen.wrong.push(format!("{} are lost by {unknown} pops", missing.len()));
                }
                let lost = missing.len();
                format!("pop: {text}: none came twice, {lost} were lost with who had got them")
            }
            Taking::Work => {
                let noted = self::values(&keyspace.get(ledger())?)?;
                seen.wrong.extend(not_once_in_order(&noted, order));
                format!("fetch and commit: {text}: each was worked on once, in order")
            }
        };
        match &seen.wrong[..] {
            [] => Ok(text),
            wrong => Err(Error::corrupt(format!("{text}; {}", wrong.join("; ")))),
        }
    }
}

/// What is wrong with a ledger that is to have each value once, those of a partition in order.
fn not_once_in_order(noted: &[u64], order: &[Vec<u64>]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (partition, values) in order.iter().enumerate() {
        let of_it: BTreeSet<u64> = values.iter().copied().collect();
        let found: Vec<u64> = noted.iter().copied().filter(|it| of_it.contains(it)).collect();
        if found != *values {
            let (found, all) = (found.len(), values.len());
            wrong.push(format!("of {all} of partition {partition} {found} were noted, or not so"));
        }
    }
    let all: usize = order.iter().map(Vec::len).sum();
    if noted.len() != all {
        wrong.push(format!("{} were noted, not {all}", noted.len()));
    }
    wrong
}

/// Appends values, in turn to each partition; answers those of each.
fn append(log: &Log, values: std::ops::Range<u64>) -> Result<Vec<Vec<u64>>> {
    let mut all = vec![Vec::new(); usize::from(PARTITIONS)];
    let (mut next, mut partition) = (values.start, 0);
    while next < values.end {
        let some: Vec<u64> = (next..values.end.min(next + TOGETHER)).collect();
        let mut batch = Batch::new();
        some.iter().try_for_each(|value| batch.push(value.to_le_bytes()))?;
        block_on(log.append_batch(&batch.in_partition(partition)))?;
        next += some.len() as u64;
        all[usize::from(partition)].extend(some);
        partition = (partition + 1) % PARTITIONS;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_that_lacks_one_has_one_twice_or_in_another_order_is_noticed() {
        let order = [vec![1, 2], vec![3]];
        assert_eq!(not_once_in_order(&[1, 3, 2], &order), Vec::<String>::new());
        for wrong in [&[1, 2][..], &[1, 2, 2, 3], &[2, 1, 3], &[1, 2, 3, 4]] {
            assert!(!not_once_in_order(wrong, &order).is_empty(), "{wrong:?}");
        }
    }
}
