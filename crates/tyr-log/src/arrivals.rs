//! Waiting for entries: who is told that something may have been appended looks.
//!
//! The segments that take entries are watched. In a cluster that is being upgraded from a release
//! without watches it is looked every 100 ms.

use std::time::Duration;

use futures_util::future::select_all;
use tyr::{ErrorKind, Result, Watch};

use crate::layout;
use crate::log::Log;

/// How often it is looked where nobody tells.
const LOOK: Duration = Duration::from_millis(100);

/// Tells when something may have been appended; see [`Log::arrivals`].
#[derive(Debug)]
pub struct Arrivals {
    log: Log,
    /// Of each partition that takes entries: the segment, and who tells of it.
    watches: Vec<(u16, u64, Watch)>,
}

impl Log {
    /// Tells when something may have been appended. The first time it does so at once: so whoever
    /// looks after having waited, and waits after having found nothing, misses nothing.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals { log: self.clone(), watches: Vec::new() }
    }
}

impl Arrivals {
    /// Waits until something may have been appended, or the log was sealed, since this was called
    /// before. Dropping the future loses nothing. Of a sealed log it returns at once: look at
    /// [`Log::status`].
    ///
    /// # Errors
    /// `NotFound` when the log was deleted; whatever the store answers.
    pub async fn wait(&mut self) -> Result<()> {
        let description = self.log.describe().await?;
        if description.is_sealed {
            return Ok(());
        }
        let wanted: Vec<(u16, u64)> =
            (0..).zip(&description.rows).map(|(partition, row)| (partition, row.last)).collect();
        self.wait_for(&wanted).await
    }

    /// The same for these segments, of which what is not watched yet is to be looked at, at once.
    pub(crate) async fn wait_for(&mut self, wanted: &[(u16, u64)]) -> Result<()> {
        let shared = &*self.log.shared;
        self.watches.retain(|(partition, segment, _)| wanted.contains(&(*partition, *segment)));
        let mut is_told = true;
        let mut is_new = wanted.is_empty();
        for (partition, segment) in wanted {
            if self.watches.iter().any(|(p, s, _)| (p, s) == (partition, segment)) {
                continue;
            }
            let key = layout::segment_key(&shared.name, *partition, *segment)?;
            match shared.keyspace.watch(key).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => is_told = false,
                watch => {
                    self.watches.push((*partition, *segment, watch?));
                    is_new = true;
                }
            }
        }
        if is_new {
            return Ok(());
        }
        if !is_told {
            blocking::unblock(|| std::thread::sleep(LOOK)).await;
            return Ok(());
        }
        let told = self.watches.iter().map(|(_, _, watch)| Box::pin(watch.changed()));
        select_all(told).await.0.map(drop)
    }
}
