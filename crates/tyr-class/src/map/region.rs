//! Where the bytes of a map are: a blob, as ranges of bytes.
//!
//! It is all that a map knows of what is below it: versions, snapshots and conflicts are those of
//! the bytes that it reads and writes.

use tyr_types::{Bytes, Result};

/// The bytes of the blob that holds a map.
pub trait Region {
    /// Its size in bytes; 0 where there is no such blob.
    ///
    /// # Errors
    /// Those of what keeps it.
    fn size(&mut self) -> Result<u64>;

    /// `len` bytes from `offset` on; what lies behind its end reads as zeros, or is left out.
    ///
    /// # Errors
    /// Those of what keeps it.
    fn read(&mut self, offset: u64, len: usize) -> Result<Bytes>;

    /// Writes `data` at `offset`; creates the blob where there is none.
    ///
    /// # Errors
    /// Those of what keeps it.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()>;

    /// Cuts it to `size` bytes.
    ///
    /// # Errors
    /// Those of what keeps it.
    fn truncate(&mut self, size: u64) -> Result<()>;
}

impl Region for Vec<u8> {
    fn size(&mut self) -> Result<u64> {
        Ok(self.len() as u64)
    }

    fn read(&mut self, offset: u64, len: usize) -> Result<Bytes> {
        let begin = (offset as usize).min(self.len());
        let end = begin.saturating_add(len).min(self.len());
        Ok(Bytes::copy_from_slice(&self[begin..end]))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset as usize + data.len();
        if self.len() < end {
            self.resize(end, 0);
        }
        self[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        Vec::truncate(self, size as usize);
        Ok(())
    }
}
