//! What a name stands for, and what is known of a file.

use rustix::io::Errno;
use tyr::Timestamp;

use super::draft::Draft;
use super::known::{Found, Known};
use super::node::{Home, Node};
use super::{Basis, Operation, Plan, Stop};
use crate::error::Error;
use crate::layout::forward::Place;
use crate::layout::key::Blob;
use crate::layout::record::{Entry, IDENTITY_LEN, Kind, RECORD_LEN, Record, Times};

/// What `stat` tells of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number: no other file of this file system has it, ever.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// Rights, set-user, set-group, sticky: twelve bits.
    pub mode: u32,
    /// Its owner.
    pub owner: u32,
    /// Its group.
    pub group: u32,
    /// Names that it has; of a directory 2 and one for each directory in it.
    pub links: u32,
    /// Bytes; of a directory, names in it.
    pub size: u64,
    /// When it was changed, read, made.
    pub times: Times,
    /// Of a device, which.
    pub device: u32,
    /// Of its record: every change of the file makes it another. `None` of a directory, and where
    /// the file was made just now.
    pub version: Option<Timestamp>,
}

impl Attributes {
    /// Of a file's record, and its size.
    pub(crate) fn of(record: &Record, links: u32, size: u64) -> Self {
        let access = record.access;
        Self {
            number: record.identity.number,
            kind: record.identity.kind,
            mode: access.mode,
            owner: access.owner,
            group: access.group,
            links,
            size,
            times: record.times,
            device: record.device,
            version: None,
        }
    }

    /// Of a file that lies in its entry.
    pub(crate) fn of_entry(record: &Record, found: &Found) -> Self {
        let version = Some(found.version);
        Self { version, ..Self::of(record, record.links, found.size - RECORD_LEN as u64) }
    }

    fn at(known: &Known, home: &Home<'_>) -> Plan<Self> {
        let record = home.record();
        let links = match home {
            Home::Directory(header) => {
                u32::try_from(header.subdirectories).unwrap_or(u32::MAX).saturating_add(2)
            }
            Home::Entry(..) | Home::Inode(_) => record.links,
        };
        let version = match home {
            Home::Directory(_) => None,
            Home::Entry(_, _, found) => Some(found.version),
            Home::Inode(record) => {
                known.file(record.identity.number)?.inode.as_ref().map(|(_, version)| *version)
            }
        };
        Ok(Self { version, ..Self::of(record, links, known.size(home)?) })
    }
}

/// A file that was found: where, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The file.
    pub node: Node,
    /// What is known of it.
    pub attributes: Attributes,
}

/// `stat` of a file.
#[derive(Clone, Debug)]
pub struct Inspect {
    /// The file.
    pub node: Node,
}

impl Operation for Inspect {
    type Answer = Attributes;
    const BASIS: Basis = Basis::Versions;

    fn plan(&self, known: &Known) -> Plan<Draft<Attributes>> {
        let home = known.home(&self.node, 0)?;
        Ok(Draft::new().answering(Attributes::at(known, &home)?))
    }
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The name.
    pub place: Place,
}

impl Operation for Lookup {
    type Answer = Seen;
    const BASIS: Basis = Basis::Versions;

    fn plan(&self, known: &Known) -> Plan<Draft<Seen>> {
        let Some((entry, found)) = known.entry(&self.place, 0)? else {
            return Err(no_such(&self.place).into());
        };
        let seen = match entry {
            Entry::File(record) => {
                let attributes = Attributes::of_entry(&record, found);
                let (number, kind) = (attributes.number, attributes.kind);
                Seen { node: Node { number, kind, place: Some(self.place.clone()) }, attributes }
            }
            Entry::Reference(reference) => {
                let node = Node::of_its_own(reference.kind, reference.number);
                let home = match known.home(&node, 0) {
                    // The name was read before it went.
                    Err(Stop::Fail(error)) if error.errno() == Errno::STALE => {
                        return Err(Stop::Again);
                    }
                    home => home?,
                };
                let attributes = Attributes::at(known, &home)?;
                Seen { node, attributes }
            }
        };
        Ok(Draft::new().answering(seen))
    }
}

/// Which file a name stands for, and nothing more of it.
#[derive(Clone, Debug)]
pub struct Resolve {
    /// The name.
    pub place: Place,
}

impl Operation for Resolve {
    type Answer = Node;

    fn plan(&self, known: &Known) -> Plan<Draft<Node>> {
        let Some((entry, found)) = known.entry(&self.place, 0)? else {
            return Err(no_such(&self.place).into());
        };
        let mut draft = Draft::new();
        let blob = Blob::entry(self.place.directory, &self.place.name);
        draft.require_bytes(&blob, 0, &found.bytes[..IDENTITY_LEN]);
        let (kind, number) = (entry.kind(), entry.number());
        let place = match entry {
            Entry::File(_) => Some(self.place.clone()),
            Entry::Reference(_) => None,
        };
        Ok(draft.answering(Node { number, kind, place }))
    }
}

/// What another operation reads, as of any moment: for who may do what.
#[derive(Clone, Debug)]
pub struct Glance<O>(pub O);

impl<O: Operation> Operation for Glance<O> {
    type Answer = O::Answer;
    const BASIS: Basis = Basis::Nothing;

    fn plan(&self, known: &Known) -> Plan<Draft<O::Answer>> {
        self.0.plan(known)
    }
}

/// That there is no such name.
pub fn no_such(place: &Place) -> Error {
    let text = format!("there is no {} in directory {}", place.name, place.directory);
    Error::new(Errno::NOENT, text)
}

/// That there is such a name already.
pub fn exists(place: &Place) -> Error {
    let text = format!("there is a {} in directory {} already", place.name, place.directory);
    Error::new(Errno::EXIST, text)
}
