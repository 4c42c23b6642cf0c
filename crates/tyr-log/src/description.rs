//! The blob that describes a log: what it was created with, and where its partitions begin and end.
//!
//! ```text
//!  0  magic          "tyr-log", and the format's version, 1
//!  8  partitions     u32
//! 12  strict         u8, and 3 zeros
//! 16  segment bytes  u64
//! 24  retention      age in µs u64, bytes u64: 0 for none
//! 40  sealed         u64: 1 when the log takes no more entries
//! 48  created        stamp
//! 64  marked number  u64, of a strict log: of the first entry behind the marks
//! 72  zeros          8
//! 80  rows           for each partition: last segment u64, first segment u64,
//!                    mark (segment u64, offset u64, index u32), 4 zeros
//! ```
//!
//! Who rolls and who trims write bytes apart, so they do not meet each other.

use std::time::Duration;

use tyr::{Error, Result, Stamped, Timestamp};

use crate::bytes::{stamp_at, u32_at, u64_at};
use crate::name::Name;
use crate::options::{Options, PARTITIONS_MAX, Retention};
use crate::position::Position;
use crate::segment::HEAD_LEN;

/// How it begins: the last byte is the version of its format.
const MAGIC: [u8; 8] = *b"tyr-log\x01";

const PARTITIONS_AT: usize = 8;
const STRICT_AT: usize = 12;
const SEGMENT_BYTES_AT: usize = 16;
/// Where the retention is: age in microseconds, and bytes; 0 for none.
pub const RETENTION_AT: u64 = 24;
/// Where the word is that says whether the log takes no more entries.
pub const SEALED_AT: u64 = 40;
const CREATED_AT: usize = 48;
/// Where the number of the first entry behind the marks is, of a strict log.
pub const MARKED_NUMBER_AT: u64 = 64;
const ROWS_AT: usize = 80;
const ROW_LEN: usize = 40;
const FIRST_AT: usize = 8;
const MARK_AT: usize = 16;

/// Bytes of a mark in its row.
pub const MARK_LEN: usize = 20;

/// The most bytes that it has.
pub const DESCRIPTION_LEN_MAX: u64 = (ROWS_AT + ROW_LEN * PARTITIONS_MAX as usize) as u64;

/// What a log was created with, and where its partitions begin and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Bytes after which a partition goes on in another segment.
    pub segment_bytes: u64,
    /// Whether all partitions have one strict order and numbers.
    pub is_strict: bool,
    /// What may go by itself.
    pub retention: Retention,
    /// Whether it takes no more entries.
    pub is_sealed: bool,
    /// When it was made.
    pub created: Timestamp,
    /// Of a strict log: the number of the first entry behind the marks.
    pub marked_number: u64,
    /// One for each partition.
    pub rows: Vec<Row>,
}

/// Where a partition begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The segment that takes entries.
    pub last: u64,
    /// The first segment that is there.
    pub first: u64,
    /// What is before was trimmed. Segments before its own are on their way out.
    pub mark: Position,
}

impl Description {
    /// The blob of a new log.
    pub fn create(options: &Options, segment_bytes: u64) -> Result<Stamped> {
        let mut bytes = vec![0; ROWS_AT + ROW_LEN * usize::from(options.partitions)];
        bytes[..8].copy_from_slice(&MAGIC);
        let partitions = u32::from(options.partitions).to_le_bytes();
        bytes[PARTITIONS_AT..PARTITIONS_AT + 4].copy_from_slice(&partitions);
        bytes[STRICT_AT] = u8::from(options.is_strict);
        bytes[SEGMENT_BYTES_AT..SEGMENT_BYTES_AT + 8].copy_from_slice(&segment_bytes.to_le_bytes());
        let retention = retention_bytes(options.retention);
        bytes[RETENTION_AT as usize..SEALED_AT as usize].copy_from_slice(&retention);
        for (row, partition) in bytes[ROWS_AT..].chunks_mut(ROW_LEN).zip(0..) {
            let first = Position { partition, segment: 0, offset: HEAD_LEN, index: 0 };
            row[MARK_AT..MARK_AT + MARK_LEN].copy_from_slice(&mark_bytes(first));
        }
        Stamped::new(bytes, [CREATED_AT])
    }

