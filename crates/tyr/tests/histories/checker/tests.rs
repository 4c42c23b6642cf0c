//! Histories that cannot be, each made by hand, and some that can.

use super::*;

fn append(object: Object, value: Value) -> Action {
    Action::Append { object, value, position: None }
}

fn read(object: Object, list: &[Value]) -> Action {
    Action::Read { object, seen: Seen::List(list.to_vec()) }
}

/// A committed transaction from `invoked` to `returned`.
fn entry((invoked, returned): (u64, u64), actions: &[Action]) -> Entry {
    let place = Place::Strict;
    Entry { place, invoked, returned, is_committed: true, actions: actions.to_vec() }
}

fn names(entries: &[Entry]) -> Vec<&'static str> {
    let history = History { entries: entries.to_vec(), ..History::default() };
    check(&history).iter().map(Anomaly::name).collect()
}

#[test]
fn a_history_in_order_is_fine() {
    let entries = [
        entry((1, 2), &[append(0, 1), append(1, 1)]),
        entry((3, 6), &[read(0, &[1]), append(0, 2)]),
        entry((4, 5), &[read(0, &[1]), read(1, &[1])]),
        entry((7, 8), &[append(0, 3), read(0, &[1, 2, 3]), read(1, &[1])]),
        entry((9, 10), &[read(0, &[1, 2, 3]), read(1, &[1])]),
    ];
    assert_eq!(names(&entries), Vec::<&str>::new());
}

#[test]
fn two_updates_of_the_same_version_are_a_lost_update() {
    let entries = [
        entry((1, 10), &[read(0, &[]), append(0, 1)]),
        entry((2, 11), &[read(0, &[]), append(0, 2)]),
        entry((12, 13), &[read(0, &[1, 2])]),
    ];
    assert_eq!(names(&entries), ["lost update"]);
}

#[test]
fn a_value_of_an_aborted_transaction_is_a_dirty_read() {
    let mut aborted = entry((1, 2), &[append(0, 1)]);
    aborted.is_committed = false;
    assert_eq!(names(&[aborted.clone()]), Vec::<&str>::new());
    assert_eq!(names(&[aborted, entry((3, 4), &[read(0, &[1])])]), ["dirty read"]);
}

#[test]
fn a_value_that_was_seen_once_and_is_not_in_the_end_is_found() {
    let entries = [
        entry((1, 4), &[append(0, 1)]),
        entry((2, 3), &[read(0, &[1])]),
        entry((5, 6), &[append(0, 2)]),
        entry((7, 8), &[append(0, 3)]),
        entry((9, 10), &[read(0, &[2, 3])]),
    ];
    assert_eq!(names(&entries), ["lost write", "dirty read"]);
}

#[test]
fn two_transactions_that_do_not_see_each_other_are_write_skew() {
    let entries = [
        entry((1, 10), &[read(0, &[]), append(1, 1)]),
        entry((2, 11), &[read(1, &[]), append(0, 2)]),
        entry((12, 13), &[read(0, &[2]), read(1, &[1])]),
    ];
    assert_eq!(names(&entries), ["write skew"]);
}

#[test]
fn a_read_that_misses_what_was_acknowledged_is_stale() {
    let stale = [
        entry((1, 2), &[append(0, 1)]),
        entry((3, 4), &[read(0, &[])]),
        entry((5, 6), &[read(0, &[1])]),
    ];
    assert_eq!(names(&stale), ["stale read"]);
    let mut snapshot = stale.clone();
    snapshot[1].place = Place::Snapshot;
    assert_eq!(names(&snapshot), Vec::<&str>::new());
    let mut fresh = stale.clone();
    fresh[1].place = Place::Fresh;
    assert_eq!(names(&fresh), ["stale read"]);
}

#[test]
fn half_of_a_transaction_is_a_fractured_read() {
    let entries = [
        entry((1, 10), &[append(0, 1), append(1, 1)]),
        Entry { place: Place::Snapshot, ..entry((2, 9), &[read(0, &[1]), read(1, &[])]) },
        entry((11, 12), &[read(0, &[1]), read(1, &[1])]),
    ];
    assert_eq!(names(&entries), ["fractured read"]);
}

