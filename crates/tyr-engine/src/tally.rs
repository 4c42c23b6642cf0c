//! How much of each keyspace counts at this node.
//!
//! A blob counts once in a cluster: at the authority over its first chunk, which knows its size. A
//! keyspace counts its blobs and the sum of their sizes. The tally follows what is applied, change
//! by change; and a scan of the store walks all blobs again and again, so that what it cannot
//! follow (blobs that move to another authority) is right after the next round.
//!
//! ```text
//!   Holdings::apply ──change──► Tally ◄──open, advance── usage scan, a page of keys at a time
//!                                 └── totals ──► gossip, gate, whoever asks for the usage
//! ```
//!
//! A change counts for the round under way, too, if the walk has passed its key already. If it has
//! not, the walk will meet it as it is then; of the page that is being read just now the tally
//! notes which blobs change, and the walk looks at those once more, while nothing is applied.
//!
//! Must not know: limits, and what others count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tyr_protocol::map::ClusterMap;
use tyr_store::store::Store;
use tyr_types::{BlobName, Key, KeyspaceId, KeyspaceUsage, NodeId, Result};

/// Blobs that may change while a page is read; of more the page is read again. A page takes some
/// milliseconds, in which a node applies some hundred transactions.
const TOUCHED_MAX: usize = 4096;

/// What counts at this node, by keyspace.
#[derive(Debug, Default)]
pub struct Tally {
    /// Whether any keyspace is counted.
    is_any: AtomicBool,
    counts: Mutex<BTreeMap<KeyspaceId, Count>>,
    /// Bytes that were uploaded ahead of their transactions to chunks that this node is the
    /// authority of (U2); of all keyspaces.
    staged: Mutex<BTreeMap<KeyspaceId, u64>>,
}

/// What counts of a keyspace.
#[derive(Debug, Default)]
struct Count {
    /// Whether there is a quota that this is compared with.
    is_limited: bool,
    /// As of the last round that ended, and what was applied since; `None` before the first.
    totals: Option<KeyspaceUsage>,
    /// The round under way.
    round: Round,
}

/// How far a walk over the blobs of a keyspace is.
#[derive(Debug, Default)]
struct Round {
    /// The last key that was met.
    walked: Option<Key>,
    /// Of the blobs up to there, as they are now.
    sum: KeyspaceUsage,
    /// Blobs behind there that changed while the next page is read; `None` while none is.
    touched: Option<BTreeSet<Key>>,
}

/// A keyspace that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Which one.
    pub keyspace: KeyspaceId,
    /// Whether it has a quota.
    pub is_limited: bool,
    /// Whether a round over it has ended.
    pub is_counted: bool,
}

impl Tally {
    /// From now on these keyspaces are counted and no others; of each, whether it has a quota.
    pub fn watch(&self, keyspaces: impl IntoIterator<Item = (KeyspaceId, bool)>) {
        let mut counts = self.counts.lock();
        let mut known = std::mem::take(&mut *counts);
        let kept =
            |(id, is_limited)| (id, Count { is_limited, ..known.remove(&id).unwrap_or_default() });
        *counts = keyspaces.into_iter().map(kept).collect();
        self.is_any.store(!counts.is_empty(), Ordering::Release);
    }

    /// Whether any keyspace is counted.
    pub fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// The keyspaces that are counted.
    pub fn watched(&self) -> Vec<Watched> {
        let counts = self.counts.lock();
        let watched = |(id, count): (&KeyspaceId, &Count)| Watched {
            keyspace: *id,
            is_limited: count.is_limited,
            is_counted: count.totals.is_some(),
        };
        counts.iter().map(watched).collect()
    }

    /// A blob that counts here had the one size and now has the other.
    pub fn change(&self, blob: &BlobName, before: Option<u64>, after: Option<u64>) {
        if before == after {
            return;
        }
        let mut counts = self.counts.lock();
        let Some(count) = counts.get_mut(&blob.keyspace) else { return };
        if let Some(totals) = &mut count.totals {
            *totals = totals.changed(before, after);
        }
        let round = &mut count.round;
        if round.walked.as_ref().is_some_and(|walked| blob.key <= *walked) {
            round.sum = round.sum.changed(before, after);
        } else if let Some(touched) = round.touched.as_mut().filter(|it| it.len() <= TOUCHED_MAX) {
            touched.insert(blob.key.clone());
        }
    }

