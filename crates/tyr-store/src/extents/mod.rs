//! Large payloads, written once, where they will stay.
//!
//! ```text
//! extents/00000001.ext   | header | extent ..... | extent .. |  hole  | extent ... |
//! extents/00000002.ext   | header | extent ...            <- the file being written
//!                        '- frames of 4096 bytes, each with its checksum -'
//! ```
//!
//! A payload goes to its extent before the log record that refers to it, and neither folding nor
//! anything else writes it again. Nothing is ever overwritten: extents are laid one after the
//! other, a file that is long enough is left for a new one, and so is every file of an earlier
//! opening, because its end may hold what a crash left. Space that nobody refers to is punched out.
//!
//! [`frame`] is the unit of checking, [`compression`] the form of a payload that is worth it.
//! [`tail`] gives each its place, [`queue`] is what is written with the next sync, [`reading`] the
//! way back, [`space`] gives back what nobody refers to, and [`files`] opens files and knows their
//! headers. Who refers to an extent is the base's affair.

mod compression;
mod files;
mod frame;
mod queue;
mod reading;
mod space;
mod tail;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tyr_types::{Bytes, Error, ExtentRef, Result, limits};

use self::files::Files;
use self::frame::FramePlace;
pub(crate) use self::frame::{FRAME_LEN, FRAME_PAYLOAD};
use self::queue::{Queue, Queued, Run};
use self::tail::Tail;
use crate::disk::{self, Disk, DiskFile};

/// The folder of the extent files.
pub const FOLDER: &str = "extents";

/// Frames that are read or written at once: 128 KiB, which stay in a core's cache between the
/// checksum and the copy.
const FRAMES_AT_ONCE: usize = 32;
/// Frame buffers kept for the next caller; as many callers as cores are at it at once.
const BUFFERS_KEPT_MAX: usize = 16;
/// Buffers for whole compressed payloads (4 MiB each) kept for the next caller.
const PAYLOADS_KEPT_MAX: usize = 2;

/// Bytes that wait to be written before a further one writes them all.
const QUEUED_LEN_MAX: usize = 64 << 20;

const _: () = {
    assert!(QUEUED_LEN_MAX >= limits::EXTENT_LEN_MAX as usize);
    assert!(FRAME_PAYLOAD < limits::EXTENT_PAYLOAD_MIN, "what goes to an extent fills its frames");
};

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

/// What a sync has to do.
#[derive(Default)]
struct Unsynced {
    files: BTreeMap<u32, Arc<dyn DiskFile>>,
    has_new_names: bool,
}

/// The extent files of a store. Shared by any number of threads.
pub struct Extents {
    files: Files,
    options: ExtentOptions,
    tail: Mutex<Option<Tail>>,
    queue: Queue,
    next_number: Mutex<u32>,
    unsynced: Mutex<Unsynced>,
    /// Held while writing what waits and syncing, so that who finds nothing to do waits for who is
    /// at it; with room for what is written at once.
    sync: Mutex<Option<Run>>,
    is_broken: AtomicBool,
    buffers: Mutex<Vec<Box<[u8]>>>,
    payloads: Mutex<Vec<Vec<u8>>>,
}

