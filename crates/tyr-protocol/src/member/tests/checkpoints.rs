//! A log that is cut: what stands for it promises the same (L1 to L4).

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_types::{
    BlobOperations, ByteRange, Bytes, Epoch, KeyspaceConfig, KeyspaceId, NodeId, Number, Operation,
    Outcome, Payload, Timestamp, Transaction, TransactionId, Transform, TransformKind,
};

use super::shelf::{CHUNK, Shelf};
use super::world::blob;
use crate::abort::Abort;
use crate::chain::Ends;
use crate::commit::{Answered, Attempt, Decision, Outcomes, Placements, Remembered};
use crate::level::{LEVEL, LEVEL_ALONE};
use crate::map::{Change, ClusterMap, Newcomer};
use crate::member::{ChunkName, Member, MemberConfig, Record, incarnation};
use crate::movement::{ChunkCopy, ChunkVersion};
use crate::rule::Rule;

pub(super) const NODE: NodeId = NodeId(2);

pub(super) fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(1), clock, node: 2 }
}

/// Writes `id` to the first number of a blob.
pub(super) fn transaction(id: u128, number: u8) -> Arc<Transaction> {
    let payload = Payload::Inline(Bytes::copy_from_slice(&(id as u64).to_le_bytes()));
    let operations = vec![Operation::Write { offset: 0, payload }];
    let blobs = vec![BlobOperations { blob: blob(number), operations }];
    Arc::new(Transaction { id: TransactionId(id), blobs, reads: Vec::new() })
}

pub(super) fn first_map(nodes: u16) -> ClusterMap {
    let keyspace = KeyspaceConfig { chunk_size: CHUNK, replication: 3, ..Default::default() };
    ClusterMap::of(nodes, &[keyspace])
}

/// The map in which the node was declared down, and is back in this incarnation.
pub(super) fn back(map: &ClusterMap, incarnation: u64) -> ClusterMap {
    let down = map.changed(&Change::Down(NODE)).unwrap();
    let (node, has_disk, level) = (NODE, true, LEVEL);
    down.changed(&Change::Return { node, incarnation, has_disk, level }).unwrap()
}

pub(super) fn validated(map: &ClusterMap, transaction: &Arc<Transaction>, clock: u64) -> Record {
    Record::Validated {
        chain: map.chain(transaction, &Ends::new()).unwrap(),
        transaction: Arc::clone(transaction),
        attempt: attempt(map, 0),
        begun: at(clock),
        proposal: at(clock),
        placed: Placements::new(),
    }
}

pub(super) fn attempt(map: &ClusterMap, number: u32) -> Attempt {
    Attempt { epoch: map.epoch, number, coordinator: NodeId(0) }
}

fn remembered(map: &ClusterMap) -> Remembered {
    Remembered {
        id: TransactionId(20),
        attempt: attempt(map, 3),
        ends: [(0, 7)].into_iter().collect(),
        decision: Decision::Commit(at(20)),
        outcomes: Outcomes::new(),
    }
}

/// The node that has read this log, over `shelf`.
pub(super) fn read(log: &[Record], shelf: Shelf, broken: Option<Rule>) -> (Member, Shelf) {
    read_cut(&[], log, shelf, broken)
}

/// The same, of a log that was cut, and what stands for it before.
pub(super) fn read_cut(
    standing: &[Record],
    log: &[Record],
    mut shelf: Shelf,
    broken: Option<Rule>,
) -> (Member, Shelf) {
    let mut member = Member::new(NODE, incarnation(2), MemberConfig::default());
    broken.into_iter().for_each(|rule| member.break_rule(rule));
    standing.iter().for_each(|record| member.replay_checkpoint(record.clone(), &mut shelf));
    log.iter().for_each(|record| member.replay(record.clone(), &mut shelf));
    member.invariants();
    (member, shelf)
}

/// What is in flight, whatever its place in the table.
fn lines(member: &Member) -> BTreeSet<String> {
    member.brief().lines().map(str::to_owned).collect()
}

/// A log with transactions that are as far as they can be.
pub(super) fn a_log() -> Vec<Record> {
    let map = first_map(3);
    let of = |id: u8, clock: u64| validated(&map, &transaction(id.into(), id % 4), clock);
    let id = |id: u128| TransactionId(id);
    let fenced = |of: u128, number: u32, is_cleared: bool| Record::Fenced {
        id: id(of),
        attempt: attempt(&map, number),
        is_cleared,
    };
    let abort = Abort::new(tyr_types::ErrorKind::Conflict, "it changed");
    vec![
        Record::Map(Arc::new(map.clone())),
        of(1, 12),
        Record::Decided { id: id(1), at: at(12) },
        of(2, 14),
        of(3, 15),
        fenced(3, 2, false),
        of(4, 16),
        fenced(4, 3, true),
        fenced(5, 4, false),
        of(6, 17),
        Record::Aborted { id: id(6), abort },
        Record::Recalled { outcomes: vec![remembered(&map)] },
        of(9, 19),
        Record::Decided { id: id(9), at: at(19) },
    ]
}

