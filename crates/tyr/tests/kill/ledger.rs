//! The transactions of the kill test, and what they must have left.
//!
//! What transaction `n` of a thread does follows from the two numbers alone. So what a thread left
//! follows from how many of its transactions took effect, which its own blob `thread/t` says: it
//! holds the numbers 1, 2, 3 and so on. Everything else has to agree with that.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{ErrorKind, Number, Result, Transform, TransformKind, limits};
use tyr_chance::Chance;

/// Threads of the child.
pub const THREADS: usize = 6;

/// Large payloads that a thread has at a time.
const SLOTS: u64 = 4;
/// Scopes that every transaction is counted in.
const SCOPES: u64 = 3;
/// Bytes of the blob that a thread overwrites in places.
const SCRATCH_LEN: u64 = 50_000;

/// The blob, its content.
type Blobs = BTreeMap<String, Vec<u8>>;

/// Commits transactions in several threads until the process ends.
pub fn write_for_ever(tyr: &Tyr, keyspace: &Keyspace) {
    let folds = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let (tyr, keyspace, folds) = (tyr.clone(), keyspace.clone(), &folds);
            scope.spawn(move || {
                for number in count(&keyspace, thread).unwrap() + 1.. {
                    let mut transaction = tyr.begin();
                    fill(&mut transaction, &keyspace, thread, number).unwrap();
                    transaction.commit().unwrap();
                    say(&format!("done {thread} {number}\n"));
                    let now = tyr.statistics().folds;
                    if folds.fetch_max(now, Ordering::Relaxed) < now {
                        say(&format!("folds {now}\n"));
                    }
                }
            });
        }
    });
}

/// One write, so that lines of several threads do not mix.
fn say(line: &str) {
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

/// How many transactions of a thread took effect.
fn count(keyspace: &Keyspace, thread: u64) -> Result<u64> {
    match keyspace.stat(format!("thread/{thread}")) {
        Ok(stat) => Ok(stat.size / 8),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// What one transaction does.
enum Step {
    Append(String, Vec<u8>),
    Add(String, u64, u64),
    Put(String, Vec<u8>),
    Write(String, u64, Vec<u8>),
    Truncate(String, u64),
    Delete(String),
}

/// Transaction `number` of a thread.
fn steps(thread: u64, number: u64) -> Vec<Step> {
    let mut chance = Chance::new(thread << 32 | number);
    let mut steps = vec![Step::Append(format!("thread/{thread}"), number.to_le_bytes().to_vec())];
    for scope in ["all".to_owned(), format!("scope/{}", (thread + number) % SCOPES)] {
        steps.push(Step::Add(scope.clone(), 0, 1));
        steps.push(Step::Add(scope, 8, number));
    }
    if chance.below(6) == 0 {
        let len = 40_000 + chance.below(160_000);
        let slot = chance.below(SLOTS);
        steps.push(Step::Put(format!("payload/{thread}/{slot}"), content(&mut chance, len)));
    }
    if chance.below(9) == 0 {
        let slot = chance.below(SLOTS);
        steps.push(Step::Delete(format!("payload/{thread}/{slot}")));
    }
    if chance.below(3) == 0 {
        let (offset, len) = (chance.below(SCRATCH_LEN), chance.below(3000));
        let bytes = content(&mut chance, len);
        steps.push(Step::Write(format!("scratch/{thread}"), offset, bytes));
    }
    if chance.below(25) == 0 {
        let len = chance.below(SCRATCH_LEN);
        steps.push(Step::Truncate(format!("scratch/{thread}"), len));
    }
    if chance.below(15) == 0 {
        let len = 33_000 + chance.below(20_000);
        let bytes = content(&mut chance, len);
        steps.push(Step::Write(format!("scratch/{thread}"), chance.below(SCRATCH_LEN), bytes));
    }
    steps
}

fn content(chance: &mut Chance, len: u64) -> Vec<u8> {
    // Half of it compresses, so that both ways of storing it come up.
    let is_random = chance.below(2) == 0;
    let word = chance.any();
    let words = (0..len.div_ceil(8)).map(|_| if is_random { chance.any() } else { word });
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(len as usize);
    bytes
}

fn fill(
    transaction: &mut Transaction,
    keyspace: &Keyspace,
    thread: u64,
    number: u64,
) -> Result<()> {
    for step in steps(thread, number) {
        match step {
            Step::Append(key, bytes) => transaction.append(keyspace, &key, bytes),
            Step::Add(key, offset, more) => {
                let add = Transform::new(TransformKind::Add, Number::U64(more))?;
                transaction.apply(keyspace, &key, offset, add)
            }
            Step::Put(key, bytes) => transaction.put(keyspace, &key, bytes),
            Step::Write(key, offset, bytes) => transaction.write(keyspace, &key, offset, bytes),
            Step::Truncate(key, len) => transaction.truncate(keyspace, &key, len),
            Step::Delete(key) => transaction.delete(keyspace, &key),
        }?;
    }
    Ok(())
}

fn play(step: Step, blobs: &mut Blobs) {
    match step {
        Step::Append(key, bytes) => blobs.entry(key).or_default().extend(bytes),
        Step::Add(key, offset, more) => {
            let blob = blobs.entry(key).or_default();
            let (start, end) = (offset as usize, offset as usize + 8);
            blob.resize(blob.len().max(end), 0);
            let old = u64::from_le_bytes(blob[start..end].try_into().unwrap());
            blob[start..end].copy_from_slice(&(old + more).to_le_bytes());
        }
        Step::Put(key, bytes) => {
            blobs.insert(key, bytes);
        }
        Step::Write(key, offset, bytes) => {
            let blob = blobs.entry(key).or_default();
            let (start, end) = (offset as usize, offset as usize + bytes.len());
            blob.resize(blob.len().max(end), 0);
            blob[start..end].copy_from_slice(&bytes);
        }
        Step::Truncate(key, len) => blobs.entry(key).or_default().resize(len as usize, 0),
        Step::Delete(key) => {
            blobs.remove(&key);
        }
    }
}

/// Checks that the store holds, to the byte, what some number of transactions of each thread left;
/// answers the numbers.
pub fn verify(keyspace: &Keyspace, context: &str) -> [u64; THREADS] {
    let counts: [u64; THREADS] =
        std::array::from_fn(|thread| count(keyspace, thread as u64).unwrap());
    let mut expected = Blobs::new();
    for (thread, count) in (0..).zip(counts) {
        for step in (1..=count).flat_map(|number| steps(thread, number)) {
            play(step, &mut expected);
        }
    }
    let listed = keyspace.scan(b"", None, limits::SCAN_LIMIT_MAX).unwrap();
    let listed: Vec<String> = listed.iter().map(|(key, _)| key.to_string()).collect();
    let wanted: Vec<String> = expected.keys().cloned().collect();
    assert_eq!(listed, wanted, "{context}: other blobs than {counts:?} transactions leave");
    for (key, wanted) in expected {
        let found = keyspace.get(&key).unwrap_or_else(|error| panic!("{context}: {key}: {error}"));
        assert_eq!(found.len(), wanted.len(), "{context}: the size of {key} after {counts:?}");
        if let Some(at) = (0..wanted.len()).find(|at| found[*at] != wanted[*at]) {
            panic!("{context}: byte {at} of {} of {key} after {counts:?}", wanted.len());
        }
    }
    counts
}
