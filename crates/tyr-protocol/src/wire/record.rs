//! Records of a node's log, and cluster maps on disk: a format and the value.
//!
//! The log around it knows each record's length and checksum; here is what is inside. A program
//! reads what older ones wrote, so the format stands in each: it is one above the feature level
//! that reads it, and as low as it can be. Format 1 is what was written before there were levels.

use tyr_types::{Bytes, Error, Result};

use super::encoded::{Encoded, encoded_enum, encoded_struct};
use super::input::Input;
use super::output::{Outgoing, Output};
use crate::commit::{Kept, Marked};
use crate::level::{BEFORE_LEVELS, LEVEL_KNOWN};
use crate::member::Record;
use crate::movement::{ChunkCopy, ChunkVersion};

/// The highest format of records and maps that this program reads.
pub(super) const FORMAT_MAX: u8 = LEVEL_KNOWN + 1;

encoded_struct!(Kept, 24, { id, noted, attempt, finished_in, ends, outcome, answers });
encoded_struct!(Marked, 25, { kept, singles });
encoded_struct!(ChunkVersion, 30, { version, bytes, size, size_version });
encoded_struct!(ChunkCopy, 26, { at, range, is_last, versions, checksum });

encoded_enum!(Record, "kind of record", {
    0 => Map(map),
    1 => Validated { transaction, chain, attempt, begun, proposal, placed },
    2 => Fenced { id, attempt, is_cleared },
    3 => Decided { id, at },
    4 => Aborted { id, abort },
    5 => Installed { blob, chunk, copy },
    6 => Recalled { outcomes },
    7 => Answered { id, outcomes },
    8 => Remembered { entries },
    9 => Standing { map, has_disk, clock, floor },
    10 => Aside { transaction, chain, at },
    11 => Finished { but },
    12 @ 2 => Marked { entries },
    13 @ 10 => Staged { staged, until_us, content },
    14 @ 10 => Unstaged { ids },
    15 @ 20 => CompleteTo { at },
});

/// Puts `record` into `outgoing`, large payloads by reference.
pub fn encode_record(record: &Record, outgoing: &mut Outgoing) {
    encode_versioned(record, outgoing);
}

/// The record in these bytes. Its large payloads share their memory.
///
/// # Errors
/// `Corrupt` when the bytes are none that [`encode_record`] makes, in this version or an older one,
/// with what is wrong and where; `Unavailable` when a later release wrote them. The caller adds
/// file and place.
pub fn decode_record(bytes: &Bytes) -> Result<Record> {
    decode_versioned(bytes, "a record")
}

pub(super) fn encode_versioned<T: Encoded>(value: &T, outgoing: &mut Outgoing) {
    let mark = outgoing.mark();
    outgoing.raw(&[0]);
    let level = Output::put_lasting(value, outgoing);
    // A node that cannot read its own log after a restart has lost what it promised.
    assert!(level < FORMAT_MAX, "this program reads what it writes: level {level}");
    outgoing.raw_since(mark)[0] = level + 1;
}

pub(super) fn decode_versioned<T: Encoded>(bytes: &Bytes, kind: &str) -> Result<T> {
    match bytes.first() {
        Some(format @ 1..=FORMAT_MAX) => {
            let value = Input::of_lasting(bytes, 1, format - 1).all(BEFORE_LEVELS);
            value.map_err(|malformed| malformed.error(kind, bytes.len()))
        }
        Some(0) => Err(Error::corrupt(format!("not {kind}: there is no format 0"))),
        Some(format) => {
            Err(Error::later_release(kind, format_args!("record format {format}"), FORMAT_MAX))
        }
        None => Err(Error::corrupt(format!("not {kind}: it is empty"))),
    }
}
