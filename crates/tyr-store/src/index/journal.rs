//! Reads the library's journals before the library does.
//!
//! fjall takes a damaged batch for the end of a journal, cuts the file there, and whatever was
//! acknowledged behind it is gone without a word. So this module walks the journals first and
//! tells three things apart: whole journals; a torn tail, which a loss of power leaves and which
//! holds nothing that was synced; and damage, which is reported and left untouched.
//!
//! ```text
//!   batch   01 count:u32 seqno:u64  item*  03 xxh3(items):u64 "FJL" 03
//!   item    02 type:u8 compression:u8 table:u64 key_len:u16 value_len:u32 stored_len:u32 key value
//! ```
//!
//! All numbers are little-endian. Every batch of ours sets [`BATCH_KEY`] to its own number and to
//! the library's sequence number before it, which the library's checksum does not cover.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::{BATCH_KEY, Table, seal};

const START_LEN: usize = 13;
const ITEM_LEN: usize = 21;
const END_LEN: usize = 13;
const TRAILER: &[u8] = b"FJL\x03";

const _: () = {
    assert!(START_LEN == 1 + size_of::<u32>() + size_of::<u64>());
    assert!(ITEM_LEN == 3 + size_of::<u64>() + size_of::<u16>() + 2 * size_of::<u32>());
    assert!(END_LEN == 1 + size_of::<u64>() + TRAILER.len());
};

/// How far the library's own housekeeping may push its sequence number between two batches.
const SEQNO_LEAP_MAX: u64 = 1 << 20;

/// What every batch says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchStamp {
    /// Its number: one more than the batch before.
    pub number: u64,
    /// The library's sequence number just before it was committed.
    pub seqno_floor: u64,
}

impl BatchStamp {
    /// As the value of [`BATCH_KEY`].
    pub fn encode(self) -> Vec<u8> {
        let mut value = self.number.to_le_bytes().to_vec();
        value.extend_from_slice(&self.seqno_floor.to_le_bytes());
        debug_assert_eq!(Self::decode(&value), Some(self), "a stamp reads back");
        value
    }

    /// From the value of [`BATCH_KEY`].
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (number, floor) = value.split_at_checked(8)?;
        Some(Self {
            number: u64::from_le_bytes(number.try_into().ok()?),
            seqno_floor: u64::from_le_bytes(floor.try_into().ok()?),
        })
    }
}

/// A whole batch in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalBatch {
    pub stamp: BatchStamp,
    pub seqno: u64,
    /// Where the next one begins.
    pub end: usize,
}

/// How a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With its last batch; behind it there is nothing, or zeros.
    Whole,
    /// With bytes that are no batch.
    Broken {
        /// Where they begin.
        at: usize,
        /// The sequence number they claim, when they begin like a batch.
        seqno: Option<u64>,
        /// Whether a whole batch follows somewhere behind them.
        is_followed: bool,
    },
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The whole batch at `start`, if there is one.
pub(super) fn batch_at(journal: &[u8], start: usize) -> Option<JournalBatch> {
    if *journal.get(start)? != 1 {
        return None;
    }
    let count = u32::from_le_bytes(number(journal, start + 1)?);
    let seqno = u64::from_le_bytes(number(journal, start + 5)?);
    let mut at = start + START_LEN;
    let mut stamp = None;
    for _ in 0..count {
        // Type 0 is a value and 1 a removal; we let the library compress nothing in its journal.
        let [2, 0 | 1, 0] = number::<3>(journal, at)? else { return None };
        let key_len = usize::from(u16::from_le_bytes(number(journal, at + 11)?));
        let value_len = u32::from_le_bytes(number(journal, at + 13)?);
        if value_len != u32::from_le_bytes(number(journal, at + 17)?) {
            return None;
        }
        let key_at = at + ITEM_LEN;
        let value_at = key_at + key_len;
        at = value_at.checked_add(value_len as usize)?;
        let key = journal.get(key_at..value_at)?;
        let value = journal.get(value_at..at)?;
        if key == BATCH_KEY {
            let value = seal::open(Table::Meta, key, Bytes::copy_from_slice(value)).ok()?;
            stamp = Some(BatchStamp::decode(&value)?);
        }
    }
    let end = journal.get(at..at.checked_add(END_LEN)?)?;
    let is_whole = end[0] == 3
        && end[1..9] == xxh3_64(&journal[start + START_LEN..at]).to_le_bytes()
        && &end[9..] == TRAILER;
    is_whole.then_some(JournalBatch { stamp: stamp?, seqno, end: at + END_LEN })
}

