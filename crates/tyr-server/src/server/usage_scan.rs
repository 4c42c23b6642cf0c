//! Counts again and again what of each keyspace with a quota counts at this node.
//!
//! It walks the keys of one keyspace after the other, a page at a time, on a thread of its own,
//! since it may wait for the disk; the engine goes on meanwhile. Without quotas it does nothing.
//! Between two rounds it rests for as long as four of them take, unless who counts what has
//! changed.
//!
//! Must not know: limits, and what is done with the totals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_protocol::map::ClusterMap;
use tyr_store::store::Store;
use tyr_types::{BlobName, Epoch, KeyspaceId, KeyspaceUsage, NodeId, Result};

use crate::driver::Driver;
use tyr_engine::tally::{self, Tally};

/// How long it waits between two pages.
const TICK: Duration = Duration::from_millis(50);

/// Blobs that are met at a time: some five thousand a second.
const PAGE: usize = 256;

/// How long it rests at least between two rounds.
const REST_MIN: Duration = Duration::from_secs(1);

/// A rest is so many times as long as the round before.
const REST_FACTOR: u32 = 4;

/// After a failure of the disk it rests for so long.
const REST_FAILED: Duration = Duration::from_secs(10);

const _: () = assert!(PAGE > 0 && REST_FACTOR > 0);
const _: () = assert!(TICK.as_millis() < REST_MIN.as_millis());
const _: () = assert!(REST_MIN.as_millis() < REST_FAILED.as_millis());

/// Counts what counts at a node.
pub(super) struct UsageScan {
    driver: Arc<Driver>,
    walk: Walk,
}

/// A walk over all keyspaces that are counted.
struct Walk {
    node: NodeId,
    store: Arc<Store>,
    tally: Arc<Tally>,
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

impl UsageScan {
    /// Of what this node holds.
    pub fn new(driver: Arc<Driver>) -> Self {
        let walk = driver.look(|engine| {
            let node = engine.member().node();
            let holdings = engine.holdings();
            Walk::new(node, Arc::clone(holdings.store()), Arc::clone(holdings.tally()))
        });
        Self { driver, walk }
    }

    /// Runs until the node stops.
    pub fn run(mut self, is_stopping: &AtomicBool) {
        while !is_stopping.load(Ordering::Acquire) {
            if self.walk.has_work()
                && let Some(map) = self.driver.look(|engine| engine.member().map().cloned())
            {
                self.walk.step(&map, Instant::now());
            }
            std::thread::sleep(TICK);
        }
    }
}

impl Walk {
    fn new(node: NodeId, store: Arc<Store>, tally: Arc<Tally>) -> Self {
        Self {
            node,
            store,
            tally,
            moved: Epoch(0),
            left: Vec::new(),
            round: None,
            idle_until: None,
        }
    }

    fn has_work(&self) -> bool {
        !self.left.is_empty() || self.tally.is_any()
    }

    /// Meets one page.
    fn step(&mut self, map: &ClusterMap, now: Instant) {
        if self.idle_until.is_some_and(|until| now < until) {
            return;
        }
        self.plan(map, now);
        let Some(keyspace) = self.left.last().copied() else { return };
        match self.meet(map, keyspace) {
            Ok(false) => {}
            Ok(true) => drop(self.left.pop()),
            Err(error) => {
                tracing::warn!(%error, keyspace = keyspace.0, "blobs are not counted for a moment");
                self.idle_until = Some(now + REST_FAILED);
            }
        }
        if self.left.is_empty()
            && let Some(Round::Since(began)) = self.round
        {
            let rest = now.saturating_duration_since(began) * REST_FACTOR;
            self.round = Some(Round::NotBefore(now + rest.max(REST_MIN)));
        }
    }

    /// Sees what is to be walked.
    fn plan(&mut self, map: &ClusterMap, now: Instant) {
        let watched = self.tally.watched();
        self.left.retain(|left| watched.iter().any(|(keyspace, _)| keyspace == left));
        let is_resting = matches!(self.round, Some(Round::NotBefore(end)) if now < end);
        let has_moved = self.moved != map.moved;
        if has_moved || self.left.is_empty() && !is_resting {
            self.left = watched.iter().map(|(keyspace, _)| *keyspace).collect();
            self.left.iter().for_each(|keyspace| self.tally.begin(*keyspace));
            (self.moved, self.round) = (map.moved, Some(Round::Since(now)));
            return;
        }
        // What has a quota of late, or was cleared, does not wait for the next round.
        let new = watched.iter().filter(|(id, is_counted)| !is_counted && !self.left.contains(id));
        let new: Vec<KeyspaceId> = new.map(|(keyspace, _)| *keyspace).collect();
        if is_resting && !new.is_empty() {
            self.round = Some(Round::Since(now));
        }
        self.left.extend(new);
        debug_assert!(self.left.len() <= watched.len(), "each keyspace is walked once in a round");
        debug_assert!(self.left.is_empty() || self.round.is_some(), "who walks is in a round");
    }

    /// Meets the next page of a keyspace. Answers whether it was the last.
    fn meet(&self, map: &ClusterMap, keyspace: KeyspaceId) -> Result<bool> {
        let after = self.tally.walked(keyspace);
        let keys = self.store.keys(keyspace, b"", after.as_ref(), PAGE)?;
        debug_assert!(keys.len() <= PAGE, "a page is bounded");
        debug_assert!(keys.is_sorted(), "keys come in order");
        debug_assert!(after.as_ref().is_none_or(|after| keys.iter().all(|key| key > after)));
        let is_last = keys.len() < PAGE;
        let to = keys.last().cloned().filter(|_| !is_last);
        let mut met = KeyspaceUsage::default();
        for key in keys {
            let blob = BlobName { keyspace, key };
            if tally::counts(map, self.node, &blob) {
                met = met.changed(None, tally::size(&self.store, &blob)?);
            }
        }
        self.tally.advance(keyspace, after.as_ref(), to, met);
        Ok(is_last)
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
            tally.watch([ONE]);
            let walk = Walk::new(NodeId(0), store, tally);
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

        /// Steps as a second has.
        fn second(&mut self) {
            for _ in 0..20 {
                self.now += TICK;
                self.walk.step(&self.map, self.now);
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
        stage.walk.step(&stage.map, stage.now);
        let before = stage.totals().blobs;
        assert!(before < 100);
        let mut alone = ClusterMap::of(1, &[stage.map.keyspaces[&ONE].config.clone()]);
        alone.moved = Epoch(stage.map.moved.0 + 1);
        stage.walk.step(&alone, stage.now);
        assert_eq!(stage.totals().blobs, 100);
    }

    #[test]
    fn a_new_quota_does_not_wait_for_the_next_round() {
        let mut stage = Stage::new(1);
        stage.append("a", 7);
        stage.walk.tally.watch([]);
        stage.walk.step(&stage.map, stage.now);
        stage.walk.tally.watch([ONE]);
        stage.walk.step(&stage.map, stage.now);
        assert_eq!(stage.totals().bytes, 7);
    }
}
