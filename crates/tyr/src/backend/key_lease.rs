//! Leases of keys and groups, of a store in this process or a cluster.

use std::time::Duration;

use tyr_runtime::lease_state::LeaseState;
use tyr_types::lease::check_duration;
use tyr_types::{LeaseMode, Leased, Result, Scan, ScanPage};

use super::Space;
use super::embedded::EmbeddedLease;
use super::remote::RemoteLease;

/// A lease of a key or a group. Dropping it gives it back.
#[derive(Debug)]
pub(crate) enum KeyLease {
    Embedded(EmbeddedLease),
    Remote(RemoteLease),
}

impl KeyLease {
    /// What is known of it.
    pub fn state(&self) -> &LeaseState {
        match self {
            Self::Embedded(lease) => lease.state(),
            Self::Remote(lease) => lease.state(),
        }
    }
}

impl Space {
    /// A page of one group as it is now, where leases may keep others from looking (K2): who lists
    /// waits for what another holds alone of it. `None` where there are no such leases, or it is of
    /// several groups.
    pub async fn scan_guarded(&self, scan: &Scan) -> Option<Result<ScanPage>> {
        match self {
            Self::Embedded(_) => None,
            Self::Remote(space) => {
                let config = &space.info().config;
                let is_of_one = config.placed_by.group_of(&scan.keys()).is_some();
                if !config.is_guarded || !is_of_one {
                    return None;
                }
                Some(space.scan_newest(scan).await.map_err(|error| self.named(error)))
            }
        }
    }

    /// A lease; `wait` is how long to wait where others are in the way, `None` for not at all.
    pub async fn lease(
        &self,
        of: Leased,
        mode: LeaseMode,
        duration: Duration,
        wait: Option<Duration>,
    ) -> Result<KeyLease> {
        check_duration(duration)?;
        let lease = match self {
            Self::Embedded(space) => match space.lease(of, mode, wait) {
                Ok(awaited) => awaited.await.map(KeyLease::Embedded),
                Err(error) => Err(error),
            },
            Self::Remote(space) => {
                let lease = space.lease(of, mode, duration, wait).await;
                lease.map(KeyLease::Remote)
            }
        };
        lease.map_err(|error| self.named(error))
    }
}
