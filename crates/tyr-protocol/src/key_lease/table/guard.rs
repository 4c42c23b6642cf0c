//! Whom leases keep off in guarded keyspaces, and what they wait for (K2, K7).

use tyr_types::limits::LEASES_WAITING_MAX;
use tyr_types::{BlobName, Key, KeyRange, KeyspaceId, LeaseMode, Leased};

use super::group::{bounds, keys_of};
use super::{Message, Table};

/// A transaction that waits is looked at again with each tick, a read too; one that was not for so
/// long, in microseconds, waits no more.
const WANTED_US: u64 = 300_000;

/// A transaction or a read waits for this (K2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    mode: LeaseMode,
    /// It waits until then, unless it says so again.
    pub until_us: u64,
}

impl Table {
    /// Whether others than this client hold leases of the key, or of its group, that exclude such a
    /// one (K2, K7).
    pub fn is_in_way(&self, client: u64, blob: &BlobName, mode: LeaseMode) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        self.is_key_in_way(client, blob, mode)
            || self
                .group_of(blob)
                .is_some_and(|group| self.is_held_in_way(client, &Leased::Group(group), mode))
    }

    /// Whether others than this client hold leases of the key itself that exclude such a one.
    pub fn is_key_in_way(&self, client: u64, blob: &BlobName, mode: LeaseMode) -> bool {
        self.is_held_in_way(client, &Leased::Key(blob.clone()), mode)
    }

    fn is_held_in_way(&self, client: u64, of: &Leased, mode: LeaseMode) -> bool {
        let Some(entry) = self.entries.get(of) else { return false };
        entry.held.iter().any(|held| held.is_in_way(client, mode))
    }

    /// Whether others than this client hold something to themselves of what is listed (K2, K7).
    pub fn is_listing_in_way(&self, client: u64, keyspace: KeyspaceId, keys: &KeyRange) -> bool {
        !self.alone.is_empty() && self.in_way_of_listing(client, keyspace, keys).next().is_some()
    }

    /// What others than this client hold to themselves of what is listed.
    fn in_way_of_listing<'a>(
        &'a self,
        client: u64,
        keyspace: KeyspaceId,
        keys: &'a KeyRange,
    ) -> impl Iterator<Item = Leased> + 'a {
        let start = BlobName { keyspace, key: Key::bound(&keys.start) };
        // A group begins where its keys do, or the listing begins among them.
        let first = self.group_begun(keyspace, keys).map(Leased::Group);
        let groups = self.held_alone(bounds(Leased::Group, &start, keys)).cloned();
        let first = first.filter(|it| self.alone.contains(it) && it.name().key < start.key);
        let keys = self.held_alone(bounds(Leased::Key, &start, keys)).cloned();
        let all = first.into_iter().chain(groups).chain(keys);
        all.filter(move |of| self.is_held_in_way(client, of, LeaseMode::Shared))
    }

    /// The group among whose keys these begin.
    fn group_begun(&self, keyspace: KeyspaceId, keys: &KeyRange) -> Option<BlobName> {
        let prefix = self.placed.get(&keyspace)?.prefix_of(&keys.start)?;
        Some(BlobName { keyspace, key: Key::bound(prefix) })
    }

    /// The group that all these keys are of, if they are of one.
    pub fn group_of_all(&self, keyspace: KeyspaceId, keys: &KeyRange) -> Option<BlobName> {
        let prefix = self.placed.get(&keyspace)?.group_of(keys)?;
        Some(BlobName { keyspace, key: Key::bound(prefix) })
    }

    /// A transaction or a read of a client waits for the key (K2): who is in its way is told, and
    /// for a while nobody else is given what excludes it.
    pub fn want(
        &mut self,
        now_us: u64,
        (client, mode): (u64, LeaseMode),
        blob: &BlobName,
        said: &mut Vec<(u64, Message)>,
    ) {
        let key = Leased::Key(blob.clone());
        self.note_wanted(now_us, mode, &key);
        let group = self.group_of(blob).map(Leased::Group);
        for of in [Some(key), group].into_iter().flatten() {
            if let Some(entry) = self.entries.get_mut(&of) {
                entry.recall(now_us, |held| held.is_in_way(client, mode), said);
            }
        }
    }

    /// A listing of a client waits for what others hold to themselves of it: they are told, and for
    /// a while nobody is given something of its group, or of what is in its way, alone.
    pub fn want_listing(
        &mut self,
        now_us: u64,
        client: u64,
        (keyspace, keys): (KeyspaceId, &KeyRange),
        said: &mut Vec<(u64, Message)>,
    ) {
        let mode = LeaseMode::Shared;
        let group = self.group_of_all(keyspace, keys).map(Leased::Group);
        if let Some(group) = &group {
            self.note_wanted(now_us, mode, group);
        }
        let in_way: Vec<Leased> = self.in_way_of_listing(client, keyspace, keys).collect();
        for of in in_way {
            if group.is_none() {
                self.note_wanted(now_us, mode, &of);
            }
            if let Some(entry) = self.entries.get_mut(&of) {
                entry.recall(now_us, |held| held.is_in_way(client, mode), said);
            }
        }
    }

    fn note_wanted(&mut self, now_us: u64, mode: LeaseMode, of: &Leased) {
        let until_us = now_us.saturating_add(WANTED_US);
        let is_full = self.wanted.len() >= LEASES_WAITING_MAX;
        match self.wanted.get_mut(of) {
            Some(wanted) => {
                wanted.until_us = until_us;
                if !mode.is_beside(LeaseMode::Shared) {
                    wanted.mode = mode;
                }
            }
            None if !is_full => {
                self.wanted.insert(of.clone(), Wanted { mode, until_us });
            }
            None => {} // Others may come before it.
        }
    }

    /// Nothing waits for this any more but who asks for leases.
    pub fn want_no_more(&mut self, of: &Leased) {
        self.wanted.remove(of);
    }

    /// Whether a transaction or a read waits for what such a lease would exclude.
    pub(super) fn is_wanted(&self, of: &Leased, mode: LeaseMode) -> bool {
        if self.wanted.is_empty() {
            return false;
        }
        let is_wanted =
            |of: &Leased| self.wanted.get(of).is_some_and(|it| !it.mode.is_beside(mode));
        is_wanted(of)
            || match of {
                Leased::Key(blob) => {
                    self.group_of(blob).is_some_and(|group| is_wanted(&Leased::Group(group)))
                }
                Leased::Group(group) => {
                    let (start, is_one) = keys_of(group);
                    let mut keys = self.wanted.range(start..).take_while(|(key, _)| is_one(key));
                    keys.any(|(_, wanted)| !wanted.mode.is_beside(mode))
                }
            }
    }
}
