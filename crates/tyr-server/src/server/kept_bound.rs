//! Bounds what a node holds for kept snapshots (V7): beyond it the oldest is dropped, everywhere,
//! and the cluster log names it.

use std::sync::Arc;
use std::time::Duration;

use tyr_control::MetadataClient;
use tyr_protocol::map::Change;
use tyr_store::store::Store;
use tyr_types::ErrorKind;

use crate::driver::Driver;
use crate::remarks::Remarks;

/// How often it is looked at what is held.
const EVERY: Duration = Duration::from_secs(2);

/// What bounds it.
pub(super) struct KeptBound {
    store: Arc<Store>,
    remarks: Arc<Remarks>,
    client: MetadataClient,
    bytes_max: u64,
}

impl KeptBound {
    /// So many bytes may be held where this driver drives.
    pub fn new(driver: &Arc<Driver>, client: MetadataClient, bytes_max: u64) -> Self {
        let (store, remarks) = (driver.store(), Arc::clone(&driver.remarks));
        Self { store, remarks, client, bytes_max }
    }

    /// Looks for as long as the node runs.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look().await;
        }
    }

    /// Drops the oldest kept snapshot if more is held than may be. Until the node has heard of it,
    /// it is asked for again, which does nothing.
    async fn look(&self) {
        let held = self.store.base().kept_bytes();
        let oldest = self.store.base().kept().into_iter().next();
        let Some(oldest) = oldest.filter(|_| held > self.bytes_max) else { return };
        match self.client.propose(Change::DropKept(oldest.name.clone())).await {
            Ok(_) => self.remarks.say(format!(
                "kept snapshot {} was dropped, the oldest: {held} bytes are held for kept \
                 snapshots, and kept_bytes_max is {}",
                oldest.name, self.bytes_max
            )),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::debug!(name = %oldest.name, %error, "it cannot be dropped"),
        }
    }
}