    /// So many bytes were uploaded ahead of their transaction.
    pub fn stage(&self, keyspace: KeyspaceId, len: u64) {
        *self.staged.lock().entry(keyspace).or_default() += len;
    }

    /// So many of those are a blob's now, or were given back.
    pub fn unstage(&self, keyspace: KeyspaceId, len: u64) {
        let mut staged = self.staged.lock();
        if let Some(known) = staged.get_mut(&keyspace) {
            debug_assert!(*known >= len, "what goes was counted when it came");
            *known -= len;
        }
    }

    /// Nothing is here any more: everything is counted anew.
    pub fn restart(&self) {
        for count in self.counts.lock().values_mut() {
            *count = Count { is_limited: count.is_limited, ..Count::default() };
        }
    }

    /// The walk over a keyspace begins anew. What is known of it stands until it ends.
    pub fn begin(&self, keyspace: KeyspaceId) {
        if let Some(count) = self.counts.lock().get_mut(&keyspace) {
            count.round = Round::default();
        }
    }

    /// The next page of a walk is about to be read. Answers how far the walk is: the last key that
    /// it met.
    pub fn open(&self, keyspace: KeyspaceId) -> Option<Key> {
        let mut counts = self.counts.lock();
        let round = &mut counts.get_mut(&keyspace)?.round;
        round.touched = Some(BTreeSet::new());
        round.walked.clone()
    }

    /// The blobs up to `to`, or to the end, that changed since the page was opened; `None` when
    /// they are too many, or the walk has begun anew: then the page has to be read again.
    pub fn touched(&self, keyspace: KeyspaceId, to: Option<&Key>) -> Option<Vec<Key>> {
        let counts = self.counts.lock();
        let touched = counts.get(&keyspace)?.round.touched.as_ref();
        let touched = touched.filter(|touched| touched.len() <= TOUCHED_MAX)?;
        Some(touched.iter().filter(|key| to.is_none_or(|to| *key <= to)).cloned().collect())
    }

    /// The walk went on from `after` to `to` and met this, as it is now; with no `to` it met the
    /// end. Counts for nothing if the walk has begun anew meanwhile.
    pub fn advance(
        &self,
        keyspace: KeyspaceId,
        after: Option<&Key>,
        to: Option<Key>,
        met: KeyspaceUsage,
    ) {
        let mut counts = self.counts.lock();
        let Some(count) = counts.get_mut(&keyspace) else { return };
        if count.round.walked.as_ref() != after {
            return;
        }
        debug_assert!(to.as_ref().is_none_or(|to| after < Some(to)), "a walk goes on in key order");
        count.round.sum = count.round.sum.plus(met);
        count.round.touched = None;
        match to {
            Some(to) => count.round.walked = Some(to),
            None => count.totals = Some(std::mem::take(&mut count.round).sum),
        }
    }

    /// What counts here. Before the first round over a keyspace has ended: what it met so far.
    pub fn totals(&self) -> BTreeMap<KeyspaceId, KeyspaceUsage> {
        let (counts, staged) = (self.counts.lock(), self.staged.lock());
        let all = |id: &KeyspaceId, count: &Count| with_staged(count.known(), staged.get(id));
        counts.iter().map(|(id, count)| (*id, all(id, count))).collect()
    }

    /// The same of one keyspace.
    pub fn of(&self, keyspace: KeyspaceId) -> KeyspaceUsage {
        let known = self.counts.lock().get(&keyspace).map_or_else(Default::default, Count::known);
        with_staged(known, self.staged.lock().get(&keyspace))
    }
}

/// What is used, with what was uploaded ahead.
fn with_staged(usage: KeyspaceUsage, staged: Option<&u64>) -> KeyspaceUsage {
    let bytes = usage.bytes.saturating_add(staged.copied().unwrap_or_default());
    KeyspaceUsage { bytes, ..usage }
}

impl Count {
    fn known(&self) -> KeyspaceUsage {
        self.totals.unwrap_or(self.round.sum)
    }
}

/// Whether the blob counts at this node.
pub fn counts(map: &ClusterMap, node: NodeId, blob: &BlobName) -> bool {
    map.holders(blob, 0).first() == Some(&node)
}

