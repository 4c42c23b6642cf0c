//! A node that comes back with what it had (D5): what of it stays, what it asks, what waits.

use std::sync::Arc;

use tyr_types::{ByteRange, Bytes, KeptName, NodeId, Timestamp, Transaction, TransactionId};

use super::checkpoints::{
    NODE, at, attempt, back, first_map, read, read_cut, transaction, validated,
};
use super::shelf::{CHUNK, Shelf};
use super::stand::Stand;
use super::world::blob;
use crate::chain::Ends;
use crate::commit;
use crate::level::LEVEL_RETURNING;
use crate::map::{Change, ClusterMap};
use crate::member::{ChunkName, Effect, Event, Record, Store, incarnation};
use crate::message::{Address, Body};
use crate::movement::{ChunkCopy, ChunkVersion, Message};
use crate::rule::Rule;

/// The node that tells what it has: it is the authority of everything.
pub(super) const AUTHORITY: NodeId = NodeId(0);

/// What was committed last is not known to be stable.
fn a_log(map: &ClusterMap) -> Vec<Record> {
    let mut log = vec![Record::Map(Arc::new(map.clone()))];
    for (id, clock) in [(1, 12), (2, 14), (4, 15)] {
        log.push(validated(map, &transaction(id, id as u8), clock));
        log.push(Record::Decided { id: TransactionId(id), at: at(clock) });
    }
    log.push(Record::Finished { but: Vec::new() });
    log.push(validated(map, &transaction(3, 3), 16));
    log.push(Record::Decided { id: TransactionId(3), at: at(16) });
    log
}

fn up(map: &ClusterMap) -> ClusterMap {
    map.changed(&Change::Settle([NODE].into_iter().collect())).unwrap()
}

pub(super) fn chunk(number: u8) -> ChunkName {
    (blob(number), 0)
}

pub(super) fn chunks(numbers: &[u8]) -> Vec<ChunkName> {
    let mut chunks: Vec<ChunkName> = numbers.iter().map(|number| chunk(*number)).collect();
    chunks.sort();
    chunks
}

/// A node that is back, and its monitors have just said so; what it wrote to its log then.
pub(super) fn returned(map: &ClusterMap, broken: Option<Rule>) -> (Stand, ClusterMap, Vec<Record>) {
    let (member, shelf) = read(&a_log(map), Shelf::new(NODE), broken);
    let mut stand = Stand { member, shelf, now_us: 1_000_000, asked: 0 };
    let map = back(map, stand.member.incarnation());
    let effects = stand.receive(&map, Address::Monitors, Body::Effective(Arc::new(map.clone())));
    let mut logged: Vec<Record> = Vec::new();
    for effect in effects {
        if let Effect::Persist { record, .. } = effect {
            logged.push(record);
        }
    }
    stand.lease();
    (stand, map, logged)
}

/// What the node asks others about what it is to hold.
fn asked(effects: &[Effect]) -> (Vec<Message>, Vec<ChunkName>) {
    let (mut lists, mut copies) = (Vec::new(), Vec::new());
    for effect in effects {
        let Effect::Send { envelope, .. } = effect else { continue };
        match &envelope.body {
            Body::Movement(
                message @ (Message::List { .. }
                | Message::ListSince { .. }
                | Message::Summarize { .. }),
            ) => lists.push(message.clone()),
            Body::Read(request) if request.is_copy => copies.push((request.blob.clone(), 0)),
            _ => {}
        }
    }
    copies.sort();
    (lists, copies)
}

fn complete_to(records: &[Record]) -> Option<Timestamp> {
    records.iter().find_map(|record| match record {
        Record::CompleteTo { at } => Some(*at),
        _ => None,
    })
}

/// A page of what the authority has; what is unchanged, in the versions of [`a_log`].
fn listed(since: Timestamp, unchanged: &[u8], changed: &[u8]) -> Body {
    let version = |name: &ChunkName| match () {
        () if *name == chunk(1) => at(12),
        () if *name == chunk(2) => at(14),
        () => at(15),
    };
    let unchanged = chunks(unchanged).into_iter().map(|name| (name.clone(), version(&name)));
    let (unchanged, changed) = (unchanged.collect(), chunks(changed));
    let (after, next) = (None, None);
    Body::Movement(Message::ListedSince { since, after, unchanged, changed, next })
}

