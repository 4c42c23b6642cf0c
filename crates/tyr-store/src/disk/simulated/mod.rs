//! A disk in memory that loses power, fills up, fails and rots, when a test says so.
//!
//! ```text
//! let disk = SimulatedDisk::recorded();
//! run(&disk);                                     // open, write, sync, ...
//! for n in 0..=disk.operations() {
//!     let left = disk.crash_after(n, seed);       // power goes after operation n
//!     check(&left);
//! }
//! ```
//!
//! What a loss of power leaves is recorded on in its turn after [`SimulatedDisk::record`].

pub mod chance;
mod image;

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use self::chance::Chance;
use self::image::{Change, FileChange, FileId, Image, NameChange, folder_of};
use super::{DIRECT_ALIGNMENT, Disk, DiskFile, OpenMode};

/// The kinds of operation that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultyOperation {
    /// Opening with creation.
    Create,
    /// `write_at`; half of the bytes arrive.
    Write,
    /// `sync`; what was not synced is lost at the next crash, although it reads back.
    Sync,
    /// `sync_folder`.
    SyncFolder,
    /// `allocate`.
    Allocate,
    /// `read_at`.
    Read,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// ENOSPC.
    NoSpace,
    /// EIO.
    Broken,
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Self::NoSpace => io::Error::new(io::ErrorKind::StorageFull, "simulated: disk full"),
            Self::Broken => io::Error::other("simulated: input/output error"),
        }
    }
}

struct PlannedFault {
    operation: FaultyOperation,
    /// Operations of that kind that still succeed before.
    skip: u64,
    fault: Fault,
}

/// What was done since recording began, and to what.
struct History {
    origin: Image,
    changes: Vec<Change>,
}

#[derive(Default)]
struct State {
    image: Image,
    next_file: u64,
    operations: u64,
    history: Option<History>,
    faults: Vec<PlannedFault>,
    capacity: Option<u64>,
}

impl State {
    fn change(&mut self, change: Change) {
        self.image.apply(&change);
        self.operations += 1;
        if let Some(history) = &mut self.history {
            history.changes.push(change);
        }
    }

    fn fault(&mut self, operation: FaultyOperation) -> io::Result<()> {
        let mut due = None;
        for (at, planned) in self.faults.iter_mut().enumerate() {
            if planned.operation == operation {
                match planned.skip.checked_sub(1) {
                    Some(left) => planned.skip = left,
                    None => due = due.or(Some(at)),
                }
            }
        }
        due.map_or(Ok(()), |at| Err(self.faults.remove(at).fault.error()))
    }

    fn reserve(&self, file: FileId, range: &Range<u64>) -> io::Result<()> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        let missing = match self.image.files.get(&file) {
            Some(file) => file.current.space_missing(range),
            None => 0,
        };
        if missing > 0 && self.image.disk_bytes() + missing > capacity {
            return Err(Fault::NoSpace.error());
        }
        Ok(())
    }
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

impl SimulatedDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty disk that remembers every operation, for [`SimulatedDisk::crash_after`].
    pub fn recorded() -> Self {
        let disk = Self::default();
        disk.record();
        disk
    }

    /// Remembers every operation from now on, and counts from 0 again.
    pub fn record(&self) {
        let mut state = self.state.lock();
        state.operations = 0;
        state.history = Some(History { origin: state.image.clone(), changes: Vec::new() });
    }

    /// Operations so far that changed or synced something.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// What a loss of power leaves now: a new disk. The old one goes on.
    pub fn crash(&self, seed: u64) -> Self {
        Self::left_of(self.state.lock().image.clone(), seed)
    }

    /// What a loss of power after the first `count` operations would have left.
    ///
    /// # Panics
    /// When the disk does not record, or has not done that many.
    pub fn crash_after(&self, count: u64, seed: u64) -> Self {
        Self::left_of(self.image_after(count), seed)
    }

    /// What the death of the process after the first `count` operations would have left:
    /// everything written, synced or not.
    ///
    /// # Panics
    /// When the disk does not record, or has not done that many.
    pub fn copy_after(&self, count: u64) -> Self {
        Self::holding(self.image_after(count))
    }

    fn image_after(&self, count: u64) -> Image {
        let state = self.state.lock();
        let history = state.history.as_ref().expect("only a recorded disk knows its past");
        let mut image = history.origin.clone();
        for change in &history.changes[..count as usize] {
            image.apply(change);
        }
        image
    }

    fn left_of(image: Image, seed: u64) -> Self {
        Self::holding(image.after_power_loss(&mut Chance::new(seed)))
    }

    fn holding(image: Image) -> Self {
        let next_file = image.files.keys().next_back().map_or(0, |last| last.0 + 1);
        let state = State { image, next_file, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A copy as a killed process leaves it: everything written, synced or not.
    pub fn copy(&self) -> Self {
        Self::holding(self.state.lock().image.clone())
    }

    /// Makes one operation fail: the one after the next `skip` of that kind.
    pub fn fail(&self, operation: FaultyOperation, skip: u64, fault: Fault) {
        self.state.lock().faults.push(PlannedFault { operation, skip, fault });
    }

    /// Limits the space that all files take together, in bytes of whole 4 KiB pages.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.state.lock().capacity = capacity;
    }

    /// Bytes of space that all files take.
    pub fn disk_bytes(&self) -> u64 {
        self.state.lock().image.disk_bytes()
    }

    /// The names of all files, ascending.
    pub fn names(&self) -> Vec<String> {
        self.state.lock().image.names.files.keys().cloned().collect()
    }

    /// The bytes of a file; empty if there is none.
    pub fn content(&self, name: &str) -> Vec<u8> {
        let state = self.state.lock();
        let file = state.image.names.files.get(name).and_then(|id| state.image.files.get(id));
        file.map_or(Vec::new(), |file| file.current.bytes.clone())
    }

    /// Changes the bytes of a file behind everyone's back, durably.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn damage(&self, name: &str, how: impl Fn(&mut Vec<u8>)) {
        assert!(self.state.lock().image.damage(name, how), "there is no file {name} to damage");
    }
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("simulated: there is no {name}"))
}

