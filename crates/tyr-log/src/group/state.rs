//! What is stored of a group in a partition.
//!
//! ```text
//!  0  magic    "tyr-grp", and the format's version, 1
//!  8  cursor   segment u64, offset u64, index u32
//! 28  next id  u64, of a delivery
//! 36  count    u32, of deliveries
//! 40  deliveries, of 64 bytes each:
//!      0  id        u64
//!      8  from, to  each segment u64, offset u64, index u32
//!     48  until     u64, microseconds since 1970
//!     56  times     u32, how often it was given out
//!     60  entries   u32
//! ```

use tyr::{Error, Result};

use crate::bytes::{u32_at, u64_at};
use crate::description::{MARK_LEN, mark_bytes, read_mark};
use crate::position::Position;

const MAGIC: [u8; 8] = *b"tyr-grp\x01";

/// Where the cursor is.
pub const CURSOR_AT: u64 = 8;
const NEXT_ID_AT: usize = 28;
const COUNT_AT: usize = 36;

/// Bytes without deliveries.
pub const HEAD_LEN: usize = 40;
const LENT_LEN: usize = 64;

/// What a group is in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// What is before was given out.
    pub cursor: Position,
    /// The id of the next delivery.
    pub next_id: u64,
    /// What was taken and not acknowledged.
    pub lent: Vec<Lent>,
}

/// Entries that somebody has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// Who has it knows this.
    pub id: u64,
    /// The first entry.
    pub from: Position,
    /// What is behind the last one.
    pub to: Position,
    /// When it is given to somebody else, in microseconds since 1970.
    pub until_us: u64,
    /// How often it was given out.
    pub times: u32,
    /// How many entries.
    pub entries: u32,
}

impl State {
    /// Of a group that has given out what is before a position.
    pub fn new(cursor: Position) -> Self {
        Self { cursor, next_id: 0, lent: Vec::new() }
    }

    /// The group with nothing given out behind a position, and ids that go on.
    pub fn moved(&self, cursor: Position) -> Self {
        Self { next_id: self.next_id, ..Self::new(cursor) }
    }

    /// The bytes of it.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_LEN + LENT_LEN * self.lent.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&mark_bytes(self.cursor));
        bytes.extend_from_slice(&self.next_id.to_le_bytes());
        bytes.extend_from_slice(&(self.lent.len() as u32).to_le_bytes());
        for lent in &self.lent {
            bytes.extend_from_slice(&lent.id.to_le_bytes());
            bytes.extend_from_slice(&mark_bytes(lent.from));
            bytes.extend_from_slice(&mark_bytes(lent.to));
            bytes.extend_from_slice(&lent.until_us.to_le_bytes());
            bytes.extend_from_slice(&lent.times.to_le_bytes());
            bytes.extend_from_slice(&lent.entries.to_le_bytes());
        }
        bytes
    }

    /// Reads the bytes of a whole one, or of what is before the deliveries.
    ///
    /// # Errors
    /// `Corrupt` when they are none; `Unavailable` for a later format.
    pub fn read(bytes: &[u8], partition: u16) -> Result<Self> {
        if bytes.len() > 8 && bytes[..7] == MAGIC[..7] && bytes[7] > MAGIC[7] {
            let format = format!("format {}", bytes[7]);
            return Err(Error::later_release("a group of the log", format, MAGIC[7]));
        }
        let lent = bytes.get(HEAD_LEN..).filter(|_| bytes[..8] == MAGIC);
        let count = |lent: &[u8]| lent.is_empty() || lent.len() == LENT_LEN * count_in(bytes);
        let lent = lent.filter(|lent| count(lent)).ok_or_else(|| {
            Error::corrupt("a group of the log is not stored as one: something else wrote it")
        })?;
        Ok(Self {
            cursor: read_mark(&bytes[CURSOR_AT as usize..], partition),
            next_id: u64_at(bytes, NEXT_ID_AT),
            lent: lent.chunks(LENT_LEN).map(|lent| Lent::read(lent, partition)).collect(),
        })
    }
}

fn count_in(bytes: &[u8]) -> usize {
    u32_at(bytes, COUNT_AT) as usize
}

impl Lent {
    fn read(bytes: &[u8], partition: u16) -> Self {
        Self {
            id: u64_at(bytes, 0),
            from: read_mark(&bytes[8..], partition),
            to: read_mark(&bytes[8 + MARK_LEN..], partition),
            until_us: u64_at(bytes, 48),
            times: u32_at(bytes, 56),
            entries: u32_at(bytes, 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position() -> impl Strategy<Value = Position> {
        (any::<u64>(), any::<u64>(), any::<u32>()).prop_map(|(segment, offset, index)| Position {
            partition: 3,
            segment,
            offset,
            index,
        })
    }

    prop_compose! {
        fn lent()(
            from in position(),
            to in position(),
            (id, until_us) in any::<(u64, u64)>(),
            (times, entries) in any::<(u32, u32)>(),
        ) -> Lent {
            Lent { id, from, to, until_us, times, entries }
        }
    }

    proptest! {
        #[test]
        fn it_reads_back_whole_and_without_its_deliveries(
            cursor in position(),
            next_id: u64,
            lent in prop::collection::vec(lent(), 0..5),
        ) {
            let state = State { cursor, next_id, lent };
            let bytes = state.write();
            prop_assert_eq!(&State::read(&bytes, 3).unwrap(), &state);
            let head = State::read(&bytes[..HEAD_LEN], 3).unwrap();
            prop_assert_eq!((head.cursor, head.next_id), (cursor, next_id));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = State::read(&bytes, 0);
            let _ = State::read(&[&MAGIC[..], &bytes].concat(), 0);
        }
    }
}