/// R2.
#[test]
fn what_the_log_says_is_finished_with_is_only_remembered() {
    let mut log = a_log();
    let (before, _) = read(&log, Shelf::new(NODE), None);
    log.push(Record::Finished { but: vec![TransactionId(9)] });
    let (mut member, _) = read(&log, Shelf::new(NODE), None);
    assert_eq!(member.in_flight(), before.in_flight() - 1, "of 1 and 9, which are applied");
    let standing = member.checkpoint(0);
    let kept = standing.iter().find_map(|record| match record {
        Record::Remembered { entries } => entries.iter().find(|kept| kept.id == TransactionId(1)),
        _ => None,
    });
    let outcome = kept.and_then(|kept| kept.outcome.as_ref()).map(|(decision, _)| decision);
    assert_eq!(outcome, Some(&Decision::Commit(at(12))));
}

/// A program of level 1 reads no marks; by a map of level 1 nobody needs them.
#[test]
fn what_nobody_else_may_remember_is_marked_when_all_programs_read_that() {
    let single = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..Default::default() };
    let map = ClusterMap::of(3, &[single]);
    let held = |number: &u8| map.holders(&blob(*number), 0).contains(&NODE);
    let number = (0..50).find(held).expect("it has a third of them");
    let marks = |level: u8| {
        let map = map.clone().speaking(level);
        let log = [
            Record::Map(Arc::new(map.clone())),
            validated(&map, &transaction(1, number), 12),
            Record::Decided { id: TransactionId(1), at: at(12) },
            Record::Finished { but: Vec::new() },
        ];
        let (mut member, shelf) = read(&log, Shelf::new(NODE), None);
        let standing = member.checkpoint(0);
        let (mut again, _) = read_cut(&standing, &[], shelf, None);
        assert_eq!(again.checkpoint(0), standing);
        let singles = standing.iter().find_map(|record| match record {
            Record::Marked { entries } => Some(entries[0].singles.to_vec()),
            _ => None,
        });
        let is_plain = |record: &Record| match record {
            Record::Remembered { entries } => entries.len() == 1,
            _ => false,
        };
        assert_eq!(singles.is_none(), standing.iter().any(is_plain));
        singles
    };
    assert_eq!(marks(LEVEL_ALONE), Some(vec![KeyspaceId(1)]));
    assert_eq!(marks(LEVEL_ALONE - 1), None);
}

/// L1.
#[test]
fn what_stands_for_a_log_is_what_the_log_was() {
    let (mut first, shelf) = read(&a_log(), Shelf::new(NODE), None);
    assert_eq!(first.applied_to(), at(14).previous(), "below the lowest that is in flight");
    let standing = first.checkpoint(0);
    let (mut second, _) = read_cut(&standing, &[], shelf.folded(first.clock()), None);
    assert_eq!(lines(&second), lines(&first));
    assert_eq!(second.checkpoint(0), standing);
    assert_eq!((second.map(), second.clock()), (first.map(), first.clock()));
    assert_eq!(second.incarnation(), first.incarnation());
    assert!(first.in_flight() >= 4, "{}", first.brief());
}

/// L1.
#[test]
fn pages_and_the_rest_are_the_whole() {
    let (mut member, shelf) = read(&a_log(), Shelf::new(NODE), None);
    let (mut pages, mut after) = (Vec::new(), 0);
    while let Some((page, next)) = member.checkpoint_page(after, 1) {
        pages.push(page);
        after = next;
    }
    assert!(!pages.is_empty());
    pages.extend(member.checkpoint(after));
    let (mut other, _) = read_cut(&pages, &[], shelf.folded(member.clock()), None);
    assert_eq!(other.checkpoint(0), member.checkpoint(0));
}

/// L1.
#[test]
fn a_base_that_is_ahead_of_the_log_changes_nothing() {
    let log = a_log();
    let (first, shelf) = read(&log, Shelf::new(NODE), None);
    let (second, over) = read(&log, shelf.folded(first.applied_to()), None);
    assert_eq!(lines(&second), lines(&first));
    for number in 0..4 {
        let chunk = (blob(number), 0);
        assert_eq!(over.content(&chunk, None), shelf.content(&chunk, None), "{number}");
    }
}

/// A log in which something is applied to a chunk whose base is awaited, and the chunk.
fn a_move() -> (Vec<Record>, ChunkName) {
    let old = first_map(2);
    let newcomer = Newcomer { node: NODE, incarnation: incarnation(1), ..Newcomer::default() };
    let map = old.changed(&Change::Join(vec![newcomer])).unwrap();
    let transaction = transaction(1, 0);
    let known = Remembered { id: transaction.id, ..remembered(&map) };
    let records = vec![
        Record::Map(Arc::new(map.clone())),
        // It is finished with, so nothing else brings it back.
        Record::Recalled { outcomes: vec![known] },
        validated(&map, &transaction, 20),
        Record::Decided { id: transaction.id, at: at(20) },
    ];
    (records, (blob(0), 0))
}

