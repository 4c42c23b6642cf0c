//! Which versions nodes keep for snapshots (V2, V5).

use std::time::{Duration, Instant};

use tyr_types::{ByteRange, Number, NumberType};

use super::cluster::{PATIENCE, Stage};
use tyr_client::{Place, Want, block_on};
use tyr_server::Observer;

#[test]
fn a_snapshot_of_everything_keeps_what_it_reads_of_a_counter_and_few_other_versions() {
    let (stage, client) = Stage::with(|options| options.linger = Duration::from_millis(100));
    let write = || {
        let calls = [(); 64].map(|()| client.commit(vec![stage.add("sum", 0)], vec![], vec![]));
        calls.into_iter().for_each(|call| drop(call.wait().unwrap()));
        64
    };
    let held = || {
        let of = |server| Observer::of(server).statistics().versions_held;
        stage.servers.values().map(of).max().unwrap()
    };
    let before = write();
    let (at, lease) = block_on(client.moment().answer()).unwrap().unwrap();
    let (begun, mut written) = (Instant::now(), 0);
    while written < 10_000 || held() > written / 4 {
        assert!(begun.elapsed() < PATIENCE, "{} of {written} versions are held", held());
        written += write();
    }
    assert!(held() > 0, "what it reads is held");
    let want = Want::bytes(stage.blob("sum"), ByteRange { start: 0, end: 8 });
    let sight = block_on(client.read(want, Place::At(at)).answer()).unwrap();
    assert_eq!(Number::load(NumberType::U64, &sight.seen.bytes), Number::U64(before));
    drop(lease);
}
