//! What a call at one mount did, the next call at another sees: through the kernel's cache, and by
//! mapped memory. `stale.py` makes the calls, for Python has them all.

use std::process::Command;

use tyr_chance::size;
use tyr_testing::Kind;

use super::two::with_mounts;

/// Runs pairs of calls at two mounts of a store of this kind.
fn look_after_each_change(kind: Kind) {
    let pairs = match kind {
        Kind::Embedded => size(2_000, 1_000_000),
        Kind::Cluster => size(500, 100_000),
    };
    with_mounts(kind, |one, two| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mount/stale.py");
        let status =
            Command::new("python3").arg(script).args([one, two]).arg(pairs.to_string()).status();
        assert!(status.unwrap().success(), "a call saw what was before");
    });
}

#[test]
fn what_a_call_did_the_next_one_sees_at_another_mount_of_a_cluster() {
    look_after_each_change(Kind::Cluster);
}

#[test]
fn what_a_call_did_the_next_one_sees_at_another_mount_of_a_store() {
    look_after_each_change(Kind::Embedded);
}
