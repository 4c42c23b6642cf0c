//! Listings of directories, a page of keys at a time.
//!
//! ```text
//!   bits 32..63         bits 0..32
//!   0                   1 the directory, 2 the one that it is in
//!   page, from 1 on     how many of its names came before the next
//! ```
//!
//! A place in a listing says the page, and how far into that. Where each page of an open directory
//! begins among the keys is kept for as long as it is open, and the names of the last page, so that
//! a program may go back to any place that it was told.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use fuser::{FileType, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use rustix::io::Errno;
use tyr::Stat;

use super::numbers::File;
use super::path::Directory;
use super::state::Flat;
use crate::error::{Error, Result};
use crate::fuse::GENERATION;
use crate::fuse::answers::bare_attr;

/// Places of what every directory has.
const PLACE_SELF: u64 = 1;
const PLACE_PARENT: u64 = 2;

/// Bits of a place within a page.
const WITHIN_BITS: u32 = 32;

/// What a name in a listing stands for.
pub struct Listed {
    name: OsString,
    file: File,
    /// `None` of a directory.
    stat: Option<Stat>,
}

/// Names of a directory, up to where the next page begins.
#[derive(Default)]
struct Page {
    listed: Vec<Listed>,
    next: Option<Vec<u8>>,
}

/// An open directory.
pub struct Listing {
    directory: Directory,
    /// Where among the keys each page begins that was come to.
    starts: Vec<Vec<u8>>,
    /// The page that was read last, and which one it is.
    page: Option<(usize, Page)>,
}

/// A place in the listing, behind so many names of a page.
fn place_of(page: usize, within: usize) -> u64 {
    (page as u64 + 1) << WITHIN_BITS | within as u64
}

impl Listing {
    pub fn new(directory: Directory) -> Self {
        Self { directory, starts: vec![Vec::new()], page: None }
    }

    /// The page and the names of it that come before a place.
    fn find(&self, place: u64) -> Result<(usize, usize)> {
        if place <= PLACE_PARENT {
            return Ok((0, 0));
        }
        let within = place & ((1 << WITHIN_BITS) - 1);
        let page = (place >> WITHIN_BITS).checked_sub(1).and_then(|it| usize::try_from(it).ok());
        let page = page.filter(|page| *page < self.starts.len());
        let page = page.ok_or_else(|| {
            Error::new(Errno::INVAL, format!("{place} is no place in this listing"))
        })?;
        Ok((page, usize::try_from(within).unwrap_or(usize::MAX)))
    }

    /// A page, read now unless it is that of before.
    fn page(&mut self, flat: &Flat, number: usize) -> Result<&Page> {
        if self.page.as_ref().is_none_or(|(of_before, _)| *of_before != number) {
            let page = flat.page(&self.directory, &self.starts[number])?;
            // Where it is read again the next page begins elsewhere if keys came or went.
            if let Some(next) = &page.next {
                match self.starts.get_mut(number + 1) {
                    Some(start) => start.clone_from(next),
                    None => self.starts.push(next.clone()),
                }
            }
            self.page = Some((number, page));
        }
        Ok(self.page.as_ref().map(|(_, page)| page).expect("it was just read"))
    }

    /// Goes through the names behind a place: `add` takes the place behind each, and answers
    /// whether there was no more room.
    fn fill(
        &mut self,
        flat: &Flat,
        place: u64,
        mut add: impl FnMut(u64, &Listed) -> bool,
    ) -> Result<()> {
        if place <= PLACE_PARENT {
            // From the beginning on it is as it is now.
            self.page = None;
        }
        let (mut number, mut within) = self.find(place)?;
        loop {
            let page = self.page(flat, number)?;
            for (index, listed) in page.listed.iter().enumerate().skip(within) {
                if add(place_of(number, index + 1), listed) {
                    return Ok(());
                }
            }
            if page.next.is_none() {
                return Ok(());
            }
            (number, within) = (number + 1, 0);
        }
    }
}

