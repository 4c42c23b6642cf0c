//! Gives the space of what is dead back to the file system, on a thread of its own: that may take
//! longer than writing did, and no fold waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tyr_store::store::Store;

/// How often it looks whether there is something to give back.
const TICK: Duration = Duration::from_millis(50);

/// Gives back what is dead in this store.
pub(crate) struct Giver(Arc<Store>);

impl Giver {
    /// What is dead in `store` is given back once it runs.
    pub fn new(store: Arc<Store>) -> Self {
        Self(store)
    }

    /// Runs until the node stops.
    pub fn run(&self, is_stopping: &AtomicBool) {
        let is_stopping = || is_stopping.load(Ordering::Acquire);
        while !is_stopping() {
            if let Err(error) = self.0.base().give_all_back(is_stopping) {
                tracing::warn!(%error, "space could not be given back; it is tried again");
            }
            std::thread::sleep(TICK);
        }
    }
}
