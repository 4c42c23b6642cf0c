//! The extent files by number: names, headers, and handles kept open.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::fast::FixedState;
use parking_lot::RwLock;
use tyr_types::{Error, Result};

use super::FOLDER;
use super::frame::{self, FRAME_LEN, FRAME_PAYLOAD, FramePlace};
use crate::disk::{self, Disk, DiskFile, OpenMode};

/// How every extent file begins, in frame 0.
const MAGIC: &[u8; 8] = b"TYR-EXT\n";
/// The format that this release writes and reads.
const FORMAT_VERSION: u8 = 1;

/// Bytes of a header: how it begins, the format, the file's number.
const HEADER_LEN: usize = MAGIC.len() + 1 + size_of::<u32>();

const _: () = assert!(HEADER_LEN <= FRAME_PAYLOAD, "a header has a frame of its own");

/// Handles kept open. A process may have 1024 files open by default; at 1 GiB a file these reach
/// half a TiB without opening any twice.
const OPEN_FILES_MAX: usize = 512;

/// The extent files of a folder.
pub struct Files {
    disk: Arc<dyn Disk>,
    open: RwLock<HashMap<u32, Arc<dyn DiskFile>, FixedState>>,
    /// The files from this number on may be written past the system's cache.
    direct_from: AtomicU32,
}

