//! Another client beside the callers: it holds leases of what they write, or watches it (K2, K5).

use std::time::Duration;

use tyr::{Error, Keyspace, Lease, LeaseOptions, Result, Watch};

/// How long a lease lasts that is not renewed: as long as any may in a guarded keyspace.
const DURATION: Duration = Duration::from_secs(3);

/// What it holds and watches.
pub struct Other {
    keyspace: Keyspace,
    leases: Vec<Lease>,
    watches: Vec<Watch>,
}

impl Other {
    /// Nothing yet.
    pub fn new(keyspace: Keyspace) -> Self {
        Self { keyspace, leases: vec![], watches: vec![] }
    }

    /// Holds leases of these keys from now on.
    pub async fn hold(&mut self, keys: impl Iterator<Item = String>) -> Result<()> {
        for key in keys {
            let options = LeaseOptions::exclusive().duration(DURATION);
            self.leases.push(self.keyspace.lease(key, &options).await?);
        }
        Ok(())
    }

    /// An error unless all leases are held still.
    pub fn are_held(&self) -> Result<()> {
        let lost = self.leases.iter().filter(|lease| !lease.is_held()).count();
        match lost {
            0 => Ok(()),
            lost => Err(Error::unavailable(format!("{lost} leases were not renewed in time"))),
        }
    }

    /// Holds a lease beside others, and gives it back when somebody wants to write.
    pub async fn hold_until_recalled(&self, key: String) -> Result<()> {
        let options = LeaseOptions::shared().duration(DURATION);
        let lease = self.keyspace.lease(key, &options).await?;
        tokio::spawn(async move {
            lease.recalled().await;
            lease.give_back();
        });
        Ok(())
    }

    /// Watches these keys from now on, in this order.
    pub async fn watch(&mut self, keys: impl Iterator<Item = String>) -> Result<()> {
        for key in keys {
            let watch = self.keyspace.watch(key).await?;
            watch.changed().await?;
            self.watches.push(watch);
        }
        Ok(())
    }

    /// Waits until the watch of this number tells something.
    pub async fn changed(&self, number: usize) -> Result<()> {
        self.watches[number].changed().await.map(drop)
    }
}
