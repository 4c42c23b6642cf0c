//! The sorted key-value map of a blob: a B+ tree of 4 KiB pages in the bytes of a companion blob.
//!
//! ```text
//!   Map ── get, set, remove, next, prefix, clear, header
//!    ├─ header   the first page: where the tree begins, free pages, the header of users
//!    ├─ tree     inner pages and leaves
//!    │   └─ page     slots and records
//!    ├─ part     values that are too long for a leaf
//!    └─ region   byte ranges of a blob
//! ```
//!
//! Pages are ranges of bytes, so versions, snapshots, conflicts, copies and repair are those of
//! blobs, and none of them knows of maps. What an operation reads is the first 20 bytes and the
//! pages on the way to its leaf; what an insert writes stands at [`page`]. Two inserts into
//! different leaves that have room write no byte that the other one writes or reads.
//!
//! Any bytes can be read: damage is an error that names the page, and no walk is longer than a
//! whole tree allows.

mod header;
mod page;
mod part;
mod region;
#[cfg(test)]
mod tests;
mod tree;
mod walk;

use tyr_types::{Bytes, Error, Result};

use crate::limits::{CALL_READ_LEN_MAX, MAP_KEY_LEN_MAX, MAP_LISTED_MAX, MAP_VALUE_LEN_MAX};
use header::Roots;
use page::{PAGE_LEN, Page, RECORD_HEAD_LEN, RECORD_LEN_MAX, damage};
pub use region::Region;
use tree::Tree;
pub use walk::Shape;

/// A key whose value lies in pages of its own fits a leaf.
const _: () = assert!(RECORD_HEAD_LEN + MAP_KEY_LEN_MAX + size_of::<u32>() <= RECORD_LEN_MAX);

/// A key and its value.
pub type Entry = (Bytes, Bytes);

/// A sorted map of keys to values, both bytes, in a region.
pub struct Map<'a> {
    region: &'a mut dyn Region,
}

impl<'a> Map<'a> {
    /// The map in `region`, which is empty where there are no bytes.
    pub fn new(region: &'a mut dyn Region) -> Self {
        Self { region }
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// `InvalidArgument` for a key of no bytes or too many, `Corrupt` where the map is damaged.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        check_key(key)?;
        match self.tree()? {
            Some(mut tree) => tree.get(key),
            None => Ok(None),
        }
    }

