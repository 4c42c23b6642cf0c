//! Consumers: pop; take and acknowledge; fetch, and commit with what is done about it.

use std::time::{Duration, Instant};

use tyr_client::block_on;
use tyr_types::{Error, ErrorKind, Result};

use super::library::{Library, Shelf, entries, lists};
use super::writing;
use crate::history::{Did, Moment, Scribe, Step, Taking};
use crate::random::Random;

/// Entries that are asked for at a time, at most.
const MAX: u64 = 8;

/// How long what was taken stays with who took it, in milliseconds.
const LASTS_MS: [u64; 3] = [400, 1500, 4000];

/// Deliveries that a client has, at most, before it acknowledges one.
const LENT: usize = 3;

/// Of so many deliveries one is forgotten by who has it, and one is acknowledged some time later;
/// the others are at once, or one before them is.
const FORGOTTEN: u64 = 8;

/// What nobody acknowledged comes again within this.
const PATIENCE: Duration = Duration::from_secs(20);

fn taken(shelf: &Shelf, how: Taking, delivery: u64, max: u64) -> Step {
    shelf.step(Did::Taken { how, delivery, max, seen: None })
}

fn answer(step: &mut Step, given: &[tyr_log::Entry]) -> Result<()> {
    if let Step::SharedLog { did: Did::Taken { seen, .. }, .. } = step {
        *seen = Some(entries(given)?);
    }
    Ok(())
}

/// Pops some entries.
pub fn pop(
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    random: &mut Random,
    delivery: u64,
) -> Result<()> {
    pop_up_to(shelf, scribe, 1 + random.below(MAX), delivery).map(drop)
}

/// Pops up to so many entries; whether there were some.
fn pop_up_to(shelf: &Shelf, scribe: &mut Scribe, max: u64, delivery: u64) -> Result<bool> {
    let mut is_some = false;
    let steps = vec![taken(shelf, Taking::Pop, delivery, max)];
    scribe.record("pop", Moment::Strict, steps, |steps| {
        let popped = block_on(shelf.pops.pop(max as usize))?;
        is_some = !popped.is_empty();
        answer(&mut steps[0], &popped)
    })?;
    Ok(is_some)
}

/// Takes some entries, or acknowledges what it has taken, late or in time.
pub fn take_or_ack(
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    random: &mut Random,
    delivery: u64,
) -> Result<()> {
    if !shelf.lent.is_empty() && (shelf.lent.len() >= LENT || random.below(2) == 0) {
        return ack(shelf, scribe).map(drop);
    }
    let (max, lasts_ms) = (1 + random.below(MAX), random.pick(&LASTS_MS));
    let is_some = take(shelf, scribe, (max, lasts_ms), delivery)?;
    match random.below(FORGOTTEN) {
        0 if is_some => {
            shelf.lent.pop_back();
        }
        1 => {}
        _ => ack(shelf, scribe).map(drop)?,
    }
    Ok(())
}

/// Takes up to so many entries for so long; whether there were some.
fn take(
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    (max, lasts_ms): (u64, u64),
    delivery: u64,
) -> Result<bool> {
    let mut got = None;
    let steps = vec![taken(shelf, Taking::Take(lasts_ms), delivery, max)];
    scribe.record("take", Moment::Strict, steps, |steps| {
        got = block_on(shelf.takes.take(max as usize, Duration::from_millis(lasts_ms)))?;
        answer(&mut steps[0], got.as_ref().map_or(&[], |it| &it.entries))
    })?;
    let is_some = got.is_some();
    shelf.lent.extend(got.map(|got| (delivery, got)));
    Ok(is_some)
}

/// Acknowledges what was taken first; whether that was in time.
fn ack(shelf: &mut Shelf, scribe: &mut Scribe) -> Result<bool> {
    let Some((delivery, got)) = shelf.lent.pop_front() else { return Ok(false) };
    let mut is_in_time = false;
    let step =
        |log: &str, seen| Step::SharedLog { log: log.to_owned(), did: Did::Ack { delivery, seen } };
    scribe.record("ack", Moment::Strict, vec![step(&shelf.name, None)], |steps| {
        is_in_time = block_on(shelf.takes.ack(&got))?;
        steps[0] = step(&shelf.name, Some(is_in_time));
        Ok(())
    })?;
    Ok(is_in_time)
}

/// Fetches some entries, and writes that they were worked on.
pub fn work(
    library: &mut Library,
    scribe: &mut Scribe,
    random: &mut Random,
    number: u64,
) -> Result<()> {
    let (max, delivery) = (1 + random.below(MAX), library.number());
    work_up_to(library, scribe, (number, max), delivery).map(drop)
}

/// Works on up to so many entries; whether there were some. That somebody else works on them is no
/// failure.
fn work_up_to(
    library: &mut Library,
    scribe: &mut Scribe,
    (number, max): (u64, u64),
    delivery: u64,
) -> Result<bool> {
    let shelf = library.shelf(number)?;
    let (group, list) = (shelf.works.clone(), lists(&shelf.name)[1].clone());
    let steps = vec![taken(shelf, Taking::Work, delivery, max)];
    let (store, keyspace) = (library.store()?, library.keyspace(&list)?);
    let mut is_some = false;
    let done = scribe.record("work", Moment::Strict, steps, |steps| {
        let fetched = block_on(group.fetch(max as usize))?;
        is_some = !fetched.entries.is_empty();
        answer(&mut steps[0], &fetched.entries)?;
        if !is_some {
            return Ok(());
        }
        let mut transaction = store.begin();
        for entry in entries(&fetched.entries)? {
            let (key, value) = (list.clone(), entry.value);
            transaction.append(keyspace, &*list, value.to_le_bytes().to_vec())?;
            steps.push(Step::Append { key, value, at: None });
        }
        fetched.commit_in(&mut transaction)?;
        writing::commit(store, transaction).map(drop)
    });
    match done {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(true),
        done => done.map(|()| is_some),
    }
}

/// Gives out all that there is: nobody appends any more.
pub fn empty(library: &mut Library, scribe: &mut Scribe, number: u64) -> Result<()> {
    const ALL: u64 = 64;
    loop {
        let delivery = library.number();
        if !pop_up_to(library.shelf(number)?, scribe, ALL, delivery)? {
            break;
        }
    }
    loop {
        let delivery = library.number();
        if !work_up_to(library, scribe, (number, ALL), delivery)? {
            break;
        }
    }
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let delivery = library.number();
        let shelf = library.shelf(number)?;
        if take(shelf, scribe, (ALL, LASTS_MS[2]), delivery)? {
            ack(shelf, scribe)?;
            continue;
        }
        if block_on(shelf.takes.status())?.iter().all(|status| status.lent == 0) {
            return Ok(());
        }
        // Somebody has it still, or had it and forgot it.
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(Error::unavailable("what was taken and not acknowledged does not come again"))
}