impl Disk for SimulatedDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        let id = match (state.image.names.files.get(name).copied(), mode) {
            (Some(_), OpenMode::CreateNew) => {
                let text = format!("simulated: {name} is there");
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            (Some(id), OpenMode::Existing | OpenMode::CreateOrOpen | OpenMode::Direct) => id,
            (None, OpenMode::Existing | OpenMode::Direct) => return Err(not_found(name)),
            (None, OpenMode::CreateNew | OpenMode::CreateOrOpen) => {
                if !state.image.names.has_folder(folder_of(name)) {
                    return Err(not_found(folder_of(name)));
                }
                state.fault(FaultyOperation::Create)?;
                let file = FileId(state.next_file);
                state.next_file += 1;
                state.change(Change::Name(NameChange::Create { name: name.to_owned(), file }));
                file
            }
        };
        let is_direct = mode == OpenMode::Direct;
        Ok(Arc::new(SimulatedFile { disk: self.clone(), id, is_direct }))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let names = &self.state.lock().image.names;
        if !names.has_folder(folder) {
            return Err(not_found(folder));
        }
        let entries: BTreeSet<_> = names
            .files
            .keys()
            .chain(&names.folders)
            .filter(|name| folder_of(name) == folder)
            .map(|name| name.rsplit_once('/').map_or(name.as_str(), |(_, last)| last).to_owned())
            .collect();
        Ok(entries.into_iter().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.image.names.files.contains_key(name) {
            return Err(not_found(name));
        }
        state.change(Change::Name(NameChange::Remove { name: name.to_owned() }));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let Some(file) = state.image.names.files.get(from).copied() else {
            return Err(not_found(from));
        };
        let (from, to) = (from.to_owned(), to.to_owned());
        state.change(Change::Name(NameChange::Rename { from, to, file }));
        Ok(())
    }

    fn create_folder(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let mut end = 0;
        while end < name.len() {
            end = name[end + 1..].find('/').map_or(name.len(), |at| end + 1 + at);
            if !state.image.names.has_folder(&name[..end]) {
                let name = name[..end].to_owned();
                state.change(Change::Name(NameChange::CreateFolder { name }));
            }
        }
        Ok(())
    }

    fn sync_folder(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.image.names.has_folder(name) {
            return Err(not_found(name));
        }
        state.fault(FaultyOperation::SyncFolder)?;
        state.change(Change::SyncFolder(name.to_owned()));
        Ok(())
    }

    fn room(&self) -> io::Result<u64> {
        let state = self.state.lock();
        let capacity = state.capacity.unwrap_or(u64::MAX);
        Ok(capacity.saturating_sub(state.image.disk_bytes()))
    }

    fn size_and_free(&self) -> io::Result<(u64, u64)> {
        let state = self.state.lock();
        let capacity = state.capacity.unwrap_or(u64::MAX);
        Ok((capacity, capacity.saturating_sub(state.image.disk_bytes())))
    }

    fn describe(&self) -> String {
        "simulated".to_owned()
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    id: FileId,
    is_direct: bool,
}

impl DiskFile for SimulatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state.lock();
        state.fault(FaultyOperation::Read)?;
        let bytes = match state.image.files.get(&self.id) {
            Some(file) => &file.current.bytes[..],
            None => &[],
        };
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let places = [buf.as_ptr() as u64, buf.len() as u64, offset];
        let is_aligned = places.iter().all(|it| it.is_multiple_of(DIRECT_ALIGNMENT as u64));
        if self.is_direct && !is_aligned {
            return Err(io::ErrorKind::InvalidInput.into()); // As the system has it.
        }
        let mut state = self.disk.state.lock();
        if let Err(error) = state.fault(FaultyOperation::Write) {
            let bytes = buf[..buf.len() / 2].into();
            state.change(Change::File(self.id, FileChange::Write { offset, bytes }));
            return Err(error);
        }
        state.reserve(self.id, &(offset..offset + buf.len() as u64))?;
        state.change(Change::File(self.id, FileChange::Write { offset, bytes: buf.into() }));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if let Err(error) = state.fault(FaultyOperation::Sync) {
            state.change(Change::FailedSync(self.id));
            return Err(error);
        }
        state.change(Change::Sync(self.id));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state.lock();
        Ok(state.image.files.get(&self.id).map_or(0, |file| file.current.bytes.len() as u64))
    }

    fn disk_bytes(&self) -> io::Result<u64> {
        let state = self.disk.state.lock();
        Ok(state.image.files.get(&self.id).map_or(0, |file| file.current.disk_bytes()))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.state.lock().change(Change::File(self.id, FileChange::SetLen(len)));
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.fault(FaultyOperation::Allocate)?;
        let range = offset..offset + len;
        state.reserve(self.id, &range)?;
        state.change(Change::File(self.id, FileChange::Allocate(range)));
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let range = offset..offset + len;
        self.disk.state.lock().change(Change::File(self.id, FileChange::Punch(range)));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
