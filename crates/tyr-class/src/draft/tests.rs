//! Calls in drafts of a draft do what calls do that are run alone.

use proptest::prelude::*;
use tyr_types::{Bytes, ErrorKind, Number, Result, Transform};

use super::Draft;
use crate::context::Context;
use crate::limits::DRAFT_READ_BYTES_MAX;
use crate::testing::MemoryContext;

#[derive(Clone, Debug)]
enum Step {
    Read(u64, u64),
    Write(u64, Vec<u8>),
    Append(Vec<u8>),
    Truncate(u64),
    Create,
    Remove,
    Add(u64),
    Size,
    MapRead(u64, u64),
    MapWrite(u64, Vec<u8>),
    MapTruncate(u64),
    MapSize,
}

/// What a call does, and whether it fails after that.
type Call = (Vec<Step>, bool);

fn step() -> impl Strategy<Value = Step> {
    let (at, len) = (0_u64..40, 0_u64..20);
    let bytes = || prop::collection::vec(1_u8..=255, 0..12);
    prop_oneof![
        6 => (at.clone(), len.clone()).prop_map(|(at, len)| Step::Read(at, len)),
        6 => (at.clone(), bytes()).prop_map(|(at, data)| Step::Write(at, data)),
        3 => bytes().prop_map(Step::Append),
        3 => at.clone().prop_map(Step::Truncate),
        1 => Just(Step::Create),
        1 => Just(Step::Remove),
        2 => at.clone().prop_map(Step::Add),
        2 => Just(Step::Size),
        3 => (at.clone(), len).prop_map(|(at, len)| Step::MapRead(at, len)),
        3 => (at.clone(), bytes()).prop_map(|(at, data)| Step::MapWrite(at, data)),
        1 => at.prop_map(Step::MapTruncate),
        1 => Just(Step::MapSize),
    ]
}

/// What a step answers, in one form for all.
fn run(context: &mut dyn Context, step: &Step) -> Result<(u64, Bytes)> {
    let of_bytes = |bytes: Bytes| (0, bytes);
    let of_number = |number: u64| (number, Bytes::new());
    Ok(match step {
        Step::Read(at, len) => of_bytes(context.read(*at, *len)?),
        Step::Write(at, data) => of_number(context.write(*at, data).map(|()| 0)?),
        Step::Append(data) => of_number(context.append(data)?),
        Step::Truncate(size) => of_number(context.truncate(*size).map(|()| 0)?),
        Step::Create => of_number(context.create()?.into()),
        Step::Remove => of_number(context.remove()?.into()),
        Step::Add(at) => match context.transform(*at, Transform::add(Number::U64(7)))? {
            Number::U64(sum) => of_number(sum),
            other => panic!("{other:?} is of another type"),
        },
        Step::Size => of_number(context.size()?.map_or(0, |size| size + 1)),
        Step::MapRead(at, len) => of_bytes(context.map_read(*at, *len)?),
        Step::MapWrite(at, data) => of_number(context.map_write(*at, data).map(|()| 0)?),
        Step::MapTruncate(size) => of_number(context.map_truncate(*size).map(|()| 0)?),
        Step::MapSize => of_number(context.map_size()?),
    })
}

fn begun(blob: Option<Vec<u8>>, map: Vec<u8>) -> MemoryContext {
    MemoryContext { blob, map, ..MemoryContext::new() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(2_000)))]

    #[test]
    fn calls_see_those_before_and_what_fails_leaves_nothing(
        blob in prop::option::of(prop::collection::vec(1_u8..=255, 0..30)),
        map in prop::collection::vec(1_u8..=255, 0..30),
        calls in prop::collection::vec(
            (prop::collection::vec(step(), 0..8), prop::bool::weighted(0.3)), 0..8),
    ) {
        let calls: Vec<Call> = calls;
        let (mut model, mut drafted) = (begun(blob.clone(), map.clone()), begun(blob, map));
        let mut all = Draft::new(&mut drafted);
        for (steps, is_failing) in &calls {
            let before = (model.blob.clone(), model.map.clone());
            let mut one = Draft::new(&mut all);
            for step in steps {
                let wanted = run(&mut model, step).unwrap();
                prop_assert_eq!(run(&mut one, step).unwrap(), wanted, "{:?}", step);
            }
            match is_failing {
                true => (model.blob, model.map) = before,
                false => one.hand_on().unwrap(),
            }
        }
        let is_changed = all.is_changed();
        all.hand_on().unwrap();
        prop_assert_eq!(&drafted.blob, &model.blob);
        prop_assert_eq!(&drafted.map, &model.map);
        prop_assert_eq!(drafted.has_written, is_changed, "what says it has nothing does nothing");
    }
}

#[test]
fn the_same_bytes_are_read_once_and_not_behind_the_end() {
    let mut below = begun(Some(vec![7; 100]), Vec::new());
    below.accesses_left = Some(3);
    let mut draft = Draft::new(&mut below);
    assert_eq!(draft.read(10, 30).unwrap(), vec![7; 30]);
    // Bytes 40 to 99, of 160 that are asked for; then the size.
    assert_eq!(draft.read(20, 180).unwrap(), vec![7; 80]);
    draft.write(150, b"x").unwrap();
    assert_eq!(draft.read(99, 60).unwrap().len(), 52);
    assert_eq!(draft.read(0, 9).unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
fn what_was_changed_often_is_handed_on_once() {
    let mut below = begun(Some(vec![7; 100]), Vec::new());
    // A cut, and a write.
    below.accesses_left = Some(2);
    let mut draft = Draft::new(&mut below);
    for number in 0..1_000 {
        draft.truncate(0).unwrap();
        for digit in number.to_string().bytes() {
            draft.append(&[digit]).unwrap();
        }
    }
    assert_eq!(draft.written(), 3);
    draft.hand_on().unwrap();
    assert_eq!(below.blob.as_deref(), Some(&b"999"[..]));
}

#[test]
fn what_was_read_is_kept_within_a_bound() {
    const PART: usize = 1 << 20;
    let len = 3 * DRAFT_READ_BYTES_MAX;
    let mut below = begun(Some(vec![7; len]), Vec::new());
    let mut draft = Draft::new(&mut below);
    for at in (0..len).step_by(PART) {
        assert_eq!(draft.read(at as u64, PART as u64).unwrap().len(), PART);
        assert!(draft.blob.read <= DRAFT_READ_BYTES_MAX + PART);
        draft.write(at as u64, b"1").unwrap();
    }
    assert_eq!(draft.written(), len / PART);
    assert_eq!(draft.read(0, 2).unwrap(), vec![b'1', 7], "what was written is not let go of");
}
