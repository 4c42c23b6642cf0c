//! A frame: the entries of one append, with the stamp of its transaction.
//!
//! ```text
//!  0  length     u32, of the whole frame
//!  4  guard      u32, of the segment
//!  8  count      u32, of entries, 1 and more
//! 12  version    u8, 1
//! 13  zeros      3
//! 16  stamp      16, filled by the commit
//! 32  ends       count times u32: where each entry ends, from the first byte of the first
//!     entries
//! ```
//!
//! It has no checksum: the store verifies every byte that it answers.

use tyr::{Bytes, Error, Result, Stamped, Timestamp, limits};

use crate::bytes::{stamp_at, u32_at};

/// Bytes of a frame before its ends.
pub const FRAME_HEAD_LEN: usize = 32;

/// The longest frame: half of what a transaction carries, so that other data has its place.
pub const FRAME_LEN_MAX: usize = 8 << 20;

/// Entries of a frame, so that one of empty entries is bounded, too.
pub const ENTRIES_MAX: usize = 65_536;

const GUARD_AT: usize = 4;
const COUNT_AT: usize = 8;
const VERSION_AT: usize = 12;
const STAMP_AT: usize = 16;
const VERSION: u8 = 1;

const _: () = assert!(FRAME_LEN_MAX < limits::TRANSACTION_INLINE_MAX);

/// Entries that are appended together: all of them or none, one after another, with one stamp.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    ends: Vec<u32>,
    bytes: Vec<u8>,
    partition: Option<u16>,
}

impl Batch {
    /// Without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of these entries.
    ///
    /// # Errors
    /// As [`Batch::push`].
    pub fn of(entries: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<Self> {
        let mut batch = Self::new();
        entries.into_iter().try_for_each(|entry| batch.push(entry))?;
        Ok(batch)
    }

    /// The same batch for this partition; else each goes to the next one in turn.
    #[must_use]
    pub fn in_partition(mut self, partition: u16) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Adds an entry of any bytes, or none.
    ///
    /// # Errors
    /// `InvalidArgument` when the batch would have more than 65,536 entries, or more than 8 MiB
    /// with 32 bytes for itself and four for each entry; it stays as it was.
    pub fn push(&mut self, entry: impl AsRef<[u8]>) -> Result<()> {
        let entry = entry.as_ref();
        if self.ends.len() == ENTRIES_MAX || self.frame_len() + 4 + entry.len() > FRAME_LEN_MAX {
            return Err(Error::invalid(format!(
                "a batch has at most {ENTRIES_MAX} entries and {FRAME_LEN_MAX} bytes (8 MiB), with \
                 {} and {} it is full, and the next entry has {}; append it, and begin another",
                self.ends.len(),
                self.frame_len(),
                entry.len()
            )));
        }
        self.bytes.extend_from_slice(entry);
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }

    /// How many entries.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes that it takes in the log.
    pub fn frame_len(&self) -> usize {
        FRAME_HEAD_LEN + 4 * self.ends.len() + self.bytes.len()
    }

    pub(crate) fn partition(&self) -> Option<u16> {
        self.partition
    }

    /// The frame of these entries for the segment of this guard.
    pub(crate) fn frame(&self, guard: u32) -> Result<Stamped> {
        if self.is_empty() {
            return Err(Error::invalid("a batch without entries cannot be appended: push one"));
        }
        let mut frame = frame_head(self.frame_len(), guard, self.ends.len());
        self.ends.iter().for_each(|end| frame.extend_from_slice(&end.to_le_bytes()));
        frame.extend_from_slice(&self.bytes);
        Stamped::new(frame, [STAMP_AT])
    }
}

/// The first bytes of a frame, in a buffer for all of it.
fn frame_head(len: usize, guard: u32, count: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(len);
    frame.extend_from_slice(&(len as u32).to_le_bytes());
    frame.extend_from_slice(&guard.to_le_bytes());
    frame.extend_from_slice(&(count as u32).to_le_bytes());
    frame.extend_from_slice(&[VERSION, 0, 0, 0]);
    frame.extend_from_slice(&[0; limits::STAMP_LEN]);
    frame
}

/// A frame as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The commit timestamp of its transaction.
    pub stamp: Timestamp,
    bytes: Bytes,
    count: u32,
}

/// What is at a place of a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A frame.
    Frame(Frame),
    /// The begin of a frame of this length.
    Part(usize),
    /// No frame.
    Nothing,
}