impl Flat {
    /// Reads a page of a directory: its blobs, and the directories in it.
    fn page(&self, directory: &Directory, from: &[u8]) -> Result<Page> {
        let at = self.made.now();
        let page = self.blobs.list(directory, from)?;
        let next = page.resume.as_deref();
        let mut groups = BTreeSet::new();
        for group in &page.groups {
            let below = Directory::of_group(group);
            self.made.drop_filled(&below, at);
            groups.insert(group.to_vec());
        }
        let made = self.made.children(directory, from, next);
        groups.extend(made.into_iter().map(|it| it.prefix().to_vec()));
        let mut listed = Vec::with_capacity(groups.len() + page.entries.len());
        for entry in page.entries {
            let Some(name) = directory.name_of(entry.key.as_bytes()) else { continue };
            let below = Directory::at(&entry.key);
            if below.as_ref().is_some_and(|it| groups.contains(it.prefix())) {
                continue;
            }
            // Its directory would come on a later page.
            let is_later = |it: &&Directory| next.is_some_and(|next| it.prefix() >= next);
            if let Some(below) = below.as_ref().filter(is_later)
                && self.is_directory(below)?
            {
                continue;
            }
            let name = name.to_owned();
            listed.push(Listed { name, file: File::Blob(entry.key), stat: entry.stat });
        }
        for group in groups {
            if let Some(name) = directory.name_of(&group) {
                let (name, file) = (name.to_owned(), Directory::of_group(&group));
                listed.push(Listed { name, file: File::Directory(file), stat: None });
            }
        }
        Ok(Page { listed, next: page.resume.map(|next| next.to_vec()) })
    }

    /// Fills a page of a listing for the kernel: `add` takes a number, the place behind it, a name
    /// and, of all but the directory itself and its own, what that stands for; and answers whether
    /// there was no more room.
    fn list(
        &self,
        listing: &mut Listing,
        place: u64,
        mut add: impl FnMut(INodeNo, u64, &OsStr, Option<&Listed>) -> bool,
    ) -> Result<()> {
        let directory = listing.directory.clone();
        for (at, name) in [(PLACE_SELF, "."), (PLACE_PARENT, "..")] {
            let around = if at == PLACE_SELF { directory.clone() } else { directory.parent() };
            let number = |around| self.numbers.number_of(&File::Directory(around));
            if place < at && add(number(around), at, OsStr::new(name), None) {
                return Ok(());
            }
        }
        listing.fill(self, place, |at, listed| {
            add(self.numbers.number_of(&listed.file), at, &listed.name, Some(listed))
        })
    }

    /// Names alone.
    pub(super) fn list_names(
        &self,
        listing: &mut Listing,
        place: u64,
        reply: &mut ReplyDirectory,
    ) -> Result<()> {
        self.list(listing, place, |number, at, name, listed| {
            let is_blob = listed.is_some_and(|listed| listed.stat.is_some());
            let kind = if is_blob { FileType::RegularFile } else { FileType::Directory };
            reply.add(number, at, kind, name)
        })
    }

    /// Names with what is known of the files, of which the kernel is told thereby.
    pub(super) fn list_files(
        &self,
        (listing, parent): (&mut Listing, INodeNo),
        place: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<()> {
        let lifetime = self.lifetime();
        self.list(listing, place, |number, at, name, listed| {
            let Some(listed) = listed else {
                let attr = bare_attr(number, FileType::Directory);
                return reply.add(number, at, name, &lifetime, &attr, GENERATION);
            };
            let attr = self.attr(number, listed.stat);
            let is_full = reply.add(number, at, name, &lifetime, &attr, GENERATION);
            if !is_full {
                self.numbers.tell(&listed.file, (parent, name));
            }
            is_full
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_says_the_page_and_how_far_into_it() {
        let mut listing = Listing::new(Directory::root());
        listing.starts.push(b"second".to_vec());
        assert_eq!(listing.find(0).unwrap(), (0, 0));
        assert_eq!(listing.find(PLACE_PARENT).unwrap(), (0, 0));
        assert_eq!(listing.find(place_of(0, 7)).unwrap(), (0, 7));
        assert_eq!(listing.find(place_of(1, 1_000)).unwrap(), (1, 1_000));
        for place in [place_of(2, 0), 7] {
            assert_eq!(listing.find(place).unwrap_err().errno(), Errno::INVAL);
        }
        assert!(place_of(1 << 30, 1).cast_signed() > 0, "the kernel's are signed");
    }
}
