//! Letting go of a file without a name, from its end.

use super::draft::{Condition, Draft};
use super::known::{Known, SEGMENTS_MAX};
use super::{Operation, Plan};
use crate::layout::key::Blob;

/// Deletes a part of an orphan; answers whether it is gone.
#[derive(Clone, Debug)]
pub struct Reap {
    /// Its number.
    pub number: u64,
}

impl Operation for Reap {
    type Answer = bool;

    fn plan(&self, known: &Known) -> Plan<Draft<bool>> {
        let number = self.number;
        let mut draft = Draft::new();
        let orphan = Blob::orphan(number);
        let Some((record, version)) = &known.file(number)?.inode else {
            if known.blob(&orphan, 0)?.is_some() {
                draft.require(Condition::Absent(Blob::inode(number)));
                draft.delete(orphan);
            }
            return Ok(draft.answering(true));
        };
        if !record.identity.flags.is_orphan {
            return Ok(draft.answering(true));
        }
        let segments = known.segments(number, 0)?;
        for segment in segments {
            draft.delete(Blob::content(number, *segment));
        }
        draft.require(Condition::Unchanged(Blob::inode(number), *version));
        let is_last = segments.len() < SEGMENTS_MAX;
        if is_last {
            draft.delete(Blob::inode(number));
            draft.delete(orphan);
            if record.identity.flags.has_xattrs {
                draft.delete(Blob::xattrs(number));
            }
        }
        Ok(draft.answering(is_last))
    }
}
