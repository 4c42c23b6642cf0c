//! Making files, directories, symlinks and special files: one transaction without reads, but of the
//! parent's rights.

use super::draft::{Condition, Draft};
use super::known::Known;
use super::lookup::{Attributes, Seen, exists};
use super::node::Node;
use super::{Operation, Plan};
use crate::layout::forward::Place;
use crate::layout::header::{DirectoryPlace, Header};
use crate::layout::key::Blob;
use crate::layout::record::{Access, Kind, MODE_AT, Record, Time};

/// The bit by which what is made in a directory gets its group.
const SET_GROUP: u32 = 0o2000;

/// Makes a file where there is none of that name.
#[derive(Clone, Debug)]
pub struct Create {
    /// Its name.
    pub place: Place,
    /// Its kind.
    pub kind: Kind,
    /// Rights, owner and group; where the directory says so, the group is the directory's.
    pub access: Access,
    /// Of a device, which.
    pub device: u32,
    /// What is in it; of a symlink its target.
    pub content: Vec<u8>,
    /// The number that it gets.
    pub number: u64,
    /// Now.
    pub now: Time,
}

impl Operation for Create {
    type Answer = Seen;

    fn plan(&self, known: &Known) -> Plan<Draft<Seen>> {
        let Place { directory, name } = &self.place;
        let parent = known.parent_access(*directory)?;
        if known.is_careful && known.entry(&self.place, 0)?.is_some() {
            return Err(exists(&self.place).into());
        }
        let entry = Blob::entry(*directory, name);
        let mut draft = Draft::new();
        draft.require(Condition::Absent(entry.clone()));
        draft.require_bytes(&Blob::header(*directory), MODE_AT, parent.encode());
        let mut record = Record::new(self.kind, self.number, self.access_in(parent), self.now);
        record.device = self.device;
        let is_directory = self.kind == Kind::Directory;
        let seen = if is_directory {
            draft.put(&entry, record.reference().encode());
            let place = DirectoryPlace { parent: *directory, name: Some(name.clone()) };
            draft.put(&Blob::header(self.number), Header::new(record.clone(), place).encode());
            let node = Node::of_its_own(self.kind, self.number);
            Seen { node, attributes: Attributes::of(&record, 2, 0) }
        } else {
            draft.put(&entry, [&record.encode()[..], &self.content].concat());
            let (number, kind) = (self.number, self.kind);
            let node = Node { number, kind, place: Some(self.place.clone()) };
            Seen { node, attributes: Attributes::of(&record, 1, self.content.len() as u64) }
        };
        draft.enter(*directory, 1, i64::from(is_directory), self.now);
        Ok(draft.answering(seen))
    }
}

impl Create {
    /// Its rights, in a directory with these.
    fn access_in(&self, parent: Access) -> Access {
        if parent.mode & SET_GROUP == 0 {
            return self.access;
        }
        let inherited = match self.kind {
            Kind::Directory => SET_GROUP,
            _ => 0,
        };
        Access { mode: self.access.mode | inherited, group: parent.group, ..self.access }
    }
}
