//! The base: what is on disk below the recent operations, as blobs instead of keys and values.
//!
//! ```text
//!   blobs      one entry a blob: size, version, folded_at, and the content of a small one
//!     └ segments   where the bytes of a larger one are: inline, or in an extent
//!         └ extents    which blob an extent belongs to, and how many segments show it
//!   meta       keyspaces, totals, dead extents, tombstones to be forgotten, service metadata;
//!              kept snapshots, and what is held for them
//!   checkpoint     (a file) from where on the log is needed, and what the index held then
//! ```
//!
//! Only folds change the base: [`types`] says what they are given, [`fold`] puts them into batches,
//! [`draft`] works out one blob's segments, [`segments`] finds and reads them, [`dead`] notes what
//! dies, [`checkpoint`] makes it all durable, [`giving`] frees what is dead, [`free_pages`] are
//! written again, [`keyspaces`] are the names above,
//! [`kept`] what stays of earlier moments; [`metadata`] is kept beside all that.
//! [`key`] and [`record`] are the bytes. The base knows nothing of the log's content, of versions
//! in memory, or of who reads which version: whoever folds says what may be forgotten.
//!
//! One change at a time (a lock), any number of readers (none): a reader looks at the blob's entry
//! before and after and begins again when a fold changed it, because then also the extents it was
//! reading may have been freed.

mod audit;
mod checkpoint;
mod dead;
mod draft;
mod fold;
mod free_pages;
mod giving;
mod kept;
mod key;
mod keyspaces;
mod metadata;
mod record;
mod segments;
mod types;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tyr_types::{BlobName, ByteRange, Error, ExtentRef, Key, KeyRange, KeyspaceId, Result};

pub use audit::{Audited, Auditor, Finding, Severity};
pub use checkpoint::{FILE as CHECKPOINT_FILE, synced_batch};
pub use kept::{CopiedVersion, KeptKeys, KeptStretches};
pub use metadata::{MetadataRow, MetadataRows};
pub use types::{Ahead, BlobBase, BlobChange, Checkpoint, PieceData, Totals};

use self::checkpoint::CheckpointRecord;
use self::fold::Fold;
use self::free_pages::FreePages;
use self::kept::Kept;
use self::record::{BlobEntry, ExtentEntry, KeyspaceEntry};
use crate::disk::Disk;
use crate::extents::Extents;
use crate::index::{Index, IndexBatch, Table};
use crate::pages::{PageFile, Pages};

/// Version of the keys and values in the index.
const FORMAT_VERSION: u32 = 5;

/// The format from the first keyspace of groups on.
const FORMAT_WITH_GROUPS: u32 = 2;

/// The format from the first guarded keyspace on.
const FORMAT_WITH_GUARDED: u32 = 3;

/// The format from the first kept snapshot on.
const FORMAT_WITH_KEPT: u32 = 3;

/// The format from the first page on.
const FORMAT_WITH_PAGES: u32 = 4;

/// The format from the first blob on that a fold took in parts.
const FORMAT_WITH_PARTS: u32 = 5;

/// The format of an index that a program of before can read, too.
const FORMAT_VERSION_MIN: u32 = 1;

const _: () = {
    assert!(0 < FORMAT_VERSION_MIN && FORMAT_VERSION_MIN < FORMAT_WITH_GROUPS);
    assert!(FORMAT_WITH_GROUPS < FORMAT_WITH_KEPT && FORMAT_WITH_KEPT < FORMAT_WITH_PAGES);
    assert!(FORMAT_WITH_PAGES < FORMAT_WITH_PARTS && FORMAT_WITH_PARTS == FORMAT_VERSION);
};

/// How often a read begins again because a fold overtook it. Folds of one blob are seconds apart.
const READ_ATTEMPTS_MAX: usize = 16;

/// The blobs on disk.
pub struct Base {
    index: Box<dyn Index>,
    extents: Arc<Extents>,
    pages: Pages,
    /// Whether small pieces may go to pages.
    writes_pages: AtomicBool,
    free_pages: FreePages,
    /// Dead extents, or frames of some, to be given back.
    dead_extents: Mutex<BTreeSet<ExtentRef>>,
    /// Held by whoever gives something back. Locked before `changing`.
    giving: Mutex<()>,
    disk: Arc<dyn Disk>,
    /// Held by whoever changes the base.
    changing: Mutex<()>,
    /// Taken by whoever moves what is held from one kept moment to another; readers of kept
    /// moments share it. Locked behind `changing`.
    moving: RwLock<()>,
    /// The format that the index says it has.
    format: AtomicU32,
    keyspaces: RwLock<BTreeMap<KeyspaceId, KeyspaceEntry>>,
    kept: RwLock<Kept>,
    totals: Mutex<BTreeMap<KeyspaceId, Totals>>,
    checkpoint: Mutex<Checkpoint>,
    /// Extent files below this number were there when the base was opened.
    first_new_file: u32,
    /// Whether there was a checkpoint since: then all is folded that the log had at the opening.
    is_log_folded: AtomicBool,
}

