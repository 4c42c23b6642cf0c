//! Reads a segment through a window, so that a replay holds little of it in memory.

use std::sync::Arc;

use tyr_types::{Error, Result};

use super::record::{self, Header, RecordPlace};
use super::segment;
use crate::disk::{self, Disk, DiskFile};

/// Bytes read at once; a record that is longer is read in one piece.
const WINDOW_LEN: usize = 256 << 10;

const _: () = assert!(WINDOW_LEN > record::HEADER_LEN, "a search goes on from window to window");

/// A segment being read.
pub struct SegmentReader {
    file: Arc<dyn DiskFile>,
    path: String,
    first: u64,
    len: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl SegmentReader {
    /// The segment whose first record has this sequence.
    pub fn open(disk: &dyn Disk, first: u64) -> Result<Self> {
        let file = segment::open(disk, first)?;
        let path = segment::path(disk, first);
        let len = file.len().map_err(|error| disk::refusal(&path, error))?;
        Ok(Self { file, path, first, len, window: Vec::new(), window_at: 0 })
    }

    /// The first sequence of the segment.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// `count` bytes from `offset` on, fewer at the end of the file.
    pub fn bytes(&mut self, offset: u64, count: usize) -> Result<&[u8]> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = count.min(left);
        let is_in = offset >= self.window_at
            && offset + count as u64 <= self.window_at + self.window.len() as u64;
        if !is_in {
            self.window.resize(count.max(WINDOW_LEN).min(left), 0);
            self.window_at = offset;
            let read = self
                .file
                .read_at(&mut self.window, offset)
                .map_err(|error| Error::io(self.path.clone(), error))?;
            self.window.truncate(read);
        }
        let start = (offset - self.window_at) as usize;
        let end = (start + count).min(self.window.len());
        Ok(&self.window[start..end])
    }

    /// The header of the record at `offset`, if one stands there.
    pub fn header(&mut self, offset: u64) -> Result<Option<Header>> {
        let place = RecordPlace { segment: self.first, offset };
        let bytes = self.bytes(offset, record::HEADER_LEN)?;
        Ok(bytes.first_chunk().and_then(|bytes| Header::decode(bytes, place)))
    }

    /// Gives `found` every header of a record that stands at any byte from `offset` on.
    pub fn search(&mut self, mut offset: u64, found: &mut dyn FnMut(&Header)) -> Result<()> {
        let len = self.len;
        while offset < len {
            let window = self.bytes(offset, WINDOW_LEN)?;
            let count = window.len();
            // The last bytes of a window are looked at again with what follows them. A window is
            // short at the end of the file, also when the file is shorter than it was.
            let is_last = count < WINDOW_LEN || offset + count as u64 >= len;
            let step = if is_last { count } else { count + 1 - record::HEADER_LEN };
            let mut starts = Vec::new();
            let mut at = 0;
            while let Some(next) = window[at..step].iter().position(|b| *b == record::MAGIC[0]) {
                starts.push(offset + (at + next) as u64);
                at += next + 1;
            }
            for start in starts {
                if let Some(header) = self.header(start)? {
                    found(&header);
                }
            }
            if is_last {
                break;
            }
            offset += step as u64;
        }
        Ok(())
    }

    /// Whether there is nothing but zeros, as nothing was written yet.
    pub fn is_blank(&mut self) -> Result<bool> {
        let mut at = 0;
        while at < self.len {
            let window = self.bytes(at, WINDOW_LEN)?;
            if window.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            if window.is_empty() {
                break;
            }
            at += window.len() as u64;
        }
        Ok(true)
    }

    /// Bytes from `offset` up to the last one that is not zero.
    pub fn bytes_from(&mut self, offset: u64) -> Result<u64> {
        let (mut at, mut end) = (offset, offset);
        while at < self.len {
            let window = self.bytes(at, WINDOW_LEN)?;
            if window.is_empty() {
                break;
            }
            if let Some(last) = window.iter().rposition(|byte| *byte != 0) {
                end = at + last as u64 + 1;
            }
            at += window.len() as u64;
        }
        Ok(end - offset)
    }
}