/// The size of a blob whose first chunk is here; `None` when it is not here, or not at all. Leaves
/// memory as it is.
///
/// # Errors
/// `Corrupt` and `Unavailable` as the disk has it.
pub fn size(store: &Store, blob: &BlobName) -> Result<Option<u64>> {
    if let Some(cell) = store.recent().find(blob) {
        let attributes = cell.lock().attributes();
        return Ok(attributes.exists.then_some(attributes.size));
    }
    let known = store.base().attributes(blob)?;
    Ok(known.filter(|known| known.exists).map(|known| known.size))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: KeyspaceId = KeyspaceId(1);

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn blob(text: &str) -> BlobName {
        BlobName { keyspace: ONE, key: key(text) }
    }

    fn totals(blobs: u64, bytes: u64) -> KeyspaceUsage {
        KeyspaceUsage { blobs, bytes, ..KeyspaceUsage::default() }
    }

    fn watched(keyspace: KeyspaceId, is_limited: bool, is_counted: bool) -> Watched {
        Watched { keyspace, is_limited, is_counted }
    }

    #[test]
    fn what_changes_while_a_page_is_read_is_named_and_what_was_passed_is_not() {
        let tally = Tally::default();
        tally.watch([(ONE, false)]);
        assert_eq!(tally.touched(ONE, None), None, "no page is open");
        tally.advance(ONE, None, Some(key("c")), totals(3, 30));
        tally.change(&blob("d"), None, Some(1));
        assert_eq!(tally.open(ONE), Some(key("c")));
        for text in ["b", "x", "d", "e", "d"] {
            tally.change(&blob(text), None, Some(1));
        }
        assert_eq!(tally.touched(ONE, Some(&key("m"))), Some(vec![key("d"), key("e")]));
        assert_eq!(tally.touched(ONE, None), Some(vec![key("d"), key("e"), key("x")]));
        tally.begin(ONE);
        assert_eq!(tally.touched(ONE, None), None, "it begins anew");
        tally.open(ONE);
        for number in 0..=TOUCHED_MAX {
            tally.change(&blob(&format!("{number}")), None, Some(1));
        }
        assert_eq!(tally.touched(ONE, None), None, "these are too many");
    }

    #[test]
    fn a_change_counts_once_whether_the_walk_has_passed_it_or_not() {
        let tally = Tally::default();
        tally.watch([(ONE, true)]);
        tally.advance(ONE, None, Some(key("m")), totals(2, 20));
        tally.change(&blob("a"), Some(10), Some(15));
        tally.change(&blob("z"), None, Some(7));
        assert_eq!(tally.of(ONE), totals(2, 25), "z will be met");
        tally.advance(ONE, Some(&key("m")), None, totals(1, 7));
        assert_eq!(tally.of(ONE), totals(3, 32));
        tally.change(&blob("z"), Some(7), None);
        tally.change(&blob("b"), None, Some(0));
        assert_eq!(tally.of(ONE), totals(3, 25), "at once, when a round has ended");
    }

    #[test]
    fn a_round_replaces_what_was_known() {
        let tally = Tally::default();
        tally.watch([(ONE, true)]);
        tally.advance(ONE, None, None, totals(9, 900));
        tally.advance(ONE, None, Some(key("m")), totals(1, 10));
        assert_eq!(tally.of(ONE), totals(9, 900), "until it has ended");
        tally.advance(ONE, Some(&key("m")), None, totals(1, 10));
        assert_eq!(tally.of(ONE), totals(2, 20));
    }

    #[test]
    fn a_step_of_a_walk_that_began_anew_counts_for_nothing() {
        let tally = Tally::default();
        tally.watch([(ONE, true)]);
        tally.advance(ONE, None, Some(key("m")), totals(1, 10));
        tally.restart();
        tally.advance(ONE, Some(&key("m")), None, totals(5, 50));
        assert_eq!(
            (tally.of(ONE), tally.watched()),
            (totals(0, 0), vec![watched(ONE, true, false)])
        );
    }

    #[test]
    fn only_what_is_watched_is_counted_and_what_stays_watched_is_kept() {
        let tally = Tally::default();
        assert!(!tally.is_any());
        tally.change(&blob("a"), None, Some(1));
        tally.watch([(ONE, true)]);
        tally.advance(ONE, None, None, totals(1, 1));
        tally.watch([(ONE, true), (KeyspaceId(2), false)]);
        let two = watched(KeyspaceId(2), false, false);
        assert_eq!(tally.watched(), [watched(ONE, true, true), two]);
        tally.watch([]);
        assert!(tally.totals().is_empty());
    }

    #[test]
    fn totals_stop_at_nothing() {
        assert_eq!(totals(0, 5).changed(Some(9), None), totals(0, 0));
    }
}
