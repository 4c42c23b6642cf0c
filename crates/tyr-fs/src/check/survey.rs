//! Everything there is, gathered from one snapshot.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use tyr::blocking::Snapshot;
use tyr::{Scan, ScanEntry, Timestamp};

use super::Finding;
use crate::blocking::FileSystem;
use crate::error::{Error, Result};
use crate::layout::forward::Place;
use crate::layout::header::Header;
use crate::layout::key::{Blob, NUMBER_MIN, Role, Space};
use crate::layout::orphan;
use crate::layout::record::{Access, Entry, Kind, RECORD_LEN, Record, Reference};
use crate::layout::superblock::Superblock;
use crate::layout::xattrs::Xattrs;
use crate::plan::known::{check_number, named};

/// How often somebody is told how far it is, in blobs.
const STEP: u64 = 1_000;

/// Names of a directory, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub entries: i64,
    pub subdirectories: i64,
}

/// A file that lies in an entry, as far as something else has to fit to it.
#[derive(Clone, Debug)]
pub struct Small {
    pub place: Place,
    pub record: Record,
}

/// An inode and its segments.
#[derive(Debug, Default)]
pub struct Large {
    pub record: Option<Record>,
    /// Their sizes.
    pub segments: BTreeMap<u32, u64>,
}

/// Everything there is.
#[derive(Debug)]
pub struct Survey {
    /// The moment.
    pub at: Timestamp,
    pub has_superblock: bool,
    pub next_number: Option<u64>,
    pub headers: BTreeMap<u64, Header>,
    pub counted: BTreeMap<u64, Counted>,
    /// Names of directories.
    pub directories: BTreeMap<u64, Vec<(Place, Access)>>,
    pub small: BTreeMap<u64, Small>,
    /// Entries of files of which there is another.
    pub twice: Vec<Place>,
    /// Names of files with an inode.
    pub references: BTreeMap<u64, Vec<(Place, Kind)>>,
    pub large: BTreeMap<u64, Large>,
    pub forwards: BTreeMap<u64, Place>,
    pub xattrs: BTreeSet<u64>,
    pub orphans: BTreeSet<u64>,
    pub names: u64,
    pub small_bytes: u64,
    /// What is not what it should be by its key.
    pub unreadable: BTreeSet<Blob>,
    pub findings: Vec<Finding>,
}

impl Survey {
    /// Reads all of a file system.
    pub fn of(files: &FileSystem, progress: &mut dyn FnMut(u64) -> bool) -> Result<Self> {
        let snapshot = files.store().snapshot()?;
        let (mut survey, mut count) = (Self::new(snapshot.version()), 0);
        for space in [Space::Meta, Space::Data] {
            let keyspace = files.keyspace(space);
            let scan = Scan::new().first_bytes(RECORD_LEN as u64);
            for page in snapshot.scan_pages(keyspace, &scan) {
                for entry in page?.entries {
                    let blob = Blob { space, key: entry.key.clone() };
                    if let Err(error) = survey.look(files, &snapshot, &blob, &entry) {
                        match error.errno() {
                            Errno::IO => {
                                survey.find(&blob.key, error.text());
                                survey.unreadable.insert(blob);
                            }
                            _ => return Err(error),
                        }
                    }
                    count += 1;
                    if count % STEP == 0 && !progress(count) {
                        return Err(Error::new(Errno::INTR, "the check was stopped"));
                    }
                }
            }
        }
        progress(count);
        Ok(survey)
    }

    fn new(at: Timestamp) -> Self {
        Self {
            at,
            has_superblock: false,
            next_number: None,
            headers: BTreeMap::new(),
            counted: BTreeMap::new(),
            directories: BTreeMap::new(),
            small: BTreeMap::new(),
            twice: Vec::new(),
            references: BTreeMap::new(),
            large: BTreeMap::new(),
            forwards: BTreeMap::new(),
            xattrs: BTreeSet::new(),
            orphans: BTreeSet::new(),
            names: 0,
            small_bytes: 0,
            unreadable: BTreeSet::new(),
            findings: Vec::new(),
        }
    }

