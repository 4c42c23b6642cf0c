//! The shared log of three replicas: appends, batches, and a consumer.

use tyr::{KeyspaceConfig, Result, Tyr};
use tyr_log::{Batch, Group, Log, Options, Start};

use crate::bench::log::{self, ENTRY_LEN, POPPED, PRELOADED, Work};

/// A log of one partition, and a group that consumes it.
pub struct Shelf {
    log: Log,
    group: Group,
    batch: Batch,
    work: Work,
}

/// The keyspace that logs are made in, unless one is named.
pub fn config() -> KeyspaceConfig {
    Options::default().keyspace_config
}

/// Entries of one operation.
pub fn entries_of(work: Work) -> Result<u64> {
    match work {
        Work::Append => Ok(1),
        Work::Batches => log::batch().map(|batch| batch.len() as u64),
        Work::Pop => Ok(POPPED as u64),
    }
}

/// Payload bytes of one operation.
pub fn len_of(work: Work) -> u64 {
    entries_of(work).map_or(0, |entries| entries * ENTRY_LEN as u64)
}

impl Shelf {
    /// A log in this keyspace, with entries in it if they are to be consumed.
    pub async fn new(store: &Tyr, keyspace: &str, work: Work) -> Result<Self> {
        let options = Options { keyspace: keyspace.to_owned(), ..Options::default() };
        let log = Log::create(store, "bench", &options).await?;
        let group = log.group("bench", &Start::Oldest).await?;
        let batch = log::batch()?;
        if work == Work::Pop {
            for _ in 0..PRELOADED.div_ceil(batch.len()) {
                log.append_batch(&batch).await?;
            }
        }
        Ok(Self { log, group, batch, work })
    }

    /// Does it once.
    pub async fn once(&self) -> Result<()> {
        match self.work {
            Work::Append => self.log.append([7; ENTRY_LEN]).await.map(drop),
            Work::Batches => self.log.append_batch(&self.batch).await.map(drop),
            Work::Pop => log::pop(&self.group).await,
        }
    }

    /// An error unless the log has the entries of `count` operations, and no others.
    pub async fn verify(&self, count: u64) -> Result<()> {
        match self.work {
            Work::Pop => Ok(()),
            work @ (Work::Append | Work::Batches) => {
                log::verify(&self.log, count * entries_of(work)?).await
            }
        }
    }
}
