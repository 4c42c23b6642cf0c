//! Kept snapshots: pairs of blobs that come, change and go together, as in [`listings`], and
//! snapshots that are kept meanwhile, read again and again, and dropped (V7).
//!
//! A client keeps a few at a time, each for some seconds, and reads its own. When it has dropped
//! one it tries to read that once more. What it does not know to be kept it does not read, and
//! drops.

use std::time::{Duration, Instant};

use tyr_client::block_on;
use tyr_types::{ByteRange, Error, ErrorKind, KeptName, Result, Timestamp};

use super::Stage;
use super::listings::{self, HEAD, PAGE, Pairs, keys_of};
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Snapshots that a client keeps at a time, less those that it is to drop and could not.
const KEPT: usize = 2;

/// Between two of them at least.
const EVERY: Duration = Duration::from_secs(2);

/// How long one is kept, in milliseconds. Versions that nobody keeps linger for five seconds.
const LASTS_MS: [u64; 4] = [500, 3000, 8000, 15_000];

/// What could not be dropped is tried again after so long.
const AGAIN: Duration = Duration::from_millis(500);

/// One that could not be read is dropped after so long.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// What its snapshots' names begin with.
const NAMES: &str = "trial-";

/// Longer than any blob is.
const ALL: ByteRange = ByteRange { start: 0, end: 1 << 20 };

/// A snapshot that is kept.
struct Kept {
    number: u64,
    /// Its moment, once that was asked for.
    at: Option<Timestamp>,
    /// Whether it was answered that it is kept.
    is_sure: bool,
    until: Instant,
}

impl Kept {
    fn name(&self) -> Result<KeptName> {
        KeptName::new(&format!("{NAMES}{}", self.number))
    }
}

/// What a client has besides its scribe.
#[derive(Default)]
pub(super) struct Collection {
    pairs: Pairs,
    kept: Vec<Kept>,
    begun: u64,
    begun_at: Option<Instant>,
}

/// One operation of a client.
pub(super) fn act(
    stage: &Stage,
    client: u64,
    collection: &mut Collection,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    let now = Instant::now();
    if let Some(place) = collection.kept.iter().position(|kept| kept.until < now) {
        let kept = collection.kept.remove(place);
        return end(stage, collection, kept, scribe);
    }
    let is_time = collection.begun_at.is_none_or(|begun| now - begun >= EVERY);
    if is_time && collection.kept.len() < KEPT {
        collection.begun += 1;
        collection.begun_at = Some(now);
        let lasts = Duration::from_millis(random.pick(&LASTS_MS));
        return begin(stage, collection, client << 32 | collection.begun, lasts, scribe);
    }
    if random.below(6) == 0
        && let Some(kept) = collection.kept.iter_mut().rfind(|kept| kept.is_sure)
    {
        let pair = collection.pairs.pick(stage, random).number();
        let done = look(stage, kept, pair, scribe);
        if done.is_err() {
            // It may stay so: another is of more use.
            kept.until = kept.until.min(now + AFTER_REFUSAL);
        }
        return done;
    }
    listings::change_one(stage, &mut collection.pairs, scribe, random)
}

/// Reads what is still kept once more, and drops it.
pub(super) fn drain(stage: &Stage, mut collection: Collection, scribe: &mut Scribe) {
    for mut kept in std::mem::take(&mut collection.kept) {
        // What fails is written down; what stays is dropped in the end.
        if kept.is_sure {
            let _ = look(stage, &mut kept, 0, scribe);
        }
        let _ = end(stage, &mut collection, kept, scribe);
    }
}

/// Drops what is left, and lists what there is.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    let client = stage.caller.client();
    for kept in block_on(client.kept())? {
        if kept.name.as_str().starts_with(NAMES) {
            block_on(client.drop_kept(&kept.name))?;
        }
    }
    listings::finish(stage, scribe)
}

fn begin(
    stage: &Stage,
    collection: &mut Collection,
    snapshot: u64,
    lasts: Duration,
    scribe: &mut Scribe,
) -> Result<()> {
    let mut kept =
        Kept { number: snapshot, at: None, is_sure: true, until: Instant::now() + lasts };
    let name = kept.name()?;
    let done = scribe.record("keep", Moment::Strict, vec![Step::Keep { snapshot }], |_| {
        block_on(stage.caller.client().keep(&name)).map(drop)
    });
    if done.is_err() {
        (kept.is_sure, kept.until) = (false, Instant::now());
    }
    collection.kept.push(kept);
    done
}

fn end(
    stage: &Stage,
    collection: &mut Collection,
    mut kept: Kept,
    scribe: &mut Scribe,
) -> Result<()> {
    let (name, snapshot) = (kept.name()?, kept.number);
    let done = scribe.record("drop", Moment::Strict, vec![Step::Unkeep { snapshot }], |_| {
        block_on(stage.caller.client().drop_kept(&name))
    });
    match &done {
        Ok(()) if kept.is_sure => {
            // That it is not there any more is what is expected.
            let _ = look(stage, &mut kept, 0, scribe);
        }
        Ok(()) => {}
        // A drop before it, of which nobody knew, was done.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(_) => {
            kept.until = Instant::now() + AGAIN;
            collection.kept.push(kept);
        }
    }
    done
}

/// Reads a kept snapshot: all keys with their sizes, then with their first bytes, and both blobs of
/// a pair.
fn look(stage: &Stage, kept: &mut Kept, pair: u64, scribe: &mut Scribe) -> Result<()> {
    let keys = keys_of(pair);
    let read = |key: &String| Step::Read { key: key.clone(), seen: None };
    let mut steps = vec![
        Step::Kept { snapshot: kept.number },
        Step::Scan { seen: None },
        Step::Heads { seen: None },
    ];
    steps.extend(keys.iter().map(read));
    let name = kept.name()?;
    scribe.record("look", Moment::Snapshot, steps, |steps| {
        let client = stage.caller.client();
        let at = match kept.at {
            Some(at) => at,
            None => *kept.at.insert(block_on(client.kept_moment(&name))?),
        };
        client.check_kept(at)?;
        let seen = read_all(stage, at, &keys);
        let seen = seen.map_err(|error| block_on(client.unread_kept(at, error)))?;
        steps.truncate(1);
        steps.extend(seen);
        Ok(())
    })
}

fn read_all(stage: &Stage, at: Timestamp, keys: &[String]) -> Result<Vec<Step>> {
    let caller = &stage.caller;
    let mut steps = vec![
        Step::Scan { seen: Some(caller.list_at(at, PAGE)?) },
        Step::Heads { seen: Some(caller.heads_at(at, PAGE, HEAD)?) },
    ];
    for key in keys {
        let bytes = caller.read_at(key, ALL, at)?.unwrap_or_default();
        let size = bytes.len() as u64;
        if bytes.iter().any(|byte| *byte != size as u8) {
            return Err(Error::corrupt(format!("{key} of {size} bytes has others than its own")));
        }
        steps.push(Step::Read { key: key.clone(), seen: Some(size) });
    }
    Ok(steps)
}