impl Extents {
    /// Opens the extent files in `disk`'s folder [`FOLDER`], which is made if it is missing.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn open(disk: Arc<dyn Disk>, options: ExtentOptions) -> Result<Self> {
        let files = Files::open(disk)?;
        let last = files.numbers()?.last().copied().unwrap_or(0);
        Ok(Self {
            files,
            options,
            tail: Mutex::new(None),
            queue: Queue::default(),
            next_number: Mutex::new(last + 1),
            unsynced: Mutex::default(),
            sync: Mutex::new(None),
            is_broken: AtomicBool::new(false),
            buffers: Mutex::default(),
            payloads: Mutex::default(),
        })
    }

    /// Writes a payload; durable after the next [`Extents::sync`].
    ///
    /// # Errors
    /// `InvalidArgument` when it has no byte or more than [`limits::EXTENT_LEN_MAX`]; `Unavailable`
    /// when the disk is full or refuses, then nothing changed.
    pub fn write(&self, data: &[u8], is_compressed: bool) -> Result<ExtentRef> {
        self.check_usable()?;
        let len = check_len(data)?;
        if is_compressed {
            let mut stored = self.payloads.lock().pop().unwrap_or_default();
            let written = compression::compress(data, &mut stored).then(|| {
                // By that a reference tells the two forms apart.
                assert!(!stored.is_empty() && stored.len() < data.len());
                let (file, position) = self.write_stored(&stored)?;
                let compressed_len = stored.len() as u32;
                let extent = ExtentRef { file, position, len, compressed_len };
                debug_assert!(self.check_reference(&extent).is_ok(), "{extent:?} is not readable");
                Ok(extent)
            });
            keep(&self.payloads, stored, PAYLOADS_KEPT_MAX);
            if let Some(written) = written {
                return written;
            }
        }
        let (file, position) = self.write_stored(data)?;
        let extent = ExtentRef { file, position, len, compressed_len: 0 };
        debug_assert!(self.check_reference(&extent).is_ok(), "{extent:?} would not be read back");
        Ok(extent)
    }

    /// Takes a payload in, which is written by the next [`Extents::sync`], and durable after it. It
    /// can be read at once. Space for it is there: a full disk refuses it now.
    ///
    /// # Errors
    /// As [`Extents::write`].
    pub fn write_later(&self, data: Bytes) -> Result<ExtentRef> {
        self.check_usable()?;
        let len = check_len(&data)?;
        if self.queue.len() > QUEUED_LEN_MAX {
            self.write_queued(&mut self.sync.lock())?;
        }
        let frames = frame::frames_for(data.len()) as u64;
        let (file, frame, handle) = self.take_space(frames, |tail| {
            tail.reserve(frames)?;
            tail.direct(&self.files)
        })?;
        self.queue.put(FramePlace { file, frame }, Queued { data, file: handle });
        let position = frame * FRAME_LEN as u64;
        let extent = ExtentRef { file, position, len, compressed_len: 0 };
        debug_assert!(self.check_reference(&extent).is_ok(), "{extent:?} would not be read back");
        Ok(extent)
    }

    /// Makes everything that was written before the call durable; cheap when nothing was.
    ///
    /// # Errors
    /// `Unavailable` when a sync failed, now or earlier: what was written since the last good one
    /// may be lost, and nothing is written any more until the store is opened again.
    pub fn sync(&self) -> Result<()> {
        let mut run = self.sync.lock();
        self.check_usable()?;
        self.write_queued(&mut run)?;
        let unsynced = std::mem::take(&mut *self.unsynced.lock());
        for (number, file) in &unsynced.files {
            file.sync().map_err(|error| self.broken(self.files.path(*number), error))?;
        }
        if unsynced.has_new_names {
            self.files.sync_names().map_err(|error| self.broken(FOLDER.to_owned(), error))?;
        }
        Ok(())
    }

    /// Makes these files durable, whoever wrote them: after the death of a process what it wrote
    /// last is read back from memory only. A file that is not there is passed over, one whose
    /// header a loss of power took gets it again: it says nothing but the file's number.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn adopt_files(&self, numbers: impl IntoIterator<Item = u32>) -> Result<()> {
        let present = self.files.numbers()?;
        for number in numbers {
            if present.binary_search(&number).is_ok() {
                self.files.adopt(number)?;
            }
        }
        self.files.sync_names().map_err(|error| disk::refusal(FOLDER, error))
    }

    /// Reads payload bytes `skip..skip + out.len()`, verified.
    ///
    /// # Errors
    /// `Corrupt` with file and place when what is there is not what was written, or the reference
    /// is none that [`Extents::write`] gave; `Unavailable` when the disk refuses.
    pub fn read(&self, extent: &ExtentRef, skip: u32, out: &mut [u8]) -> Result<()> {
        self.check_reference(extent)?;
        if skip as usize + out.len() > extent.len as usize {
            return Err(self.corrupt(
                extent,
                format_args!(
                    "has {} bytes, but is referred to as if it had {}",
                    extent.len,
                    skip as usize + out.len()
                ),
            ));
        }
        if let Some(data) = self.queue.get(place_of(extent))
            && let Some(wanted) = data.get(skip as usize..skip as usize + out.len())
        {
            out.copy_from_slice(wanted);
            return Ok(());
        }
        if extent.compressed_len == 0 {
            return self.read_stored(extent, skip as usize, out);
        }
        self.read_compressed(extent, skip as usize, out)
    }

    /// Checks every byte of an extent.
    ///
    /// # Errors
    /// As [`Extents::read`].
    pub fn verify(&self, extent: &ExtentRef) -> Result<()> {
        let mut payload = self.payloads.lock().pop().unwrap_or_default();
        // The length comes from a reference that may be damaged: checked before it is believed.
        let result = self.check_reference(extent).and_then(|()| {
            payload.resize(extent.len as usize, 0);
            self.read(extent, 0, &mut payload)
        });
        keep(&self.payloads, payload, PAYLOADS_KEPT_MAX);
        result
    }

    /// Bytes that an extent takes in its file: whole frames.
    pub fn stored_len(extent: &ExtentRef) -> u64 {
        (frame::frames_for(stored_bytes(extent)) * FRAME_LEN) as u64
    }

    /// All extent files, ascending.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn files(&self) -> Result<Vec<ExtentFile>> {
        let numbers = self.files.numbers()?;
        let file = |number| Ok(ExtentFile { number, len: self.files.len(number)? });
        numbers.into_iter().map(file).collect()
    }

    /// Bytes that all extent files take on the disk, without their holes.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn disk_bytes(&self) -> Result<u64> {
        self.files.numbers()?.into_iter().map(|number| self.files.disk_bytes(number)).sum()
    }

    /// Where a file is, for messages.
    pub fn path(&self, number: u32) -> String {
        self.files.path(number)
    }

    /// Checks the header of a file. Reading goes on without it: each frame stands for itself.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged or of a later format.
    pub fn verify_header(&self, number: u32) -> Result<()> {
        self.files.verify_header(number)
    }

    fn check_usable(&self) -> Result<()> {
        if self.is_broken.load(Ordering::Acquire) {
            return Err(Error::unavailable(format!(
                "{}: an earlier sync failed, so nothing more is written; open the store again",
                self.files.describe()
            )));
        }
        Ok(())
    }

    fn broken(&self, what: String, error: io::Error) -> Error {
        self.is_broken.store(true, Ordering::Release);
        let text = format!(
            "{what}: a write or sync failed, nothing more is written; open the store again"
        );
        Error::io(text, error)
    }

    /// Whether a reference can be one: it may come from a damaged place.
    fn check_reference(&self, extent: &ExtentRef) -> Result<()> {
        let is_possible = extent.position.is_multiple_of(FRAME_LEN as u64)
            && extent.position >= FRAME_LEN as u64
            && extent.position < i64::MAX as u64 - (limits::EXTENT_LEN_MAX as u64 * 2)
            && (1..=limits::EXTENT_LEN_MAX).contains(&extent.len)
            && extent.compressed_len < extent.len;
        if is_possible {
            return Ok(());
        }
        Err(self.corrupt(extent, format_args!("has an impossible place or length: {extent:?}")))
    }

    fn corrupt(&self, extent: &ExtentRef, what: impl std::fmt::Display) -> Error {
        let path = self.files.path(extent.file);
        Error::corrupt(format!("{path}: the extent at byte {} {what}", extent.position))
    }

    /// Writes bytes as frames; answers the file and the position of the first.
    fn write_stored(&self, stored: &[u8]) -> Result<(u32, u64)> {
        let frames = frame::frames_for(stored.len()) as u64;
        let (number, first, file) = self.take_space(frames, |tail| Ok(tail.file.clone()))?;
        let mut place = FramePlace { file: number, frame: first };
        let mut buffer = self.buffer();
        let mut result = Ok(());
        for run in stored.chunks(FRAMES_AT_ONCE * FRAME_PAYLOAD) {
            let position = place.frame * FRAME_LEN as u64;
            let mut used = 0;
            for payload in run.chunks(FRAME_PAYLOAD) {
                frame::seal(&mut buffer[used..used + FRAME_LEN], place, payload);
                used += FRAME_LEN;
                place = place.next();
            }
            result = file.write_at(&buffer[..used], position);
            if result.is_err() {
                break;
            }
        }
        keep(&self.buffers, buffer, BUFFERS_KEPT_MAX);
        let position = first * FRAME_LEN as u64;
        if let Err(error) = result {
            // What did arrive is given back; if that fails too, the next opening does it.
            let len = frame::frames_for(stored.len()) * FRAME_LEN;
            let _ = file.punch(position, len as u64);
            return Err(disk::refusal(self.files.path(number), error));
        }
        debug_assert_eq!(place.frame, first + frames, "all frames are written, and no others");
        self.unsynced.lock().files.entry(number).or_insert(file);
        Ok((number, position))
    }

    /// Writes what waits; by `run`, which who holds the lock has.
    fn write_queued(&self, run: &mut Option<Run>) -> Result<()> {
        let queued = self.queue.all();
        if queued.is_empty() {
            return Ok(());
        }
        let written = run.get_or_insert_with(Run::new).write_all(&queued);
        written.map_err(|(number, error)| self.broken(self.files.path(number), error))?;
        let mut unsynced = self.unsynced.lock();
        for (place, Queued { file, .. }) in queued {
            unsynced.files.entry(place.file).or_insert(file);
            self.queue.remove(place);
        }
        Ok(())
    }

    fn buffer(&self) -> Box<[u8]> {
        let kept = self.buffers.lock().pop();
        kept.unwrap_or_else(|| vec![0; FRAMES_AT_ONCE * FRAME_LEN].into_boxed_slice())
    }
}

