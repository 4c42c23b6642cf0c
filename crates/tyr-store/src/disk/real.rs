//! A folder of the machine, through the standard library and a few system calls.
//!
//! It adds two things to what the system offers: space is reserved and given back also where the
//! file system cannot (by writing zeros), and a lock on the folder that names its holder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use tyr_types::{Error, Result};

use super::{Disk, DiskFile, OpenMode, reserve};

/// The file whose lock is the folder's lock. It is never removed nor replaced.
pub const LOCK_FILE: &str = "LOCK";

/// Zeros are written in pieces of this size where the file system cannot reserve or punch.
const ZEROS_LEN: usize = 256 << 10;

/// Bytes that our own data leaves free for the index: what it journals, writes out and merges while
/// deletions that make room go through it. Against others there is the [`reserve`].
const INDEX_RESERVE: u64 = 64 << 20;

/// A folder of the machine.
pub struct RealDisk {
    folder: PathBuf,
    /// Whether files are opened for reading only, as on a medium that takes no writes.
    is_read_only: bool,
}

impl RealDisk {
    /// The folder at `path`, made if it is missing.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be made or is not a folder.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let folder = path.as_ref();
        fs::create_dir_all(folder).map_err(|error| {
            Error::io(format!("cannot make folder {}", folder.display()), error)
        })?;
        Ok(Self { folder: folder.to_owned(), is_read_only: false })
    }

    /// The folder at `path`, which must be there.
    ///
    /// # Errors
    /// `NotFound` when it is not there or is not a folder.
    pub fn existing(path: impl AsRef<Path>) -> Result<Self> {
        let folder = path.as_ref();
        if !folder.is_dir() {
            return Err(Error::not_found(format!("there is no folder {}", folder.display())));
        }
        Ok(Self { folder: folder.to_owned(), is_read_only: false })
    }

    /// Whether nothing can be written to the store in the folder: the medium takes no writes, or it
    /// belongs to somebody else.
    pub fn refuses_writes(&self) -> bool {
        let opened = OpenOptions::new().read(true).write(true).open(self.folder.join(LOCK_FILE));
        opened.is_err_and(|error| is_read_only(&error))
    }

    /// The same folder, of which files are opened for reading only.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Locks the folder against other openers, in this process and others, until dropped.
    ///
    /// # Errors
    /// `Unavailable` with the holder's name when it is locked.
    pub fn lock(&self) -> Result<FolderLock> {
        let path = self.folder.join(LOCK_FILE);
        let failed = |error: io::Error| Error::io(format!("cannot lock {}", path.display()), error);
        let is_writable = !self.is_read_only;
        let file = OpenOptions::new()
            .read(true)
            .write(is_writable)
            .create(is_writable)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let holder = fs::read(&path).unwrap_or_default();
                let holder = String::from_utf8_lossy(&holder);
                let holder = match holder.trim() {
                    "" => "another process".to_owned(),
                    named => named.escape_debug().to_string(),
                };
                return Err(Error::unavailable(format!(
                    "the store in {} is open in {holder}; close it there first",
                    self.folder.display()
                )));
            }
            Err(error) => return Err(failed(error.into())),
        }
        if self.is_read_only {
            return Ok(FolderLock { file });
        }
        let holder = format!("process {} ({})\n", std::process::id(), program_name());
        file.set_len(0).and_then(|()| file.write_all_at(holder.as_bytes(), 0)).map_err(failed)?;
        Ok(FolderLock { file })
    }
}

impl RealDisk {
    /// Bytes that this process may still take of the disk.
    fn free(&self) -> io::Result<u64> {
        self.size_and_free().map(|(_, free)| free)
    }

    /// Where a file or folder of this name is.
    fn place(&self, name: &str) -> PathBuf {
        debug_assert!(
            Path::new(name).components().all(|part| matches!(part, Component::Normal(_))),
            "{name:?} leads out of the folder"
        );
        self.folder.join(name)
    }

