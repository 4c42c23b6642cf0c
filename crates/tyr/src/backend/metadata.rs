//! Service metadata: kept by the store in this process, or by the monitors of a cluster.

use std::sync::Arc;

use tyr_metadata::{Entry, KeyChange, Path, Transaction};
use tyr_types::Result;

use super::Backend;
use super::embedded;
use super::remote::Client;
use crate::offload::offload;

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
    pub async fn metadata(&self, path: Path) -> Result<Option<Entry>> {
        match self {
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
