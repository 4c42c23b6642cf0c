//! What a node holds: how it applies what chains bring to chunks that are of different moments.

use std::sync::atomic::{AtomicBool, Ordering};

use tyr_protocol::chain::{Hop, Part, Piece};
use tyr_protocol::level::LEVEL_PAGES;
use tyr_protocol::map::MapKept;
use tyr_protocol::member::Store as _;
use tyr_protocol::message::Body;
use tyr_protocol::movement::ChunkVersion;
use tyr_types::chunk::Place;
use tyr_types::{Bytes, Epoch, KeptName, Key, KeyspaceConfig, Operation, Payload};

use super::*;

const CHUNK: u64 = 4096;
const RETENTION: Retention = Retention { read_timeout_us: 1_000_000, linger_us: 0 };

fn time(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(1), clock, node: 0 }
}

fn log() -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new("log").unwrap() }
}

fn chunk_range(chunk: u64) -> ByteRange {
    ByteRange { start: chunk * CHUNK, end: (chunk + 1) * CHUNK }
}

fn holdings(folder: &tempfile::TempDir) -> Holdings {
    let opened = Store::open_node(folder.path(), &mut |_, _, _| Ok(())).unwrap();
    let mut holdings = Holdings::new(NodeId(0), opened.store, RETENTION);
    let config = KeyspaceConfig { chunk_size: CHUNK, ..KeyspaceConfig::default() };
    holdings.learn(&Arc::new(ClusterMap::of(3, &[config])));
    holdings
}

/// An append of these bytes to the log whose end was guessed, in the chain of three nodes.
fn append(holdings: &mut Holdings, bytes: &[u8], guess: u64, at: u64) {
    let payload = Payload::Inline(Bytes::copy_from_slice(bytes));
    apply(holdings, Operation::Append { payload, expected: None }, guess, time(at));
}

/// Applies this to the log, whose last chunk has the byte `guess`, in the chain of three nodes.
fn apply(holdings: &mut Holdings, operation: Operation, guess: u64, at: Timestamp) {
    let blobs = vec![BlobOperations { blob: log(), operations: vec![operation] }];
    let id = TransactionId::new(7, at.clock);
    let transaction = Transaction { id, blobs, reads: Vec::new() };
    let piece = |chunk| Piece {
        blob: log(),
        range: chunk_range(chunk),
        is_attributes: chunk == 0,
        is_written: true,
        authority: NodeId(0),
    };
    let pieces = || vec![piece(0), piece(guess / CHUNK)];
    let hop = |node| Hop { node: NodeId(node), part: Part::Pieces(pieces()) };
    let ends = [(0, guess)].into_iter().collect();
    let chain = Chain::new(vec![hop(0), hop(1), hop(2)], ends).unwrap();
    holdings.apply(&transaction, &chain, at);
}

/// A fold of all that is there, after which the log begins.
fn fold(holdings: &mut Holdings, at: Timestamp) {
    let at = holdings.begin_fold(at);
    let store = Arc::clone(holdings.store());
    let mut fold = store.begin_fold(at, store.take_dead());
    fold.stop_at(&store.base().kept_unfolded());
    while store.fold_some(&mut fold, |_| true).unwrap() {}
    store.end_fold(fold, 0).unwrap();
    holdings.end_fold();
}

/// The next map, which keeps a snapshot.
fn keeping(holdings: &Holdings) -> (Arc<ClusterMap>, MapKept) {
    let mut map = ClusterMap::clone(holdings.map.as_ref().unwrap());
    map.epoch = Epoch(2);
    let kept = MapKept { epoch: map.epoch, day_us: 0 };
    map.kept.insert(KeptName::new("monday").unwrap(), kept);
    (Arc::new(map), kept)
}

/// A copy of a chunk as it was at a moment.
fn copy(chunk: u64, bytes: &[u8], size: Option<u64>, at: u64) -> ChunkCopy {
    let version = ChunkVersion {
        version: time(at),
        bytes: Bytes::copy_from_slice(bytes),
        size: size.map(Some),
        size_version: if size.is_some() { time(at) } else { Timestamp::ZERO },
    };
    ChunkCopy::new(time(at), chunk_range(chunk), true, vec![version])
}

