//! Room for bytes, holes, and where they are.

use std::ops::ControlFlow;

use rustix::io::Errno;
use tyr::blocking::Snapshot;
use tyr::{ByteRange, Scan};

use super::driver::absent_is_none;
use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::key::{Blob, Role, Space};
use crate::layout::record::{RECORD_LEN, Record};
use crate::plan::allocate::{Allocate, Allocation};
use crate::plan::content::check_regular;
use crate::plan::known::{SEGMENTS_MAX, named};
use crate::plan::node::Node;
use crate::plan::rights::Permission;

/// Bytes of which holes are made in one transaction, at most: 1 GiB.
const CLEARED_LEN_MAX: u64 = 1 << 30;

impl FileSystem {
    /// Extends a file, or makes a hole in it: `fallocate`. It is one transaction up to 1 GiB and 64
    /// segments of holes; what is longer is done in steps, from its beginning.
    ///
    /// # Errors
    /// `EINVAL` for no bytes, and for what has none; `EISDIR`; `EFBIG`.
    pub fn allocate(
        &self,
        node: &Node,
        allocation: Allocation,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        self.may(node, Permission::Write)?;
        self.allocate_open(node, allocation, offset, len)
    }

    /// The same of a file that was opened to be written.
    pub(super) fn allocate_open(
        &self,
        node: &Node,
        allocation: Allocation,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        check_regular(node)?;
        if len == 0 {
            return Err(Error::new(Errno::INVAL, "a range of no bytes cannot be allocated"));
        }
        let end = offset.checked_add(len).ok_or_else(|| {
            Error::new(Errno::FBIG, "a range ends before 2^64 bytes, and files before that")
        })?;
        match allocation {
            Allocation::Extend | Allocation::Zero => self.charge_bytes(node, end, Some(end))?,
            Allocation::Punch => {}
        }
        let segment_bits = self.shared.superblock.segment_bits;
        let step = ((SEGMENTS_MAX as u64) << segment_bits).min(CLEARED_LEN_MAX);
        let allocate = |allocation, offset, len| {
            let (node, now) = (node.clone(), self.now());
            self.run(&Allocate { node, offset, len, allocation, segment_bits, now })
        };
        let mut at = offset;
        if allocation != Allocation::Extend && len > step {
            // Behind the end there is nothing to be cleared.
            let cleared = end.min(self.attributes(node)?.size);
            while cleared.saturating_sub(at) > step {
                allocate(Allocation::Punch, at, step)?;
                at += step;
            }
        }
        match allocation {
            Allocation::Extend => allocate(Allocation::Extend, offset, len),
            Allocation::Punch => allocate(Allocation::Punch, at, step.min(end - at)),
            Allocation::Zero => {
                allocate(Allocation::Punch, at, step.min(end - at))?;
                allocate(Allocation::Extend, offset, len)
            }
        }
    }

    /// The first byte from `offset` on that is in no hole: `SEEK_DATA`. What is in none may still
    /// be zero.
    ///
    /// # Errors
    /// `ENXIO` where there is none until the end.
    pub fn next_data(&self, node: &Node, offset: u64) -> Result<u64> {
        let mut found = None;
        self.written(node, offset, &mut |range| {
            found = Some(range.start.max(offset));
            ControlFlow::Break(())
        })?;
        found.ok_or_else(|| nothing_behind(offset))
    }

    /// The first byte from `offset` on that is in a hole, as the end of a file is: `SEEK_HOLE`.
    ///
    /// # Errors
    /// `ENXIO` at the end, and behind it.
    pub fn next_hole(&self, node: &Node, offset: u64) -> Result<u64> {
        let mut at = offset;
        let size = self.written(node, offset, &mut |range| {
            if range.start > at {
                return ControlFlow::Break(());
            }
            at = at.max(range.end);
            ControlFlow::Continue(())
        })?;
        Ok(at.min(size))
    }

    /// Tells what is written from `offset` on, in order, as of one moment; answers the file's size.
    fn written(
        &self,
        node: &Node,
        offset: u64,
        tell: &mut dyn FnMut(ByteRange) -> ControlFlow<()>,
    ) -> Result<u64> {
        check_regular(node)?;
        let size = self.attributes(node)?.size;
        if offset >= size {
            return Err(nothing_behind(offset));
        }
        if self.bundle.is_some() {
            // Holes are those of now: of another moment none are told.
            let _ = tell(ByteRange { start: offset, end: size });
            return Ok(size);
        }
        let snapshot = self.shared.tyr.snapshot()?;
        let inode = Blob::inode(node.number);
        let record = snapshot.read(&self.shared.data, &inode.key, 0, RECORD_LEN as u64);
        let Some(record) = absent_is_none(record)? else {
            // A small file has no holes that are worth telling.
            let _ = tell(ByteRange { start: offset, end: size });
            return Ok(size);
        };
        let record = named(&inode, Record::decode(&record))?;
        let from = u32::try_from(offset >> record.segment_bits).unwrap_or(u32::MAX);
        let from = Blob::content(node.number, from.min(record.last_segment));
        let scan = Scan::new().prefix(node.number.to_be_bytes()).from(from.key.as_bytes());
        for page in snapshot.scan_pages(&self.shared.data, &scan.keys_only()) {
            for entry in page?.entries {
                let blob = Blob { space: Space::Data, key: entry.key };
                let Role::Content(_, segment) = blob.parse()? else { continue };
                let start = u64::from(segment) << record.segment_bits;
                if self.written_of(&snapshot, &blob, (start, offset), tell)?.is_break() {
                    return Ok(size);
                }
            }
        }
        Ok(size)
    }

    /// The same of a segment that begins there.
    fn written_of(
        &self,
        snapshot: &Snapshot,
        segment: &Blob,
        (start, offset): (u64, u64),
        tell: &mut dyn FnMut(ByteRange) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut next = Some(offset.saturating_sub(start));
        while let Some(from) = next {
            let range = ByteRange { start: from, ..ByteRange::ALL };
            let page = snapshot.stretches(&self.shared.data, &segment.key, range)?;
            for written in page.written {
                let written = ByteRange { start: start + written.start, end: start + written.end };
                if tell(written).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            next = page.resume;
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn nothing_behind(offset: u64) -> Error {
    Error::new(Errno::NXIO, format!("the file has no bytes from {offset} on"))
}
