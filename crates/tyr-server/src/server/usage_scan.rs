//! Counts again and again what of each keyspace counts at this node.
//!
//! It walks the keys of one keyspace after the other, a page at a time, on a thread of its own,
//! since it may wait for the disk; the engine goes on meanwhile. What changed while a page was read
//! is looked at once more while the engine stands still, so that no change is missed or counted
//! twice.
//!
//! There are two walks, each with rounds of its own: keyspaces with a quota are walked again after
//! a rest of four times the round, all others after one of fifty. What a round is for is that who
//! counts what may change: then both begin at once. Between rounds the tally follows each change.
//!
//! Must not know: limits, and what is done with the totals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_protocol::map::ClusterMap;
use tyr_store::store::Store;
use tyr_types::{BlobName, Epoch, Key, KeyspaceId, KeyspaceUsage, NodeId, Result};

use crate::driver::Driver;
use crate::quota::{Counted, CountedAt, Quotas};
use tyr_engine::tally::{self, Tally, Watched};

/// How long it waits between two pages.
const TICK: Duration = Duration::from_millis(50);

/// While nothing is walked it looks for a new map every so many ticks.
const TICKS_PER_LOOK: u32 = 10;

/// Blobs that are met at a time: some five thousand a second.
const PAGE: usize = 256;

/// After a failure of the disk it rests for so long.
const REST_FAILED: Duration = Duration::from_secs(10);

/// How long a walk rests between two rounds.
#[derive(Clone, Copy, Debug)]
struct Rest {
    at_least: Duration,
    /// So many times as long as the round before.
    factor: u32,
}

/// Of keyspaces with a quota.
const REST_LIMITED: Rest = Rest { at_least: Duration::from_secs(1), factor: 4 };

/// Of all others: a round is a hundredth of the work of what they hold, and less.
const REST_OTHERS: Rest = Rest { at_least: Duration::from_secs(600), factor: 50 };

const _: () = assert!(PAGE > 0 && REST_LIMITED.factor <= REST_OTHERS.factor);
const _: () = assert!(TICK.as_millis() < REST_LIMITED.at_least.as_millis());
const _: () = assert!(REST_LIMITED.at_least.as_millis() < REST_FAILED.as_millis());

/// Counts what counts at a node.
pub(super) struct UsageScan {
    driver: Arc<Driver>,
    walks: [Walk; 2],
}

/// A walk over all keyspaces of one kind.
struct Walk {
    node: NodeId,
    store: Arc<Store>,
    tally: Arc<Tally>,
    counted: CountedAt,
    /// Whether it is the one over keyspaces with a quota.
    is_limited: bool,
    rest: Rest,
    /// Since when who holds what is as it is.
    moved: Epoch,
    /// Keyspaces that are still to be walked in this round; the last is walked now.
    left: Vec<KeyspaceId>,
    round: Option<Round>,
    /// After a failure: nothing is walked before.
    idle_until: Option<Instant>,
}

/// When the round began, or the rest ends.
#[derive(Clone, Copy)]
enum Round {
    Since(Instant),
    NotBefore(Instant),
}

/// A page that was read.
struct Page {
    keyspace: KeyspaceId,
    after: Option<Key>,
    /// The last key of it; `None` when it is the last page.
    to: Option<Key>,
    /// The sizes of the blobs in it that count here.
    sizes: BTreeMap<Key, Option<u64>>,
}

impl UsageScan {
    /// Of what this node holds; the quotas are told when it was counted.
    pub fn new(driver: Arc<Driver>, quotas: &Quotas) -> Self {
        let counted = quotas.counted_at();
        let walks = driver.look(|engine| {
            let node = engine.member().node();
            let holdings = engine.holdings();
            let walk = |is_limited| {
                let (store, tally) = (Arc::clone(holdings.store()), Arc::clone(holdings.tally()));
                Walk::new(node, store, tally, Arc::clone(counted), is_limited)
            };
            [walk(true), walk(false)]
        });
        Self { driver, walks }
    }

