//! A log in each keyspace: one blob that all clients append to. They read its newest part, and now
//! and then an older one, which nobody writes any more: what is lost there shows nowhere else.

use tyr_types::Result;

use super::Stage;
use crate::client::{append, range, values};
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Values of which the newest part has as many as are there, up to this.
const TAIL: u64 = 64;
/// Values read at once in the end: 128 KiB, in 32 chunks.
const PIECE: u64 = 1 << 14;

/// One operation of a client.
pub(super) fn act(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let logs = keys(stage);
    let log = &logs[random.below(logs.len() as u64) as usize];
    match random.below(10) {
        0..7 => add(stage, scribe, log),
        7..9 => tail(stage, scribe, log),
        _ => look_back(stage, scribe, random, log),
    }
}

/// Reads all of each.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    keys(stage).iter().try_for_each(|key| finish_one(stage, scribe, key))
}

fn finish_one(stage: &Stage, scribe: &mut Scribe, key: &str) -> Result<()> {
    let steps = vec![Step::List { key: key.to_owned(), from: 0, seen: None }];
    scribe.record("final", Moment::Strict, steps, |steps| {
        let mut all = Vec::new();
        loop {
            let from = all.len() as u64;
            let found = values(&stage.caller.read(key, range(from, PIECE))?.unwrap_or_default())?;
            let is_last = (found.len() as u64) < PIECE;
            all.extend(found);
            if is_last {
                break;
            }
        }
        if let Step::List { seen, .. } = &mut steps[0] {
            *seen = Some(all);
        }
        Ok(())
    })
}

pub(super) fn keys(stage: &Stage) -> Vec<String> {
    (0..stage.caller.keyspaces()).map(|log| format!("log-{log}")).collect()
}

fn add(stage: &Stage, scribe: &mut Scribe, key: &str) -> Result<()> {
    let value = stage.value();
    let steps = vec![Step::Append { key: key.to_owned(), value, at: None }];
    scribe.record("append", Moment::Strict, steps, |steps| {
        let mut deal = stage.caller.begin();
        let place = deal.add(key, append(value));
        deal.commit()?;
        if let Step::Append { at, .. } = &mut steps[0] {
            *at = deal.offset(place).map(|offset| offset / 8);
        }
        Ok(())
    })
}

/// Reads from a little before the end, as it was when it was asked for, to the end.
fn tail(stage: &Stage, scribe: &mut Scribe, key: &str) -> Result<()> {
    let from = (stage.caller.size(key)? / 8).saturating_sub(TAIL);
    let steps = vec![Step::List { key: key.to_owned(), from, seen: None }];
    scribe.record("tail", Moment::Strict, steps, |steps| {
        let found = values(&stage.caller.read(key, range(from, PIECE))?.unwrap_or_default())?;
        if let Step::List { seen, .. } = &mut steps[0] {
            *seen = Some(found);
        }
        Ok(())
    })
}

/// Reads some from anywhere before the end.
fn look_back(stage: &Stage, scribe: &mut Scribe, random: &mut Random, key: &str) -> Result<()> {
    let there = stage.caller.size(key)? / 8;
    let count = TAIL.min(there);
    let from = random.below(there - count + 1);
    let steps = vec![Step::Part { key: key.to_owned(), from, count, seen: None }];
    scribe.record("look-back", Moment::Strict, steps, |steps| {
        let found = values(&stage.caller.read(key, range(from, count))?.unwrap_or_default())?;
        if let Step::Part { seen, .. } = &mut steps[0] {
            *seen = Some(found);
        }
        Ok(())
    })
}
