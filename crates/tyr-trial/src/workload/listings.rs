//! Listings: pairs of blobs that come, change and go together, and snapshots that list them again
//! and again: keys and sizes, with first bytes, as groups.
//!
//! A pair has one writer, so that what a listing may show of it can be told. One whose outcome
//! stays unknown is left alone from then on, for its last write may come at any time. Over several
//! keyspaces the halves of a pair lie in two of them, and a snapshot lists all at one moment.

use std::time::Duration;

use tyr_types::{Bytes, ErrorKind, Operation, Payload, Result};

use super::Stage;
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Pairs of a client at a time.
const PAIRS: u64 = 40;

/// Bytes of a blob at most: of two chunks, so that the log grows and is folded.
const SIZE_MAX: u64 = 6000;

/// First bytes that a listing asks for.
pub const HEAD: u64 = 12;

/// A listing asks for so many keys at a time.
pub const PAGE: usize = 50;

/// Between the two listings of a snapshot, in milliseconds. A fold waits for young snapshots, up to
/// two seconds; versions linger for five.
const PAUSES_MS: [u64; 6] = [0, 0, 20, 100, 500, 2500];

/// A pair of blobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    number: u64,
    exists: bool,
}

impl Pair {
    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// The pairs of one client.
#[derive(Debug, Default)]
pub(super) struct Pairs(Vec<Pair>);

impl Pairs {
    /// One of them.
    pub fn pick(&mut self, stage: &Stage, random: &mut Random) -> &mut Pair {
        let place = random.below(PAIRS) as usize;
        while self.0.len() <= place {
            self.0.push(Pair { number: stage.value(), exists: false });
        }
        &mut self.0[place]
    }
}

/// The keys of a pair. In order they are neighbours; where they lie has nothing to do with that.
pub fn keys_of(pair: u64) -> [String; 2] {
    ["left", "right"].map(|side| format!("{pair:06}-{side}"))
}

/// One operation of a client.
pub(super) fn act(
    stage: &Stage,
    pairs: &mut Pairs,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    if random.below(10) < 3 {
        let pause = Duration::from_millis(random.pick(&PAUSES_MS));
        return snapshot(stage, scribe, pause);
    }
    change_one(stage, pairs, scribe, random)
}

/// Puts a pair with another size, or deletes it.
pub(super) fn change_one(
    stage: &Stage,
    pairs: &mut Pairs,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    let pair = pairs.pick(stage, random);
    let size = match pair.exists && random.below(2) == 0 {
        true => None,
        false => Some(1 + stage.value() % SIZE_MAX),
    };
    let done = change(stage, scribe, pair.number, size);
    match &done {
        Ok(()) => pair.exists = size.is_some(),
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            *pair = Pair { number: stage.value(), exists: false };
        }
        // It is as it was.
        Err(_) => {}
    }
    done
}

/// Lists everything.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    scribe.record("final", Moment::Fresh, vec![Step::Scan { seen: None }], |steps| {
        list(stage, steps, Duration::ZERO)
    })
}

/// The pairs that were made; numbers that were sizes are keys of nothing.
pub(super) fn keys(stage: &Stage) -> Vec<String> {
    let all = stage.caller.moment().and_then(|(at, _lease)| stage.caller.list_at(at, PAGE));
    all.unwrap_or_default().into_iter().map(|(key, _)| key).collect()
}

/// Puts both blobs of a pair with this size, or deletes both.
fn change(stage: &Stage, scribe: &mut Scribe, pair: u64, size: Option<u64>) -> Result<()> {
    let operation = if size.is_some() { "put" } else { "delete" };
    scribe.record(operation, Moment::Strict, vec![Step::Pair { pair, size }], |_| {
        let mut deal = stage.caller.begin();
        for key in keys_of(pair) {
            let _ = deal.add(&key, size.map_or(Operation::Delete, put));
        }
        deal.commit()
    })
}

fn put(size: u64) -> Operation {
    let bytes = vec![size as u8; size as usize];
    Operation::Replace { payload: Payload::Inline(Bytes::from(bytes)) }
}

fn snapshot(stage: &Stage, scribe: &mut Scribe, pause: Duration) -> Result<()> {
    let steps = vec![
        Step::Scan { seen: None },
        Step::Heads { seen: None },
        Step::Groups { seen: None },
        Step::Scan { seen: None },
    ];
    scribe.record("snapshot", Moment::Snapshot, steps, |steps| list(stage, steps, pause))
}

fn list(stage: &Stage, steps: &mut [Step], pause: Duration) -> Result<()> {
    let (at, _lease) = stage.caller.moment()?;
    for (step, number) in steps.iter_mut().zip(0..) {
        if number > 0 {
            std::thread::sleep(pause);
        }
        match step {
            Step::Heads { seen } => *seen = Some(stage.caller.heads_at(at, PAGE, HEAD)?),
            Step::Groups { seen } => *seen = Some(stage.caller.groups_at(at, PAGE, "-")?),
            step => *step = Step::Scan { seen: Some(stage.caller.list_at(at, PAGE)?) },
        }
    }
    Ok(())
}
