//! The transaction log: decided transactions in order, the only thing that a commit must sync. A
//! node of a cluster keeps what it promised in it, as records that mean nothing to the store.
//!
//! ```text
//! log/0000000000000001.log   | header | record 1 | record 2 | ... | record 811 |  (space)
//! log/000000000000032c.log   | header | record 812 | ...          <- being written
//! log/next                   the segment after it, made ahead
//! log/SYNCED                 how far all this is durable, and whether it was closed cleanly
//! ```
//!
//! Records are numbered without gaps, over all segments. [`record`] is a record's header and
//! [`body`] what is in it, [`segment`] a file of them, [`next`] how one is made ahead, [`mark`] the
//! file beside them, [`pending`] the way from an append to a durable record, [`mod@replay`] the way
//! back. Which records are still needed, and what they mean, is the store's affair.

mod body;
mod mark;
mod next;
mod pending;
mod reader;
mod record;
mod replay;
mod segment;

use std::collections::VecDeque;
use std::sync::Arc;

use tyr_types::{Result, Timestamp};

use self::mark::MarkFile;
pub use self::next::Preparation;
use self::next::Ready;
use self::pending::{Buffer, SegmentFile, WriteState};
pub use self::pending::{Marker, PendingWrite, Removal};
use self::record::RecordPlace;
pub use self::record::{BODY_LEN_MAX, EncodedRecord, Entry};
use self::replay::Span;
pub use self::replay::{ReplayMode, Replayed, Start, TornTail, replay};
pub use self::segment::FOLDER;
use crate::disk::{self, DIRECT_ALIGNMENT, Disk, DiskFile, OpenMode};

/// Buffers kept for reuse: one being written, one being filled.
const SPARE_BUFFERS_MAX: usize = 2;
/// The next segment is made when the current one is full to one part in so many.
const PREPARE_AT: u64 = 4;
/// A buffer that one large transaction made larger than this is not kept.
const SPARE_BUFFER_LEN_MAX: usize = 4 << 20;

/// Bytes of a segment where there is room for none of the usual length: thousands of deletions.
const SMALL_SEGMENT_LEN: u64 = 256 << 10;

const _: () = {
    assert!(SMALL_SEGMENT_LEN.is_multiple_of(DIRECT_ALIGNMENT as u64), "it is written directly");
    assert!(segment::HEADER_LEN + record::HEADER_LEN < DIRECT_ALIGNMENT, "a block holds a record");
};

/// What a [`Log`] is opened with.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Bytes reserved for a segment; one that begins with a larger record is as large as that.
    /// Default 64 MiB: some seconds of commits, so that making one is rare, and one replay.
    pub segment_len: u64,
    /// Whether all is synced soon after it was appended: then it is written past the system's
    /// cache, and segments are made ahead. Default false.
    pub is_direct: bool,
}

impl LogOptions {
    /// What is reserved for a segment that holds so many bytes at least, not made ahead.
    fn segment_len(&self, len_min: u64, is_first: bool) -> u64 {
        if !self.is_direct {
            return self.segment_len.max(len_min);
        }
        // What is made ahead takes over soon.
        let usual = if is_first { self.segment_len / 16 } else { self.segment_len };
        usual.max(len_min).next_multiple_of(DIRECT_ALIGNMENT as u64)
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { segment_len: 64 << 20, is_direct: false }
    }
}

/// The segment being written.
struct Current {
    segment: Arc<SegmentFile>,
    /// Where the next record goes.
    end: u64,
    /// Bytes reserved.
    capacity: u64,
}

/// The transaction log of a store, for one writer at a time: its owner has a lock around it.
pub struct Log {
    state: Arc<WriteState>,
    options: LogOptions,
    next_sequence: u64,
    current: Option<Current>,
    /// Segments before the current one, ascending.
    closed: VecDeque<Span>,
    buffer: Buffer,
    spare: Vec<Buffer>,
}

