//! Uploads: payloads of several chunks that are put, written over and appended, most of them in
//! pieces ahead of their transactions (U1 to U4); some clients are killed in the middle.
//!
//! Each client is a process of its own. Every word of a payload says whose it is and which, so
//! that a reading tells what it is made of. New blobs come into use all the time, and those before
//! are deleted.

use std::time::Duration;

use tyr_types::{ByteRange, Bytes, Error, ErrorKind, Result};

use super::Stage;
use crate::history::{How, Moment, Run, Scribe, Step};
use crate::puppet::{Order, Puppet};
use crate::random::Random;

/// Blobs in use at a time, which is what a small disk has room for.
const WINDOW: u64 = 2;

/// Values written before the window moves by one.
const VALUES_PER_STEP: u64 = 25;

/// Words of a MiB, which is a chunk.
const CHUNK: u64 = (1 << 20) / 8;

/// Chunks of what is put at most.
const CHUNKS: u64 = 8;

/// Words of a blob, beyond which nothing is appended.
const LEN_MAX: u64 = 10 * CHUNK;

/// Clients rest for so long after each write: it is a lot of bytes for one machine.
const REST: Duration = Duration::from_millis(100);

/// A reading that is made of more runs than this is of noise.
const RUNS_MAX: usize = 500;

/// The first of a client's acts after which it may be killed. What it has sent then stays at the
/// nodes for a day: so the next time is after twice as many.
const FIRST_DEATH: u64 = 8;

/// A client, and its process.
#[derive(Debug)]
pub(super) struct Writer {
    puppet: Option<Puppet>,
    acts: u64,
    next_death: u64,
}

impl Default for Writer {
    fn default() -> Self {
        Self { puppet: None, acts: 0, next_death: FIRST_DEATH }
    }
}

/// One operation of a client.
pub(super) fn act(
    stage: &Stage,
    writer: &mut Writer,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    let key = key(stage.written() / VALUES_PER_STEP + random.below(WINDOW));
    if random.below(3) == 0 {
        return look(stage, scribe, "read", &key);
    }
    std::thread::sleep(REST);
    writer.acts += 1;
    let value = stage.value();
    let client = Puppet::of(&mut writer.puppet, &stage.puppets)?;
    if value % VALUES_PER_STEP == VALUES_PER_STEP / 2 && value > VALUES_PER_STEP {
        // By now nobody begins anything with the blob behind the window.
        return delete(client, scribe, &self::key(value / VALUES_PER_STEP - 1), value);
    }
    if writer.acts >= writer.next_death {
        writer.next_death *= 2;
        let done = match random.below(2) {
            0 => die_half_way(client, scribe, (&key, value, CHUNKS * CHUNK)),
            _ => {
                let within = Duration::from_millis(random.below(200));
                let (how, len) = (How::Whole, CHUNKS * CHUNK);
                let step = Step::Upload { key, value, len, how, at: None };
                die_some_time(client, scribe, step, within)
            }
        };
        writer.puppet = None;
        return done;
    }
    let chunks = 1 + random.below(CHUNKS).min(random.below(CHUNKS));
    let len = chunks * CHUNK - random.below(CHUNK / 2);
    let size = stage.caller.size(&key)? / 8;
    let (name, how, at) = match random.below(10) {
        4..7 => ("write", How::Over, Some(random.below(CHUNKS * CHUNK))),
        7 if size < LEN_MAX => ("append", How::End, None),
        8.. if size < LEN_MAX => ("append-at", How::Expected, Some(size)),
        _ => ("put", How::Whole, None),
    };
    write(client, scribe, name, Step::Upload { key, value, len, how, at })
}

/// Reads what is in use.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    keys(stage).iter().try_for_each(|key| look(stage, scribe, "final", key))
}

/// The blobs in use.
pub(super) fn keys(stage: &Stage) -> Vec<String> {
    let newest = stage.written() / VALUES_PER_STEP;
    (newest..newest + WINDOW).map(key).collect()
}

fn key(number: u64) -> String {
    format!("upload-{number}")
}

fn order(step: &Step) -> Result<Order> {
    let Step::Upload { key, value, len, how, at } = step.clone() else {
        return Err(Error::invalid(format!("{step:?} is no upload")));
    };
    Ok(Order::Upload { key, value, len, how, at: at.unwrap_or(0) })
}

