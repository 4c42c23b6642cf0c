//! What was appended and is not written yet, and what was written and is not synced yet.
//!
//! ```text
//!  Log (under its owner's lock)          WriteState (shared, own locks)
//!  append --> Buffer --take_pending--> PendingWrite --write--> file --sync--> durable
//!                 ^                         |
//!                 '------- give_back -------'
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tyr_types::{Error, Result};

use super::mark::MarkFile;
use super::next::NextSegment;
use super::segment;
use crate::disk::{self, BlockWriter, Disk, DiskFile};

/// A segment's file, shared by those who write it.
pub(super) struct SegmentFile {
    pub first: u64,
    pub file: Arc<dyn DiskFile>,
}

/// Some bytes of a buffer and where they go.
pub(super) struct Part {
    pub segment: Arc<SegmentFile>,
    pub offset: u64,
    pub bytes: Range<usize>,
}

/// Records that were appended, in order.
#[derive(Default)]
pub(super) struct Buffer {
    pub bytes: Vec<u8>,
    pub parts: Vec<Part>,
    /// The sequence of the last record.
    pub last: u64,
}

impl Buffer {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
    }

    /// Adds bytes that go to `offset` of `segment`.
    pub fn push(&mut self, segment: &Arc<SegmentFile>, offset: u64, pieces: &[&[u8]]) {
        let start = self.bytes.len();
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        let end = self.bytes.len();
        if let Some(part) = self.parts.last_mut()
            && part.segment.first == segment.first
        {
            debug_assert_eq!(part.bytes.end, start, "the last part ends where the buffer does");
            debug_assert_eq!(part.offset + part.bytes.len() as u64, offset, "no gap in a segment");
            part.bytes.end = end;
            return;
        }
        // Whoever begins a segment says that all before it is durable.
        debug_assert!(
            self.parts.last().is_none_or(|part| part.segment.first < segment.first && offset == 0),
            "a segment follows another with its header"
        );
        self.parts.push(Part { segment: segment.clone(), offset, bytes: start..end });
    }
}

#[derive(Default)]
struct Written {
    /// All records up to this sequence are written.
    to: u64,
    /// Files with bytes that are not synced.
    unsynced: Vec<Arc<SegmentFile>>,
    /// Whether a segment was made whose name is not durable.
    has_new_names: bool,
}

/// What is written and what is durable; shared by the log and its pending writes.
pub(super) struct WriteState {
    disk: Arc<dyn Disk>,
    is_broken: AtomicBool,
    written: Mutex<Written>,
    synced_to: AtomicU64,
    /// Held while syncing: who comes second waits, and finds less to do.
    sync: Mutex<()>,
    marks: Mutex<MarkFile>,
    /// How segments are written that are written directly.
    direct: Option<Mutex<BlockWriter>>,
    pub next: NextSegment,
}

impl WriteState {
    pub fn new(disk: Arc<dyn Disk>, marks: MarkFile, synced_to: u64, is_direct: bool) -> Self {
        Self {
            disk,
            is_broken: AtomicBool::new(false),
            written: Mutex::new(Written { to: synced_to, ..Written::default() }),
            synced_to: AtomicU64::new(synced_to),
            sync: Mutex::new(()),
            marks: Mutex::new(marks),
            direct: is_direct.then(Mutex::default),
            next: NextSegment::default(),
        }
    }

    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// All records up to this sequence are durable.
    pub fn synced_to(&self) -> u64 {
        self.synced_to.load(Ordering::Acquire)
    }

    pub fn has_new_name(&self) {
        self.written.lock().has_new_names = true;
    }

    pub fn check_usable(&self) -> Result<()> {
        if self.is_broken.load(Ordering::Acquire) {
            return Err(Error::unavailable(format!(
                "{}/{}: an earlier write or sync failed, so nothing more is written; open the \
                 store again",
                self.disk.describe(),
                segment::FOLDER
            )));
        }
        Ok(())
    }

    fn broken(&self, first: u64, what: &str, error: std::io::Error) -> Error {
        self.is_broken.store(true, Ordering::Release);
        let path = segment::path(&*self.disk, first);
        let text = format!("{path}: {what} failed, nothing more is written; open the store again");
        Error::io(text, error)
    }