impl Log {
    /// Opens the log after a [`replay()`] in the mode [`ReplayMode::Cut`]. It goes on in a new
    /// segment, which is made with the first record.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    ///
    /// # Panics
    /// When the replay was read-only: its tail may not be cut.
    pub fn open(disk: Arc<dyn Disk>, options: LogOptions, replayed: &Replayed) -> Result<Self> {
        assert_eq!(replayed.mode, ReplayMode::Cut, "a log goes on where its tail was cut");
        disk.create_folder(FOLDER)
            .and_then(|()| disk.sync_folder(""))
            .map_err(|error| disk::refusal(format!("{}/{FOLDER}", disk.describe()), error))?;
        segment::remove_next(&*disk)?;
        let synced_to = replayed.next_sequence - 1;
        let spans = &replayed.spans;
        assert!(spans.is_sorted_by(|left, right| left.first < right.first), "segments in order");
        assert!(
            spans.last().is_none_or(|last| last.first <= synced_to),
            "a segment without a record was kept: its name is needed again"
        );
        let marks = MarkFile::open(&*disk, replayed.mark, synced_to)?;
        Ok(Self {
            state: Arc::new(WriteState::new(disk, marks, synced_to, options.is_direct)),
            options,
            next_sequence: replayed.next_sequence,
            current: None,
            closed: replayed.spans.iter().copied().collect(),
            buffer: Buffer { last: synced_to, ..Buffer::default() },
            spare: Vec::new(),
        })
    }

    /// Takes a record into memory as the next one, and answers its sequence. It is written by the
    /// next [`PendingWrite`].
    ///
    /// # Errors
    /// `Unavailable` when a new segment is needed and the disk is full or refuses, or when an
    /// earlier write failed. Then nothing changed.
    pub fn append(&mut self, record: &EncodedRecord, at: Timestamp) -> Result<u64> {
        assert!(!record.is_empty(), "a transaction that leaves nothing to log is not appended");
        self.state.check_usable()?;
        let len = record.stored_len() as u64;
        if self.current.as_ref().is_none_or(|current| current.capacity - current.end < len) {
            self.begin_segment(len, record.makes_room())?;
        }
        let current = self.current.as_mut().expect("begun above if it was missing");
        let sequence = self.next_sequence;
        debug_assert!(current.end + len <= current.capacity, "space is reserved before it is used");
        debug_assert_eq!(self.buffer.last + 1, sequence, "records are numbered without gaps");
        debug_assert!(current.segment.first <= sequence, "a segment begins with its first record");
        let place = RecordPlace { segment: current.segment.first, offset: current.end };
        let header = record.header(sequence, at, self.state.synced_to()).encode(place);
        self.buffer.push(&current.segment, current.end, &[&header, record.body()]);
        self.buffer.last = sequence;
        current.end += len;
        self.next_sequence += 1;
        Ok(sequence)
    }

    fn begin_segment(&mut self, record_len: u64, makes_room: bool) -> Result<()> {
        let first = self.next_sequence;
        let header_len = segment::HEADER_LEN as u64;
        let (file, capacity) = self.segment_file(first, header_len + record_len, makes_room)?;
        assert!(
            header_len + record_len <= capacity,
            "segment {first} has {capacity} bytes, and no room for the record it is begun for"
        );
        assert!(
            self.current.as_ref().is_none_or(|full| full.segment.first < first),
            "segment {first} begins where the one before does: that has no record"
        );
        self.state.has_new_name();
        let segment = Arc::new(SegmentFile { first, file });
        self.buffer.push(&segment, 0, &[&segment::header(first)]);
        let begun = Current { segment, end: header_len, capacity };
        if let Some(full) = self.current.replace(begun) {
            let full = Span { first: full.segment.first, len: full.end };
            debug_assert!(
                self.closed.back().is_none_or(|before| before.first < full.first),
                "segments are closed in order: {full:?}"
            );
            self.closed.push_back(full);
        }
        Ok(())
    }

    /// The file of a segment that begins at `first`, made ahead or now, and its length.
    fn segment_file(
        &self,
        first: u64,
        len_min: u64,
        makes_room: bool,
    ) -> Result<(Arc<dyn DiskFile>, u64)> {
        let disk = self.state.disk();
        if let Some(Ready { file, len }) = self.state.next.take(len_min) {
            disk.rename(segment::NEXT, &segment::name(first))
                .map_err(|error| disk::refusal(segment::path(disk, first), error))?;
            return Ok((file, len));
        }
        let len = self.options.segment_len(len_min, self.current.is_none());
        let mode = if self.options.is_direct { OpenMode::Direct } else { OpenMode::Existing };
        match segment::create(disk, first, len, mode) {
            Ok(file) => Ok((file, len)),
            Err(refused) if makes_room => {
                let small = len_min.max(SMALL_SEGMENT_LEN).min(len);
                match segment::create_in_reserve(disk, first, small, mode) {
                    Ok(file) => Ok((file, small)),
                    Err(_) => Err(refused),
                }
            }
            Err(refused) => Err(refused),
        }
    }

