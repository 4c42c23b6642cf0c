//! Watches of keys: who watches is told when something changes (K5).

use tyr_types::{Result, WatchEvent, WatchTarget};

use crate::backend::KeyWatch;
use crate::{Keyspace, ToKey};

/// A watch of a key, or of all keys with a prefix. It goes on until it is dropped.
///
/// What is told is that something has changed, not what it is now: whoever is told looks. Changes
/// that come before it is asked for them are told as one, so that a slow watcher loses nothing but
/// how often. The first event, and the first after each interruption (a node was lost, or moved
/// away what is watched), is [anew](WatchEvent::is_anew): it is to be looked at what is there.
#[derive(Debug)]
pub struct Watch {
    handle: KeyWatch,
}

impl Watch {
    async fn begin(keyspace: &Keyspace, target: WatchTarget) -> Result<Self> {
        let handle = keyspace.as_blocking().space.watch(target).await?;
        Ok(Self { handle })
    }

    /// Waits until there is something to tell. Whoever reads then finds what was changed, or
    /// something later. Dropping the future loses nothing.
    ///
    /// # Errors
    /// `NotFound` when the keyspace was dropped; `PermissionDenied` to who may not read it;
    /// `Unavailable` when there are too many watches, or the store is closed. Nothing comes after.
    pub async fn changed(&self) -> Result<WatchEvent> {
        self.handle.state().next().await
    }
}

impl Keyspace {
    /// Watches a key, whether there is such a blob or not: see [`Watch`].
    ///
    /// # Errors
    /// `Unavailable` when this client watches as much as it may, or the cluster uses a feature
    /// level below 14; `InvalidArgument` for a key out of range.
    pub async fn watch(&self, key: impl ToKey) -> Result<Watch> {
        Watch::begin(self, WatchTarget::key(self.id(), &key.to_key()?)).await
    }

    /// Watches all keys that begin with `prefix`, which may be empty: see [`Watch`]. In a cluster
    /// one node tells of the keys of a group, and all nodes of any others.
    ///
    /// # Errors
    /// As [`Keyspace::watch`]; `InvalidArgument` when the prefix is longer than a key may be.
    pub async fn watch_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Watch> {
        Watch::begin(self, WatchTarget::prefix(self.id(), prefix.as_ref())?).await
    }
}
