//! Whole blocks, for files that are written past the system's cache: what is synced at once and
//! read by nobody needs no copy there, and the memory for it costs more than the write.
//!
//! ```text
//!   ... | last block: kept ▒▒ | new bytes ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ 0 0 0 |
//!       '---------------------- one write ------------------------'
//! ```

use std::io;

use super::{DIRECT_ALIGNMENT, DiskFile};

/// Bytes written at once at most.
const WRITE_LEN_MAX: usize = 1 << 20;

const _: () = {
    assert!(DIRECT_ALIGNMENT.is_power_of_two());
    assert!(WRITE_LEN_MAX.is_multiple_of(DIRECT_ALIGNMENT));
    assert!(WRITE_LEN_MAX > DIRECT_ALIGNMENT, "there is room beside the block that is kept");
};

/// Memory that begins where a block may.
pub struct Blocks {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl Blocks {
    /// So many zeros, rounded up to whole blocks.
    pub fn zeros(len: usize) -> Self {
        let len = len.next_multiple_of(DIRECT_ALIGNMENT);
        let buffer = vec![0; len + DIRECT_ALIGNMENT];
        let start = buffer.as_ptr().align_offset(DIRECT_ALIGNMENT);
        assert!(
            start + len <= buffer.len(),
            "a block more than asked for has an aligned beginning"
        );
        Self { buffer, start, len }
    }

    /// All of them.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }

    /// The same, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.start + self.len]
    }
}

/// Writes one file after the other in whole blocks, each from its beginning on.
pub struct BlockWriter {
    blocks: Blocks,
    /// Where in the file the blocks begin.
    offset: u64,
    /// Bytes of the first of them that are written already.
    kept: usize,
}

impl Default for BlockWriter {
    fn default() -> Self {
        Self { blocks: Blocks::zeros(WRITE_LEN_MAX), offset: 0, kept: 0 }
    }
}

impl BlockWriter {
    /// Writes `bytes` at `offset`: at the end of what was written before, or at the beginning of
    /// the next file. What follows in the last block is zeros.
    ///
    /// # Errors
    /// What the disk says; then the file is not written on.
    pub fn write(&mut self, file: &dyn DiskFile, bytes: &[u8], offset: u64) -> io::Result<()> {
        if offset == 0 {
            (self.offset, self.kept) = (0, 0);
        }
        assert_eq!(offset, self.offset + self.kept as u64, "a file is written without gaps");
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(WRITE_LEN_MAX - self.kept));
            rest = later;
            let used = self.kept + now.len();
            let whole = used.next_multiple_of(DIRECT_ALIGNMENT);
            let kept = used % DIRECT_ALIGNMENT;
            let blocks = self.blocks.bytes_mut();
            blocks[self.kept..used].copy_from_slice(now);
            blocks[used..whole].fill(0);
            file.write_at(&blocks[..whole], self.offset)?;
            blocks.copy_within(used - kept..used, 0);
            self.offset += (used - kept) as u64;
            self.kept = kept;
            debug_assert!(self.offset.is_multiple_of(DIRECT_ALIGNMENT as u64));
            debug_assert!(self.kept < DIRECT_ALIGNMENT, "a full block is not written again");
        }
        Ok(())
    }
}
