//! A file that is open: it stays usable when its last name is taken, until it is closed.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::io::Errno;
use tyr::Bytes;

use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::name::Name;
use crate::layout::record::{Access, Kind};
use crate::options::AccessTimes;
use crate::plan::allocate::Allocation;
use crate::plan::attributes::{NoteRead, is_read_due};
use crate::plan::lookup::{Attributes, Seen};
use crate::plan::node::Node;
use crate::plan::rights::Permission;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFor {
    /// Its bytes are read.
    Reading,
    /// They are changed.
    Writing,
    /// Both.
    ReadingAndWriting,
}

impl OpenFor {
    fn needs(self, permission: Permission) -> bool {
        match self {
            Self::Reading => permission == Permission::Read,
            Self::Writing => permission == Permission::Write,
            Self::ReadingAndWriting => permission != Permission::Execute,
        }
    }
}

/// An open file. Dropping it closes it.
#[derive(Debug)]
pub struct OpenFile {
    files: FileSystem,
    node: Node,
    open_for: OpenFor,
    is_open: Mutex<bool>,
    /// Whether the next read is noted, if it has to be.
    is_read_noted: AtomicBool,
}

impl FileSystem {
    /// Opens a file to be read and written.
    ///
    /// # Errors
    /// `ESTALE` when it is gone; `EACCES`.
    pub fn open_file(&self, node: &Node) -> Result<OpenFile> {
        self.open_file_for(node, OpenFor::ReadingAndWriting)
    }

    /// Opens a file. Rights are checked now, and not any more when it is used.
    ///
    /// # Errors
    /// `ESTALE` when it is gone; `EACCES`.
    pub fn open_file_for(&self, node: &Node, open_for: OpenFor) -> Result<OpenFile> {
        let file = self.count_open(node.clone(), open_for);
        let attributes = file.attributes()?;
        if let Some(user) = &self.user {
            for permission in [Permission::Read, Permission::Write] {
                if open_for.needs(permission) {
                    user.check(&attributes, permission)?;
                }
            }
        }
        file.see(&attributes);
        Ok(file)
    }

    /// Makes a regular file and opens it, to be read and written whatever its rights are.
    ///
    /// # Errors
    /// As [`FileSystem::make_file`].
    pub fn make_open_file(
        &self,
        directory: &Node,
        name: &Name,
        access: Access,
    ) -> Result<(Seen, OpenFile)> {
        let number = self.new_number()?;
        // Whoever takes its name from now on finds it open.
        let node = Node::of_its_own(Kind::Regular, number);
        let mut file = self.count_open(node, OpenFor::ReadingAndWriting);
        let seen = self.make(directory, name, (Kind::Regular, access), number, (0, Vec::new()))?;
        file.node = seen.node.clone();
        file.see(&seen.attributes);
        Ok((seen, file))
    }

    /// A file counts as open from now on; whether it is there has not been looked at.
    fn count_open(&self, node: Node, open_for: OpenFor) -> OpenFile {
        self.shared.opens.open(node.number);
        OpenFile {
            files: self.clone(),
            node,
            open_for,
            is_open: Mutex::new(true),
            is_read_noted: AtomicBool::new(false),
        }
    }
}

impl OpenFile {
    /// The file.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The next read is noted, where it has to be for a file that was seen so.
    fn see(&self, attributes: &Attributes) {
        let is_due = is_read_due(&attributes.times, self.files.now());
        let is_noted = is_due && self.files.access_times == AccessTimes::Relative;
        self.is_read_noted.store(is_noted, Ordering::Relaxed);
    }

    fn require(&self, permission: Permission) -> Result<()> {
        match self.open_for.needs(permission) {
            true => Ok(()),
            false => {
                let text = format!("the file was opened for {:?}", self.open_for);
                Err(Error::new(Errno::BADF, text))
            }
        }
    }

    /// It is changed here, so the next read is one since then.
    fn change(&self) -> Result<()> {
        self.require(Permission::Write)?;
        let is_noted = self.files.access_times == AccessTimes::Relative;
        self.is_read_noted.store(is_noted, Ordering::Relaxed);
        Ok(())
    }

    /// See [`FileSystem::attributes`].
    ///
    /// # Errors
    /// As there.
    pub fn attributes(&self) -> Result<Attributes> {
        self.files.attributes(&self.node)
    }

    /// See [`FileSystem::read`]. The first read since the file was opened, or changed here, is
    /// noted in its atime, where that is not of after its last change and of today; nobody waits
    /// until that is on disk.
    ///
    /// # Errors
    /// As there; `EBADF` where it was opened to be written only.
    pub fn read(&self, offset: u64, len: u64) -> Result<Bytes> {
        self.require(Permission::Read)?;
        let bytes = self.files.read_open(&self.node, offset, len)?;
        if self.is_read_noted.swap(false, Ordering::Relaxed) {
            let note = NoteRead { node: self.node.clone(), now: self.files.now() };
            if let Err(error) = self.files.run_unwaited(&note) {
                tracing::debug!(%error, "a file was read, and that could not be noted");
            }
        }
        Ok(bytes)
    }

    /// See [`FileSystem::write`].
    ///
    /// # Errors
    /// As there; `EBADF` where it was opened to be read only.
    pub fn write(&self, offset: u64, data: impl Into<Bytes>) -> Result<()> {
        self.change()?;
        self.files.write_open(&self.node, Some(offset), data.into()).map(drop)
    }

    /// See [`FileSystem::append`].
    ///
    /// # Errors
    /// As [`OpenFile::write`].
    pub fn append(&self, data: impl Into<Bytes>) -> Result<u64> {
        self.change()?;
        self.files.write_open(&self.node, None, data.into())
    }

    /// See [`FileSystem::truncate`].
    ///
    /// # Errors
    /// As [`OpenFile::write`]; `EINVAL` where it was opened to be read only, as `ftruncate` has it.
    pub fn truncate(&self, size: u64) -> Result<()> {
        self.change().map_err(|error| Error::new(Errno::INVAL, error.text()))?;
        self.files.truncate_open(&self.node, size)
    }

    /// See [`FileSystem::allocate`].
    ///
    /// # Errors
    /// As there; `EBADF` where it was opened to be read only.
    pub fn allocate(&self, allocation: Allocation, offset: u64, len: u64) -> Result<()> {
        self.change()?;
        self.files.allocate_open(&self.node, allocation, offset, len)
    }

    /// Closes it. A file without a name goes with that.
    ///
    /// # Errors
    /// `EIO` when the store does not answer; what is left of the file then goes later.
    pub fn close(self) -> Result<()> {
        self.end()
    }

    fn end(&self) -> Result<()> {
        match std::mem::take(&mut *self.is_open.lock()) {
            true => self.files.closed(self.node.number),
            false => Ok(()),
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::debug!(%error, "a file without a name is let go of by a later session");
        }
    }
}
