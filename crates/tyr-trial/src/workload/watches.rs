//! Watches: some clients write cells, others watch them, one by one and by what their keys begin
//! with, and look at what they are told of (K5).
//!
//! Cells are in groups. New ones come into use all the time and each is written a few times, so
//! that a change that nobody is told of is never made up for by a later one. Who watches goes on
//! for a while when nobody writes any more: until it has seen all, or had time enough to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tyr_client::{KeyWatch, Want, block_on};
use tyr_runtime::waiting::block_on_within;
use tyr_types::{Error, Key, Result, Timestamp, WatchEvent, WatchTarget};

use super::{PAUSE, Stage};
use crate::client::{put, range, values};
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Cells in use at a time.
const WINDOW: u64 = 4;

/// Values written before the window moves by one.
const VALUES_PER_STEP: u64 = 8;

/// Groups that cells are in.
const FIELDS: u64 = 3;

/// Who is to look at everything looks at so many cells: those that were written in the last
/// minutes.
const LOOKS_BACK: u64 = 500;

/// Cells that are looked at in one read.
const BATCH: usize = 16;

/// Watches of a client.
const WATCHES: usize = 4;

/// How long a client waits for news of one watch before it asks another.
const WAIT: Duration = Duration::from_millis(25);

/// A writer waits so long after each write: who watches is to hear of single ones.
const WRITES_EACH: Duration = Duration::from_millis(30);

/// Who has not seen all when nobody writes any more goes on for so long: longer than the check
/// gives it ([`crate::check::watches`]).
const GOES_ON: Duration = Duration::from_secs(25);

/// What a client watches, and knows of it.
struct Held {
    number: u64,
    target: WatchTarget,
    handle: KeyWatch,
    until: Instant,
    /// What it was told of and has not looked at yet.
    due: BTreeSet<String>,
    /// The version of each cell that it has seen.
    seen: BTreeMap<String, Timestamp>,
}

impl Held {
    fn covers(&self, key: &str, stage: &Stage) -> bool {
        let WatchTarget { keyspace, prefix, is_exact } = &self.target;
        let is_meant = match is_exact {
            true => key.as_bytes() == &prefix[..],
            false => key.as_bytes().starts_with(prefix),
        };
        is_meant && stage.caller.blob(key).keyspace == *keyspace
    }

    /// The cells of it that were in use of late.
    fn cells(&self, stage: &Stage) -> Vec<String> {
        recent(stage).map(key).filter(|key| self.covers(key, stage)).collect()
    }
}

/// What a client has besides its scribe.
#[derive(Default)]
pub(super) struct Watcher {
    held: Vec<Held>,
    begun: u64,
}

/// One round of a client: a third of them write, a third watch prefixes, a third single cells.
pub(super) fn act(
    stage: &Stage,
    client: u64,
    watcher: &mut Watcher,
    scribe: &mut Scribe,
    random: &mut Random,
) -> Result<()> {
    if client.is_multiple_of(3) {
        std::thread::sleep(WRITES_EACH);
        return write(stage, scribe, random);
    }
    if let Some(place) = watcher.held.iter().position(|held| held.until < Instant::now()) {
        end(watcher.held.remove(place), scribe)?;
    }
    if watcher.held.len() < WATCHES {
        watcher.begun += 1;
        let number = client << 32 | watcher.begun;
        let held = begin(stage, number, scribe, random)?;
        watcher.held.push(held);
    }
    watcher.held.iter_mut().try_for_each(|held| hear(stage, held, scribe))
}

