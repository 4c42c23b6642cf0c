//! Reading: forward from the begin, a cut or a number; between two cuts; the last; one.

use tyr_client::block_on;
use tyr_log::{Cut, Position, Start};
use tyr_types::{ByteRange, Error, ErrorKind, Result};

use super::Stage;
use super::library::{Shelf, at, entries, lists, places};
use crate::client::values;
use crate::history::{Did, Entry, Moment, Place, Scribe, Step, Stretch};
use crate::random::Random;

/// Entries that a reader asks for at a time, at most.
const CHUNK: u64 = 25;

/// Entries between two cuts, at most: more than there are.
const RANGE: usize = 1 << 20;

/// A stretch that is to be read.
pub fn stretch(log: &str, reader: u64, asked: Option<u64>) -> Step {
    let did = Did::Stretch(Stretch { reader, asked, ..Stretch::default() });
    Step::SharedLog { log: log.to_owned(), did }
}

/// Writes down what was read.
pub fn answer(step: &mut Step, began: Option<Vec<Place>>, cut: &Cut, read: Vec<Entry>) {
    if let Step::SharedLog { did: Did::Stretch(stretch), .. } = step {
        (stretch.from, stretch.to, stretch.seen) = (began, places(cut), Some(read));
    }
}

/// Writes down that there was no more.
pub fn answer_end(step: &mut Step, is_sealed: bool) {
    if let Step::SharedLog { did: Did::Stretch(stretch), .. } = step {
        (stretch.is_end, stretch.is_sealed) = (true, is_sealed);
    }
}

/// Reads forward, to the end or some way.
pub fn read(
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    random: &mut Random,
    reader: u64,
) -> Result<()> {
    let known = shelf.cuts.get(random.below(shelf.cuts.len() as u64) as usize).cloned();
    let number = known.as_ref().and_then(Cut::number);
    let (name, start, asked) = match (random.below(4), known, number) {
        (1, _, Some(number)) => {
            let number = random.below(number + 1);
            ("read-number", Start::Number(number), Some(number))
        }
        (1..4, Some(cut), _) => ("read-on", Start::At(cut), None),
        _ => ("read", Start::Oldest, None),
    };
    let steps = vec![stretch(&shelf.name, reader, asked)];
    let chunks = if random.below(3) == 0 { 1 + random.below(3) } else { u64::MAX };
    scribe.record(name, Moment::Fresh, steps, |steps| {
        let mut reader = block_on(shelf.log.reader(&start))?;
        let (from, mut seen) = (reader.cut(), Vec::new());
        for _ in 0..chunks {
            let more = block_on(reader.next(1 + random.below(CHUNK) as usize))?;
            if more.is_empty() {
                answer_end(&mut steps[0], reader.is_ended());
                break;
            }
            seen.extend(more);
        }
        answer(&mut steps[0], Some(places(&from)), &reader.cut(), entries(&seen)?);
        shelf.remember(&from);
        shelf.remember(&reader.cut());
        seen.last().into_iter().for_each(|entry| shelf.remember_position(entry.position));
        Ok(())
    })
}

/// Reads what is between two cuts.
pub fn range(
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    random: &mut Random,
    reader: u64,
) -> Result<()> {
    let count = shelf.cuts.len() as u64;
    let (Some(one), Some(other)) = (
        shelf.cuts.get(random.below(count) as usize),
        shelf.cuts.get(random.below(count) as usize),
    ) else {
        return read(shelf, scribe, random, reader);
    };
    let is_before = |one: &Cut, other: &Cut| {
        one.positions().iter().zip(other.positions()).all(|(one, other)| one <= other)
    };
    // Of a log with several partitions neither of two cuts need be before the other.
    let (from, to) = if is_before(one, other) { (one, other) } else { (other, one) };
    if !is_before(from, to) {
        return read(shelf, scribe, random, reader);
    }
    let steps = vec![stretch(&shelf.name, reader, None)];
    scribe.record("range", Moment::Fresh, steps, |steps| {
        let seen = block_on(shelf.log.read_range(from, to, RANGE))?;
        answer(&mut steps[0], Some(places(from)), to, entries(&seen)?);
        Ok(())
    })
}

/// Reads the last entries.
pub fn last(
    shelf: &mut Shelf,
    scribe: &mut Scribe,
    random: &mut Random,
    reader: u64,
) -> Result<()> {
    let count = 1 + random.below(CHUNK);
    let steps = vec![stretch(&shelf.name, reader, Some(count))];
    scribe.record("last", Moment::Fresh, steps, |steps| {
        let (seen, next) = block_on(shelf.log.last(count as usize))?;
        answer(&mut steps[0], None, &next, entries(&seen)?);
        answer_end(&mut steps[0], false);
        shelf.remember(&next);
        Ok(())
    })
}

/// Reads one entry, or where one will be.
pub fn one(shelf: &mut Shelf, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let known = random.below(shelf.positions.len() as u64) as usize;
    let first = Position { partition: 0, segment: 0, offset: 64, index: 0 };
    let position = shelf.positions.get(known).copied().unwrap_or(first);
    let step = |seen| shelf.step(Did::At { at: at(position), seen });
    scribe.record("at", Moment::Strict, vec![step(None)], |steps| {
        let seen = match block_on(shelf.log.read(position)) {
            Ok(entry) => vec![entry],
            Err(error) if is_unwritten(&error) => Vec::new(),
            Err(error) => return Err(error),
        };
        steps[0] = step(Some(entries(&seen)?));
        Ok(())
    })
}

/// Whether nothing has been written there, of what was not trimmed.
fn is_unwritten(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound && error.message().contains("nothing has been written")
}

/// Reads all that there is in the end; answers the keys of the segments.
pub fn all(shelf: &mut Shelf, scribe: &mut Scribe, reader: u64) -> Result<Vec<String>> {
    let mut segments = Vec::new();
    let steps = vec![stretch(&shelf.name, reader, None)];
    scribe.record("final", Moment::Fresh, steps, |steps| {
        let mut reader = block_on(shelf.log.reader(&Start::Oldest))?;
        let (from, mut seen) = (reader.cut(), Vec::new());
        loop {
            let more = block_on(reader.next(RANGE))?;
            if more.is_empty() {
                break;
            }
            seen.extend(more);
        }
        let to = reader.cut();
        answer_end(&mut steps[0], reader.is_ended());
        answer(&mut steps[0], Some(places(&from)), &to, entries(&seen)?);
        for (from, to) in from.positions().iter().zip(to.positions()) {
            let key = |segment| format!("{}/p{:04}/s{segment:020}", shelf.name, from.partition);
            segments.extend((from.segment..=to.segment).map(key));
        }
        Ok(())
    })?;
    Ok(segments)
}

/// Reads what was written with entries of a log, in the end.
pub fn written_with(stage: &Stage, shelf: &Shelf, scribe: &mut Scribe) -> Result<()> {
    for key in lists(&shelf.name) {
        let step = |seen| Step::List { key: key.clone(), from: 0, seen };
        scribe.record("final", Moment::Strict, vec![step(None)], |steps| {
            let whole = ByteRange { start: 0, end: 1 << 20 };
            let found = stage.caller.read(&key, whole)?.unwrap_or_default();
            steps[0] = step(Some(values(&found)?));
            Ok(())
        })?;
    }
    Ok(())
}
