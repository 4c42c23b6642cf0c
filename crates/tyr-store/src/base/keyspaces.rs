//! Keyspaces: their names, configurations, ends.

use std::collections::BTreeMap;

use bytes::Bytes;
use tyr_types::{
    BlobName, Error, ErrorKind, KeyspaceConfig, KeyspaceId, KeyspaceInfo, KeyspaceName, Result,
};

use super::fold::Fold;
use super::record::{self, BlobEntry, KeyspaceEntry};
use super::types::Totals;
use super::{Base, key};
use crate::index::{Index, IndexBatch, Table};

/// Blobs that [`Base::clear_keyspace`] looks at in one go.
const CLEAR_AT_ONCE: usize = 1024;

/// All keyspaces by number, and the totals of each.
type Loaded = (BTreeMap<KeyspaceId, KeyspaceEntry>, BTreeMap<KeyspaceId, Totals>);

/// Reads all keyspaces.
pub(super) fn load(index: &dyn Index) -> Result<Loaded> {
    let mut keyspaces = BTreeMap::new();
    let mut totals = BTreeMap::new();
    let wrong = |key: &[u8]| {
        let key = key.escape_ascii();
        Error::corrupt(format!("index table meta, key \"{key}\": no keyspace"))
    };
    let mut visit = |key: &[u8], value: &Bytes| {
        let id = key::number(key::KEYSPACE, key).ok_or_else(|| wrong(key))?;
        keyspaces.insert(id, KeyspaceEntry::decode(value).ok_or_else(|| wrong(key))?);
        Ok(true)
    };
    let end = key::behind(key::KEYSPACE);
    index.scan(Table::Meta, key::KEYSPACE, end.as_deref(), &mut visit)?;
    let mut visit = |key: &[u8], value: &Bytes| {
        let id = key::number(key::TOTALS, key).ok_or_else(|| wrong(key))?;
        totals.insert(id, record::decode_totals(value).ok_or_else(|| wrong(key))?);
        Ok(true)
    };
    let end = key::behind(key::TOTALS);
    index.scan(Table::Meta, key::TOTALS, end.as_deref(), &mut visit)?;
    Ok((keyspaces, totals))
}

impl Base {
    /// Puts a keyspace in. What a program of before could not read makes the index one of the
    /// format that has it.
    fn put_entry(&self, batch: &mut IndexBatch, id: KeyspaceId, entry: &KeyspaceEntry) {
        self.raise_format(batch, entry.format());
        batch.put(Table::Meta, key::numbered(key::KEYSPACE, id), entry.encode());
    }

    /// All keyspaces that are not dropped, by number.
    pub fn keyspaces(&self) -> Vec<KeyspaceInfo> {
        let keyspaces = self.keyspaces.read();
        let live = keyspaces.iter().filter(|(_, entry)| !entry.is_dropped);
        let info = |(id, entry): (&KeyspaceId, &KeyspaceEntry)| KeyspaceInfo {
            id: *id,
            name: entry.name.clone(),
            config: entry.config.clone(),
        };
        live.map(info).collect()
    }

    /// A keyspace as its users know it: by name, or by number where no name is known.
    pub(super) fn keyspace_title(&self, id: KeyspaceId) -> String {
        match self.keyspaces.read().get(&id) {
            // There may be a new one of the same name.
            Some(entry) if entry.is_dropped => format!("{} (dropped)", entry.name),
            Some(entry) => entry.name.to_string(),
            None => id.0.to_string(),
        }
    }

    /// A blob as its users know it.
    pub fn blob_title(&self, blob: &BlobName) -> String {
        blob.in_keyspace(self.keyspace_title(blob.keyspace))
    }

    /// The text of an error, with the keyspace of the blob that it is about as its users know it.
    pub(super) fn error_text(&self, error: Error) -> String {
        match error.blob().map(|blob| self.keyspace_title(blob.keyspace)) {
            Some(title) => error.in_keyspace(title).to_string(),
            None => error.to_string(),
        }
    }

    /// How much the base holds of a keyspace.
    pub fn totals(&self, keyspace: KeyspaceId) -> Totals {
        self.totals.lock().get(&keyspace).copied().unwrap_or_default()
    }

    /// Whether the keyspace's large payloads are compressed; `None` when there is no such one.
    pub(super) fn is_compressed(&self, id: KeyspaceId) -> Option<bool> {
        let keyspaces = self.keyspaces.read();
        let entry = keyspaces.get(&id).filter(|entry| !entry.is_dropped)?;
        Some(entry.config.is_compressed)
    }

