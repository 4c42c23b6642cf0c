//! Bytes of files: a small file's behind its record, the others' in segments.

use rustix::io::Errno;
use tyr::Bytes;

use super::draft::{Change, Condition, Draft};
use super::known::Known;
use super::link::promote;
use super::node::{Home, Node};
use super::rights::without_privileges;
use super::segments::Segments;
use super::{Basis, Operation, Plan};
use crate::error::Error;
use crate::layout::forward::Place;
use crate::layout::key::Blob;
use crate::layout::record::{Kind, MODE_AT, RECORD_LEN, Record, Time};

/// Bytes of a file that lies in its entry; more make it move.
pub const SMALL_LEN_MAX: u64 = 64 << 10;

/// Refuses what has no bytes.
pub fn check_regular(node: &Node) -> Result<(), Error> {
    match node.kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(no_bytes()),
        kind => Err(Error::new(Errno::INVAL, format!("a {} has no bytes", kind.name()))),
    }
}

fn no_bytes() -> Error {
    Error::new(Errno::ISDIR, "a directory has names, not bytes")
}

/// Where the bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// Here they are.
    Bytes(Bytes),
    /// In segments.
    Segments,
}

/// Looks for bytes of a file.
#[derive(Clone, Debug)]
pub struct Locate {
    /// The file, or a symlink.
    pub node: Node,
    /// From where on.
    pub offset: u64,
    /// How many.
    pub len: u64,
}

impl Operation for Locate {
    type Answer = Located;
    const BASIS: Basis = Basis::Versions;

    fn plan(&self, known: &Known) -> Plan<Draft<Located>> {
        let located = match known.home(&self.node, self.offset.saturating_add(self.len))? {
            Home::Entry(_, _, found) => {
                let content = found.bytes.slice(RECORD_LEN..);
                let len = content.len() as u64;
                let start = self.offset.min(len);
                let end = self.offset.saturating_add(self.len).min(len);
                Located::Bytes(content.slice(start as usize..end as usize))
            }
            Home::Inode(_) => Located::Segments,
            Home::Directory(_) => return Err(no_bytes().into()),
        };
        Ok(Draft::new().answering(located))
    }
}

/// Writes bytes.
#[derive(Clone, Debug)]
pub struct Write {
    /// The file.
    pub node: Node,
    /// From where on; `None` at the end of the file, wherever that is then.
    pub offset: Option<u64>,
    /// What.
    pub data: Bytes,
    /// How long segments are.
    pub segment_bits: u8,
    /// Whether who writes may leave set-user and set-group as they are.
    pub is_privileged: bool,
    /// Now.
    pub now: Time,
}

/// Where written bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// From this offset on.
    At(u64),
    /// Where the blob ended, and so much behind that.
    Appended(i64),
}

impl Operation for Write {
    type Answer = Written;

    fn plan(&self, known: &Known) -> Plan<Draft<Written>> {
        check_regular(&self.node)?;
        let (len, mut draft) = (self.data.len() as u64, Draft::new());
        let home = known.home(&self.node, 0)?;
        if len == 0 {
            return Ok(draft.answering(Written::At(self.offset.unwrap_or(0))));
        }
        let offset = match self.offset {
            Some(offset) => offset,
            None => known.size(&home)?,
        };
        match &home {
            Home::Entry(place, ..) => {
                let end = Segments::check_end(offset, len, self.segment_bits)?;
                if end <= SMALL_LEN_MAX {
                    home.require(&mut draft);
                    let written = self.small(&mut draft, &home.blob());
                    strip_privileges(&mut draft, &home, self.is_privileged);
                    return Ok(draft.answering(written));
                }
                let (mut record, mut segments) =
                    leave(known, &mut draft, &self.node, place, (self.segment_bits, u64::MAX))?;
                if !self.is_privileged {
                    record.access.mode = without_privileges(record.access.mode);
                }
                segments.write(known, &mut draft, offset, &self.data)?;
                arrive(&mut draft, record, &segments, self.now);
                Ok(draft.answering(Written::At(offset)))
            }
            Home::Inode(record) => {
                home.require(&mut draft);
                let mut segments = Segments::of(known, &mut draft, record)?;
                let written = match self.offset {
                    None if segments.has_room(len) => {
                        Written::Appended(segments.append(&mut draft, &self.data))
                    }
                    _ => {
                        if self.offset.is_none() {
                            segments.require_end(&mut draft);
                        }
                        Segments::check_end(offset, len, record.segment_bits)?;
                        segments.write(known, &mut draft, offset, &self.data)?;
                        Written::At(offset)
                    }
                };
                segments.finish(&mut draft, record);
                draft.modify(&home.blob(), self.now);
                strip_privileges(&mut draft, &home, self.is_privileged);
                Ok(draft.answering(written))
            }
            Home::Directory(_) => unreachable!("directories were refused"),
        }
    }
}

