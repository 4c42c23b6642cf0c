//! Letting go of a file without a name, from its end.

use super::draft::{Condition, Draft};
use super::known::{Known, SEGMENTS_MAX, named};
use super::{Operation, Plan};
use crate::layout::key::Blob;
use crate::layout::orphan;

/// A session lets go of an orphan; answers whether it was the last that had it.
#[derive(Clone, Debug)]
pub struct Release {
    /// Its number.
    pub number: u64,
    /// The session.
    pub session: u64,
}

impl Operation for Release {
    type Answer = bool;

    fn plan(&self, known: &Known) -> Plan<Draft<bool>> {
        let mut draft = Draft::new();
        let blob = Blob::orphan(self.number);
        let Some(found) = known.blob(&blob, u64::MAX)? else { return Ok(draft.answering(false)) };
        let holders = named(&blob, orphan::decode(&found.bytes))?;
        let rest: Vec<u64> = holders.iter().copied().filter(|it| *it != self.session).collect();
        if rest.is_empty() {
            return Ok(draft.answering(true));
        }
        if rest.len() < holders.len() {
            draft.require(Condition::Unchanged(blob.clone(), found.version));
            draft.put(&blob, orphan::encode(&rest));
        }
        Ok(draft.answering(false))
    }
}

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
        let listed = Blob::orphan(number);
        let Some((record, version)) = &known.file(number)?.inode else {
            if known.blob(&listed, 0)?.is_some() {
                draft.require(Condition::Absent(Blob::inode(number)));
                draft.delete(listed);
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
            draft.delete(listed);
            if record.identity.flags.has_xattrs {
                draft.delete(Blob::xattrs(number));
            }
        }
        Ok(draft.answering(is_last))
    }
}