fn install(holdings: &mut Holdings, chunk: u64, copy: &ChunkCopy) {
    let name = (log(), chunk);
    holdings.await_base(&name);
    holdings.install(&name, copy);
}

fn held(holdings: &Holdings, chunk: u64) -> Bytes {
    let read = holdings.plan_read(&log(), chunk_range(chunk), None).unwrap();
    holdings.store.finish_chunk_read(read).unwrap().bytes
}

/// The first chunk, and with it the size, may be of a later moment than a later chunk is: when both
/// were copied, or when the base is from after where the log begins. What was appended in between
/// comes again, and goes where it went.
#[test]
fn what_is_appended_to_a_chunk_of_an_earlier_moment_goes_where_it_belongs() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    install(&mut holdings, 1, &copy(1, b"abc", None, 10));
    install(&mut holdings, 0, &copy(0, &[1; CHUNK as usize], Some(2 * CHUNK + 5), 20));
    append(&mut holdings, b"def", CHUNK + 3, 12);
    append(&mut holdings, b"ghi", CHUNK + 3, 14);
    assert_eq!(held(&holdings, 1), "abcdefghi");
    assert_eq!(holdings.stat(&log()), Some(2 * CHUNK + 5), "the first chunk had it already");
    append(&mut holdings, b"more", 2 * CHUNK, 21);
    assert_eq!(holdings.stat(&log()), Some(2 * CHUNK + 9));
}

/// The same for what waits for a base.
#[test]
fn what_is_laid_aside_for_a_chunk_goes_where_it_belongs_when_its_base_is_here() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    install(&mut holdings, 0, &copy(0, &[1; CHUNK as usize], Some(2 * CHUNK + 5), 20));
    holdings.await_base(&(log(), 1));
    append(&mut holdings, b"def", CHUNK, 12);
    append(&mut holdings, b"ghi", CHUNK, 14);
    install(&mut holdings, 1, &copy(1, b"abc", None, 10));
    assert_eq!(held(&holdings, 1), "abcdefghi");
}

/// The first chunk may have gone to others after the transaction was validated here.
#[test]
fn what_is_appended_where_the_first_chunk_is_not_held_any_more_goes_where_it_belongs() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    install(&mut holdings, 1, &copy(1, b"abc", None, 10));
    install(&mut holdings, 0, &copy(0, &[1; CHUNK as usize], Some(CHUNK + 3), 10));
    let config = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..KeyspaceConfig::default() };
    let gone = (2..64).map(|nodes| ClusterMap::of(nodes, std::slice::from_ref(&config)));
    let is_gone =
        |map: &ClusterMap| !map.placement(&log(), 0).is_some_and(|placed| placed.has(NodeId(0)));
    let mut map = gone.into_iter().find(is_gone).unwrap();
    map.epoch = Epoch(9);
    holdings.learn(&Arc::new(map));
    holdings.release(&(log(), 0));
    append(&mut holdings, b"def", CHUNK + 3, 12);
    assert_eq!(held(&holdings, 1), "abcdef");
}

/// As a restart finds it whose log begins before the first chunk went to another node: nothing is
/// left of it, and what the log has of the time before is applied to nothing, one after the other.
#[test]
fn what_the_log_has_of_before_the_first_chunk_went_goes_where_it_belongs() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    append(&mut holdings, b"abc", CHUNK, 10);
    append(&mut holdings, b"def", CHUNK + 3, 20);
    assert_eq!(held(&holdings, 1), "abcdef");
}

