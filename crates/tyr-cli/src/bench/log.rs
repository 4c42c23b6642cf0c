//! The shared log: appends of one entry, batches, and a consumer.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tyr::{Durability, Error, KeyspaceConfig, Result, Tyr};
use tyr_log::{Batch, Group, Log, Options, Start};
use tyr_runtime::waiting::block_on;

use super::meter::Figures;
use super::pace::{self, Pace, Step};

/// Bytes of an entry.
pub(super) const ENTRY_LEN: usize = 100;
/// Bytes of a batch in the log.
const BATCH_BYTES: usize = 64 << 10;
/// Entries that the consumer finds, again and again.
pub(super) const PRELOADED: usize = 200_000;
/// Entries of one pop.
pub(super) const POPPED: usize = 100;
/// Entries read at a time to count them.
const STEP: usize = 10_000;

/// What is done to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Appends of one entry of 100 bytes.
    Append,
    /// Appends of batches of 64 KiB of them.
    Batches,
    /// Pops of 100 of them.
    Pop,
}

impl Work {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "append of 100 B",
            Self::Batches => "batches of 64 KiB",
            Self::Pop => "pop of 100",
        }
    }
}

/// Measures so many threads at one log; counts the entries afterwards.
pub fn run(
    pace: Pace,
    dir: &Path,
    work: Work,
    durability: Durability,
    threads: usize,
) -> Result<Figures> {
    let store = block_on(Tyr::open(dir))?;
    let defaults = Options::default();
    let keyspace_config = KeyspaceConfig { durability, ..defaults.keyspace_config };
    let options = Options { keyspace_config, ..defaults };
    let log = block_on(Log::create(&store, "bench", &options))?;
    let batch = batch()?;
    let entries = match work {
        Work::Append => 1,
        Work::Batches => batch.len(),
        Work::Pop => POPPED,
    };
    let group = block_on(log.group("bench", &Start::Oldest))?;
    if work == Work::Pop {
        for _ in 0..PRELOADED.div_ceil(batch.len()) {
            block_on(log.append_batch(&batch))?;
        }
    }
    let entry = [7; ENTRY_LEN];
    let steps = (0..threads).map(|_| -> Step<'_> {
        let (log, batch, group) = (&log, &batch, &group);
        match work {
            Work::Append => Box::new(move || block_on(log.append(entry)).map(drop)),
            Work::Batches => Box::new(move || block_on(log.append_batch(batch)).map(drop)),
            Work::Pop => Box::new(move || block_on(pop(group))),
        }
    });
    let run = pace::run(pace, steps.collect(), || ())?;
    if work != Work::Pop {
        let expected = pace::count_total(&run.threads) * entries as u64;
        block_on(verify(&log, expected))?;
    }
    let mut figures = Figures::default();
    let count = pace::count(&run.threads);
    run.cost.report(count, &mut figures);
    pace::report_latencies(&run.threads, &mut figures);
    let cpu = run.cost.cpu.as_secs_f64();
    figures.set("entries_per_cpu_s", (count * entries as u64) as f64 / cpu);
    drop((group, log));
    block_on(store.close())?;
    Ok(figures)
}

/// As many entries as are 64 KiB.
pub(super) fn batch() -> Result<Batch> {
    let mut batch = Batch::new();
    while batch.frame_len() + ENTRY_LEN + 4 <= BATCH_BYTES {
        batch.push([7; ENTRY_LEN])?;
    }
    Ok(batch)
}

/// Takes entries out; from the beginning again where there are no more.
pub(super) async fn pop(group: &Group) -> Result<()> {
    while group.pop(POPPED).await?.is_empty() {
        group.seek(&Start::Oldest).await?;
    }
    Ok(())
}

pub(super) async fn verify(log: &Log, expected: u64) -> Result<()> {
    let mut reader = log.reader(&Start::Oldest).await?;
    let mut count = 0;
    loop {
        let entries = reader.next(STEP).await?;
        if entries.is_empty() {
            break;
        }
        count += entries.len() as u64;
    }
    match count == expected {
        true => Ok(()),
        false => Err(Error::corrupt(format!("the log has {count} entries, not {expected}"))),
    }
}
