//! Calls of a file: what is known of it, its bytes, its attributes.

use rustix::io::Errno;
use tyr::Bytes;

use super::driver::{absent_is_none, zeros};
use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::key::Blob;
use crate::layout::record::{Kind, RECORD_LEN, Record};
use crate::plan::attributes::{NewAttributes, ParentOf, SetAttributes};
use crate::plan::content::{Locate, Located, Truncate, Write, Written, check_regular};
use crate::plan::known::named;
use crate::plan::lookup::{Attributes, Inspect};
use crate::plan::node::Node;
use crate::plan::rights::Permission;
use crate::plan::segments::{Piece, pieces};
use crate::plan::xattrs::{GetXattrs, SetXattr, XattrChange, no_attribute};

/// Bytes that one read answers at most: 64 MiB.
const READ_LEN_MAX: u64 = tyr::limits::READ_LEN_MAX;

impl FileSystem {
    /// What is known of a file: `stat`. Of a file longer than a segment, the size may be of a
    /// moment later than the times.
    ///
    /// # Errors
    /// `ESTALE` when it is gone; so for every call of a file.
    pub fn attributes(&self, node: &Node) -> Result<Attributes> {
        self.run(&Inspect { node: node.clone() })
    }

    /// Changes rights, owner, group or times. Who acts as a user has set-user and set-group taken
    /// away with the owner.
    ///
    /// # Errors
    /// `ESTALE`; `EPERM`, `EACCES`.
    pub fn set_attributes(&self, node: &Node, new: NewAttributes) -> Result<()> {
        let new = self.may_set(node, new, false)?;
        self.run(&SetAttributes { node: node.clone(), new, now: self.now() })
    }

    /// atime and mtime become now, as for `utimensat` without times: who may write a file may do
    /// this, too.
    ///
    /// # Errors
    /// `ESTALE`; `EACCES`.
    pub fn set_times_now(&self, node: &Node) -> Result<()> {
        let now = self.now();
        let new = NewAttributes { atime: Some(now), mtime: Some(now), ..NewAttributes::default() };
        let new = self.may_set(node, new, true)?;
        self.run(&SetAttributes { node: node.clone(), new, now })
    }

    /// Cuts a file, or extends it with zeros. It is one transaction up to 64 segments (64 GiB) that
    /// are cut off; what is longer gets shorter in steps.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for what has no bytes; `EFBIG`.
    pub fn truncate(&self, node: &Node, size: u64) -> Result<()> {
        self.may(node, Permission::Write)?;
        self.truncate_open(node, size)
    }

    /// The same of a file that was opened to be written.
    pub(super) fn truncate_open(&self, node: &Node, size: u64) -> Result<()> {
        self.charge_bytes(node, size, Some(size))?;
        let (segment_bits, now) = (self.shared.superblock.segment_bits, self.now());
        let (node, is_privileged) = (node.clone(), self.is_privileged());
        let truncate = Truncate { node, size, segment_bits, is_privileged, now };
        while !self.run(&truncate)? {}
        Ok(())
    }

    /// Writes bytes, in one transaction.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for what has no bytes; `EFBIG`; `ENOSPC`, `EDQUOT`.
    pub fn write(&self, node: &Node, offset: u64, data: impl Into<Bytes>) -> Result<()> {
        self.may(node, Permission::Write)?;
        self.write_open(node, Some(offset), data.into()).map(drop)
    }

    /// Appends bytes, in one transaction; answers where. Whoever else appends at the same time,
    /// nothing of theirs lies between.
    ///
    /// # Errors
    /// As [`FileSystem::write`].
    pub fn append(&self, node: &Node, data: impl Into<Bytes>) -> Result<u64> {
        self.may(node, Permission::Write)?;
        self.write_open(node, None, data.into())
    }