impl Frame {
    /// What `bytes` begin with, in the segment of this guard.
    ///
    /// # Errors
    /// `Unavailable` for a frame of a later format.
    pub fn read(bytes: &Bytes, guard: u32) -> Result<Found> {
        if bytes.is_empty() {
            return Ok(Found::Nothing);
        }
        if bytes.len() < FRAME_HEAD_LEN {
            return Ok(Found::Part(FRAME_HEAD_LEN));
        }
        let (len, count) = (u32_at(bytes, 0) as usize, u32_at(bytes, COUNT_AT));
        let bounds = FRAME_HEAD_LEN + 4..=FRAME_LEN_MAX;
        if u32_at(bytes, GUARD_AT) != guard || !bounds.contains(&len) {
            return Ok(Found::Nothing);
        }
        if bytes[VERSION_AT] > VERSION {
            let format = format!("format {}", bytes[VERSION_AT]);
            return Err(Error::later_release("a frame of the log", format, VERSION));
        }
        let entries = FRAME_HEAD_LEN + 4 * count as usize;
        let (Some(stamp), 1.., true) = (stamp_at(bytes, STAMP_AT), count, entries <= len) else {
            return Ok(Found::Nothing);
        };
        if bytes.len() < len {
            return Ok(Found::Part(len));
        }
        let frame = Self { stamp, bytes: bytes.slice(..len), count };
        let ends = || (0..count).map(|index| frame.end(index));
        let is_whole = ends().is_sorted() && ends().next_back() == Some(len - entries);
        Ok(if is_whole { Found::Frame(frame) } else { Found::Nothing })
    }

    /// Bytes of it.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// How many entries.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// An entry, from 0.
    pub fn entry(&self, index: u32) -> Bytes {
        let begin = index.checked_sub(1).map_or(0, |before| self.end(before));
        let entries = FRAME_HEAD_LEN + 4 * self.count as usize;
        self.bytes.slice(entries + begin..entries + self.end(index))
    }

    fn end(&self, index: u32) -> usize {
        u32_at(&self.bytes, FRAME_HEAD_LEN + 4 * index as usize) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GUARD: u32 = 0xC0FF_EE11;
    const AT: Timestamp = Timestamp { clock: 9, node: 1, ..Timestamp::ZERO };

    fn frame(entries: &[Vec<u8>]) -> Bytes {
        Batch::of(entries).unwrap().frame(GUARD).unwrap().filled(AT)
    }

    fn read(bytes: &Bytes) -> Frame {
        match Frame::read(bytes, GUARD).unwrap() {
            Found::Frame(frame) => frame,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn entries_read_back_whatever_follows(
            entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..40),
            behind in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let bytes = frame(&entries);
            let found = read(&[&bytes[..], &behind].concat().into());
            prop_assert_eq!(found.stamp, AT);
            prop_assert_eq!(found.len(), bytes.len() as u64);
            let got: Vec<Vec<u8>> =
                (0..found.count()).map(|index| found.entry(index).to_vec()).collect();
            prop_assert_eq!(got, entries);
        }

        #[test]
        fn a_begin_tells_how_long_the_whole_is(cut in 1_usize..67) {
            let bytes = frame(&[vec![7; 20], vec![8; 8]]);
            prop_assert_eq!(bytes.len(), 68);
            let needed = match Frame::read(&bytes.slice(..cut), GUARD).unwrap() {
                Found::Part(needed) => needed,
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(needed, if cut < FRAME_HEAD_LEN { FRAME_HEAD_LEN } else { 68 });
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            (at, byte) in (0_usize..68, any::<u8>()),
        ) {
            let _ = Frame::read(&Bytes::from(bytes), GUARD);
            let mut changed = frame(&[vec![7; 20], vec![8; 8]]).to_vec();
            changed[at] = byte;
            if let Ok(Found::Frame(frame)) = Frame::read(&changed.into(), GUARD) {
                (0..frame.count()).for_each(|index| drop(frame.entry(index)));
            }
        }
    }

    #[test]
    fn what_is_no_frame_here_is_told() {
        let bytes = frame(&[vec![7; 90]]);
        assert_eq!(Frame::read(&bytes, GUARD + 1).unwrap(), Found::Nothing);
        assert_eq!(Frame::read(&bytes.slice(8..), GUARD).unwrap(), Found::Nothing);
        assert_eq!(Frame::read(&Bytes::new(), GUARD).unwrap(), Found::Nothing);
        let mut later = bytes.to_vec();
        later[VERSION_AT] = 2;
        let error = Frame::read(&later.into(), GUARD).unwrap_err();
        assert_eq!(error.kind(), tyr::ErrorKind::Unavailable);
    }

    #[test]
    fn a_batch_has_bounds_and_stays_as_it_was_where_it_meets_them() {
        let mut batch = Batch::new();
        assert!(batch.frame(GUARD).is_err());
        batch.push(vec![1; FRAME_LEN_MAX - FRAME_HEAD_LEN - 4]).unwrap();
        assert_eq!(batch.frame_len(), FRAME_LEN_MAX);
        let error = batch.push([]).unwrap_err();
        assert!(error.message().contains("8 MiB"), "{error}");
        assert_eq!(batch.len(), 1);
        let mut many = Batch::of(vec![[]; ENTRIES_MAX]).unwrap();
        assert!(many.push([]).unwrap_err().message().contains("65536 entries"));
        assert_eq!(read(&many.frame(GUARD).unwrap().filled(AT)).count() as usize, ENTRIES_MAX);
    }
}
