//! Walks everything the base holds and compares what can be compared.
//!
//! A walk goes on behind whatever it finds. It looks from three sides: each blob at its segments,
//! each segment at its blob, each extent at its owner, its neighbours and its file.

mod pages;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use foldhash::fast::FixedState;
use tyr_types::{BlobName, ByteRange, ExtentRef, KeyspaceId, Result, limits};

use self::pages::PagesMet;
use super::Base;
use super::kept::{HeldPiece, HeldRows, Met};
use super::key::{self, SegmentKeys};
use super::record::{self, BlobEntry, ExtentEntry};
use super::segments::{BLOCK_SIZE, covered};
use super::types::{PieceData, Totals};
use crate::extents::Extents;
use crate::index::Table;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Space is wasted; nothing is lost.
    Warning,
    /// Something is not as it was written.
    Error,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Which file, table or blob.
    pub place: String,
    /// What is wrong with it.
    pub what: String,
}

impl Finding {
    /// A finding of kind error.
    pub fn error(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { severity: Severity::Error, place: place.into(), what: what.into() }
    }

    /// A finding of kind warning.
    pub fn warning(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, place: place.into(), what: what.into() }
    }
}

/// What a walk counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// Blobs that exist.
    pub blobs: u64,
    /// The sum of their sizes.
    pub bytes: u64,
    /// Segments of blobs.
    pub segments: u64,
    /// Extents that blobs refer to.
    pub extents: u64,
}

/// Is told what is found, and now and then how far the walk is.
pub trait Auditor {
    /// Something is wrong.
    fn found(&mut self, finding: Finding);
    /// This share of the work is done, 0 to 1.
    fn progress(&mut self, share: f64);
}

/// What looking at an entry costs, in bytes that could be read meanwhile.
const ENTRY_COST: u64 = 4096;
/// Notes of progress in one walk, at most.
const PROGRESS_STEPS: u64 = 1000;

struct Audit<'a> {
    base: &'a Base,
    auditor: &'a mut dyn Auditor,
    counts: Audited,
    totals: BTreeMap<KeyspaceId, Totals>,
    /// Segments that refer to each extent, by file and position.
    references: HashMap<(u32, u64), u32, FixedState>,
    /// Pages that segments refer to.
    pages: PagesMet,
    buffer: Vec<u8>,
    work: Work,
}

/// How much there is to do, as far as the totals tell, and how much is done.
struct Work {
    all: u64,
    done: u64,
    told: u64,
}

impl Work {
    /// Of blobs, each with its entry and its content; the rest is small beside it.
    fn of(totals: &BTreeMap<KeyspaceId, Totals>) -> Self {
        let cost = |totals: &Totals| totals.blobs.saturating_mul(ENTRY_COST) + totals.bytes / 2;
        Self { all: totals.values().map(cost).fold(1, u64::saturating_add), done: 0, told: 0 }
    }

    /// Counts work; answers the share done when it is worth telling.
    fn count(&mut self, cost: u64) -> Option<f64> {
        self.done = self.done.saturating_add(cost).min(self.all);
        debug_assert!(self.told <= self.done && self.done <= self.all, "a share is 0 to 1");
        let is_worth_it = self.done - self.told > self.all / PROGRESS_STEPS;
        is_worth_it.then(|| {
            self.told = self.done;
            self.done as f64 / self.all as f64
        })
    }
}

impl Base {
    /// Checks every entry, every cross-reference and every checksum of every extent in use.
    /// `in_log` are the extents that only the log refers to.
    pub fn audit(&self, in_log: &[ExtentRef], auditor: &mut dyn Auditor) -> Audited {
        let _alone = self.changing.lock();
        let mut audit = Audit {
            base: self,
            auditor,
            counts: Audited::default(),
            totals: BTreeMap::new(),
            references: HashMap::default(),
            pages: PagesMet::default(),
            buffer: Vec::new(),
            work: Work::of(&self.totals.lock()),
        };
        audit.index_files();
        audit.blobs();
        audit.segments();
        audit.held();
        audit.extents(in_log);
        audit.pages();
        audit.compare_totals();
        audit.auditor.progress(1.0);
        audit.counts
    }
}

