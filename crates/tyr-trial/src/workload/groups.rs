//! Groups: entries that are made and removed on condition, and counted in a header of the same
//! group, which one part of their keys places (H).
//!
//! Snapshots list a group and read its header; transactions read both. New groups come into use
//! all the time, so that each has a short history.

use tyr_types::{ByteRange, Bytes, Existence, Number, Operation, Payload, Result, Transform};

use super::Stage;
use crate::client::{range, values};
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Groups in use at a time.
const WINDOW: u64 = 2;

/// Values written before the window moves by one.
const VALUES_PER_STEP: u64 = 80;

/// Entries that a group may have, by their numbers from 1.
pub const ENTRIES: u64 = 12;

/// A listing asks for so many keys at a time: fewer than there may be.
const PAGE: usize = 5;

/// One operation of a client.
pub(super) fn act(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let group = key(stage.written() / VALUES_PER_STEP + random.below(WINDOW));
    let entry = 1 + random.below(ENTRIES);
    match random.below(10) {
        0..4 => change(stage, scribe, &group, entry, true),
        4..7 => change(stage, scribe, &group, entry, false),
        7 => look_at_header(stage, scribe, "read", &group),
        8 => look_by_transaction(stage, scribe, &group),
        _ => look_by_snapshot(stage, scribe, &group),
    }
}

/// Looks at every group once more.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    (0..stage.written() / VALUES_PER_STEP + WINDOW).try_for_each(|number| {
        look_at_header(stage, scribe, "final", &key(number))?;
        look_by_snapshot(stage, scribe, &key(number))
    })
}

/// The keys of headers and entries.
pub(super) fn keys(stage: &Stage) -> Vec<String> {
    let groups = (0..stage.written() / VALUES_PER_STEP + WINDOW).map(key);
    groups.flat_map(|group| [vec![header(&group)], entries(&group)].concat()).collect()
}

fn key(number: u64) -> String {
    format!("group-{number}")
}

fn header(group: &str) -> String {
    format!("{group}/header")
}

fn entry_key(group: &str, entry: u64) -> String {
    format!("{group}/entry-{entry:02}")
}

fn entries(group: &str) -> Vec<String> {
    (1..=ENTRIES).map(|entry| entry_key(group, entry)).collect()
}

/// Makes an entry that is not there, or removes one that is.
fn change(
    stage: &Stage,
    scribe: &mut Scribe,
    group: &str,
    entry: u64,
    is_entering: bool,
) -> Result<()> {
    let (key, value) = (group.to_owned(), stage.value());
    let (name, step) = match is_entering {
        true => ("enter", Step::Enter { key, entry }),
        false => ("leave", Step::Leave { key, entry }),
    };
    scribe.record(name, Moment::Strict, vec![step], |_| {
        let add = |offset, number: u64| {
            let number = if is_entering { number } else { number.wrapping_neg() };
            Operation::Apply { offset, transform: Transform::add(Number::U64(number)) }
        };
        let payload = Payload::Inline(Bytes::copy_from_slice(&value.to_le_bytes()));
        let changed = match is_entering {
            true => [Operation::Create, Operation::Write { offset: 0, payload }],
            false => [Operation::Expect { existence: Existence::Present }, Operation::Delete],
        };
        let mut deal = stage.caller.begin();
        deal.add_two(&header(group), [add(0, 1), add(8, entry)]);
        deal.add_two(&entry_key(group, entry), changed);
        deal.commit()
    })
}

fn asked(group: &str) -> Vec<Step> {
    vec![Step::Members { key: group.to_owned(), count: None, sum: None, seen: None }]
}

/// What a header says, and the entries that were found.
fn members(group: &str, header: Option<Bytes>, seen: Option<Vec<u64>>) -> Result<Step> {
    let numbers = values(&header.unwrap_or_default())?;
    let number = |place: usize| Some(numbers.get(place).copied().unwrap_or(0));
    Ok(Step::Members { key: group.to_owned(), count: number(0), sum: number(1), seen })
}

fn look_at_header(stage: &Stage, scribe: &mut Scribe, name: &str, group: &str) -> Result<()> {
    scribe.record(name, Moment::Strict, asked(group), |steps| {
        let bytes = stage.caller.read(&header(group), range(0, 2))?;
        steps[0] = members(group, bytes, None)?;
        Ok(())
    })
}

fn look_by_transaction(stage: &Stage, scribe: &mut Scribe, group: &str) -> Result<()> {
    scribe.record("read-transaction", Moment::Strict, asked(group), |steps| {
        let mut deal = stage.caller.begin();
        let bytes = deal.read(&header(group), range(0, 2))?;
        let mut seen = Vec::new();
        for (entry, key) in (1..).zip(entries(group)) {
            if deal.read(&key, ByteRange { start: 0, end: 8 })?.is_some() {
                seen.push(entry);
            }
        }
        steps[0] = members(group, bytes, Some(seen))?;
        deal.commit()
    })
}

fn look_by_snapshot(stage: &Stage, scribe: &mut Scribe, group: &str) -> Result<()> {
    scribe.record("snapshot", Moment::Snapshot, asked(group), |steps| {
        let (at, _lease) = stage.caller.moment()?;
        let bytes = stage.caller.read_at(&header(group), range(0, 2), at)?;
        let prefix = format!("{group}/entry-");
        let listed = stage.caller.list_group_at(at, PAGE, &prefix)?;
        let entry = |key: &String| key.strip_prefix(&prefix).and_then(|it| it.parse().ok());
        steps[0] = members(group, bytes, Some(listed.iter().filter_map(entry).collect()))?;
        Ok(())
    })
}
