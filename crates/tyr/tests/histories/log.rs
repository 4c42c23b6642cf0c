//! A log: appends on the condition that it ends where its writer thinks.

use tyr::Result;

use super::history::{Action, History, Place, Seen};
use super::lists::final_reads;
use super::stage::{Stage, found, is_done, key};

/// Runs the workload and reads the log in the end.
pub fn play(stage: &Stage, threads: u64, operations: u64) -> History {
    let mut entries = stage.play(threads, |recorder, random| {
        let mut end = 0;
        for _ in 0..operations {
            if random.permille(500) {
                recorder.record(Place::Strict, |actions| is_done(size(stage, &mut end, actions)));
            }
            recorder.record(Place::Strict, |actions| is_done(append(stage, &mut end, actions)));
        }
    });
    entries.extend(final_reads(stage, 0..1));
    History { entries, ..History::default() }
}

fn size(stage: &Stage, end: &mut u64, actions: &mut Vec<Action>) -> Result<()> {
    *end = found(stage.keyspace(0).stat(key(0)))?.map_or(0, |stat| stat.size);
    actions.push(Action::Read { object: 0, seen: Seen::Count(*end as usize / 8) });
    Ok(())
}

fn append(stage: &Stage, end: &mut u64, actions: &mut Vec<Action>) -> Result<()> {
    let value = stage.value();
    let action = |position| Action::Append { object: 0, value, position };
    actions.push(action(None));
    let offset = stage.keyspace(0).append_at(key(0), *end, value.to_le_bytes().to_vec())?;
    assert_eq!(offset, *end, "a conditional append answers the end that was expected");
    actions[0] = action(Some(offset as usize / 8));
    *end += 8;
    Ok(())
}