/// Puts a buffer back for the next caller, unless enough are kept.
fn keep<T>(kept: &Mutex<Vec<T>>, buffer: T, max: usize) {
    let mut kept = kept.lock();
    if kept.len() < max {
        kept.push(buffer);
    }
}

/// The length of a payload, if it can be that of an extent.
fn check_len(data: &[u8]) -> Result<u32> {
    match data.len() {
        len if (1..=limits::EXTENT_LEN_MAX as usize).contains(&len) => Ok(len as u32),
        len => Err(Error::invalid(format!(
            "an extent holds 1 to {} bytes, not {len}",
            limits::EXTENT_LEN_MAX
        ))),
    }
}

/// Where an extent's first frame lies.
fn place_of(extent: &ExtentRef) -> FramePlace {
    // Whoever comes here has checked the reference: one in between would name another's frame.
    debug_assert!(extent.position.is_multiple_of(FRAME_LEN as u64), "{extent:?}");
    FramePlace { file: extent.file, frame: extent.position / FRAME_LEN as u64 }
}

/// Bytes of an extent before they are put into frames.
fn stored_bytes(extent: &ExtentRef) -> usize {
    match extent.compressed_len {
        0 => extent.len as usize,
        compressed => compressed as usize,
    }
}

#[cfg(test)]
mod tests;
