//! Large payloads, written once, where they will stay.

use std::sync::Arc;

use tyr_types::{Error, ExtentRef, Result};

use crate::disk::Disk;

/// What [`Extents`] are opened with.
#[derive(Clone, Debug)]
pub struct ExtentOptions {
    /// Bytes after which a new file is begun. Default 1 GiB.
    pub file_len_max: u64,
}

impl Default for ExtentOptions {
    fn default() -> Self {
        Self { file_len_max: 1 << 30 }
    }
}

/// One extent file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentFile {
    /// Its number, as in [`ExtentRef::file`].
    pub number: u32,
    /// Its length in bytes, holes included.
    pub len: u64,
}

/// The extent files of a store.
pub struct Extents {
    _disk: Arc<dyn Disk>,
}

/// Until the next commit: the signatures, for those who build on them.
#[allow(missing_docs, unused_variables)]
impl Extents {
    pub fn open(disk: Arc<dyn Disk>, options: ExtentOptions) -> Result<Self> {
        Ok(Self { _disk: disk })
    }
    pub fn write(&self, data: &[u8], is_compressed: bool) -> Result<ExtentRef> {
        Err(Error::unavailable("not yet"))
    }
    pub fn sync(&self) -> Result<()> {
        Err(Error::unavailable("not yet"))
    }
    /// Bytes `skip..skip + out.len()` of the payload, verified.
    pub fn read(&self, extent: &ExtentRef, skip: u32, out: &mut [u8]) -> Result<()> {
        Err(Error::unavailable("not yet"))
    }
    pub fn verify(&self, extent: &ExtentRef) -> Result<()> {
        Err(Error::unavailable("not yet"))
    }
    /// Bytes on disk, whole frames.
    pub fn stored_len(extent: &ExtentRef) -> u64 {
        u64::from(extent.len)
    }
    pub fn free(&self, extent: &ExtentRef) -> Result<()> {
        Err(Error::unavailable("not yet"))
    }
    pub fn files(&self) -> Result<Vec<ExtentFile>> {
        Err(Error::unavailable("not yet"))
    }
    pub fn remove_file(&self, number: u32) -> Result<()> {
        Err(Error::unavailable("not yet"))
    }
    /// Gives back everything in a file (not the one being written) outside `live` (sorted by
    /// position); answers how many bytes.
    pub fn reclaim(&self, number: u32, live: &[ExtentRef]) -> Result<u64> {
        Err(Error::unavailable("not yet"))
    }
}
