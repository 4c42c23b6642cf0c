//! A segment: a file of records with dense sequences, named by the first.
//!
//! Its space is reserved when it is made, so that a full disk is met there and nowhere else; where
//! it is made ahead it is written with zeros, too. Its header is written together with its first
//! records, and only when all earlier records are durable: a header that is whole is the witness of
//! that.

use std::io;
use std::sync::Arc;

use tyr_types::{Error, Result};

use crate::disk::{self, DIRECT_ALIGNMENT, Disk, DiskFile, OpenMode};

/// The folder of the log.
pub const FOLDER: &str = "log";
/// The segment that is made ahead, before it has a first record.
pub const NEXT: &str = "log/next";
/// Bytes of a segment's header.
pub const HEADER_LEN: usize = 24;

const MAGIC: &[u8; 8] = b"TYR-LOG\n";
/// The format that this release writes and reads.
pub const FORMAT_VERSION: u8 = 1;

/// The name of the segment whose first record has this sequence.
pub fn name(first: u64) -> String {
    format!("{FOLDER}/{first:016x}.log")
}

/// Where that segment is, for messages.
pub fn path(disk: &dyn Disk, first: u64) -> String {
    format!("{}/{}", disk.describe(), name(first))
}

/// The first sequences of all segments, ascending; none when there is no folder.
pub fn list(disk: &dyn Disk) -> Result<Vec<u64>> {
    let names = match disk.list(FOLDER) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            return Err(disk::refusal(format!("{}/{FOLDER}", disk.describe()), error));
        }
    };
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
    firsts.sort_unstable();
    Ok(firsts)
}

fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    let first = u64::from_str_radix(digits, 16).ok()?;
    (first > 0 && first < u64::MAX && format!("{first:016x}") == digits).then_some(first)
}

/// The header of the segment.
pub fn header(first: u64) -> [u8; HEADER_LEN] {
    const { assert!(HEADER_LEN == MAGIC.len() + 4 + size_of::<u64>() + 4) };
    assert!(first > 0 && first < u64::MAX, "a segment of that name would not be listed");
    let mut bytes = [0; HEADER_LEN];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8] = FORMAT_VERSION;
    bytes[12..20].copy_from_slice(&first.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..20]);
    bytes[20..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// What the first bytes of a segment's file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderState {
    /// A header of this format and segment.
    Good,
    /// A header of a later format.
    Later,
    /// Anything else.
    Bad,
}

/// Looks at the first bytes of a segment's file.
pub fn inspect_header(bytes: &[u8], first: u64) -> HeaderState {
    let Some(bytes) = bytes.first_chunk::<HEADER_LEN>() else { return HeaderState::Bad };
    let is_whole = bytes.starts_with(MAGIC)
        && bytes[20..] == crc32c::crc32c(&bytes[..20]).to_le_bytes()
        && bytes[12..20] == first.to_le_bytes();
    match bytes[8] {
        _ if !is_whole => HeaderState::Bad,
        FORMAT_VERSION => HeaderState::Good,
        _ => HeaderState::Later,
    }
}

/// Makes the file of the segment `first` with `len` bytes reserved, to be written in the way that
/// `mode` says. Nothing is left when it fails.
pub fn create(disk: &dyn Disk, first: u64, len: u64, mode: OpenMode) -> Result<Arc<dyn DiskFile>> {
    disk::check_room(disk, path(disk, first), len)?;
    make(disk, &name(first), len, mode)
}

/// The same in the space that is kept free of all else, for what makes more.
pub fn create_in_reserve(
    disk: &dyn Disk,
    first: u64,
    len: u64,
    mode: OpenMode,
) -> Result<Arc<dyn DiskFile>> {
    make(disk, &name(first), len, mode)
}

/// The same for a segment whose name is not known yet, to be written directly.
pub fn create_next(disk: &dyn Disk, len: u64) -> Result<Arc<dyn DiskFile>> {
    disk::check_room(disk, format_args!("{}/{NEXT}", disk.describe()), len)?;
    make(disk, NEXT, len, OpenMode::Direct)
}

fn make(disk: &dyn Disk, name: &str, len: u64, mode: OpenMode) -> Result<Arc<dyn DiskFile>> {
    let path = || format!("{}/{name}", disk.describe());
    let refused = |error| disk::refusal(path(), error);
    assert!(len > HEADER_LEN as u64, "{name} would hold no record");
    // The last block is written whole: beyond the length it would meet a full disk.
    assert!(
        mode != OpenMode::Direct || len.is_multiple_of(DIRECT_ALIGNMENT as u64),
        "{name}: {len} bytes are no whole blocks"
    );
    let file = match disk.open(name, OpenMode::CreateNew) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Replay has seen that no record is in it: what a failed attempt could not remove.
            disk.remove(name).map_err(refused)?;
            disk.open(name, OpenMode::CreateNew)
        }
        opened => opened,
    }
    .map_err(refused)?;
    file.allocate(0, len).and_then(|()| disk.open(name, mode)).map_err(|error| {
        let _ = disk.remove(name);
        refused(error)
    })
}

/// Removes what a crash left of a segment that was being made ahead.
pub fn remove_next(disk: &dyn Disk) -> Result<()> {
    match disk.remove(NEXT) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(disk::refusal(format!("{}/{NEXT}", disk.describe()), error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Opens the file of a segment that was listed.
pub fn open(disk: &dyn Disk, first: u64) -> Result<Arc<dyn DiskFile>> {
    disk.open(&name(first), OpenMode::Existing).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::corrupt(format!("{}: the file is missing", path(disk, first)))
        }
        _ => disk::refusal(path(disk, first), error),
    })
}
