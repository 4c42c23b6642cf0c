//! The cluster log: what became different with each map, for who looks back later.
//!
//! An entry is written with the map that it is about, in one transaction, so that none is missing
//! and none is of a map that never was. It lies under `cluster/log/`, by epoch; the oldest go.

use tyr_metadata::limits::LIST_MAX;
use tyr_metadata::{Store, Transaction, reserved};
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
    let mut noted = publish.clone().put(reserved::log_entry(map.epoch.0), value);
    let is_full = store.paths(reserved::LOG).count() >= ENTRIES_MAX;
    if let Some(oldest) = store.paths(reserved::LOG).next().filter(|_| is_full) {
        noted = noted.delete(oldest.clone());
    }
    // The map counts, also where others have filled the store.
    if store.has_room_for(&noted) { noted } else { publish }
}

#[cfg(test)]
mod tests {
    use tyr_metadata::Actor;
    use tyr_protocol::map::Change;
    use tyr_types::{KeyspaceConfig, KeyspaceName};

    use super::super::term::map_bytes;
    use super::*;

    #[test]
    fn the_oldest_goes_when_there_are_as_many_as_are_kept_however_large() {
        let before = ClusterMap::of(3, &[]);
        let map = Transaction::new().put(reserved::path(reserved::MAP), map_bytes(&before));
        let mut store = Store::new();
        store.apply(&Actor::System, &map).unwrap();
        for epoch in 0..ENTRIES_MAX as u32 {
            // Together more than one listing answers.
            let put = Transaction::new().put(reserved::log_entry(epoch), vec![b'x'; 8 << 10]);
            store.apply(&Actor::System, &put).unwrap();
        }
        let name = KeyspaceName::new("notes").unwrap();
        let change = Change::CreateKeyspace { name, config: KeyspaceConfig::default(), seed: 1 };
        let after = before.changed(&change).unwrap();
        let noted = note(Transaction::new(), &store, &after, 1);
        let paths: Vec<_> =
            noted.alterations.iter().map(|it| (it.path(), it.value().is_some())).collect();
        let (new, oldest) = (reserved::log_entry(after.epoch.0), reserved::log_entry(0));
        assert_eq!(paths, [(&new, true), (&oldest, false)]);
    }
}
