//! A payload of any length on its way to disk, before the transaction that refers to it: to extents
//! of an embedded store, or in pieces to the nodes of a cluster.
//!
//! To a cluster some of whose nodes are of an older release it goes with its transaction, so there
//! it is gathered in memory, up to a bound; and so is what is short, or appended wherever the blob
//! ends.

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use tyr_runtime::waiting::block_on;
use tyr_types::{BlobName, Bytes, Error, Operation, Payload, Result, limits};

use crate::backend::{ExtentLease, RemoteUpload, Space};
use crate::pending::{Target, check_carried};

/// Takes bytes as they come and writes them, a few MiB at a time. Dropping it gives the space back.
#[derive(Debug)]
pub(crate) struct Upload {
    space: Space,
    name: BlobName,
    target: Target,
    buffer: Vec<u8>,
    leases: Vec<Arc<ExtentLease>>,
    /// What went to a cluster; `None` while all is in the buffer.
    remote: Option<RemoteUpload>,
    len: u64,
}

/// What came of an upload.
pub(crate) struct Finished {
    /// What puts it into its blob.
    pub operation: Operation,
    /// What keeps it until the commit: in extents.
    pub leases: Vec<Arc<ExtentLease>>,
    /// And in a cluster.
    pub remote: Option<RemoteUpload>,
}

impl Upload {
    pub fn new(space: Space, name: BlobName, target: Target) -> Self {
        let (buffer, leases, remote) = (Vec::new(), Vec::new(), None);
        Self { space, name, target, buffer, leases, remote, len: 0 }
    }

    /// Bytes taken so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Takes some more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = self.room();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            self.advance(now.len())?;
            bytes = later;
        }
        Ok(())
    }

    /// Takes everything that `source` has.
    pub fn fill_from(&mut self, source: &mut dyn Read) -> Result<()> {
        loop {
            let room = self.room();
            let read = (&mut *source).take(room as u64).read_to_end(&mut self.buffer);
            match read {
                Ok(0) => return Ok(()),
                Ok(n) => self.advance(n)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("reading the data to store", error)),
            }
        }
    }

    /// Ends it: what puts it into its blob, and what keeps it until the commit.
    pub fn finish(mut self) -> Result<Finished> {
        let is_short = self.leases.is_empty()
            && self.remote.is_none()
            && self.buffer.len() < self.written_from();
        if !is_short && !self.buffer.is_empty() {
            self.write_buffer()?;
        }
        let payload = match &mut self.remote {
            _ if is_short => Payload::Inline(Bytes::from(self.buffer)),
            Some(remote) => block_on(remote.payload())?,
            None => Payload::Extents(self.leases.iter().map(|lease| lease.extent()).collect()),
        };
        let operation = self.target.operation(payload);
        Ok(Finished { operation, leases: self.leases, remote: self.remote })
    }

    /// Bytes from which on it does not stay by value, when it is all here.
    fn written_from(&self) -> usize {
        match &self.space {
            Space::Embedded(_) => limits::EXTENT_PAYLOAD_MIN,
            Space::Remote(space) if space.may_upload() && self.target != Target::Append(None) => {
                limits::UPLOAD_MIN
            }
            Space::Remote(_) => usize::MAX,
        }
    }

    /// Bytes that the buffer takes before something is done about it.
    fn room(&self) -> usize {
        let max = match &self.space {
            Space::Embedded(_) => limits::EXTENT_LEN_MAX as usize,
            Space::Remote(space) if self.remote.is_some() || self.is_placed(space.may_upload()) => {
                limits::PIECE_LEN_MAX as usize
            }
            // One more than it may become.
            Space::Remote(_) => limits::TRANSACTION_INLINE_MAX + 1,
        };
        max - self.buffer.len()
    }

    /// Whether it can go to a cluster as it comes. What is appended wherever the blob ends is
    /// carried, as long as it can be: then it finds a place whoever else appends.
    fn is_placed(&self, may_upload: bool) -> bool {
        may_upload && self.target != Target::Append(None)
    }

    fn advance(&mut self, n: usize) -> Result<()> {
        self.len += n as u64;
        if self.len > limits::BLOB_SIZE_MAX {
            return Err(Error::invalid("a blob has at most 2^63-1 bytes"));
        }
        if self.room() > 0 {
            return Ok(());
        }
        match &self.space {
            Space::Remote(space) if !space.may_upload() => check_carried(self.buffer.len()),
            Space::Embedded(_) | Space::Remote(_) => self.write_buffer(),
        }
    }

    fn write_buffer(&mut self) -> Result<()> {
        match &self.space {
            Space::Embedded(space) => {
                self.leases.push(space.upload(&self.buffer)?);
                self.buffer.clear();
            }
            Space::Remote(space) => {
                if self.remote.is_none() {
                    let offset = match self.target {
                        Target::Replace => Some(0),
                        Target::Write(offset) => Some(offset),
                        Target::Append(expected) => expected,
                    };
                    let (remote, offset) = block_on(space.upload(&self.name, offset))?;
                    if let Target::Append(expected) = &mut self.target {
                        *expected = Some(offset);
                    }
                    self.remote = Some(remote);
                }
                let bytes = Bytes::from(std::mem::take(&mut self.buffer));
                if let Some(remote) = &mut self.remote {
                    block_on(remote.push(bytes))?;
                }
            }
        }
        Ok(())
    }
}
