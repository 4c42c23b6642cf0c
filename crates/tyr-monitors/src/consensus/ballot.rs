//! The vote that this monitor gave, and how far its journal reached: one small value, never lost.
//!
//! A monitor that forgot its vote could give another one, and two would lead at once. The value is
//! written into two slots in turn, each in a sector of its own with a generation and a checksum, so
//! that one is whole at any time.
//!
//! ```text
//!   raft/BALLOT
//!   | magic | version | length | generation | journal | vote (postcard) | ... | crc32c |
//!      8        4         4         8            8        up to 84               4
//!   and again at byte 512
//! ```

use std::io;
use std::sync::Arc;

use openraft::Vote;
use tyr_store::disk::{self, Disk, DiskFile, OpenMode};
use tyr_types::{Error, Result};

use super::journal::FOLDER;

const MAGIC: &[u8; 8] = b"TYR-BAL\n";
const FORMAT_VERSION: u32 = 1;
const HEADER_LEN: usize = 32;
const VOTE_LEN_MAX: usize = 84;
const SLOT_LEN: usize = HEADER_LEN + VOTE_LEN_MAX + 4;
/// A disk writes a sector whole or not at all; each slot has one of its own.
const SLOT_STEP: usize = 512;

const _: () = assert!(SLOT_LEN <= SLOT_STEP);
const _: () = assert!(HEADER_LEN == MAGIC.len() + 4 + 4 + 8 + 8);

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ballot {
    /// The vote that was given last.
    pub vote: Option<Vote<u64>>,
    /// All records of the journal up to this number were durable.
    pub journal: u64,
}

/// The file, open for writing.
pub struct BallotFile {
    file: Arc<dyn DiskFile>,
    path: String,
    generation: u64,
    ballot: Ballot,
    is_new: bool,
}

impl BallotFile {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// `Corrupt` when there is something in it and neither slot is whole; `Unavailable` when the
    /// disk fails.
    pub fn open(disk: &dyn Disk) -> Result<Self> {
        let name = format!("{FOLDER}/BALLOT");
        let path = format!("{}/{name}", disk.describe());
        let refused = |error: io::Error| disk::refusal(&path, error);
        disk.create_folder(FOLDER).map_err(refused)?;
        let file = disk.open(&name, OpenMode::CreateOrOpen).map_err(refused)?;
        let mut bytes = vec![0; SLOT_STEP * 2];
        let count = file.read_at(&mut bytes, 0).map_err(refused)?;
        let found = bytes[..count].chunks(SLOT_STEP).filter_map(decode).max_by_key(|it| it.0);
        if let Some(format) = bytes[..count].chunks(SLOT_STEP).filter_map(later_format).max() {
            let format = format_args!("ballot format {format}");
            return Err(Error::later_release(path, format, FORMAT_VERSION));
        }
        match found {
            Some((generation, ballot)) => {
                Ok(Self { file, path, generation, ballot, is_new: false })
            }
            None if bytes.iter().all(|byte| *byte == 0) => {
                let (generation, ballot) = (0, Ballot::default());
                let mut made = Self { file, path, generation, ballot, is_new: true };
                made.write(Ballot::default())?;
                disk.sync_folder(FOLDER).map_err(|error| disk::refusal(&made.path, error))?;
                Ok(made)
            }
            None => Err(Error::corrupt(format!(
                "{path}: both copies of the vote are damaged, so this monitor might vote twice; \
                 take it out and let it join anew"
            ))),
        }
    }

    /// What the file says.
    pub fn ballot(&self) -> Ballot {
        self.ballot
    }

    /// Whether there was no such file before it was opened.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Writes a ballot; durable when it returns.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails. What the file says then is found out when it is opened
    /// again; the former ballot is whole.
    pub fn write(&mut self, ballot: Ballot) -> Result<()> {
        // Else its loss would not be noticed up to where it was known to be durable.
        assert!(self.ballot.journal <= ballot.journal, "{ballot:?} after {:?}", self.ballot);
        debug_assert!(
            self.ballot.vote.is_none() || ballot.vote.is_some(),
            "a vote that was given is not taken back"
        );
        let generation = self.generation + 1;
        let slot = encode(generation, &ballot);
        let offset = (generation % 2) * SLOT_STEP as u64;
        debug_assert_eq!(decode(&slot), Some((generation, ballot)), "what is written can be read");
        debug_assert_ne!(
            offset,
            (self.generation % 2) * SLOT_STEP as u64,
            "the former stays whole"
        );
        self.file
            .write_at(&slot, offset)
            .and_then(|()| self.file.sync())
            .map_err(|error| disk::refusal(&self.path, error))?;
        (self.generation, self.ballot) = (generation, ballot);
        Ok(())
    }
}

fn encode(generation: u64, ballot: &Ballot) -> [u8; SLOT_LEN] {
    let vote = postcard::to_stdvec(&ballot.vote).expect("plain values can be written");
    assert!(vote.len() <= VOTE_LEN_MAX, "a vote is three numbers");
    let mut slot = [0; SLOT_LEN];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    slot[12..16].copy_from_slice(&(vote.len() as u32).to_le_bytes());
    slot[16..24].copy_from_slice(&generation.to_le_bytes());
    slot[24..32].copy_from_slice(&ballot.journal.to_le_bytes());
    slot[HEADER_LEN..HEADER_LEN + vote.len()].copy_from_slice(&vote);
    let checksum = crc32c::crc32c(&slot[..SLOT_LEN - 4]);
    slot[SLOT_LEN - 4..].copy_from_slice(&checksum.to_le_bytes());
    slot
}

/// The format of a slot that is whole, if it is a later one than is known here.
fn later_format(bytes: &[u8]) -> Option<u32> {
    let slot: &[u8; SLOT_LEN] = bytes.first_chunk()?;
    let is_whole = slot.starts_with(MAGIC)
        && slot[SLOT_LEN - 4..] == crc32c::crc32c(&slot[..SLOT_LEN - 4]).to_le_bytes();
    let format = u32::from_le_bytes([slot[8], slot[9], slot[10], slot[11]]);
    (is_whole && format > FORMAT_VERSION).then_some(format)
}

fn decode(bytes: &[u8]) -> Option<(u64, Ballot)> {
    let slot: &[u8; SLOT_LEN] = bytes.first_chunk()?;
    let is_sound = slot.starts_with(MAGIC)
        && slot[8..12] == FORMAT_VERSION.to_le_bytes()
        && slot[SLOT_LEN - 4..] == crc32c::crc32c(&slot[..SLOT_LEN - 4]).to_le_bytes();
    let number =
        |at: usize| u64::from_le_bytes(slot[at..at + 8].try_into().expect("8 bytes are 8 bytes"));
    let len = u32::from_le_bytes([slot[12], slot[13], slot[14], slot[15]]) as usize;
    let vote = slot.get(HEADER_LEN..HEADER_LEN + len.min(VOTE_LEN_MAX))?;
    let vote = postcard::from_bytes(vote).ok().filter(|_| is_sound)?;
    Some((number(16), Ballot { vote, journal: number(24) }))
}