/// As a restart finds a chunk that came by a copy and was deleted, both before the last fold, when
/// the log has the deletion still: of the chunk itself nothing is left, so its base is taken for
/// empty.
#[test]
fn what_is_held_of_a_chunk_stays_when_the_log_tells_of_its_deletion_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    let (map, kept) = keeping(&holdings);
    install(&mut holdings, 0, &copy(0, b"abc", Some(3), 10));
    holdings.keep(&map);
    holdings.learn(&map);
    let deleted = Timestamp { epoch: Epoch(2), ..time(20) };
    apply(&mut holdings, Operation::Delete, 0, deleted);
    fold(&mut holdings, Timestamp { clock: 30, ..deleted });
    let then = |holdings: &Holdings| {
        let place = Place { range: chunk_range(0) };
        holdings.store.read_chunk_kept(&log(), place, place.range, kept.at()).unwrap().bytes
    };
    assert_eq!(then(&holdings), "abc");
    drop(holdings);

    let mut holdings = super::tests::holdings(&folder);
    holdings.keep(&map);
    holdings.learn(&map);
    holdings.await_base(&(log(), 0));
    apply(&mut holdings, Operation::Delete, 0, deleted);
    holdings.install(&(log(), 0), &ChunkCopy::empty(chunk_range(0), true));
    assert_eq!(then(&holdings), "abc");
    assert_eq!(holdings.stat(&log()), None);
}

/// V7. Folds take chunks in a thread of their own, also while a copy and what waited for it come to
/// be here.
#[test]
#[allow(clippy::disallowed_methods, reason = "what is tested is that threads may share it")]
fn no_fold_takes_a_chunk_that_is_half_installed() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    let (map, kept) = keeping(&holdings);
    holdings.keep(&map);
    holdings.learn(&map);
    let later = |clock| Timestamp { epoch: Epoch(2), ..time(clock) };
    fold(&mut holdings, later(10));
    let fold_at = holdings.begin_fold(later(30));
    let (store, is_over) = (Arc::clone(holdings.store()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let mut fold = store.begin_fold(fold_at, Vec::new());
                while store.fold_some(&mut fold, |_| true).unwrap() {}
                store.abandon_fold(fold);
            }
        });
        let name = (log(), 0);
        let wrong = (0..300).find(|_| {
            holdings.await_base(&name);
            append(&mut holdings, b"def", 3, 14);
            apply(&mut holdings, Operation::Delete, 6, later(20));
            holdings.install(&name, &copy(0, b"abc", Some(3), 10));
            let place = Place { range: chunk_range(0) };
            let then = holdings.store.read_chunk_kept(&log(), place, place.range, kept.at());
            let is_right = then.unwrap().bytes == "abcdef" && holdings.stat(&log()).is_none();
            holdings.release(&name);
            !is_right
        });
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(wrong, None, "the first round in which it was");
    });
}

/// D5.
#[test]
fn what_came_while_a_chunk_was_not_known_to_stand_is_done_when_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    install(&mut holdings, 0, &copy(0, b"abc", Some(3), 10));
    let name = (log(), 0);
    let version = holdings.local_chunk(&name).version;
    assert_eq!(version, time(10));
    holdings.await_confirmation(&name, time(12));
    append(&mut holdings, b"old", 3, 12);
    append(&mut holdings, b"def", 3, 14);
    append(&mut holdings, b"ghi", 6, 15);
    assert_eq!(holdings.stat(&log()), Some(3), "it waits");
    assert_eq!(holdings.local_chunk(&name).version, version, "what waits is not there");
    fold(&mut holdings, time(20));
    let late = holdings.confirm(&name, time(12));
    let at: Vec<Timestamp> = late.iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [time(14), time(15)], "what is of before is in it");
    assert_eq!(held(&holdings, 0), "abcdefghi");
    fold(&mut holdings, time(30));
    drop(holdings);
    let holdings = super::tests::holdings(&folder);
    assert_eq!(held(&holdings, 0), "abcdefghi");
}