#[test]
fn a_node_that_was_down_keeps_what_it_has_up_to_what_others_may_not_have_heard_of() {
    let (mut stand, _, logged) = returned(&first_map(3), None);
    let complete_to = complete_to(&logged).expect("it was whole before");
    assert_eq!(complete_to, at(16).previous(), "3 may be decided otherwise");
    let places = |is_it: fn(&Record) -> bool| logged.iter().position(is_it);
    let map_place = places(|it| matches!(it, Record::Map(_)));
    assert!(places(|it| matches!(it, Record::CompleteTo { .. })) < map_place, "{logged:?}");
    assert_eq!(stand.shelf.held(None, 9), chunks(&[1, 2, 4]), "3 is gone");
    stand.now_us += 400_000;
    let (lists, copies) = asked(&stand.step(Event::Tick));
    assert_eq!(lists[0], Message::Summarize { since: complete_to, after: None });
    assert!(copies.is_empty());
}

#[test]
fn what_did_not_change_stands_and_all_else_is_copied() {
    let (mut stand, map, logged) = returned(&first_map(3), None);
    let since = complete_to(&logged).unwrap();
    // 1 is as it was, 2 was changed, 3 and 5 are new, 4 is not there any more.
    let page = listed(since, &[1, 5], &[2, 3]);
    let effects = stand.receive(&map, Address::Node(AUTHORITY), page.clone());
    assert_eq!(asked(&effects).1, chunks(&[2, 3, 4, 5]));
    let (lists, copies) = asked(&stand.receive(&map, Address::Node(AUTHORITY), page));
    assert!(lists.is_empty() && copies.is_empty(), "it was not asked again");
}

/// What others have of before, and in another version, was decided otherwise there.
#[test]
fn what_is_there_in_another_version_does_not_stand() {
    let (mut stand, map, logged) = returned(&first_map(3), None);
    let since = complete_to(&logged).unwrap();
    let (after, next, changed) = (None, None, vec![]);
    let mut unchanged = vec![(chunk(1), at(12)), (chunk(2), at(13)), (chunk(4), at(16))];
    unchanged.sort();
    let page = Body::Movement(Message::ListedSince { since, after, unchanged, changed, next });
    let effects = stand.receive(&map, Address::Node(AUTHORITY), page);
    assert_eq!(asked(&effects).1, chunks(&[2, 4]));
}

#[test]
fn a_list_of_another_moment_counts_for_nothing() {
    let (mut stand, map, logged) = returned(&first_map(3), None);
    let since = complete_to(&logged).unwrap();
    let page = listed(since.previous(), &[1], &[2]);
    assert!(asked(&stand.receive(&map, Address::Node(AUTHORITY), page)).1.is_empty());
    let page = listed(since, &[1], &[2]);
    assert_eq!(asked(&stand.receive(&map, Address::Node(AUTHORITY), page)).1, chunks(&[2, 4]));
}

#[test]
fn without_d5_what_was_changed_is_taken_to_stand() {
    let (mut stand, map, logged) = returned(&first_map(3), Some(Rule::D5));
    let page = listed(complete_to(&logged).unwrap(), &[1], &[2, 3]);
    assert_eq!(asked(&stand.receive(&map, Address::Node(AUTHORITY), page)).1, chunks(&[3]));
}

#[test]
fn in_a_cluster_of_before_a_node_that_was_down_begins_empty() {
    let (stand, _, logged) = returned(&first_map(3).speaking(LEVEL_RETURNING - 1), None);
    assert_eq!(complete_to(&logged), None);
    assert!(stand.shelf.held(None, 9).is_empty());
}

/// A transaction comes by that was decided since the node is back: 6 writes to the first chunk.
pub(super) fn write_since(stand: &mut Stand, map: &ClusterMap) {
    let later = Timestamp { epoch: map.epoch, ..at(30) };
    let transaction = transaction(6, 1);
    let decided = commit::Message::Forward {
        chain: map.chain(&transaction, &Ends::new()).unwrap(),
        transaction,
        attempt: attempt(map, 0),
        begun: later,
        highest: later,
        known: Some(later),
        usages: Vec::new(),
    };
    stand.receive(map, Address::Node(AUTHORITY), Body::Commit(decided));
}