fn moved(broken: Option<Rule>) -> u64 {
    let (records, chunk) = a_move();
    let (mut member, shelf) = read(&records, Shelf::new(NODE), broken);
    assert!(crate::member::Store::is_awaited(&shelf, &chunk));
    let standing = member.checkpoint(0);
    // The copy is of a moment before, and comes after the log was cut.
    let range = ByteRange { start: 0, end: CHUNK };
    let version = ChunkVersion {
        version: at(4),
        bytes: Bytes::from(vec![0; 32]),
        size: Some(None),
        size_version: Timestamp::ZERO,
    };
    let copy = ChunkCopy::new(at(5), range, true, vec![version]);
    let installed = Record::Installed { blob: chunk.0.clone(), chunk: chunk.1, copy };
    let (_, over) = read_cut(&standing, &[installed], shelf.folded(member.clock()), broken);
    over.content(&chunk, None).unwrap().0[0]
}

/// L3.
#[test]
fn what_waits_for_a_base_outlives_the_log_that_had_it() {
    assert_eq!(moved(None), 1);
}

/// L3.
#[test]
fn without_it_what_waits_for_a_base_is_lost_with_the_log() {
    assert_eq!(moved(Some(Rule::L3)), 0);
}

/// Adds one to the first number of a blob.
fn addition(id: u128, number: u8) -> Arc<Transaction> {
    let mut transaction = Transaction::clone(&transaction(id, number));
    let transform = Transform::new(TransformKind::Add, Number::U64(1)).unwrap();
    transaction.blobs[0].operations = vec![Operation::Apply { offset: 0, transform }];
    Arc::new(transaction)
}

/// What a transaction answered that the log has as applied, over a base that has let go of its
/// chunk. One before it is decided, and applied, later than it was: that it would not come in
/// between was only heard of others.
fn answered_late(broken: Option<Rule>) -> Outcomes {
    let map = first_map(3);
    let (earlier, later) = (transaction(1, 0), addition(2, 0));
    let outcome = Outcome::Value(Number::U64(951));
    let answered = Outcomes::from(vec![Answered { blob: 0, operation: 0, outcome }]);
    let log = [
        Record::Map(Arc::new(map.clone())),
        validated(&map, &earlier, 12),
        validated(&map, &later, 14),
        Record::Decided { id: TransactionId(2), at: at(14) },
        Record::Answered { id: TransactionId(2), outcomes: answered },
        Record::Decided { id: TransactionId(1), at: at(16) },
    ];
    let (member, _) = read(&log, Shelf::new(NODE), broken);
    member.commit.answers(TransactionId(2)).cloned().unwrap_or_default()
}

fn value(outcomes: &Outcomes) -> Option<&Outcome> {
    outcomes.first().map(|answered| &answered.outcome)
}

/// L4.
#[test]
fn what_was_answered_stays_when_it_is_applied_again_to_a_chunk_that_is_gone() {
    let answered = answered_late(None);
    assert_eq!(value(&answered), Some(&Outcome::Value(Number::U64(951))));
}

/// L4.
#[test]
fn without_l4_it_is_computed_again_on_nothing() {
    let answered = answered_late(Some(Rule::L4));
    assert_eq!(value(&answered), Some(&Outcome::Value(Number::U64(1))));
}

/// A recipient missed a map, so that it begins anew with what the lists of others have. What is in
/// flight may be why a chunk is on none: it says nothing of that when it is applied (F4), with a
/// log that was cut in between, too.
#[test]
fn what_may_be_why_a_chunk_is_on_no_list_answers_nothing_after_the_log_was_cut() {
    let newcomer = Newcomer { node: NODE, incarnation: incarnation(1), ..Newcomer::default() };
    let first = first_map(2).changed(&Change::Join(vec![newcomer])).unwrap();
    let (node, has_disk) = (NodeId(0), true);
    let back = Change::Return { node, incarnation: incarnation(2), has_disk, level: LEVEL };
    let later = first.changed(&Change::Down(node)).unwrap().changed(&back).unwrap();
    assert!(later.moved.0 > first.epoch.0 + 1, "a map was missed");
    let addition = addition(1, 0);
    let log = [
        Record::Map(Arc::new(first.clone())),
        validated(&first, &addition, 12),
        Record::Map(Arc::new(later)),
    ];
    let decided = [Record::Decided { id: addition.id, at: at(12) }];
    let answered = |member: &Member| member.commit.answers(addition.id).cloned();
    let (mut member, shelf) = read(&log, Shelf::new(NODE), None);
    let standing = member.checkpoint(0);
    let whole = [&log[..], &decided].concat();
    let (uncut, _) = read(&whole, Shelf::new(NODE), None);
    assert_eq!(answered(&uncut), None);
    let (cut, _) = read_cut(&standing, &decided, shelf.folded(member.clock()), None);
    assert_eq!(answered(&cut), None);
}
