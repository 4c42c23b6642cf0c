//! The tree: how a key is found, put in and taken out.
//!
//! ```text
//!            inner       a key k leads to what is at or above k, and below the next key
//!          ┌───┼───┐
//!        leaf leaf leaf  all at one depth
//! ```
//!
//! A page that is full is split in two, from the bottom up. One whose last record was taken out is
//! free, and its parent forgets it; pages that are only half empty are not put together, for that
//! would have two inserts at their border write the same bytes. Leaves do not know their
//! neighbours: a listing comes down from the root again for each of them, and a split touches no
//! third page.

use tyr_types::{Bytes, Result};

use super::header::Roots;
use super::page::{Page, RECORD_HEAD_LEN, RECORD_LEN_MAX, Record, Value, damage};
use super::part;
use super::region::Region;

/// Pages from the root to a leaf: with at least two children each, far more than a map can have.
pub const DEPTH_MAX: usize = 24;

/// An inner page on the way down, and which of its children was gone to.
#[derive(Clone, Debug)]
struct Step {
    page: Page,
    child: usize,
}

/// A tree being worked on.
pub struct Tree<'a> {
    /// The bytes.
    pub region: &'a mut dyn Region,
    /// Where it begins, and which pages there are.
    pub roots: Roots,
}

impl Tree<'_> {
    /// The value of a key.
    ///
    /// # Errors
    /// `Corrupt`, naming the page.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        let (_, leaf) = self.descend(key)?;
        match leaf.find(key) {
            Ok(index) => self.value(&leaf.record(index)).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The value of a record of a leaf.
    ///
    /// # Errors
    /// `Corrupt`, naming the page.
    pub fn value(&mut self, record: &Record) -> Result<Bytes> {
        match &record.value {
            Value::Here(value) => Ok(value.clone()),
            Value::Elsewhere { page, len } => part::read(self.region, &self.roots, *page, *len),
        }
    }

    /// Gives `key` this value.
    ///
    /// # Errors
    /// `QuotaExceeded` when there is no page for it, and nothing has changed; `Corrupt`.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (path, leaf) = self.descend(key)?;
        let found = leaf.find(key);
        let old = found.ok().map(|index| leaf.record(index));
        if let (Ok(index), Some(Value::Here(old))) = (found, old.as_ref().map(|old| &old.value))
            && old.len() == value.len()
        {
            return leaf.overwrite(self.region, index, value);
        }
        let is_here = RECORD_HEAD_LEN + key.len() + value.len() <= RECORD_LEN_MAX;
        let parts = if is_here { 0 } else { part::count(value.len()) };
        self.roots.check_room(self.region, parts + path.len() + 2)?;
        if let Some(Value::Elsewhere { page, len }) = old.map(|old| old.value) {
            part::give_back(self.region, &mut self.roots, page, len)?;
        }
        let value = if is_here {
            Value::Here(Bytes::copy_from_slice(value))
        } else {
            let page = part::write(self.region, &mut self.roots, value)?;
            Value::Elsewhere { page, len: value.len() as u32 }
        };
        let record = Record { key: Bytes::copy_from_slice(key), value };
        match found {
            Ok(index) => self.put(path, &leaf, index, true, record)?,
            Err(index) => self.put(path, &leaf, index, false, record)?,
        }
        self.roots.write(self.region)
    }

    /// Takes `key` out; answers whether it was there.
    ///
    /// # Errors
    /// `Corrupt`, naming the page.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let (path, leaf) = self.descend(key)?;
        let Ok(index) = leaf.find(key) else { return Ok(false) };
        if let Value::Elsewhere { page, len } = leaf.record(index).value {
            part::give_back(self.region, &mut self.roots, page, len)?;
        }
        if leaf.len() > 1 || path.is_empty() {
            leaf.take(self.region, index)?;
        } else {
            self.forget(path, leaf.number)?;
        }
        self.roots.write(self.region)?;
        Ok(true)
    }

    /// The leaf that has what is at or above `key`, and the key that the next leaf begins with.
    ///
    /// # Errors
    /// `Corrupt`, naming the page.
    pub fn leaf_at(&mut self, key: &[u8]) -> Result<(Page, Option<Bytes>)> {
        let (path, leaf) = self.descend(key)?;
        let next =
            |step: &Step| (step.child < step.page.len()).then(|| step.page.record(step.child).key);
        Ok((leaf, path.iter().rev().find_map(next)))
    }

    fn descend(&mut self, key: &[u8]) -> Result<(Vec<Step>, Page)> {
        let mut path = Vec::new();
        let mut number = self.roots.root;
        loop {
            let page = Page::read(self.region, number)?;
            if !page.is_inner {
                return Ok((path, page));
            }
            if path.len() == DEPTH_MAX {
                return Err(damage(number, "the way to it is longer than one can be"));
            }
            let child = page.child_index(key);
            number = self.roots.check(number, page.child(child))?;
            path.push(Step { page, child });
        }
    }

    /// Puts `record` into `page` as number `index`, and splits what is too full, up to the root.
    fn put(
        &mut self,
        mut path: Vec<Step>,
        page: &Page,
        index: usize,
        replaces: bool,
        record: Record,
    ) -> Result<()> {
        if page.has_room(record.len()) {
            return page.put(self.region, index, replaces, &record);
        }
        let fits = page.fits(replaces.then_some(index), record.len());
        let is_last = index == page.len();
        let mut records: Vec<Record> = page.records().collect();
        if replaces {
            records[index] = record;
        } else {
            records.insert(index, record);
        }
        let first = page.is_inner.then_some(page.first);
        if fits {
            return Page::write(self.region, page.number, first, &records);
        }
        // Keys that come in their order leave full pages behind.
        let at = if is_last { records.len() - 1 } else { half(&records) };
        let mut right = records.split_off(at);
        let number = self.roots.take_page(self.region)?;
        let (border, right_first) = if page.is_inner {
            let middle = right.remove(0);
            (middle.key.clone(), Some(page_of(&middle)))
        } else {
            (border(&records[at - 1].key, &right[0].key), None)
        };
        Page::write(self.region, page.number, first, &records)?;
        Page::write(self.region, number, right_first, &right)?;
        let leading = Record::leading(border, number);
        match path.pop() {
            Some(step) => self.put(path, &step.page, step.child, false, leading),
            None => {
                let root = self.roots.take_page(self.region)?;
                self.roots.root = root;
                Page::write(self.region, root, Some(page.number), &[leading])
            }
        }
    }

    /// Frees the page `number`, of which nothing is left, and those above it of which then nothing
    /// is left; `path` leads there.
    fn forget(&mut self, mut path: Vec<Step>, mut number: u32) -> Result<()> {
        loop {
            let Some(Step { page, child }) = path.pop() else {
                return Page::write(self.region, number, None, &[]);
            };
            self.roots.give_page(self.region, number)?;
            if page.len() == 0 {
                number = page.number;
                continue;
            }
            if child == 0 {
                page.write_first(self.region, page.child(1))?;
            }
            page.take(self.region, child.saturating_sub(1))?;
            return self.lower_root();
        }
    }

    /// A root with a single child gives way to it.
    fn lower_root(&mut self) -> Result<()> {
        for _ in 0..DEPTH_MAX {
            let root = Page::read(self.region, self.roots.root)?;
            if !root.is_inner || root.len() > 0 {
                break;
            }
            self.roots.root = self.roots.check(root.number, root.first)?;
            self.roots.give_page(self.region, root.number)?;
        }
        Ok(())
    }
}

/// Where records are split, so that both sides have about as many bytes and at least one record.
fn half(records: &[Record]) -> usize {
    let all: usize = records.iter().map(Record::len).sum();
    let mut before = 0;
    let at = records.iter().position(|record| {
        before += record.len();
        before * 2 >= all
    });
    // What an inner page gives to its parent comes off the right side.
    (at.unwrap_or_default() + 1).clamp(1, records.len().saturating_sub(2).max(1))
}

/// The shortest key that is above `left` and not above `right`.
fn border(left: &[u8], right: &Bytes) -> Bytes {
    let same = left.iter().zip(right.iter()).take_while(|(left, right)| left == right).count();
    right.slice(..(same + 1).min(right.len()))
}

/// The page that a record of an inner page leads to.
fn page_of(record: &Record) -> u32 {
    match &record.value {
        Value::Here(value) => value
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
            .expect("records of inner pages were checked to have four bytes"),
        Value::Elsewhere { page, .. } => *page,
    }
}