    /// The highest number that a file has.
    pub fn highest(&self) -> u64 {
        let numbers = [
            self.headers.last_key_value().map(|(number, _)| *number),
            self.small.last_key_value().map(|(number, _)| *number),
            self.large.last_key_value().map(|(number, _)| *number),
            Some(NUMBER_MIN - 1),
        ];
        numbers.into_iter().flatten().max().unwrap_or(0)
    }

    /// Something is not as it has to be.
    pub fn find(&mut self, place: impl ToString, text: impl Into<String>) {
        self.findings.push(Finding { place: place.to_string(), text: text.into() });
    }

    fn look(
        &mut self,
        files: &FileSystem,
        snapshot: &Snapshot,
        blob: &Blob,
        entry: &ScanEntry,
    ) -> Result<()> {
        let size = entry.stat.expect("attributes were asked for").size;
        let bytes = &entry.bytes;
        match blob.parse()? {
            Role::Superblock => {
                Superblock::decode(bytes)?;
                self.has_superblock = true;
            }
            Role::NextNumber => {
                let number = bytes.as_ref().try_into();
                let number = number.map_err(|_| Error::damaged("it is no number"));
                self.next_number = Some(u64::from_le_bytes(named(blob, number)?));
            }
            Role::Session(_) | Role::SessionChanges => {}
            Role::Orphan(number) => {
                named(blob, orphan::decode(bytes))?;
                self.orphans.insert(number);
            }
            Role::Header(directory) => {
                let header = named(blob, Header::decode(bytes))?;
                check_number(blob, directory, header.record.identity.number)?;
                self.headers.insert(directory, header);
            }
            Role::Entry(directory, name) => {
                let counted = self.counted.entry(directory).or_default();
                counted.entries += 1;
                let entry = named(blob, Entry::decode(bytes))?;
                counted.subdirectories += i64::from(entry.kind() == Kind::Directory);
                self.look_at_entry(blob, Place { directory, name }, entry, size)?;
            }
            Role::Inode(number) => {
                let record = named(blob, Record::decode(bytes))?;
                check_number(blob, number, record.identity.number)?;
                if !record.identity.flags.has_xattrs {
                    named(blob, Xattrs::decode(&record.body[..]))?;
                }
                self.large.entry(number).or_default().record = Some(record);
            }
            Role::Content(number, segment) => {
                self.large.entry(number).or_default().segments.insert(segment, size);
            }
            Role::Forward(number) => {
                self.forwards.insert(number, named(blob, Place::decode(bytes))?);
            }
            Role::Xattrs(number) => {
                self.xattrs.insert(number);
                let all = snapshot.get(files.keyspace(Space::Data), &blob.key)?;
                named(blob, Xattrs::decode(&all))?;
            }
        }
        Ok(())
    }

    fn look_at_entry(&mut self, blob: &Blob, place: Place, entry: Entry, size: u64) -> Result<()> {
        match entry {
            Entry::Reference(Reference { kind: Kind::Directory, number, access }) => {
                self.directories.entry(number).or_default().push((place, access));
            }
            Entry::Reference(Reference { kind, number, .. }) => {
                self.names += 1;
                self.references.entry(number).or_default().push((place, kind));
            }
            Entry::File(record) => {
                self.names += 1;
                self.small_bytes += size - RECORD_LEN as u64;
                let flags = record.identity.flags;
                if !flags.has_xattrs {
                    named(blob, Xattrs::decode(&record.body[..]))?;
                }
                let number = record.identity.number;
                let small = Small { place: place.clone(), record };
                if let Some(other) = self.small.insert(number, small) {
                    self.twice.push(other.place.clone());
                    let text = format!(
                        "lies in two entries: {} in directory {}, {} in directory {}",
                        other.place.name, other.place.directory, place.name, place.directory
                    );
                    self.find(format!("file {number}"), text);
                }
            }
        }
        Ok(())
    }
}
