//! Registers: blobs that hold one value, written blindly, or if they hold what was expected.
//!
//! New ones come into use all the time, so that each has a short history: whether a history is
//! linearizable takes the longer to find out the longer it is.

use std::cell::Cell;

use tyr_types::Result;

use super::Stage;
use crate::client::{compare, put, range, values};
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Registers in use at a time.
const WINDOW: u64 = 3;
/// Values written before the window moves by one.
const VALUES_PER_STEP: u64 = 60;

thread_local! {
    /// What this client last saw in a register: a swap expects it.
    static LAST: Cell<(u64, u64)> = const { Cell::new((u64::MAX, 0)) };
}

/// One operation of a client.
pub(super) fn act(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let number = stage.written() / VALUES_PER_STEP + random.below(WINDOW);
    let (last, held) = LAST.get();
    match random.below(10) {
        0..5 => read(stage, scribe, "read", number),
        5..8 if held != 0 => swap(stage, scribe, last, held),
        _ => write(stage, scribe, number),
    }
}

/// Reads every register.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    let count = stage.written() / VALUES_PER_STEP + WINDOW;
    (0..count).try_for_each(|number| read(stage, scribe, "final", number))
}

pub(super) fn keys(stage: &Stage) -> Vec<String> {
    (0..stage.written() / VALUES_PER_STEP + WINDOW).map(key).collect()
}

fn key(number: u64) -> String {
    format!("register-{number}")
}

fn read(stage: &Stage, scribe: &mut Scribe, operation: &str, number: u64) -> Result<()> {
    let key = key(number);
    let steps = vec![Step::Read { key: key.clone(), seen: None }];
    scribe.record(operation, Moment::Strict, steps, |steps| {
        let found = values(&stage.caller.read(&key, range(0, 1))?.unwrap_or_default())?;
        let value = found.first().copied().unwrap_or(0);
        LAST.set((number, value));
        if let Step::Read { seen, .. } = &mut steps[0] {
            *seen = Some(value);
        }
        Ok(())
    })
}

fn write(stage: &Stage, scribe: &mut Scribe, number: u64) -> Result<()> {
    let (key, value) = (key(number), stage.value());
    let steps = vec![Step::Write { key: key.clone(), value }];
    scribe.record("write", Moment::Strict, steps, |_| {
        let mut deal = stage.caller.begin();
        deal.add(&key, put(value));
        deal.commit()
    })
}

fn swap(stage: &Stage, scribe: &mut Scribe, number: u64, from: u64) -> Result<()> {
    let (key, to) = (key(number), stage.value());
    let steps = vec![Step::Swap { key: key.clone(), from, to }];
    scribe.record("swap", Moment::Strict, steps, |_| {
        let mut deal = stage.caller.begin();
        deal.add_two(&key, [compare(from), put(to)]);
        LAST.set((u64::MAX, 0));
        deal.commit()
    })
}
