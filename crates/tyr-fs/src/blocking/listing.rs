//! Listings: names of a directory in the order of their hashes.
//!
//! Where a page ends is a place in that order, which stays where it is whatever is made and removed
//! meanwhile: a name that is there throughout is shown once.

use tyr::Scan;

use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::forward::Place;
use crate::layout::key::{self, Blob, Role, Space};
use crate::layout::name::Name;
use crate::layout::record::{Entry, Kind, RECORD_LEN};
use crate::plan::known::named;
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
    /// What is known of it, where the directory has it: of files that lie in their entries.
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
        let limit = limit.clamp(1, tyr::limits::SCAN_LIMIT_MAX - 1);
        let scan = Scan::new()
            .prefix(key::entries(number))
            .from(key::entries_from(number, cookie.saturating_add(1)))
            .first_bytes(RECORD_LEN as u64)
            .limit(limit + 1);
        let mut scan = Some(scan);
        let mut page = Page::default();
        while let Some(next) = scan.take() {
            let found = self.shared.meta.scan_page(&next)?;
            for entry in &found.entries {
                page.entries.push(directory_entry(number, entry)?);
            }
            scan = next.resumed(&found).filter(|_| is_one_place(&page.entries));
            page.is_end = found.is_end();
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

/// Whether all of them share their place in the order.
fn is_one_place(entries: &[DirectoryEntry]) -> bool {
    entries.first().map(|entry| entry.cookie) == entries.last().map(|entry| entry.cookie)
}

fn directory_entry(directory: u64, entry: &tyr::ScanEntry) -> Result<DirectoryEntry> {
    let blob = Blob { space: Space::Meta, key: entry.key.clone() };
    let Role::Entry(_, name) = blob.parse()? else {
        return Err(Error::damaged(format!("{} is among the names of a directory", entry.key)));
    };
    let cookie = name.hash();
    let (node, attributes) = match named(&blob, Entry::decode(&entry.bytes))? {
        Entry::File(record) => {
            let size = entry.stat.expect("attributes were asked for").size - RECORD_LEN as u64;
            let attributes = Attributes::of(&record, record.links, size);
            let place = Some(Place { directory, name: name.clone() });
            let node = Node { number: attributes.number, kind: attributes.kind, place };
            (node, Some(attributes))
        }
        Entry::Reference(reference) => (Node::of_its_own(reference.kind, reference.number), None),
    };
    debug_assert!(node.kind != Kind::Directory || attributes.is_none(), "it has a header");
    Ok(DirectoryEntry { name, node, attributes, cookie })
}
