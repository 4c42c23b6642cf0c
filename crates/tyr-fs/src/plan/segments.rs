//! The segments of a file, as a draft changes them.
//!
//! ```text
//!   offset ──► segment min(offset >> bits, last), at offset - (segment << bits) there
//! ```
//!
//! The last segment has all that follows, so that an append needs not know where the file ends:
//! should others have appended so much meanwhile that it becomes longer than a segment, nothing is
//! at the wrong place, and who makes the next segment takes along what is too much. Segments before
//! the last read as zeros where they are short or missing.

use rustix::io::Errno;
use tyr::{Bytes, Timestamp};

use super::draft::{Change, Condition, Draft};
use super::known::{Known, SEGMENTS_MAX};
use super::{Plan, Stop};
use crate::error::Error;
use crate::layout::key::Blob;
use crate::layout::record::{LAST_SEGMENT_AT, Record};

/// The number of the last segment that a file can have.
const SEGMENT_MAX: u64 = u32::MAX as u64;

/// A part of a range of a file, within one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The segment.
    pub segment: u32,
    /// Where it begins in the segment.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Where a range of a file lies that has segments of so many bits and ends in this one.
pub fn pieces(offset: u64, len: u64, bits: u8, last: u32) -> Vec<Piece> {
    let (mut at, end, mut pieces) = (offset, offset + len, Vec::new());
    while at < end {
        let segment = (at >> bits).min(u64::from(last));
        let start = segment << bits;
        let segment = u32::try_from(segment).expect("not above the last");
        let until = if segment == last { end } else { end.min(start + (1 << bits)) };
        pieces.push(Piece { segment, offset: at - start, len: until - at });
        at = until;
    }
    pieces
}

/// A file's segments.
#[derive(Debug)]
pub struct Segments {
    number: u64,
    bits: u8,
    last: u32,
    last_size: u64,
    /// Of a file that was there before: the versions of its last segment and of its inode.
    versions: Option<(Timestamp, Timestamp)>,
}

impl Segments {
    /// Those of a file without content, made by this draft.
    pub fn new(draft: &mut Draft<()>, number: u64, bits: u8) -> Self {
        draft.put(&Blob::content(number, 0), []);
        Self { number, bits, last: 0, last_size: 0, versions: None }
    }

    /// Those of this inode, which has to end in the same segment when the draft takes effect.
    pub fn of(known: &Known, draft: &mut Draft<()>, record: &Record) -> Plan<Self> {
        let number = record.identity.number;
        let last = known.last_segment(record)?;
        let Some((_, inode_version)) = known.file(number)?.inode else { return Err(Stop::Again) };
        let bytes = record.last_segment.to_le_bytes();
        draft.require_bytes(&Blob::inode(number), LAST_SEGMENT_AT, bytes);
        Ok(Self {
            number,
            bits: record.segment_bits,
            last: record.last_segment,
            last_size: last.size,
            versions: Some((last.version, inode_version)),
        })
    }

    /// The segment that the file ends in.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Refuses what is beyond the longest file; answers where the range ends.
    pub fn check_end(offset: u64, len: u64, bits: u8) -> Result<u64, Error> {
        let bound = (SEGMENT_MAX + 1).saturating_mul(1 << bits);
        let bound = bound.min(i64::MAX.cast_unsigned());
        offset
            .checked_add(len)
            .filter(|end| *end <= bound)
            .ok_or_else(|| Error::new(Errno::FBIG, format!("a file has at most {bound} bytes")))
    }

    /// Whether so much can be appended without a look at where the last segment ends, even if
    /// others append at the same time.
    pub fn has_room(&self, len: u64) -> bool {
        let (segment_len, slack) = (1_u64 << self.bits, 1_u64 << (self.bits - 4));
        self.last_size.saturating_add(len).saturating_add(slack) <= segment_len
    }

    /// Appends; answers what is to be added to where the segment ended.
    pub fn append(&self, draft: &mut Draft<()>, data: &Bytes) -> i64 {
        draft.change(Change::Append(Blob::content(self.number, self.last), data.clone()));
        (u64::from(self.last) << self.bits).cast_signed()
    }