    /// Runs until the node stops.
    pub fn run(mut self, is_stopping: &AtomicBool) {
        let mut ticks = 0u32;
        while !is_stopping.load(Ordering::Acquire) {
            let is_due = ticks.is_multiple_of(TICKS_PER_LOOK);
            if (is_due || self.walks.iter().any(Walk::is_under_way))
                && let Some(map) = self.driver.look(|engine| engine.member().map().cloned())
            {
                for walk in &mut self.walks {
                    if let Some(page) = walk.read(&map, Instant::now()) {
                        // Nothing is applied meanwhile.
                        self.driver.look(|_| walk.close(&map, page, Instant::now()));
                    }
                }
            }
            ticks = ticks.wrapping_add(1);
            std::thread::sleep(TICK);
        }
    }
}

impl Walk {
    fn new(
        node: NodeId,
        store: Arc<Store>,
        tally: Arc<Tally>,
        counted: CountedAt,
        is_limited: bool,
    ) -> Self {
        let rest = if is_limited { REST_LIMITED } else { REST_OTHERS };
        let (moved, left) = (Epoch(0), Vec::new());
        let (round, idle_until) = (None, None);
        Self { node, store, tally, counted, is_limited, rest, moved, left, round, idle_until }
    }

    fn is_under_way(&self) -> bool {
        !self.left.is_empty()
    }

    /// Reads the next page, if it is time for one.
    fn read(&mut self, map: &ClusterMap, now: Instant) -> Option<Page> {
        if self.idle_until.is_some_and(|until| now < until) {
            return None;
        }
        self.plan(map, now);
        let keyspace = self.left.last().copied()?;
        match self.meet(map, keyspace) {
            Ok(page) => Some(page),
            Err(error) => {
                self.give_up(&error, keyspace, now);
                None
            }
        }
    }

    fn give_up(&mut self, error: &tyr_types::Error, keyspace: KeyspaceId, now: Instant) {
        tracing::warn!(%error, keyspace = keyspace.0, "blobs are not counted for a moment");
        self.idle_until = Some(now + REST_FAILED);
    }

    /// Sees what is to be walked.
    fn plan(&mut self, map: &ClusterMap, now: Instant) {
        let mut watched = self.tally.watched();
        self.counted.lock().retain(|id, _| watched.iter().any(|it| it.keyspace == *id));
        watched.retain(|it| it.is_limited == self.is_limited);
        self.left.retain(|left| watched.iter().any(|it| it.keyspace == *left));
        let is_resting = matches!(self.round, Some(Round::NotBefore(end)) if now < end);
        let has_moved = self.moved != map.moved;
        if has_moved || self.left.is_empty() && !is_resting {
            self.left = watched.iter().map(|it| it.keyspace).collect();
            self.left.iter().for_each(|keyspace| self.tally.begin(*keyspace));
            (self.moved, self.round) = (map.moved, Some(Round::Since(now)));
            return;
        }
        // What is new, or was cleared, does not wait for the next round.
        let is_new = |it: &&Watched| !it.is_counted && !self.left.contains(&it.keyspace);
        let new: Vec<KeyspaceId> = watched.iter().filter(is_new).map(|it| it.keyspace).collect();
        if is_resting && !new.is_empty() {
            self.round = Some(Round::Since(now));
        }
        self.left.extend(new);
        debug_assert!(self.left.len() <= watched.len(), "each keyspace is walked once in a round");
        debug_assert!(self.left.is_empty() || self.round.is_some(), "who walks is in a round");
    }

    /// Meets the next page of a keyspace.
    fn meet(&self, map: &ClusterMap, keyspace: KeyspaceId) -> Result<Page> {
        let after = self.tally.open(keyspace);
        let keys = self.store.keys(keyspace, b"", after.as_ref(), PAGE)?;
        debug_assert!(keys.len() <= PAGE, "a page is bounded");
        debug_assert!(keys.is_sorted(), "keys come in order");
        debug_assert!(after.as_ref().is_none_or(|after| keys.iter().all(|key| key > after)));
        let to = (keys.len() == PAGE).then(|| keys.last().cloned()).flatten();
        let mut page = Page { keyspace, after, to, sizes: BTreeMap::new() };
        keys.into_iter().try_for_each(|key| self.look(map, &mut page, key))?;
        Ok(page)
    }

