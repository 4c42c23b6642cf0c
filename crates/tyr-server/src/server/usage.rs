//! How much there is with a node: what counts with it of each keyspace, and how full its disk is.

use std::sync::Arc;
use std::time::Instant;

use tyr_control::usage::{CountedAt, KeptCount, KeyspaceCount, NodeDisk, NodeUsage};
use tyr_engine::tally::Watched;
use tyr_types::KeyspaceUsage;

use super::observation::Observer;
use crate::quota::{Counted, Quota};

impl Observer {
    /// How much there is with it.
    pub fn usage(&self) -> NodeUsage {
        let parts = self.parts();
        let (log_bytes, store) = parts
            .driver
            .look(|engine| (engine.journal().bytes(), Arc::clone(engine.holdings().store())));
        let disk = store.space(log_bytes).unwrap_or_default();
        let disk =
            NodeDisk { size: disk.size_bytes, free: disk.free_bytes, taken: disk.taken_bytes };
        // What is counted later than this is no older.
        let counted = parts.quotas.counted_at().lock().clone();
        let now = Instant::now();
        let count = |(watched, used, quota): (Watched, KeyspaceUsage, Quota)| {
            let at = counted.get(&watched.keyspace).filter(|_| watched.is_counted);
            KeyspaceCount {
                keyspace: watched.keyspace.0,
                blobs: used.blobs,
                bytes: used.bytes,
                counted: at.map(|at| counted_at(at, now)),
                blobs_max: quota.blobs,
                bytes_max: quota.bytes,
            }
        };
        let keyspaces = parts.quotas.totals().into_iter().map(count).collect();
        let kept = store.base().kept().into_iter();
        let kept = kept.map(|it| KeptCount { name: it.name.to_string(), bytes: it.bytes });
        NodeUsage { node: parts.node.0, disk, keyspaces, kept: kept.collect() }
    }
}

fn counted_at(counted: &Counted, now: Instant) -> CountedAt {
    let ago = now.saturating_duration_since(counted.at).as_millis();
    CountedAt { moved: counted.moved.0, ago_ms: u64::try_from(ago).unwrap_or(u64::MAX) }
}
