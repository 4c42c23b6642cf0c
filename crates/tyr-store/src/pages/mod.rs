//! What is written here and there in blobs, in pages of 4096 bytes.
//!
//! ```text
//! pages/00000001.pag   | header | page | page | free | hole | page | ...     full
//! pages/00000002.pag   | header | page | free | page |   <- goes on here when none is free
//! ```
//!
//! A fold writes what changed of a blob's page to another place, and the index refers to it from
//! then on. The page of before is free after the next checkpoint: later folds write there, and what
//! is more than they need is punched out, a file with its last page. So a small write costs its log
//! record and one page, wherever it goes, and nothing is merged or moved later.
//!
//! Which pages of a file are *settled*, and how many of them were given back, stands in the index,
//! in the batch that refers to the pages: what lies behind was written for a batch that never came
//! to be, and is written over. [`run`] is how pages are referred to. Who does, and which are free,
//! is the base's affair.

mod files;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tyr_types::{Error, Result};

use self::files::Files;
pub use self::run::{PAGE_LEN, PageRun, PageSpan, RUN_PAGES_MAX};
use crate::disk::{Blocks, Disk};

/// Pages of a file, its header among them: 1 GiB.
const FILE_PAGES_MAX: u32 = 1 << 18;

/// Bytes written at once.
const WRITE_LEN_MAX: usize = 1 << 20;

const _: () = {
    assert!(WRITE_LEN_MAX.is_multiple_of(PAGE_LEN) && WRITE_LEN_MAX > RUN_PAGES_MAX * PAGE_LEN);
    assert!(FILE_PAGES_MAX as usize > RUN_PAGES_MAX, "a file takes a run at least");
};

/// What is known of a page file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFile {
    /// The number of the first page that is not settled; the header is page 0.
    pub end: u32,
    /// How many of the pages below were given back.
    pub freed: u32,
}

impl PageFile {
    const NEW: Self = Self { end: 1, freed: 0 };

    /// Whether every page of it was given back.
    fn is_spent(&self) -> bool {
        self.freed + 1 == self.end
    }
}

/// Where the next page goes, and what waits to be written.
struct Tail {
    file: u32,
    next: u32,
    /// Pages that are in memory only, side by side, at the beginning of the blocks.
    waiting: PageSpan,
    blocks: Option<Blocks>,
    /// Files that were written and are not synced.
    unsynced: BTreeSet<u32>,
    /// Files that have more pages than the index knows, with the number behind the last.
    grown: BTreeMap<u32, u32>,
}

/// No page.
const NONE: PageSpan = PageSpan { file: 0, first: 0, count: 0 };

/// The page files of a store. Many read; one writes, who folds.
pub struct Pages {
    files: Files,
    settled: Mutex<BTreeMap<u32, PageFile>>,
    tail: Mutex<Tail>,
    file_pages_max: u32,
}

impl Pages {
    /// The page files on `disk`, of which the index says so much.
    pub fn new(disk: Arc<dyn Disk>, settled: BTreeMap<u32, PageFile>) -> Self {
        let (unsynced, grown) = (BTreeSet::new(), BTreeMap::new());
        let tail = Tail { file: 0, next: 0, waiting: NONE, blocks: None, unsynced, grown };
        let pages = Self {
            files: Files::new(disk),
            settled: Mutex::new(settled),
            tail: Mutex::new(tail),
            file_pages_max: FILE_PAGES_MAX,
        };
        pages.rewind();
        pages
    }

    /// The same with shorter files.
    #[cfg(test)]
    pub fn with_file_pages(self, file_pages_max: u32) -> Self {
        Self { file_pages_max, ..self }
    }

    /// Forgets what was written since the last [`Pages::settle`].
    pub fn rewind(&self) {
        let last = self.settled.lock().last_key_value().map(|(number, file)| (*number, file.end));
        let (file, next) = last.unwrap_or((1, PageFile::NEW.end));
        let mut tail = self.tail.lock();
        (tail.file, tail.next, tail.waiting) = (file, next, NONE);
        tail.unsynced.clear();
        tail.grown.clear();
    }

