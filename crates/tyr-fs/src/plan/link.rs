//! Giving a file a second name. The first time its record and content leave the entry.

use rustix::io::Errno;
use tyr::{Number, Relation};

use super::draft::{Change, Condition, Draft};
use super::known::Known;
use super::lookup::{exists, no_such};
use super::node::{Home, Node};
use super::remove::as_inode;
use super::{Operation, Plan};
use crate::error::Error;
use crate::layout::forward::Place;
use crate::layout::key::Blob;
use crate::layout::record::{Kind, LINKS_AT, RECORD_LEN, Record, Time};

/// Names that a file has at most.
pub const LINKS_MAX: u32 = 65_000;

/// Gives a file another name.
#[derive(Clone, Debug)]
pub struct Link {
    /// The file.
    pub node: Node,
    /// The name.
    pub place: Place,
    /// How long segments are.
    pub segment_bits: u8,
    /// Now.
    pub now: Time,
}

impl Operation for Link {
    type Answer = ();

    fn plan(&self, known: &Known) -> Plan<Draft<()>> {
        if self.node.kind == Kind::Directory {
            return Err(Error::new(Errno::PERM, "a directory has one name").into());
        }
        let home = known.home(&self.node, u64::MAX)?;
        known.expect_parent(self.place.directory)?;
        if known.is_careful && known.entry(&self.place, 0)?.is_some() {
            return Err(exists(&self.place).into());
        }
        let mut draft = Draft::new();
        let target = Blob::entry(self.place.directory, &self.place.name);
        draft.require(Condition::Absent(target.clone()));
        match &home {
            Home::Entry(place, record, found) => {
                let mut inode = promote(&mut draft, place, record, self.segment_bits);
                let source = Blob::entry(place.directory, &place.name);
                draft.require(Condition::Unchanged(source, found.version));
                inode.links = 2;
                inode.times.ctime = self.now.max(inode.times.ctime);
                draft.put(&Blob::inode(self.node.number), inode.encode());
                let content = found.bytes.slice(RECORD_LEN..);
                draft.change(Change::Put(Blob::content(self.node.number, 0), content));
            }
            Home::Inode(record) => {
                if record.identity.flags.is_orphan {
                    return Err(no_such(&self.place).into());
                }
                if record.links >= LINKS_MAX {
                    let text = format!("a file has at most {LINKS_MAX} names");
                    return Err(Error::new(Errno::MLINK, text).into());
                }
                home.require(&mut draft);
                let (blob, bound) = (home.blob(), Number::U32(LINKS_MAX));
                let is_below = Condition::Number(blob.clone(), LINKS_AT, Relation::Less, bound);
                draft.require(is_below);
                draft.add_link(&blob, true);
                draft.touch(&blob, self.now);
            }
            Home::Directory(_) => unreachable!("directories were refused"),
        }
        draft.put(&target, home.record().reference().encode());
        draft.enter(self.place.directory, 1, 0, self.now);
        Ok(draft)
    }
}

/// A file leaves its entry: what becomes of that, and of what led there. The record of the inode
/// that the caller puts, with the content, on condition that the entry is unchanged.
pub fn promote(draft: &mut Draft<()>, place: &Place, record: &Record, segment_bits: u8) -> Record {
    draft.put(&Blob::entry(place.directory, &place.name), record.reference().encode());
    if record.identity.flags.is_moved {
        draft.delete(Blob::forward(record.identity.number));
    }
    as_inode(record, segment_bits)
}
