//! What a disk holds: what readers see, and what would be left without power.
//!
//! Every change of the disk is a value ([`Change`]), and the image is the fold of the changes so
//! far, so that a recorded run can be cut after any change and the power taken away there.
//!
//! A crash keeps all that was synced. Of the rest it keeps what chance decides: each write whole,
//! not at all, up to some sector, or in some of its sectors; each change of a length or name, or
//! none. That is what file systems and disks with volatile caches are allowed to do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::chance::Chance;

/// Bytes that a disk writes whole or not at all.
pub const SECTOR: u64 = 512;
/// Bytes of the unit in which space is taken and given back.
const PAGE: u64 = 4096;

/// A file, under whatever name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// Something done to the content of a file.
#[derive(Clone, Debug)]
pub enum FileChange {
    /// Bytes at an offset.
    Write { offset: u64, bytes: Arc<[u8]> },
    /// A new length.
    SetLen(u64),
    /// Space for a range, which may lie beyond the end.
    Allocate(Range<u64>),
    /// Zeros that take no space.
    Punch(Range<u64>),
}

/// Something done to the names of files.
#[derive(Clone, Debug)]
pub enum NameChange {
    /// A new file.
    Create { name: String, file: FileId },
    /// A name is gone.
    Remove { name: String },
    /// A file has another name. It is that file, whatever else of the names is lost: an entry of a
    /// folder refers to a file, not to a name.
    Rename { from: String, to: String, file: FileId },
    /// A new folder.
    CreateFolder { name: String },
}

/// Something done to the disk.
#[derive(Clone, Debug)]
pub enum Change {
    /// To a file's content.
    File(FileId, FileChange),
    /// To names.
    Name(NameChange),
    /// A file's content became durable.
    Sync(FileId),
    /// A sync of the file failed: what was not synced is lost, although it still reads back.
    FailedSync(FileId),
    /// The names in a folder became durable.
    SyncFolder(String),
}

/// The bytes of a file and which of its pages take space.
#[derive(Clone, Default)]
pub struct Content {
    pub bytes: Vec<u8>,
    pages: BTreeSet<u64>,
}

impl Content {
    fn apply(&mut self, change: &FileChange) {
        match change {
            FileChange::Write { offset, bytes } => self.write(*offset, bytes),
            FileChange::SetLen(len) => {
                self.bytes.resize(*len as usize, 0);
                self.pages.split_off(&len.div_ceil(PAGE));
            }
            FileChange::Allocate(range) => {
                self.extend_to(range.end);
                self.pages.extend(pages_touched(range));
            }
            FileChange::Punch(range) => {
                let end = range.end.min(self.bytes.len() as u64);
                if range.start < end {
                    self.bytes[range.start as usize..end as usize].fill(0);
                }
                for page in range.start.div_ceil(PAGE)..range.end / PAGE {
                    self.pages.remove(&page);
                }
            }
        }
        let end = self.bytes.len() as u64;
        debug_assert!(
            self.pages.last().is_none_or(|page| page * PAGE < end),
            "space is taken beyond the end, {end}"
        );
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let range = offset..offset + bytes.len() as u64;
        self.extend_to(range.end);
        self.bytes[range.start as usize..range.end as usize].copy_from_slice(bytes);
        self.pages.extend(pages_touched(&range));
    }

    fn extend_to(&mut self, len: u64) {
        if (self.bytes.len() as u64) < len {
            self.bytes.resize(len as usize, 0);
        }
    }

    /// Bytes of space it takes.
    pub fn disk_bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Bytes of space it would take beyond what it has to hold `range`.
    pub fn space_missing(&self, range: &Range<u64>) -> u64 {
        pages_touched(range).filter(|page| !self.pages.contains(page)).count() as u64 * PAGE
    }

    /// Some of a change that was never synced.
    fn apply_by_chance(&mut self, change: &FileChange, chance: &mut Chance) {
        let FileChange::Write { offset, bytes } = change else {
            if chance.one_in(2) {
                self.apply(change);
            }
            return;
        };
        let kept = match chance.below(4) {
            0 => return,
            1 => return self.apply(change),
            2 => Some(offset / SECTOR + chance.below(bytes.len() as u64 / SECTOR + 1)),
            _ => None,
        };
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let step = ((SECTOR - at % SECTOR) as usize).min(bytes.len() - done);
            // Up to some sector, or some sectors.
            if kept.map_or_else(|| chance.one_in(2), |first_lost| at / SECTOR < first_lost) {
                self.write(at, &bytes[done..done + step]);
            }
            done += step;
        }
    }
}

fn pages_touched(range: &Range<u64>) -> Range<u64> {
    if range.is_empty() { 0..0 } else { range.start / PAGE..range.end.div_ceil(PAGE) }
}

