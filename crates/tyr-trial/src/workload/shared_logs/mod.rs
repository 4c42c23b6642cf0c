//! Shared logs of `tyr-log`: several clients append, read in all ways that there are, share entries
//! in groups of consumers, trim and seal.
//!
//! ```text
//!   library    the logs that a client has open          one partition │ three │ two, strict
//!   writing    entries, batches, batches of one transaction with a ledger; trim, seal
//!   reading    from the begin on, on from a cut, from a number, between cuts, the last, one
//!   following  a thread of its own for each log that is followed, until that is sealed
//!   consuming  pop; take and ack; fetch and commit with what is done
//! ```
//!
//! New logs come into use all the time. One that is not in use any more is sealed, and so whoever
//! follows it must come to its end. Segments are as small as they may be, so a log goes on in
//! another one every few appends. Who trims has read all that goes, and lets nothing go that a
//! group has not got: so the history has every entry that there ever was.

mod consuming;
mod following;
mod library;
mod reading;
mod writing;

use std::time::{Duration, Instant};

use tyr_types::{Error, Result};

pub(super) use self::library::Library;
use super::{PAUSE, Stage};
use crate::history::Scribe;
use crate::random::Random;

/// Logs in use at a time, one of each kind.
const WINDOW: u64 = 3;

/// Values written before the window moves by one.
const VALUES_PER_STEP: u64 = 200;

/// How long a client tries to seal the logs in use when nobody writes any more, and to read one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who reads everything once more; no other client has this number.
const LAST_CLIENT: u64 = 0xffff;

/// One operation of a client.
pub(super) fn act(
    stage: &Stage,
    client: u64,
    library: &mut Library,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    library.connect(stage, client)?;
    let newest = newest(stage);
    if let Some(number) = library.before(newest) {
        writing::seal(library.shelf(number)?, scribe)?;
        library.close(number);
    }
    let number = newest + random.below(WINDOW);
    let (follower, reader) = (library.number(), library.number());
    let shelf = library.shelf(number)?;
    following::begin(stage, shelf, follower, random)?;
    match random.below(25) {
        0..5 => writing::append(stage, shelf, scribe, random, 1),
        5..8 => writing::append(stage, shelf, scribe, random, 5),
        8..11 => {
            let other = newest + random.below(WINDOW);
            writing::append_together(stage, library, scribe, random, [number, other])
        }
        11..13 => reading::read(shelf, scribe, random, reader),
        13 => reading::range(shelf, scribe, random, reader),
        14 => reading::last(shelf, scribe, random, reader),
        15 => reading::one(shelf, scribe, random),
        16..18 => consuming::pop(shelf, scribe, random, reader),
        18..21 => consuming::take_or_ack(shelf, scribe, random, reader),
        21..23 => consuming::work(library, scribe, random, number),
        _ => writing::trim(shelf, scribe, random, reader),
    }
}

/// When nobody writes any more: the logs in use are sealed, and whoever follows one comes to its
/// end, or is written down.
pub(super) fn drain(stage: &Stage, mut library: Library, scribe: &mut Scribe) {
    let begun = Instant::now();
    let newest = newest(stage);
    // One that could not be sealed when it should have been is still open.
    for number in library.before(newest).unwrap_or(newest)..newest + WINDOW {
        let mut seal = || writing::seal(library.shelf(number)?, scribe);
        while seal().is_err() && begun.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
    }
    library.followers().for_each(|follower| follower.end(scribe));
}

/// Gives out what consumers have not got yet, and reads everything once more.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    let mut library = Library::default();
    library.connect(stage, LAST_CLIENT)?;
    for number in 0..newest(stage) + WINDOW {
        let begun = Instant::now();
        while let Err(error) = finish_one(stage, &mut library, scribe, number) {
            if begun.elapsed() > PATIENCE {
                return Err(error);
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

fn finish_one(
    stage: &Stage,
    library: &mut Library,
    scribe: &mut Scribe,
    number: u64,
) -> Result<()> {
    writing::seal(library.shelf(number)?, scribe)?;
    consuming::empty(library, scribe, number)?;
    let reader = library.number();
    let shelf = library.shelf(number)?;
    stage.found.lock().extend(reading::all(shelf, scribe, reader)?);
    reading::written_with(stage, shelf, scribe)?;
    library.close(number);
    Ok(())
}

/// The keys of all blobs that were found in the end, and of what was written with entries.
pub(super) fn keys(stage: &Stage) -> Vec<String> {
    let lists = (0..newest(stage) + WINDOW).map(library::name).flat_map(|log| library::lists(&log));
    stage.found.lock().iter().cloned().chain(lists).collect()
}

fn newest(stage: &Stage) -> u64 {
    stage.written() / VALUES_PER_STEP
}

/// Whoever a client has no log of cannot go on with it.
fn closed(number: u64) -> Error {
    Error::invalid(format!("log {number} was opened and is not open"))
}
