//! The first page of a map: where its tree begins, which pages are free, and its header.
//!
//! ```text
//!    0  magic      "TYRMAP"
//!    6  version    u8, 1
//!    7  zero
//!    8  root       u32, the page where the tree begins
//!   12  pages      u32, how many there are, with this one
//!   16  free       u32, the first of the free pages, of which each has the next; 0 for none
//!   20  zeros      44
//!   64  length     u32, of the header that users see
//!   68  header
//! 4096
//! ```
//!
//! Every operation reads the first 20 bytes. They are written when pages are taken or given back
//! only, so that inserts into leaves that have room meet in nothing.

use tyr_types::{Bytes, Error, ErrorKind, Result};

use super::page::{PAGE_LEN, PageKind, damage, offset_of, u32_at};
use super::region::Region;
use crate::limits::{MAP_HEADER_LEN_MAX, MAP_PAGES_MAX};

const MAGIC: &[u8; 6] = b"TYRMAP";
const VERSION: u8 = 1;
const VERSION_AT: usize = 6;
const ROOT_AT: usize = 8;
const HEAD_LEN: usize = 20;
const HEADER_AT: usize = 64;

const _: () = assert!(HEADER_AT + 4 + MAP_HEADER_LEN_MAX <= PAGE_LEN);

/// Where the tree begins, and which pages there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// The page where the tree begins.
    pub root: u32,
    /// How many pages there are, with the first.
    pub pages: u32,
    /// The first of the free pages; 0 for none.
    pub free: u32,
    stored: Option<[u8; HEAD_LEN - ROOT_AT]>,
}

impl Roots {
    /// Those of the map in `region`; `None` where nothing was ever put in.
    ///
    /// # Errors
    /// `Corrupt` when the region holds something else, `Unavailable` for a later format.
    pub fn read(region: &mut dyn Region) -> Result<Option<Self>> {
        let bytes = region.read(0, HEAD_LEN)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if bytes.len() < HEAD_LEN || &bytes[..MAGIC.len()] != MAGIC {
            return Err(damage(0, "it is not the first page of a map"));
        }
        if bytes[VERSION_AT] > VERSION {
            let format = format!("format {}", bytes[VERSION_AT]);
            return Err(Error::later_release("the map of a blob", format, VERSION));
        }
        let mut stored = [0; HEAD_LEN - ROOT_AT];
        stored.copy_from_slice(&bytes[ROOT_AT..]);
        let roots = Self {
            root: u32_at(&bytes, ROOT_AT),
            pages: u32_at(&bytes, ROOT_AT + 4),
            free: u32_at(&bytes, ROOT_AT + 8),
            stored: Some(stored),
        };
        let is_whole = bytes[VERSION_AT] == VERSION
            && roots.pages <= MAP_PAGES_MAX
            && (1..roots.pages).contains(&roots.root)
            && roots.free < roots.pages;
        if is_whole { Ok(Some(roots)) } else { Err(damage(0, "what it counts cannot be")) }
    }

    /// Those of a map that has its first page and the page that the tree begins with, a leaf.
    pub fn first() -> Self {
        Self { root: 1, pages: 2, free: 0, stored: None }
    }

    /// Writes what is different.
    ///
    /// # Errors
    /// Those of the region.
    pub fn write(&mut self, region: &mut dyn Region) -> Result<()> {
        let mut bytes = [0; HEAD_LEN - ROOT_AT];
        bytes[..4].copy_from_slice(&self.root.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.pages.to_le_bytes());
        bytes[8..].copy_from_slice(&self.free.to_le_bytes());
        if self.stored.is_none() {
            let mut head = MAGIC.to_vec();
            head.extend_from_slice(&[VERSION, 0]);
            head.extend_from_slice(&bytes);
            region.write(0, &head)?;
        } else if self.stored != Some(bytes) {
            region.write(ROOT_AT as u64, &bytes)?;
        }
        self.stored = Some(bytes);
        Ok(())
    }

