//! Watches of keys: who watches is told when something changes (K5).

use std::time::Duration;

use tyr_types::notice::{check_notice, check_reply};
use tyr_types::{BlobName, Bytes, Notice, Notified, Result, WatchEvent, WatchTarget};

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

    /// Acknowledges a notice of an event, with a reply for who sent it; see [`Keyspace::notify`].
    /// Once; again changes nothing. Who sent it may have gone.
    ///
    /// # Errors
    /// `InvalidArgument` when the reply is longer than 4 KiB.
    pub fn acknowledge(&self, notice: &Notice, reply: impl Into<Bytes>) -> Result<()> {
        let reply = reply.into();
        check_reply(&reply)?;
        self.handle.acknowledge(notice.id, reply);
        Ok(())
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

    /// Sends a notice to all who watch this key, or what it begins with, when it comes, and says
    /// who has [acknowledged](Watch::acknowledge) it within `timeout` (10 ms to 30 s) and who has
    /// not. It answers as soon as all have. Nothing is stored: who begins to watch later does not
    /// get it.
    ///
    /// A cluster calls the node that the key lies on. While another takes that over the notice
    /// waits, for up to 11 s, until all who watch have registered there; it may then reach somebody
    /// a second time, and whom it has reached is not known when the call fails.
    ///
    /// # Errors
    /// `InvalidArgument` when the payload is longer than 64 KiB or the time out of range;
    /// `PermissionDenied` to who may not write the keyspace; `NotFound` when it was dropped;
    /// `Unavailable` when more than 1,024 watch the key, there are too many notices, no node
    /// answers in time, or the cluster uses a feature level below 17.
    pub async fn notify(
        &self,
        key: impl ToKey,
        payload: impl Into<Bytes>,
        timeout: Duration,
    ) -> Result<Notified> {
        let (key, payload) = (key.to_key()?, payload.into());
        check_notice(&payload, timeout)?;
        let blob = BlobName { keyspace: self.id(), key };
        self.as_blocking().space.notify(blob, payload, timeout).await
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