/// Visits the batches of a journal in order; answers how it ends and where its last batch does.
pub(super) fn walk<E>(
    journal: &[u8],
    mut visit: impl FnMut(usize, JournalBatch) -> Result<(), E>,
) -> Result<(usize, Ending), E> {
    let mut at = 0;
    while let Some(batch) = batch_at(journal, at) {
        debug_assert!(
            at + START_LEN + END_LEN <= batch.end && batch.end <= journal.len(),
            "the batch at {at} ends at {} of {}",
            batch.end,
            journal.len()
        );
        visit(at, batch)?;
        at = batch.end;
    }
    let rest = &journal[at..];
    if rest.iter().all(|byte| *byte == 0) {
        return Ok((at, Ending::Whole));
    }
    let seqno = (rest[0] == 1).then(|| number(rest, 5).map(u64::from_le_bytes)).flatten();
    let is_followed = (at + 1..journal.len()).any(|start| batch_at(journal, start).is_some());
    Ok((at, Ending::Broken { at, seqno, is_followed }))
}

/// Whether a batch may follow in this place; if not, why.
pub(super) fn follows(previous: Option<JournalBatch>, next: JournalBatch) -> Result<(), String> {
    let JournalBatch { stamp, seqno, .. } = next;
    if let Some(previous) = previous {
        if stamp.number != previous.stamp.number + 1 {
            return Err(format!(
                "batch {} is followed by batch {}",
                previous.stamp.number, stamp.number
            ));
        }
        if seqno <= previous.seqno {
            return Err(format!(
                "batch {} has sequence number {seqno}, the one before it {}",
                stamp.number, previous.seqno
            ));
        }
    }
    match seqno.checked_sub(stamp.seqno_floor) {
        Some(leap) if leap < SEQNO_LEAP_MAX => Ok(()),
        Some(_) | None => Err(format!(
            "batch {} has sequence number {seqno} and was committed at {}",
            stamp.number, stamp.seqno_floor
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch as the library writes it.
    fn batch(number: u64, seqno: u64, value: &[u8]) -> Vec<u8> {
        let mut stamp = BatchStamp { number, seqno_floor: seqno }.encode();
        seal::close(Table::Meta, BATCH_KEY, &mut stamp);
        let mut items = Vec::new();
        for (key, value) in [(b"key".as_slice(), value), (BATCH_KEY, &stamp)] {
            items.extend_from_slice(&[2, 0, 0]);
            items.extend_from_slice(&1u64.to_le_bytes());
            items.extend_from_slice(&(key.len() as u16).to_le_bytes());
            items.extend_from_slice(&(value.len() as u32).to_le_bytes());
            items.extend_from_slice(&(value.len() as u32).to_le_bytes());
            items.extend_from_slice(key);
            items.extend_from_slice(value);
        }
        let mut bytes = vec![1, 2, 0, 0, 0];
        bytes.extend_from_slice(&seqno.to_le_bytes());
        bytes.extend_from_slice(&items);
        bytes.push(3);
        bytes.extend_from_slice(&xxh3_64(&items).to_le_bytes());
        bytes.extend_from_slice(TRAILER);
        bytes
    }

    fn walked(journal: &[u8]) -> (Vec<JournalBatch>, Result<Ending, String>) {
        let mut batches: Vec<JournalBatch> = Vec::new();
        let ending = walk(journal, |_, batch| {
            follows(batches.last().copied(), batch)?;
            batches.push(batch);
            Ok(())
        });
        (batches, ending.map(|(_, ending)| ending))
    }

    #[test]
    fn a_whole_journal_with_zeros_behind_it_is_whole() {
        let mut journal = [batch(7, 70, b"a"), batch(8, 71, b"b")].concat();
        journal.extend_from_slice(&[0; 100]);
        let (batches, ending) = walked(&journal);
        assert_eq!(batches.iter().map(|batch| batch.stamp.number).collect::<Vec<_>>(), [7, 8]);
        assert_eq!(ending, Ok(Ending::Whole));
    }

    #[test]
    fn any_flipped_bit_of_a_batch_that_another_follows_is_noticed() {
        let journal = [batch(7, 70, b"a"), batch(8, 71, b"b"), batch(9, 72, b"c")].concat();
        for bit in 0..journal.len() * 8 * 2 / 3 {
            let mut flipped = journal.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (_, ending) = walked(&flipped);
            let is_noticed = match ending {
                Ok(Ending::Whole) => false,
                Ok(Ending::Broken { is_followed, .. }) => is_followed,
                Err(_) => true,
            };
            // A sequence number of the first batch that is lower still, but not below its floor,
            // cannot be; one that is higher than the next one's neither.
            assert!(is_noticed, "bit {bit}");
        }
    }

    #[test]
    fn a_cut_last_batch_is_a_tail_that_nothing_follows() {
        let first = batch(1, 1, b"a");
        let journal = [first.clone(), batch(2, 2, b"bb")].concat();
        for len in first.len() + 1..journal.len() {
            let (batches, ending) = walked(&journal[..len]);
            assert_eq!(batches.len(), 1);
            let Ok(Ending::Broken { at, is_followed, .. }) = ending else { panic!("cut to {len}") };
            assert_eq!((at, is_followed), (first.len(), false));
        }
    }
}
