//! The store itself: entries in order, and one revision for all of them.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use tyr_types::{Error, ErrorKind, Result};

use super::access::{self, Actor, Rights, Wish};
use super::limits::{ENTRIES_MAX, LIST_BYTES_MAX, LIST_MAX, STORE_BYTES_MAX};
use super::{Condition, Expected, History, KeyChange, Path, Transaction};

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Entry {
    /// The value.
    pub value: Bytes,
    /// The revision in which it came to be, after it was last gone.
    pub created: u64,
    /// The revision of its last change: what [`Expected::Revision`] compares with.
    pub changed: u64,
}

/// What a transaction does to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The store's revision afterwards.
    pub revision: u64,
    /// What each key that changes holds then, `None` when it is gone, in the transaction's order:
    /// the last one of a key counts.
    pub entries: Vec<(Path, Option<Entry>)>,
}

/// The service metadata.
#[derive(Clone, Debug, Default)]
pub struct Store {
    entries: BTreeMap<Path, Entry>,
    revision: u64,
    /// Bytes of all keys and values; at most [`STORE_BYTES_MAX`].
    bytes: usize,
    history: History,
}

impl Store {
    /// An empty store, in revision 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of changes so far; each transaction that changed something is one.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the key holds.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// What changed lately.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The entries of keys that begin with `prefix` and come after `after`, in order; at most
    /// `limit`, and [`LIST_MAX`], and [`LIST_BYTES_MAX`]. Only those that the actor may read.
    pub fn list(
        &self,
        actor: &Actor,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<(Path, Entry)> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            Some(_) | None => Bound::Included(prefix),
        };
        let mut bytes = 0;
        let mut found = Vec::new();
        for (path, entry) in self.entries.range::<str, _>((start, Bound::Unbounded)) {
            let is_full = found.len() >= limit.min(LIST_MAX) || bytes > LIST_BYTES_MAX;
            if is_full || !path.as_str().starts_with(prefix) {
                break;
            }
            if access::is_allowed(self, actor, path.as_str(), Wish::Read) {
                bytes += path.as_str().len() + entry.value.len();
                found.push((path.clone(), entry.clone()));
            }
        }
        found
    }

    /// The keys that begin with `prefix`, in order.
    pub fn paths<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Path> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let paths = self.entries.range::<str, _>(from).map(|(path, _)| path);
        paths.take_while(move |path| path.as_str().starts_with(prefix))
    }

    /// Makes a transaction take effect, or none of it. Answers the store's revision, which is a
    /// new one if anything changed.
    ///
    /// # Errors
    /// As [`Store::plan`].
    pub fn apply(&mut self, actor: &Actor, transaction: &Transaction) -> Result<u64> {
        let planned = self.plan(actor, transaction)?;
        Ok(self.install(planned))
    }

    /// What a transaction would do: for who writes that down before it takes effect.
    ///
    /// # Errors
    /// `Conflict` when a condition does not hold; `PermissionDenied`; `InvalidArgument` when it is
    /// beyond the bounds; `QuotaExceeded` when the store is full.
    pub fn plan(&self, actor: &Actor, transaction: &Transaction) -> Result<Planned> {
        self.check(actor, transaction)?;
        let revision = self.revision + 1;
        let mut entries: Vec<(Path, Option<Entry>)> = Vec::new();
        for alteration in &transaction.alterations {
            let path = alteration.path();
            let own = entries.iter().rev().find(|(changed, _)| changed == path);
            let before = match own {
                Some((_, entry)) => entry.as_ref(),
                None => self.entries.get(path),
            };
            let after = alteration.value().map(|value| Entry {
                value: value.clone(),
                created: before.map_or(revision, |entry| entry.created),
                changed: revision,
            });
            if before.is_some() || after.is_some() {
                entries.push((path.clone(), after));
            }
        }
        Ok(Planned { revision: self.revision + u64::from(!entries.is_empty()), entries })
    }

    /// Makes what was planned take effect; the store's revision. Nothing may have come between.
    pub fn install(&mut self, planned: Planned) -> u64 {
        let Planned { revision, entries } = planned;
        let is_next = revision == self.revision + u64::from(!entries.is_empty());
        assert!(is_next, "planned as {revision}, but this is {} already", self.revision);
        for (path, entry) in entries {
            let value = entry.as_ref().map(|entry| entry.value.clone());
            self.bytes += entry.as_ref().map_or(0, |entry| path.as_str().len() + entry.value.len());
            let former = match entry {
                Some(entry) => self.entries.insert(path.clone(), entry),
                None => self.entries.remove(&path),
            };
            self.bytes -= former.map_or(0, |former| path.as_str().len() + former.value.len());
            self.history.push(KeyChange { revision, path, value });
        }
        self.revision = revision;
        revision
    }

    /// Everything that a transaction is refused for, before anything is changed.
    fn check(&self, actor: &Actor, transaction: &Transaction) -> Result<()> {
        transaction.check()?;
        for Condition { path, .. } in &transaction.conditions {
            access::check(self, actor, path.as_str(), Wish::Read)?;
        }
        for alteration in &transaction.alterations {
            access::check(self, actor, alteration.path().as_str(), Wish::Write)?;
            let is_rights = alteration.path().as_str().starts_with(access::PREFIX);
            if let (true, Some(value)) = (is_rights, alteration.value()) {
                Rights::parse(value)?;
            }
        }
        for condition in &transaction.conditions {
            self.check_condition(condition)?;
        }
        self.check_room(transaction)
    }

    fn check_condition(&self, condition: &Condition) -> Result<()> {
        let found = self.entries.get(&condition.path).map(|entry| entry.changed);
        let is_met = match condition.expected {
            Expected::Revision(revision) => found == Some(revision),
            Expected::Absent => found.is_none(),
            Expected::Present => found.is_some(),
        };
        if is_met {
            return Ok(());
        }
        let found = match found {
            Some(revision) => format!("it was changed in revision {revision}"),
            None => "it is not there".to_owned(),
        };
        let text = format!("{}: {:?} is expected, {found}", condition.path, condition.expected);
        Err(Error::conflict(text))
    }

    /// Whether a transaction would not make the store too large.
    pub fn has_room_for(&self, transaction: &Transaction) -> bool {
        self.check_room(transaction).is_ok()
    }

    /// Counts as if nothing that is put replaced anything: a store is as good as full before it is.
    fn check_room(&self, transaction: &Transaction) -> Result<()> {
        let puts = transaction.alterations.iter().filter(|it| it.value().is_some()).count();
        if puts == 0 {
            return Ok(());
        }
        let bytes = self.bytes + transaction.bytes();
        if bytes > STORE_BYTES_MAX || self.entries.len() + puts > ENTRIES_MAX {
            return Err(Error::new(
                ErrorKind::QuotaExceeded,
                format!(
                    "the service metadata is full ({} keys, {} bytes; at most {ENTRIES_MAX} and \
                     {STORE_BYTES_MAX}); delete keys that nobody needs",
                    self.entries.len(),
                    self.bytes
                ),
            ));
        }
        Ok(())
    }

    /// All entries, in order of their keys.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (&Path, &Entry)> {
        self.entries.iter()
    }

    /// The store in this revision with these entries, as it was written down; it remembers nothing
    /// of how it came to be.
    ///
    /// # Errors
    /// `Corrupt` when they are not those of one store.
    pub fn restore(revision: u64, entries: Vec<(Path, Entry)>) -> Result<Self> {
        let is_in_order = entries.is_sorted_by(|left, right| left.0 < right.0);
        let is_sound = |entry: &Entry| entry.created <= entry.changed && entry.changed <= revision;
        if !is_in_order || !entries.iter().all(|(_, entry)| is_sound(entry)) {
            return Err(Error::corrupt("service metadata: its entries do not fit together"));
        }
        let bytes = entries.iter().map(|(path, it)| path.as_str().len() + it.value.len()).sum();
        let entries = entries.into_iter().collect();
        Ok(Self { entries, revision, bytes, history: History::since(revision) })
    }

    /// Panics unless what must hold holds.
    pub fn invariants(&self) {
        let bytes: usize =
            self.entries.iter().map(|(path, it)| path.as_str().len() + it.value.len()).sum();
        assert_eq!(bytes, self.bytes, "bytes are counted");
        assert!(self.bytes <= STORE_BYTES_MAX, "the store is bounded");
        assert!(self.entries.len() <= ENTRIES_MAX, "keys are bounded");
        for entry in self.entries.values() {
            assert!(entry.created <= entry.changed, "a key is created before it changes");
            assert!(entry.changed <= self.revision, "no key is of a revision to come");
        }
        assert!(self.history.floor() <= self.revision, "nothing to come is forgotten");
        self.history.invariants();
    }
}

impl PartialEq for Store {
    /// Whether both hold the same: what they remember of how it came to be does not count.
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision && self.entries == other.entries
    }
}
