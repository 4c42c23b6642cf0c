//! Replicas that go bad on disk are found and put right (D4), while clients go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_protocol::movement::scrub::{ScrubConfig, ScrubCounts};
use tyr_types::{ByteRange, Bytes, ErrorKind};

use super::web::Web;
use super::{append, blob, commit, read, write};
use tyr_protocol::session::{Answer, Call, Place, Want};

const CHUNK: u64 = 64 << 10;
const NODES: u16 = 3;
const CONFIG: ScrubConfig = ScrubConfig { rate: 64 << 20, every_us: 100_000 };
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that do not come twice.
fn content(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Damages what a node has of `bytes` from about `at` on.
fn damage(web: &Web, node: u16, bytes: &[u8], at: usize) {
    // Some lie on two frames.
    let found =
        (at..at + 4).map(|at| 16 * at).find(|at| web.damage(node, &bytes[*at..at + 16]) > 0);
    found.expect("it is in extents");
}

/// A chunk as a node has it.
fn held(web: &Web, node: u16, key: &str, chunk: u64) -> Result<Bytes, ErrorKind> {
    let planned = web.driver(node).look(|engine| {
        let holdings = engine.holdings();
        holdings.plan_whole(&(blob(key), chunk)).map(|read| (Arc::clone(holdings.store()), read))
    });
    let (store, read) = planned.map_err(|error| error.kind())?;
    let reading = store.finish_chunk_read(read.unwrap());
    reading.map(|reading| reading.bytes).map_err(|error| error.kind())
}

fn counts(web: &Web) -> Vec<ScrubCounts> {
    (0..NODES).map(|node| web.driver(node).look(|engine| engine.member().scrubbed())).collect()
}

fn wait_until(web: &Web, what: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !what() {
        assert!(Instant::now() < until, "it takes too long; {:?}", counts(web));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether every node can read all of it.
fn is_sound(web: &Web, key: &str, chunks: u64) -> bool {
    (0..NODES).all(|node| (0..chunks).all(|chunk| held(web, node, key, chunk).is_ok()))
}

#[test]
fn damaged_replicas_are_put_right_while_writes_go_on() {
    let mut web = Web::form_scrubbing(NODES, CHUNK, CONFIG);
    let mut client = web.client();
    let mut expected = content(300_000);
    commit(&mut client, vec![write("a", 0, &expected), append("log", b"begin")]);
    web.fold();
    web.forget();
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = {
        let (mut client, is_over) = (web.client(), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let mut count = 0u64;
            while !is_over.load(Ordering::Relaxed) {
                let number = count.to_le_bytes();
                commit(&mut client, vec![write("a", 70_000, &number), append("log", b"more")]);
                count += 1;
            }
            count
        })
    };
    // At the authority, and at others; in one that is written to all the time.
    for (node, at) in [(0, 1_000), (1, 5_000), (2, 10_000), (2, 17_000)] {
        damage(&web, node, &expected, at);
    }
    assert!(!is_sound(&web, "a", 5), "what is damaged cannot be read");
    wait_until(&web, || is_sound(&web, "a", 5));
    let repaired = || counts(&web).iter().map(|it| it.repaired).sum::<u64>() >= 4;
    wait_until(&web, repaired);
    is_over.store(true, Ordering::Relaxed);
    let count = writer.join().unwrap();
    expected[70_000..70_008].copy_from_slice(&(count - 1).to_le_bytes());
    for round in 0..3 {
        let all = ByteRange { start: 0, end: 1 << 20 };
        let seen = read(&mut client, "a", all, Place::Newest);
        assert!(seen == expected, "round {round}: a client reads something else");
        let log = read(&mut client, "log", all, Place::Newest);
        assert_eq!(log.len() as u64, 5 + 4 * count, "round {round}");
        for node in 0..NODES {
            let chunks = (0..5).flat_map(|chunk| held(&web, node, "a", chunk).unwrap());
            assert!(chunks.eq(expected.iter().copied()), "round {round}: node {node} differs");
        }
        // Also from the log, and from the base.
        web.kill_and_restart();
        if round == 0 {
            web.fold();
            web.forget();
        }
        client = web.client();
        read(&mut client, "a", all, Place::Newest);
    }
}

#[test]
fn damage_that_a_read_meets_is_for_the_cluster_log_once() {
    let web = Web::form(NODES, CHUNK);
    let mut client = web.client();
    let bytes = content(100_000);
    commit(&mut client, vec![write("a", 0, &bytes)]);
    web.fold();
    web.forget();
    (0..NODES).for_each(|node| damage(&web, node, &bytes, 1_000));
    for _ in 0..5 {
        let range = ByteRange { start: 0, end: CHUNK };
        let want = Want { blob: blob("a"), range, is_attributes: false };
        let answer = client.call(Call::Read { want, place: Place::Newest });
        assert!(matches!(&answer, Answer::Failed(abort) if abort.kind == ErrorKind::Corrupt));
    }
    let told: Vec<_> = (0..NODES).flat_map(|node| web.driver(node).remarks.take_all()).collect();
    let is_told = told.iter().all(|text| text.starts_with("a read met damage: "));
    assert!(is_told && (1..=usize::from(NODES)).contains(&told.len()), "{told:?}");
}

#[test]
fn replicas_that_are_the_same_are_compared_and_left_as_they_are() {
    let web = Web::form_scrubbing(NODES, CHUNK, CONFIG);
    let mut client = web.client();
    for number in 0..20u64 {
        let at = number * 9_000;
        commit(&mut client, vec![write("a", at, &content(8_000)), append("log", &[7; 300])]);
        commit(&mut client, vec![super::add("sum", 8 * (number % 3), number)]);
    }
    let chunks = || counts(&web).iter().map(|it| it.chunks).sum::<u64>();
    wait_until(&web, || chunks() >= 20);
    web.fold();
    let before = chunks();
    wait_until(&web, || chunks() >= before + 10);
    for counts in counts(&web) {
        assert_eq!((counts.differing, counts.repaired, counts.unrepaired), (0, 0, 0));
    }
}