impl Audit<'_> {
    fn error(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.auditor.found(Finding::error(place, what));
    }

    fn blob_error(&mut self, blob: &BlobName, what: impl Into<String>) {
        self.error(self.base.blob_title(blob), what);
    }

    /// Inspects a table; damaged values are findings.
    fn walk(&mut self, table: Table, visit: &mut dyn FnMut(&mut Self, &[u8], Bytes)) {
        self.walk_some(table, |_| true, visit);
    }

    /// The same for those keys that are wanted.
    fn walk_some(
        &mut self,
        table: Table,
        is_wanted: impl Fn(&[u8]) -> bool,
        visit: &mut dyn FnMut(&mut Self, &[u8], Bytes),
    ) {
        let base = self.base;
        let mut inspect = |key: &[u8], value: Result<Bytes>| match value {
            _ if !is_wanted(key) => {}
            Ok(value) => visit(self, key, value),
            Err(error) => self.error(base.place(table, key), base.error_text(error)),
        };
        let result = base.index.inspect(table, &mut inspect);
        if let Err(error) = result {
            let what = format!("cannot be read any further: {error}");
            self.error(format!("index table {}", table.name()), what);
        }
    }

    fn index_files(&mut self) {
        let base = self.base;
        let result = base.index.verify(&mut |error| self.error("index", error.to_string()));
        if let Err(error) = result {
            self.error("index", error.to_string());
        }
    }

    fn blobs(&mut self) {
        self.walk(Table::Blobs, &mut |audit, key, value| {
            let Some(blob) = key::blob_name(key) else {
                return audit.error(audit.base.place(Table::Blobs, key), "the key is no blob's");
            };
            match BlobEntry::decode(&value) {
                Some(entry) => audit.blob(&blob, key, &entry),
                None => audit.blob_error(&blob, "its entry makes no sense"),
            }
        });
    }

    fn worked(&mut self, cost: u64) {
        if let Some(share) = self.work.count(cost) {
            self.auditor.progress(share);
        }
    }

    fn blob(&mut self, blob: &BlobName, key: &[u8], entry: &BlobEntry) {
        self.worked(ENTRY_COST);
        // A walk may find what a lookup does not: it goes by other parts of the library's files.
        match self.base.index.get(Table::Blobs, key) {
            Ok(Some(_)) => {}
            Ok(None) => self.blob_error(blob, "a walk finds its entry, a lookup does not"),
            Err(error) => self.blob_error(blob, self.base.error_text(error)),
        }
        if !self.base.keyspaces.read().contains_key(&blob.keyspace) {
            self.blob_error(blob, "there is no such keyspace");
        }
        if !entry.blob.exists {
            return;
        }
        self.counts.blobs += 1;
        self.counts.bytes = self.counts.bytes.wrapping_add(entry.blob.size);
        let totals = self.totals.entry(blob.keyspace).or_default();
        totals.blobs += 1;
        totals.bytes = totals.bytes.wrapping_add(entry.blob.size);
        if entry.blob.content.is_none() {
            self.blob_segments(blob, entry);
        }
    }

    fn blob_segments(&mut self, blob: &BlobName, entry: &BlobEntry) {
        let mut end = 0;
        let mut stored = 0;
        let mut found = Vec::new();
        let base = self.base;
        let mut visit = |offset: u64, segment: PieceData| {
            let range = covered(offset, &segment);
            if range.start < end {
                found.push(format!("its segment at {offset} overlaps the one before, up to {end}"));
            }
            if range.end > entry.blob.size {
                found.push(format!("its segment {range:?} ends behind it, at {}", entry.blob.size));
            }
            end = end.max(range.end);
            stored += range.len();
            found.extend(self.segment(offset, &segment));
            Ok(())
        };
        let all = ByteRange { start: 0, end: u64::MAX };
        let result = base.each_segment(blob, &SegmentKeys::new(blob), all, &mut visit);
        if let Err(error) = result {
            // The sum is not known then, so it is not compared.
            found.push(base.error_text(error));
        } else if stored != entry.stored {
            found
                .push(format!("its segments hold {stored} bytes, its entry says {}", entry.stored));
        }
        for what in found {
            self.blob_error(blob, what);
        }
    }

    /// Checks one segment; answers what is wrong with it.
    fn segment(&mut self, offset: u64, segment: &PieceData) -> Option<String> {
        self.counts.segments += 1;
        self.worked(segment.len() / 2);
        match segment {
            PieceData::Bytes(bytes) => {
                let last = offset + bytes.len() as u64 - 1;
                (offset / BLOCK_SIZE != last / BLOCK_SIZE)
                    .then(|| format!("its inline segment at {offset} crosses a block"))
            }
            PieceData::Extent { extent, skip, len } => {
                *self.references.entry((extent.file, extent.position)).or_default() += 1;
                let entry = match self.base.extent_entry(&key::extent_of(extent)) {
                    Ok(entry) => entry,
                    Err(error) => return Some(self.base.error_text(error)),
                };
                let is_same = entry.is_some_and(|entry| {
                    (entry.len, entry.compressed_len) == (extent.len, extent.compressed_len)
                });
                if !is_same {
                    return Some(format!(
                        "its segment at {offset} refers to {extent:?}, which table extents does \
                         not have"
                    ));
                }
                self.buffer.resize((*len).min(limits::EXTENT_LEN_MAX) as usize, 0);
                let read = self.base.extents.read(extent, *skip, &mut self.buffer);
                read.err().map(|error| error.to_string())
            }
            PieceData::Pages(run) => {
                if !self.pages.meet(run.span()) {
                    return Some(format!(
                        "its segment at {offset} has pages that another has, too"
                    ));
                }
                self.buffer.resize(run.len() as usize, 0);
                let read = self.base.pages.read(run, 0, &mut self.buffer);
                read.err().map(|error| error.to_string())
            }
        }
    }

    /// Segments whose blob does not know of them.
    fn segments(&mut self) {
        let mut last: Option<(BlobName, bool)> = None;
        self.walk(Table::Segments, &mut |audit, key, value| {
            let Some((blob, offset)) = key::segment(key) else {
                return audit
                    .error(audit.base.place(Table::Segments, key), "the key is no segment's");
            };
            if record::decode_segment(&value).is_none() {
                audit.blob_error(&blob, format!("its segment at {offset} makes no sense"));
            }
            if last.as_ref().is_none_or(|(seen, _)| *seen != blob) {
                let entry = audit.base.entry(&key::blob(&blob), &blob);
                // A damaged entry was found before.
                let has_segments = entry.map_or(true, |entry| {
                    entry
                        .is_some_and(|(_, entry)| entry.blob.exists && entry.blob.content.is_none())
                });
                last = Some((blob.clone(), has_segments));
            }
            if last.as_ref().is_some_and(|(_, has_segments)| !has_segments) {
                let what = format!("there is a segment at {offset}, but the blob has none");
                audit.blob_error(&blob, what);
            }
        });
    }

    /// What is held for kept snapshots.
    fn held(&mut self) {
        let (base, mut rows) = (self.base, HeldRows::default());
        self.walk_some(Table::Meta, HeldRows::is_one, &mut |audit, key, value| {
            let entry = |at, blob: &BlobName| base.held_entry(at, blob).ok().flatten();
            match rows.meet(key, &value, entry) {
                Met::Fine => {}
                Met::Wrong(what) => audit.error(base.place(Table::Meta, key), what),
                Met::Piece(blob, offset, piece, what) => {
                    let of_extent = match &piece {
                        HeldPiece::Written(segment) => audit.segment(offset, segment),
                        HeldPiece::Hole(_) => None,
                    };
                    for what in what.into_iter().chain(of_extent) {
                        audit.blob_error(&blob, what);
                    }
                }
            }
        });
        for (at, held, noted) in rows.differing() {
            let what = format!("{held:?} is held for {at}, and {noted:?} is noted");
            self.error("kept snapshots", what);
        }
    }

    fn extents(&mut self, in_log: &[ExtentRef]) {
        let files = match self.base.extents.files() {
            Ok(files) => files,
            Err(error) => return self.error("extents", error.to_string()),
        };
        let lens: BTreeMap<u32, u64> = files.iter().map(|file| (file.number, file.len)).collect();
        let mut needed = BTreeSet::new();
        let mut used = in_log.iter().map(Extents::stored_len).sum();
        let mut end = (0, 0);
        let mut places = Vec::new();
        self.walk(Table::Extents, &mut |audit, key, value| {
            let (Some((file, position)), Some(entry)) =
                (key::extent_place(b"", key), ExtentEntry::decode(&value))
            else {
                return audit
                    .error(audit.base.place(Table::Extents, key), "the entry makes no sense");
            };
            audit.counts.extents += 1;
            let (len, compressed_len) = (entry.len, entry.compressed_len);
            let extent = ExtentRef { file, position, len, compressed_len };
            let here = format!("extent file {file}, byte {position}");
            let stored = Extents::stored_len(&extent);
            used += stored;
            needed.insert(file);
            if (file, position) < end {
                audit.error(&here, "the extent overlaps the one before it");
            }
            end = (file, position.saturating_add(stored));
            if lens.get(&file).is_none_or(|len| *len < end.1) {
                audit.error(&here, format!("the file ends before the extent of {stored} bytes"));
            }
            let shown = audit.references.remove(&(file, position)).unwrap_or(0);
            if shown != entry.segments {
                audit.error(
                    &here,
                    format!(
                        "{} segments of {} are said to refer to it, {shown} do",
                        entry.segments,
                        audit.base.blob_title(&entry.owner)
                    ),
                );
            }
            places.push((file, position, end.1));
        });
        self.headers(lens.keys().copied(), &needed);
        self.dead(&places, &mut used);
        self.leaked(files.len(), used);
    }

    /// Extents are read without the header of their file; one that was begun when the power went
    /// may have lost it, and holds nothing then.
    fn headers(&mut self, files: impl Iterator<Item = u32>, needed: &BTreeSet<u32>) {
        for number in files {
            let Err(error) = self.base.extents.verify_header(number) else { continue };
            let (place, what) = (format!("extent file {number}"), error.to_string());
            self.auditor.found(match needed.contains(&number) {
                true => Finding::error(place, what),
                false => Finding::warning(place, format!("{what}; no blob needs the file")),
            });
        }
    }

    /// What waits to be freed must not be in use: whole extents, that is; parts of one that is in
    /// use lie in it and are shown by no segment, which reading the segments has checked.
    fn dead(&mut self, in_use: &[(u32, u64, u64)], used: &mut u64) {
        let end = key::behind(key::DEAD).expect("the prefix is not the last");
        let mut found = Vec::new();
        let mut visit = |key: &[u8], value: &Bytes| {
            let place = key::extent_place(key::DEAD, key);
            match place.and_then(|place| record::decode_dead(place, value)) {
                Some(extent) => {
                    let next = in_use.partition_point(|(file, start, _)| {
                        (*file, *start) <= (extent.file, extent.position)
                    });
                    let owner = next.checked_sub(1).map(|place| in_use[place]);
                    let is_inside = owner
                        .is_some_and(|(file, _, end)| file == extent.file && extent.position < end);
                    if !is_inside {
                        *used += Extents::stored_len(&extent);
                    }
                }
                None => found.push(format!("key \"{}\" is no extent", key.escape_ascii())),
            }
            Ok(true)
        };
        let result = self.base.index.scan(Table::Meta, key::DEAD, Some(&end), &mut visit);
        found.extend(result.err().map(|error| error.to_string()));
        for what in found {
            self.error("index table meta", what);
        }
    }

    fn leaked(&mut self, files: usize, used: u64) {
        let on_disk = match self.base.extents.disk_bytes() {
            Ok(bytes) => bytes,
            Err(error) => return self.error("extents", error.to_string()),
        };
        // Each file has a header, and its file system rounds up.
        let expected = used + files as u64 * 2 * BLOCK_SIZE;
        if on_disk > expected + expected / 16 {
            let what = format!(
                "{} of {on_disk} bytes belong to nothing; the next opening gives them back",
                on_disk - used
            );
            self.auditor.found(Finding::warning("extents", what));
        }
    }

    fn compare_totals(&mut self) {
        let known = self.base.totals.lock().clone();
        let keyspaces: Vec<KeyspaceId> = self.base.keyspaces.read().keys().copied().collect();
        for keyspace in keyspaces {
            let counted = self.totals.get(&keyspace).copied().unwrap_or_default();
            let noted = known.get(&keyspace).copied().unwrap_or_default();
            if counted != noted {
                self.error(
                    format!("keyspace {}", self.base.keyspace_title(keyspace)),
                    format!(
                        "it is noted to hold {} blobs of {} bytes, but holds {} of {}",
                        noted.blobs, noted.bytes, counted.blobs, counted.bytes
                    ),
                );
            }
        }
    }
}

impl Base {
    /// A place in a table of the index, for messages: a blob's by the blob, where the key is one.
    fn place(&self, table: Table, key: &[u8]) -> String {
        let table_name = table.name();
        let known = match table {
            Table::Blobs => key::blob_name(key).map(|blob| self.blob_title(&blob)),
            Table::Segments => key::segment(key)
                .map(|(blob, offset)| format!("{}, offset {offset}", self.blob_title(&blob))),
            Table::Meta | Table::Extents => None,
        };
        let known = known.unwrap_or_else(|| format!("key \"{}\"", key.escape_ascii()));
        format!("index table {table_name}, {known}")
    }
}