impl Files {
    /// The files in the folder [`FOLDER`], which is made if it is missing.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Self> {
        disk.create_folder(FOLDER)
            .and_then(|()| disk.sync_folder(""))
            .map_err(|error| disk::refusal(format!("{}/{FOLDER}", disk.describe()), error))?;
        Ok(Self { disk, open: RwLock::default(), direct_from: AtomicU32::new(u32::MAX) })
    }

    /// The store's folder.
    pub fn describe(&self) -> String {
        self.disk.describe()
    }

    /// Where a file is, for messages.
    pub fn path(&self, number: u32) -> String {
        format!("{}/{}", self.disk.describe(), name(number))
    }

    /// The numbers of all files, ascending. Names that are none of ours are passed over.
    pub fn numbers(&self) -> Result<Vec<u32>> {
        let names = self
            .disk
            .list(FOLDER)
            .map_err(|error| disk::refusal(format!("{}/{FOLDER}", self.describe()), error))?;
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// A file, opened if it is not.
    pub fn get(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.read().get(&number) {
            return Ok(file.clone());
        }
        let file = match self.disk.open(&name(number), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let text = format!("{}: the file is missing", self.path(number));
                return Err(Error::corrupt(text));
            }
            Err(error) => return Err(disk::refusal(self.path(number), error)),
        };
        if self.header(number, &*file)?.is_some_and(|header| header[8] > FORMAT_VERSION) {
            return Err(self.too_new(number));
        }
        if number >= self.direct_from.load(Ordering::Acquire) {
            file.read_exactly().map_err(|error| disk::refusal(self.path(number), error))?;
        }
        self.remember(number, file.clone());
        Ok(file)
    }

    /// A new file with its header; neither is durable yet.
    pub fn create(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        assert!(number < u32::MAX, "a file of that number would not be listed");
        let refused = |error| disk::refusal(self.path(number), error);
        let file = self.disk.open(&name(number), OpenMode::CreateNew).map_err(refused)?;
        if let Err(error) = file.write_at(&new_header(number), 0) {
            // So that the number can be tried again; the error is the first one.
            let _ = self.disk.remove(&name(number));
            return Err(refused(error));
        }
        self.remember(number, file.clone());
        Ok(file)
    }

    /// The newest file once more, to be written past the system's cache. From now on reads of it,
    /// and of all after it, leave alone what they do not ask for: what the cache took in of a place
    /// before it is written would be taken for what is there.
    pub fn open_direct(&self, number: u32) -> std::io::Result<Arc<dyn DiskFile>> {
        self.direct_from.fetch_min(number, Ordering::AcqRel);
        if let Some(file) = self.open.read().get(&number) {
            file.read_exactly()?;
        }
        self.disk.open(&name(number), OpenMode::Direct)
    }

    /// Makes a file durable that an earlier process wrote, with a header if that was lost.
    pub fn adopt(&self, number: u32) -> Result<()> {
        let refused = |error| disk::refusal(self.path(number), error);
        let file = self.get(number)?;
        if self.header(number, &*file)?.is_none() {
            file.write_at(&new_header(number), 0).map_err(refused)?;
        }
        file.sync().map_err(refused)
    }

    /// Checks the header of a file.
    pub fn verify_header(&self, number: u32) -> Result<()> {
        let file = self.get(number)?;
        match self.header(number, &*file)? {
            Some(header) if header[8] > FORMAT_VERSION => Err(self.too_new(number)),
            Some(_) => Ok(()),
            None => Err(Error::corrupt(format!(
                "{}: the file's header, bytes 0 to {FRAME_LEN}, is damaged",
                self.path(number)
            ))),
        }
    }

    fn header(&self, number: u32, file: &dyn DiskFile) -> Result<Option<[u8; HEADER_LEN]>> {
        let mut bytes = [0; FRAME_LEN];
        let count =
            file.read_at(&mut bytes, 0).map_err(|error| Error::io(self.path(number), error))?;
        let payload = frame::open(&bytes, FramePlace { file: number, frame: 0 });
        let payload = payload.filter(|payload| count == FRAME_LEN && payload.starts_with(MAGIC));
        Ok(payload.map(|payload| payload.first_chunk().copied().expect("a payload is longer")))
    }

    fn too_new(&self, number: u32) -> Error {
        Error::later_release(self.path(number), "a later extent format", FORMAT_VERSION)
    }

    /// The file's length.
    pub fn len(&self, number: u32) -> Result<u64> {
        self.get(number)?.len().map_err(|error| disk::refusal(self.path(number), error))
    }

    /// Bytes the file takes on the disk.
    pub fn disk_bytes(&self, number: u32) -> Result<u64> {
        self.get(number)?.disk_bytes().map_err(|error| disk::refusal(self.path(number), error))
    }

    /// Ends the file at `len`, if it is longer.
    pub fn cut(&self, number: u32, len: u64) -> Result<()> {
        assert!(len >= FRAME_LEN as u64, "file {number} keeps its header");
        let file = self.get(number)?;
        if self.len(number)? > len {
            file.set_len(len).map_err(|error| disk::refusal(self.path(number), error))?;
        }
        Ok(())
    }

    /// Removes the file.
    pub fn remove(&self, number: u32) -> Result<()> {
        self.open.write().remove(&number);
        match self.disk.remove(&name(number)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(disk::refusal(self.path(number), error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Makes the names of new files durable.
    pub fn sync_names(&self) -> std::io::Result<()> {
        self.disk.sync_folder(FOLDER)
    }

    fn remember(&self, number: u32, file: Arc<dyn DiskFile>) {
        let mut open = self.open.write();
        if open.len() >= OPEN_FILES_MAX {
            // Any will do: those who read it keep it open until they are done.
            if let Some(victim) = open.keys().next().copied() {
                open.remove(&victim);
            }
        }
        open.insert(number, file);
        debug_assert!(open.len() <= OPEN_FILES_MAX, "a process has only so many");
    }
}

/// Frame 0 of a file.
fn new_header(number: u32) -> [u8; FRAME_LEN] {
    let mut payload = [0; HEADER_LEN];
    payload[..8].copy_from_slice(MAGIC);
    payload[8] = FORMAT_VERSION;
    payload[9..].copy_from_slice(&number.to_le_bytes());
    let mut header = [0; FRAME_LEN];
    frame::seal(&mut header, FramePlace { file: number, frame: 0 }, &payload);
    header
}

fn name(number: u32) -> String {
    format!("{FOLDER}/{number:08x}.ext")
}

fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".ext")?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    // The last number has no successor, so it is never given.
    (number < u32::MAX && format!("{number:08x}") == digits).then_some(number)
}
