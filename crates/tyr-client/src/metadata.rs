//! Service metadata, as the monitors of the cluster keep it (M1).

use tyr_control::Request;
use tyr_metadata::{Entry, KeyChange, Path, Transaction};
use tyr_types::Result;

use super::Client;

impl Client {
    /// What a key holds; `None` when there is no such key.
    ///
    /// # Errors
    /// `PermissionDenied`; `Unavailable` when the monitors do not answer.
    pub async fn metadata(&self, path: Path) -> Result<Option<Entry>> {
        self.control.ask(Request::Get(path)).await?.into_entry()
    }

    /// Entries whose keys begin with `prefix` and come after `after`, in order, at most so many;
    /// and the revision that they are of.
    ///
    /// # Errors
    /// `Unavailable` when the monitors do not answer.
    pub async fn list_metadata(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<(Path, Entry)>, u64)> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.control.ask(Request::List { prefix, after, limit }).await?.into_entries()
    }

    /// Conditions and changes, all or nothing; the revision afterwards.
    ///
    /// # Errors
    /// `Conflict` when a condition does not hold; `PermissionDenied`; `InvalidArgument` beyond the
    /// bounds; `Unavailable` when the monitors do not answer, `TimedOut` when it is not known
    /// whether they did it.
    pub async fn change_metadata(&self, transaction: Transaction) -> Result<u64> {
        self.control.ask(Request::Transact(transaction)).await?.into_revision()
    }

    /// What changed under a prefix after a revision, and up to which revision that is everything;
    /// waits for something.
    ///
    /// # Errors
    /// `SnapshotTooOld` when what changed is not remembered any more: list anew, and ask for what
    /// comes after that revision. `PermissionDenied`.
    pub async fn metadata_changes(
        &self,
        prefix: String,
        after: u64,
    ) -> Result<(Vec<KeyChange>, u64)> {
        self.control.changes(prefix, after).await
    }
}