    /// Makes a keyspace, durably.
    ///
    /// # Errors
    /// `AlreadyExists` when one has this name; `InvalidArgument` for a configuration out of range;
    /// `Unavailable` when the disk refuses.
    pub fn create_keyspace(
        &self,
        name: &KeyspaceName,
        config: &KeyspaceConfig,
    ) -> Result<KeyspaceId> {
        config.validate()?;
        let _alone = self.changing.lock();
        if self.keyspaces().iter().any(|info| info.name == *name) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a keyspace \"{name}\" already"),
            ));
        }
        let next = match self.index.get(Table::Meta, key::NEXT_KEYSPACE)? {
            None => 1,
            Some(value) => record::decode_number(&value)
                .ok_or_else(|| Error::corrupt("index table meta: no next keyspace's number"))?,
        };
        let after = next.checked_add(1).ok_or_else(|| {
            Error::unavailable("all numbers of keyspaces are used; begin a new store")
        })?;
        let id = KeyspaceId(next);
        debug_assert!(!self.keyspaces.read().contains_key(&id), "a number is given once: {id:?}");
        let entry =
            KeyspaceEntry { name: name.clone(), config: config.explicit(), is_dropped: false };
        let mut batch = IndexBatch::new();
        batch.put(Table::Meta, key::NEXT_KEYSPACE.to_vec(), record::encode_number(after));
        self.put_entry(&mut batch, id, &entry);
        self.index.commit(batch)?;
        self.record(self.last_checkpoint())?;
        self.keyspaces.write().insert(id, entry);
        Ok(id)
    }

    /// Takes over a keyspace that got its number elsewhere, durably; nothing changes when it is
    /// here already.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn adopt_keyspace(
        &self,
        id: KeyspaceId,
        name: &KeyspaceName,
        config: &KeyspaceConfig,
    ) -> Result<()> {
        let _alone = self.changing.lock();
        if self.keyspaces.read().contains_key(&id) {
            return Ok(());
        }
        let entry =
            KeyspaceEntry { name: name.clone(), config: config.explicit(), is_dropped: false };
        let mut batch = IndexBatch::new();
        self.put_entry(&mut batch, id, &entry);
        self.index.commit(batch)?;
        self.record(self.last_checkpoint())?;
        self.keyspaces.write().insert(id, entry);
        Ok(())
    }

    /// Removes one blob without a trace, and what is held of it.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged there; `Unavailable` when the disk refuses.
    pub fn forget(&self, blob: &BlobName) -> Result<()> {
        let _alone = self.changing.lock();
        let mut fold = Fold::new(self);
        self.release_all(&mut fold, blob)?;
        let Some((_, entry)) = self.entry(&key::blob(blob), blob)? else { return Ok(()) };
        fold.remove(blob, &entry)?;
        fold.commit()
    }

    /// Drops a keyspace, durably. What it held goes by [`Base::remove_some_dropped`].
    ///
    /// # Errors
    /// `NotFound` when there is no such one; `Unavailable` when the disk refuses.
    pub fn drop_keyspace(&self, id: KeyspaceId) -> Result<()> {
        let _alone = self.changing.lock();
        let found = self.keyspaces.read().get(&id).filter(|entry| !entry.is_dropped).cloned();
        let mut entry =
            found.ok_or_else(|| Error::not_found(format!("there is no keyspace {}", id.0)))?;
        entry.is_dropped = true;
        let mut batch = IndexBatch::new();
        self.put_entry(&mut batch, id, &entry);
        self.index.commit(batch)?;
        self.record(self.last_checkpoint())?;
        self.keyspaces.write().insert(id, entry);
        Ok(())
    }

    /// Removes up to `limit` blobs of dropped keyspaces; answers whether there is more to do.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged there; `Unavailable` when the disk refuses.
    pub fn remove_some_dropped(&self, limit: usize) -> Result<bool> {
        let _alone = self.changing.lock();
        let is_dropped = |entry: &KeyspaceEntry| entry.is_dropped;
        let dropped =
            self.keyspaces.read().iter().find(|(_, entry)| is_dropped(entry)).map(|(id, _)| *id);
        let Some(id) = dropped else { return Ok(false) };
        if self.remove_blobs(id, limit)? || self.release_keyspace(id, limit)? {
            return Ok(true);
        }
        let mut batch = IndexBatch::new();
        batch.remove(Table::Meta, key::numbered(key::KEYSPACE, id));
        batch.remove(Table::Meta, key::numbered(key::TOTALS, id));
        self.index.commit(batch)?;
        self.totals.lock().remove(&id);
        let mut keyspaces = self.keyspaces.write();
        keyspaces.remove(&id);
        Ok(keyspaces.values().any(is_dropped))
    }

    /// Removes everything a keyspace holds. Only while nothing is served from it.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged there; `Unavailable` when the disk refuses.
    pub fn clear_keyspace(&self, id: KeyspaceId) -> Result<()> {
        let _alone = self.changing.lock();
        while self.remove_blobs(id, CLEAR_AT_ONCE)? {}
        while self.release_keyspace(id, CLEAR_AT_ONCE)? {}
        Ok(())
    }

    /// Removes up to `limit` blobs; answers whether there may be more.
    fn remove_blobs(&self, id: KeyspaceId, limit: usize) -> Result<bool> {
        let mut found: Vec<(BlobName, BlobEntry)> = Vec::new();
        let from = key::in_blobs(id, b"");
        let mut visit = |key: &[u8], value: &Bytes| {
            let blob = Self::decode_name(key)?;
            let entry = Self::decode_entry(&blob, value)?;
            found.push((blob, entry));
            Ok(found.len() < limit)
        };
        self.index.scan(Table::Blobs, &from, key::behind(&from).as_deref(), &mut visit)?;
        let mut fold = Fold::new(self);
        for (blob, entry) in &found {
            fold.remove(blob, entry)?;
        }
        fold.commit()?;
        Ok(!found.is_empty() && found.len() >= limit)
    }
}
