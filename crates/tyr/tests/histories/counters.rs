//! Counters: numbers in one blob, added to in place; the answer says who was when.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tyr::{Number, Result, Transform};

use super::history::{Action, History, Object, Place, Seen, Value};
use super::stage::{Stage, found, is_done, values};

const COUNTERS: u64 = 3;

/// Which count each addition was answered.
type Counts = Mutex<Vec<(Object, u64, Value)>>;

/// Runs the workload and reads everything in the end.
pub fn play(stage: &Stage, threads: u64, operations: u64) -> History {
    let counts = Counts::default();
    let mut entries = stage.play(threads, |recorder, random| {
        for _ in 0..operations {
            let counter = random.below(COUNTERS) as Object;
            let kind = random.below(10);
            recorder.record(Place::Strict, |actions| match kind {
                0..4 => is_done(add(stage, &counts, counter, actions)),
                4..7 => is_done(add_to_two(stage, &counts, counter, actions)),
                _ => is_done(read(stage, actions)),
            });
        }
    });
    entries.extend(stage.play(1, |recorder, _| {
        recorder.record(Place::Strict, |actions| is_done(read(stage, actions)));
    }));
    History { entries, orders: orders(counts) }
}

/// The additions in the order of their answers, which must be 1, 2, 3 and so on.
fn orders(counts: Counts) -> BTreeMap<Object, Vec<Value>> {
    let mut counts = counts.into_inner().unwrap();
    counts.sort_unstable();
    let mut orders = BTreeMap::<Object, Vec<Value>>::new();
    for (object, count, value) in counts {
        let order = orders.entry(object).or_default();
        order.push(value);
        assert_eq!(order.len() as u64, count, "counter {object} counted one twice, or none");
    }
    orders
}

fn one() -> Transform {
    Transform::add(Number::U64(1))
}

fn number(number: Number) -> u64 {
    match number {
        Number::U64(count) => count,
        other => panic!("a u64 became {other:?}"),
    }
}

fn note(stage: &Stage, counts: &Counts, counter: Object, count: u64, actions: &mut Vec<Action>) {
    let value = stage.value();
    counts.lock().unwrap().push((counter, count, value));
    let position = Some(count as usize - 1);
    actions.push(Action::Append { object: counter, value, position });
}

fn add(stage: &Stage, counts: &Counts, counter: Object, actions: &mut Vec<Action>) -> Result<()> {
    let count = stage.keyspaces()[0].apply("counters", u64::from(counter) * 8, one())?;
    note(stage, counts, counter, number(count), actions);
    Ok(())
}

fn add_to_two(
    stage: &Stage,
    counts: &Counts,
    counter: Object,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let other = (counter + 1) % COUNTERS as Object;
    let mut transaction = stage.tyr().begin();
    let mut add = |counter: Object| {
        transaction.apply(&stage.keyspaces()[0], "counters", u64::from(counter) * 8, one())
    };
    let ids = [(counter, add(counter)?), (other, add(other)?)];
    let committed = transaction.commit()?;
    for (counter, id) in ids {
        let count = committed.value(id).expect("a transform answers its value");
        note(stage, counts, counter, number(count), actions);
    }
    Ok(())
}

/// Reads all counters at once.
fn read(stage: &Stage, actions: &mut Vec<Action>) -> Result<()> {
    let bytes = found(stage.keyspaces()[0].read("counters", 0, COUNTERS * 8))?;
    let mut counts = bytes.map(|bytes| values(&bytes)).unwrap_or_default();
    counts.resize(COUNTERS as usize, 0);
    for (object, count) in (0..).zip(counts) {
        actions.push(Action::Read { object, seen: Seen::Count(count as usize) });
    }
    Ok(())
}