    /// Writes to a file that was opened to be written; answers where.
    pub(super) fn write_open(&self, node: &Node, offset: Option<u64>, data: Bytes) -> Result<u64> {
        self.charge_write(node, offset, &data)?;
        let done = self.run_telling(&self.writing(node, offset, data))?;
        match (done.answer, done.appended_at) {
            (Written::At(offset), _) => Ok(offset),
            (Written::Appended(before), Some(at)) => {
                let at = at.checked_add_signed(before);
                Ok(at.expect("an append is put behind what is before its content"))
            }
            (Written::Appended(_), None) => unreachable!("an append tells where it was put"),
        }
    }

    /// Appends behind the operations before it; where is told by nobody before they are committed.
    pub(super) fn append_bundled(&self, node: &Node, data: Bytes) -> Result<()> {
        self.may(node, Permission::Write)?;
        self.charge_write(node, None, &data)?;
        self.run(&self.writing(node, None, data)).map(drop)
    }

    fn charge_write(&self, node: &Node, offset: Option<u64>, data: &Bytes) -> Result<()> {
        let len = data.len() as u64;
        self.charge_bytes(node, len, offset.map(|offset| offset.saturating_add(len)))
    }

    fn writing(&self, node: &Node, offset: Option<u64>, data: Bytes) -> Write {
        let (segment_bits, now) = (self.shared.superblock.segment_bits, self.now());
        let (node, is_privileged) = (node.clone(), self.is_privileged());
        Write { node, offset, data, segment_bits, is_privileged, now }
    }

    /// Reads up to `len` bytes, 64 MiB at most, of one moment; fewer where the file ends.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for what has no bytes.
    pub fn read(&self, node: &Node, offset: u64, len: u64) -> Result<Bytes> {
        self.may(node, Permission::Read)?;
        self.read_open(node, offset, len)
    }

    /// Reads a file that was opened to be read.
    pub(super) fn read_open(&self, node: &Node, offset: u64, len: u64) -> Result<Bytes> {
        check_regular(node)?;
        self.read_content(node, offset, len.min(READ_LEN_MAX))
    }

    /// Where a symlink leads.
    ///
    /// # Errors
    /// `EINVAL` for what is none.
    pub fn read_link(&self, node: &Node) -> Result<Bytes> {
        match node.kind {
            Kind::Symlink => self.read_content(node, 0, READ_LEN_MAX),
            kind => {
                let text = format!("a {} leads nowhere", kind.name());
                Err(Error::new(Errno::INVAL, text))
            }
        }
    }

    fn read_content(&self, node: &Node, offset: u64, len: u64) -> Result<Bytes> {
        let len = len.min((i64::MAX.cast_unsigned()).saturating_sub(offset));
        if len == 0 {
            return Ok(Bytes::new());
        }
        // Of a large file most reads lie in one segment, and need nothing else.
        if node.place.is_none() && self.bundle.is_none() {
            let bits = self.shared.superblock.segment_bits;
            if let [Piece { segment, offset, .. }] = pieces(offset, len, bits, u32::MAX)[..] {
                let content = Blob::content(node.number, segment);
                let read = self.shared.data.read(&content.key, offset, len);
                if let Some(bytes) = absent_is_none(read)?.filter(|it| it.len() as u64 == len) {
                    return Ok(bytes);
                }
            }
        }
        match self.run(&Locate { node: node.clone(), offset, len })? {
            Located::Bytes(bytes) => Ok(bytes),
            Located::Segments if self.bundle.is_some() => {
                self.read_segments_bundled(node, offset, len)
            }
            Located::Segments => self.read_segments(node, offset, len),
        }
    }

