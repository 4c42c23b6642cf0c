//! A group and its keys, as far as a lease of one is in the way of one of the other (K7).
//!
//! ```text
//!   a lease of …    is kept off by what is held of …    and by who waits before it for …
//!   a key           the key, its group                  the key, its group
//!   a group         the group, each of its keys         the group, each of its keys
//! ```
//!
//! Only what the mode excludes counts. What a group has to know of its keys is counted beside them:
//! nothing here goes over all leases.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use tyr_types::{BlobName, Key, KeyRange, LeaseMode, Leased};

use super::Table;

/// Those who wait, by their places in line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    all: BTreeSet<u64>,
    exclusive: BTreeSet<u64>,
}

impl Line {
    fn add(&mut self, mode: LeaseMode, arrival: u64) {
        self.all.insert(arrival);
        if mode == LeaseMode::Exclusive {
            self.exclusive.insert(arrival);
        }
    }

    fn remove(&mut self, arrival: u64) {
        self.all.remove(&arrival);
        self.exclusive.remove(&arrival);
    }

    /// The place of the first who waits for what a lease in this mode excludes.
    fn first_beside(&self, mode: LeaseMode) -> Option<u64> {
        match mode {
            LeaseMode::Shared => self.exclusive.first().copied(),
            LeaseMode::Exclusive => self.all.first().copied(),
        }
    }
}

/// What there is of a group and its keys together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Together {
    /// Leases of its keys that are held.
    held: usize,
    /// Who waits for one of its keys.
    of_keys: Line,
    /// Who waits for all of them.
    of_all: Line,
    /// When those were last told who hold keys of it, for the first in line.
    pub recalled_us: Option<u64>,
}

impl Together {
    fn is_empty(&self) -> bool {
        self.held == 0 && self.of_keys.all.is_empty() && self.of_all.all.is_empty()
    }

    fn line_of(&mut self, of: &Leased) -> &mut Line {
        match of {
            Leased::Key(_) => &mut self.of_keys,
            Leased::Group(_) => &mut self.of_all,
        }
    }
}

/// The names of keys, or groups, from there to there.
pub(super) fn bounds(
    kind: fn(BlobName) -> Leased,
    like: &BlobName,
    keys: &KeyRange,
) -> (Leased, Option<Leased>) {
    let name = |key: &[u8]| kind(BlobName { key: Key::bound(key), ..like.clone() });
    (name(&keys.start), keys.end.as_ref().map(|end| name(end)))
}

/// Where the keys of a group begin, in order, and whether something is one of them.
pub(super) fn keys_of(group: &BlobName) -> (Leased, impl Fn(&Leased) -> bool + use<>) {
    let of = Leased::Group(group.clone());
    let is_one = move |it: &Leased| matches!(it, Leased::Key(key) if of.contains(key));
    (Leased::Key(group.clone()), is_one)
}

impl Table {
    /// The group that a key is of, if the keyspace has groups.
    pub(super) fn group_of(&self, blob: &BlobName) -> Option<BlobName> {
        let prefix = self.placed.get(&blob.keyspace)?.prefix_of(blob.key.as_bytes())?;
        Some(BlobName { keyspace: blob.keyspace, key: Key::bound(prefix) })
    }

    /// The group that this is, or is of.
    fn group_around(&self, of: &Leased) -> Option<BlobName> {
        match of {
            Leased::Key(blob) => self.group_of(blob),
            Leased::Group(group) => Some(group.clone()),
        }
    }

    /// Whether nobody holds what such a lease would exclude.
    pub(super) fn is_free(&self, of: &Leased, mode: LeaseMode) -> bool {
        let is_free = |of: &Leased| self.entries.get(of).is_none_or(|it| it.is_free_for(mode));
        is_free(of)
            && match of {
                Leased::Key(blob) => {
                    self.group_of(blob).is_none_or(|group| is_free(&Leased::Group(group)))
                }
                Leased::Group(group) => match mode {
                    LeaseMode::Shared => self.held_alone_in(group).next().is_none(),
                    LeaseMode::Exclusive => {
                        self.groups.get(group).is_none_or(|together| together.held == 0)
                    }
                },
            }
    }

