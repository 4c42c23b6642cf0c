//! Who watches a key: found by the key itself, and by each of its prefixes that somebody watches.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{BlobName, Bytes, KeyspaceId, WatchTarget};

/// What is watched, by whom. Looking up who watches a key costs as many steps as prefixes of
/// different lengths are watched, however many watch.
#[derive(Clone, Debug)]
pub struct Targets<W> {
    by_target: BTreeMap<WatchTarget, BTreeSet<W>>,
    /// The lengths of prefixes that are watched in a keyspace, and of how many.
    lengths: BTreeMap<KeyspaceId, BTreeMap<usize, usize>>,
}

impl<W> Default for Targets<W> {
    fn default() -> Self {
        Self { by_target: BTreeMap::new(), lengths: BTreeMap::new() }
    }
}

impl<W: Ord + Copy> Targets<W> {
    /// Somebody watches this.
    pub fn insert(&mut self, target: &WatchTarget, watcher: W) {
        let is_new = !self.by_target.contains_key(target);
        self.by_target.entry(target.clone()).or_default().insert(watcher);
        if is_new && !target.is_exact {
            let lengths = self.lengths.entry(target.keyspace).or_default();
            *lengths.entry(target.prefix.len()).or_default() += 1;
        }
    }

    /// Somebody watches this no more.
    pub fn remove(&mut self, target: &WatchTarget, watcher: W) {
        let Some(watchers) = self.by_target.get_mut(target) else { return };
        watchers.remove(&watcher);
        if !watchers.is_empty() {
            return;
        }
        self.by_target.remove(target);
        if let Some(lengths) = self.lengths.get_mut(&target.keyspace).filter(|_| !target.is_exact) {
            let len = target.prefix.len();
            let count = lengths.get_mut(&len).expect("what is watched is counted");
            *count -= 1;
            if *count == 0 {
                lengths.remove(&len);
            }
            if lengths.is_empty() {
                self.lengths.remove(&target.keyspace);
            }
        }
    }

    /// Whether nobody watches anything.
    pub fn is_empty(&self) -> bool {
        self.by_target.is_empty()
    }

    /// Who watches this key.
    pub fn watchers(&self, blob: &BlobName) -> BTreeSet<W> {
        if self.is_empty() {
            return BTreeSet::new();
        }
        let (keyspace, key) = (blob.keyspace, blob.key.as_bytes());
        let target = |prefix: &[u8], is_exact| {
            let prefix = Bytes::copy_from_slice(prefix);
            self.by_target.get(&WatchTarget { keyspace, prefix, is_exact })
        };
        let lengths = self.lengths.get(&keyspace).into_iter().flat_map(BTreeMap::keys);
        let prefixes = lengths.filter_map(|len| target(key.get(..*len)?, false));
        target(key, true).into_iter().chain(prefixes).flatten().copied().collect()
    }

    /// Checks what must hold between two steps.
    ///
    /// # Panics
    /// When it does not.
    pub fn invariants(&self) {
        let mut lengths: BTreeMap<KeyspaceId, BTreeMap<usize, usize>> = BTreeMap::new();
        for (target, watchers) in &self.by_target {
            assert!(!watchers.is_empty(), "what nobody watches is not there");
            if !target.is_exact {
                let of_keyspace = lengths.entry(target.keyspace).or_default();
                *of_keyspace.entry(target.prefix.len()).or_default() += 1;
            }
        }
        assert_eq!(lengths, self.lengths, "lengths of prefixes are counted");
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::Key;

    use super::*;

    fn target(keyspace: u32, prefix: &'static str, is_exact: bool) -> WatchTarget {
        let prefix = Bytes::from_static(prefix.as_bytes());
        WatchTarget { keyspace: KeyspaceId(keyspace), prefix, is_exact }
    }

    fn watchers(targets: &Targets<u8>, keyspace: u32, key: &str) -> Vec<u8> {
        targets.invariants();
        let key = Key::new(key).unwrap();
        targets.watchers(&BlobName { keyspace: KeyspaceId(keyspace), key }).into_iter().collect()
    }

    #[test]
    fn who_watches_a_key_or_what_it_begins_with_is_found() {
        let mut targets = Targets::default();
        let all = [
            target(1, "a/b", true),
            target(1, "a/", false),
            target(1, "", false),
            target(2, "a/b", true),
        ];
        for (watcher, target) in (0..).zip(&all) {
            targets.insert(target, watcher);
        }
        targets.insert(&all[1], 9);
        assert_eq!(watchers(&targets, 1, "a/b"), [0, 1, 2, 9]);
        assert_eq!(watchers(&targets, 1, "a/bc"), [1, 2, 9]);
        assert_eq!(watchers(&targets, 1, "a"), [2]);
        assert_eq!(watchers(&targets, 2, "a/b"), [3]);
        assert_eq!(watchers(&targets, 3, "a/b"), []);
        targets.remove(&all[1], 1);
        targets.remove(&all[2], 2);
        targets.remove(&all[2], 2);
        assert_eq!(watchers(&targets, 1, "a/b"), [0, 9]);
        targets.remove(&all[0], 0);
        targets.remove(&all[1], 9);
        targets.remove(&all[3], 3);
        assert!(targets.is_empty());
        targets.invariants();
    }
}