/// When nobody writes any more: a client that watches goes on until it has seen what there is, or
/// for long enough that it should have. What it looks for itself here tells it only when to stop.
pub(super) fn drain(stage: &Stage, mut watcher: Watcher, scribe: &mut Scribe) {
    let until = Instant::now() + GOES_ON;
    while !watcher.held.is_empty() && Instant::now() < until {
        for held in &mut watcher.held {
            // What fails is written down and asked for again.
            let _ = hear(stage, held, scribe);
        }
        let has_seen_all = |held: &Held| {
            let cells = held.cells(stage);
            let mut parts = cells.chunks(BATCH);
            held.due.is_empty() && parts.all(|part| is_seen(stage, held, part).unwrap_or(false))
        };
        if watcher.held.iter().all(has_seen_all) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    for held in watcher.held {
        // A watch is ended without asking anybody.
        let _ = end(held, scribe);
    }
}

/// The keys of all cells.
pub(super) fn keys(stage: &Stage) -> Vec<String> {
    (0..stage.written() / VALUES_PER_STEP + WINDOW).map(key).collect()
}

fn recent(stage: &Stage) -> std::ops::Range<u64> {
    let end = stage.written() / VALUES_PER_STEP + WINDOW;
    end.saturating_sub(LOOKS_BACK)..end
}

fn field(number: u64) -> String {
    format!("field-{}/", number % FIELDS)
}

fn key(number: u64) -> String {
    format!("{}cell-{number}", field(number))
}

fn write(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let value = stage.value();
    let key = key(value / VALUES_PER_STEP + random.below(WINDOW));
    let steps = vec![Step::Write { key: key.clone(), value }];
    scribe.record("write", Moment::Strict, steps, |_| {
        let mut deal = stage.caller.begin();
        deal.add(&key, put(value));
        deal.commit()
    })
}

/// Watches something: a cell that is in use, or all, a group, or some of a group by what their keys
/// begin with. It lasts for some seconds, or a minute.
fn begin(stage: &Stage, watch: u64, scribe: &mut Scribe, random: &mut Random) -> Result<Held> {
    let is_prefix = (watch >> 32) % 3 == 1;
    let cell = stage.written() / VALUES_PER_STEP + random.below(WINDOW);
    let prefix = match (is_prefix, random.below(3)) {
        (false, _) => key(cell),
        (true, 0) if stage.caller.keyspaces() == 1 => String::new(),
        (true, 1) => format!("{}cell-1", field(cell)),
        (true, _) => field(cell),
    };
    let lasts = Duration::from_secs(if random.below(2) == 0 { 60 } else { random.between(5, 20) });
    let keyspace = stage.caller.blob(&key(cell)).keyspace;
    let mut target = WatchTarget::prefix(keyspace, prefix.as_bytes())?;
    target.is_exact = !is_prefix;
    let mut handle = None;
    let steps = vec![Step::Watch { watch, key: prefix, is_exact: target.is_exact }];
    scribe.record("watch", Moment::Strict, steps, |_| {
        handle = Some(block_on(stage.caller.client().watch(target.clone()).answer())?);
        Ok(())
    })?;
    let handle = handle.ok_or_else(|| Error::corrupt("a watch without a handle"))?;
    let until = Instant::now() + lasts;
    Ok(Held { number: watch, target, handle, until, due: BTreeSet::new(), seen: BTreeMap::new() })
}

fn end(held: Held, scribe: &mut Scribe) -> Result<()> {
    let steps = vec![Step::Unwatch { watch: held.number }];
    scribe.record("unwatch", Moment::Strict, steps, |_| {
        drop(held.handle);
        Ok(())
    })
}

/// Takes what has come, and looks at what it has been told of.
fn hear(stage: &Stage, held: &mut Held, scribe: &mut Scribe) -> Result<()> {
    if let Some(event) = block_on_within(held.handle.state().next(), WAIT) {
        let mut told = WatchEvent::default();
        let steps = vec![news(held.number, &told)];
        scribe.record("news", Moment::Strict, steps, |steps| {
            told = event?;
            steps[0] = news(held.number, &told);
            Ok(())
        })?;
        held.due.extend(told.changes.keys.iter().map(text));
        if told.is_anew || told.changes.is_more {
            let all = held.cells(stage);
            held.due.extend(all);
        }
    }
    let due: Vec<String> = held.due.iter().cloned().collect();
    due.chunks(BATCH).try_for_each(|part| look(stage, held, part, scribe))
}

fn news(watch: u64, event: &WatchEvent) -> Step {
    let WatchEvent { is_anew, changes, .. } = event;
    let version = (!changes.keys.is_empty()).then(|| digits(changes.at));
    let (keys, more) = (changes.keys.iter().map(text).collect(), changes.is_more);
    Step::Told { watch, anew: *is_anew, keys, more, version }
}

fn text(key: &Key) -> String {
    String::from_utf8_lossy(key.as_bytes()).into_owned()
}

fn look(stage: &Stage, held: &mut Held, part: &[String], scribe: &mut Scribe) -> Result<()> {
    let step = |key: &String, seen, version| {
        let (watch, key) = (held.number, key.clone());
        Step::Look { watch, key, seen, version }
    };
    let steps = part.iter().map(|key| step(key, None, None)).collect();
    let mut looked = Vec::new();
    scribe.record("look", Moment::Fresh, steps, |steps| {
        looked = read(stage, part)?;
        for (place, (key, (value, version))) in part.iter().zip(&looked).enumerate() {
            steps[place] = step(key, Some(*value), Some(digits(*version)));
        }
        Ok(())
    })?;
    for (key, (_, version)) in part.iter().zip(looked) {
        held.due.remove(key);
        held.seen.insert(key.clone(), version);
    }
    Ok(())
}

/// Whether these cells are as the watch has seen them last.
fn is_seen(stage: &Stage, held: &Held, part: &[String]) -> Result<bool> {
    let now = read(stage, part)?;
    let mut both = part.iter().zip(now);
    Ok(both.all(|(key, (value, version))| value == 0 || held.seen.get(key) >= Some(&version)))
}

/// What is in some cells at one moment, 0 for nothing, and the version of each.
fn read(stage: &Stage, keys: &[String]) -> Result<Vec<(u64, Timestamp)>> {
    let want = |key: &String| {
        let blob = stage.caller.blob(key);
        Want { blob, range: range(0, 1), is_attributes: true }
    };
    let wants = keys.iter().map(want).collect();
    let (_, seen) = block_on(stage.caller.client().read_many(wants).answer())?;
    let value = |seen: &tyr_client::Seen| match seen.is_absent() {
        true => Ok((0, Timestamp::ZERO)),
        false => Ok((values(&seen.bytes)?.first().copied().unwrap_or(0), seen.version)),
    };
    seen.iter().map(value).collect()
}

/// A timestamp as digits that sort as timestamps do.
fn digits(at: Timestamp) -> String {
    at.to_stamp().iter().map(|byte| format!("{byte:02x}")).collect()
}
