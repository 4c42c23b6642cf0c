//! A payload of any length on its way to disk, before the transaction that refers to it. To a
//! cluster it goes with its transaction, so there it is gathered in memory, up to a bound.

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use tyr_types::{Bytes, Error, Payload, Result, limits};

use crate::backend::{ExtentLease, Space};
use crate::pending::check_carried;

/// Takes bytes as they come and writes them to extents, a few MiB at a time. Dropping it gives
/// the space back.
#[derive(Debug)]
pub(crate) struct Upload {
    space: Space,
    buffer: Vec<u8>,
    leases: Vec<Arc<ExtentLease>>,
    len: u64,
}

impl Upload {
    pub fn new(space: Space) -> Self {
        Self { space, buffer: Vec::new(), leases: Vec::new(), len: 0 }
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

    /// Ends it: the payload, and the leases that keep it until the commit.
    pub fn finish(mut self) -> Result<(Payload, Vec<Arc<ExtentLease>>)> {
        let is_short = self.leases.is_empty() && self.buffer.len() < limits::EXTENT_PAYLOAD_MIN;
        if is_short || !self.is_embedded() {
            return Ok((Payload::Inline(Bytes::from(self.buffer)), Vec::new()));
        }
        if !self.buffer.is_empty() {
            self.write_buffer()?;
        }
        let extents = self.leases.iter().map(|lease| lease.extent()).collect();
        Ok((Payload::Extents(extents), self.leases))
    }

    /// Bytes that the buffer takes before something is done about it.
    fn room(&self) -> usize {
        let max = match self.space {
            Space::Embedded(_) => limits::EXTENT_LEN_MAX as usize,
            // One more than it may become.
            Space::Remote(_) => limits::TRANSACTION_INLINE_MAX + 1,
        };
        max - self.buffer.len()
    }

    fn is_embedded(&self) -> bool {
        match self.space {
            Space::Embedded(_) => true,
            Space::Remote(_) => false,
        }
    }

    fn advance(&mut self, n: usize) -> Result<()> {
        self.len += n as u64;
        if self.len > limits::BLOB_SIZE_MAX {
            return Err(Error::invalid("a blob has at most 2^63-1 bytes"));
        }
        if !self.is_embedded() {
            return check_carried(self.buffer.len());
        }
        if self.buffer.len() == limits::EXTENT_LEN_MAX as usize {
            self.write_buffer()?;
        }
        Ok(())
    }

    fn write_buffer(&mut self) -> Result<()> {
        if let Space::Embedded(space) = &self.space {
            self.leases.push(space.upload(&self.buffer)?);
            self.buffer.clear();
        }
        Ok(())
    }
}
