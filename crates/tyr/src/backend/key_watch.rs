//! Watches of keys, of a store in this process or a cluster.

use std::time::Duration;

use tyr_runtime::watch_state::WatchState;
use tyr_types::{BlobName, Bytes, Error, NoticeId, Notified, Result, WatchTarget};

use super::Space;
use super::embedded::EmbeddedWatch;
use super::remote::RemoteWatch;

/// A watch of keys. Dropping it ends it.
#[derive(Debug)]
pub(crate) enum KeyWatch {
    Embedded(EmbeddedWatch),
    Remote(RemoteWatch),
}

impl KeyWatch {
    /// What there is to tell.
    pub fn state(&self) -> &WatchState {
        match self {
            Self::Embedded(watch) => watch.state(),
            Self::Remote(watch) => watch.state(),
        }
    }

    /// Acknowledges a notice.
    pub fn acknowledge(&self, id: NoticeId, reply: Bytes) {
        match self {
            Self::Embedded(watch) => watch.acknowledge(id, reply),
            Self::Remote(watch) => watch.acknowledge(id, reply),
        }
    }
}

impl Space {
    /// Watches a key of it, or those with a prefix.
    pub async fn watch(&self, target: WatchTarget) -> Result<KeyWatch> {
        let watch = match self {
            Self::Embedded(space) => space.watch(target).map(KeyWatch::Embedded),
            Self::Remote(space) => space.watch(target).await.map(KeyWatch::Remote),
        };
        watch.map_err(|error| self.named(error))
    }

    /// Sends a notice to who watches a key.
    pub async fn notify(
        &self,
        blob: BlobName,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Notified> {
        let notified = match self {
            Self::Embedded(space) => match space.notify(&blob, payload, timeout) {
                Ok(awaited) => awaited.await.unwrap_or_else(|_| Err(closed())),
                Err(error) => Err(error),
            },
            Self::Remote(space) => space.notify(blob, payload, timeout).await,
        };
        notified.map_err(|error| self.named(error))
    }
}

fn closed() -> Error {
    Error::unavailable("the store is closed")
}
