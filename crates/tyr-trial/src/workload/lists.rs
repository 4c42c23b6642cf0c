//! Lists of values: transactions append to some and read others whole.
//!
//! A few lists are in use at a time, and are left before they grow long.

use tyr_types::Result;

use super::Stage;
use crate::client::{append, range, values};
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Lists in use at a time.
const WINDOW: u64 = 4;
/// Values written before the window moves by one: lists are read whole, so they stay short.
const VALUES_PER_STEP: u64 = 150;
/// More values than a list has: those in flight come on top.
const LONG: u64 = 4 * VALUES_PER_STEP;

/// One operation of a client.
pub(super) fn act(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let base = stage.written() / VALUES_PER_STEP;
    let mut lists: Vec<String> = (base..base + WINDOW).map(key).collect();
    random.shuffle(&mut lists);
    let some = random.below(3) as usize;
    match random.below(100) {
        0..50 => {
            let written = &lists[random.below(2) as usize..][..1 + random.below(3) as usize];
            let written = written.iter().map(|key| (key.clone(), stage.value())).collect();
            transaction(stage, scribe, &lists[..some], written)
        }
        50..60 => transaction(stage, scribe, &lists[..some + 1], Vec::new()),
        60..72 => transaction(stage, scribe, &[], vec![(lists[0].clone(), stage.value())]),
        72..82 => read(stage, scribe, "read", &lists[0]),
        82..90 => snapshot(stage, scribe, &lists[..some + 2]),
        _ => read_many(stage, scribe, &lists[..some + 2]),
    }
}

/// Reads every list.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    keys(stage).iter().try_for_each(|key| read(stage, scribe, "final", key))
}

pub(super) fn keys(stage: &Stage) -> Vec<String> {
    (0..stage.written() / VALUES_PER_STEP + WINDOW).map(key).collect()
}

fn key(number: u64) -> String {
    format!("list-{number}")
}

fn asked(keys: &[String]) -> Vec<Step> {
    keys.iter().map(|key| Step::List { key: key.clone(), from: 0, seen: None }).collect()
}

/// Takes what was read as a step's answer.
fn answer(step: &mut Step, bytes: Option<tyr_types::Bytes>) -> Result<()> {
    let found = values(&bytes.unwrap_or_default())?;
    if let Step::List { seen, .. } = step {
        *seen = Some(found);
    }
    Ok(())
}

fn transaction(
    stage: &Stage,
    scribe: &mut Scribe,
    reads: &[String],
    written: Vec<(String, u64)>,
) -> Result<()> {
    let mut steps = asked(reads);
    let appends = |(key, value): (String, u64)| Step::Append { key, value, at: None };
    steps.extend(written.into_iter().map(appends));
    scribe.record("transaction", Moment::Strict, steps, |steps| {
        let mut deal = stage.caller.begin();
        let mut places = Vec::new();
        for (number, step) in steps.iter_mut().enumerate() {
            match step {
                Step::List { key, .. } => {
                    let bytes = deal.read(key, range(0, LONG))?;
                    answer(step, bytes)?;
                }
                Step::Append { key, value, .. } => {
                    places.push((number, deal.add(key, append(*value))));
                }
                Step::Part { .. }
                | Step::Write { .. }
                | Step::Read { .. }
                | Step::Swap { .. }
                | Step::Add { .. }
                | Step::Pair { .. }
                | Step::Scan { .. }
                | Step::Heads { .. }
                | Step::Groups { .. }
                | Step::Stamp { .. }
                | Step::Journal { .. }
                | Step::Cells { .. }
                | Step::Sheet { .. }
                | Step::Lock { .. }
                | Step::Held { .. }
                | Step::Fenced { .. }
                | Step::Unlock { .. }
                | Step::Guarded { .. }
                | Step::Upload { .. }
                | Step::Runs { .. }
                | Step::Enter { .. }
                | Step::Leave { .. }
                | Step::Members { .. }
                | Step::Watch { .. }
                | Step::Told { .. }
                | Step::Look { .. }
                | Step::Unwatch { .. }
                | Step::Keep { .. }
                | Step::Kept { .. }
                | Step::Unkeep { .. }
                | Step::Placed { .. }
                | Step::Positions { .. }
                | Step::SharedLog { .. } => {}
            }
        }
        deal.commit()?;
        for (number, place) in places {
            if let Step::Append { at, .. } = &mut steps[number] {
                *at = deal.offset(place).map(|offset| offset / 8);
            }
        }
        Ok(())
    })
}

fn read(stage: &Stage, scribe: &mut Scribe, operation: &str, key: &str) -> Result<()> {
    scribe.record(operation, Moment::Strict, asked(&[key.to_owned()]), |steps| {
        answer(&mut steps[0], stage.caller.read(key, range(0, LONG))?)
    })
}

fn read_many(stage: &Stage, scribe: &mut Scribe, keys: &[String]) -> Result<()> {
    scribe.record("read-many", Moment::Fresh, asked(keys), |steps| {
        let found = stage.caller.read_many(keys, range(0, LONG))?;
        steps.iter_mut().zip(found).try_for_each(|(step, bytes)| answer(step, bytes))
    })
}

/// Reads lists at one moment, the first of them twice.
fn snapshot(stage: &Stage, scribe: &mut Scribe, keys: &[String]) -> Result<()> {
    let twice: Vec<String> = keys.iter().chain(keys.first()).cloned().collect();
    scribe.record("snapshot", Moment::Snapshot, asked(&twice), |steps| {
        let found = stage.caller.read_snapshot(&twice, range(0, LONG))?;
        steps.iter_mut().zip(found).try_for_each(|(step, bytes)| answer(step, bytes))
    })
}
