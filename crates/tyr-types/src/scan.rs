//! Scans: which blobs of a keyspace are listed, what of each, and the pages that come back (Q2).
//!
//! ```text
//!   prefix, from, to, after ──► a range of keys ──► page ─ resume ─► page ─ resume ─► page, end
//! ```
//!
//! A range of keys is two byte strings. What a page covers ends at such a string too, behind its
//! last key or its last group: so pages join without a gap whoever makes them, and pages of several
//! nodes are [merged](ScanPage::merge) up to where the first of them ends.

use crate::error::{Error, Result};
use crate::id::Key;
use crate::limits;
use crate::operation::Stat;
use crate::range::ByteRange;
use bytes::Bytes;

/// Bytes that an entry or a group counts for besides its key and what was read of it.
const ITEM_LEN: usize = 32;

const _: () = assert!(
    limits::SCAN_RANGE_LEN_MAX as usize + limits::KEY_LEN_MAX + ITEM_LEN <= limits::SCAN_BYTES_MAX,
    "the largest entry fits into a page"
);

/// The least byte string above all that begin with `prefix`; `None` when there is none.
pub fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let len = prefix.iter().rposition(|byte| *byte != 0xFF)? + 1;
    let mut end = prefix[..len].to_vec();
    end[len - 1] += 1;
    debug_assert!(end.as_slice() > prefix && !end.starts_with(prefix), "it is behind all of them");
    Some(end)
}

/// The least byte string behind `key`: the key with a zero byte.
pub fn just_behind(key: &[u8]) -> Vec<u8> {
    [key, b"\0"].concat()
}

/// The keys from `start` on, up to before `end`, in the order of byte strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The lowest of them; empty for the lowest there is. It may be longer than a key.
    pub start: Bytes,
    /// What they come before; `None` for all that follow.
    pub end: Option<Bytes>,
}

impl KeyRange {
    /// Keys that begin with `prefix` and come after `after`.
    pub fn of(prefix: &[u8], after: Option<&[u8]>) -> Self {
        let after = after.map(just_behind).filter(|after| after.as_slice() > prefix);
        let start = after.unwrap_or_else(|| prefix.to_vec());
        Self { start: start.into(), end: behind(prefix).map(Bytes::from) }
    }

    /// Whether the key is one of them.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &*self.start && self.is_before_end(key)
    }

    /// Whether it comes before the end.
    pub fn is_before_end(&self, key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| key < &**end)
    }

    /// Whether there is no such key.
    pub fn is_empty(&self) -> bool {
        !self.is_before_end(&self.start)
    }

    /// Whether every key that is in `other` is in this.
    pub fn covers(&self, other: &Self) -> bool {
        let ends_before = |end: &Bytes| other.end.as_ref().is_some_and(|its| its <= end);
        self.start <= other.start && self.end.as_ref().is_none_or(ends_before)
    }
}

/// What is to be listed of a keyspace (Q2): by default everything, with size and version, in pages
/// of [`limits::SCAN_LIMIT_DEFAULT`].
///
/// ```
/// use tyr_types::Scan;
///
/// let scan = Scan::new().prefix("photos/").delimiter("/").limit(100);
/// scan.validate().unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    prefix: Bytes,
    from: Option<Bytes>,
    to: Option<Bytes>,
    after: Option<Bytes>,
    limit: usize,
    delimiter: Option<Bytes>,
    range: Option<ByteRange>,
    is_keys_only: bool,
}

impl Default for Scan {
    fn default() -> Self {
        Self::new()
    }
}

fn copied(bytes: impl AsRef<[u8]>) -> Bytes {
    Bytes::copy_from_slice(bytes.as_ref())
}

impl Scan {
    /// A scan of everything.
    pub fn new() -> Self {
        Self {
            prefix: Bytes::new(),
            from: None,
            to: None,
            after: None,
            limit: limits::SCAN_LIMIT_DEFAULT,
            delimiter: None,
            range: None,
            is_keys_only: false,
        }
    }

    /// Only keys that begin so.
    #[must_use]
    pub fn prefix(self, prefix: impl AsRef<[u8]>) -> Self {
        Self { prefix: copied(prefix), ..self }
    }

    /// Only this key and those that follow.
    #[must_use]
    pub fn from(self, key: impl AsRef<[u8]>) -> Self {
        Self { from: Some(copied(key)), ..self }
    }

    /// Only keys before this one.
    #[must_use]
    pub fn to(self, key: impl AsRef<[u8]>) -> Self {
        Self { to: Some(copied(key)), ..self }
    }

    /// Only keys that come after this one.
    #[must_use]
    pub fn after(self, key: impl AsRef<[u8]>) -> Self {
        Self { after: Some(copied(key)), ..self }
    }

    /// So many entries and groups a page at most, 1 to [`limits::SCAN_LIMIT_MAX`].
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Keys that have these bytes behind the prefix are not listed one by one: what they begin
    /// with, up to and with the first such bytes, is listed once, as a group. S3 calls it a common
    /// prefix.
    #[must_use]
    pub fn delimiter(self, delimiter: impl AsRef<[u8]>) -> Self {
        Self { delimiter: Some(copied(delimiter)), ..self }
    }