/// V7: at a kept moment above some of what waits it was otherwise than it is here.
#[test]
fn while_there_are_kept_snapshots_what_something_waits_for_is_copied_though_it_stands() {
    let name = KeptName::new("monday").unwrap();
    let kept = first_map(3).changed(&Change::Keep { name, day_us: 0 }).unwrap();
    for (before, wanted) in [(first_map(3), chunks(&[])), (kept, chunks(&[1]))] {
        let (mut stand, map, logged) = returned(&before, None);
        let since = complete_to(&logged).unwrap();
        write_since(&mut stand, &map);
        assert!(stand.shelf.is_awaited(&chunk(1)));
        let page = listed(since, &[1, 2, 4], &[]);
        let effects = stand.receive(&map, Address::Node(AUTHORITY), page);
        assert_eq!(asked(&effects).1, wanted);
    }
}

/// A moment since the node is back.
fn since(map: &ClusterMap, clock: u64) -> Timestamp {
    Timestamp { epoch: map.epoch, ..at(clock) }
}

/// The log of a transaction that was applied since the node is back.
fn applied(map: &ClusterMap, transaction: &Arc<Transaction>, clock: u64) -> [Record; 2] {
    let mut validated = validated(map, transaction, clock);
    if let Record::Validated { begun, proposal, .. } = &mut validated {
        (*begun, *proposal) = (since(map, clock), since(map, clock));
    }
    [validated, Record::Decided { id: transaction.id, at: since(map, clock) }]
}

/// The log that says when it was complete, and that the node is back.
fn a_log_till_the_return() -> (ClusterMap, Vec<Record>) {
    let old = first_map(3);
    let map = back(&old, incarnation(2));
    let mut log = a_log(&old);
    log.extend([Record::CompleteTo { at: at(16).previous() }, Record::Map(Arc::new(map.clone()))]);
    (map, log)
}

/// The same, and what came then: 6 writes to the first chunk.
fn a_log_of_the_return() -> (ClusterMap, Vec<Record>, Timestamp) {
    let (map, mut log) = a_log_till_the_return();
    log.extend(applied(&map, &transaction(6, 1), 30));
    let later = since(&map, 30);
    (map, log, later)
}

fn first_number(shelf: &Shelf, number: u8) -> u64 {
    shelf.content(&chunk(number), None).unwrap().0[0]
}

#[test]
fn what_is_written_to_a_chunk_waits_until_it_is_known_to_stand_also_over_a_restart() {
    let (map, mut log, _) = a_log_of_the_return();
    let (mut member, shelf) = read(&log, Shelf::new(NODE), None);
    assert!(shelf.is_awaited(&chunk(1)), "it is not known whether 1 stands");
    assert!(!shelf.is_awaited(&chunk(2)), "nobody writes to 2");
    // The log is cut, and read again.
    let standing = member.checkpoint(0);
    let folded = shelf.folded(member.clock());
    let (_, again) = read_cut(&standing, &[], folded.folded(member.clock()), None);
    assert!(again.is_awaited(&chunk(1)));
    // When it had caught up, it was known.
    let caught_up = Record::Map(Arc::new(up(&map)));
    log.push(caught_up.clone());
    let whole = read(&log, Shelf::new(NODE), None);
    let cut = read_cut(&standing, &[caught_up], folded, None);
    for (mut member, shelf) in [whole, cut] {
        assert_eq!([1, 2, 4].map(|number| first_number(&shelf, number)), [6, 2, 4]);
        assert_eq!(complete_to(&member.checkpoint(0)), None, "it is whole again");
    }
}

/// A copy of a chunk was read at `at`: it has this number, of this version.
fn copied(of: u8, number: u64, version: Timestamp, at: Timestamp) -> Record {
    let bytes = Bytes::from([number, 0, 0, 0].map(u64::to_le_bytes).concat());
    let (size, size_version) = (Some(None), Timestamp::ZERO);
    let version = ChunkVersion { version, bytes, size, size_version };
    let range = ByteRange { start: 0, end: CHUNK };
    let copy = ChunkCopy::new(at, range, true, vec![version]);
    let (blob, chunk) = chunk(of);
    Record::Installed { blob, chunk, copy }
}