/// A file: what readers see, what is durable, and what lies between.
#[derive(Clone, Default)]
pub struct FileImage {
    pub current: Content,
    durable: Content,
    unsynced: Vec<FileChange>,
}

/// Names of files and folders.
#[derive(Clone, Default)]
pub struct Names {
    pub files: BTreeMap<String, FileId>,
    pub folders: BTreeSet<String>,
}

impl Names {
    fn apply(&mut self, change: &NameChange) {
        match change {
            NameChange::Create { name, file } => {
                self.files.insert(name.clone(), *file);
            }
            NameChange::Remove { name } => {
                self.files.remove(name);
            }
            NameChange::Rename { from, to, file } => {
                if self.files.get(from) == Some(file) {
                    self.files.remove(from);
                }
                self.files.insert(to.clone(), *file);
            }
            NameChange::CreateFolder { name } => {
                self.folders.insert(name.clone());
            }
        }
    }

    /// Whether `folder` is there; the root always is.
    pub fn has_folder(&self, folder: &str) -> bool {
        folder.is_empty() || self.folders.contains(folder)
    }
}

/// The folder part of a name; `""` is the root.
pub fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A whole disk.
#[derive(Clone, Default)]
pub struct Image {
    pub files: BTreeMap<FileId, FileImage>,
    pub names: Names,
    durable_names: Names,
    unsynced_names: Vec<NameChange>,
}

impl Image {
    /// Does what `change` says. Writing to a removed file is allowed, as everywhere.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::File(id, change) => {
                let file = self.files.entry(*id).or_default();
                file.current.apply(change);
                file.unsynced.push(change.clone());
            }
            Change::Name(change) => {
                if let NameChange::Create { file, .. } = change {
                    self.files.entry(*file).or_default();
                }
                self.names.apply(change);
                self.unsynced_names.push(change.clone());
            }
            Change::Sync(id) => {
                let file = self.files.entry(*id).or_default();
                for change in std::mem::take(&mut file.unsynced) {
                    file.durable.apply(&change);
                }
            }
            Change::FailedSync(id) => self.files.entry(*id).or_default().unsynced.clear(),
            Change::SyncFolder(folder) => self.sync_folder(folder),
        }
    }

    fn sync_folder(&mut self, folder: &str) {
        let is_in = |change: &NameChange| match change {
            NameChange::Create { name, .. }
            | NameChange::Remove { name }
            | NameChange::CreateFolder { name } => folder_of(name) == folder,
            NameChange::Rename { from, to, .. } => {
                folder_of(from) == folder || folder_of(to) == folder
            }
        };
        for change in self.unsynced_names.extract_if(.., |change| is_in(change)) {
            self.durable_names.apply(&change);
        }
    }

    /// What is left when the power goes now.
    pub fn after_power_loss(mut self, chance: &mut Chance) -> Self {
        // The two extremes are the likeliest in life, and the likeliest to be forgotten in code.
        let luck = chance.below(4);
        for file in self.files.values_mut() {
            for change in std::mem::take(&mut file.unsynced) {
                match luck {
                    0 => {}
                    1 => file.durable.apply(&change),
                    _ => file.durable.apply_by_chance(&change, chance),
                }
            }
            file.current = file.durable.clone();
        }
        for change in std::mem::take(&mut self.unsynced_names) {
            if luck == 1 || (luck > 1 && chance.one_in(2)) {
                self.durable_names.apply(&change);
            }
        }
        let durable = &mut self.durable_names;
        // A name whose folder is lost is lost with it.
        let folders = durable.folders.clone();
        let is_reachable = |name: &String| {
            let mut folder = folder_of(name);
            while !folder.is_empty() && folders.contains(folder) {
                folder = folder_of(folder);
            }
            folder.is_empty()
        };
        durable.folders.retain(is_reachable);
        durable.files.retain(|name, _| is_reachable(name));
        self.names = self.durable_names.clone();
        let named: BTreeSet<_> = self.names.files.values().copied().collect();
        self.files.retain(|id, _| named.contains(id));
        assert_eq!(self.files.len(), named.len(), "a name is left of a file that never was");
        self
    }

    /// Changes bytes of a named file, durably, as a failing disk or a stray program would.
    pub fn damage(&mut self, name: &str, how: impl Fn(&mut Vec<u8>)) -> bool {
        let Some(file) = self.names.files.get(name).and_then(|id| self.files.get_mut(id)) else {
            return false;
        };
        how(&mut file.current.bytes);
        file.durable = file.current.clone();
        file.unsynced.clear();
        true
    }

    /// Bytes of space that all files with a name take.
    pub fn disk_bytes(&self) -> u64 {
        let named = self.names.files.values().filter_map(|id| self.files.get(id));
        named.map(|file| file.current.disk_bytes()).sum()
    }
}
