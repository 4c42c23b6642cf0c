//! What stands for the log of a node of a cluster below its last checkpoint.
//!
//! Records in the node's own form, which mean nothing here, in a file that is named after the first
//! sequence of the log that is still needed. A checkpoint refers to the file by that sequence, so
//! the two come into effect together; the file is written and synced before.
//!
//! ```text
//!   promises/000000000000032c    "TYRP" 01 | len:u32 crc32c:u32 record | ... | 0:u32 count:u32
//! ```

use std::io;
use std::sync::Arc;

use tyr_types::{Bytes, Error, Result, Timestamp};

use super::folded_to;
use crate::disk::{self, BlockWriter, Disk, DiskFile, OpenMode};
use crate::log::BODY_LEN_MAX;

pub(super) const FOLDER: &str = "promises";
const MAGIC: &[u8; 5] = b"TYRP\x01";
const PREFIX_LEN: usize = 8;

const _: () =
    assert!(PREFIX_LEN == 2 * size_of::<u32>(), "a length and a checksum, or 0 and a count");

/// The name of a file before it is known for which sequence it stands.
const UNFINISHED: &str = "promises/new";

/// What is written at once: records come by the hundred thousand, some hundred bytes each.
const PIECE_LEN: usize = 256 << 10;

/// A file of promises being written: records are put in one by one.
pub struct PromisesWriter {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    blocks: BlockWriter,
    /// What is not written yet.
    piece: Vec<u8>,
    written: u64,
    count: u32,
}

fn name(sequence: u64) -> String {
    format!("{FOLDER}/{sequence:016x}")
}

fn place(disk: &dyn Disk, sequence: u64) -> String {
    format!("{}/{}", disk.describe(), name(sequence))
}

impl PromisesWriter {
    /// An empty file.
    pub(super) fn new(disk: Arc<dyn Disk>) -> Result<Self> {
        let open = || {
            disk.create_folder(FOLDER)?;
            let file = disk.open(UNFINISHED, OpenMode::CreateOrOpen)?;
            file.set_len(0)?; // One that was not finished may be there.
            disk.open(UNFINISHED, OpenMode::Direct)
        };
        let file = open().map_err(|error| refused(&*disk, error))?;
        let (blocks, piece) = (BlockWriter::default(), MAGIC.to_vec());
        Ok(Self { disk, file, blocks, piece, written: 0, count: 0 })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        assert!(record.len() <= BODY_LEN_MAX && !record.is_empty(), "records are bounded");
        let len = (record.len() as u32).to_le_bytes();
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&len), record);
        self.piece.extend_from_slice(&len);
        self.piece.extend_from_slice(&checksum.to_le_bytes());
        self.piece.extend_from_slice(record);
        self.count += 1;
        match self.piece.len() >= PIECE_LEN {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Makes it durable, before a fold as of `at` begins that will have been all that is needed
    /// beside it: it stands for the log below `sequence`. Answers its length.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn finish(mut self, sequence: u64, at: Timestamp) -> Result<u64> {
        assert!(sequence > 0, "nothing lies below the first record, and a start would not read it");
        self.piece.extend_from_slice(&[0; 4]);
        self.piece.extend_from_slice(&self.count.to_le_bytes());
        self.write()?;
        let finish = || {
            self.file.set_len(self.written)?;
            self.file.sync()?;
            self.disk.rename(UNFINISHED, &name(sequence))?;
            folded_to::write(&*self.disk, at)?;
            self.disk.sync_folder(FOLDER)?;
            self.disk.sync_folder("")
        };
        finish().map_err(|error| refused(&*self.disk, error))?;
        Ok(self.written)
    }

    fn write(&mut self) -> Result<()> {
        let len = self.piece.len() as u64;
        disk::check_room(&*self.disk, self.disk.describe(), len)?;
        let written = self.blocks.write(&*self.file, &self.piece, self.written);
        written.map_err(|error| refused(&*self.disk, error))?;
        self.written += len;
        self.piece.clear();
        Ok(())
    }
}

fn refused(disk: &dyn Disk, error: io::Error) -> Error {
    disk::refusal(format!("{}/{UNFINISHED}", disk.describe()), error)
}

