//! Reading the log back: what is whole, where it ends, and whether the end is an accident of the
//! last crash or damage.
//!
//! Records are read in order until one is not whole. What lies there is
//! - the **end**, if nothing follows;
//! - a **torn tail**, if whatever follows was not yet durable when it was written: a crash may
//!   leave any part of that, so it is cut, and reported;
//! - **damage**, if there is a witness that the record was durable: the mark beside the log, the
//!   header of a later segment, or a later record that says so. Then nothing is guessed.
//!
//! Where a tail was cut the log goes on in a new segment, so nothing is ever written over what was
//! there, and the cut file ends before it.

use std::fmt;

use tyr_types::{Error, Result, Timestamp};

use super::mark::{self, Mark};
use super::reader::SegmentReader;
use super::record::{self, Entry};
use super::segment::{self, HeaderState};
use crate::disk::{self, Disk};

/// Whether a replay changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayMode {
    /// Only looks.
    ReadOnly,
    /// Cuts a torn tail off, removes segments that are not needed, and makes what it read durable,
    /// so that [`super::Log::open`] can go on.
    Cut,
}

/// What a crash left after the last record that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment's file, or that of the extents which the record refers to.
    pub file: String,
    /// Where in it the first record begins that is not whole, or its extent.
    pub offset: u64,
    /// The sequence it would have had.
    pub sequence: u64,
    /// Records whose headers are still there, itself included; none is known to have been durable.
    pub records_lost: u64,
    /// Bytes that are cut off: of the log, or of the extents.
    pub bytes: u64,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, sequence, records_lost, bytes } = self;
        write!(
            f,
            "{file}: what a crash left from byte {offset} on is not whole, and was not known to be \
             durable: {bytes} bytes with {records_lost} transactions, the first of which is number \
             {sequence} of the log"
        )
    }
}

/// Where a replay begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The sequence of the first record that is wanted.
    pub sequence: u64,
    /// Whether the base holds something. Then there was a log, and it is damage when all of it is
    /// gone.
    pub is_used: bool,
}

/// A segment and how far its records reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub first: u64,
    pub len: u64,
}

/// What a replay found.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    /// Where the last whole record ends: file and offset. None when there is no segment.
    pub end: Option<(String, u64)>,
    /// Whether the log was closed cleanly and is all there.
    pub is_clean: bool,
    /// What a crash left after the end, if it left anything.
    pub torn: Option<TornTail>,
    /// All records up to this sequence were durable before the replay, with the extents they refer
    /// to: as the mark has it, or a later segment or record.
    pub synced_to: u64,
    /// Records that were visited.
    pub records: u64,
    /// Bytes of all segments that were read.
    pub bytes: u64,
    pub(super) spans: Vec<Span>,
    pub(super) mark: Option<Mark>,
    pub(super) mode: ReplayMode,
}

