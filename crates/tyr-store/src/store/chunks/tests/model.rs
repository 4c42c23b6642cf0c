//! One chunk against a model: what is done to it in the order that C6 allows, some of it late, and
//! folds that begin and end in between, read at any timestamp.

use super::*;

/// What is done to the chunk, at even times; `late` ones come after the next one.
#[derive(Clone, Debug)]
enum Step {
    Write { offset: u64, len: u64, is_late: bool },
    Append { len: u64 },
    Truncate { len: u64 },
    Delete,
    Add { offset: u64 },
    Fold,
    Forget,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..200u64, prop_oneof![1 => Just(0), 5 => 1..40u64], any::<bool>())
            .prop_map(|(offset, len, is_late)| Step::Write { offset, len, is_late }),
        2 => (1..40u64).prop_map(|len| Step::Append { len }),
        1 => (0..250u64).prop_map(|len| Step::Truncate { len }),
        1 => Just(Step::Delete),
        3 => (0..200u64).prop_map(|offset| Step::Add { offset }),
        1 => Just(Step::Fold),
        1 => Just(Step::Forget),
    ];
    prop::collection::vec(step, 1..40)
}

fn operation(step: &Step, time: u64) -> Option<Operation> {
    let filled = |len: u64| Payload::Inline(Bytes::from(vec![time as u8 | 1; len as usize]));
    match step {
        Step::Write { offset, len, .. } => {
            Some(Operation::Write { offset: SIZE + offset, payload: filled(*len) })
        }
        Step::Append { len } => Some(Operation::Append { payload: filled(*len), expected: None }),
        Step::Truncate { len } => Some(Operation::Truncate { len: SIZE + len }),
        Step::Delete => Some(Operation::Delete),
        Step::Add { offset } => {
            let transform = Transform::add(Number::U64(time));
            Some(Operation::Apply { offset: SIZE + offset, transform })
        }
        Step::Fold | Step::Forget => None,
    }
}

/// What a later chunk holds after an operation.
fn expect(held: &mut Vec<u8>, operation: &Operation) {
    let put = |held: &mut Vec<u8>, offset: u64, bytes: &[u8]| {
        let end = (offset - SIZE) as usize + bytes.len();
        held.resize(held.len().max(end), 0);
        held[end - bytes.len()..end].copy_from_slice(bytes);
    };
    match operation {
        Operation::Write { offset, payload: Payload::Inline(bytes) } => put(held, *offset, bytes),
        Operation::Append { payload: Payload::Inline(bytes), .. } => {
            let offset = SIZE + held.len() as u64;
            put(held, offset, bytes);
        }
        Operation::Truncate { len } => held.resize((len - SIZE) as usize, 0),
        Operation::Delete => held.clear(),
        Operation::Apply { offset, transform } => {
            let from = (offset - SIZE) as usize;
            held.resize(held.len().max(from + transform.width()), 0);
            transform.apply(&mut held[from..from + transform.width()]);
        }
        other => panic!("the test does no {other:?}"),
    }
}

/// A fold whose moment is chosen. It begins when all that is below is applied, and what is applied
/// until it ends is above.
struct UnderWay {
    when: u64,
    fold: Option<Fold>,
}

/// Whether a write overlaps nothing that the next step does. One of nothing claims the byte before
/// it (C4).
fn may_be_late(step: &Step, next: Option<&Step>) -> bool {
    match (step, next) {
        (
            Step::Write { offset, len: len @ 1.., is_late: true },
            Some(Step::Write { offset: other, len: its, .. }),
        ) => {
            let its_start = if *its == 0 { other.saturating_sub(1) } else { *other };
            offset + len <= its_start || other + its <= *offset
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(200)))]

    #[test]
    fn every_version_reads_as_it_was_or_is_too_old(
        steps in steps(),
        back in 0..12u64,
        in_use in prop::collection::btree_set(0..80u64, 0..4),
    ) {
        let store = store();
        let listed: Vec<Timestamp> = in_use.iter().map(|when| at(*when)).collect();
        let mut base_at = 0;
        let mut held = Vec::new();
        let mut versions: BTreeMap<u64, Vec<u8>> = BTreeMap::from([(0, Vec::new())]);
        let mut floor = 0;
        let mut under_way: Option<UnderWay> = None;
        let mut kept_back: Option<(Operation, u64)> = None;
        for (number, step) in steps.iter().enumerate() {
            let time = 2 * (number as u64 + 1);
            match operation(step, time) {
                Some(operation) => {
                    expect(&mut held, &operation);
                    versions.insert(time, held.clone());
                    floor = floor.max(time.saturating_sub(2 * back));
                    let is_operation = |step: &&Step| !matches!(step, Step::Fold | Step::Forget);
                    let next = steps[number + 1..].iter().find(is_operation);
                    if may_be_late(step, next) && kept_back.is_none() {
                        kept_back = Some((operation, time));
                        continue;
                    }
                    let from = kept_back.as_ref().map_or(floor, |(_, late)| floor.min(*late - 1));
                    let folded = under_way.as_ref().map_or(Timestamp::MAX, |it| at(it.when));
                    let readers = Readers::new(&listed).and_from(at(from)).and_at(folded);
                    apply_near(&store, &operation, time, readers);
                    if let Some((late, when)) = kept_back.take() {
                        apply_near(&store, &late, when, readers);
                    }
                    if number % 3 == 0 {
                        store.recent().collect_chunks(1, |_| readers);
                    }
                }
                None if matches!(step, Step::Fold) && under_way.is_none() => {
                    under_way = Some(UnderWay { when: time, fold: None });
                }
                None if kept_back.is_some() => {}
                None if matches!(step, Step::Fold) => match under_way.take() {
                    Some(UnderWay { when, fold: None }) if number % 2 == 0 => {
                        let fold = Some(store.begin_fold(at(when), store.take_dead()));
                        under_way = Some(UnderWay { when, fold });
                    }
                    Some(UnderWay { when, fold }) => {
                        let begin = || store.begin_fold(at(when), store.take_dead());
                        finish(&store, fold.unwrap_or_else(begin));
                        let base = store.base().attributes(&stored_name(&blob(), 1)).unwrap();
                        let (_, then) = versions.range(..=when).next_back().unwrap();
                        prop_assert_eq!(base.map_or(0, |base| base.size), then.len() as u64);
                        (floor, base_at) = (floor.max(when), when);
                    }
                    None => unreachable!("its moment was chosen"),
                },
                None => {
                    store.recent().shrink(0, usize::MAX);
                }
            }
        }
        prop_assert!(kept_back.is_none() || steps.len() > 1);
        if let Some((late, when)) = kept_back.take() {
            let readers = Readers::new(&listed).and_from(at(floor.min(when - 1)));
            apply_near(&store, &late, when, readers);
        }
        prop_assert_eq!(&read(&store, 1, None).unwrap().bytes, &held);
        for when in 0..2 * steps.len() as u64 + 2 {
            let (_, expected) = versions.range(..=when).next_back().unwrap();
            match read(&store, 1, Some(when)) {
                Ok(seen) => prop_assert_eq!(&seen.bytes, expected, "at {}, floor {}", when, floor),
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::SnapshotTooOld);
                    prop_assert!(when < floor, "at {}, floor {}: {}", when, floor, error);
                    let is_kept = base_at <= when && in_use.contains(&when);
                    prop_assert!(!is_kept, "at {}, base {}: {}", when, base_at, error);
                }
            }
        }
    }
}