    /// Takes bytes in, at most [`RUN_PAGES_MAX`] pages of them: to a place that is free and has as
    /// many, or else behind the last page. They can be read and are durable after the next
    /// [`Pages::flush`].
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn write(&self, bytes: &[u8], place: Option<PageSpan>) -> Result<PageRun> {
        let count = bytes.len().div_ceil(PAGE_LEN);
        assert!((1..=RUN_PAGES_MAX).contains(&count), "{} bytes are no run", bytes.len());
        let mut tail = self.tail.lock();
        let place = match place {
            Some(place) => place,
            None => self.append(&mut tail, count as u32)?,
        };
        assert_eq!(place.count as usize, count, "a place of another length");
        let PageSpan { file, first, count: before } = tail.waiting;
        let is_next = (file, first + before) == (place.file, place.first);
        if !is_next || tail.waiting.len() + place.len() > WRITE_LEN_MAX {
            self.write_waiting(&mut tail)?;
            tail.waiting = PageSpan { count: 0, ..place };
        }
        let start = tail.waiting.len();
        let blocks = tail.blocks.get_or_insert_with(|| Blocks::zeros(WRITE_LEN_MAX));
        let room = &mut blocks.bytes_mut()[start..start + place.len()];
        room[..bytes.len()].copy_from_slice(bytes);
        room[bytes.len()..].fill(0);
        let mut checksums = [0; RUN_PAGES_MAX];
        for (page, checksum) in room.chunks_exact(PAGE_LEN).zip(&mut checksums) {
            *checksum = run::checksum(page);
        }
        tail.waiting.count += place.count;
        let run = PageRun::new(place.file, place.first, bytes.len() as u32, &checksums[..count]);
        Ok(run.expect("so many pages are a run"))
    }

    /// Places behind the last page, in a new file if they are too many for the last one.
    fn append(&self, tail: &mut Tail, count: u32) -> Result<PageSpan> {
        if tail.next + count > self.file_pages_max {
            tail.file = self.files.next_number(tail.file)?;
            tail.next = PageFile::NEW.end;
        }
        let place = PageSpan { file: tail.file, first: tail.next, count };
        tail.next += count;
        tail.grown.insert(place.file, place.first + count);
        Ok(place)
    }

    /// Writes what waits, if there is something.
    fn write_waiting(&self, tail: &mut Tail) -> Result<()> {
        let PageSpan { file, first, count } = tail.waiting;
        if count == 0 {
            return Ok(());
        }
        let blocks = tail.blocks.as_ref().expect("what waits is in them");
        let is_new = tail.grown.get(&file).is_some_and(|end| first + count == *end);
        self.files.write(file, first, &blocks.bytes()[..tail.waiting.len()], is_new)?;
        tail.waiting = NONE;
        tail.unsynced.insert(file);
        Ok(())
    }

