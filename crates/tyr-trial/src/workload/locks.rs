//! Locks: clients take them, append under their fences, stand still with them and go on, or are
//! killed with them (K1, K3, K4).
//!
//! Each client is a process of its own. What a lock guards is a list of records with tokens, so
//! that the order of commits can be read there. New locks come into use all the time, so that each
//! has a short history.

use std::time::Duration;

use tyr_types::{ByteRange, Error, ErrorKind, Result};

use super::Stage;
use crate::history::{Moment, Scribe, Step};
use crate::puppet::{Order, Puppet};
use crate::random::Random;

/// Locks in use at a time.
const WINDOW: u64 = 2;

/// Values written before the window moves by one.
const VALUES_PER_STEP: u64 = 60;

/// How long a lock lasts unless it is renewed: as briefly as it may.
pub(crate) const LASTS_MS: u64 = 1000;

/// How long a client waits for one.
const WAIT_MS: u64 = 2500;

/// How long clients stand still: less than a lock lasts, about as long, longer.
const STANDS_MS: [u64; 4] = [300, 1000, 1500, 2500];

/// Records under one lock at most.
const RECORDS: u64 = 3;

/// Bytes of a record: a token, and a value.
pub(crate) const RECORD: u64 = 16;

/// What a client does with a lock besides appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    /// It stands still between two appends.
    Stands,
    /// It does so while an append is on its way.
    StandsInside,
    /// It is killed, with the lock.
    Killed,
}

/// One round of a client: a lock, with what is done under it; or a look at what one guards.
pub(super) fn act(
    stage: &Stage,
    puppet: &mut Option<Puppet>,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    let key = key(stage.written() / VALUES_PER_STEP + random.below(WINDOW));
    if random.below(5) == 0 {
        return look(stage, scribe, "read", &key);
    }
    let trouble = match random.below(10) {
        0..2 => Trouble::Stands,
        2 => Trouble::StandsInside,
        3 => Trouble::Killed,
        _ => Trouble::None,
    };
    let stands = Duration::from_millis(random.pick(&STANDS_MS));
    let client = Puppet::of(puppet, &stage.puppets)?;
    let token = take(client, scribe, &key)?;
    for _ in 0..1 + random.below(RECORDS) {
        append(stage, client, scribe, (&key, token), None)?;
    }
    match trouble {
        Trouble::None => {}
        Trouble::Stands => {
            client.pause();
            std::thread::sleep(stands);
            client.resume();
            ask_held(client, scribe, &key, token)?;
            append(stage, client, scribe, (&key, token), None)?;
        }
        Trouble::StandsInside => append(stage, client, scribe, (&key, token), Some(stands))?,
        Trouble::Killed => {
            *puppet = None;
            return Ok(());
        }
    }
    ask_held(client, scribe, &key, token)?;
    let steps = vec![Step::Unlock { key: key.clone(), token }];
    scribe.record("unlock", Moment::Strict, steps, |_| client.ask(&Order::Unlock).map(drop))
}

/// Reads what each lock guards.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    numbers(stage).try_for_each(|number| look(stage, scribe, "final", &key(number)))
}

/// The keys of locks and of what they guard.
pub(super) fn keys(stage: &Stage) -> Vec<String> {
    numbers(stage).flat_map(|number| [key(number), guarded(&key(number))]).collect()
}

fn numbers(stage: &Stage) -> std::ops::Range<u64> {
    0..stage.written() / VALUES_PER_STEP + WINDOW
}

fn key(number: u64) -> String {
    format!("lock-{number}")
}

pub(crate) fn guarded(key: &str) -> String {
    format!("behind-{key}")
}

pub(crate) fn take(client: &mut Puppet, scribe: &mut Scribe, key: &str) -> Result<u64> {
    let steps = vec![Step::Lock { key: key.to_owned(), token: None }];
    let mut got = 0;
    scribe.record("lock", Moment::Strict, steps, |steps| {
        let order = Order::Lock { key: key.to_owned(), lasts_ms: LASTS_MS, wait_ms: WAIT_MS };
        got = client.ask(&order)?;
        steps[0] = Step::Lock { key: key.to_owned(), token: Some(got) };
        Ok(())
    })?;
    Ok(got)
}

/// Appends a record under the fence; `stands` is how long the client stands still meanwhile. That
/// others have the lock by now is no failure of the client's.
fn append(
    stage: &Stage,
    client: &mut Puppet,
    scribe: &mut Scribe,
    (key, token): (&str, u64),
    stands: Option<Duration>,
) -> Result<()> {
    let value = stage.value();
    let step = |at| Step::Fenced { key: key.to_owned(), token, value, at };
    let done = scribe.record("fenced", Moment::Strict, vec![step(None)], |steps| {
        client.send(&Order::Fenced { key: guarded(key), value })?;
        if let Some(stands) = stands {
            client.pause();
            std::thread::sleep(stands);
            client.resume();
        }
        let offset = client.hear()?;
        if !offset.is_multiple_of(RECORD) {
            return Err(Error::corrupt(format!("a record at {offset}, between two")));
        }
        steps[0] = step(Some(offset / RECORD));
        Ok(())
    });
    match done {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        done => done,
    }
}

pub(crate) fn ask_held(
    client: &mut Puppet,
    scribe: &mut Scribe,
    key: &str,
    token: u64,
) -> Result<()> {
    let step = |seen| Step::Held { key: key.to_owned(), token, seen };
    scribe.record("held", Moment::Strict, vec![step(None)], |steps| {
        steps[0] = step(Some(client.ask(&Order::Held)? == 1));
        Ok(())
    })
}

pub(crate) fn look(stage: &Stage, scribe: &mut Scribe, name: &str, key: &str) -> Result<()> {
    let steps = vec![Step::Guarded { key: key.to_owned(), seen: None }];
    scribe.record(name, Moment::Strict, steps, |steps| {
        let whole = ByteRange { start: 0, end: 1 << 20 };
        let found = stage.caller.read(&guarded(key), whole)?.unwrap_or_default();
        let (records, rest) = found.as_chunks::<{ RECORD as usize }>();
        if !rest.is_empty() {
            return Err(Error::corrupt(format!("{key} guards {} bytes", found.len())));
        }
        let seen = records.iter().map(record).collect();
        steps[0] = Step::Guarded { key: key.to_owned(), seen: Some(seen) };
        Ok(())
    })
}

/// The token and the value of a record.
fn record(bytes: &[u8; RECORD as usize]) -> (u64, u64) {
    let (words, _) = bytes.as_chunks::<8>();
    (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
}