    /// Gives `key` this value, whether it has one or not.
    ///
    /// # Errors
    /// `InvalidArgument` for a key or a value that is too long, `QuotaExceeded` when the map is
    /// full, `Corrupt` where it is damaged.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        if value.len() > MAP_VALUE_LEN_MAX {
            return Err(Error::invalid(format!(
                "a value of a map has at most {MAP_VALUE_LEN_MAX} bytes (64 KiB), this one has {}: \
                 put it into the blob, and its place into the map",
                value.len()
            )));
        }
        self.tree_or_new()?.set(key, value)
    }

    /// Takes `key` out; answers whether it was there.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        check_key(key)?;
        match self.tree()? {
            Some(mut tree) => tree.remove(key),
            None => Ok(false),
        }
    }

    /// The first `count` entries above the key `after`, in order; all from the lowest on where
    /// that has no bytes. Fewer come when there are no more, or when they have 4 MiB or more.
    ///
    /// # Errors
    /// `InvalidArgument` when more than 10,000 are wanted, `Corrupt` where the map is damaged.
    pub fn next(&mut self, after: &[u8], count: usize) -> Result<Vec<Entry>> {
        let from = if after.is_empty() { Vec::new() } else { [after, &[0]].concat() };
        self.list(&from, &[], count, true)
    }

    /// The first `count` entries whose keys begin with `prefix` and are above `after`.
    ///
    /// # Errors
    /// As [`Map::next`].
    pub fn prefix(&mut self, prefix: &[u8], after: &[u8], count: usize) -> Result<Vec<Entry>> {
        let above = [after, &[0]].concat();
        let from = if after.is_empty() || above.as_slice() < prefix { prefix } else { &above };
        self.list(from, prefix, count, true)
    }

    /// The first `count` keys from `from` on that begin with `prefix`.
    ///
    /// # Errors
    /// As [`Map::next`].
    pub fn keys(&mut self, from: &[u8], prefix: &[u8], count: usize) -> Result<Vec<Bytes>> {
        let entries = self.list(from, prefix, count, false)?;
        Ok(entries.into_iter().map(|(key, _)| key).collect())
    }

    /// Takes all keys out; the header stays.
    ///
    /// # Errors
    /// Those of the region; a damaged tree is cleared too.
    pub fn clear(&mut self) -> Result<()> {
        if self.region.size()? == 0 {
            return Ok(());
        }
        Page::write(self.region, Roots::first().root, None, &[])?;
        Roots::first().write(self.region)?;
        self.region.truncate(2 * PAGE_LEN as u64)
    }

    /// The header; no bytes where none was set.
    ///
    /// # Errors
    /// `Corrupt` where it is damaged.
    pub fn header(&mut self) -> Result<Bytes> {
        match Roots::read(self.region)? {
            Some(_) => header::read_header(self.region),
            None => Ok(Bytes::new()),
        }
    }

    /// Sets the header.
    ///
    /// # Errors
    /// `InvalidArgument` when it has more than 4,000 bytes.
    pub fn set_header(&mut self, header: &[u8]) -> Result<()> {
        let tree = self.tree_or_new()?;
        header::write_header(tree.region, header)
    }

    /// Looks at every page: that each is reached once, that keys are in order and below their
    /// parents, that all leaves lie at one depth.
    ///
    /// # Errors
    /// `Corrupt`, naming the first page where that is not so.
    pub fn invariants(&mut self) -> Result<Shape> {
        match self.tree()? {
            Some(mut tree) => walk::walk(&mut tree),
            None => Ok(Shape::default()),
        }
    }

    fn tree(&mut self) -> Result<Option<Tree<'_>>> {
        let roots = Roots::read(self.region)?;
        Ok(roots.map(|roots| Tree { region: &mut *self.region, roots }))
    }

    fn tree_or_new(&mut self) -> Result<Tree<'_>> {
        let roots = match Roots::read(self.region)? {
            Some(roots) => roots,
            None => {
                let mut roots = Roots::first();
                roots.write(self.region)?;
                Page::write(self.region, roots.root, None, &[])?;
                roots
            }
        };
        Ok(Tree { region: &mut *self.region, roots })
    }

    fn list(
        &mut self,
        from: &[u8],
        prefix: &[u8],
        count: usize,
        with_values: bool,
    ) -> Result<Vec<Entry>> {
        if count > MAP_LISTED_MAX {
            return Err(Error::invalid(format!(
                "a listing of a map has 0 to {MAP_LISTED_MAX} entries, {count} were asked for: go \
                 on after the last key"
            )));
        }
        let Some(mut tree) = self.tree()? else { return Ok(Vec::new()) };
        let mut entries: Vec<Entry> = Vec::new();
        let (mut from, mut len) = (Bytes::copy_from_slice(from), 0);
        loop {
            let (leaf, next) = tree.leaf_at(&from)?;
            let begin = leaf.find(&from).unwrap_or_else(|index| index);
            for index in begin..leaf.len() {
                let record = leaf.record(index);
                let is_over = entries.len() == count || len >= CALL_READ_LEN_MAX as usize;
                if is_over || !record.key.starts_with(prefix) {
                    return Ok(entries);
                }
                if entries.last().is_some_and(|(before, _)| *before >= record.key) {
                    return Err(damage(leaf.number, "its keys belong elsewhere"));
                }
                let value = if with_values { tree.value(&record)? } else { Bytes::new() };
                len += record.key.len() + value.len();
                entries.push((record.key, value));
            }
            match next {
                Some(next) if next > from => from = next,
                Some(_) => return Err(damage(leaf.number, "what leads to it is in no order")),
                None => return Ok(entries),
            }
        }
    }
}

fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > MAP_KEY_LEN_MAX {
        return Err(Error::invalid(format!(
            "a key of a map has 1 to {MAP_KEY_LEN_MAX} bytes, this one has {}",
            key.len()
        )));
    }
    Ok(())
}