impl Base {
    /// Opens what `index`, `extents` and the checkpoint file on `disk` hold, or begins anew where
    /// all are empty.
    ///
    /// # Errors
    /// `Corrupt` when the three do not fit together: the index lost batches that were synced, or
    /// the checkpoint file is damaged or missing. `Unavailable` when the disk refuses.
    pub fn open(index: Box<dyn Index>, extents: Arc<Extents>, disk: Arc<dyn Disk>) -> Result<Self> {
        let last_batch = index.last_batch();
        let record = match CheckpointRecord::read(&*disk)? {
            Some(record) => record,
            None if last_batch == 0 => {
                let record = CheckpointRecord::default();
                record.write(&*disk)?;
                record
            }
            None => {
                let place = disk.describe();
                return Err(Error::corrupt(format!("{place}/{CHECKPOINT_FILE} is missing")));
            }
        };
        if last_batch < record.batch {
            return Err(Error::corrupt(format!(
                "{}: the index ends with batch {last_batch}, but batch {} was synced",
                disk.describe(),
                record.batch
            )));
        }
        let format = check_format(&*index)?;
        let (keyspaces, totals) = keyspaces::load(&*index)?;
        let kept = Kept::load(&*index)?;
        let pages = Pages::new(Arc::clone(&disk), page_files(&*index)?);
        let free_pages = FreePages::load(&*index)?;
        let last_file = extents.files()?.last().map_or(0, |file| file.number);
        Ok(Self {
            index,
            extents,
            pages,
            writes_pages: AtomicBool::new(true),
            free_pages,
            dead_extents: Mutex::default(),
            giving: Mutex::new(()),
            disk,
            changing: Mutex::new(()),
            moving: RwLock::new(()),
            format: AtomicU32::new(format),
            keyspaces: RwLock::new(keyspaces),
            kept: RwLock::new(kept),
            totals: Mutex::new(totals),
            checkpoint: Mutex::new(record.checkpoint),
            first_new_file: last_file.saturating_add(1),
            is_log_folded: AtomicBool::new(false),
        })
    }

    /// What is known of a blob; `None` when it was never folded, or is gone for good.
    ///
    /// # Errors
    /// `Corrupt` when its entry is damaged.
    pub fn attributes(&self, blob: &BlobName) -> Result<Option<BlobBase>> {
        Ok(self.entry(&key::blob(blob), blob)?.map(|(_, entry)| entry.blob))
    }

    /// Reads `range` of a blob into `out`, which is as long. Holes, and what lies behind the end
    /// or belongs to no blob, are zeros. All bytes are of one state of the blob.
    ///
    /// # Errors
    /// `Corrupt` when bytes are damaged; `Unavailable` when folds keep overtaking the read.
    pub fn read(&self, blob: &BlobName, range: ByteRange, out: &mut [u8]) -> Result<()> {
        assert_eq!(range.len(), out.len() as u64, "a buffer of another length than the range");
        let key = key::blob(blob);
        for _ in 0..READ_ATTEMPTS_MAX {
            let before = self.entry(&key, blob)?;
            let Some((value, entry)) = before.filter(|(_, entry)| entry.blob.exists) else {
                out.fill(0);
                return Ok(());
            };
            if let Some(content) = &entry.blob.content {
                copy_content(content, range, out);
                return Ok(());
            }
            let result = self.read_segments(blob, range, out);
            if self.index.get(Table::Blobs, &key)?.as_ref() == Some(&value) {
                return result;
            }
        }
        let text = format!("{blob} is written faster than it can be read; try again");
        Err(Error::unavailable(text).naming(blob.clone()))
    }