/// D5, D2.
#[test]
fn a_copy_takes_the_place_of_what_does_not_stand() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    install(&mut holdings, 0, &copy(0, b"abcdef", Some(6), 10));
    fold(&mut holdings, time(11));
    let name = (log(), 0);
    holdings.await_confirmation(&name, time(12));
    append(&mut holdings, b"in it", 2, 14);
    append(&mut holdings, b"!", 2, 25);
    install(&mut holdings, 0, &copy(0, b"xy", Some(2), 20));
    assert_eq!(held(&holdings, 0), "xy!");
    // A blob that is not there any more.
    holdings.await_confirmation(&name, time(26));
    let nothing = ChunkVersion {
        version: Timestamp::ZERO,
        bytes: Bytes::new(),
        size: Some(None),
        size_version: Timestamp::ZERO,
    };
    let nothing = ChunkCopy::new(time(30), chunk_range(0), true, vec![nothing]);
    install(&mut holdings, 0, &nothing);
    assert_eq!(holdings.stat(&log()), None);
    assert!(!holdings.local_chunk(&name).exists);
    fold(&mut holdings, time(40));
    drop(holdings);
    let holdings = super::tests::holdings(&folder);
    assert_eq!(holdings.stat(&log()), None);
}

/// D5.
#[test]
fn what_waits_is_gone_when_the_node_begins_anew_and_what_was_there_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    install(&mut holdings, 0, &copy(0, b"abc", Some(3), 10));
    holdings.await_confirmation(&(log(), 0), time(12));
    holdings.await_base(&(log(), 1));
    append(&mut holdings, b"def", CHUNK, 14);
    let awaited: Vec<_> = holdings.awaited().map(|((_, chunk), at)| (*chunk, at)).collect();
    assert_eq!(awaited, [(0, Some(time(12))), (1, None)]);
    holdings.stop_awaiting();
    assert_eq!(holdings.awaited().count(), 0);
    let held: Vec<_> = holdings.held_or_kept(None, 9);
    let expected = LocalChunk { name: (log(), 0), version: time(10), exists: true };
    assert_eq!(held, [expected]);
    assert_eq!(super::tests::held(&holdings, 0), "abc");
}

/// A chunk of before the last fold is looked for on disk, if it is one that this node holds.
#[test]
fn what_a_planned_map_takes_away_is_known_until_that_map_is_in_effect() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    install(&mut holdings, 0, &copy(0, b"abc", Some(3), 10));
    fold(&mut holdings, time(30));
    drop(holdings);

    let mut holdings = super::tests::holdings(&folder);
    let config = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..KeyspaceConfig::default() };
    let elsewhere = (2..64).map(|nodes| ClusterMap::of(nodes, std::slice::from_ref(&config)));
    let is_elsewhere = |map: &ClusterMap| !map.placement(&log(), 0).unwrap().has(NodeId(0));
    let mut map = elsewhere.into_iter().find(is_elsewhere).unwrap();
    map.epoch = Epoch(9);
    let map = Arc::new(map);
    holdings.hear(&Body::Prepare(Arc::clone(&map)));
    assert_eq!(holdings.stat(&log()), Some(3));
    let newest = holdings.newest_overlapping(&log(), chunk_range(0), true);
    assert!(newest >= time(10), "{newest}: who has read before that would be let through");
    drop(holdings);

    let mut holdings = super::tests::holdings(&folder);
    holdings.hear(&Body::Effective(map));
    assert_eq!(holdings.stat(&log()), None);
}

/// Until all nodes of a cluster can open a folder with pages, this one may go back to a program
/// that cannot.
#[test]
fn pages_are_written_once_the_map_says_that_all_nodes_know_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut holdings = holdings(&folder);
    let config = KeyspaceConfig { chunk_size: CHUNK, ..KeyspaceConfig::default() };
    let has_pages = || folder.path().join("pages").exists();
    for (clock, level, is_written) in [(10, LEVEL_PAGES - 1, false), (20, LEVEL_PAGES, true)] {
        let mut map = ClusterMap::of(3, std::slice::from_ref(&config)).speaking(level);
        map.epoch = Epoch(clock as u32);
        holdings.learn(&Arc::new(map));
        let bytes = Bytes::from(vec![level; CHUNK as usize]);
        let payload = Payload::Inline(bytes.clone());
        let at = Timestamp { epoch: Epoch(clock as u32), ..time(clock) };
        apply(&mut holdings, Operation::Write { offset: 0, payload }, 0, at);
        fold(&mut holdings, Timestamp { clock: clock + 5, ..at });
        assert_eq!(has_pages(), is_written, "level {level}");
        assert_eq!(held(&holdings, 0), bytes);
    }
}
