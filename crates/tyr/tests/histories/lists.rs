//! Lists of values: transactions append to some and read others whole.
//!
//! Objects come and go: everybody works on a few at a time, and moves on before they grow long.

use tyr::Result;
use tyr_chance::Chance;

use super::history::{Action, Entry, History, Object, Place, Recorder};
use super::stage::{Stage, found, is_done, key, read_of};

/// Objects in use at a time.
const WINDOW: u64 = 4;
/// Values written before the window moves by one.
const VALUES_PER_STEP: u64 = 150;

/// Runs the workload and reads everything in the end.
pub fn play(stage: &Stage, threads: u64, operations: u64) -> History {
    let mut entries = stage.play(threads, |recorder, random| {
        for _ in 0..operations {
            let base = stage.value() / VALUES_PER_STEP;
            act(stage, recorder, random, base);
        }
    });
    let last = stage.value() / VALUES_PER_STEP + WINDOW;
    entries.extend(final_reads(stage, 0..last as Object));
    History { entries, ..History::default() }
}

/// Reads every object once more, when nobody writes any more.
pub fn final_reads(stage: &Stage, objects: std::ops::Range<Object>) -> Vec<Entry> {
    let mut recorder = Recorder::new(&stage.clock, 0);
    for object in objects {
        recorder.record(Place::Strict, |actions| single_read(stage, object, actions).is_ok());
    }
    recorder.into_entries()
}

fn act(stage: &Stage, recorder: &mut Recorder, random: &mut Chance, base: u64) {
    let mut objects: Vec<Object> = (base..base + WINDOW).map(|n| n as Object).collect();
    for at in (1..objects.len()).rev() {
        objects.swap(at, random.below(at as u64 + 1) as usize);
    }
    let some = random.below(3) as usize;
    match random.below(100) {
        0..50 => recorder.record(Place::Strict, |actions| {
            let (reads, appends) = (&objects[..some], &objects[random.below(2) as usize..]);
            let appends = &appends[..1 + random.below(3) as usize];
            is_done(transaction(stage, reads, appends, actions))
        }),
        50..60 => recorder.record(Place::Strict, |actions| {
            is_done(transaction(stage, &objects[..some + 1], &[], actions))
        }),
        60..72 => recorder.record(Place::Strict, |actions| {
            let (object, value) = (objects[0], stage.value());
            let offset = stage.keyspace(object).append(key(object), value.to_le_bytes().to_vec());
            let position = Some(offset.unwrap() as usize / 8);
            actions.push(Action::Append { object, value, position });
            true
        }),
        72..82 => recorder
            .record(Place::Strict, |actions| is_done(single_read(stage, objects[0], actions))),
        82..92 => recorder.record(Place::Snapshot, |actions| {
            is_done(snapshot(stage, &objects[..some + 2], actions))
        }),
        _ => recorder.record(Place::Fresh, |actions| {
            is_done(read_many(stage, &objects[..some + 2], actions))
        }),
    }
}

/// Reads some objects, appends to some, and reads one of those again.
fn transaction(
    stage: &Stage,
    reads: &[Object],
    appends: &[Object],
    actions: &mut Vec<Action>,
) -> Result<()> {
    let mut transaction = stage.tyr().begin();
    for &object in reads {
        let bytes = found(transaction.get(stage.keyspace(object), key(object)))?;
        actions.push(read_of(object, bytes));
        std::thread::yield_now();
    }
    let mut ids = Vec::new();
    for &object in appends {
        let value = stage.value();
        let data = value.to_le_bytes().to_vec();
        ids.push((actions.len(), transaction.append(stage.keyspace(object), key(object), data)?));
        actions.push(Action::Append { object, value, position: None });
    }
    if let (Some(&first), true) = (reads.first(), reads.len() > 1) {
        let bytes = found(transaction.get(stage.keyspace(first), key(first)))?;
        actions.push(read_of(first, bytes));
    }
    let committed = transaction.commit()?;
    for (index, id) in ids {
        if let Action::Append { position, .. } = &mut actions[index] {
            *position = committed.offset(id).map(|offset| offset as usize / 8);
        }
    }
    Ok(())
}

fn single_read(stage: &Stage, object: Object, actions: &mut Vec<Action>) -> Result<()> {
    let bytes = found(stage.keyspace(object).get(key(object)))?;
    actions.push(read_of(object, bytes));
    Ok(())
}

/// Reads objects at one moment, the first of them twice.
fn snapshot(stage: &Stage, objects: &[Object], actions: &mut Vec<Action>) -> Result<()> {
    let snapshot = stage.tyr().snapshot()?;
    for &object in objects.iter().chain(objects.first()) {
        let bytes = found(snapshot.get(stage.keyspace(object), key(object)))?;
        actions.push(read_of(object, bytes));
        std::thread::yield_now();
    }
    Ok(())
}

fn read_many(stage: &Stage, objects: &[Object], actions: &mut Vec<Action>) -> Result<()> {
    let found = stage.tyr().read_many(&stage.requests(objects))?;
    let reads = objects.iter().zip(found);
    actions.extend(reads.map(|(object, bytes)| read_of(*object, bytes)));
    Ok(())
}