    /// Whether somebody who came before this place in line waits for what such a lease would
    /// exclude: of a key for its group, of a group for one of its keys.
    pub(super) fn is_behind(&self, of: &Leased, mode: LeaseMode, arrival: u64) -> bool {
        let group = self.group_around(of);
        let Some(together) = group.and_then(|group| self.groups.get(&group)) else { return false };
        let others = match of {
            Leased::Key(_) => &together.of_all,
            Leased::Group(_) => &together.of_keys,
        };
        others.first_beside(mode).is_some_and(|first| first < arrival)
    }

    /// The keys of a group that are held by one alone.
    pub(super) fn held_alone_in<'a>(
        &'a self,
        group: &BlobName,
    ) -> impl Iterator<Item = &'a Leased> + use<'a> {
        let (start, is_one) = keys_of(group);
        self.alone.range(start..).take_while(move |it| is_one(it))
    }

    /// Those from there to there that are held by one alone.
    pub(super) fn held_alone<'a>(
        &'a self,
        (start, end): (Leased, Option<Leased>),
    ) -> impl Iterator<Item = &'a Leased> + use<'a> {
        let keyspace = start.keyspace();
        let is_group = matches!(start, Leased::Group(_));
        let is_like = move |it: &Leased| {
            it.keyspace() == keyspace && is_group == matches!(it, Leased::Group(_))
        };
        let from = self.alone.range(start..);
        from.take_while(move |it| is_like(it) && end.as_ref().is_none_or(|end| *it < end))
    }

    /// Those who wait for keys of the group, each key once.
    pub(super) fn contended_in(&self, group: &BlobName) -> Vec<Leased> {
        let (start, is_one) = keys_of(group);
        self.contended.range(start..).take_while(|it| is_one(it)).cloned().collect()
    }

    /// Notes something of this for its group.
    fn note(&mut self, of: &Leased, act: impl FnOnce(&mut Together)) {
        let Some(group) = self.group_around(of) else { return };
        let together = self.groups.entry(group.clone()).or_default();
        act(together);
        if together.is_empty() {
            self.groups.remove(&group);
        }
    }

    /// It is held from now on.
    pub(super) fn note_held(&mut self, of: &Leased, mode: LeaseMode) {
        if mode == LeaseMode::Exclusive {
            self.alone.insert(of.clone());
        }
        if let Leased::Key(_) = of {
            self.note(of, |together| together.held += 1);
        }
    }

    /// It is held no more.
    pub(super) fn note_given_back(&mut self, of: &Leased, mode: LeaseMode) {
        if mode == LeaseMode::Exclusive {
            self.alone.remove(of);
        }
        if let Leased::Key(_) = of {
            self.note(of, |together| together.held -= 1);
        }
    }

    /// Somebody waits for it.
    pub(super) fn note_waiting(&mut self, of: &Leased, mode: LeaseMode, arrival: u64) {
        self.note(of, |together| together.line_of(of).add(mode, arrival));
    }

    /// Somebody waits for it no more, or has it.
    pub(super) fn note_waited(&mut self, of: &Leased, arrival: u64) {
        self.note(of, |together| {
            together.line_of(of).remove(arrival);
            together.recalled_us = None; // Another is the first in line.
        });
    }

    /// Checks what is known of groups against what there is.
    pub(super) fn check_groups(&self) {
        let mut expected = Self { placed: self.placed.clone(), ..Self::default() };
        for (of, entry) in &self.entries {
            entry.held.iter().for_each(|held| expected.note_held(of, held.mode));
            let waiting = entry.waiting.iter();
            waiting.for_each(|it| expected.note_waiting(of, it.mode, it.arrival));
        }
        assert_eq!(self.alone, expected.alone, "who is alone is known");
        assert_eq!(self.groups.len(), expected.groups.len(), "a group is known for what is in it");
        for (group, together) in &expected.groups {
            let recalled_us = self.groups.get(group).and_then(|it| it.recalled_us);
            let together = Together { recalled_us, ..together.clone() };
            assert_eq!(self.groups.get(group), Some(&together), "K7: {group} knows its keys");
        }
        let all = self.entries.iter();
        let held = |of: &Leased| self.entries.get(of).is_some_and(|it| !it.held.is_empty());
        for (of, entry) in all.filter(|(_, entry)| !entry.held.is_empty()) {
            let Leased::Key(blob) = of else { continue };
            let Some(group) = self.group_of(blob).map(Leased::Group) else { continue };
            let is_beside = |mode| self.entries[&group].is_free_for(mode);
            let are_beside = || entry.held.iter().all(|it| is_beside(it.mode));
            assert!(!held(&group) || are_beside(), "K7: {of} and {group} exclude each other");
        }
    }
}
