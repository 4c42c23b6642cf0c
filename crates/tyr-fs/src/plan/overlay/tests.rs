//! Changes that are bundled give the bytes that they give one by one, and conditions are answered
//! as they would be there.

use proptest::prelude::*;
use tyr::{Bytes, Number, Relation, Timestamp, Transform};

use super::*;
use crate::layout::key::Blob;

fn blob() -> Blob {
    Blob::inode(77)
}

fn base(bytes: &[u8], part: &Part) -> Option<Found> {
    let end = (part.end.min(bytes.len() as u64)) as usize;
    let start = (part.start as usize).min(end);
    let version = Timestamp { clock: 5, ..Timestamp::ZERO };
    let size = bytes.len() as u64;
    Some(Found { size, version, bytes: Bytes::copy_from_slice(&bytes[start..end]) })
}

/// What a change does to all bytes of a blob.
fn naive(bytes: &mut Option<Vec<u8>>, change: &Change) {
    let mut all = bytes.take().unwrap_or_default();
    let reach = |all: &mut Vec<u8>, end: usize| all.resize(all.len().max(end), 0);
    match change {
        Change::Put(_, data) => all = data.to_vec(),
        Change::Write(_, offset, data) => {
            let (start, end) = (*offset as usize, *offset as usize + data.len());
            reach(&mut all, end);
            all[start..end].copy_from_slice(data);
        }
        Change::Append(_, data) => all.extend_from_slice(data),
        Change::Truncate(_, len) => all.resize(*len as usize, 0),
        Change::Clear(_, offset, len) => {
            let end = all.len().min((offset + len) as usize);
            let start = end.min(*offset as usize);
            all[start..end].fill(0);
        }
        Change::Delete(_) => return,
        Change::Apply(_, offset, transform) => {
            let (start, end) = (*offset as usize, *offset as usize + transform.width());
            reach(&mut all, end);
            transform.apply(&mut all[start..end]);
        }
    }
    *bytes = Some(all);
}

fn change() -> impl Strategy<Value = Change> {
    let data = || proptest::collection::vec(any::<u8>(), 0..12).prop_map(Bytes::from);
    let at = || 0_u64..40;
    let operand = any::<i64>().prop_map(Number::I64);
    prop_oneof![
        1 => data().prop_map(|data| Change::Put(blob(), data)),
        4 => (at(), data()).prop_map(|(at, data)| Change::Write(blob(), at, data)),
        2 => data().prop_map(|data| Change::Append(blob(), data)),
        1 => at().prop_map(|len| Change::Truncate(blob(), len)),
        4 => (0_u64..4, operand).prop_map(|(at, by)| {
            Change::Apply(blob(), at * 8, Transform::add(by))
        }),
        2 => (0_u64..4, any::<i64>()).prop_map(|(at, by)| {
            Change::Apply(blob(), at * 8, Transform::max(Number::I64(by)))
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_seen_is_what_the_changes_make(
        stored in proptest::collection::vec(any::<u8>(), 0..40),
        changes in proptest::collection::vec(change(), 0..12),
        start in 0_u64..50,
        len in 0_u64..50,
    ) {
        let mut overlay = Overlay::default();
        let mut all = Some(stored.clone());
        for change in &changes {
            // A clear of a blob that is not there makes none.
            naive(&mut all, change);
            overlay.change(change.clone());
        }
        let part = start..start + len;
        let seen = overlay.see(&blob(), part, |part| Ok(base(&stored, &part))).unwrap();
        let all = all.unwrap();
        let (from, to) = ((start as usize).min(all.len()), ((start + len) as usize).min(all.len()));
        let seen = seen.unwrap();
        prop_assert_eq!(seen.size, all.len() as u64);
        prop_assert_eq!(&seen.bytes[..], &all[from..to]);
        // What is left of the changes does the same.
        let (_, left) = overlay.into_parts();
        prop_assert!(left.len() <= changes.len());
        let mut again = Some(stored);
        for change in &left {
            naive(&mut again, change);
        }
        prop_assert_eq!(again.unwrap(), all);
    }
}

#[test]
fn counters_are_added_up_and_last_writes_stay() {
    let mut overlay = Overlay::default();
    for round in 0..1_000_u64 {
        overlay.change(Change::Apply(blob(), 8, Transform::add(Number::I64(1))));
        let now = Number::I64(round as i64);
        overlay.change(Change::Apply(blob(), 16, Transform::max(now)));
        overlay.change(Change::Write(blob(), 24, Bytes::copy_from_slice(&round.to_le_bytes())));
    }
    let (_, changes) = overlay.into_parts();
    assert_eq!(changes.len(), 3);
    assert!(changes.contains(&Change::Apply(blob(), 8, Transform::add(Number::I64(1_000)))));
}

#[test]
fn a_condition_on_changed_bytes_is_answered_here_and_the_store_has_to_stay() {
    let stored = [3, 0, 0, 0, 0, 0, 0, 0, 9];
    let mut overlay = Overlay::default();
    overlay.change(Change::Apply(blob(), 0, Transform::add(Number::I64(-3))));
    let mut read = |_: &Blob, part: Part| Ok(base(&stored, &part));
    let empty = |relation| Condition::Number(blob(), 0, relation, Number::I64(0));
    assert!(overlay.require(empty(Relation::Equal), &mut read).unwrap());
    assert!(!overlay.require(empty(Relation::Greater), &mut read).unwrap());
    // One on other bytes goes to the store as it is.
    let other = Condition::Bytes(blob(), 8, Bytes::from_static(&[7]));
    assert!(overlay.require(other.clone(), &mut read).unwrap());
    let (conditions, _) = overlay.into_parts();
    let was = Condition::Bytes(blob(), 0, Bytes::copy_from_slice(&stored[..8]));
    assert_eq!(conditions, [was, other]);
}

#[test]
fn what_was_put_or_made_here_depends_on_nothing() {
    let mut overlay = Overlay::default();
    let mut nothing = |_: &Blob, _: Part| -> Result<Option<Found>> { panic!("it reads nothing") };
    overlay.change(Change::Put(blob(), Bytes::from_static(b"here")));
    overlay.add_fresh(78);
    let holds = [
        (Condition::Bytes(blob(), 1, Bytes::from_static(b"er")), true),
        (Condition::Bytes(blob(), 1, Bytes::from_static(b"xx")), false),
        (Condition::Unchanged(blob(), Timestamp::MAX), true),
        (Condition::Absent(blob()), false),
        (Condition::Absent(Blob::inode(78)), true),
    ];
    for (condition, answer) in holds {
        assert_eq!(overlay.require(condition, &mut nothing).unwrap(), answer);
    }
    overlay.change(Change::Delete(blob()));
    assert!(overlay.require(Condition::Absent(blob()), &mut nothing).unwrap());
    assert!(overlay.into_parts().0.is_empty());
}

#[test]
fn what_was_extended_out_of_nothing_is_not_to_be_there_before() {
    let mut overlay = Overlay::default();
    overlay.change(Change::Truncate(blob(), 100));
    let seen = overlay.see(&blob(), 0..4, |_| Ok(None)).unwrap().unwrap();
    let mut nothing = |_: &Blob, _: Part| Ok(None);
    let unchanged = Condition::Unchanged(blob(), seen.version);
    assert!(overlay.require(unchanged, &mut nothing).unwrap());
    assert_eq!(overlay.into_parts().0, [Condition::Absent(blob())]);
}
