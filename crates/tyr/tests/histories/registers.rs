//! Registers: blobs that hold one value, written blindly, after a read, or by compare-and-swap.
//!
//! The order of a register's values is that of the versions which the commits answered: where
//! those lie about the order, the checker finds a circle.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tyr::{Result, Timestamp};
use tyr_chance::Chance;

use super::history::{Action, History, Object, Place, Seen, Value};
use super::stage::{Stage, found, is_done, key, values};

const REGISTERS: u64 = 3;

/// Which version each value got.
type Versions = Mutex<Vec<(Object, Timestamp, Value)>>;

/// Runs the workload and reads everything in the end.
pub fn play(stage: &Stage, threads: u64, operations: u64) -> History {
    let versions = Versions::default();
    let mut entries = stage.play(threads, |recorder, random| {
        for _ in 0..operations {
            let (one, two) = (random.below(REGISTERS), random.below(REGISTERS));
            let (one, two) = (one as Object, two as Object);
            let kind = random.below(100);
            recorder.record(Place::Strict, |actions| {
                is_done(match kind {
                    0..30 => read(stage, one, actions),
                    30..60 => transaction(stage, random, &versions, (one, two), actions),
                    60..80 => write(stage, &versions, one, actions),
                    _ => swap(stage, &versions, one, actions),
                })
            });
        }
    });
    let last = stage.play(1, |recorder, _| {
        for register in 0..REGISTERS {
            recorder
                .record(Place::Strict, |actions| is_done(read(stage, register as Object, actions)));
        }
    });
    entries.extend(last);
    History { entries, orders: orders(versions) }
}

fn orders(versions: Versions) -> BTreeMap<Object, Vec<Value>> {
    let mut versions = versions.into_inner().unwrap();
    versions.sort_unstable();
    let mut orders = BTreeMap::<Object, Vec<Value>>::new();
    for (object, _, value) in versions {
        orders.entry(object).or_default().push(value);
    }
    orders
}

fn seen(object: Object, bytes: Option<tyr::Bytes>) -> (Option<Value>, Action) {
    let value = bytes.map(|bytes| values(&bytes)[0]);
    (value, Action::Read { object, seen: Seen::Last(value) })
}

fn read(stage: &Stage, object: Object, actions: &mut Vec<Action>) -> Result<()> {
    let bytes = found(stage.keyspace(object).read(key(object), 0, 8))?;
    actions.push(seen(object, bytes).1);
    Ok(())
}

/// Reads one register and writes another, or the same.
fn transaction(
    stage: &Stage,
    random: &mut Chance,
    versions: &Versions,
    (one, two): (Object, Object),
    actions: &mut Vec<Action>,
) -> Result<()> {
    let mut transaction = stage.tyr().begin();
    let bytes = found(transaction.read(stage.keyspace(one), key(one), 0, 8))?;
    actions.push(seen(one, bytes).1);
    std::thread::yield_now();
    let mut written = vec![two];
    if random.permille(300) && one != two {
        written.push(one);
    }
    let mut new = Vec::new();
    for object in written {
        let value = stage.value();
        transaction.put(stage.keyspace(object), key(object), value.to_le_bytes().to_vec())?;
        actions.push(Action::Append { object, value, position: None });
        new.push((object, value));
    }
    let version = transaction.commit()?.version();
    versions
        .lock()
        .unwrap()
        .extend(new.into_iter().map(|(object, value)| (object, version, value)));
    Ok(())
}

fn write(
    stage: &Stage,
    versions: &Versions,
    object: Object,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let value = stage.value();
    let mut transaction = stage.tyr().begin();
    transaction.write(stage.keyspace(object), key(object), 0, value.to_le_bytes().to_vec())?;
    actions.push(Action::Append { object, value, position: None });
    let version = transaction.commit()?.version();
    versions.lock().unwrap().push((object, version, value));
    Ok(())
}

/// Replaces what a read outside of the transaction has seen.
fn swap(
    stage: &Stage,
    versions: &Versions,
    object: Object,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let bytes = found(stage.keyspace(object).read(key(object), 0, 8))?;
    let (Some(old), read) = seen(object, bytes) else { return Ok(()) };
    let value = stage.value();
    let mut transaction = stage.tyr().begin();
    transaction.compare(stage.keyspace(object), key(object), 0, old.to_le_bytes().to_vec())?;
    transaction.write(stage.keyspace(object), key(object), 0, value.to_le_bytes().to_vec())?;
    actions.push(Action::Append { object, value, position: None });
    let version = transaction.commit()?.version();
    // The condition is a read at the moment of the commit.
    actions.insert(0, read);
    versions.lock().unwrap().push((object, version, value));
    Ok(())
}