    /// Reads the blob.
    ///
    /// # Errors
    /// `Corrupt` when it is none, `Unavailable` for a later format.
    pub fn read(bytes: &[u8], log: &Name) -> Result<Self> {
        if bytes.len() > 8 && bytes[..7] == MAGIC[..7] && bytes[7] > MAGIC[7] {
            let format = format!("format {}", bytes[7]);
            return Err(Error::later_release(format!("log {log}"), format, MAGIC[7]));
        }
        let read = || {
            let rows = bytes.len().checked_sub(ROWS_AT)? / ROW_LEN;
            let is_whole = bytes[..8] == MAGIC
                && (1..=usize::from(PARTITIONS_MAX)).contains(&rows)
                && bytes.len() == ROWS_AT + ROW_LEN * rows
                && u32_at(bytes, PARTITIONS_AT) as usize == rows;
            let age = Some(u64_at(bytes, RETENTION_AT as usize)).filter(|age| *age > 0);
            is_whole.then_some(Self {
                segment_bytes: u64_at(bytes, SEGMENT_BYTES_AT),
                is_strict: bytes[STRICT_AT] != 0,
                retention: Retention {
                    age: age.map(Duration::from_micros),
                    bytes: Some(u64_at(bytes, RETENTION_AT as usize + 8)).filter(|it| *it > 0),
                },
                is_sealed: u64_at(bytes, SEALED_AT as usize) != 0,
                created: stamp_at(bytes, CREATED_AT)?,
                marked_number: u64_at(bytes, MARKED_NUMBER_AT as usize),
                rows: bytes[ROWS_AT..].chunks(ROW_LEN).zip(0..).map(Row::read).collect(),
            })
        };
        read().ok_or_else(|| {
            Error::corrupt(format!("log {log} is not described as one: something else wrote it"))
        })
    }
}

impl Row {
    fn read((bytes, partition): (&[u8], u16)) -> Self {
        let (last, first) = (u64_at(bytes, 0), u64_at(bytes, FIRST_AT));
        Self { last, first, mark: read_mark(&bytes[MARK_AT..], partition) }
    }
}

/// Where the number of a partition's last segment is in the blob.
pub fn last_at(partition: u16) -> u64 {
    (ROWS_AT + ROW_LEN * usize::from(partition)) as u64
}

/// Where the number of a partition's first segment is in the blob.
pub fn first_at(partition: u16) -> u64 {
    last_at(partition) + FIRST_AT as u64
}

/// Where a partition's mark is in the blob.
pub fn mark_at(partition: u16) -> u64 {
    last_at(partition) + MARK_AT as u64
}

/// A mark, or any place in a partition, as it is stored.
pub fn mark_bytes(mark: Position) -> [u8; MARK_LEN] {
    let mut bytes = [0; MARK_LEN];
    bytes[..8].copy_from_slice(&mark.segment.to_le_bytes());
    bytes[8..16].copy_from_slice(&mark.offset.to_le_bytes());
    bytes[16..].copy_from_slice(&mark.index.to_le_bytes());
    bytes
}

/// The place in a partition that was stored.
pub fn read_mark(bytes: &[u8], partition: u16) -> Position {
    let (segment, offset, index) = (u64_at(bytes, 0), u64_at(bytes, 8), u32_at(bytes, 16));
    Position { partition, segment, offset, index }
}

/// A retention as it is stored.
pub fn retention_bytes(retention: Retention) -> [u8; 16] {
    // What has no time to be read is kept for the shortest that can be said.
    let age = retention.age.map_or(0, |age| (age.as_micros() as u64).max(1));
    let bytes = retention.bytes.map_or(0, |bytes| bytes.max(1));
    let mut stored = [0; 16];
    stored[..8].copy_from_slice(&age.to_le_bytes());
    stored[8..].copy_from_slice(&bytes.to_le_bytes());
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_what_is_none_is_told() {
        let log = Name::new("log", "orders").unwrap();
        let retention = Retention { age: Some(Duration::from_secs(60)), bytes: Some(1 << 20) };
        let options = Options { partitions: 3, is_strict: true, retention, ..Options::default() };
        let at = Timestamp { clock: 5, ..Timestamp::ZERO };
        let mut bytes = Description::create(&options, 4096).unwrap().filled(at).to_vec();
        let (mark, place) = ("1:4:64+2".parse::<Position>().unwrap(), mark_at(1) as usize);
        bytes[place..place + MARK_LEN].copy_from_slice(&mark_bytes(mark));
        bytes[last_at(2) as usize] = 9;
        let read = Description::read(&bytes, &log).unwrap();
        assert_eq!((read.segment_bytes, read.is_strict, read.is_sealed), (4096, true, false));
        assert_eq!((read.retention, read.created, read.rows.len()), (retention, at, 3));
        assert_eq!((read.rows[1].mark, read.rows[1].last, read.rows[2].last), (mark, 0, 9));
        assert_eq!(read.rows[2].mark.to_string(), "2:0:64");
        for cut in [0, 8, 80, bytes.len() - 1] {
            assert!(Description::read(&bytes[..cut], &log).is_err(), "{cut}");
        }
        bytes[7] = 2;
        let later = Description::read(&bytes, &log).unwrap_err();
        assert_eq!(later.kind(), tyr::ErrorKind::Unavailable);
    }
}