/// Writes a payload; that a blob does not end where it was expected to is no failure.
fn write(client: &mut Puppet, scribe: &mut Scribe, name: &str, step: Step) -> Result<()> {
    let done = scribe.record(name, Moment::Strict, vec![step], |steps| {
        let offset = client.ask(&order(&steps[0])?)?;
        if let Step::Upload { how: How::End, at, .. } = &mut steps[0] {
            *at = Some(offset / 8);
        }
        Ok(())
    });
    match done {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        done => done,
    }
}

/// Deletes a blob: it is read as an empty one.
fn delete(client: &mut Puppet, scribe: &mut Scribe, key: &str, value: u64) -> Result<()> {
    let (key, how) = (key.to_owned(), How::Whole);
    let step = Step::Upload { key: key.clone(), value, len: 0, how, at: None };
    scribe.record("delete", Moment::Strict, vec![step], |_| {
        client.ask(&Order::Delete { key }).map(drop)
    })
}

/// The client is killed when half of a payload is sent: nothing of that may ever be seen.
fn die_half_way(
    client: &mut Puppet,
    scribe: &mut Scribe,
    (key, value, len): (&str, u64, u64),
) -> Result<()> {
    let (key, how) = (key.to_owned(), How::Whole);
    let step = Step::Upload { key: key.clone(), value, len, how, at: None };
    let done = scribe.record("killed-half-way", Moment::Strict, vec![step], |_| {
        client.ask(&Order::Half { key, value, len })?;
        client.kill();
        Err(Error::unavailable("the client was killed before all was sent"))
    });
    // That it failed was meant.
    done.or(Ok(()))
}

/// The client is killed a while after it began: what it wrote is seen, or never.
fn die_some_time(
    client: &mut Puppet,
    scribe: &mut Scribe,
    step: Step,
    within: Duration,
) -> Result<()> {
    let done = scribe.record("killed", Moment::Strict, vec![step], |steps| {
        client.send(&order(&steps[0])?)?;
        std::thread::sleep(within);
        client.kill();
        Err(Error::new(ErrorKind::TimedOut, "the client was killed"))
    });
    done.or(Ok(()))
}

fn look(stage: &Stage, scribe: &mut Scribe, name: &str, key: &str) -> Result<()> {
    let steps = vec![Step::Runs { key: key.to_owned(), seen: None }];
    scribe.record(name, Moment::Strict, steps, |steps| {
        let whole = ByteRange { start: 0, end: 1 << 26 };
        let found = stage.caller.read(key, whole)?.unwrap_or_default();
        steps[0] = Step::Runs { key: key.to_owned(), seen: Some(runs(&found)?) };
        Ok(())
    })
}

/// What is in a blob, in runs as long as they are.
fn runs(bytes: &Bytes) -> Result<Vec<Run>> {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut runs = Vec::<Run>::new();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let (value, place) = (word >> 32, word & u64::from(u32::MAX));
        match runs.last_mut() {
            Some((last, from, count))
                if *last == value && follows(value, *from + *count, place) =>
            {
                *count += 1;
            }
            _ => runs.push((value, place, 1)),
        }
    }
    if !rest.is_empty() || runs.len() > RUNS_MAX {
        let (bytes, runs) = (bytes.len(), runs.len());
        return Err(Error::corrupt(format!("noise: {bytes} bytes of {runs} runs")));
    }
    Ok(runs)
}

/// Whether a word is the one that comes next; zeros are all alike.
fn follows(value: u64, next: u64, place: u64) -> bool {
    if value == 0 { place == 0 } else { place == next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::puppet::payload;

    #[test]
    fn what_is_read_tells_what_it_is_made_of() {
        let mut bytes = payload(1, 10);
        bytes.splice(16..32, payload(2, 2));
        bytes.extend([0; 24]);
        bytes.extend(payload(3, 1));
        let seen = runs(&Bytes::from(bytes)).unwrap();
        assert_eq!(seen, [(1, 0, 2), (2, 0, 2), (1, 4, 6), (0, 0, 3), (3, 0, 1)]);
        assert!(runs(&Bytes::from(vec![0; 9])).is_err(), "a word that is cut");
        let noise: Vec<u8> = (0..9000_u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        assert!(runs(&Bytes::from(noise)).is_err());
    }
}
