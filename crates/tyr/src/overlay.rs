//! Reading one's own writes: what a blob looks like after the operations of this transaction.
//!
//! The operations are played in order over the bytes that the snapshot has. A transform needs all
//! bytes of its number, so the range that is read grows until no transform sticks out of it.

use tyr_types::{ByteRange, Error, ExtentRef, Operation, Payload, Result};

use crate::backend::Backend;

/// The range that has to be read so that `wanted` can be computed after `operations`.
pub(crate) fn needed_range(operations: &[Operation], wanted: ByteRange) -> ByteRange {
    let mut range = wanted;
    loop {
        let mut grown = range;
        for operation in operations {
            let Operation::Apply { offset, transform } = operation else { continue };
            let place = ByteRange { start: *offset, end: offset + transform.width() as u64 };
            if place.overlaps(grown) {
                grown.start = grown.start.min(place.start);
                grown.end = grown.end.max(place.end);
            }
        }
        if grown == range {
            return range;
        }
        range = grown;
    }
}

/// A blob as a transaction sees it: part of its bytes, and its size (`None`: absent).
pub(crate) struct View {
    /// Which bytes.
    pub range: ByteRange,
    /// Their values, as long as the range; zeros beyond the size.
    pub bytes: Vec<u8>,
    /// The blob's size, if there is one.
    pub size: Option<u64>,
}

impl View {
    /// Plays operations over it.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` when a large payload cannot be read back.
    pub fn play(&mut self, backend: &Backend, operations: &[Operation]) -> Result<()> {
        for operation in operations {
            match operation {
                Operation::Write { offset, payload } => self.write(backend, *offset, payload)?,
                Operation::Append { payload, .. } => {
                    self.write(backend, self.size.unwrap_or(0), payload)?;
                }
                Operation::Truncate { len } => self.clear(ByteRange::from(*len)),
                Operation::Clear { range } => self.clear(*range),
                Operation::Delete => self.clear(ByteRange::ALL),
                Operation::Replace { payload } => {
                    self.clear(ByteRange::ALL);
                    self.write(backend, 0, payload)?;
                }
                Operation::Apply { offset, transform } => {
                    let place =
                        ByteRange { start: *offset, end: offset + transform.width() as u64 };
                    if place.overlaps(self.range) {
                        transform.apply(self.part(place));
                    }
                }
                Operation::Create | Operation::Compare { .. } | Operation::Expect { .. } => {}
            }
            self.size = operation.size_after(self.size);
        }
        Ok(())
    }

    fn write(&mut self, backend: &Backend, offset: u64, payload: &Payload) -> Result<()> {
        match payload {
            Payload::Inline(bytes) => self.write_bytes(offset, bytes),
            // Else what goes ahead is by value until the commit.
            Payload::Uploaded(_) => {
                return Err(Error::invalid(
                    "this transaction has had nodes copy into the blob, and what they copied is \
                     read when it is committed; read first, or in another transaction",
                ));
            }
            Payload::Extents(extents) => self.write_extents(backend, offset, extents)?,
            // Zeros are where stamps will be (C10).
            Payload::Stamped(stamped) => self.write_bytes(offset, stamped.bytes()),
        }
        Ok(())
    }

    fn write_bytes(&mut self, offset: u64, bytes: &[u8]) {
        let whole = ByteRange { start: offset, end: offset + bytes.len() as u64 };
        let shared = whole.intersection(self.range);
        if !shared.is_empty() {
            let from = (shared.start - offset) as usize;
            let bytes = &bytes[from..from + shared.len() as usize];
            self.part(shared).copy_from_slice(bytes);
        }
    }

    fn write_extents(
        &mut self,
        backend: &Backend,
        offset: u64,
        extents: &[ExtentRef],
    ) -> Result<()> {
        let mut start = offset;
        for extent in extents {
            let whole = ByteRange { start, end: start + u64::from(extent.len) };
            let shared = whole.intersection(self.range);
            if !shared.is_empty() {
                let skip = (shared.start - start) as u32;
                backend.read_extent(extent, skip, self.part(shared))?;
            }
            start = whole.end;
        }
        Ok(())
    }

    fn clear(&mut self, range: ByteRange) {
        let cleared = range.intersection(self.range);
        if !cleared.is_empty() {
            self.part(cleared).fill(0);
        }
    }

    fn part(&mut self, range: ByteRange) -> &mut [u8] {
        let start = (range.start - self.range.start) as usize;
        &mut self.bytes[start..start + range.len() as usize]
    }
}
