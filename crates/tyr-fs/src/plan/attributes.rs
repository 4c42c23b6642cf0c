//! Rights, owners and times of a file: blind writes to its record.

use super::draft::Draft;
use super::known::Known;
use super::node::{Home, Node};
use super::{Basis, Operation, Plan, Stop};
use crate::layout::header::PLACE_AT;
use crate::layout::key::Blob;
use crate::layout::record::{
    ATIME_AT, GROUP_AT, MODE_AT, MODE_MASK, MTIME_AT, OWNER_AT, Time, Times,
};

/// What is to be changed of a file; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewAttributes {
    /// Rights, set-user, set-group, sticky: the lowest twelve bits.
    pub mode: Option<u32>,
    /// The owner.
    pub owner: Option<u32>,
    /// The group.
    pub group: Option<u32>,
    /// When it was read last.
    pub atime: Option<Time>,
    /// When its content was changed last.
    pub mtime: Option<Time>,
}

/// `chmod`, `chown`, `utimensat`.
#[derive(Clone, Debug)]
pub struct SetAttributes {
    /// The file.
    pub node: Node,
    /// What is changed.
    pub new: NewAttributes,
    /// Now.
    pub now: Time,
}

impl Operation for SetAttributes {
    type Answer = ();

    fn plan(&self, known: &Known) -> Plan<Draft<()>> {
        let home = known.home(&self.node, 0)?;
        let mut draft = Draft::new();
        home.require(&mut draft);
        let NewAttributes { mode, owner, group, atime, mtime } = self.new;
        let mode = mode.map(|mode| mode & MODE_MASK);
        let access: Vec<_> = [(MODE_AT, mode), (OWNER_AT, owner), (GROUP_AT, group)]
            .into_iter()
            .filter_map(|(at, value)| Some((at, value?)))
            .collect();
        let blob = home.blob();
        for (at, value) in &access {
            draft.write(&blob, *at, value.to_le_bytes());
        }
        if let Home::Directory(header) = &home
            && let Some(name) = &header.place.name
            && !access.is_empty()
        {
            // The entry has a copy: it has to be the right one.
            draft.require_bytes(&blob, PLACE_AT, header.place.encode());
            let entry = Blob::entry(header.place.parent, name);
            for (at, value) in &access {
                draft.write(&entry, *at, value.to_le_bytes());
            }
        }
        for (at, time) in [(ATIME_AT, atime), (MTIME_AT, mtime)] {
            if let Some(time) = time {
                draft.write(&blob, at, time.0.to_le_bytes());
            }
        }
        draft.touch(&blob, self.now);
        Ok(draft)
    }
}

/// Bytes of a file were read: its atime is now, where it has to be.
#[derive(Clone, Debug)]
pub struct NoteRead {
    /// The file.
    pub node: Node,
    /// Now.
    pub now: Time,
}

/// How long an atime stays as it is although a file is read: a day, in nanoseconds.
const ATIME_AGE_MAX: i64 = 24 * 60 * 60 * 1_000_000_000;

/// Whether a file that has these times is to be noted as read: not since it was changed, or not for
/// a day.
pub fn is_read_due(times: &Times, now: Time) -> bool {
    let Times { mtime, ctime, atime, .. } = *times;
    atime <= mtime || atime <= ctime || now.0.saturating_sub(atime.0) >= ATIME_AGE_MAX
}

impl Operation for NoteRead {
    type Answer = ();

    fn plan(&self, known: &Known) -> Plan<Draft<()>> {
        let home = known.home(&self.node, 0)?;
        let mut draft = Draft::new();
        if is_read_due(&home.record().times, self.now) {
            home.require(&mut draft);
            draft.write(&home.blob(), ATIME_AT, self.now.0.to_le_bytes());
        }
        Ok(draft)
    }
}

/// Where a directory lies: the number of its parent; the root's is the root.
#[derive(Clone, Debug)]
pub struct ParentOf {
    /// The directory.
    pub node: Node,
}

impl Operation for ParentOf {
    type Answer = u64;
    const BASIS: Basis = Basis::Versions;

    fn plan(&self, known: &Known) -> Plan<Draft<u64>> {
        match known.home(&self.node, 0)? {
            Home::Directory(header) => Ok(Draft::new().answering(header.place.parent)),
            Home::Entry(..) | Home::Inode(_) => {
                Err(Stop::Fail(self.node.require_directory().expect_err("it is none")))
            }
        }
    }
}
