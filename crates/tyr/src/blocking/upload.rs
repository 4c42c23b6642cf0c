//! A payload of any length on its way to disk, before the transaction that refers to it.

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use tyr_node::ExtentLease;
use tyr_types::{Bytes, Error, Payload, Result, limits};

use super::Keyspace;

/// Takes bytes as they come and writes them to extents, a few MiB at a time. Dropping it gives
/// the space back.
#[derive(Debug)]
pub(crate) struct Upload {
    keyspace: Keyspace,
    buffer: Vec<u8>,
    leases: Vec<Arc<ExtentLease>>,
    len: u64,
}

impl Upload {
    pub fn new(keyspace: Keyspace) -> Self {
        Self { keyspace, buffer: Vec::new(), leases: Vec::new(), len: 0 }
    }

    /// Bytes taken so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Takes some more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = limits::EXTENT_LEN_MAX as usize - self.buffer.len();
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
            let room = (limits::EXTENT_LEN_MAX as usize - self.buffer.len()) as u64;
            let read = (&mut *source).take(room).read_to_end(&mut self.buffer);
            match read {
                Ok(0) => return Ok(()),
                Ok(n) => self.advance(n)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("reading the data to store", error)),
            }
        }
    }

    /// Ends it: the payload, and the leases that keep it until the commit.
    pub fn finish(mut self) -> Result<(Payload, Vec<Arc<ExtentLease>>)> {
        if self.leases.is_empty() && self.buffer.len() < limits::EXTENT_PAYLOAD_MIN {
            return Ok((Payload::Inline(Bytes::from(self.buffer)), Vec::new()));
        }
        if !self.buffer.is_empty() {
            self.write_buffer()?;
        }
        let extents = self.leases.iter().map(|lease| lease.extent()).collect();
        Ok((Payload::Extents(extents), self.leases))
    }

    fn advance(&mut self, n: usize) -> Result<()> {
        self.len += n as u64;
        if self.len > limits::BLOB_SIZE_MAX {
            return Err(Error::invalid("a blob has at most 2^63-1 bytes"));
        }
        if self.buffer.len() == limits::EXTENT_LEN_MAX as usize {
            self.write_buffer()?;
        }
        Ok(())
    }

    fn write_buffer(&mut self) -> Result<()> {
        let lease = self.keyspace.node.upload(&self.keyspace.entry, &self.buffer)?;
        self.leases.push(lease);
        self.buffer.clear();
        Ok(())
    }
}
