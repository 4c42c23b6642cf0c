//! A blob as a stream of bytes, for threads.

use std::io;

use tyr_types::{BlobName, ByteRange, Bytes, ErrorKind, Result};

use super::{Keyspace, Snapshot};
use crate::backend::Answer;

/// Bytes fetched at a time.
pub(crate) const PIECE: u64 = 1 << 20;

/// A caller's buffer of at least this many bytes is filled directly, without a piece in between.
const DIRECT_MIN: u64 = 64 << 10;

/// Part of a blob at one version, read as it is needed: [`std::io::Read`], or [`Reader::next`]
/// for whole pieces.
#[derive(Debug)]
pub struct Reader {
    snapshot: Snapshot,
    keyspace: Keyspace,
    name: BlobName,
    rest: ByteRange,
    size: u64,
    piece: Bytes,
}

impl Reader {
    pub(crate) fn new(
        snapshot: Snapshot,
        keyspace: Keyspace,
        name: BlobName,
        range: ByteRange,
        size: u64,
    ) -> Self {
        let rest = range.intersection(ByteRange { start: 0, end: size });
        Self { snapshot, keyspace, name, rest, size, piece: Bytes::new() }
    }

    /// The size of the whole blob.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes still to come.
    pub fn remaining(&self) -> u64 {
        self.rest.len() + self.piece.len() as u64
    }

    /// The next piece, of up to 1 MiB; `None` at the end.
    ///
    /// # Errors
    /// `SnapshotTooOld` when it took more than 5 minutes; `Corrupt`; `Unavailable`.
    #[allow(clippy::should_implement_trait, reason = "it fails, unlike an iterator's")]
    pub fn next(&mut self) -> Result<Option<Bytes>> {
        if !self.piece.is_empty() {
            return Ok(Some(std::mem::take(&mut self.piece)));
        }
        let Some(range) = self.next_range() else { return Ok(None) };
        let answer = self.snapshot.view.read(&self.keyspace.space, &self.name, range)?;
        self.take(range, answer)
    }

    /// The same, for async code.
    pub(crate) async fn fetch_next(&mut self) -> Result<Option<Bytes>> {
        if !self.piece.is_empty() {
            return Ok(Some(std::mem::take(&mut self.piece)));
        }
        let Some(range) = self.next_range() else { return Ok(None) };
        let answer = self.snapshot.view.fetch(&self.keyspace.space, &self.name, range).await?;
        self.take(range, answer)
    }

    /// Aligned, so that pieces match the extents of a blob written in order.
    fn next_range(&self) -> Option<ByteRange> {
        let end = self.rest.end.min((self.rest.start / PIECE + 1) * PIECE);
        (!self.rest.is_empty()).then_some(ByteRange { start: self.rest.start, end })
    }

    fn take(&mut self, range: ByteRange, answer: Answer) -> Result<Option<Bytes>> {
        let found = answer.ok_or_else(|| self.keyspace.absent(&self.name))?;
        self.rest.start = range.end;
        Ok(Some(found.bytes))
    }
}

impl Reader {
    /// Fetches into `out` directly; answers how many bytes.
    fn read_direct(&mut self, out: &mut [u8]) -> Result<usize> {
        let len = self.rest.len().min(PIECE).min(out.len() as u64);
        let out = &mut out[..len as usize];
        self.snapshot.read_into(&self.keyspace, &self.name, self.rest.start, out)?;
        self.rest.start += len;
        Ok(out.len())
    }
}

impl io::Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let as_io = |error: tyr_types::Error| {
            let is_corrupt = error.kind() == ErrorKind::Corrupt;
            let kind = if is_corrupt { io::ErrorKind::InvalidData } else { io::ErrorKind::Other };
            io::Error::new(kind, error)
        };
        if self.piece.is_empty() && out.len() as u64 >= self.rest.len().min(DIRECT_MIN) {
            return self.read_direct(out).map_err(as_io);
        }
        if self.piece.is_empty() {
            self.piece = self.next().map_err(as_io)?.unwrap_or_default();
        }
        let len = out.len().min(self.piece.len());
        out[..len].copy_from_slice(&self.piece.split_to(len));
        Ok(len)
    }
}
