//! Appending, by itself and with other data; trimming and sealing.

use std::time::Duration;

use tyr::{Committed, Transaction, Tyr};
use tyr_client::block_on;
use tyr_log::{Appended, Batch, Cut, GroupStatus, Start};
use tyr_types::{ErrorKind, Result};

use super::library::{Library, Shelf, at, data, digits, entries, lists, places};
use super::{Stage, reading};
use crate::client::ASKS;
use crate::history::{Did, Entry, Moment, Scribe, Step};
use crate::random::Random;

/// Bytes of an entry beside its value, at most: a segment has a few appends.
const PADDING: u64 = 150;

/// How often a transaction with a batch is tried: a log goes on in another segment meanwhile.
const TRIES: u32 = 30;

/// Entries of a batch that is appended with other data, at most.
const TOGETHER: u64 = 3;

/// Entries that are read at a time by who trims.
const CHUNK: u64 = 12;

/// Up to so many values, and the batch of entries that have them.
fn batch(stage: &Stage, random: &mut Random, max: u64) -> Result<(Vec<u64>, Batch)> {
    let (mut values, mut batch) = (Vec::new(), Batch::new());
    for _ in 0..1 + random.below(max) {
        let value = stage.value();
        batch.push(data(value, random.below(PADDING)))?;
        values.push(value);
    }
    Ok((values, batch))
}

/// Appends up to so many entries.
pub fn append(
    stage: &Stage,
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    random: &mut Random,
    max: u64,
) -> Result<()> {
    let (values, mut batch) = batch(stage, random, max)?;
    if random.below(2) == 0 {
        batch = batch.in_partition(random.below(shelf.log.partitions().into()) as u16);
    }
    let name = if max == 1 { "append" } else { "append-batch" };
    let steps = vec![shelf.step(Did::Batch { values, at: None })];
    scribe.record(name, Moment::Strict, steps, |steps| {
        let appended = block_on(shelf.log.append_batch(&batch))?;
        answer(&mut steps[0], &appended);
        shelf.remember_position(appended.position);
        Ok(())
    })
}

/// Appends a batch to each of two logs, which may be the same, and a value to the first one's
/// ledger: all of it or nothing.
pub fn append_together(
    stage: &Stage,
    library: &mut Library,
    scribe: &mut Scribe,
    random: &mut Random,
    numbers: [u64; 2],
) -> Result<()> {
    let (mut steps, mut batches) = (Vec::new(), Vec::new());
    let count = if random.below(2) == 0 { 1 } else { 2 };
    for number in &numbers[..count] {
        let shelf = library.shelf(*number)?;
        let (values, batch) = batch(stage, random, TOGETHER)?;
        steps.push(shelf.step(Did::Batch { values, at: None }));
        batches.push((shelf.log.clone(), batch));
    }
    let Some(Step::SharedLog { log, did: Did::Batch { values, .. } }) = steps.first() else {
        return Ok(());
    };
    let (ledger, value) = (lists(log)[0].clone(), values[0]);
    steps.push(Step::Append { key: ledger.clone(), value, at: None });
    let (store, keyspace) = (library.store()?, library.keyspace(&ledger)?);
    scribe.record("append-together", Moment::Strict, steps, |steps| {
        for tries in 1.. {
            let mut transaction = store.begin();
            let id = transaction.append(keyspace, &*ledger, value.to_le_bytes().to_vec())?;
            let mut appendings = Vec::new();
            for (log, batch) in &batches {
                appendings.push(block_on(log.append_in(&mut transaction, batch))?);
            }
            let committed = match commit(store, transaction) {
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES => {
                    std::thread::sleep(Duration::from_millis(u64::from(tries)));
                    continue;
                }
                committed => committed?,
            };
            let offset = committed.offset(id).map(|offset| offset / 8);
            steps[count] = Step::Append { key: ledger, value, at: offset };
            for (step, appending) in steps.iter_mut().zip(appendings) {
                answer(step, &block_on(appending.finish(&committed))?);
            }
            break;
        }
        Ok(())
    })
}

/// Commits it; asks again when the outcome is unknown (F4).
pub fn commit(store: &Tyr, transaction: Transaction) -> Result<Committed> {
    let mut done = block_on(transaction.commit());
    for _ in 0..ASKS {
        let Err(error) = &done else { break };
        if error.kind() != ErrorKind::TimedOut {
            break;
        }
        match block_on(store.outcome(error)) {
            // It has no transaction that could be asked for.
            Err(other) if other.kind() == ErrorKind::InvalidArgument => break,
            told => done = told,
        }
    }
    done
}

/// Writes down where a batch is.
fn answer(step: &mut Step, appended: &Appended) {
    if let Step::SharedLog { did: Did::Batch { values, at: place }, .. } = step {
        *place = Some(Entry {
            value: values[0],
            at: at(appended.position),
            stamp: digits(appended.stamp),
            number: appended.number,
        });
    }
}

/// Trims a log up to some place that all groups are behind, after it has read what goes.
pub fn trim(
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    random: &mut Random,
    reader: u64,
) -> Result<()> {
    let statuses = [&shelf.pops, &shelf.takes, &shelf.works].map(|group| block_on(group.status()));
    let mut ends: Vec<GroupStatus> = Vec::new();
    for statuses in statuses {
        let statuses = statuses?;
        if statuses.iter().any(|status| status.lent > 0) {
            return Ok(());
        }
        for (n, status) in statuses.into_iter().enumerate() {
            match ends.get_mut(n) {
                Some(end) if status.position < end.position => *end = status,
                Some(_) => {}
                None => ends.push(status),
            }
        }
    }
    let is_behind_all = |cut: &Cut| {
        cut.positions().iter().zip(&ends).all(|(position, end)| *position <= end.position)
    };
    let mut before = None;
    let step = reading::stretch(&shelf.name, reader, None);
    scribe.record("read-to-trim", Moment::Fresh, vec![step], |steps| {
        let mut reader = block_on(shelf.log.reader(&Start::Oldest))?;
        let (from, mut seen) = (reader.cut(), Vec::new());
        loop {
            let more = block_on(reader.next(1 + random.below(CHUNK) as usize))?;
            let is_over = more.is_empty() || !is_behind_all(&reader.cut());
            seen.extend(more);
            if is_over {
                break;
            }
            before = Some(reader.cut());
        }
        reading::answer(&mut steps[0], Some(places(&from)), &reader.cut(), entries(&seen)?);
        Ok(())
    })?;
    let Some(before) = before else { return Ok(()) };
    let steps = vec![shelf.step(Did::Trim { before: places(&before) })];
    scribe.record("trim", Moment::Strict, steps, |_| {
        block_on(shelf.log.trim(&before, |_| Ok(()))).map(drop)
    })
}

/// Seals a log.
pub fn seal(shelf: &mut Shelf, scribe: &mut Scribe) -> Result<()> {
    let steps = vec![shelf.step(Did::Seal)];
    scribe.record("seal", Moment::Strict, steps, |_| block_on(shelf.log.seal()))
}
