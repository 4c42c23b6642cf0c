//! Room for bytes, and holes: `fallocate`.

use super::content::{SMALL_LEN_MAX, arrive, check_regular, leave};
use super::draft::{Change, Condition, Draft};
use super::known::Known;
use super::node::{Home, Node};
use super::segments::Segments;
use super::{Operation, Plan};
use crate::layout::key::Blob;
use crate::layout::record::{RECORD_LEN, Time};

/// What becomes of a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The file reaches to its end, with zeros where there was nothing. Nothing is reserved.
    Extend,
    /// It becomes a hole: it reads as zeros, and takes no space. The size stays.
    Punch,
    /// Both.
    Zero,
}

impl Allocation {
    fn is_hole(self) -> bool {
        match self {
            Self::Extend => false,
            Self::Punch | Self::Zero => true,
        }
    }

    fn is_extended(self) -> bool {
        match self {
            Self::Punch => false,
            Self::Extend | Self::Zero => true,
        }
    }
}

/// Changes what a range of a file is.
#[derive(Clone, Debug)]
pub struct Allocate {
    /// The file.
    pub node: Node,
    /// Where the range begins.
    pub offset: u64,
    /// Its bytes, 1 at least.
    pub len: u64,
    /// What becomes of it.
    pub allocation: Allocation,
    /// How long segments are.
    pub segment_bits: u8,
    /// Now.
    pub now: Time,
}

impl Operation for Allocate {
    type Answer = ();

    fn plan(&self, known: &Known) -> Plan<Draft<()>> {
        check_regular(&self.node)?;
        let mut draft = Draft::new();
        let home = known.home(&self.node, 0)?;
        let size = known.size(&home)?;
        match &home {
            Home::Entry(place, _, found) => {
                let end = Segments::check_end(self.offset, self.len, self.segment_bits)?;
                let is_longer = self.allocation.is_extended() && end > size;
                if is_longer && end > SMALL_LEN_MAX {
                    let bits = (self.segment_bits, u64::MAX);
                    let (record, mut segments) = leave(known, &mut draft, &self.node, place, bits)?;
                    segments.truncate(known, &mut draft, end)?;
                    self.clear(&mut draft, &segments);
                    arrive(&mut draft, record, &segments, self.now);
                    return Ok(draft);
                }
                home.require(&mut draft);
                let blob = home.blob();
                if self.allocation.is_hole() {
                    let at = RECORD_LEN as u64 + self.offset;
                    draft.change(Change::Clear(blob.clone(), at, self.len));
                }
                if is_longer {
                    // Whoever made it longer meanwhile must not have it cut.
                    draft.require(Condition::Unchanged(blob.clone(), found.version));
                    draft.change(Change::Truncate(blob.clone(), RECORD_LEN as u64 + end));
                }
                draft.modify(&blob, self.now);
                Ok(draft)
            }
            Home::Inode(record) => {
                let end = Segments::check_end(self.offset, self.len, record.segment_bits)?;
                home.require(&mut draft);
                let mut segments = Segments::of(known, &mut draft, record)?;
                if self.allocation.is_extended() && end > size {
                    segments.require_end(&mut draft);
                    segments.truncate(known, &mut draft, end)?;
                }
                // Behind what may have gone to another segment.
                self.clear(&mut draft, &segments);
                segments.finish(&mut draft, record);
                draft.modify(&Blob::inode(self.node.number), self.now);
                Ok(draft)
            }
            Home::Directory(_) => unreachable!("directories were refused"),
        }
    }
}

impl Allocate {
    fn clear(&self, draft: &mut Draft<()>, segments: &Segments) {
        if self.allocation.is_hole() {
            segments.clear(draft, self.offset, self.len);
        }
    }
}