    /// The file must end where it is known to end.
    pub fn require_end(&self, draft: &mut Draft<()>) {
        if let Some((version, _)) = self.versions {
            let last = Blob::content(self.number, self.last);
            draft.require(Condition::Unchanged(last, version));
        }
    }

    /// Writes at this offset.
    pub fn write(
        &mut self,
        known: &Known,
        draft: &mut Draft<()>,
        offset: u64,
        data: &Bytes,
    ) -> Plan<()> {
        let Some(end) = (offset + data.len() as u64).checked_sub(1).filter(|_| !data.is_empty())
        else {
            return Ok(());
        };
        self.grow(known, draft, end >> self.bits)?;
        self.put(draft, offset, data);
        Ok(())
    }

    fn put(&mut self, draft: &mut Draft<()>, offset: u64, data: &Bytes) {
        let mut rest = data.clone();
        for piece in pieces(offset, data.len() as u64, self.bits, self.last) {
            let part = rest.split_to(usize::try_from(piece.len).expect("within data"));
            let blob = Blob::content(self.number, piece.segment);
            draft.change(Change::Write(blob, piece.offset, part));
            if piece.segment == self.last {
                self.last_size = self.last_size.max(piece.offset + piece.len);
            }
        }
    }

    /// The file ends in this segment, or in a later one. The one that it ended in is cut to a
    /// segment's length, and what it had too much goes where it belongs.
    fn grow(&mut self, known: &Known, draft: &mut Draft<()>, to: u64) -> Plan<()> {
        let to = u32::try_from(to).expect("the end was checked");
        if to <= self.last {
            return Ok(());
        }
        self.require_end(draft);
        let (before, segment_len) = (Blob::content(self.number, self.last), 1 << self.bits);
        let next = (u64::from(self.last) + 1) << self.bits;
        let is_too_long = self.last_size > segment_len;
        let tail = is_too_long.then(|| known.tail(&before, segment_len)).transpose()?.cloned();
        (self.last, self.last_size, self.versions) = (to, 0, None);
        draft.change(Change::Truncate(Blob::content(self.number, to), 0));
        if let Some(tail) = tail {
            draft.change(Change::Truncate(before, segment_len));
            self.put(draft, next, &tail);
        }
        Ok(())
    }

    /// Cuts the file, or extends it with zeros. Of a very long one a part is cut off at a time:
    /// answers whether that was all.
    pub fn truncate(&mut self, known: &Known, draft: &mut Draft<()>, size: u64) -> Plan<bool> {
        let last = size.saturating_sub(1) >> self.bits;
        self.grow(known, draft, last)?;
        let last = u32::try_from(last).expect("the end was checked");
        if last == self.last {
            let len = size - (u64::from(last) << self.bits);
            draft.change(Change::Truncate(Blob::content(self.number, last), len));
            return Ok(true);
        }
        let Some((_, inode)) = self.versions else {
            unreachable!("what a draft makes is not longer than it shall be")
        };
        // Whoever writes meanwhile may make segments that were not listed.
        draft.require(Condition::Unchanged(Blob::inode(self.number), inode));
        let segments = known.segments(self.number, last + 1)?;
        let is_all = segments.len() < SEGMENTS_MAX;
        let (last, len) = match (is_all, segments.first()) {
            (false, Some(first)) => (*first, 0),
            (true, _) | (false, None) => (last, size - (u64::from(last) << self.bits)),
        };
        for segment in segments.iter().filter(|segment| **segment > last) {
            draft.delete(Blob::content(self.number, *segment));
        }
        draft.change(Change::Truncate(Blob::content(self.number, last), len));
        self.last = last;
        Ok(is_all)
    }

    /// Makes a hole; it does not make the file longer.
    pub fn clear(&self, draft: &mut Draft<()>, offset: u64, len: u64) {
        for piece in pieces(offset, len, self.bits, self.last) {
            let blob = Blob::content(self.number, piece.segment);
            draft.change(Change::Clear(blob, piece.offset, piece.len));
        }
    }

    /// The inode says where the file ends now.
    pub fn finish(&self, draft: &mut Draft<()>, record: &Record) {
        if self.last != record.last_segment {
            let bytes = self.last.to_le_bytes();
            draft.write(&Blob::inode(self.number), LAST_SEGMENT_AT, bytes);
        }
    }
}
