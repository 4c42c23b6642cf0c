//! The library's table files as a whole, against the checksums that its manifests hold.
//!
//! The library checks a block when it reads it. Parts that a walk over all entries never reads
//! (filters, indexes below the first, what a later table has overwritten) would be found damaged
//! only later. A manifest, `v` and a number, lists each table with the checksum of its whole file:
//!
//! ```text
//!   "tables"  levels:u8 ( runs:u8 ( tables:u32 ( id:u64 type:u8 xxh3:u128 seqno:u64 )* )* )*
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tyr_types::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use super::Table;

/// Bytes that are read at once.
const READ_LEN: usize = 256 << 10;

/// How often a manifest is read again because the library replaced it meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// The tables of a manifest: number and checksum.
type Listed = BTreeMap<u64, u128>;

/// Bytes on disk of all files in a folder and below. Files that vanish meanwhile count nothing.
pub(super) fn disk_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

/// Checks the table files of all trees; `found` hears of each that is damaged.
///
/// # Errors
/// `Unavailable` when the disk refuses.
pub(super) fn verify(folder: &Path, found: &mut dyn FnMut(Error)) -> Result<()> {
    for tree in 0..=Table::ALL.len() {
        let tree = folder.join("keyspaces").join(tree.to_string());
        let listed = match list(&tree) {
            Ok(listed) => listed,
            Err(error) => {
                found(damaged(&tree, format!("its manifest cannot be read: {error}")));
                continue;
            }
        };
        for (id, checksum) in listed {
            let path = tree.join("tables").join(id.to_string());
            let what = match checksum_of(&path) {
                Ok(found) if found == checksum => continue,
                Ok(_) => "its checksum is not the one that the manifest names".to_owned(),
                Err(error) => format!("cannot be read: {error}"),
            };
            // A running library replaces tables by merged ones at any time.
            if list(&tree).is_ok_and(|listed| listed.contains_key(&id)) {
                found(damaged(&path, what));
            }
        }
    }
    Ok(())
}

fn damaged(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("index file {}: {what}", path.display()))
}

fn list(tree: &Path) -> io::Result<Listed> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match list_current(tree) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < ATTEMPTS_MAX => {}
            result => return result,
        }
    }
}

fn list_current(tree: &Path) -> io::Result<Listed> {
    let version = number::<8>(&mut File::open(tree.join("current"))?)?;
    let path = tree.join(format!("v{}", u64::from_le_bytes(version)));
    let manifest = sfa::Reader::new(&path).map_err(|error| match error {
        sfa::Error::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
    })?;
    let none = || io::Error::new(io::ErrorKind::InvalidData, "it lists no tables");
    let mut list = manifest.toc().section(b"tables").ok_or_else(none)?.buf_reader(&path)?;
    let mut tables = Listed::new();
    let [levels] = number(&mut list)?;
    for _ in 0..levels {
        let [runs] = number(&mut list)?;
        for _ in 0..runs {
            let count = u32::from_le_bytes(number(&mut list)?);
            for _ in 0..count {
                let id = u64::from_le_bytes(number(&mut list)?);
                let [_type] = number(&mut list)?;
                tables.insert(id, u128::from_le_bytes(number(&mut list)?));
                number::<8>(&mut list)?;
            }
        }
    }
    Ok(tables)
}

fn number<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn checksum_of(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; READ_LEN];
    let mut checksum = Xxh3::new();
    loop {
        let len = file.read(&mut buffer)?;
        if len == 0 {
            return Ok(checksum.digest128());
        }
        checksum.update(&buffer[..len]);
    }
}
