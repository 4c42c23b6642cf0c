//! A file that is open: it stays usable when its last name is taken, until it is closed.

use parking_lot::Mutex;
use tyr::Bytes;

use super::store::FileSystem;
use crate::error::Result;
use crate::plan::lookup::Attributes;
use crate::plan::node::Node;

/// An open file. Dropping it closes it.
#[derive(Debug)]
pub struct OpenFile {
    files: FileSystem,
    node: Node,
    is_open: Mutex<bool>,
}

impl FileSystem {
    /// Opens a file.
    ///
    /// # Errors
    /// `ESTALE` when it is gone.
    pub fn open_file(&self, node: &Node) -> Result<OpenFile> {
        self.shared.opens.open(node.number);
        let file = OpenFile { files: self.clone(), node: node.clone(), is_open: Mutex::new(true) };
        file.attributes()?;
        Ok(file)
    }
}

impl OpenFile {
    /// The file.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// See [`FileSystem::attributes`].
    ///
    /// # Errors
    /// As there.
    pub fn attributes(&self) -> Result<Attributes> {
        self.files.attributes(&self.node)
    }

    /// See [`FileSystem::read`].
    ///
    /// # Errors
    /// As there.
    pub fn read(&self, offset: u64, len: u64) -> Result<Bytes> {
        self.files.read(&self.node, offset, len)
    }

    /// See [`FileSystem::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, offset: u64, data: impl Into<Bytes>) -> Result<()> {
        self.files.write(&self.node, offset, data)
    }

    /// See [`FileSystem::append`].
    ///
    /// # Errors
    /// As there.
    pub fn append(&self, data: impl Into<Bytes>) -> Result<u64> {
        self.files.append(&self.node, data)
    }

    /// See [`FileSystem::truncate`].
    ///
    /// # Errors
    /// As there.
    pub fn truncate(&self, size: u64) -> Result<()> {
        self.files.truncate(&self.node, size)
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