    /// These bytes of each blob too: at most [`limits::SCAN_RANGE_LEN_MAX`] of its first chunk.
    #[must_use]
    pub fn range(self, range: ByteRange) -> Self {
        Self { range: Some(range), ..self }
    }

    /// The first so many bytes of each blob too.
    #[must_use]
    pub fn first_bytes(self, len: u64) -> Self {
        self.range(ByteRange { start: 0, end: len })
    }

    /// Keys without size and version.
    #[must_use]
    pub fn keys_only(self) -> Self {
        Self { is_keys_only: true, ..self }
    }

    /// What the keys begin with.
    pub fn get_prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// How many entries and groups a page has at most.
    pub fn get_limit(&self) -> usize {
        self.limit
    }

    /// What groups end with.
    pub fn get_delimiter(&self) -> Option<&Bytes> {
        self.delimiter.as_ref()
    }

    /// The bytes of each blob that are wanted.
    pub fn get_range(&self) -> Option<ByteRange> {
        self.range
    }

    /// Whether size and version are left out.
    pub fn is_keys_only(&self) -> bool {
        self.is_keys_only
    }

    /// Whether it needs nothing but keys and attributes, one by one: what nodes of any release
    /// list.
    pub fn is_plain(&self) -> bool {
        self.delimiter.is_none() && self.range.is_none()
    }

    /// The keys that it lists.
    pub fn keys(&self) -> KeyRange {
        let after = self.after.as_deref().map(just_behind);
        let starts = [Some(&*self.prefix), self.from.as_deref(), after.as_deref()];
        let start = starts.into_iter().flatten().max().unwrap_or_default();
        let prefix_end = behind(&self.prefix);
        let ends = [self.to.as_deref(), prefix_end.as_deref()];
        let end = ends.into_iter().flatten().min();
        KeyRange { start: copied(start), end: end.map(copied) }
    }

    /// The group that this key is in, if groups are made and it is in one.
    pub fn group_of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let delimiter = self.delimiter.as_deref()?;
        let rest = key.strip_prefix(&*self.prefix)?;
        let at = rest.windows(delimiter.len()).position(|window| window == delimiter)?;
        Some(&key[..self.prefix.len() + at + delimiter.len()])
    }

    /// The scan that goes on where `page` ended; `None` when it was the last.
    pub fn resumed(&self, page: &ScanPage) -> Option<Self> {
        let from = page.resume.clone()?;
        Some(Self { from: Some(from), after: None, ..self.clone() })
    }

    /// Refuses what is out of range.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the field.
    pub fn validate(&self) -> Result<()> {
        let max = limits::KEY_LEN_MAX;
        let named = [
            ("prefix", Some(&self.prefix), 0, max),
            // Where a page ends may be a key with one byte behind it.
            ("from", self.from.as_ref(), 0, max + 1),
            ("to", self.to.as_ref(), 1, max + 1),
            ("after", self.after.as_ref(), 1, max),
            ("delimiter", self.delimiter.as_ref(), 1, limits::SCAN_DELIMITER_LEN_MAX),
        ];
        for (name, bytes, min, max) in named {
            if let Some(len) = bytes.map(Bytes::len).filter(|len| !(min..=max).contains(len)) {
                return Err(Error::invalid(format!(
                    "a scan's {name} is {min} to {max} bytes long, this one has {len}"
                )));
            }
        }
        let starts = [("from", &self.from), ("after", &self.after)];
        for (name, start) in starts {
            if let (Some(start), Some(to)) = (start, &self.to)
                && start > to
            {
                return Err(Error::invalid(format!(
                    "a scan's to comes after its {name}: \"{}\" is above \"{}\"; exchange them",
                    start.escape_ascii(),
                    to.escape_ascii()
                )));
            }
        }
        if !(1..=limits::SCAN_LIMIT_MAX).contains(&self.limit) {
            let (max, limit) = (limits::SCAN_LIMIT_MAX, self.limit);
            return Err(Error::invalid(format!("a scan's limit is 1 to {max}, not {limit}")));
        }
        self.validate_range()
    }

    fn validate_range(&self) -> Result<()> {
        let Some(ByteRange { start, end }) = self.range else { return Ok(()) };
        let max = limits::SCAN_RANGE_LEN_MAX;
        if start >= end || end - start > max {
            return Err(Error::invalid(format!(
                "a scan's range is 1 to {max} bytes of each blob, not bytes {start} to {end}; \
                 read longer ones blob by blob"
            )));
        }
        if self.is_keys_only {
            return Err(Error::invalid(
                "a scan of keys only has no range: leave out one of the two",
            ));
        }
        Ok(())
    }

    /// Refuses a range that is not within the first chunk: the nodes that list have no other.
    ///
    /// # Errors
    /// `InvalidArgument`, with the size of chunks.
    pub fn validate_in(&self, chunk_size: u64) -> Result<()> {
        self.validate()?;
        match self.range.filter(|range| range.end > chunk_size) {
            None => Ok(()),
            Some(range) => Err(Error::invalid(format!(
                "a scan's range lies within the first chunk, which has {chunk_size} bytes here; \
                 bytes {} to {} do not: read them blob by blob",
                range.start, range.end
            ))),
        }
    }
}

