//! What is required of a blob before a transaction touches it (C1), and who waits for whom then.

use tyr_types::Existence::{Absent, Present};
use tyr_types::{Existence, Expected, OperationId, Relation};

use super::*;

fn expect(existence: Existence) -> Operation {
    Operation::Expect { existence }
}

fn compare_number(relation: Relation, value: u64) -> Operation {
    let expected = Expected::Number { relation, value: Number::U64(value) };
    Operation::Compare { offset: 8, expected }
}

/// C1.
#[test]
fn a_compare_waits_for_the_write_in_flight_and_then_looks() {
    for (is_equal, answer) in [(true, "persist 2 at 0.2.0"), (false, "reply 2: Conflict")] {
        let mut node = Node::alone();
        node.submit(transaction(1, vec![write(0, 8)]));
        assert!(node.submit(transaction(2, vec![compare(4, 4), write(4, 4)])).is_empty());
        node.view.is_equal = is_equal;
        assert_eq!(node.persisted(1), ["apply 1 at 0.1.0", "reply 1: 0.1.0", answer]);
    }
}

/// C1.
#[test]
fn an_expectation_waits_for_the_write_in_flight_and_then_looks() {
    for (size, answer) in [(None, "persist 2 at 0.2.0"), (Some(8), "reply 2: AlreadyExists")] {
        let mut node = Node::alone();
        node.submit(transaction(1, vec![write(0, 8)]));
        assert!(node.submit(transaction(2, vec![expect(Absent), write(50, 4)])).is_empty());
        node.view.size = size;
        assert_eq!(node.persisted(1), ["apply 1 at 0.1.0", "reply 1: 0.1.0", answer]);
    }
}

/// C2.
#[test]
fn a_write_waits_for_the_validated_expectation_until_that_is_decided() {
    let mut node = Node::of_three(0);
    node.submit(transaction(1, vec![expect(Absent), write(50, 8)]));
    node.persisted(1);
    assert!(node.submit(transaction(2, vec![write(4, 8)])).is_empty());
    let told = node.backward(1, Decision::Commit(time(9, 2)));
    assert_eq!(told.last().unwrap(), "persist 2 at 0.10.0");
}

/// C1.
#[test]
fn a_condition_that_does_not_hold_aborts_with_what_the_caller_can_do() {
    let at = |end| Operation::Append { payload: Payload::Inline(bytes(1)), expected: Some(end) };
    let cases = [
        (vec![Operation::Create], Some(0), "reply 1: AlreadyExists"),
        (vec![Operation::Create], None, "persist 1 at 0.1.0"),
        (vec![expect(Absent)], Some(0), "reply 1: AlreadyExists"),
        (vec![expect(Absent)], None, "reply 1: 0.1.0"),
        (vec![expect(Present)], None, "reply 1: NotFound"),
        (vec![expect(Present)], Some(0), "reply 1: 0.1.0"),
        (vec![expect(Absent), write(0, 1), expect(Present)], None, "persist 1 at 0.1.0"),
        (vec![write(0, 1), expect(Absent)], None, "reply 1: AlreadyExists"),
        (vec![Operation::Delete, expect(Absent)], Some(3), "persist 1 at 0.1.0"),
        (vec![Operation::Delete, expect(Present)], Some(3), "reply 1: NotFound"),
        (vec![at(9)], Some(10), "reply 1: Conflict"),
        (vec![at(10)], Some(10), "persist 1 with end 10"),
        (vec![at(0)], None, "persist 1 with end 0"),
        (vec![Operation::Delete, Operation::Create], Some(3), "persist 1 at 0.1.0"),
        (vec![Operation::Truncate { len: 4 }, at(4), at(5)], Some(10), "persist 1 with end 4"),
        (vec![write(0, 20), at(10)], Some(10), "reply 1: Conflict"),
    ];
    for (operations, size, answer) in cases {
        let mut node = Node::alone();
        node.view.size = size;
        let told = node.submit(transaction(1, operations.clone()));
        assert_eq!(told, [answer], "{operations:?} on {size:?}");
    }
}

/// C1: a number is held to another once nothing in flight can change it, and one that cannot be
/// read is in no relation to any.
#[test]
fn a_number_is_compared_after_the_write_in_flight() {
    let (commits, refused) = ("persist 2 at 0.2.0", "reply 2: Conflict");
    for (relation, found, answer) in [
        (Relation::GreaterOrEqual, Some(40), commits),
        (Relation::GreaterOrEqual, Some(39), refused),
        (Relation::Less, Some(39), commits),
        (Relation::NotEqual, Some(40), refused),
        (Relation::NotEqual, None, refused),
    ] {
        let mut node = Node::alone();
        node.submit(transaction(1, vec![write(15, 1)]));
        let told = node.submit(transaction(2, vec![compare_number(relation, 40), write(50, 4)]));
        assert!(told.is_empty());
        node.view.number = found.map(Number::U64);
        let told = node.persisted(1);
        assert_eq!(told, ["apply 1 at 0.1.0", "reply 1: 0.1.0", answer], "{relation:?} {found:?}");
    }
}

/// C12.
#[test]
fn an_abort_for_a_condition_says_which() {
    let number = |value| compare_number(Relation::Equal, value);
    for (operations, place) in [
        (vec![write(0, 1), Operation::Create, compare(0, 4)], 1),
        (vec![expect(Present), write(9, 1), expect(Absent)], 2),
        (vec![number(7), number(7), number(8), number(9)], 2),
    ] {
        let view = Applied { size: Some(30), number: Some(Number::U64(7)), ..EMPTY };
        let entry = BlobOperations { blob: blob("a"), operations };
        let abort =
            validate::look(Rules::default(), 5, &entry, &view, true, |share, visit| visit(share));
        let told = abort.unwrap_err().operation;
        assert_eq!(told, Some(OperationId { blob: 5, operation: place }), "{entry:?}");
    }
}

/// C12 taken away: of an abort for any of several conditions there is nothing but the blob.
#[test]
fn without_c12_an_abort_does_not_say_which_condition_it_is_for() {
    for (rules, place) in [(Rules::default(), Some(1)), (Rules { broken: Some(Rule::C12) }, None)] {
        let operations = vec![expect(Present), expect(Absent), expect(Present)];
        let (entry, view) =
            (BlobOperations { blob: blob("a"), operations }, Applied { size: Some(30), ..EMPTY });
        let abort = validate::look(rules, 5, &entry, &view, true, |share, visit| visit(share));
        let abort = abort.unwrap_err();
        assert_eq!((abort.kind, &abort.blob), (ErrorKind::AlreadyExists, &Some(blob("a"))));
        assert_eq!(abort.operation, place.map(|operation| OperationId { blob: 5, operation }));
    }
}
