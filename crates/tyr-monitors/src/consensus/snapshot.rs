//! Snapshots on disk: the whole metadata as of one place in the log, one file each.
//!
//! A snapshot is written under another name, synced, and renamed: there is a whole one at any time.
//! Only then is the log before it purged.
//!
//! ```text
//!   raft/0000000000000042.snapshot          by the index of the last entry in it, plus one
//!   | magic | version | length of both | crc32c of all that follows | lengths | meta | metadata |
//!      8        4           8                   4                       8
//! ```

use std::io;

use openraft::SnapshotMeta;
use openraft::impls::BasicNode;
use tyr_store::disk::{self, Disk, OpenMode};
use tyr_types::{Error, Result};

use super::journal::FOLDER;

const MAGIC: &[u8; 8] = b"TYR-SNP\n";
const FORMAT_VERSION: u32 = 1;
const HEADER_LEN: usize = 24;
const ENDING: &str = ".snapshot";
/// The name while it is written.
const UNFINISHED: &str = "raft/snapshot.unfinished";

const _: () = assert!(HEADER_LEN == MAGIC.len() + size_of::<u32>() + size_of::<u64>() + 4);

/// What Raft knows of a snapshot.
pub type Meta = SnapshotMeta<u64, BasicNode>;

/// A snapshot: what Raft knows of it, and the metadata as `Store::image` writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// What Raft knows of it.
    pub meta: Meta,
    /// The metadata.
    pub image: Vec<u8>,
}

/// Writes a snapshot; durable when it returns, and the only one.
///
/// # Errors
/// `Unavailable` when the disk fails or is full; then the former one is still there.
pub fn save(disk: &dyn Disk, snapshot: &Snapshot) -> Result<()> {
    let meta = postcard::to_stdvec(&snapshot.meta).expect("plain values can be written");
    let mut bytes = vec![0; HEADER_LEN];
    bytes.extend_from_slice(&(meta.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&meta);
    bytes.extend_from_slice(&snapshot.image);
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let len = (bytes.len() - HEADER_LEN) as u64;
    bytes[12..20].copy_from_slice(&len.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[HEADER_LEN..]);
    bytes[20..24].copy_from_slice(&checksum.to_le_bytes());

    // The log before it goes as soon as this is written.
    debug_assert_eq!(decode(&bytes).as_ref(), Some(snapshot), "it would not be read back");
    let after = snapshot.meta.last_log_id.map_or(0, |it| it.index + 1);
    let name = format!("{FOLDER}/{after:016}{ENDING}");
    let write = || -> io::Result<()> {
        disk.create_folder(FOLDER)?;
        disk.sync_folder("")?;
        let file = disk.open(UNFINISHED, OpenMode::CreateOrOpen)?;
        file.set_len(0)?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
        disk.rename(UNFINISHED, &name)?;
        disk.sync_folder(FOLDER)?;
        for other in names(disk)? {
            if other != name {
                disk.remove(&other)?;
            }
        }
        Ok(())
    };
    write().map_err(|error| disk::refusal(format!("{}/{name}", disk.describe()), error))
}

/// The newest snapshot; `None` when there never was one.
///
/// # Errors
/// `Corrupt` when it is damaged: the log before it is gone. `Unavailable` when the disk fails.
pub fn load(disk: &dyn Disk) -> Result<Option<Snapshot>> {
    let folder = |error| disk::refusal(format!("{}/{FOLDER}", disk.describe()), error);
    let found = match names(disk) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(folder)?,
    };
    let Some(name) = found.last() else { return Ok(None) };
    let path = format!("{}/{name}", disk.describe());
    let refused = |error| disk::refusal(&path, error);
    let file = disk.open(name, OpenMode::Existing).map_err(refused)?;
    let mut bytes = vec![0; file.len().map_err(refused)? as usize];
    let count = file.read_at(&mut bytes, 0).map_err(refused)?;
    bytes.truncate(count);
    let damaged = || {
        Error::corrupt(format!(
            "{path}: the snapshot is damaged; take this monitor out and let it join anew"
        ))
    };
    if let Some(format) = later_format(&bytes) {
        let format = format_args!("snapshot format {format}");
        return Err(Error::later_release(path, format, FORMAT_VERSION));
    }
    decode(&bytes).map(Some).ok_or_else(damaged)
}

/// The format, if it is a later one than is known here. The checksum is of what follows.
fn later_format(bytes: &[u8]) -> Option<u32> {
    let format = bytes.strip_prefix(&MAGIC[..])?.first_chunk().copied().map(u32::from_le_bytes)?;
    (format > FORMAT_VERSION).then_some(format)
}

fn decode(bytes: &[u8]) -> Option<Snapshot> {
    let (header, rest) = bytes.split_at_checked(HEADER_LEN)?;
    let is_sound = header.starts_with(MAGIC)
        && header[8..12] == FORMAT_VERSION.to_le_bytes()
        && header[12..20] == (rest.len() as u64).to_le_bytes()
        && header[20..24] == crc32c::crc32c(rest).to_le_bytes();
    let (len, rest) = rest.split_first_chunk().filter(|_| is_sound)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (meta, image) = rest.split_at_checked(len)?;
    let meta = postcard::from_bytes(meta).ok()?;
    Some(Snapshot { meta, image: image.to_vec() })
}

/// The names of all finished snapshots, oldest first.
fn names(disk: &dyn Disk) -> io::Result<Vec<String>> {
    let names = disk.list(FOLDER)?;
    let finished = names.iter().filter(|name| name.ends_with(ENDING));
    Ok(finished.map(|name| format!("{FOLDER}/{name}")).collect())
}
