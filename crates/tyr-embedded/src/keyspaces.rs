//! The keyspaces of a store: which one a request is for, and whether it may go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};
use tyr_types::KeyspaceInfo;
use tyr_types::{Durability, Error, ErrorKind, KeyspaceId, KeyspaceName, Result, Transaction};

/// A keyspace in use.
#[derive(Debug)]
pub struct KeyspaceEntry {
    info: KeyspaceInfo,
    is_dropped: AtomicBool,
}

impl KeyspaceEntry {
    /// Its number, name and configuration.
    pub fn info(&self) -> &KeyspaceInfo {
        &self.info
    }

    /// Refuses what is meant for a keyspace that is gone.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn check(&self) -> Result<()> {
        if self.is_dropped.load(Ordering::Acquire) {
            return Err(Error::not_found(format!("keyspace {} was dropped", self.info.name)));
        }
        Ok(())
    }
}

/// The keyspaces of a store, by number.
#[derive(Debug, Default)]
pub(crate) struct Keyspaces(RwLock<Entries>);

/// A look at all keyspaces.
#[derive(Debug, Default)]
pub(crate) struct Entries(Vec<Option<Arc<KeyspaceEntry>>>);

impl Entries {
    pub fn get(&self, id: KeyspaceId) -> Option<&Arc<KeyspaceEntry>> {
        self.0.get(id.0 as usize)?.as_ref()
    }

    /// Whether older versions are kept for readers in this keyspace.
    pub fn keeps_versions(&self, id: KeyspaceId) -> bool {
        self.get(id).is_some_and(|entry| entry.info.config.is_multi_versioned)
    }

    /// Whether what is written in this keyspace goes to the log.
    pub fn is_logged(&self, id: KeyspaceId) -> bool {
        self.get(id).is_some_and(|entry| entry.info.config.durability > Durability::Memory)
    }

    /// When a transaction is acknowledged: as the strictest of its keyspaces has it.
    ///
    /// # Errors
    /// `NotFound` when one of its keyspaces is gone.
    pub fn durability(&self, transaction: &Transaction) -> Result<Durability> {
        let mut durability = Durability::Memory;
        let written = transaction.blobs.iter().map(|entry| entry.blob.keyspace);
        for id in written {
            let entry = self.get(id).ok_or_else(|| gone(id))?;
            durability = durability.max(entry.info.config.durability);
        }
        for read in &transaction.reads {
            self.get(read.blob.keyspace).ok_or_else(|| gone(read.blob.keyspace))?;
        }
        Ok(durability)
    }
}

fn gone(id: KeyspaceId) -> Error {
    Error::not_found(format!("keyspace {} was dropped", id.0))
}

impl Keyspaces {
    pub fn new(infos: Vec<KeyspaceInfo>) -> Self {
        let keyspaces = Self::default();
        for info in infos {
            keyspaces.insert(info);
        }
        keyspaces
    }

    pub fn look(&self) -> RwLockReadGuard<'_, Entries> {
        self.0.read()
    }

    pub fn insert(&self, info: KeyspaceInfo) -> Arc<KeyspaceEntry> {
        let entries = &mut self.0.write().0;
        let index = info.id.0 as usize;
        if entries.len() <= index {
            entries.resize(index + 1, None);
        }
        // A second one would let go of the first, which somebody may be working on.
        assert!(entries[index].is_none(), "keyspace {index} is there already");
        let entry = Arc::new(KeyspaceEntry { info, is_dropped: AtomicBool::new(false) });
        entries[index] = Some(Arc::clone(&entry));
        entry
    }

    /// Removes one, if `drop_it` succeeds. Nobody looks at keyspaces meanwhile, so a fold has
    /// either written what it took of this one before it is dropped, or passes it over.
    pub fn remove(&self, id: KeyspaceId, drop_it: impl FnOnce() -> Result<()>) -> Result<()> {
        let entries = &mut self.0.write().0;
        drop_it()?;
        if let Some(entry) = entries.get_mut(id.0 as usize).and_then(Option::take) {
            entry.is_dropped.store(true, Ordering::Release);
        }
        Ok(())
    }

    pub fn find(&self, name: &KeyspaceName) -> Result<Arc<KeyspaceEntry>> {
        let entries = self.look();
        let found = entries.0.iter().flatten().find(|entry| entry.info.name == *name);
        found.cloned().ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("there is no keyspace \"{name}\"; create it first"),
            )
        })
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<KeyspaceInfo> {
        let entries = self.look();
        let mut infos: Vec<_> =
            entries.0.iter().flatten().map(|entry| entry.info.clone()).collect();
        infos.sort_by(|left, right| left.name.cmp(&right.name));
        infos
    }
}
