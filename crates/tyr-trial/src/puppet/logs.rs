//! What a puppet does with logs: it is a consumer of one of `tyr-log`, or holds the sequencer of
//! one of `tyr-zlog`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tyr::blocking::{Keyspace, Tyr};
use tyr_client::block_on;
use tyr_log::{Delivery, Entry, Group, Log};
use tyr_types::{Error, Result};
use tyr_zlog::{Log as Zlog, Opening, Policy};

/// What is to be done with a log, of the puppet's first keyspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum LogOrder {
    /// Becomes a consumer of a group.
    Consume {
        /// The log.
        log: String,
        /// The group.
        group: String,
    },
    /// Pops entries; answers their values.
    Pop {
        /// How many at most.
        max: u64,
    },
    /// Takes entries, and forgets those that it took before; answers their values.
    Take {
        /// How many at most.
        max: u64,
        /// For how long they are its own.
        lasts_ms: u64,
    },
    /// Acknowledges what it took; answers whether that was in time, as 1 or 0.
    Ack,
    /// Fetches entries, and appends their values to a blob in the transaction that moves the
    /// group; answers them.
    Work {
        /// How many at most.
        max: u64,
        /// The blob.
        key: String,
    },
    /// Opens a log of `tyr-zlog`, to hold its sequencer itself.
    Sequence {
        /// The log.
        log: String,
        /// How long the lease of the sequencer lasts.
        lease_ms: u64,
    },
    /// Appends a value to that log; answers the position.
    Place {
        /// The value.
        value: u64,
    },
    /// Gets a position of it that nothing is written to; answers it.
    Skip,
}

/// The logs that a puppet has open.
#[derive(Debug, Default)]
pub(super) struct Logs {
    group: Option<Group>,
    taken: Option<Delivery>,
    sequenced: Option<Zlog>,
}

impl Logs {
    pub(super) fn follow(
        &mut self,
        store: &Tyr,
        keyspace: &Keyspace,
        order: LogOrder,
    ) -> Result<Vec<u64>> {
        match order {
            LogOrder::Consume { log, group } => {
                let store = store.clone().into_async();
                let log = block_on(Log::open_in(&store, keyspace.name(), &log))?;
                self.group = Some(block_on(log.open_group(&group))?);
                Ok(vec![0])
            }
            LogOrder::Pop { max } => values(&block_on(self.group()?.pop(max as usize))?),
            LogOrder::Take { max, lasts_ms } => {
                let lasts = Duration::from_millis(lasts_ms);
                self.taken = block_on(self.group()?.take(max as usize, lasts))?;
                values(self.taken.as_ref().map_or(&[], |taken| &taken.entries))
            }
            LogOrder::Ack => {
                let nothing = || Error::invalid("this puppet has taken nothing");
                let taken = self.taken.take().ok_or_else(nothing)?;
                Ok(vec![block_on(self.group()?.ack(&taken))?.into()])
            }
            LogOrder::Work { max, key } => self.work(store, keyspace, max, &key),
            LogOrder::Sequence { log, lease_ms } => {
                let opening = Opening {
                    policy: Policy::BestEffort,
                    lease: Duration::from_millis(lease_ms),
                    ..Opening::default()
                };
                let store = store.clone().into_async();
                let log = Zlog::open_as(&store, keyspace.name(), &log, opening);
                self.sequenced = Some(block_on(log)?);
                Ok(vec![0])
            }
            LogOrder::Place { value } => {
                let data = value.to_le_bytes().to_vec();
                Ok(vec![block_on(self.sequenced()?.append(data))?])
            }
            LogOrder::Skip => Ok(vec![block_on(self.sequenced()?.next_position())?.position]),
        }
    }

    fn work(&self, store: &Tyr, keyspace: &Keyspace, max: u64, key: &str) -> Result<Vec<u64>> {
        let fetched = block_on(self.group()?.fetch(max as usize))?;
        let values = values(&fetched.entries)?;
        if values.is_empty() {
            return Ok(values);
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut transaction = store.clone().into_async().begin();
        transaction.append(&keyspace.clone().into_async(), key, bytes)?;
        fetched.commit_in(&mut transaction)?;
        block_on(transaction.commit())?;
        Ok(values)
    }

    fn group(&self) -> Result<&Group> {
        self.group.as_ref().ok_or_else(|| Error::invalid("this puppet consumes no log yet"))
    }

    fn sequenced(&self) -> Result<&Zlog> {
        self.sequenced.as_ref().ok_or_else(|| Error::invalid("this puppet has no log open"))
    }
}

/// The values of entries.
fn values(entries: &[Entry]) -> Result<Vec<u64>> {
    let value = |entry: &Entry| {
        let bytes = entry.data.as_ref().try_into();
        bytes.map(u64::from_le_bytes).map_err(|_| {
            Error::corrupt(format!("{} bytes at {}", entry.data.len(), entry.position))
        })
    };
    entries.iter().map(value).collect()
}
