//! A watch: what changes under a prefix, told by any monitor from what it has applied.

use tokio::sync::watch;
use tyr_types::Result;

use super::consensus::machine::Committed;
use super::monitor::Monitor;
use tyr_metadata::access::{self, Wish};
use tyr_metadata::{Actor, KeyChange};

/// Changes that are told at once.
const PAGE: usize = 256;

/// Revisions after which a watch is told that nothing happened: else it would fall so far behind
/// that it had to list anew.
const QUIET_REVISIONS: u64 = 256;

/// A watch. Dropping it ends it.
pub struct Watch {
    committed: Committed,
    revisions: watch::Receiver<u64>,
    actor: Actor,
    prefix: String,
    /// Everything up to this revision has been looked at.
    seen: u64,
    /// The revision that was told last; none before the first.
    told: Option<u64>,
}

impl Monitor {
    /// What changes under this prefix in revisions after that one, as far as the actor may see it.
    pub fn watch(&self, actor: Actor, prefix: String, after: u64) -> Watch {
        let committed = self.committed().clone();
        let revisions = committed.revisions();
        Watch { committed, revisions, actor, prefix, seen: after, told: None }
    }
}

impl Watch {
    /// Up to this revision everything was looked at.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What happened since, and up to which revision that is everything. The first answer comes at
    /// once, later ones when there is something to tell.
    ///
    /// # Errors
    /// `SnapshotTooOld` when what happened is not remembered any more: list anew.
    pub async fn next(&mut self) -> Result<(Vec<KeyChange>, u64)> {
        loop {
            self.revisions.borrow_and_update();
            let mut changes = self.look()?;
            {
                let store = self.committed.read();
                changes.retain(|it| {
                    access::is_allowed(&store, &self.actor, it.path.as_str(), Wish::Read)
                });
            }
            let is_due = self.told.is_none_or(|told| self.seen >= told + QUIET_REVISIONS);
            if is_due || !changes.is_empty() {
                self.told = Some(self.seen);
                return Ok((changes, self.seen));
            }
            if self.committed.read().revision() <= self.seen
                && self.revisions.changed().await.is_err()
            {
                return Err(tyr_types::Error::unavailable("the monitor has been closed"));
            }
        }
    }

    fn look(&mut self) -> Result<Vec<KeyChange>> {
        let store = self.committed.read();
        let newest = store.revision();
        let (changes, up_to) = store.history().after(&self.prefix, self.seen, newest, PAGE)?;
        debug_assert!(self.seen <= up_to, "a watch goes on, never back");
        debug_assert!(
            changes.iter().all(|it| self.seen < it.revision && it.revision <= up_to),
            "what is told happened since, and by then"
        );
        self.seen = up_to;
        Ok(changes)
    }
}
