//! Watches of keys, of a store in this process or a cluster.

use tyr_runtime::watch_state::WatchState;
use tyr_types::{Result, WatchTarget};

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
}
