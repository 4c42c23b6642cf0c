//! Stamps: journals whose records begin with a place that the commit timestamp fills (C10).
//!
//! Clients append to one journal, or to two at once: then both records get the same stamp. They
//! read the newest part; in the end all is read.

use std::sync::Arc;

use tyr_types::{ByteRange, Bytes, Error, Operation, Payload, Result, Stamped, limits};

use super::Stage;
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// Journals.
const JOURNALS: u64 = 3;

/// Bytes of a record: a stamp, and a number.
const RECORD: u64 = limits::STAMP_LEN as u64 + 8;

/// Records of which the newest part has as many as are there, up to this.
const TAIL: u64 = 48;

/// Records read at once in the end.
const PIECE: u64 = 1 << 12;

fn key(journal: u64) -> String {
    format!("journal-{journal}")
}

/// The keys of the journals.
pub(super) fn keys() -> Vec<String> {
    (0..JOURNALS).map(key).collect()
}

/// One operation of a client.
pub(super) fn act(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let journal = random.below(JOURNALS);
    match random.below(10) {
        0..5 => add(stage, scribe, &[journal]),
        5..7 => add(stage, scribe, &[journal, (journal + 1) % JOURNALS]),
        _ => {
            let size = stage.caller.size(&key(journal))?;
            read(stage, scribe, "tail", &key(journal), (size / RECORD).saturating_sub(TAIL))
        }
    }
}

/// Reads all of each.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    keys().iter().try_for_each(|key| read(stage, scribe, "final", key, 0))
}

fn add(stage: &Stage, scribe: &mut Scribe, journals: &[u64]) -> Result<()> {
    let value = stage.value();
    let step = |journal: &u64| Step::Stamp { key: key(*journal), value };
    let steps = journals.iter().map(step).collect();
    scribe.record("append", Moment::Strict, steps, |_| {
        let mut deal = stage.caller.begin();
        for journal in journals {
            let mut record = vec![0; limits::STAMP_LEN];
            record.extend(value.to_le_bytes());
            let stamped = Stamped::new(Bytes::from(record), [0])?;
            let payload = Payload::Stamped(Arc::new(stamped));
            deal.add(&key(*journal), Operation::Append { payload, expected: None });
        }
        deal.commit()
    })
}

fn read(stage: &Stage, scribe: &mut Scribe, name: &str, key: &str, from: u64) -> Result<()> {
    let steps = vec![Step::Journal { key: key.to_owned(), from, seen: None }];
    scribe.record(name, Moment::Strict, steps, |steps| {
        let mut all = Vec::new();
        loop {
            let start = (from + all.len() as u64) * RECORD;
            let range = ByteRange { start, end: start + PIECE * RECORD };
            let found = stage.caller.read(key, range)?.unwrap_or_default();
            if !(found.len() as u64).is_multiple_of(RECORD) {
                return Err(Error::corrupt(format!(
                    "{key} has {} bytes from {start}",
                    found.len()
                )));
            }
            let records: Vec<_> = found.chunks_exact(RECORD as usize).map(record).collect();
            let is_last = (records.len() as u64) < PIECE;
            all.extend(records);
            if is_last {
                break;
            }
        }
        steps[0] = Step::Journal { key: key.to_owned(), from, seen: Some(all) };
        Ok(())
    })
}

/// A stamp as digits, and the number behind it.
fn record(bytes: &[u8]) -> (String, u64) {
    let (stamp, value) = bytes.split_at(limits::STAMP_LEN);
    let digits = stamp.iter().map(|byte| format!("{byte:02x}")).collect();
    (digits, u64::from_le_bytes(value.try_into().expect("a record ends with eight bytes")))
}