/// Seed 779000823 of the simulator: a fold has passed what does not stand, at a moment above that
/// of the copy.
#[test]
fn a_copy_counts_also_where_a_fold_of_later_took_what_was_there_for_current() {
    let (map, mut log) = a_log_till_the_return();
    let (_, shelf) = read(&a_log(&first_map(3)), Shelf::new(NODE), None);
    let caught_up = Record::Map(Arc::new(up(&map)));
    log.extend([copied(2, 99, since(&map, 33), since(&map, 35)), caught_up]);
    let (_, shelf) = read(&log, shelf.folded(since(&map, 40)), None);
    assert_eq!([1, 2, 4].map(|number| first_number(&shelf, number)), [1, 99, 4]);
}

#[test]
fn what_was_written_since_is_not_let_go_of_when_the_log_is_read_over_a_base_that_has_it() {
    let (map, mut log, later) = a_log_of_the_return();
    log.push(Record::Map(Arc::new(up(&map))));
    let (_, shelf) = read(&log, Shelf::new(NODE), None);
    let (_, again) = read(&log, shelf.folded(later), None);
    assert_eq!([1, 2, 4].map(|number| first_number(&again, number)), [6, 2, 4]);
    // Nor while it had not caught up.
    let (_, again) = read(&log[..log.len() - 1], shelf.folded(later), None);
    assert!(!again.is_awaited(&chunk(1)), "it was known to stand when it was written");
    assert_eq!(first_number(&again, 1), 6);
}

/// Seed 800003167 of the simulator: what a copy says to have gone, above the moment to which all is
/// complete and before the node was declared down, is written to anew. When the log was cut behind
/// that copy, nothing tells that it was one.
#[test]
fn what_a_copy_said_not_to_be_there_is_copied_again_or_empty_when_the_log_was_cut_behind_it() {
    let (map, mut log) = a_log_till_the_return();
    log.push(copied(3, 0, at(16), since(&map, 35)));
    let (mut member, shelf) = read(&log, Shelf::new(NODE), None);
    let gone = shelf.local_chunk(&chunk(3));
    assert!(!gone.exists && gone.version == at(16), "{gone:?}");
    let standing = member.checkpoint(0);
    let folded = || shelf.folded(since(&map, 40));
    let mut log = applied(&map, &transaction(7, 3), 41).to_vec();
    let (member, again) = read_cut(&standing, &log, folded(), None);
    assert!(again.is_awaited(&chunk(3)), "whatever came of it waits");
    assert_eq!(member.recipient.missing(), chunks(&[3]), "for another copy");
    log.push(Record::Map(Arc::new(up(&map))));
    let (member, again) = read_cut(&standing, &log, folded(), None);
    assert_eq!(first_number(&again, 3), 7, "it had caught up: nothing was there");
    assert_eq!(member.recipient.missing(), []);
}

/// Seed 950000215 of the simulator: a chunk is copied, what waited for that is applied, and the
/// chunk goes; a fold meets all of that, and forgets it. What was applied is in the log for others
/// yet, also where another chunk of it waits still.
#[test]
fn what_went_with_its_chunk_before_the_log_was_cut_does_not_come_back() {
    let (map, mut log) = a_log_till_the_return();
    let mut both = (*transaction(6, 5)).clone();
    both.blobs.extend_from_slice(&transaction(6, 7).blobs);
    log.extend(applied(&map, &Arc::new(both), 30));
    log.push(copied(5, 9, since(&map, 20), since(&map, 25)));
    log.extend(applied(&map, &transaction(8, 5), 31)); // That it goes, as far as a shelf can tell.
    log.push(Record::Finished { but: vec![TransactionId(6)] });
    let (mut member, shelf) = read(&log, Shelf::new(NODE), None);
    assert!(!shelf.is_awaited(&chunk(5)) && shelf.is_awaited(&chunk(7)));
    let mut folded = shelf.folded(member.clock());
    folded.release(&chunk(5));
    let mut standing = member.checkpoint(0);
    for _ in 0..2 {
        let caught_up = [Record::Map(Arc::new(up(&map)))];
        let again = folded.folded(member.clock());
        let (_, whole) = read_cut(&standing, &caught_up, again, None);
        assert_eq!([5, 7].map(|number| first_number(&whole, number)), [0, 6]);
        // The log is cut once more before it has caught up.
        let again = folded.folded(member.clock());
        standing = read_cut(&standing, &[], again, None).0.checkpoint(0);
    }
}
