//! One blob of a draft: pieces of it that are known, and where the rest comes from.
//!
//! ```text
//!   pieces     ..[read]....[written][written]......[written]
//!   below      ================|                           visible: below counts up to here
//!   size       ------------------------------|  `sized`, and where the last write since ends
//! ```

use std::collections::BTreeMap;

use tyr_types::{ByteRange, Bytes, Result};

use crate::limits::DRAFT_READ_BYTES_MAX;

/// Bytes of one write that is handed on, at least where more lie beside each other.
const WRITE_LEN: usize = 1 << 20;

/// What a layer lies on.
pub trait Below {
    /// The size; `None` where there is no blob.
    fn size(&mut self) -> Result<Option<u64>>;
    /// Bytes from `offset` on; fewer where the blob ends.
    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes>;
    /// Writes, and creates.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()>;
    /// Cuts, or extends with zeros.
    fn truncate(&mut self, size: u64) -> Result<()>;
}

/// Bytes that are known.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    /// Whether they are to be handed on: else they were read.
    is_written: bool,
}

/// One blob of a draft.
#[derive(Debug)]
pub struct Layer {
    /// By where they begin; none overlaps another.
    pieces: BTreeMap<u64, Piece>,
    /// Bytes of the pieces that were read.
    pub(super) read: usize,
    /// Bytes of those that were written.
    written: usize,
    /// What is below is seen up to here.
    visible: u64,
    /// The size before the writes in `end`, once it is known.
    sized: Option<Option<u64>>,
    /// Where the last of what was written since ends.
    end: Option<u64>,
    /// The smallest size to which it was cut.
    cut: Option<u64>,
}

impl Default for Layer {
    fn default() -> Self {
        let (pieces, sized) = (BTreeMap::new(), None);
        Self { pieces, read: 0, written: 0, visible: u64::MAX, sized, end: None, cut: None }
    }
}

impl Layer {
    /// Of a blob that was removed; `size` is what it has then.
    pub fn removed(size: Option<u64>) -> Self {
        Self { visible: 0, sized: Some(size), ..Self::default() }
    }

    /// Whether there is anything to be handed on.
    pub fn is_changed(&self) -> bool {
        self.end.is_some() || self.cut.is_some()
    }

    /// Bytes that are to be handed on.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Its size; `None` where there is no blob.
    pub fn size(&mut self, below: &mut dyn Below) -> Result<Option<u64>> {
        let before = match self.sized {
            Some(size) => size,
            None => *self.sized.insert(below.size()?),
        };
        Ok(before.max(self.end))
    }

    /// Up to `len` bytes from `offset` on; fewer where it ends.
    pub fn read(&mut self, below: &mut dyn Below, offset: u64, len: u64) -> Result<Bytes> {
        let mut end = offset.saturating_add(len);
        if self.sized.is_some() || self.end.is_some() {
            end = end.min(self.size(below)?.unwrap_or(0));
        }
        if self.read > DRAFT_READ_BYTES_MAX {
            self.pieces.retain(|_, piece| piece.is_written);
            self.read = 0;
        }
        for gap in self.gaps(offset, end.min(self.visible)) {
            let found = below.read(gap.start, gap.len())?;
            let (from, len) = (gap.start, found.len() as u64);
            self.read += found.len();
            if !found.is_empty() {
                let piece = Piece { bytes: found.to_vec(), is_written: false };
                self.pieces.insert(from, piece);
            }
            if len < gap.len() {
                // Below it ends there.
                self.visible = from + len;
                end = end.min(self.size(below)?.unwrap_or(0));
                break;
            }
        }
        Ok(self.assemble(offset, end))
    }

    /// Where nothing is known within a range.
    fn gaps(&self, start: u64, end: u64) -> Vec<ByteRange> {
        let (mut gaps, mut at) = (Vec::new(), start);
        for (from, to) in self.overlapping(start, end) {
            if at < from {
                gaps.push(ByteRange { start: at, end: from });
            }
            at = at.max(to);
        }
        if at < end {
            gaps.push(ByteRange { start: at, end });
        }
        gaps
    }

