//! Listings: names of a directory in the order of their hashes.
//!
//! Where a page ends is a place in that order, which stays where it is whatever is made and removed
//! meanwhile: a name that is there throughout is shown once.

use tyr::Scan;

use super::bundle::NamesPage;
use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::forward::Place;
use crate::layout::key::{self, Blob, Role, Space};
use crate::layout::name::Name;
use crate::layout::record::{Entry, Kind, RECORD_LEN};
use crate::plan::known::{Found, named};
use crate::plan::lookup::Attributes;
use crate::plan::node::Node;
use crate::plan::rights::Permission;

/// A name of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name.
    pub name: Name,
    /// The file.
    pub node: Node,
    /// What is known of it, where the directory has it: of files that lie in their entries. In a
    /// transaction it is asked for file by file, since it must not change then.
    pub attributes: Option<Attributes>,
    /// From where a listing goes on behind this name. Names that share a place in the order go
    /// together: all but the last of them have the place before.
    pub cookie: u64,
}

/// A part of a listing, of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Names.
    pub entries: Vec<DirectoryEntry>,
    /// Whether there are no more.
    pub is_end: bool,
}

impl FileSystem {
    /// Lists names of a directory behind this place, 0 for all: about `limit` of them, 1 to 9,999.
    ///
    /// # Errors
    /// `ENOTDIR`; `ENOENT` when it is gone.
    pub fn list_directory(&self, directory: &Node, cookie: u64, limit: usize) -> Result<Page> {
        let number = directory.require_directory()?;
        self.may(directory, Permission::Read)?;
        let mut is_to_stay = false;
        if self.bundle.is_some() {
            let mut bundle = self.bundle()?;
            // Whoever makes or removes a name writes the header.
            bundle.require_version(&self.shared, &Blob::header(number))?;
            is_to_stay = bundle.is_changing();
        }
        let limit = limit.clamp(1, tyr::limits::SCAN_LIMIT_MAX - 1);
        let mut from = Some(key::entries_from(number, cookie.saturating_add(1)));
        let mut page = Page::default();
        while let Some(next) = from.take() {
            let (entries, behind) = self.scan_names(number, &next, limit + 1)?;
            page.is_end = behind.is_none();
            for (blob, found) in &entries {
                let mut entry = directory_entry(number, blob, found)?;
                entry.attributes = entry.attributes.filter(|_| !is_to_stay);
                page.entries.push(entry);
            }
            from = behind.filter(|_| is_one_place(&page.entries));
        }
        if !page.is_end {
            // The last may have others behind it that share its place.
            let last = page.entries.last().map(|entry| entry.cookie);
            page.entries.retain(|entry| Some(entry.cookie) != last);
        }
        if page.entries.is_empty() && cookie == 0 {
            // An empty directory, or none.
            self.attributes(directory)?;
        }
        for at in 1..page.entries.len() {
            if page.entries[at - 1].cookie == page.entries[at].cookie {
                page.entries[at - 1].cookie -= 1;
            }
        }
        Ok(page)
    }
}

impl FileSystem {
    /// Entries of a directory from this key on, and from where on to go on.
    fn scan_names(&self, directory: u64, from: &[u8], limit: usize) -> Result<NamesPage> {
        if self.bundle.is_some() {
            return self.bundle()?.page(&self.shared, directory, from, limit);
        }
        let scan = Scan::new().prefix(key::entries(directory)).from(from).limit(limit);
        let page = self.shared.meta.scan_page(&scan.first_bytes(RECORD_LEN as u64))?;
        let behind = page.resume.map(|from| from.to_vec());
        let entries = page.entries.into_iter().map(|entry| {
            let (size, version) =
                entry.stat.map(|stat| (stat.size, stat.version)).expect("they were asked for");
            let blob = Blob { space: Space::Meta, key: entry.key };
            (blob, Found { size, version, bytes: entry.bytes })
        });
        Ok((entries.collect(), behind))
    }
}

/// Whether all of them share their place in the order.
fn is_one_place(entries: &[DirectoryEntry]) -> bool {
    entries.first().map(|entry| entry.cookie) == entries.last().map(|entry| entry.cookie)
}

fn directory_entry(directory: u64, blob: &Blob, found: &Found) -> Result<DirectoryEntry> {
    let Role::Entry(_, name) = blob.parse()? else {
        return Err(Error::damaged(format!("{} is among the names of a directory", blob.key)));
    };
    let cookie = name.hash();
    let (node, attributes) = match named(blob, Entry::decode(&found.bytes))? {
        Entry::File(record) => {
            let attributes = Attributes::of_entry(&record, found);
            let place = Some(Place { directory, name: name.clone() });
            let node = Node { number: attributes.number, kind: attributes.kind, place };
            (node, Some(attributes))
        }
        Entry::Reference(reference) => (Node::of_its_own(reference.kind, reference.number), None),
    };
    debug_assert!(node.kind != Kind::Directory || attributes.is_none(), "it has a header");
    Ok(DirectoryEntry { name, node, attributes, cookie })
}
