//! What a transaction lists: a page of one group at its version, with its own writes laid over it,
//! and the keys that are validated for it (Q3).
//!
//! ```text
//!   page at S ──► own writes in what it covers ──► page ──► the keys up to where it ends
//! ```
//!
//! Sizes after its own writes follow from those that the page has. First bytes do not: of a blob
//! that the transaction writes they are read as any.

use std::collections::BTreeMap;

use tyr_types::scan::Filling;
use tyr_types::{
    BlobName, Bytes, Error, ErrorKind, Key, KeyRange, Listed, PlacedBy, ReadCheck, Result, Scan,
    ScanEntry, ScanPage, Stat, Timestamp,
};

use super::{Keyspace, Transaction};

/// What the transaction's own writes make of a blob: its entry, or that there is none.
type Own = (Key, Option<ScanEntry>);

impl Transaction {
    /// Lists a page of the keys of one group, with sizes and versions, and first bytes if they are
    /// asked for, at one version and with this transaction's own writes. What it shows is validated
    /// at commit: a key that came or went in what it covers, or, unless only keys were listed, a
    /// blob in it that was written is a conflict. That is up to where the page ends.
    /// [`Scan::resumed`] goes on behind it.
    ///
    /// # Errors
    /// `InvalidArgument` where the keys may be of several groups, which the keyspace's
    /// [`PlacedBy`] says, for a delimiter, and beyond 10,000 keys;
    /// `SnapshotTooOld`; `Unavailable` in a cluster of before feature level 13.
    pub fn scan_page(&mut self, keyspace: &Keyspace, scan: &Scan) -> Result<ScanPage> {
        let Some(group) = group(keyspace, scan)? else { return Ok(ScanPage::default()) };
        let (page, at) = self.versions.scan(&keyspace.space, &group, scan)?;
        let mut own = self.own_entries(keyspace, scan, &page);
        if let Some(range) = scan.get_range() {
            for (key, entry) in &mut own {
                *entry = entry_of(key, self.read_part(keyspace, &*key, range))?;
            }
        }
        self.finish_listing(keyspace, group, scan, (page, at), own)
    }

    /// The same, for async code.
    pub(crate) async fn fetch_page(
        &mut self,
        keyspace: &Keyspace,
        scan: &Scan,
    ) -> Result<ScanPage> {
        let Some(group) = group(keyspace, scan)? else { return Ok(ScanPage::default()) };
        let (page, at) = self.versions.fetch_page(&keyspace.space, &group, scan).await?;
        let mut own = self.own_entries(keyspace, scan, &page);
        if let Some(range) = scan.get_range() {
            for (key, entry) in &mut own {
                *entry = entry_of(key, self.fetch_part(keyspace, &*key, range).await)?;
            }
        }
        self.finish_listing(keyspace, group, scan, (page, at), own)
    }

    /// What the transaction makes of the blobs that it writes in what the page covers, without
    /// their bytes.
    fn own_entries(&self, keyspace: &Keyspace, scan: &Scan, page: &ScanPage) -> Vec<Own> {
        let keys = covered(scan, page);
        let written = self.pending.written_in(keyspace.space.info().id, &keys);
        let own = written.map(|written| {
            let key = &written.blob.key;
            let found = page.entries.iter().find(|entry| entry.key == *key);
            let stat = found.map(|entry| entry.stat.unwrap_or(NOT_TOLD));
            let operations = written.operations.iter();
            let size = operations.fold(stat.map(|stat| stat.size), |size, it| it.size_after(size));
            let version = stat.map_or(Timestamp::ZERO, |stat| stat.version);
            let stat = |size| (!scan.is_keys_only()).then_some(Stat { size, version });
            let entry =
                |size| ScanEntry { key: key.clone(), stat: stat(size), bytes: Bytes::new() };
            (key.clone(), size.map(entry))
        });
        own.collect()
    }

    /// Notes what was listed, with the transaction's own writes laid over it.
    fn finish_listing(
        &mut self,
        keyspace: &Keyspace,
        group: BlobName,
        scan: &Scan,
        (page, at): (ScanPage, Timestamp),
        own: Vec<Own>,
    ) -> Result<ScanPage> {
        let found = page.entries.len();
        let page = laid_over(page, own, scan);
        let is_versioned = keyspace.space.info().config.is_multi_versioned;
        let moment = self.moment.as_ref().filter(|_| is_versioned);
        let is_settled = moment.is_some_and(|moment| moment.settles(&group));
        let listed = Listed { keys: covered(scan, &page), is_keys_only: scan.is_keys_only() };
        let check = ReadCheck::of_listing(group, listed, at);
        self.pending.note_listing(check, found, is_settled)?;
        self.is_versioned &= is_versioned;
        Ok(page)
    }
}

/// What a page of keys only has of a blob: that it is there.
const NOT_TOLD: Stat = Stat { size: 0, version: Timestamp::ZERO };

/// The keys of which the page tells whether they are there.
fn covered(scan: &Scan, page: &ScanPage) -> KeyRange {
    let KeyRange { start, end } = scan.keys();
    KeyRange { start, end: page.resume.clone().or(end) }
}

/// The prefix of the group that is listed; `None` when no key is.
fn group(keyspace: &Keyspace, scan: &Scan) -> Result<Option<BlobName>> {
    let info = keyspace.space.info();
    scan.validate_in(info.config.chunk_size)?;
    if scan.get_delimiter().is_some() {
        return Err(Error::invalid(
            "a transaction lists keys one by one: leave out the delimiter, or list in a snapshot",
        ));
    }
    let keys = scan.keys();
    if keys.is_empty() {
        return Ok(None);
    }
    let placed_by = info.config.placed_by;
    if let Some(prefix) = placed_by.group_of(&keys) {
        return keyspace.blob(prefix).map(Some);
    }
    let name = &info.name;
    let what = match placed_by {
        PlacedBy::Key => format!(
            "in keyspace {name} every blob is a group of its own; create one that is placed by a \
             part of the key (placed-by)"
        ),
        PlacedBy::First(_) | PlacedBy::UpTo(_) => {
            format!("keyspace {name} is placed by {placed_by}; give a prefix that says which group")
        }
    };
    Err(Error::invalid(format!(
        "a transaction lists keys of one group: {what}, or list in a snapshot"
    )))
}

/// What reading the first bytes of a blob that the transaction writes says of it.
fn entry_of(key: &Key, read: Result<(Stat, Bytes)>) -> Result<Option<ScanEntry>> {
    match read {
        Ok((stat, bytes)) => Ok(Some(ScanEntry { key: key.clone(), stat: Some(stat), bytes })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The page with these entries in the place of those that it has; up to where it is full.
fn laid_over(page: ScanPage, own: Vec<Own>, scan: &Scan) -> ScanPage {
    if own.is_empty() {
        return page;
    }
    let entries = page.entries.into_iter().map(|entry| (entry.key.clone(), Some(entry)));
    let entries: BTreeMap<Key, Option<ScanEntry>> = entries.chain(own).collect();
    let mut filling = Filling::new(scan);
    for entry in entries.into_values().flatten() {
        if filling.is_full() {
            return filling.finish_here();
        }
        filling.push(entry);
    }
    filling.finish(page.resume)
}