    /// What is stored of `range` of a blob, in order: all else of it is holes. At most `limit`
    /// stretches, the first ones. Of one state of the blob.
    ///
    /// # Errors
    /// As [`Base::read`].
    pub fn stretches(
        &self,
        blob: &BlobName,
        range: ByteRange,
        limit: usize,
    ) -> Result<Vec<ByteRange>> {
        let key = key::blob(blob);
        for _ in 0..READ_ATTEMPTS_MAX {
            let before = self.entry(&key, blob)?;
            let Some((value, entry)) = before.filter(|(_, entry)| entry.blob.exists) else {
                return Ok(Vec::new());
            };
            if let Some(content) = &entry.blob.content {
                let whole = ByteRange { start: 0, end: content.len() as u64 };
                let part = range.intersection(whole);
                return Ok(Some(part).filter(|part| !part.is_empty()).into_iter().collect());
            }
            let result = self.stretches_of_segments(blob, range, limit);
            if self.index.get(Table::Blobs, &key)?.as_ref() == Some(&value) {
                return result;
            }
        }
        let text = format!("{blob} is written faster than it can be read; try again");
        Err(Error::unavailable(text).naming(blob.clone()))
    }

    /// Up to `limit` existing blobs whose keys begin with `prefix` and lie behind `after`, in key
    /// order.
    ///
    /// # Errors
    /// `Corrupt` when an entry is damaged.
    pub fn scan(
        &self,
        keyspace: KeyspaceId,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, BlobBase)>> {
        let keys = KeyRange::of(prefix, after);
        self.scan_those(keyspace, &keys, limit, |blob| blob.exists)
    }

    /// The blobs of a range of keys, with those that are gone and not forgotten.
    ///
    /// # Errors
    /// `Corrupt` when an entry is damaged.
    pub fn scan_traces(
        &self,
        keyspace: KeyspaceId,
        keys: &KeyRange,
        limit: usize,
    ) -> Result<Vec<(Key, BlobBase)>> {
        self.scan_those(keyspace, keys, limit, |_| true)
    }

    fn scan_those(
        &self,
        keyspace: KeyspaceId,
        keys: &KeyRange,
        limit: usize,
        is_wanted: impl Fn(&BlobBase) -> bool,
    ) -> Result<Vec<(Key, BlobBase)>> {
        let mut found = Vec::new();
        if keys.is_empty() {
            return Ok(found);
        }
        let from = key::in_blobs(keyspace, &keys.start);
        let end = match &keys.end {
            Some(end) => Some(key::in_blobs(keyspace, end)),
            None => key::behind(&key::in_blobs(keyspace, b"")),
        };
        let mut visit = |key: &[u8], value: &Bytes| {
            if found.len() < limit {
                let blob = Self::decode_name(key)?;
                let entry = Self::decode_entry(&blob, value)?;
                if is_wanted(&entry.blob) {
                    found.push((blob.key, entry.blob));
                }
            }
            Ok(found.len() < limit)
        };
        self.index.scan(Table::Blobs, &from, end.as_deref(), &mut visit)?;
        debug_assert!(found.len() <= limit, "no more than were asked for");
        debug_assert!(
            found.iter().all(|(key, _)| keys.contains(key.as_bytes())),
            "a scan that goes on meets nothing twice"
        );
        Ok(found)
    }

    /// Puts changes into the base: each blob's entirely or not at all, several in a batch. Changes
    /// of a blob that is folded so far already are skipped, so a fold that failed may be repeated.
    ///
    /// It is durable after the next [`Base::checkpoint`]. The operations behind the changes must be
    /// synced in the log before: otherwise a loss of power could keep a part of a transaction.
    ///
    /// # Errors
    /// `InvalidArgument` when pieces overlap or lie outside their blob; `Corrupt` when what they
    /// change is damaged; `Unavailable` when the disk refuses. Blobs before the failing one may
    /// have been folded.
    pub fn fold(&self, changes: Vec<BlobChange>) -> Result<()> {
        self.fold_those(changes, |_| true).map(drop)
    }

    /// The same for those changes, by their place among all, that are wanted when nobody else
    /// changes the base any more; answers which those were.
    ///
    /// # Errors
    /// As [`Base::fold`].
    pub fn fold_those(
        &self,
        changes: Vec<BlobChange>,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<bool>> {
        let _alone = self.changing.lock();
        let wanted: Vec<bool> = (0..changes.len()).map(is_wanted).collect();
        let mut fold = Fold::new(self);
        for (change, _) in changes.into_iter().zip(&wanted).filter(|(_, is_wanted)| **is_wanted) {
            fold.add(change)?;
        }
        fold.commit()?;
        Ok(wanted)
    }

    /// Whether small pieces go to pages from now on. Where programs of before have to open what a
    /// store holds, they do not.
    pub fn write_pages(&self, may_write: bool) {
        self.writes_pages.store(may_write, Ordering::Relaxed);
    }

    /// The page files.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Lets go of the index, so that its folder can be opened again. What comes later is answered
    /// with `Unavailable`.
    pub fn close(&self) {
        self.index.close();
    }

    /// Bytes of the index on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.index.disk_bytes()
    }