    /// Takes a page, for who writes it then.
    ///
    /// # Errors
    /// `QuotaExceeded` when the map has as many as it may have.
    pub fn take_page(&mut self, region: &mut dyn Region) -> Result<u32> {
        if self.free == 0 {
            self.check_room(region, 1)?;
            self.pages += 1;
            return Ok(self.pages - 1);
        }
        let taken = self.free;
        self.free = self.next_free(region, taken)?;
        Ok(taken)
    }

    /// That there are `count` pages to take, before anything is changed.
    ///
    /// # Errors
    /// `QuotaExceeded` when there are not, `Corrupt` when what is said to be free is not.
    pub fn check_room(&self, region: &mut dyn Region, count: usize) -> Result<()> {
        let mut left = (MAP_PAGES_MAX - self.pages) as usize;
        let mut free = self.free;
        while left < count && free != 0 {
            free = self.next_free(region, free)?;
            left += 1;
        }
        if left >= count {
            return Ok(());
        }
        let what = format!(
            "the map of a blob has at most {MAP_PAGES_MAX} pages of 4096 bytes (64 MiB), and this \
             one has none left for the next key: remove keys, or use another blob's map"
        );
        Err(Error::new(ErrorKind::QuotaExceeded, what))
    }

    /// Gives a page back.
    ///
    /// # Errors
    /// Those of the region.
    pub fn give_page(&mut self, region: &mut dyn Region, number: u32) -> Result<()> {
        let mut head = [0; 8];
        head[0] = PageKind::Free.code();
        head[4..].copy_from_slice(&self.free.to_le_bytes());
        region.write(offset_of(number), &head)?;
        self.free = number;
        Ok(())
    }

    /// The free page behind a free page; 0 for none.
    ///
    /// # Errors
    /// `Corrupt` when it is no free page.
    pub fn next_free(&self, region: &mut dyn Region, number: u32) -> Result<u32> {
        let head = region.read(offset_of(number), 8)?;
        if head.len() < 8 || PageKind::of(head[0]) != Some(PageKind::Free) {
            return Err(damage(number, "it is said to be free, and is not"));
        }
        let next = u32_at(&head, 4);
        if next < self.pages { Ok(next) } else { Err(damage(number, "it leads nowhere")) }
    }

    /// That a page leads to `number`, which must be one of this map.
    ///
    /// # Errors
    /// `Corrupt`, naming the page that leads there.
    pub fn check(&self, from: u32, number: u32) -> Result<u32> {
        if (1..self.pages).contains(&number) {
            Ok(number)
        } else {
            Err(damage(from, "it leads to a page that is not there"))
        }
    }
}

/// The header that users see; no bytes where none was set.
///
/// # Errors
/// `Corrupt` when its length cannot be.
pub fn read_header(region: &mut dyn Region) -> Result<Bytes> {
    let stored = region.read(HEADER_AT as u64, 4)?;
    if stored.len() < 4 {
        return Ok(Bytes::new());
    }
    let len = u32_at(&stored, 0) as usize;
    if len > MAP_HEADER_LEN_MAX {
        return Err(damage(0, "its header is longer than one can be"));
    }
    let header = region.read(HEADER_AT as u64 + 4, len)?;
    if header.len() == len { Ok(header) } else { Err(damage(0, "its header is cut off")) }
}

/// Sets the header that users see. The map must have its first page.
///
/// # Errors
/// `InvalidArgument` when it is too long.
pub fn write_header(region: &mut dyn Region, header: &[u8]) -> Result<()> {
    if header.len() > MAP_HEADER_LEN_MAX {
        return Err(Error::invalid(format!(
            "the header of a map has at most {MAP_HEADER_LEN_MAX} bytes, this one has {}",
            header.len()
        )));
    }
    let mut bytes = (header.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    region.write(HEADER_AT as u64, &bytes)
}