    /// Reads a large file, as it is at one moment.
    fn read_segments(&self, node: &Node, offset: u64, len: u64) -> Result<Bytes> {
        let data = &self.shared.data;
        let inode = Blob::inode(node.number);
        let read = self.shared.tyr.transact(|transaction| {
            let record = transaction.read(data, &inode.key, 0, RECORD_LEN as u64)?;
            let record = match Record::decode(&record) {
                Ok(record) => record,
                Err(error) => return Ok(Err(error)),
            };
            let mut parts = Vec::new();
            for piece in pieces(offset, len, record.segment_bits, record.last_segment) {
                let content = Blob::content(node.number, piece.segment);
                let read = transaction.read(data, &content.key, piece.offset, piece.len);
                let bytes = match read {
                    Err(error) if error.kind() == tyr::ErrorKind::NotFound => Bytes::new(),
                    read => read?,
                };
                let missing = piece.len - bytes.len() as u64;
                parts.push(bytes);
                if piece.segment < record.last_segment {
                    parts.push(zeros(missing));
                }
            }
            Ok(Ok(parts))
        });
        let Some(read) = absent_is_none(read)? else {
            let text = format!("the file (number {}) was removed", node.number);
            return Err(Error::new(Errno::STALE, text));
        };
        Ok(named(&inode, read)?.concat().into())
    }

    /// The same behind other operations: nothing of what was read may change before they are
    /// committed.
    fn read_segments_bundled(&self, node: &Node, offset: u64, len: u64) -> Result<Bytes> {
        let (mut bundle, shared) = (self.bundle()?, &*self.shared);
        let inode = Blob::inode(node.number);
        let Some(found) = bundle.see(shared, &inode, 0..RECORD_LEN as u64)? else {
            let text = format!("the file (number {}) was removed", node.number);
            return Err(Error::new(Errno::STALE, text));
        };
        bundle.require_version(shared, &inode)?;
        let record = named(&inode, Record::decode(&found.bytes))?;
        let mut parts = Vec::new();
        for piece in pieces(offset, len, record.segment_bits, record.last_segment) {
            let content = Blob::content(node.number, piece.segment);
            let part = piece.offset..piece.offset + piece.len;
            let found = bundle.see(shared, &content, part)?;
            bundle.require_version(shared, &content)?;
            let bytes = found.map(|found| found.bytes).unwrap_or_default();
            let missing = piece.len - bytes.len() as u64;
            parts.push(bytes);
            if piece.segment < record.last_segment {
                parts.push(zeros(missing));
            }
        }
        Ok(parts.concat().into())
    }

    /// An extended attribute.
    ///
    /// # Errors
    /// `ENODATA` where there is none of this name.
    pub fn xattr(&self, node: &Node, name: &[u8]) -> Result<Vec<u8>> {
        self.may_read_xattr(node, name)?;
        let mut xattrs = self.run(&GetXattrs { node: node.clone() })?;
        xattrs.0.remove(name).ok_or_else(|| no_attribute(name))
    }

    /// The names of all extended attributes, in order.
    ///
    /// # Errors
    /// `ESTALE`.
    pub fn xattr_names(&self, node: &Node) -> Result<Vec<Vec<u8>>> {
        let xattrs = self.run(&GetXattrs { node: node.clone() })?;
        Ok(xattrs.0.into_keys().collect())
    }

    /// Sets or removes an extended attribute: a name of 1 to 255 bytes, a value of up to 64 KiB,
    /// all together up to 1 MiB.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` as the change has it; `ERANGE`, `E2BIG`, `ENOSPC` beyond the bounds.
    pub fn set_xattr(&self, node: &Node, name: &[u8], change: XattrChange) -> Result<()> {
        self.may_set_xattr(node, name)?;
        let (node, name, now) = (node.clone(), name.to_vec(), self.now());
        self.run(&SetXattr { node, name, change, now })
    }

    /// The directory that a directory is in; the root's is the root.
    ///
    /// # Errors
    /// `ENOTDIR`.
    pub fn parent(&self, node: &Node) -> Result<Node> {
        let number = self.run(&ParentOf { node: node.clone() })?;
        Ok(Node::of_its_own(Kind::Directory, number))
    }
}
