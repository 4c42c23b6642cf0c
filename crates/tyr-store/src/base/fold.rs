//! Folding: recent operations become the base.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use foldhash::fast::FixedState;
use tyr_types::{BlobName, ByteRange, Error, ExtentRef, KeyspaceId, Result, Timestamp};

use super::dead::bury;
use super::draft::Draft;
use super::free_pages::put_dead_pages;
use super::kept::{Held, Shown, put_held};
use super::key;
use super::record::{self, BlobEntry};
use super::types::{Ahead, BlobBase, BlobChange, PieceData, Totals};
use super::{Base, FORMAT_WITH_PAGES, FORMAT_WITH_PARTS};
use crate::index::{IndexBatch, Table};
use crate::pages::{PageFile, PageSpan};

/// A blob of at most so many bytes lies in its entry as a whole: one lookup reads it.
pub(super) const CONTENT_LEN_MAX: u64 = 1 << 10;

/// Bytes of changes after which a batch is committed. A single blob's changes may be more.
pub(super) const BATCH_LEN: usize = 4 << 20;

const _: () = assert!(CONTENT_LEN_MAX <= super::segments::BLOCK_SIZE, "it may become a segment");

/// What a batch changes.
#[derive(Default)]
pub(super) struct Changes {
    /// Keys and values of the index.
    pub batch: IndexBatch,
    /// Pages that nothing shows any more once it is committed.
    pub dead_pages: Vec<PageSpan>,
}

/// Changes that wait to be committed together.
pub(super) struct Fold<'a> {
    base: &'a Base,
    changes: Changes,
    blobs: HashSet<BlobName, FixedState>,
    totals: BTreeMap<KeyspaceId, Totals>,
    /// What is held for kept moments, where it changes.
    held: BTreeMap<Timestamp, Held>,
    has_new_extents: bool,
    /// Whether small pieces go to pages.
    writes_pages: bool,
}

impl<'a> Fold<'a> {
    /// No changes yet.
    pub fn new(base: &'a Base) -> Self {
        // What a fold before wrote that failed is written over.
        base.pages.rewind();
        base.free_pages.rewind();
        let writes_pages = base.writes_pages.load(Ordering::Relaxed) && !base.is_short_of_room();
        Self {
            base,
            changes: Changes::default(),
            blobs: HashSet::default(),
            totals: BTreeMap::new(),
            held: BTreeMap::new(),
            has_new_extents: false,
            writes_pages,
        }
    }

    /// Commits what waits.
    pub fn commit(&mut self) -> Result<()> {
        if self.has_new_extents {
            // The index must never refer to bytes that a loss of power can take.
            self.base.extents.sync()?;
            self.has_new_extents = false;
        }
        let grown = self.base.pages.flush()?;
        let Changes { mut batch, dead_pages } = std::mem::take(&mut self.changes);
        if batch.is_empty() {
            debug_assert!(grown.is_empty() && dead_pages.is_empty(), "pages change with segments");
            debug_assert!(self.totals.is_empty(), "totals change with blobs, and with them only");
            debug_assert!(self.held.is_empty(), "what is held changes by entries and pieces");
            return Ok(());
        }
        for (keyspace, totals) in &self.totals {
            let key = key::numbered(key::TOTALS, *keyspace);
            batch.put(Table::Meta, key, record::encode_totals(*totals));
        }
        for (at, held) in &self.held {
            put_held(&mut batch, *at, *held);
        }
        let lost = self.base.free_pages.put_taken(&mut batch);
        let mut files = self.base.pages.without(&lost)?;
        for (number, end) in grown {
            self.base.raise_format(&mut batch, FORMAT_WITH_PAGES);
            files.entry(number).or_insert_with(|| self.base.pages.known(number)).end = end;
        }
        put_page_files(&mut batch, &files);
        let number = self.base.index.last_batch() + 1;
        let dead = put_dead_pages(&mut batch, number, dead_pages);
        self.base.index.commit(batch)?;
        self.base.pages.settle(files);
        self.base.free_pages.commit(dead);
        self.base.note_held(std::mem::take(&mut self.held));
        self.base.totals.lock().append(&mut self.totals);
        self.blobs.clear();
        Ok(())
    }

