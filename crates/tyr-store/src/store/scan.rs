//! Listing blobs in key order: the base's, corrected by what is in memory.

use std::collections::BTreeMap;

use tyr_types::{Key, KeyspaceId, Result, Stat, Timestamp};

use super::Store;
use super::read::too_old;

impl Store {
    /// Up to `limit` blobs of a keyspace whose keys begin with `prefix` and come after `after`,
    /// in key order, as of `at`: in use by a reader, or [`Timestamp::MAX`] for each blob as it is
    /// now.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn scan(
        &self,
        keyspace: KeyspaceId,
        prefix: &[u8],
        after: Option<&Key>,
        limit: usize,
        at: Timestamp,
    ) -> Result<Vec<(Key, Stat)>> {
        let mut found = BTreeMap::new();
        let mut after = after.cloned();
        while found.len() < limit {
            // Memory first: a blob that is folded in between is then seen in both, not in none.
            let wanted = limit - found.len();
            let recent = self.recent.dirty_from(keyspace, prefix, after.as_ref(), wanted);
            let from = after.as_ref().map(Key::as_bytes);
            let base = self.base.scan(keyspace, prefix, from, wanted)?;
            // Beyond the last key of a full page, memory or the base has not been asked.
            let ends = [
                base.last().filter(|_| base.len() == wanted).map(|(key, _)| key.clone()),
                recent
                    .last()
                    .filter(|_| recent.len() == wanted)
                    .map(|cell| cell.name().key.clone()),
            ];
            let horizon = ends.into_iter().flatten().min();
            let is_seen = |key: &Key| horizon.as_ref().is_none_or(|horizon| key <= horizon);
            for (key, blob) in base.into_iter().filter(|(key, _)| is_seen(key)) {
                found.insert(key, Some(Stat { size: blob.size, version: blob.version }));
            }
            for cell in recent.iter().filter(|cell| is_seen(&cell.name().key)) {
                let attributes = cell.lock().attributes_at(at);
                let attributes = attributes.ok_or_else(|| too_old(cell.name()))?;
                found.insert(cell.name().key.clone(), attributes.stat());
            }
            found.retain(|_, stat| stat.is_some());
            match horizon {
                Some(horizon) => {
                    debug_assert!(after.as_ref() < Some(&horizon), "the next page lies behind");
                    after = Some(horizon);
                }
                None => break,
            }
        }
        let stats = found.into_iter().filter_map(|(key, stat)| Some((key, stat?)));
        Ok(stats.take(limit).collect())
    }
}
