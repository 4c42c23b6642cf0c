//! Space kept aside, so that what makes room goes through where others have filled the disk.
//!
//! A deletion makes room only once it is folded, and the index takes some space for that: it
//! journals, writes tables out and merges them. Keeping our own writes away from the last of what
//! is free ([`super::Disk::room`]) does not help against others who write to the same disk. So a
//! file of the folder holds some, and is removed when there is next to nothing left.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// The file that holds it; without content.
const RESERVE_FILE: &str = "RESERVE";

/// How much it holds: what the index needed to open and to fold some ten thousand deletions is a
/// third of it.
const RESERVE_LEN: u64 = 32 << 20;

/// With less than this free the reserve is given back.
const SCARCE: u64 = 16 << 20;

/// With this much free it is taken (again): far from being scarce for it.
const PLENTY: u64 = 8 * RESERVE_LEN;

const _: () = assert!(SCARCE + RESERVE_LEN < PLENTY, "or it would come and go with every look");

/// Takes the reserve in `folder`, of whose disk so much is free, or gives it back.
///
/// # Errors
/// What the disk says; a reserve that cannot be taken is none.
pub fn balance(folder: &Path, free: u64) -> io::Result<()> {
    let path = folder.join(RESERVE_FILE);
    let is_whole = match fs::metadata(&path) {
        Ok(_) if free < SCARCE => return fs::remove_file(&path),
        Ok(found) => is_whole(&found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if is_whole || free < PLENTY {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    let taken = take(&file);
    if taken.is_err() {
        fs::remove_file(&path)?;
    }
    match taken {
        // Zeros would have to be written: on such a file system there is no reserve.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        other => other.map_err(io::Error::from),
    }
}

fn take(file: &File) -> Result<(), Errno> {
    rustix::fs::fallocate(file.as_fd(), FallocateFlags::empty(), 0, RESERVE_LEN)
}

/// Whether it was not taken by half when a process ended.
fn is_whole(found: &Metadata) -> bool {
    const BLOCK_LEN: u64 = 512;
    found.blocks() * BLOCK_LEN >= RESERVE_LEN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(folder: &Path) -> Option<u64> {
        fs::metadata(folder.join(RESERVE_FILE)).ok().map(|found| found.len())
    }

    #[test]
    fn the_reserve_is_taken_where_there_is_plenty_and_given_back_where_there_is_little() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (free, expected) in [
            (PLENTY - 1, None),
            (PLENTY, Some(RESERVE_LEN)),
            (SCARCE, Some(RESERVE_LEN)),
            (SCARCE - 1, None),
            (SCARCE + RESERVE_LEN - 1, None),
        ] {
            balance(folder, free).unwrap();
            assert_eq!(held(folder), expected, "{free} free");
        }
    }

    #[test]
    fn a_reserve_taken_by_half_is_taken_whole() {
        let folder = tempfile::tempdir().unwrap();
        File::create(folder.path().join(RESERVE_FILE)).unwrap();
        balance(folder.path(), PLENTY - 1).unwrap();
        assert_eq!(held(folder.path()), Some(0));
        balance(folder.path(), PLENTY).unwrap();
        assert_eq!(held(folder.path()), Some(RESERVE_LEN));
    }
}
