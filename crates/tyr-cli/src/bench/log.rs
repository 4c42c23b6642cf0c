//! The shared log: appends of one entry, batches, and a consumer.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tyr::{Durability, Error, KeyspaceConfig, Result, Tyr};
use tyr_log::{Batch, Group, Log, Options, Start};
use tyr_runtime::waiting::block_on;

use super::meter::Figures;
use super::pace::{self, Pace, Step};

/// Bytes of an entry.
const ENTRY_LEN: usize = 100;
/// Bytes of a batch in the log.
const BATCH_BYTES: usize = 64 << 10;
/// Entries that the consumer finds, again and again.
const PRELOADED: usize = 200_000;
/// Entries of one pop.
const POPPED: usize = 100;
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

    fn entries(self, batch: &Batch) -> u64 {
        match self {
            Self::Append => 1,
            Self::Batches => batch.len() as u64,
            Self::Pop => POPPED as u64,
        }
    }
}

/// A log of one partition, what is done to it, and who consumes it: each caller for a group.
pub(super) struct LogCase {
    log: Log,
    groups: Vec<Group>,
    batch: Batch,
    work: Work,
}

impl LogCase {
    /// A new log for so many callers, with entries in it if they are to be consumed.
    pub(super) async fn new(
        store: &Tyr,
        options: &Options,
        work: Work,
        callers: usize,
    ) -> Result<Self> {
        let log = Log::create(store, "bench", options).await?;
        let (batch, mut groups) = (batch()?, Vec::new());
        if work == Work::Pop {
            for caller in 0..callers {
                groups.push(log.group(&format!("bench-{caller}"), &Start::Oldest).await?);
            }
            for _ in 0..PRELOADED.div_ceil(batch.len()) {
                log.append_batch(&batch).await?;
            }
        }
        Ok(Self { log, groups, batch, work })
    }

    /// Entries of one operation.
    pub(super) fn entries(&self) -> u64 {
        self.work.entries(&self.batch)
    }

    /// This caller does it once.
    pub(super) async fn once(&self, caller: usize) -> Result<()> {
        match self.work {
            Work::Append => self.log.append([7; ENTRY_LEN]).await.map(drop),
            Work::Batches => self.log.append_batch(&self.batch).await.map(drop),
            Work::Pop => pop(&self.groups[caller]).await,
        }
    }

    /// An error unless the log has the entries of `count` operations, and no others.
    pub(super) async fn verify(&self, count: u64) -> Result<()> {
        match self.work {
            Work::Append | Work::Batches => verify(&self.log, count * self.entries()).await,
            Work::Pop => Ok(()),
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
    let case = block_on(LogCase::new(&store, &options, work, threads))?;
    let shared = &case;
    let step = |caller| -> Step<'_> { Box::new(move || block_on(shared.once(caller))) };
    let run = pace::run(pace, (0..threads).map(step).collect(), || ())?;
    block_on(case.verify(pace::count_total(&run.threads)))?;
    let mut figures = Figures::default();
    let count = pace::count(&run.threads);
    run.cost.report(count, &mut figures);
    pace::report_latencies(&run.threads, &mut figures);
    let cpu = run.cost.cpu.as_secs_f64();
    figures.set("entries_per_cpu_s", (count * case.entries()) as f64 / cpu);
    drop(case);
    block_on(store.close())?;
    Ok(figures)
}

/// Payload bytes of one operation.
pub(super) fn len_of(work: Work) -> u64 {
    batch().map_or(0, |batch| work.entries(&batch) * ENTRY_LEN as u64)
}

/// As many entries as are 64 KiB.
fn batch() -> Result<Batch> {
    let mut batch = Batch::new();
    while batch.frame_len() + ENTRY_LEN + 4 <= BATCH_BYTES {
        batch.push([7; ENTRY_LEN])?;
    }
    Ok(batch)
}

/// Takes entries out; from the beginning again where there are no more.
async fn pop(group: &Group) -> Result<()> {
    while group.pop(POPPED).await?.is_empty() {
        group.seek(&Start::Oldest).await?;
    }
    Ok(())
}

async fn verify(log: &Log, expected: u64) -> Result<()> {
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
