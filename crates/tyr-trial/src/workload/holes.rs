//! Holes: sheets of cells that are written and cleared again, over several chunks at once.
//!
//! A sheet has one writer, so that what a reading may show of it can be told. One whose outcome
//! stays unknown is left alone from then on, for its last write may come at any time.

use tyr_types::{ByteRange, Bytes, ErrorKind, Operation, Payload, Result};

use super::Stage;
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Cells of a sheet.
pub const CELLS: u64 = 24;

/// Bytes of a cell: four to a chunk, so that most changes cut some chunks in two.
const CELL: u64 = 1000;

/// Sheets of a client at a time.
const SHEETS: u64 = 4;

/// Clients, by the numbers that they draw first, whose first sheets the others read.
const READ_CLIENTS: u64 = 4;

/// The sheets of one client.
#[derive(Debug, Default)]
pub(super) struct Sheets {
    client: Option<u64>,
    /// Which of its sheets at this place it is, and whether it has begun.
    all: [(u64, bool); SHEETS as usize],
}

fn key(client: u64, place: u64, generation: u64) -> String {
    format!("sheet-{client}-{place}-{generation}")
}

/// One operation of a client.
pub(super) fn act(
    stage: &Stage,
    sheets: &mut Sheets,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    let place = random.below(SHEETS);
    let (generation, has_begun) = sheets.all[place as usize];
    let client = *sheets.client.get_or_insert_with(|| stage.value());
    let own = key(client, place, generation);
    match random.below(10) {
        0..3 => look(stage, scribe, "read", &own),
        3 => {
            let client = 1 + random.below(READ_CLIENTS);
            look(stage, scribe, "read", &key(client, place, 0))
        }
        _ => {
            let from = random.below(CELLS);
            let count = 1 + random.below(CELLS - from);
            let value = (random.below(2) == 0).then(|| stage.value());
            let done = change(stage, scribe, &own, has_begun, (from, count), value);
            match &done {
                Ok(()) => sheets.all[place as usize].1 = true,
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    sheets.all[place as usize] = (generation + 1, false);
                }
                // It is as it was.
                Err(_) => {}
            }
            done
        }
    }
}

/// Reads all that others read.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    keys().iter().try_for_each(|key| look(stage, scribe, "final", key))
}

/// The first sheets of some clients.
pub(super) fn keys() -> Vec<String> {
    let of = |client| (0..SHEETS).map(move |place| key(client, place, 0));
    (1..=READ_CLIENTS).flat_map(of).collect()
}

/// Writes or clears cells. The first change makes the sheet as long as it stays.
fn change(
    stage: &Stage,
    scribe: &mut Scribe,
    key: &str,
    has_begun: bool,
    (from, count): (u64, u64),
    value: Option<u64>,
) -> Result<()> {
    let name = if value.is_some() { "write" } else { "clear" };
    let steps = vec![Step::Cells { key: key.to_owned(), from, count, value }];
    scribe.record(name, Moment::Strict, steps, |_| {
        let mut deal = stage.caller.begin();
        let range = ByteRange { start: from * CELL, end: (from + count) * CELL };
        let changed = match value {
            None => Operation::Clear { range },
            Some(value) => {
                let bytes = value.to_le_bytes().repeat((range.len() / 8) as usize);
                let payload = Payload::Inline(Bytes::from(bytes));
                Operation::Write { offset: range.start, payload }
            }
        };
        let _ = match has_begun {
            true => deal.add(key, changed),
            false => deal.add_two(key, [Operation::Truncate { len: CELLS * CELL }, changed]),
        };
        deal.commit()
    })
}

fn look(stage: &Stage, scribe: &mut Scribe, name: &str, key: &str) -> Result<()> {
    let steps = vec![Step::Sheet { key: key.to_owned(), seen: None }];
    scribe.record(name, Moment::Strict, steps, |steps| {
        let whole = ByteRange { start: 0, end: 2 * CELLS * CELL };
        let found = stage.caller.read(key, whole)?.unwrap_or_default();
        let seen = found.chunks(CELL as usize).map(cell).collect();
        steps[0] = Step::Sheet { key: key.to_owned(), seen: Some(seen) };
        Ok(())
    })
}

/// What is in a cell, if it is one thing.
fn cell(bytes: &[u8]) -> Option<u64> {
    let (words, rest) = bytes.as_chunks::<8>();
    let first = words.first()?;
    let is_one = rest.is_empty() && words.iter().all(|word| word == first);
    (is_one && bytes.len() as u64 == CELL).then(|| u64::from_le_bytes(*first))
}
