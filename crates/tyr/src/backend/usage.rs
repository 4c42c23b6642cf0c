//! How much there is in a store, and how much room it has left.

use std::sync::Arc;

use tyr_types::{Result, Usage};

use super::Backend;
use crate::offload::offload;

impl Backend {
    /// How much there is.
    pub async fn usage(&self) -> Result<Usage> {
        match self {
            Self::Embedded(store) => {
                let store = Arc::clone(store);
                offload(move || store.usage()).await
            }
            Self::Remote(client) => client.usage().await,
        }
    }
}
