//! Counters: numbers that all clients add one to in place; the answer says who was when.

use tyr_types::Result;

use super::Stage;
use crate::client::{add_one, range, values};
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

const COUNTERS: u64 = 3;

/// One operation of a client.
pub(super) fn act(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let mut counters = keys();
    random.shuffle(&mut counters);
    match random.below(10) {
        0..4 => add(stage, scribe, &counters[..1]),
        4..7 => add(stage, scribe, &counters[..2]),
        _ => read(stage, scribe, "read", &counters[0]),
    }
}

/// Reads every counter.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    keys().iter().try_for_each(|key| read(stage, scribe, "final", key))
}

pub(super) fn keys() -> Vec<String> {
    (0..COUNTERS).map(|counter| format!("counter-{counter}")).collect()
}

fn add(stage: &Stage, scribe: &mut Scribe, keys: &[String]) -> Result<()> {
    let steps = keys.iter().map(|key| Step::Add { key: key.clone(), sum: None }).collect();
    scribe.record("add", Moment::Strict, steps, |steps| {
        let mut deal = stage.caller.begin();
        let places: Vec<usize> = keys.iter().map(|key| deal.add(key, add_one())).collect();
        deal.commit()?;
        for (step, place) in steps.iter_mut().zip(places) {
            if let Step::Add { sum, .. } = step {
                *sum = deal.sum(place);
            }
        }
        Ok(())
    })
}

fn read(stage: &Stage, scribe: &mut Scribe, operation: &str, key: &str) -> Result<()> {
    let steps = vec![Step::Read { key: key.to_owned(), seen: None }];
    scribe.record(operation, Moment::Strict, steps, |steps| {
        let found = values(&stage.caller.read(key, range(0, 1))?.unwrap_or_default())?;
        if let Step::Read { seen, .. } = &mut steps[0] {
            *seen = Some(found.first().copied().unwrap_or(0));
        }
        Ok(())
    })
}
