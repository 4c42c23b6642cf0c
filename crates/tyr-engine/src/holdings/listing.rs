//! Which chunks are here, in order: what the store keeps, and what is still expected.

use std::ops::Bound;

use tyr_protocol::member::{ChunkName, LocalChunk, Store as _};
use tyr_store::recent::Attributes;
use tyr_store::store::chunks::{chunk_name, later};
use tyr_types::{BlobName, Key, KeyspaceId, Timestamp};

use super::Holdings;

/// Chunks that an overlap is looked for in one by one; with more, those that are here are listed.
const LOOKED_UP_MAX: u64 = 64;

/// Names that are listed at a time.
const PAGE: usize = 1024;

impl Holdings {
    /// The chunks of all keyspaces, as [`Holdings::held_in`] tells them of one.
    pub(super) fn all_held(
        &self,
        after: Option<&ChunkName>,
        limit: usize,
        is_kept_wanted: bool,
    ) -> Vec<LocalChunk> {
        let mut all = Vec::new();
        let mut keyspaces: Vec<KeyspaceId> = self.keyspaces.keys().copied().collect();
        keyspaces.sort_unstable();
        for keyspace in keyspaces {
            let after = after
                .filter(|(blob, _)| blob.keyspace == keyspace)
                .or_else(|| after.filter(|(blob, _)| blob.keyspace > keyspace));
            if after.is_some_and(|(blob, _)| blob.keyspace > keyspace) {
                continue;
            }
            all.extend(self.held_in(keyspace, after, limit - all.len(), is_kept_wanted));
            if all.len() >= limit {
                break;
            }
        }
        debug_assert!(
            all.len() <= limit && all.is_sorted_by(|one, next| one.name < next.name),
            "each chunk is named once, in order, and at most {limit} of them: {all:?}"
        );
        all
    }

    /// Chunks of one keyspace, in order, after this one of it; also those of which there is nothing
    /// but what is kept, if they are wanted.
    fn held_in(
        &self,
        keyspace: KeyspaceId,
        after: Option<&ChunkName>,
        limit: usize,
        is_kept_wanted: bool,
    ) -> Vec<LocalChunk> {
        let first_after = after.map(|(blob, _)| &blob.key);
        let later_after = after.map(|(blob, chunk)| blob.key.of_chunk(*chunk));
        let stored = [
            self.store.stored_chunks(keyspace, first_after, limit),
            self.store.stored_chunks(later(keyspace), later_after.as_ref(), limit),
        ];
        let stored = stored.into_iter().flat_map(|chunks| self.note(chunks).unwrap_or_default());
        let held = |(stored, Attributes { exists, version, .. }): (BlobName, Attributes)| {
            chunk_name(&stored).map(|name| LocalChunk { name, version, exists })
        };
        let mut all: Vec<LocalChunk> = stored.filter_map(held).collect();
        let nothing = |name| LocalChunk { name, version: Timestamp::ZERO, exists: false };
        if is_kept_wanted {
            let kept = [
                self.store.kept_chunks(keyspace, first_after, limit),
                self.store.kept_chunks(later(keyspace), later_after.as_ref(), limit),
            ];
            let kept = kept.into_iter().flat_map(|names| self.note(names).unwrap_or_default());
            all.extend(kept.filter_map(|stored| chunk_name(&stored)).map(nothing));
        }
        let lowest = BlobName { keyspace, key: Key::lowest() };
        let from = match after {
            Some(after) => Bound::Excluded(after.clone()),
            None => Bound::Included((lowest, 0)),
        };
        let expected = self.expected.range((from, Bound::Unbounded)).map(|(name, _)| name);
        let expected = expected.take_while(|(blob, _)| blob.keyspace == keyspace).take(limit);
        all.extend(expected.cloned().map(nothing));
        // What is stored comes before what else is known of it.
        all.sort_by(|one, next| one.name.cmp(&next.name));
        all.dedup_by(|next, one| next.name == one.name);
        all.truncate(limit);
        debug_assert!(
            after.is_none_or(|after| all.first().is_none_or(|first| first.name > *after)),
            "a walk over what is here goes on behind {after:?}: {all:?}"
        );
        all
    }

    /// The chunks that have changed after `at`, and those that are expected, if memory can tell.
    pub(super) fn all_above(&self, at: Timestamp) -> Option<Vec<LocalChunk>> {
        let stored = self.store.stored_above(at)?.into_iter();
        let changed = stored.filter_map(|(stored, Attributes { exists, version, .. })| {
            chunk_name(&stored).map(|name| LocalChunk { name, version, exists })
        });
        let expected = self.expected.keys().map(|name| self.local_chunk(name));
        Some(changed.chain(expected).collect())
    }

    /// The chunks of a blob from `first` to `last` of which something is here.
    pub(super) fn chunks_here(&self, blob: &BlobName, first: u64, last: u64) -> Vec<u64> {
        debug_assert!(first <= last, "{first} to {last} are no chunks");
        if last - first < LOOKED_UP_MAX {
            return (first..=last).collect();
        }
        let mut here = Vec::from_iter((first == 0).then_some(0));
        let mut after = blob.key.of_chunk(first.max(1) - 1);
        loop {
            let page = self.store.stored_chunks(later(blob.keyspace), Some(&after), PAGE);
            let page = self.note(page).unwrap_or_default();
            let names = page.iter().filter_map(|(stored, _)| chunk_name(stored));
            here.extend(names.filter(|(of, _)| of == blob).map(|(_, chunk)| chunk));
            match page.last() {
                Some((name, _)) if page.len() == PAGE && here.last() < Some(&last) => {
                    after = name.key.clone();
                }
                Some(_) | None => break,
            }
        }
        here.retain(|chunk| (first..=last).contains(chunk));
        debug_assert!(here.is_sorted_by(|one, next| one < next), "each once, in order: {here:?}");
        here
    }
}