/// Gives `visit` the records that stand for the log below `sequence`.
///
/// # Errors
/// `Corrupt` when the file is missing or damaged; what `visit` says.
pub(super) fn read(
    disk: &dyn Disk,
    sequence: u64,
    visit: &mut dyn FnMut(Bytes) -> Result<()>,
) -> Result<()> {
    let damaged = |what: &str| {
        Error::corrupt(format!(
            "{}: {what}; the node cannot tell what it promised. Remove the node from the cluster \
             and add it again with an empty folder",
            place(disk, sequence)
        ))
    };
    let file = disk
        .open(&name(sequence), OpenMode::Existing)
        .map_err(|error| damaged(&format!("cannot be read: {error}")))?;
    let refused = |error| disk::refusal(place(disk, sequence), error);
    let len = file.len().map_err(refused)?;
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| damaged("it is too large"))?];
    file.read_at(&mut bytes, 0).map_err(refused)?;
    let bytes = Bytes::from(bytes);
    if !bytes.starts_with(MAGIC) {
        return Err(damaged("it is no file of promises"));
    }
    let (mut at, mut count) = (MAGIC.len(), 0);
    loop {
        let prefix = bytes.get(at..at + PREFIX_LEN).ok_or_else(|| damaged("it is cut off"))?;
        let (len, sum) = prefix.split_first_chunk::<4>().expect("a prefix has 8 bytes");
        let sum: [u8; 4] = sum.try_into().expect("4 of 8 bytes are left");
        let record_len = u32::from_le_bytes(*len) as usize;
        if record_len == 0 {
            let is_whole = u32::from_le_bytes(sum) == count && at + PREFIX_LEN == bytes.len();
            return if is_whole { Ok(()) } else { Err(damaged("records are missing")) };
        }
        let start = at + PREFIX_LEN;
        let record =
            bytes.get(start..start + record_len).ok_or_else(|| damaged("it is cut off"))?;
        if crc32c::crc32c_append(crc32c::crc32c(len), record) != u32::from_le_bytes(sum) {
            return Err(damaged("a record does not have its checksum"));
        }
        visit(bytes.slice(start..start + record_len))
            .map_err(|error| error.context(place(disk, sequence)))?;
        (at, count) = (start + record_len, count + 1);
    }
}

/// Removes the files of all other sequences.
///
/// # Errors
/// `Unavailable` when the disk refuses.
pub(super) fn remove_others(disk: &dyn Disk, sequence: u64) -> Result<()> {
    let Ok(names) = disk.list(FOLDER) else { return Ok(()) };
    for other in names {
        let path = format!("{FOLDER}/{other}");
        if path != name(sequence) && other != folded_to::NAME {
            disk.remove(&path).map_err(|error| disk::refusal(&path, error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::SimulatedDisk;

    fn written(records: &[&[u8]]) -> SimulatedDisk {
        let disk = SimulatedDisk::new();
        let mut writer = PromisesWriter::new(Arc::new(disk.clone())).unwrap();
        records.iter().for_each(|record| writer.push(record).unwrap());
        assert_eq!(writer.finish(7, Timestamp::ZERO).unwrap(), disk_len(&disk));
        disk
    }

    fn disk_len(disk: &SimulatedDisk) -> u64 {
        disk.open(&name(7), OpenMode::Existing).unwrap().len().unwrap()
    }

    fn records(disk: &SimulatedDisk) -> Result<Vec<Bytes>> {
        let mut records = Vec::new();
        read(disk, 7, &mut |record| {
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }

    #[test]
    fn records_come_back_in_order_and_other_files_go() {
        let disk = written(&[b"one", b"two"]);
        assert_eq!(records(&disk).unwrap(), ["one", "two"]);
        remove_others(&disk, 7).unwrap();
        assert!(records(&disk).is_ok());
        remove_others(&disk, 8).unwrap();
        assert!(records(&disk).is_err());
    }

    #[test]
    fn many_records_are_written_in_pieces_and_what_was_not_finished_does_not_count() {
        let many: Vec<Vec<u8>> = (0..100_u8).map(|n| vec![n + 1; 20_000]).collect();
        let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
        let disk = written(&many);
        let mut other = PromisesWriter::new(Arc::new(disk.clone())).unwrap();
        many.iter().for_each(|record| other.push(record).unwrap());
        drop(other);
        assert_eq!(records(&disk).unwrap(), many);
        remove_others(&disk, 7).unwrap();
        let mut left = disk.list(FOLDER).unwrap();
        left.sort();
        assert_eq!(left, ["0000000000000007", folded_to::NAME]);
    }

    #[test]
    fn any_damage_is_noticed() {
        let disk = written(&[b"one", b"two"]);
        let file = disk.open(&name(7), OpenMode::Existing).unwrap();
        let len = file.len().unwrap();
        for at in 0..len {
            let mut byte = [0];
            file.read_at(&mut byte, at).unwrap();
            file.write_at(&[byte[0] ^ 4], at).unwrap();
            assert!(records(&disk).is_err(), "byte {at}");
            file.write_at(&byte, at).unwrap();
        }
        assert_eq!(records(&disk).unwrap().len(), 2);
        file.set_len(len - 1).unwrap();
        assert!(records(&disk).is_err());
    }
}