    /// The batch, to put more into it.
    pub fn batch(&mut self) -> &mut IndexBatch {
        &mut self.changes.batch
    }

    /// The batch, and the pages that it lets go of.
    pub fn changes(&mut self) -> &mut Changes {
        &mut self.changes
    }

    /// The base that changes.
    pub fn base(&self) -> &'a Base {
        self.base
    }

    /// How much is held for a moment, to be changed with what is put into the batch.
    pub fn held(&mut self, at: Timestamp) -> &mut Held {
        let base = self.base;
        self.held.entry(at).or_insert_with(|| base.held_at(at))
    }

    /// Adds one blob's change; commits before and after when there is enough.
    pub fn add(&mut self, change: BlobChange) -> Result<()> {
        debug_assert!(
            change.version <= change.folded_at,
            "{}: version {} is not in what was folded up to {}",
            change.blob,
            change.version,
            change.folded_at
        );
        self.settle_held(&change.blob)?;
        if self.changes.batch.bytes() >= BATCH_LEN || !self.blobs.insert(change.blob.clone()) {
            self.commit()?;
            self.blobs.insert(change.blob.clone());
        }
        let Some(is_compressed) = self.base.is_compressed(change.blob.keyspace) else {
            // The keyspace was dropped meanwhile, and the blob with it.
            return self.bury_unowned(&change);
        };
        let key = key::blob(&change.blob);
        let old = self.base.entry(&key, &change.blob)?.map(|(_, entry)| entry);
        if old.as_ref().is_some_and(|old| old.blob.folded_at >= change.folded_at) {
            return Ok(());
        }
        let shown = self.capture(old.as_ref(), &change)?;
        if let Some(below) = change.part {
            self.change_part(key, old, change, below, shown, is_compressed)
        } else if change.exists {
            self.change(key, old, change, shown, is_compressed)
        } else {
            self.delete(key, old, &change, shown)
        }
    }

    fn change(
        &mut self,
        key: Vec<u8>,
        old: Option<BlobEntry>,
        mut change: BlobChange,
        shown: Shown,
        is_compressed: bool,
    ) -> Result<()> {
        check(&mut change)?;
        let kept = change.cut.unwrap_or(u64::MAX).min(change.size);
        let (stored_end, content) = match &old {
            Some(BlobEntry { blob, .. }) if blob.exists => match &blob.content {
                Some(content) => (0, Some(content.slice(..content.len().min(kept as usize)))),
                None => (blob.size, None),
            },
            Some(_) | None => (0, None),
        };
        let BlobChange { blob, size, version, folded_at, holes, pieces, .. } = change;
        let mut draft = self.draft(&blob, stored_end, is_compressed, shown);
        let stored = old.as_ref().map_or(0, |old| old.stored);
        let (exists, ahead) = (true, None);
        let mut after = BlobBase { exists, size, version, folded_at, content: None, ahead };
        let stored_change = if size <= CONTENT_LEN_MAX {
            after.content =
                Some(self.small(&blob, content, kept.min(stored_end), size, &holes, &pieces)?);
            draft.cut(0)?;
            let change = draft.finish(&mut self.changes)?;
            self.bury_extents(&blob, &pieces)?;
            change
        } else {
            draft.cut(kept)?;
            if let Some(content) = content {
                draft.put(vec![(0, PieceData::Bytes(content))])?;
            }
            holes.into_iter().try_for_each(|hole| draft.clear(hole))?;
            draft.put(pieces)?;
            self.has_new_extents |= draft.has_new_extents;
            draft.finish(&mut self.changes)?
        };
        let stored = changed(&blob, stored, stored_change, size)?;
        self.count(blob.keyspace, old.as_ref().map(|old| &old.blob), Some(size));
        self.batch().put(Table::Blobs, key, BlobEntry { blob: after, stored }.encode());
        Ok(())
    }

    /// A draft of a blob that something is written to.
    fn draft<'b>(
        &self,
        blob: &'b BlobName,
        stored_end: u64,
        is_compressed: bool,
        shown: Shown,
    ) -> Draft<'b>
    where
        'a: 'b,
    {
        let mut draft = Draft::new(self.base, blob, stored_end, is_compressed);
        draft.writes_pages = self.writes_pages;
        draft.show(shown);
        draft
    }

    /// Changes the part of a blob that ends at `below`. All else that is said of the blob stays as
    /// it was before the fold, but for how far that is.
    fn change_part(
        &mut self,
        key: Vec<u8>,
        old: Option<BlobEntry>,
        mut change: BlobChange,
        below: u64,
        shown: Shown,
        is_compressed: bool,
    ) -> Result<()> {
        let is_whole = |it: &BlobEntry| it.blob.exists && it.blob.content.is_none();
        let old = old.filter(|it| is_whole(it) && below <= it.blob.size);
        let is_apart = change.cut.is_none() && change.holes.is_empty();
        let (Some(old), true) = (old, is_apart) else {
            let text = format!("{}: a part up to {below} of what is not there", change.blob);
            return Err(Error::invalid(text));
        };
        change.size = below;
        check(&mut change)?;
        let BlobChange { blob, folded_at, pieces, .. } = change;
        let mut draft = self.draft(&blob, old.blob.size, is_compressed, shown);
        draft.put(pieces)?;
        self.has_new_extents |= draft.has_new_extents;
        let stored_change = draft.finish(&mut self.changes)?;
        let stored = changed(&blob, old.stored, stored_change, old.blob.size)?;
        let after = BlobBase { ahead: Some(Ahead { below, at: folded_at }), ..old.blob };
        self.base.raise_format(self.batch(), FORMAT_WITH_PARTS);
        self.batch().put(Table::Blobs, key, BlobEntry { blob: after, stored }.encode());
        Ok(())
    }

    /// The whole content of a small blob after a change.
    fn small(
        &self,
        blob: &BlobName,
        content: Option<Bytes>,
        stored_end: u64,
        size: u64,
        holes: &[ByteRange],
        pieces: &[(u64, PieceData)],
    ) -> Result<Bytes> {
        debug_assert!(size <= CONTENT_LEN_MAX && stored_end <= size);
        let mut all = vec![0; size as usize];
        match content {
            Some(content) => all[..content.len()].copy_from_slice(&content),
            None => {
                let range = ByteRange { start: 0, end: stored_end };
                if !range.is_empty() {
                    self.base.read_segments(blob, range, &mut all[..stored_end as usize])?;
                }
            }
        }
        for hole in holes {
            all[hole.start as usize..hole.end as usize].fill(0);
        }
        for (offset, piece) in pieces {
            let place = *offset as usize..(offset + piece.len()) as usize;
            self.base.copy_segment(piece, 0, &mut all[place])?;
        }
        Ok(all.into())
    }

    fn delete(
        &mut self,
        key: Vec<u8>,
        old: Option<BlobEntry>,
        change: &BlobChange,
        shown: Shown,
    ) -> Result<()> {
        debug_assert_eq!(key, key::blob(&change.blob), "the grave would be another blob's");
        self.forget_content(&change.blob, old.as_ref(), shown)?;
        self.bury_unowned(change)?;
        let blob = BlobBase {
            exists: false,
            size: 0,
            version: change.version,
            folded_at: change.folded_at,
            content: None,
            ahead: None,
        };
        self.batch().put(Table::Blobs, key, BlobEntry { blob, stored: 0 }.encode());
        let grave = key::grave(change.folded_at, &change.blob);
        self.batch().put(Table::Meta, grave, Vec::new());
        Ok(())
    }

    /// Removes a blob without a trace.
    pub fn remove(&mut self, blob: &BlobName, entry: &BlobEntry) -> Result<()> {
        self.forget_content(blob, Some(entry), Shown::new())?;
        self.batch().remove(Table::Blobs, key::blob(blob));
        if self.batch().bytes() >= BATCH_LEN {
            self.commit()?;
        }
        Ok(())
    }

    fn forget_content(
        &mut self,
        blob: &BlobName,
        old: Option<&BlobEntry>,
        shown: Shown,
    ) -> Result<()> {
        let Some(old) = old.filter(|old| old.blob.exists) else { return Ok(()) };
        if old.blob.content.is_none() {
            let mut draft = Draft::new(self.base, blob, old.blob.size, false);
            draft.show(shown);
            draft.cut(0)?;
            draft.finish(&mut self.changes)?;
        }
        self.count(blob.keyspace, Some(&old.blob), None);
        Ok(())
    }

    /// Extents that come with a change and that nothing will show.
    fn bury_unowned(&mut self, change: &BlobChange) -> Result<()> {
        self.bury_extents(&change.blob, &change.pieces)
    }

    fn bury_extents(&mut self, blob: &BlobName, pieces: &[(u64, PieceData)]) -> Result<()> {
        for (_, piece) in pieces {
            let PieceData::Extent { extent, .. } = piece else { continue };
            let owner = self.base.extent_entry(&key::extent_of(extent))?;
            if owner.is_none_or(|entry| entry.owner == *blob) {
                bury(*extent, self.batch());
            }
        }
        Ok(())
    }

    /// Keeps the totals: a blob was `old`, and now has `size` bytes, or is gone.
    fn count(&mut self, keyspace: KeyspaceId, old: Option<&BlobBase>, size: Option<u64>) {
        let base = self.base;
        let known = || base.totals.lock().get(&keyspace).copied().unwrap_or_default();
        let totals = self.totals.entry(keyspace).or_insert_with(known);
        if let Some(old) = old.filter(|old| old.exists) {
            totals.blobs = totals.blobs.wrapping_sub(1);
            totals.bytes = totals.bytes.wrapping_sub(old.size);
        }
        if let Some(size) = size {
            totals.blobs = totals.blobs.wrapping_add(1);
            totals.bytes = totals.bytes.wrapping_add(size);
        }
    }
}

