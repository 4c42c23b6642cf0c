//! Small makers that the tests of this folder share.

use tyr_types::{Epoch, Timestamp};

/// The timestamp of clock `clock` on node 0 in epoch 0.
pub fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(0), clock, node: 0 }
}