    /// Opens a file past the system's cache; with it, where the file system cannot.
    fn open_direct(&self, name: &str, options: &OpenOptions) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.place(name);
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::fs::OpenOptionsExt;

            let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
            match options.clone().custom_flags(direct).open(&path) {
                Ok(file) => return Ok(Arc::new(RealFile(file))),
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Arc::new(RealFile(options.open(path)?)))
    }
}

/// Whether it says that nothing can be written there.
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// The running program's file name, for whoever finds the folder locked.
fn program_name() -> String {
    let first = std::env::args_os().next().unwrap_or_default();
    match Path::new(&first).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => "unknown program".to_owned(),
    }
}

/// The lock on a folder; dropping it unlocks. The system drops it with the process.
#[derive(Debug)]
pub struct FolderLock {
    pub(super) file: File,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing alone would not do: a process that another thread is just starting has a copy of
        // the file until its program begins, and with it the lock.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl Disk for RealDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        if self.is_read_only {
            return Ok(Arc::new(RealFile(options.open(self.place(name))?)));
        }
        options.write(true);
        match mode {
            OpenMode::Existing => {}
            OpenMode::Direct => return self.open_direct(name, &options),
            OpenMode::CreateNew => {
                options.create_new(true);
            }
            OpenMode::CreateOrOpen => {
                options.create(true).truncate(false);
            }
        }
        Ok(Arc::new(RealFile(options.open(self.place(name))?)))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.place(folder))? {
            // A name that is not UTF-8 is none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.place(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.place(from), self.place(to))
    }

    fn create_folder(&self, name: &str) -> io::Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        fs::create_dir_all(self.place(name))
    }

    fn sync_folder(&self, name: &str) -> io::Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        File::open(self.place(name))?.sync_all()
    }

    fn room(&self) -> io::Result<u64> {
        Ok(self.free()?.saturating_sub(INDEX_RESERVE))
    }

    fn size_and_free(&self) -> io::Result<(u64, u64)> {
        let system = rustix::io::retry_on_intr(|| rustix::fs::statvfs(&self.folder))?;
        let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
        Ok((bytes(system.f_blocks), bytes(system.f_bavail)))
    }

    fn balance_reserve(&self) {
        if !self.is_read_only {
            // Without it there is a little less space, as there may be anyway.
            let _ = self.free().and_then(|free| reserve::balance(&self.folder, free));
        }
    }

    fn describe(&self) -> String {
        self.folder.display().to_string()
    }
}

struct RealFile(File);

impl RealFile {
    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        let zeros = [0; ZEROS_LEN];
        let mut done = 0;
        while done < len {
            let step = (len - done).min(ZEROS_LEN as u64);
            self.0.write_all_at(&zeros[..step as usize], offset + done)?;
            done += step;
        }
        Ok(())
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.0.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    #[cfg(target_os = "linux")]
    fn read_scattered_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::preadv(&self.0, bufs, offset))?)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    #[cfg(target_os = "linux")]
    fn read_exactly(&self) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::Random)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn disk_bytes(&self) -> io::Result<u64> {
        // POSIX counts blocks of 512 bytes here, whatever the file system's own are.
        Ok(self.0.metadata()?.blocks() * 512)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        debug_assert!(len > 0, "the system refuses to reserve nothing, at {offset}");
        match rustix::fs::fallocate(self.0.as_fd(), FallocateFlags::empty(), offset, len) {
            Ok(()) => Ok(()),
            // Zeros may only go where nothing was written: beyond the end.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let end = offset + len;
                let start = offset.max(self.len()?);
                if start < end { self.write_zeros(start, end - start) } else { Ok(()) }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let end = (offset + len).min(self.len()?);
        if offset >= end {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(self.0.as_fd(), flags, offset, end - offset) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(offset, end - offset),
            Err(error) => Err(error.into()),
        }
    }
}
