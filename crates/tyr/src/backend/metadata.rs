//! Service metadata: kept by the store in this process, or by the monitors of a cluster.

use std::sync::Arc;
use std::time::Duration;

use tyr_metadata::{Entry, KeyChange, Path, Transaction};
use tyr_runtime::lease_state::LeaseState;
use tyr_types::Result;

use super::Backend;
use super::embedded::{self, EmbeddedPresence};
use super::remote::{Client, RemotePresence};
use crate::offload::offload;

/// A presence. Dropping it ends it.
#[derive(Debug)]
pub(crate) enum Presence {
    Embedded(Arc<EmbeddedPresence>),
    Remote(RemotePresence),
}

impl Presence {
    /// What is known of it.
    pub fn state(&self) -> &LeaseState {
        match self {
            Self::Embedded(presence) => presence.state(),
            Self::Remote(presence) => presence.state(),
        }
    }

    /// Makes a transaction take effect, of which what is put is bound to it.
    pub async fn bind(&self, transaction: Transaction) -> Result<u64> {
        match self {
            Self::Embedded(presence) => {
                let presence = Arc::clone(presence);
                offload(move || presence.bind(&transaction)).await
            }
            Self::Remote(presence) => presence.bind(transaction).await,
        }
    }

    pub async fn end(&self) -> Result<()> {
        match self {
            Self::Embedded(presence) => {
                let presence = Arc::clone(presence);
                offload(move || presence.end()).await
            }
            Self::Remote(presence) => presence.end().await.map(|_| ()),
        }
    }
}

/// A watch of the service metadata.
#[derive(Debug)]
pub(crate) enum MetadataWatch {
    Embedded(embedded::MetadataWatch),
    /// It is asked anew each time, from the revision that was told last.
    Remote {
        client: Arc<Client>,
        prefix: String,
        seen: u64,
    },
}

impl Backend {
    /// Whether the store is a cluster's.
    pub fn is_of_cluster(&self) -> bool {
        match self {
            Self::Embedded(_) => false,
            Self::Remote(_) => true,
        }
    }

    pub async fn metadata(&self, path: Path) -> Result<Option<Entry>> {
        match self {
            Self::Embedded(store) if store.is_metadata_read() => store.metadata(&path),
            Self::Embedded(store) => {
                let store = Arc::clone(store);
                offload(move || store.metadata(&path)).await
            }
            Self::Remote(client) => client.metadata(path).await,
        }
    }

    pub async fn list_metadata(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<(Path, Entry)>, u64)> {
        match self {
            Self::Embedded(store) => {
                let store = Arc::clone(store);
                offload(move || store.list_metadata(&prefix, after.as_deref(), limit)).await
            }
            Self::Remote(client) => client.list_metadata(prefix, after, limit).await,
        }
    }

    pub async fn change_metadata(&self, transaction: Transaction) -> Result<u64> {
        match self {
            Self::Embedded(store) => {
                let store = Arc::clone(store);
                offload(move || store.change_metadata(&transaction)).await
            }
            Self::Remote(client) => client.change_metadata(transaction).await,
        }
    }

    pub async fn presence(&self, ttl: Duration) -> Result<Presence> {
        match self {
            Self::Embedded(store) => {
                let presence = store.presence()?;
                Ok(Presence::Embedded(Arc::new(presence)))
            }
            Self::Remote(client) => client.presence(ttl).await.map(Presence::Remote),
        }
    }

    pub fn watch_metadata(&self, prefix: String, after: u64) -> MetadataWatch {
        match self {
            Self::Embedded(store) => MetadataWatch::Embedded(store.watch_metadata(prefix, after)),
            Self::Remote(client) => {
                MetadataWatch::Remote { client: Arc::clone(client), prefix, seen: after }
            }
        }
    }
}

impl MetadataWatch {
    pub async fn next(&mut self) -> Result<(Vec<KeyChange>, u64)> {
        match self {
            Self::Embedded(watch) => watch.next().await,
            Self::Remote { client, prefix, seen } => {
                let (changes, revision) = client.metadata_changes(prefix.clone(), *seen).await?;
                *seen = revision.max(*seen);
                Ok((changes, revision))
            }
        }
    }
}
