//! Kept snapshots, whichever kind of store it is.

use std::sync::Arc;

use tyr_types::{KeptName, KeptSnapshot, Result};

use super::embedded::EmbeddedView;
use super::remote::RemoteView;
use super::{Backend, View};
use crate::offload::offload;

impl Backend {
    /// Keeps everything as it is now.
    pub async fn keep(&self, name: &KeptName) -> Result<KeptSnapshot> {
        match self {
            Self::Embedded(store) => {
                let (store, name) = (Arc::clone(store), name.clone());
                offload(move || store.keep(&name)).await
            }
            Self::Remote(client) => client.keep(name).await,
        }
    }

    /// All kept snapshots, oldest first.
    pub async fn kept(&self) -> Result<Vec<KeptSnapshot>> {
        match self {
            Self::Embedded(store) => store.kept(),
            Self::Remote(client) => client.kept().await,
        }
    }

    /// Drops a kept snapshot.
    pub async fn drop_kept(&self, name: &KeptName) -> Result<()> {
        match self {
            Self::Embedded(store) => {
                let (store, name) = (Arc::clone(store), name.clone());
                offload(move || store.drop_kept(&name)).await
            }
            Self::Remote(client) => client.drop_kept(name).await,
        }
    }

    /// The store as it was when a snapshot was kept.
    pub async fn kept_view(&self, name: &KeptName) -> Result<View> {
        match self {
            Self::Embedded(store) => Ok(View::Embedded(EmbeddedView::kept(store, name)?)),
            Self::Remote(client) => Ok(View::Remote(RemoteView::kept(client, name).await?)),
        }
    }
}