    fn write(&self, buffer: &Buffer) -> Result<()> {
        self.check_usable()?;
        for part in &buffer.parts {
            let segment = &part.segment;
            if part.offset == 0 {
                // The segment's header says that all before it is durable.
                self.sync(u64::MAX)?;
            }
            let bytes = &buffer.bytes[part.bytes.clone()];
            let written = match &self.direct {
                Some(direct) => direct.lock().write(&*segment.file, bytes, part.offset),
                None => segment.file.write_at(bytes, part.offset),
            };
            written.map_err(|error| self.broken(segment.first, "write", error))?;
            let mut written = self.written.lock();
            if written.unsynced.iter().all(|other| other.first != segment.first) {
                written.unsynced.push(segment.clone());
            }
        }
        if !buffer.parts.is_empty() {
            let mut written = self.written.lock();
            assert!(written.to < buffer.last, "pending writes are written in the order taken");
            written.to = buffer.last;
        }
        Ok(())
    }

    /// Syncs everything written, and takes note of the records up to `known`: what was written
    /// behind them meanwhile may refer to extents that are not durable.
    pub fn sync(&self, known: u64) -> Result<()> {
        let _alone = self.sync.lock();
        self.check_usable()?;
        let (to, files, has_new_names) = {
            let mut written = self.written.lock();
            let files = std::mem::take(&mut written.unsynced);
            (written.to, files, std::mem::take(&mut written.has_new_names))
        };
        for segment in &files {
            segment.file.sync().map_err(|error| self.broken(segment.first, "sync", error))?;
        }
        if has_new_names {
            self.disk
                .sync_folder(segment::FOLDER)
                .map_err(|error| self.broken(to + 1, "sync of its folder", error))?;
        }
        let before = self.synced_to.fetch_max(to.min(known), Ordering::AcqRel);
        // One sync after the other, each of what was written by then.
        assert!(before <= to, "durable up to {before}, but written up to {to} only");
        Ok(())
    }

    /// Writes a mark that covers what is durable.
    pub fn mark(&self, is_sealed: bool) -> Result<()> {
        self.check_usable()?;
        let mut marks = self.marks.lock();
        let synced_to = self.synced_to();
        if is_sealed || marks.synced_to() < synced_to {
            marks.write(synced_to, is_sealed)?;
        }
        Ok(())
    }
}

/// Appended records on their way to the disk, outside the log's lock.
///
/// One committer takes, writes and syncs; pending writes are written in the order they were taken.
pub struct PendingWrite {
    pub(super) state: Arc<WriteState>,
    pub(super) buffer: Buffer,
}

impl std::fmt::Debug for PendingWrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PendingWrite({} bytes up to {})", self.bytes(), self.last_sequence())
    }
}

impl PendingWrite {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.buffer.parts.is_empty()
    }

    /// Whether it begins a segment, whose header says that all before it is durable: what those
    /// records refer to must be durable, too, before this is written.
    pub fn begins_segment(&self) -> bool {
        self.buffer.parts.iter().any(|part| part.offset == 0)
    }

    /// Bytes to write.
    pub fn bytes(&self) -> usize {
        self.buffer.bytes.len()
    }

    /// The sequence of the last record in it, or of the last one before it when it is empty.
    pub fn last_sequence(&self) -> u64 {
        self.buffer.last
    }

    /// Hands the bytes to the operating system: they survive the death of the process.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses. Then the log takes nothing more until it is opened
    /// again, and whether the records are there is open until then.
    pub fn write(&self) -> Result<()> {
        self.state.write(&self.buffer)
    }

    /// Makes everything written so far durable, by this and by earlier pending writes.
    ///
    /// # Errors
    /// `Unavailable` as for [`PendingWrite::write`].
    pub fn sync(&self) -> Result<()> {
        self.state.sync(self.buffer.last)
    }
}

/// Writes down beside the log how far it is durable, on a thread of its own: nobody waits for it.
///
/// Records are witnesses only for those before them. What became durable last has none until this
/// is called, so damage there would be taken for a torn tail.
#[derive(Clone)]
pub struct Marker {
    pub(super) state: Arc<WriteState>,
}

impl std::fmt::Debug for Marker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Marker(durable up to {})", self.state.synced_to())
    }
}

impl Marker {
    /// Marks what is durable by now; does nothing when that stands there. To be called until the
    /// log is sealed, not after.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses; the log itself is not affected.
    pub fn mark(&self) -> Result<()> {
        self.state.mark(false)
    }
}

/// Segments that nobody needs any more.
pub struct Removal {
    pub(super) state: Arc<WriteState>,
    pub(super) firsts: Vec<u64>,
}

impl Removal {
    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// Removes them. What a crash leaves of them is removed by the next opening.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn run(self) -> Result<()> {
        let disk = self.state.disk();
        for first in &self.firsts {
            disk.remove(&segment::name(*first))
                .map_err(|error| disk::refusal(segment::path(disk, *first), error))?;
        }
        Ok(())
    }
}