    /// What is in the batch makes the index one of this format, or of a later one: programs that
    /// know only earlier ones say so, rather than misread it.
    fn raise_format(&self, batch: &mut IndexBatch, format: u32) {
        if self.format.fetch_max(format, Ordering::Relaxed).max(format) == format {
            batch.put(Table::Meta, key::FORMAT.to_vec(), record::encode_number(format));
        }
    }

    /// A blob's entry, also as it is stored.
    fn entry(&self, key: &[u8], blob: &BlobName) -> Result<Option<(Bytes, BlobEntry)>> {
        let Some(value) = self.index.get(Table::Blobs, key)? else { return Ok(None) };
        let entry = Self::decode_entry(blob, &value)?;
        Ok(Some((value, entry)))
    }

    fn extent_entry(&self, key: &[u8]) -> Result<Option<ExtentEntry>> {
        let value = self.index.get(Table::Extents, key)?;
        value.map(|value| Self::decode_extent(key, &value)).transpose()
    }

    fn decode_name(key: &[u8]) -> Result<BlobName> {
        key::blob_name(key).ok_or_else(|| {
            Error::corrupt(format!("index table blobs, key \"{}\": no blob", key.escape_ascii()))
        })
    }

    fn decode_entry(blob: &BlobName, value: &Bytes) -> Result<BlobEntry> {
        BlobEntry::decode(value).ok_or_else(|| {
            let text = format!("index table blobs, {blob}: no entry");
            Error::corrupt(text).naming(blob.clone())
        })
    }

    fn decode_extent(key: &[u8], value: &[u8]) -> Result<ExtentEntry> {
        ExtentEntry::decode(value).ok_or_else(|| {
            let key = key.escape_ascii();
            Error::corrupt(format!("index table extents, key \"{key}\": no entry"))
        })
    }
}

/// What the index says of page files.
fn page_files(index: &dyn Index) -> Result<BTreeMap<u32, PageFile>> {
    let mut files = BTreeMap::new();
    let mut visit = |key: &[u8], value: &Bytes| {
        let file = key::page_file_number(key).zip(record::decode_page_file(value));
        let Some((number, file)) = file else {
            let key = key.escape_ascii();
            return Err(Error::corrupt(format!("index table meta, key \"{key}\": no page file")));
        };
        files.insert(number, file);
        Ok(true)
    };
    let (from, to) = (key::PAGE_FILE, key::behind(key::PAGE_FILE));
    index.scan(Table::Meta, from, to.as_deref(), &mut visit)?;
    Ok(files)
}

/// The format of an index that this program can read.
fn check_format(index: &dyn Index) -> Result<u32> {
    if index.last_batch() == 0 {
        let mut batch = IndexBatch::new();
        let version = record::encode_number(FORMAT_VERSION_MIN);
        batch.put(Table::Meta, key::FORMAT.to_vec(), version);
        let number = index.commit(batch)?;
        // By that a later opening tells an index that lost it from one that is new.
        assert_eq!(number, 1, "the format is what the first batch says");
        return Ok(FORMAT_VERSION_MIN);
    }
    let value = index.get(Table::Meta, key::FORMAT)?;
    match value.as_deref().and_then(record::decode_number) {
        Some(version @ FORMAT_VERSION_MIN..=FORMAT_VERSION) => Ok(version),
        Some(version) if version > FORMAT_VERSION => Err(Error::later_release(
            "the index",
            format_args!("index format {version}"),
            FORMAT_VERSION,
        )),
        Some(version) => {
            Err(Error::corrupt(format!("the index has format {version}, which there never was")))
        }
        None => Err(Error::corrupt("the index does not name its format")),
    }
}

/// Copies `range` of a small blob's content; zeros where it ends.
fn copy_content(content: &[u8], range: ByteRange, out: &mut [u8]) {
    debug_assert_eq!(range.len(), out.len() as u64, "a byte of the blob for each of the buffer");
    let whole = ByteRange { start: 0, end: content.len() as u64 };
    let len = range.intersection(whole).len() as usize;
    let (head, tail) = out.split_at_mut(len);
    if len > 0 {
        head.copy_from_slice(&content[range.start as usize..range.start as usize + len]);
    }
    tail.fill(0);
}