    /// Where the pieces lie that have bytes of a range.
    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = self.pieces.range(..start).next_back();
        let within = self.pieces.range(start..end.max(start));
        let place = |(from, piece): (&u64, &Piece)| (*from, from + piece.bytes.len() as u64);
        before.into_iter().chain(within).map(place).filter(move |(_, to)| *to > start)
    }

    fn assemble(&self, start: u64, end: u64) -> Bytes {
        if end <= start {
            return Bytes::new();
        }
        let mut bytes = vec![0; (end - start) as usize];
        let places: Vec<(u64, u64)> = self.overlapping(start, end).collect();
        for (from, to) in places {
            let (first, last) = (from.max(start), to.min(end));
            let piece = &self.pieces[&from].bytes[(first - from) as usize..(last - from) as usize];
            bytes[(first - start) as usize..(last - start) as usize].copy_from_slice(piece);
        }
        bytes.into()
    }

    /// Writes.
    ///
    /// # Errors
    /// `InvalidArgument` beyond what a blob can have.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let ByteRange { start, end } = ByteRange::at(offset, data.len() as u64)?;
        self.end = self.end.max(Some(end));
        if data.is_empty() {
            return Ok(());
        }
        if let Some((from, piece)) = self.pieces.range_mut(..=start).next_back()
            && piece.is_written
            && from + piece.bytes.len() as u64 >= end
        {
            let at = (start - from) as usize;
            piece.bytes[at..at + data.len()].copy_from_slice(data);
            return Ok(());
        }
        self.forget(start, end);
        self.written += data.len();
        self.pieces.insert(start, Piece { bytes: data.to_vec(), is_written: true });
        Ok(())
    }

    /// Cuts it, or extends it with zeros.
    ///
    /// # Errors
    /// `InvalidArgument` beyond what a blob can have.
    pub fn truncate(&mut self, size: u64) -> Result<()> {
        ByteRange::at(size, 0)?;
        self.forget(size, u64::MAX);
        self.visible = self.visible.min(size);
        self.cut = Some(self.cut.map_or(size, |cut| cut.min(size)));
        (self.sized, self.end) = (Some(Some(size)), None);
        Ok(())
    }

    /// Lets go of what is known of a range.
    fn forget(&mut self, start: u64, end: u64) {
        let places: Vec<(u64, u64)> = self.overlapping(start, end).collect();
        for (from, to) in places {
            let Some(Piece { mut bytes, is_written }) = self.pieces.remove(&from) else { continue };
            let (first, last) = (from.max(start), to.min(end));
            match is_written {
                true => self.written -= (last - first) as usize,
                false => self.read -= (last - first) as usize,
            }
            let behind = bytes.split_off((last - from) as usize);
            bytes.truncate((first - from) as usize);
            for (at, bytes) in [(from, bytes), (last, behind)] {
                if !bytes.is_empty() {
                    self.pieces.insert(at, Piece { bytes, is_written });
                }
            }
        }
    }

    /// Does below what was done here.
    pub fn hand_on(self, below: &mut dyn Below) -> Result<()> {
        if let Some(cut) = self.cut {
            below.truncate(cut)?;
        }
        // Where it ends without a further word, if it was cut.
        let mut end = self.cut.unwrap_or(0);
        let mut run: Option<(u64, Vec<u8>)> = None;
        for (start, piece) in self.pieces.into_iter().filter(|(_, piece)| piece.is_written) {
            end = end.max(start + piece.bytes.len() as u64);
            if let Some((from, bytes)) = &mut run
                && *from + bytes.len() as u64 == start
                && bytes.len() < WRITE_LEN
            {
                bytes.extend(piece.bytes);
            } else if let Some((from, bytes)) = run.replace((start, piece.bytes)) {
                below.write(from, &bytes)?;
            }
        }
        if let Some((from, bytes)) = run {
            below.write(from, &bytes)?;
        }
        match (self.sized.flatten().max(self.end), self.cut) {
            // It was extended, with zeros, or by writes that had nothing.
            (Some(size), Some(_)) if size > end => below.truncate(size),
            (Some(_) | None, Some(_)) => Ok(()),
            // A write of nothing makes a blob, and extends it.
            (_, None) if self.end.is_some_and(|last| last > end || end == 0) => {
                below.write(self.end.unwrap_or(0), &[])
            }
            (_, None) => Ok(()),
        }
    }
}
