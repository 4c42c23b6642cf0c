//! That a program is there, and what goes when it is not any more.

use std::time::Duration;

use tyr_types::{Bytes, Result};

use crate::backend::{Backend, Presence as Inner};
use crate::metadata::{Path, Transaction};

/// That this program is there: what is put by it into the service metadata goes when it is over,
/// unless somebody has changed it since (M5). Dropping it ends it.
///
/// On a cluster it is renewed in the background, and is over when the monitors have heard nothing
/// of it for its time and a tenth: so what a program has bound goes when the program dies, stands
/// still or is cut off, and never while its renewals are answered. In a directory it is over when
/// it is dropped, or at the latest when the directory is opened again.
#[derive(Debug)]
pub struct Presence {
    inner: Inner,
}

impl Presence {
    pub(crate) async fn begin(backend: &Backend, ttl: Duration) -> Result<Self> {
        Ok(Self { inner: backend.presence(ttl).await? })
    }

    /// Gives a key this value, whether it was there or not, for as long as this program is there.
    ///
    /// # Errors
    /// As [`Presence::transact`].
    pub async fn put(&self, path: &str, value: impl Into<Bytes>) -> Result<u64> {
        self.transact(Transaction::new().put(Path::new(path)?, value)).await
    }

    /// Conditions and changes, all or nothing, of which what is put is bound to this; the revision
    /// in which they took effect. Of programs that put a key on condition that it is absent, one
    /// has it while it is there.
    ///
    /// # Errors
    /// As [`Metadata::transact`](crate::metadata::Metadata::transact); `InvalidArgument` for keys
    /// of more than 481 bytes; `NotFound` when this is over; `QuotaExceeded` when 16,384 are bound.
    pub async fn transact(&self, transaction: Transaction) -> Result<u64> {
        self.inner.bind(transaction).await
    }

    /// Whether it is there, as far as this process knows: it counts its time from when it asked,
    /// and what is bound is there for longer.
    pub fn is_there(&self) -> bool {
        self.inner.state().is_held()
    }

    /// Waits until it is over: nobody answered in time. Waiting does not keep it: the future is
    /// ready also when it is ended.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let state = self.inner.state().clone();
        async move { state.lost().await }
    }

    /// Ends it: what is bound to it is gone when this returns.
    ///
    /// # Errors
    /// `Unavailable` when the monitors, or the disk, do not answer: it goes in its time, or when
    /// the directory is opened again.
    pub async fn end(self) -> Result<()> {
        self.inner.end().await
    }
}
