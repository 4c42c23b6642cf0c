//! The head of a segment: whether it takes entries, when it was made, whose it is.
//!
//! The first 16 bytes are what an append expects: the magic, and that the word behind it is zero.
//! A segment that is closed, or was trimmed and is not there any more, has other bytes there.

use tyr::{Bytes, Error, Result, Stamped, Timestamp};

use crate::bytes::{stamp_at, u32_at, u64_at};
use crate::name::Name;

/// Bytes of the head; the first frame begins behind it.
pub const HEAD_LEN: u64 = 64;

/// How a segment begins: the last byte is the version of its format.
const MAGIC: [u8; 8] = *b"tyr-seg\x01";

/// Where the word is that says whether it is closed.
pub const CLOSED_AT: u64 = 8;

const CREATED_AT: usize = 16;
const NUMBER_AT: usize = 32;
const PARTITION_AT: usize = 40;
const GUARD_AT: usize = 44;

/// Whether a segment takes entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// It does.
    No,
    /// The partition goes on in the next one.
    Rolled,
    /// The log takes no more entries.
    Sealed,
}

impl Closed {
    /// The word in the head.
    pub fn word(self) -> [u8; 8] {
        let word: u64 = match self {
            Self::No => 0,
            Self::Rolled => 1,
            Self::Sealed => 2,
        };
        word.to_le_bytes()
    }
}

/// The head of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whether it takes entries.
    pub closed: Closed,
    /// When it was made; everything in the segments before is older.
    pub created: Timestamp,
}

/// The first bytes of a segment that takes entries.
pub fn open_bytes() -> Bytes {
    Bytes::from([MAGIC, Closed::No.word()].concat())
}

/// The head of a new segment.
pub fn new_head(log: &Name, partition: u16, segment: u64) -> Result<Stamped> {
    let mut head = [0; HEAD_LEN as usize];
    head[..8].copy_from_slice(&MAGIC);
    head[NUMBER_AT..NUMBER_AT + 8].copy_from_slice(&segment.to_le_bytes());
    head[PARTITION_AT..PARTITION_AT + 4].copy_from_slice(&u32::from(partition).to_le_bytes());
    let guard = guard(log, partition, segment);
    head[GUARD_AT..GUARD_AT + 4].copy_from_slice(&guard.to_le_bytes());
    Stamped::new(head.to_vec(), [CREATED_AT])
}

impl Head {
    /// Reads the head of this segment.
    ///
    /// # Errors
    /// `Corrupt` when these bytes are not its head, `Unavailable` for a later format.
    pub fn read(bytes: &[u8], log: &Name, partition: u16, segment: u64) -> Result<Self> {
        let what = || format!("segment {segment} of partition {partition} of log {log}");
        if let Some((magic, _)) = bytes.split_first_chunk::<8>()
            && magic[..7] == MAGIC[..7]
            && magic[7] > MAGIC[7]
        {
            return Err(Error::later_release(what(), format!("format {}", magic[7]), MAGIC[7]));
        }
        let read = || {
            let is_head = bytes.len() >= HEAD_LEN as usize
                && bytes[..8] == MAGIC
                && u64_at(bytes, NUMBER_AT) == segment
                && u32_at(bytes, PARTITION_AT) == u32::from(partition)
                && u32_at(bytes, GUARD_AT) == guard(log, partition, segment);
            let closed = match is_head.then(|| u64_at(bytes, CLOSED_AT as usize))? {
                0 => Closed::No,
                1 => Closed::Rolled,
                2 => Closed::Sealed,
                _ => return None,
            };
            Some(Self { closed, created: stamp_at(bytes, CREATED_AT)? })
        };
        read().ok_or_else(|| {
            Error::corrupt(format!("{} does not begin as one: something else wrote it", what()))
        })
    }
}

/// What every frame of this segment repeats, so that a position that is none is noticed.
pub fn guard(log: &Name, partition: u16, segment: u64) -> u32 {
    let place = [&partition.to_le_bytes()[..], &segment.to_le_bytes(), log.as_str().as_bytes()];
    crc32c::crc32c(&place.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Name {
        Name::new("log", "orders").unwrap()
    }

    #[test]
    fn a_head_reads_back_and_says_whether_it_is_closed() {
        let at = Timestamp { clock: 7, ..Timestamp::ZERO };
        let mut bytes = new_head(&log(), 3, 9).unwrap().filled(at).to_vec();
        assert_eq!(bytes.len() as u64, HEAD_LEN);
        assert_eq!(bytes[..16], open_bytes());
        for closed in [Closed::No, Closed::Rolled, Closed::Sealed] {
            bytes[8..16].copy_from_slice(&closed.word());
            let head = Head::read(&bytes, &log(), 3, 9).unwrap();
            assert_eq!(head, Head { closed, created: at });
        }
    }

    #[test]
    fn what_is_no_head_of_this_segment_is_told_and_a_later_format_is_not_called_damage() {
        let bytes = new_head(&log(), 3, 9).unwrap().filled(Timestamp::ZERO).to_vec();
        let kind = |bytes: &[u8], partition, segment| {
            Head::read(bytes, &log(), partition, segment).unwrap_err().kind()
        };
        use tyr::ErrorKind::{Corrupt, Unavailable};
        assert_eq!(kind(&bytes, 3, 8), Corrupt);
        assert_eq!(kind(&bytes, 2, 9), Corrupt);
        for cut in [0, 8, 63] {
            assert_eq!(kind(&bytes[..cut], 3, 9), Corrupt);
        }
        for at in [0, 8, 33, 40, 45] {
            let mut other = bytes.clone();
            other[at] ^= 0x40;
            assert_eq!(kind(&other, 3, 9), Corrupt, "{at}");
        }
        let mut later = bytes;
        later[7] += 1;
        assert_eq!(kind(&later, 3, 9), Unavailable);
    }
}
