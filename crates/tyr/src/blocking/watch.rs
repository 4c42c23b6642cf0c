//! Watches of keys, for threads.

use std::time::Duration;

use tyr_runtime::waiting::{block_on, block_on_within};
use tyr_types::{Bytes, Notice, Notified, Result, WatchEvent};

use super::Keyspace;
use crate::Watch as AsyncWatch;
use crate::key::ToKey;

/// A watch of a key, or of all keys with a prefix: see [`crate::Watch`].
#[derive(Debug)]
pub struct Watch {
    inner: AsyncWatch,
}

impl Watch {
    /// Waits until there is something to tell: see [`crate::Watch::changed`].
    ///
    /// # Errors
    /// As [`crate::Watch::changed`].
    pub fn changed(&self) -> Result<WatchEvent> {
        block_on(self.inner.changed())
    }

    /// The same for so long at most; `None` when nothing came.
    ///
    /// # Errors
    /// As [`crate::Watch::changed`].
    pub fn changed_within(&self, wait: Duration) -> Result<Option<WatchEvent>> {
        block_on_within(self.inner.changed(), wait).transpose()
    }

    /// Acknowledges a notice: see [`crate::Watch::acknowledge`].
    ///
    /// # Errors
    /// As [`crate::Watch::acknowledge`].
    pub fn acknowledge(&self, notice: &Notice, reply: impl Into<Bytes>) -> Result<()> {
        self.inner.acknowledge(notice, reply)
    }
}

impl Keyspace {
    /// Watches a key: see [`crate::Keyspace::watch`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::watch`].
    pub fn watch(&self, key: impl ToKey) -> Result<Watch> {
        let inner = block_on(self.clone().into_async().watch(key))?;
        Ok(Watch { inner })
    }

    /// Watches all keys that begin with `prefix`: see [`crate::Keyspace::watch_prefix`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::watch_prefix`].
    pub fn watch_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Watch> {
        let inner = block_on(self.clone().into_async().watch_prefix(prefix))?;
        Ok(Watch { inner })
    }

    /// Sends a notice to who watches a key: see [`crate::Keyspace::notify`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::notify`].
    pub fn notify(
        &self,
        key: impl ToKey,
        payload: impl Into<Bytes>,
        timeout: Duration,
    ) -> Result<Notified> {
        block_on(self.clone().into_async().notify(key, payload, timeout))
    }
}