/// Reads the log in `disk` and gives `visit` every entry from `start` on, in order.
///
/// Segments that only hold earlier records are passed over.
///
/// # Errors
/// `Corrupt` with file, offset and sequence when records from `start` on were durable and are not
/// there, or there is no log at all where there was one; `Unavailable` when the disk refuses or the
/// format is a later one; what `visit` says. What was visited before an error must not be used.
pub fn replay(
    disk: &dyn Disk,
    start: Start,
    mode: ReplayMode,
    visit: &mut dyn FnMut(u64, Timestamp, Entry) -> Result<()>,
) -> Result<Replayed> {
    let listed = segment::list(disk)?;
    let mark = mark::load(disk, start.is_used || !listed.is_empty())?;
    let firsts = without_blank(disk, &listed)?;
    let from = start.sequence.max(1);
    let synced_to = mark.map_or(0, |mark| mark.synced_to);
    if firsts.is_empty() && synced_to >= from {
        return Err(Error::corrupt(format!(
            "{}/{}: there is no segment with a record, but the log was durable up to sequence \
             {synced_to}",
            disk.describe(),
            segment::FOLDER
        )));
    }
    // The last segment that begins at or before `from`.
    let index = firsts.partition_point(|first| *first <= from).checked_sub(1);
    let needed = &firsts[index.unwrap_or(0)..];
    let expected = index.map_or(from, |index| firsts[index]);
    let mut walk =
        Walk { disk, firsts: needed, from, expected, witnessed: 0, records: 0, spans: Vec::new() };
    let stop = match index {
        Some(_) => walk.read(visit)?,
        None => (!needed.is_empty()).then_some(Stop { index: 0, offset: 0 }),
    };
    let torn = match &stop {
        Some(stop) => walk.judge(stop, synced_to)?,
        None => None,
    };
    let mut spans = std::mem::take(&mut walk.spans);
    if mode == ReplayMode::Cut {
        // A segment without a record says nothing, and its name is needed again.
        spans.retain(|span| span.len > segment::HEADER_LEN as u64);
        cut(disk, &listed, &spans)?;
    }
    let next_sequence = walk.expected.max(from);
    debug_assert_eq!(walk.records, next_sequence - from, "a record was left out, or came twice");
    // Else `judge` has found damage.
    debug_assert!(synced_to.max(walk.witnessed) < next_sequence, "durable, and not there");
    debug_assert!(spans.is_sorted_by(|left, right| left.first < right.first));
    Ok(Replayed {
        next_sequence,
        end: spans.last().map(|span| (segment::path(disk, span.first), span.len)),
        is_clean: torn.is_none()
            && mark.is_none_or(|mark| mark.is_sealed && mark.synced_to + 1 == next_sequence),
        torn,
        synced_to: synced_to.max(walk.witnessed),
        records: walk.records,
        bytes: spans.iter().map(|span| span.len).sum(),
        spans,
        mark,
        mode,
    })
}

/// The segments into which something was written.
///
/// A file of zeros says nothing about where the log ends or goes on. When the disk is full, a file
/// made for a large record is removed again, and smaller records go on in the segment before; its
/// name comes back when the power goes before the removal is durable.
fn without_blank(disk: &dyn Disk, listed: &[u64]) -> Result<Vec<u64>> {
    let mut written = Vec::with_capacity(listed.len());
    for first in listed {
        if !SegmentReader::open(disk, *first)?.is_blank()? {
            written.push(*first);
        }
    }
    Ok(written)
}

/// Where reading stopped.
struct Stop {
    /// Index of the segment.
    index: usize,
    offset: u64,
}

/// What lies behind the place where reading stopped.
#[derive(Default)]
struct Behind {
    /// The highest sequence that somebody there knew to be durable.
    synced_to: u64,
    /// Headers of records.
    records: u64,
    bytes: u64,
}

struct Walk<'a> {
    disk: &'a dyn Disk,
    /// The segments that are needed, by their first sequences.
    firsts: &'a [u64],
    from: u64,
    /// The sequence of the next record.
    expected: u64,
    /// The highest sequence that what was read knew to be durable.
    witnessed: u64,
    records: u64,
    spans: Vec<Span>,
}