impl Write {
    /// Into a small file, which stays one.
    fn small(&self, draft: &mut Draft<()>, blob: &Blob) -> Written {
        let written = match self.offset {
            Some(offset) => {
                let at = RECORD_LEN as u64 + offset;
                draft.change(Change::Write(blob.clone(), at, self.data.clone()));
                Written::At(offset)
            }
            None => {
                draft.change(Change::Append(blob.clone(), self.data.clone()));
                Written::Appended(-(RECORD_LEN as i64))
            }
        };
        draft.modify(blob, self.now);
        written
    }
}

/// Set-user and set-group go when somebody without privileges changes what a program is.
fn strip_privileges(draft: &mut Draft<()>, home: &Home<'_>, is_privileged: bool) {
    let mode = home.record().access.mode;
    let stripped = without_privileges(mode);
    if !is_privileged && stripped != mode {
        draft.require_bytes(&home.blob(), MODE_AT, mode.to_le_bytes());
        draft.write(&home.blob(), MODE_AT, stripped.to_le_bytes());
    }
}

/// A small file leaves its entry, with so much of its content; what it has then is in segments of
/// this length.
pub(super) fn leave(
    known: &Known,
    draft: &mut Draft<()>,
    node: &Node,
    place: &Place,
    (segment_bits, len): (u8, u64),
) -> Plan<(Record, Segments)> {
    let Home::Entry(_, record, found) = known.home(node, u64::MAX)? else {
        return Err(super::Stop::Again);
    };
    let entry = Blob::entry(place.directory, &place.name);
    draft.require(Condition::Unchanged(entry, found.version));
    let record = promote(draft, place, &record, segment_bits);
    let content = found.bytes.slice(RECORD_LEN..);
    let content = content.slice(..content.len().min(usize::try_from(len).unwrap_or(usize::MAX)));
    let mut segments = Segments::new(draft, node.number, segment_bits);
    segments.write(known, draft, 0, &content)?;
    Ok((record, segments))
}

/// The inode of a file that has left its entry, and was changed now.
pub(super) fn arrive(draft: &mut Draft<()>, mut record: Record, segments: &Segments, now: Time) {
    record.last_segment = segments.last();
    record.times.mtime = now;
    record.times.ctime = now.max(record.times.ctime);
    draft.put(&Blob::inode(record.identity.number), record.encode());
}

/// Cuts a file, or extends it with zeros; answers whether that is all, or a part.
#[derive(Clone, Debug)]
pub struct Truncate {
    /// The file.
    pub node: Node,
    /// Its size then.
    pub size: u64,
    /// How long segments are.
    pub segment_bits: u8,
    /// Whether who cuts it may leave set-user and set-group as they are.
    pub is_privileged: bool,
    /// Now.
    pub now: Time,
}

impl Operation for Truncate {
    type Answer = bool;

    fn plan(&self, known: &Known) -> Plan<Draft<bool>> {
        check_regular(&self.node)?;
        let mut draft = Draft::new();
        let home = known.home(&self.node, 0)?;
        match &home {
            Home::Entry(place, ..) => {
                Segments::check_end(self.size, 0, self.segment_bits)?;
                if self.size <= SMALL_LEN_MAX {
                    home.require(&mut draft);
                    let blob = home.blob();
                    let len = RECORD_LEN as u64 + self.size;
                    draft.change(Change::Truncate(blob.clone(), len));
                    draft.modify(&blob, self.now);
                    strip_privileges(&mut draft, &home, self.is_privileged);
                    return Ok(draft.answering(true));
                }
                let (mut record, mut segments) =
                    leave(known, &mut draft, &self.node, place, (self.segment_bits, self.size))?;
                if !self.is_privileged {
                    record.access.mode = without_privileges(record.access.mode);
                }
                let is_done = segments.truncate(known, &mut draft, self.size)?;
                arrive(&mut draft, record, &segments, self.now);
                Ok(draft.answering(is_done))
            }
            Home::Inode(record) => {
                Segments::check_end(self.size, 0, record.segment_bits)?;
                home.require(&mut draft);
                let mut segments = Segments::of(known, &mut draft, record)?;
                let is_done = segments.truncate(known, &mut draft, self.size)?;
                segments.finish(&mut draft, record);
                draft.modify(&home.blob(), self.now);
                strip_privileges(&mut draft, &home, self.is_privileged);
                Ok(draft.answering(is_done))
            }
            Home::Directory(_) => unreachable!("directories were refused"),
        }
    }
}
