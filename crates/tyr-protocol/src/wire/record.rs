//! Records of a node's log: a format version and the record.
//!
//! The log around it knows each record's length and checksum; here is what is inside. A program
//! reads the records of older versions, so the version stands in each.

use tyr_types::{Bytes, Error, Result};

use super::encoded::{Encoded, encoded_enum, encoded_struct};
use super::input::Input;
use super::output::{Outgoing, Output};
use crate::commit::Kept;
use crate::member::Record;
use crate::movement::{ChunkCopy, ChunkVersion};

/// The version of the format of records and maps on disk.
pub(super) const FORMAT: u8 = 1;

encoded_struct!(Kept, 24, { id, noted, attempt, finished_in, ends, outcome, answers });
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
});

/// Puts `record` into `outgoing`, large payloads by reference.
pub fn encode_record(record: &Record, outgoing: &mut Outgoing) {
    encode_versioned(record, outgoing);
}

/// The record in these bytes. Its large payloads share their memory.
///
/// # Errors
/// `Corrupt` when the bytes are none that [`encode_record`] makes, in this version or an older one,
/// with what is wrong and where; the caller adds file and place.
pub fn decode_record(bytes: &Bytes) -> Result<Record> {
    decode_versioned(bytes, "a record")
}

pub(super) fn encode_versioned<T: Encoded>(value: &T, outgoing: &mut Outgoing) {
    outgoing.raw(&[FORMAT]);
    Output::put(value, outgoing);
}

pub(super) fn decode_versioned<T: Encoded>(bytes: &Bytes, kind: &str) -> Result<T> {
    match bytes.first() {
        Some(&FORMAT) => {
            let value = Input::new(bytes, Some(bytes), 1).all();
            value.map_err(|malformed| malformed.error(kind, bytes.len()))
        }
        Some(format) => Err(Error::corrupt(format!(
            "not {kind}: it has format {format}, this program reads format {FORMAT}; it was \
             damaged, or written by a newer release"
        ))),
        None => Err(Error::corrupt(format!("not {kind}: it is empty"))),
    }
}