impl Walk<'_> {
    /// Reads until something is not a whole record in its turn. None when there is no segment.
    fn read(
        &mut self,
        visit: &mut dyn FnMut(u64, Timestamp, Entry) -> Result<()>,
    ) -> Result<Option<Stop>> {
        for (index, first) in self.firsts.iter().copied().enumerate() {
            let mut reader = SegmentReader::open(self.disk, first)?;
            match segment::inspect_header(reader.bytes(0, segment::HEADER_LEN)?, first) {
                HeaderState::Good => {}
                HeaderState::Bad => return Ok(Some(Stop { index, offset: 0 })),
                HeaderState::Later => return Err(self.too_new(first)),
            }
            // A segment begins when all before it is durable.
            self.witnessed = self.witnessed.max(first - 1);
            let offset = self.read_segment(&mut reader, visit)?;
            self.spans.push(Span { first, len: offset });
            match self.firsts.get(index + 1) {
                Some(next) if *next == self.expected => {}
                Some(next) if *next < self.expected => {
                    return Err(Error::corrupt(format!(
                        "{}: the segment begins at sequence {next}, which {} holds already",
                        segment::path(self.disk, *next),
                        segment::path(self.disk, first)
                    )));
                }
                Some(_) | None => return Ok(Some(Stop { index, offset })),
            }
        }
        Ok(None)
    }

    /// Reads records from the segment's first on; answers where the first that is not whole would
    /// begin.
    fn read_segment(
        &mut self,
        reader: &mut SegmentReader,
        visit: &mut dyn FnMut(u64, Timestamp, Entry) -> Result<()>,
    ) -> Result<u64> {
        let first = reader.first();
        debug_assert_eq!(self.expected, first, "a segment is read in its turn");
        let mut offset = segment::HEADER_LEN as u64;
        while let Some(header) = reader.header(offset)? {
            let body_at = offset + record::HEADER_LEN as u64;
            let body_len = header.body_len as usize;
            if header.sequence != self.expected || body_at + body_len as u64 > reader.len() {
                break;
            }
            let body = reader.bytes(body_at, body_len)?;
            if body.len() != body_len || crc32c::crc32c(body) != header.body_checksum {
                break;
            }
            if header.sequence >= self.from {
                let place = |error: Error| {
                    let path = segment::path(self.disk, first);
                    error.context(format!("{path}: record {} at byte {offset}", header.sequence))
                };
                let entry = header.kind.decode(body).map_err(place)?;
                visit(header.sequence, header.at, entry).map_err(place)?;
                self.records += 1;
            }
            self.witnessed = self.witnessed.max(header.synced_to());
            self.expected += 1;
            offset = body_at + body_len as u64;
        }
        debug_assert!(offset <= reader.len(), "records end within their segment");
        Ok(offset)
    }

    /// Tells end, torn tail and damage apart.
    fn judge(&self, stop: &Stop, marked: u64) -> Result<Option<TornTail>> {
        let behind = self.look_behind(stop)?;
        let synced_to = behind.synced_to.max(marked);
        let first = self.firsts[stop.index];
        let file = segment::path(self.disk, first);
        let (offset, sequence) = (stop.offset, self.expected);
        // Earlier ones may be gone: who asks from `from` on has them elsewhere.
        if synced_to >= sequence.max(self.from) {
            return Err(Error::corrupt(format!(
                "{file}: the record with sequence {sequence} at byte {offset} is damaged or \
                 missing; the log was durable up to sequence {synced_to}, so this is no torn tail"
            )));
        }
        let Behind { records: records_lost, bytes, .. } = behind;
        let torn = TornTail { file, offset, sequence, records_lost, bytes };
        Ok((bytes > 0).then_some(torn))
    }

    fn look_behind(&self, stop: &Stop) -> Result<Behind> {
        let mut behind = Behind::default();
        for (index, first) in self.firsts.iter().copied().enumerate().skip(stop.index) {
            let mut reader = SegmentReader::open(self.disk, first)?;
            let header = reader.bytes(0, segment::HEADER_LEN)?;
            if segment::inspect_header(header, first) != HeaderState::Bad {
                behind.synced_to = behind.synced_to.max(first - 1);
            }
            let offset = if index == stop.index { stop.offset } else { 0 };
            reader.search(offset, &mut |header| {
                if header.sequence >= self.expected {
                    behind.records += 1;
                    behind.synced_to = behind.synced_to.max(header.synced_to());
                }
            })?;
            behind.bytes += reader.bytes_from(offset)?;
        }
        Ok(behind)
    }

    fn too_new(&self, first: u64) -> Error {
        let path = segment::path(self.disk, first);
        Error::later_release(path, "a later log format", segment::FORMAT_VERSION)
    }
}

/// Leaves of the log only `spans`, durably.
fn cut(disk: &dyn Disk, listed: &[u64], spans: &[Span]) -> Result<()> {
    let mut has_removed = false;
    // The last first: whatever is left when the power goes has no gap.
    for first in listed.iter().rev() {
        if spans.iter().all(|span| span.first != *first) {
            let refused = |error| disk::refusal(segment::path(disk, *first), error);
            disk.remove(&segment::name(*first)).map_err(refused)?;
            has_removed = true;
        }
    }
    for span in spans {
        let refused = |error| disk::refusal(segment::path(disk, span.first), error);
        let file = segment::open(disk, span.first)?;
        if file.len().map_err(refused)? > span.len {
            file.set_len(span.len).map_err(refused)?;
        }
        // After the death of a process its last records are read back from memory only.
        file.sync().map_err(refused)?;
    }
    if has_removed || !spans.is_empty() {
        let refused = |error| disk::refusal(format!("{}/log", disk.describe()), error);
        disk.sync_folder(segment::FOLDER).map_err(refused)?;
    }
    Ok(())
}