/// A blob that is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanEntry {
    /// Its key.
    pub key: Key,
    /// Its size and version; `None` in a scan of keys only.
    pub stat: Option<Stat>,
    /// What it has of the range that was asked for, at that version; empty where none was.
    pub bytes: Bytes,
}

/// What a scan found, up to some place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPage {
    /// The blobs, in order of their keys.
    pub entries: Vec<ScanEntry>,
    /// What the keys of groups begin with, in order. A group is at its place among the entries as
    /// a key would be.
    pub groups: Vec<Bytes>,
    /// From where on to go on; `None` when that was all. [`Scan::resumed`] goes on there.
    pub resume: Option<Bytes>,
}

impl ScanPage {
    /// Whether there is nothing behind it.
    pub fn is_end(&self) -> bool {
        self.resume.is_none()
    }

    /// The pages of several nodes for one scan, no blob of which is listed by two, as one page: up
    /// to where the first of them ended, or it is full.
    #[must_use]
    pub fn merge(pages: Vec<Self>, scan: &Scan) -> Self {
        let horizon = pages.iter().filter_map(|page| page.resume.clone()).min();
        let is_known = |at: &[u8]| horizon.as_ref().is_none_or(|horizon| at < &**horizon);
        let (mut entries, mut groups) = (Vec::new(), Vec::new());
        for page in pages {
            entries.extend(page.entries.into_iter().filter(|it| is_known(it.key.as_bytes())));
            groups.extend(page.groups.into_iter().filter(|it| is_known(it)));
        }
        entries.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        groups.sort_unstable();
        groups.dedup();
        let mut filling = Filling::new(scan);
        let (mut entries, mut groups) = (entries.into_iter().peekable(), groups.into_iter());
        let mut group = groups.next();
        loop {
            let is_entry = match (entries.peek(), &group) {
                (None, None) => return filling.finish(horizon),
                (Some(entry), Some(group)) => entry.key.as_bytes() < &**group,
                (entry, _) => entry.is_some(),
            };
            if filling.is_full() {
                return filling.finish_here();
            }
            match (is_entry, entries.next_if(|_| is_entry)) {
                (true, Some(entry)) => filling.push(entry),
                (true, None) | (false, _) => {
                    filling.push_group(group.take().expect("there is one, for there is no entry"));
                    group = groups.next();
                }
            }
        }
    }
}

/// A page as it fills.
#[derive(Debug)]
pub struct Filling {
    page: ScanPage,
    limit: usize,
    len: usize,
    end: Option<Bytes>,
    /// What is behind its last entry or group; `None` when nothing can be.
    behind: Option<Vec<u8>>,
}

impl Filling {
    /// An empty page of this scan.
    pub fn new(scan: &Scan) -> Self {
        let (page, limit, end) = (ScanPage::default(), scan.limit, scan.keys().end);
        Self { page, limit, len: 0, end, behind: None }
    }

    /// Whether it takes no more, by entries and groups or by bytes.
    pub fn is_full(&self) -> bool {
        let count = self.page.entries.len() + self.page.groups.len();
        count >= self.limit || self.len >= limits::SCAN_BYTES_MAX
    }

    /// A blob more, behind all before.
    pub fn push(&mut self, entry: ScanEntry) {
        debug_assert!(!self.is_full(), "who is full takes no more");
        self.len += ITEM_LEN + entry.key.as_bytes().len() + entry.bytes.len();
        self.behind = Some(just_behind(entry.key.as_bytes()));
        self.page.entries.push(entry);
    }

    /// A group more, behind all before.
    pub fn push_group(&mut self, group: Bytes) {
        debug_assert!(!self.is_full(), "who is full takes no more");
        self.len += ITEM_LEN + group.len();
        self.behind = behind(&group);
        self.page.groups.push(group);
    }

    /// The page, after which there is more behind its last entry or group.
    #[must_use]
    pub fn finish_here(mut self) -> ScanPage {
        let behind = self.behind.take().map(Bytes::from);
        self.finish(behind)
    }

    /// The page, which has everything up to there.
    #[must_use]
    pub fn finish(self, resume: Option<Bytes>) -> ScanPage {
        let is_before = |at: &Bytes| self.end.as_ref().is_none_or(|end| at < end);
        let page = ScanPage { resume: resume.filter(is_before), ..self.page };
        debug_assert!(page.entries.is_sorted_by(|one, next| one.key < next.key), "in order");
        debug_assert!(page.groups.is_sorted_by(|one, next| one < next), "in order, each once");
        page
    }
}

#[cfg(test)]
mod tests;