    /// Looks at a blob of a page, perhaps once more.
    fn look(&self, map: &ClusterMap, page: &mut Page, key: Key) -> Result<()> {
        let blob = BlobName { keyspace: page.keyspace, key };
        if tally::counts(map, self.node, &blob) {
            let size = tally::size(&self.store, &blob)?;
            page.sizes.insert(blob.key, size);
        }
        Ok(())
    }

    /// Counts a page, while nothing is applied: what has changed since it was read is as it is now.
    fn close(&mut self, map: &ClusterMap, mut page: Page, now: Instant) {
        // Too many changes: it is read again.
        let Some(touched) = self.tally.touched(page.keyspace, page.to.as_ref()) else { return };
        let looked = touched.into_iter().try_for_each(|key| self.look(map, &mut page, key));
        if let Err(error) = looked {
            return self.give_up(&error, page.keyspace, now);
        }
        let Page { keyspace, after, to, sizes } = page;
        let met =
            sizes.into_values().fold(KeyspaceUsage::default(), |sum, it| sum.changed(None, it));
        let is_last = to.is_none();
        self.tally.advance(keyspace, after.as_ref(), to, met);
        if is_last {
            self.counted.lock().insert(keyspace, Counted { moved: self.moved, at: now });
            self.left.pop();
        }
        if self.left.is_empty()
            && let Some(Round::Since(began)) = self.round
        {
            let rest = now.saturating_duration_since(began) * self.rest.factor;
            self.round = Some(Round::NotBefore(now + rest.max(self.rest.at_least)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tyr_store::recent::Readers;
    use tyr_store::store::OpenedNode;
    use tyr_types::chunk::{Place, Start};
    use tyr_types::{ByteRange, Bytes, Key, KeyspaceConfig, Operation, Payload, Timestamp};

    use super::*;

    const ONE: KeyspaceId = KeyspaceId(1);

    struct Stage {
        walk: Walk,
        map: ClusterMap,
        now: Instant,
        clock: u64,
        _folder: tempfile::TempDir,
    }

    impl Stage {
        /// Node 0 of so many, with a keyspace of which each blob has one replica.
        fn new(nodes: u16) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let OpenedNode { store, .. } =
                Store::open_node(folder.path(), &mut |_, _, _| Ok(())).unwrap();
            let config = KeyspaceConfig { replication: 1, ..KeyspaceConfig::default() };
            let map = ClusterMap::of(nodes, &[config]);
            for (id, keyspace) in &map.keyspaces {
                store.adopt_keyspace(*id, &keyspace.name, &keyspace.config).unwrap();
            }
            let tally = Arc::new(Tally::default());
            tally.watch([(ONE, true)]);
            let walk = Walk::new(NodeId(0), store, tally, CountedAt::default(), true);
            Self { walk, map, now: Instant::now(), clock: 0, _folder: folder }
        }

        fn append(&mut self, key: &str, len: usize) {
            self.clock += 1;
            let name = BlobName { keyspace: ONE, key: Key::new(key).unwrap() };
            let cell = self.walk.store.chunk(&name).unwrap();
            let payload = Payload::Inline(Bytes::from(vec![1; len]));
            let operations = [Operation::Append { payload, expected: None }];
            let place = Place { range: ByteRange { start: 0, end: 1 << 26 } };
            let at = Timestamp { epoch: Epoch(1), clock: self.clock, node: 0 };
            let (operations, start) = (&operations[..], Start::Known(0));
            self.walk
                .store
                .apply_chunk(&cell, place, operations, start, at, Readers::NONE)
                .unwrap();
        }

        fn step(&mut self) {
            if let Some(page) = self.walk.read(&self.map, self.now) {
                self.walk.close(&self.map, page, self.now);
            }
        }

        /// Steps as a second has.
        fn second(&mut self) {
            for _ in 0..20 {
                self.now += TICK;
                self.step();
            }
        }

        fn totals(&self) -> KeyspaceUsage {
            self.walk.tally.of(ONE)
        }
    }

    #[test]
    fn many_pages_are_counted_and_counted_again() {
        let mut stage = Stage::new(1);
        for number in 0..600 {
            stage.append(&format!("{number}"), 10);
        }
        stage.second();
        assert_eq!(stage.totals(), KeyspaceUsage { blobs: 600, bytes: 6000, operations: 0 });
        stage.append("more", 5);
        stage.second();
        stage.second();
        assert_eq!(
            stage.totals(),
            KeyspaceUsage { blobs: 601, bytes: 6005, operations: 0 },
            "in the next round"
        );
    }

    #[test]
    fn each_blob_counts_at_one_of_many_nodes() {
        let mut stage = Stage::new(3);
        for number in 0..300 {
            stage.append(&format!("{number}"), 1);
        }
        let mut sum = KeyspaceUsage::default();
        for node in 0..3 {
            stage.walk.node = NodeId(node);
            stage.walk.tally.restart();
            stage.second();
            assert!((50..150).contains(&stage.totals().blobs), "{:?}", stage.totals());
            sum = sum.plus(stage.totals());
        }
        assert_eq!(sum, KeyspaceUsage { blobs: 300, bytes: 300, operations: 0 });
    }

    #[test]
    fn who_gets_more_to_count_counts_at_once() {
        let mut stage = Stage::new(2);
        for number in 0..100 {
            stage.append(&format!("{number}"), 1);
        }
        stage.step();
        let before = stage.totals().blobs;
        assert!(before < 100);
        let mut alone = ClusterMap::of(1, &[stage.map.keyspaces[&ONE].config.clone()]);
        alone.moved = Epoch(stage.map.moved.0 + 1);
        stage.map = alone;
        stage.step();
        assert_eq!(stage.totals().blobs, 100);
    }

    #[test]
    fn a_new_quota_does_not_wait_for_the_next_round() {
        let mut stage = Stage::new(1);
        stage.append("a", 7);
        stage.walk.tally.watch([]);
        stage.step();
        stage.walk.tally.watch([(ONE, true)]);
        stage.step();
        assert_eq!(stage.totals().bytes, 7);
    }

    #[test]
    fn what_changes_while_its_page_is_read_counts_once_as_it_is_afterwards() {
        let mut stage = Stage::new(1);
        ["a", "b", "c"].into_iter().for_each(|key| stage.append(key, 10));
        let page = stage.walk.read(&stage.map, stage.now).unwrap();
        let mut change = |key: &str, before| {
            let size = before + 5;
            stage.append(key, 5);
            let blob = BlobName { keyspace: ONE, key: Key::new(key).unwrap() };
            let before = (before > 0).then_some(before);
            stage.walk.tally.change(&blob, before, Some(size));
        };
        change("b", 10);
        change("new", 0);
        stage.walk.close(&stage.map, page, stage.now);
        assert_eq!(stage.totals(), KeyspaceUsage { blobs: 4, bytes: 40, operations: 0 });
    }

    #[test]
    fn what_has_no_quota_is_walked_seldom_and_it_is_known_when() {
        let mut stage = Stage::new(1);
        stage.walk.tally.watch([(ONE, false)]);
        stage.append("a", 7);
        stage.second();
        assert_eq!(stage.totals().bytes, 0, "that walk is another one's");
        stage.walk.is_limited = false;
        stage.walk.rest = REST_OTHERS;
        stage.second();
        assert_eq!(stage.totals().bytes, 7);
        let counted = stage.walk.counted.lock()[&ONE];
        assert_eq!(counted.moved, stage.map.moved);
        stage.now += REST_OTHERS.at_least / 2;
        stage.second();
        assert_eq!(stage.walk.counted.lock()[&ONE], counted, "it rests");
        stage.now += REST_OTHERS.at_least;
        stage.second();
        assert!(stage.walk.counted.lock()[&ONE].at > counted.at);
    }
}