    /// The next segment, if it is time to make it ahead: outside the lock, step by step.
    pub fn prepare(&mut self) -> Option<Preparation> {
        let current = self.current.as_ref()?;
        let is_due = self.options.is_direct && current.end >= current.capacity / PREPARE_AT;
        (is_due && self.state.next.begin())
            .then(|| Preparation::new(self.state.clone(), self.options.segment_len(0, false)))
    }

    /// Hands over what was appended since the last call, to be written and synced outside the
    /// lock. With nothing appended it is empty, and its `sync` still covers what was written.
    pub fn take_pending(&mut self) -> PendingWrite {
        let mut next = self.spare.pop().unwrap_or_default();
        debug_assert!(next.parts.is_empty() && next.bytes.is_empty(), "a spare buffer is empty");
        next.last = self.buffer.last;
        let buffer = std::mem::replace(&mut self.buffer, next);
        PendingWrite { state: self.state.clone(), buffer }
    }

    /// Takes the buffer of a pending write that is done, for reuse.
    pub fn give_back(&mut self, pending: PendingWrite) {
        debug_assert!(Arc::ptr_eq(&self.state, &pending.state), "it was taken from this log");
        let mut buffer = pending.buffer;
        debug_assert!(buffer.last <= self.buffer.last, "what was taken lies before what is here");
        if self.spare.len() < SPARE_BUFFERS_MAX && buffer.bytes.capacity() <= SPARE_BUFFER_LEN_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// What notes beside the log how far it is durable.
    pub fn marker(&self) -> Marker {
        Marker { state: self.state.clone() }
    }

    /// The sequence that the next record gets.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// All records up to this sequence are durable.
    pub fn synced_to(&self) -> u64 {
        self.state.synced_to()
    }

    /// Bytes of all records that a replay would read, with those that are pending.
    pub fn bytes(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|span| span.len).sum();
        closed + self.current.as_ref().map_or(0, |current| current.end)
    }

    /// Bytes appended and not yet taken by [`Log::take_pending`].
    pub fn pending_bytes(&self) -> usize {
        self.buffer.bytes.len()
    }

    /// Forgets the segments that only hold records below `sequence`, never the one being written.
    /// Running the answer, outside the lock, removes their files.
    pub fn truncate_before(&mut self, sequence: u64) -> Removal {
        let mut firsts = Vec::new();
        while let Some(span) = self.closed.front() {
            let current = self.current.as_ref().map(|current| current.segment.first);
            let next = self.closed.get(1).map(|next| next.first).or(current);
            if next.unwrap_or(self.next_sequence) > sequence {
                break;
            }
            firsts.push(span.first);
            self.closed.pop_front();
        }
        debug_assert!(firsts.is_sorted() && firsts.iter().all(|first| *first < sequence));
        Removal { state: self.state.clone(), firsts }
    }

    /// Closes the log: writes and syncs what is pending, gives unused space back, and marks beside
    /// it that nothing follows.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses; then the next opening finds a log that was not closed.
    pub fn seal(mut self) -> Result<()> {
        let pending = self.take_pending();
        pending.write()?;
        if let Some(current) = &self.current {
            let file = &current.segment.file;
            let path = || segment::path(self.state.disk(), current.segment.first);
            assert!(current.end <= current.capacity, "records lie within what was reserved");
            file.set_len(current.end).map_err(|error| disk::refusal(path(), error))?;
        }
        pending.sync()?;
        // What a sealed mark does not cover is cut off by the next opening.
        debug_assert_eq!(self.state.synced_to() + 1, self.next_sequence, "all of it is durable");
        self.state.mark(true)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.state.next.close(self.state.disk());
    }
}

#[cfg(test)]
mod tests;
