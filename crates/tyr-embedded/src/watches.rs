//! Watches of keys among the threads of this process (K5).
//!
//! Whoever watches is told as soon as a transaction is applied, by who applies it: nothing is in
//! between that could be lost, so that only the beginning is told as such.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tyr_protocol::key_watch::Targets;
use tyr_runtime::watch_state::WatchState;
use tyr_types::limits::WATCHES_OF_CLIENT_MAX;
use tyr_types::{
    BlobName, Bytes, Changes, Error, KeyspaceId, NoticeId, Operation, Result, Timestamp,
    Transaction, WatchTarget,
};

use crate::EmbeddedStore;

/// The watches of a store.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// How many there are: who applies a transaction looks at that alone where there are none.
    count: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    targets: Targets<u64>,
    states: BTreeMap<u64, (WatchTarget, WatchState)>,
    begun: u64,
}

/// A watch of keys. It is told of until it is dropped.
#[derive(Debug)]
pub struct EmbeddedWatch {
    store: Arc<EmbeddedStore>,
    watch: u64,
    state: WatchState,
}

impl EmbeddedWatch {
    /// What there is to tell.
    pub fn state(&self) -> &WatchState {
        &self.state
    }

    /// Acknowledges a notice that it has got.
    pub fn acknowledge(&self, id: NoticeId, reply: Bytes) {
        self.store.inner.notices.acknowledge(self.watch, id, reply);
    }
}

impl Drop for EmbeddedWatch {
    fn drop(&mut self) {
        self.store.inner.watches.end(self.watch);
        self.store.inner.notices.end(self.watch, None);
    }
}

impl EmbeddedStore {
    /// Watches a key, or those with a prefix.
    ///
    /// # Errors
    /// `Unavailable` when there are too many.
    pub fn watch(self: &Arc<Self>, target: WatchTarget) -> Result<EmbeddedWatch> {
        let state = WatchState::default();
        let watch = self.inner.watches.begin(target, state.clone())?;
        state.begin();
        Ok(EmbeddedWatch { store: Arc::clone(self), watch, state })
    }
}

impl Watches {
    fn begin(&self, target: WatchTarget, state: WatchState) -> Result<u64> {
        let mut inner = self.inner.lock();
        if inner.states.len() >= WATCHES_OF_CLIENT_MAX {
            return Err(Error::unavailable(
                "this store watches as much as it may; end some of its watches",
            ));
        }
        inner.begun += 1;
        let watch = inner.begun;
        inner.targets.insert(&target, watch);
        inner.states.insert(watch, (target, state));
        self.count.store(inner.states.len(), Ordering::Release);
        Ok(watch)
    }

    fn end(&self, watch: u64) {
        let mut inner = self.inner.lock();
        if let Some((target, _)) = inner.states.remove(&watch) {
            inner.targets.remove(&target, watch);
        }
        self.count.store(inner.states.len(), Ordering::Release);
    }

    /// Who watches this key, and how they are told.
    pub fn watchers(&self, blob: &BlobName) -> Vec<(u64, WatchState)> {
        let inner = self.inner.lock();
        let all = inner.targets.watchers(blob).into_iter();
        all.map(|watch| (watch, inner.states[&watch].1.clone())).collect()
    }

    /// A transaction is applied. Whoever began to watch before it was begun is told: that one's
    /// count is seen, as both take the lock of who applies.
    pub fn tell(&self, transaction: &Transaction, at: Timestamp) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let inner = self.inner.lock();
        for entry in &transaction.blobs {
            if !entry.operations.iter().any(Operation::is_write) {
                continue;
            }
            let mut changes = Changes::default();
            changes.add(at, &entry.blob.key);
            for watch in inner.targets.watchers(&entry.blob) {
                inner.states[&watch].1.change(&changes);
            }
        }
    }

    /// A keyspace is dropped: nothing is told of it any more.
    pub fn drop_keyspace(&self, keyspace: KeyspaceId) {
        let inner = self.inner.lock();
        let error =
            Error::not_found("the keyspace was dropped; look its name up again, or create it anew");
        let of_keyspace = inner.states.values().filter(|(target, _)| target.keyspace == keyspace);
        of_keyspace.for_each(|(_, state)| state.end(&error));
    }

    /// The store is closed.
    pub fn close(&self) {
        let error = Error::unavailable("the store is closed");
        self.inner.lock().states.values().for_each(|(_, state)| state.end(&error));
    }
}