    /// Makes everything that was taken in durable, and answers the files that have more pages for
    /// it, with the number behind the last: the index has to say so in the batch that refers to
    /// them.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn flush(&self) -> Result<BTreeMap<u32, u32>> {
        let mut tail = self.tail.lock();
        self.write_waiting(&mut tail)?;
        std::mem::take(&mut tail.unsynced)
            .into_iter()
            .try_for_each(|file| self.files.sync(file))?;
        Ok(std::mem::take(&mut tail.grown))
    }

    /// What the index says of a file.
    pub fn known(&self, number: u32) -> PageFile {
        self.settled.lock().get(&number).copied().unwrap_or(PageFile::NEW)
    }

    /// The index says so now.
    pub fn settle(&self, files: BTreeMap<u32, PageFile>) {
        self.settled.lock().extend(files);
    }

    /// Reads bytes `skip..skip + out.len()` of a run, verified.
    ///
    /// # Errors
    /// `Corrupt` with file and place when what is there is not what was written; `Unavailable`
    /// when the disk refuses.
    pub fn read(&self, run: &PageRun, skip: u64, out: &mut [u8]) -> Result<()> {
        let end = skip + out.len() as u64;
        debug_assert!(end <= run.len(), "more is asked for than it has");
        let (first, last) = (skip / PAGE_LEN as u64, end.div_ceil(PAGE_LEN as u64));
        let whole = run.slice(first * PAGE_LEN as u64, run.len().min(last * PAGE_LEN as u64));
        if whole.len() == out.len() as u64 && out.len().is_multiple_of(PAGE_LEN) {
            return self.files.read(&whole, out);
        }
        let mut pages = [0; RUN_PAGES_MAX * PAGE_LEN];
        let pages = &mut pages[..whole.count() as usize * PAGE_LEN];
        self.files.read(&whole, pages)?;
        let start = (skip - first * PAGE_LEN as u64) as usize;
        out.copy_from_slice(&pages[start..start + out.len()]);
        Ok(())
    }

    /// Gives the space of free pages back; nobody may read or write them any more. It counts when
    /// the index says what [`Pages::without`] answers. Done again, it does no harm.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn punch(&self, spans: &[PageSpan]) -> Result<()> {
        self.without(spans)?;
        let there = self.numbers()?;
        // Of a file that was lost there is nothing to give back.
        let mut there = spans.iter().filter(|span| there.binary_search(&span.file).is_ok());
        there.try_for_each(|span| self.files.punch(span.file, span.first, span.count))
    }

    /// What is to be noted of the files of pages that are given back; it counts when
    /// [`Pages::settle`] is told so.
    ///
    /// # Errors
    /// `Corrupt` when there never were such pages.
    pub fn without(&self, spans: &[PageSpan]) -> Result<BTreeMap<u32, PageFile>> {
        let settled = self.settled.lock();
        let mut changed = BTreeMap::new();
        for PageSpan { file, first, count } in spans.iter().copied() {
            let Some(known) = settled.get(&file).filter(|known| first + count <= known.end) else {
                return Err(Error::corrupt(format!(
                    "{}: pages {first} to {} are to be given back, and were never written",
                    self.files.path(file),
                    u64::from(first) + u64::from(count)
                )));
            };
            changed.entry(file).or_insert(*known).freed += count;
        }
        Ok(changed)
    }

    /// The numbers of all files that are there, ascending.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn numbers(&self) -> Result<Vec<u32>> {
        self.files.numbers()
    }

    /// Removes the files of which every page was given back, but for the one that is written to.
    /// Answers their numbers: the index has to forget them.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn remove_spent(&self) -> Result<Vec<u32>> {
        let last = self.tail.lock().file;
        let settled = self.settled.lock().clone();
        let spent = settled.iter().filter(|(number, file)| **number < last && file.is_spent());
        let numbers: Vec<u32> = spent.map(|(number, _)| *number).collect();
        numbers.iter().try_for_each(|number| self.files.remove(*number))?;
        Ok(numbers)
    }

    /// The index has forgotten them.
    pub fn forget(&self, numbers: &[u32]) {
        self.settled.lock().retain(|number, _| !numbers.contains(number));
    }

    /// Gives back what lies behind the settled pages, and files of which nothing is settled. Only
    /// before anything is written.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn trim(&self) -> Result<()> {
        let settled = self.settled.lock().clone();
        for number in self.files.numbers()? {
            match settled.get(&number) {
                Some(file) => self.files.cut(number, file.end)?,
                None => self.files.remove(number)?,
            }
        }
        Ok(())
    }

    /// What is known of each file.
    pub fn settled(&self) -> BTreeMap<u32, PageFile> {
        self.settled.lock().clone()
    }

    /// Where a file is, for messages.
    pub fn path(&self, number: u32) -> String {
        self.files.path(number)
    }

    /// Bytes that all page files take on the disk, without their holes.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn disk_bytes(&self) -> Result<u64> {
        self.files.numbers()?.into_iter().map(|number| self.files.disk_bytes(number)).sum()
    }
}

#[cfg(test)]
mod tests;
