//! The cluster log: what became different with each map, for who looks back later.
//!
//! An entry is written with the map that it is about, in one transaction, so that none is missing
//! and none is of a map that never was. It lies under `cluster/log/`, by epoch; the oldest go.

use tyr_metadata::{Actor, Store, Transaction, limits::LIST_MAX, reserved};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::wire;

/// Entries that are kept: as many as one listing answers.
const ENTRIES_MAX: usize = LIST_MAX;

/// Lines of one entry; the rest are counted. All entries together then take 10 MB at most.
const LINES_MAX: usize = 100;

const _: () = assert!(ENTRIES_MAX > 1 && LINES_MAX > 1);

/// Adds an entry to what publishes a map: the wall clock in microseconds since 1970, and a line for
/// each difference from the map in effect. None where only the epoch is another.
pub(super) fn note(
    publish: Transaction,
    store: &Store,
    map: &ClusterMap,
    now_us: u64,
) -> Transaction {
    let before = store.get(reserved::MAP).and_then(|entry| wire::decode_map(&entry.value).ok());
    let Some(mut lines) = before.map(|before| map.differences(&before)) else { return publish };
    if lines.is_empty() {
        return publish;
    }
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("and {more} more"));
    }
    let value = format!("{now_us}\n{}", lines.join("\n"));
    let kept = store.list(&Actor::System, reserved::LOG, None, ENTRIES_MAX);
    let oldest = kept.first().filter(|_| kept.len() >= ENTRIES_MAX);
    let mut noted = publish.clone().put(reserved::log_entry(map.epoch.0), value);
    if let Some((path, _)) = oldest {
        noted = noted.delete(path.clone());
    }
    // The map counts, also where others have filled the store.
    if store.has_room_for(&noted) { noted } else { publish }
}
