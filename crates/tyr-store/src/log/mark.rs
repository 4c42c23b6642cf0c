//! The mark beside the log: up to where it is durable, and whether it was closed cleanly.
//!
//! Records are witnesses for those before them; the last ones have nobody behind them, so a cut
//! file would look like a torn tail. The mark stands in a file of its own, `log/SYNCED`, written
//! when the log is opened, soon after any of it became durable ([`super::Marker`]) and when it is
//! closed: what it covers and is not there, is damage.
//!
//! The file holds two slots in two sectors, written in turn, so that one is whole at any time:
//!
//! ```text
//! 0       8         9           12           20          28       32
//! | magic | version | is sealed | generation | synced to | crc32c |      again at byte 512
//! ```

use std::io;
use std::sync::Arc;

use tyr_types::{Error, Result};

use super::segment::FOLDER;
use crate::disk::{self, Disk, DiskFile, OpenMode};

const MAGIC: &[u8; 8] = b"TYR-MRK\n";
const FORMAT_VERSION: u8 = 1;
const SLOT_LEN: usize = 32;
/// A disk writes a sector whole or not at all; each slot has one of its own.
const SLOT_STEP: usize = 512;

const _: () = {
    assert!(SLOT_LEN <= SLOT_STEP, "two slots share no sector");
    assert!(SLOT_LEN == MAGIC.len() + 4 + 8 + 8 + 4);
};

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// How many marks were written before; the higher of two slots counts.
    generation: u64,
    /// All records up to this sequence were durable.
    pub synced_to: u64,
    /// Whether the log was closed cleanly, and nothing follows.
    pub is_sealed: bool,
}

impl Mark {
    fn encode(&self) -> [u8; SLOT_LEN] {
        let mut bytes = [0; SLOT_LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = FORMAT_VERSION;
        bytes[9] = u8::from(self.is_sealed);
        bytes[12..20].copy_from_slice(&self.generation.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.synced_to.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        debug_assert_eq!(Self::decode(&bytes), Some(*self), "a mark reads back");
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SLOT_LEN] = bytes.first_chunk()?;
        let is_whole = bytes.starts_with(MAGIC)
            && bytes[8] == FORMAT_VERSION
            && bytes[9] <= 1
            && bytes[28..] == crc32c::crc32c(&bytes[..28]).to_le_bytes();
        let number = |at: usize| {
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes are 8 bytes"))
        };
        is_whole.then(|| Self {
            generation: number(12),
            synced_to: number(20),
            is_sealed: bytes[9] == 1,
        })
    }
}

/// The format of a slot that is whole, and of a later one than is known here.
fn later_format(bytes: &[u8]) -> Option<u8> {
    let bytes: &[u8; SLOT_LEN] = bytes.first_chunk()?;
    let is_whole =
        bytes.starts_with(MAGIC) && bytes[28..] == crc32c::crc32c(&bytes[..28]).to_le_bytes();
    Some(bytes[8]).filter(|format| is_whole && *format > FORMAT_VERSION)
}

fn name() -> String {
    format!("{FOLDER}/SYNCED")
}

fn path(disk: &dyn Disk) -> String {
    format!("{}/{}", disk.describe(), name())
}

/// The mark of a log; none when it never had one.
///
/// # Errors
/// `Corrupt` when the log was in use (`is_used`) but has no mark that is whole; `Unavailable` when
/// a later release wrote it.
pub fn load(disk: &dyn Disk, is_used: bool) -> Result<Option<Mark>> {
    let mut bytes = [0; SLOT_STEP * 2];
    let count = match disk.open(&name(), OpenMode::Existing) {
        Ok(file) => file.read_at(&mut bytes, 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    };
    let count = count.map_err(|error| disk::refusal(path(disk), error))?;
    let later = bytes[..count].chunks(SLOT_STEP).filter_map(later_format).max();
    if let Some(format) = later {
        let format = format_args!("mark format {format}");
        return Err(Error::later_release(path(disk), format, FORMAT_VERSION));
    }
    let slots = bytes[..count].chunks(SLOT_STEP).filter_map(Mark::decode);
    match slots.max_by_key(|mark| mark.generation) {
        None if is_used => Err(Error::corrupt(format!(
            "{}: the file is missing, or damaged in both copies (bytes 0 to {SLOT_LEN} and \
             {SLOT_STEP} to {}), so whether the log is whole cannot be told",
            path(disk),
            SLOT_STEP + SLOT_LEN
        ))),
        // It is a store that never came to write one.
        mark => Ok(mark),
    }
}

/// The mark's file, open for writing.
pub struct MarkFile {
    file: Arc<dyn DiskFile>,
    path: String,
    last: Mark,
}

impl MarkFile {
    /// Opens the file and writes a mark that is not sealed; durable before it returns, and with
    /// it the file's name.
    pub fn open(disk: &dyn Disk, before: Option<Mark>, synced_to: u64) -> Result<Self> {
        let path = path(disk);
        let refused = |error| disk::refusal(&path, error);
        let file = disk.open(&name(), OpenMode::CreateOrOpen).map_err(refused)?;
        let generation = before.map_or(0, |mark| mark.generation);
        let last = Mark { generation, synced_to: 0, is_sealed: false };
        if before.is_none() {
            // Both slots exist from the start: later marks find their space.
            file.allocate(0, SLOT_STEP as u64 * 2).map_err(refused)?;
        }
        let mut marks = Self { file, path: path.clone(), last };
        marks.write(synced_to, false)?;
        disk.sync_folder(FOLDER).map_err(refused)?;
        Ok(marks)
    }

    /// Up to where the log is marked as durable.
    pub fn synced_to(&self) -> u64 {
        self.last.synced_to
    }

    /// Writes a mark; durable when it returns.
    pub fn write(&mut self, synced_to: u64, is_sealed: bool) -> Result<()> {
        // A lower mark would turn damage into a torn tail, which is cut off.
        assert!(self.last.synced_to <= synced_to, "what was durable stays durable");
        assert!(!self.last.is_sealed, "nothing follows in a log that was closed");
        let mark = Mark { generation: self.last.generation + 1, synced_to, is_sealed };
        let offset = (mark.generation % 2) * SLOT_STEP as u64;
        self.file
            .write_at(&mark.encode(), offset)
            .and_then(|()| self.file.sync())
            .map_err(|error| disk::refusal(&self.path, error))?;
        self.last = mark;
        Ok(())
    }
}