#[test]
fn an_order_of_writes_against_real_time_is_found() {
    let entries = [
        entry((1, 2), &[append(0, 1)]),
        entry((3, 4), &[append(0, 2)]),
        entry((5, 6), &[read(0, &[2, 1])]),
    ];
    assert_eq!(names(&entries), ["order against real time"]);
}

#[test]
fn writes_in_opposite_orders_run_in_a_circle() {
    let entries = [
        entry((1, 10), &[append(0, 1), append(1, 1)]),
        entry((2, 11), &[append(0, 2), append(1, 2)]),
        entry((12, 13), &[read(0, &[1, 2]), read(1, &[2, 1])]),
    ];
    assert_eq!(names(&entries), ["circle of writes"]);
}

#[test]
fn transactions_that_see_each_other_run_in_a_circle() {
    let entries = [
        entry((1, 10), &[append(0, 1), read(1, &[2])]),
        entry((2, 11), &[append(1, 2), read(0, &[1])]),
        entry((12, 13), &[read(0, &[1]), read(1, &[2])]),
    ];
    assert_eq!(names(&entries), ["circle of reads"]);
}

#[test]
fn reads_repeat_and_see_their_own_writes() {
    let two_versions = [
        entry((1, 10), &[append(0, 1)]),
        entry((2, 9), &[read(0, &[]), read(0, &[1])]),
        entry((11, 12), &[read(0, &[1])]),
    ];
    assert!(names(&two_versions).contains(&"unrepeatable read"));
    let own = [entry((1, 2), &[append(0, 1), read(0, &[])]), entry((3, 4), &[read(0, &[1])])];
    assert_eq!(names(&own), ["unrepeatable read"]);
}

#[test]
fn lists_that_are_no_prefix_of_each_other_are_forked() {
    let entries = [
        entry((1, 10), &[append(0, 1)]),
        entry((2, 11), &[append(0, 2)]),
        entry((3, 4), &[read(0, &[2])]),
        entry((12, 13), &[read(0, &[1, 2])]),
    ];
    assert_eq!(names(&entries), ["forked order"]);
}

#[test]
fn answers_must_be_where_the_value_is() {
    let said = Action::Append { object: 0, value: 2, position: Some(0) };
    let entries = [
        entry((1, 2), &[append(0, 1)]),
        entry((3, 4), &[said]),
        entry((5, 6), &[read(0, &[1, 2])]),
    ];
    assert_eq!(names(&entries), ["wrong answer"]);
}

#[test]
fn counts_and_last_values_are_reads_of_a_given_order() {
    let seen = |seen: Seen| Action::Read { object: 0, seen };
    let entries = |read: Seen| History {
        entries: vec![
            entry((1, 2), &[append(0, 7)]),
            entry((3, 4), &[append(0, 8)]),
            entry((5, 6), &[seen(read)]),
        ],
        orders: [(0, vec![7, 8])].into(),
    };
    let names = |seen| check(&entries(seen)).iter().map(Anomaly::name).collect::<Vec<_>>();
    assert_eq!(names(Seen::Count(2)), Vec::<&str>::new());
    assert_eq!(names(Seen::Last(Some(8))), Vec::<&str>::new());
    assert_eq!(names(Seen::Count(1)), ["stale read"]);
    assert_eq!(names(Seen::Last(Some(7))), ["stale read"]);
    assert_eq!(names(Seen::Last(None)), ["stale read"]);
    assert_eq!(names(Seen::Last(Some(9))), ["dirty read"]);
}

#[test]
fn a_snapshot_may_show_unrelated_transactions_against_real_time() {
    let entries = [
        entry((1, 10), &[append(0, 1)]),
        entry((2, 3), &[append(1, 2)]),
        entry((4, 5), &[read(0, &[])]),
        Entry { place: Place::Snapshot, ..entry((6, 7), &[read(0, &[1]), read(1, &[])]) },
        entry((11, 12), &[read(0, &[1]), read(1, &[2])]),
    ];
    assert_eq!(names(&entries), Vec::<&str>::new());
    let mut strict = entries.clone();
    strict[3].place = Place::Strict;
    assert_eq!(names(&strict), ["stale read"]);
    let mut fresh = entries;
    fresh[3].place = Place::Fresh;
    assert_eq!(names(&fresh), ["stale read"]);
}
