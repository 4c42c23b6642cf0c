//! Small makers that the tests of this folder share.

use std::sync::Arc;

use tyr_types::{BlobName, Epoch, Key, KeyspaceId, Operation, Payload, Timestamp};

use super::{Applying, Attributes, BlobCell, BlobState, Readers, Recent};

/// The timestamp of clock `clock` on node 0 in epoch 0.
pub fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(0), clock, node: 0 }
}

/// So many blobs of keyspace 1, of which the base has all up to `folded_at`.
pub fn load_cells(recent: &Recent, count: usize, folded_at: Timestamp) -> Vec<Arc<BlobCell>> {
    let load = |number: usize| {
        let key = Key::new(format!("blob/{number:08}")).unwrap();
        let name = BlobName { keyspace: KeyspaceId(1), key };
        let state = || Ok(Some(BlobState::new(Attributes::default(), folded_at)));
        recent.find_or_load(&name, state).unwrap().unwrap()
    };
    (0..count).map(load).collect()
}

/// Writes a byte at each of two moments, while everybody reads older versions.
pub fn write_twice(recent: &Recent, cell: &Arc<BlobCell>, first: Timestamp, second: Timestamp) {
    for at in [first, second] {
        let write = Operation::Write { offset: 0, payload: Payload::Inline(vec![7].into()) };
        let applying =
            Applying { at, readers: Readers::from(Timestamp::ZERO), dead: recent.dead() };
        let mut state = cell.lock();
        recent.change(cell, &mut state, |state| state.apply(&[write], applying));
    }
}