/// How many bytes the segments of a blob of `size` bytes hold after a change.
fn changed(blob: &BlobName, stored: u64, by: i64, size: u64) -> Result<u64> {
    let stored = stored.checked_add_signed(by).filter(|stored| *stored <= size);
    stored.ok_or_else(|| {
        let text = format!("{blob}: its segments hold other bytes than index table blobs says");
        Error::corrupt(text)
    })
}

/// What is known of page files, as changes of the index.
pub(super) fn put_page_files(batch: &mut IndexBatch, files: &BTreeMap<u32, PageFile>) {
    for (number, file) in files {
        batch.put(Table::Meta, key::page_file(*number), record::encode_page_file(*file));
    }
}

/// Orders the pieces and the holes, makes one of holes that touch each other, and checks that those
/// of a kind are disjoint and within the blob.
fn check(change: &mut BlobChange) -> Result<()> {
    let BlobChange { blob, pieces, holes, size, .. } = change;
    pieces.sort_by_key(|(offset, _)| *offset);
    holes.sort_unstable_by_key(|hole| hole.start);
    if let Some(pair) = holes.windows(2).find(|pair| pair[1].start < pair[0].end) {
        return Err(Error::invalid(format!("{blob}: a fold has a hole twice: {pair:?}")));
    }
    if let Some(last) = holes.last().filter(|last| last.end > *size) {
        return Err(Error::invalid(format!(
            "{blob}: a fold to {size} bytes has a hole at {last:?}"
        )));
    }
    holes.dedup_by(|next, hole| {
        let is_touching = hole.end == next.start;
        if is_touching {
            hole.end = next.end;
        }
        is_touching
    });
    let mut end = 0;
    for (offset, piece) in pieces.iter() {
        let range = ByteRange::at(*offset, piece.len())?;
        if range.start < end || range.end > *size {
            return Err(Error::invalid(format!(
                "{blob}: a fold to {size} bytes has a piece at {range:?} behind one that ends at \
                 {end}"
            )));
        }
        match piece {
            PieceData::Bytes(_) => {}
            PieceData::Extent { extent, skip, len } => check_extent(extent, *skip, *len)?,
            PieceData::Pages(run) => {
                let text = format!("{blob}: a fold brings {run:?}, which the base has to write");
                return Err(Error::invalid(text));
            }
        }
        end = range.end;
    }
    Ok(())
}

fn check_extent(extent: &ExtentRef, skip: u32, len: u32) -> Result<()> {
    match skip.checked_add(len) {
        Some(end) if end <= extent.len => Ok(()),
        Some(_) | None => Err(Error::invalid(format!(
            "extent {extent:?} does not hold {len} bytes behind its first {skip}"
        ))),
    }
}
