//! The page files by number: names, headers, and handles kept open.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use foldhash::fast::FixedState;
use parking_lot::RwLock;
use tyr_types::{Error, Result};

use super::run::{self, PAGE_LEN, PageRun};
use crate::disk::{self, Disk, DiskFile, OpenMode};

/// The folder of the page files.
const FOLDER: &str = "pages";

/// How every page file begins.
const MAGIC: &[u8; 8] = b"TYR-PAG\n";
/// The format that this release writes and reads.
const FORMAT_VERSION: u8 = 1;

/// Bytes of a header: how it begins, the format, the file's number, a checksum of these.
const HEADER_LEN: usize = MAGIC.len() + 1 + size_of::<u32>() + size_of::<u32>();

const _: () = assert!(HEADER_LEN <= PAGE_LEN, "a header has a page of its own");

/// Handles kept open; extent files have as many again.
const OPEN_FILES_MAX: usize = 256;

/// The page files of a folder, which is made with the first of them.
pub struct Files {
    disk: Arc<dyn Disk>,
    open: RwLock<HashMap<u32, Arc<dyn DiskFile>, FixedState>>,
}

impl Files {
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, open: RwLock::default() }
    }

    /// Where a file is, for messages.
    pub fn path(&self, number: u32) -> String {
        format!("{}/{}", self.disk.describe(), name(number))
    }

    /// The error of something that the disk refused about a file.
    fn refused(&self, number: u32) -> impl FnOnce(io::Error) -> Error {
        move |error| disk::refusal(self.path(number), error)
    }

    /// The number behind this one.
    pub fn next_number(&self, number: u32) -> Result<u32> {
        number.checked_add(1).filter(|next| *next < u32::MAX).ok_or_else(|| {
            let folder = self.disk.describe();
            Error::unavailable(format!("{folder}/{FOLDER}: all numbers of page files are used"))
        })
    }

    /// The numbers of all files, ascending. Names that are none of ours are passed over.
    pub fn numbers(&self) -> Result<Vec<u32>> {
        let names = match self.disk.list(FOLDER) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                let folder = format!("{}/{FOLDER}", self.disk.describe());
                return Err(disk::refusal(folder, error));
            }
        };
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn get(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.read().get(&number) {
            return Ok(Arc::clone(file));
        }
        let file = match self.disk.open(&name(number), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let text = format!("{}: the file is missing", self.path(number));
                return Err(Error::corrupt(text));
            }
            Err(error) => return Err(self.refused(number)(error)),
        };
        self.check_version(number, &*file)?;
        self.remember(number, &file);
        Ok(file)
    }

    /// The file to write to, made if there is none.
    fn get_or_create(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.read().get(&number) {
            return Ok(Arc::clone(file));
        }
        let make = || {
            self.disk.create_folder(FOLDER)?;
            self.disk.sync_folder("")?;
            let file = self.disk.open(&name(number), OpenMode::CreateOrOpen)?;
            if file.len()? < PAGE_LEN as u64 {
                file.write_at(&header(number), 0)?;
            }
            self.disk.sync_folder(FOLDER)?;
            Ok(file)
        };
        let file = make().map_err(self.refused(number))?;
        self.check_version(number, &*file)?;
        self.remember(number, &file);
        Ok(file)
    }

    /// Pages stand for themselves, so a damaged header is no reason to refuse them; a later format
    /// is.
    fn check_version(&self, number: u32, file: &dyn DiskFile) -> Result<()> {
        let mut found = [0; HEADER_LEN];
        let count = file.read_at(&mut found, 0).map_err(self.refused(number))?;
        let is_whole = count == HEADER_LEN && found[..8] == *MAGIC && is_sealed(&found);
        if is_whole && found[8] > FORMAT_VERSION {
            let format = "a later page format";
            return Err(Error::later_release(self.path(number), format, FORMAT_VERSION));
        }
        Ok(())
    }

    /// Writes whole pages from `first` on, new ones at the end or others; durable after
    /// [`Files::sync`].
    pub fn write(&self, number: u32, first: u32, bytes: &[u8], is_new: bool) -> Result<()> {
        assert!(first > 0 && bytes.len().is_multiple_of(PAGE_LEN), "whole pages behind the header");
        let file = self.get_or_create(number)?;
        if is_new {
            disk::check_room(&*self.disk, self.path(number), bytes.len() as u64)?;
        }
        file.write_at(bytes, position(first)).map_err(self.refused(number))
    }

    pub fn sync(&self, number: u32) -> Result<()> {
        self.get(number)?.sync().map_err(self.refused(number))
    }

    /// Reads all pages of a run, verified.
    pub fn read(&self, run: &PageRun, out: &mut [u8]) -> Result<()> {
        debug_assert_eq!(out.len(), run.count() as usize * PAGE_LEN, "whole pages");
        let file = self.get(run.file)?;
        let count = file.read_at(out, position(run.first)).map_err(self.refused(run.file))?;
        let pages = (run.first..).zip(out.chunks_exact(PAGE_LEN)).zip(run.checksums());
        for ((page, content), checksum) in pages {
            let end = (page - run.first + 1) as usize * PAGE_LEN;
            if count < end || run::checksum(content) != *checksum {
                let (path, start) = (self.path(run.file), position(page));
                return Err(Error::corrupt(format!(
                    "{path}: page {page}, bytes {start} to {}, is damaged",
                    start + PAGE_LEN as u64
                )));
            }
        }
        Ok(())
    }

    pub fn punch(&self, number: u32, first: u32, count: u32) -> Result<()> {
        assert!(first > 0, "the header of page file {number} stays");
        let file = self.get(number)?;
        let len = u64::from(count) * PAGE_LEN as u64;
        file.punch(position(first), len).map_err(self.refused(number))
    }

    /// Ends the file before page `end`, if it is longer.
    pub fn cut(&self, number: u32, end: u32) -> Result<()> {
        assert!(end > 0, "page file {number} keeps its header");
        let file = self.get(number)?;
        let cut = file.len().and_then(|len| match len > position(end) {
            true => file.set_len(position(end)),
            false => Ok(()),
        });
        cut.map_err(self.refused(number))
    }

    /// Removes the file, if it is there.
    pub fn remove(&self, number: u32) -> Result<()> {
        self.open.write().remove(&number);
        match self.disk.remove(&name(number)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.refused(number)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Bytes the file takes on the disk.
    pub fn disk_bytes(&self, number: u32) -> Result<u64> {
        self.get(number)?.disk_bytes().map_err(self.refused(number))
    }

    fn remember(&self, number: u32, file: &Arc<dyn DiskFile>) {
        let mut open = self.open.write();
        if open.len() >= OPEN_FILES_MAX {
            // Any will do: those who read it keep it open until they are done.
            if let Some(victim) = open.keys().next().copied() {
                open.remove(&victim);
            }
        }
        open.insert(number, Arc::clone(file));
        debug_assert!(open.len() <= OPEN_FILES_MAX, "a process has only so many");
    }
}

/// Where a page begins.
fn position(page: u32) -> u64 {
    u64::from(page) * PAGE_LEN as u64
}

/// Page 0 of a file.
fn header(number: u32) -> [u8; PAGE_LEN] {
    let mut page = [0; PAGE_LEN];
    page[..8].copy_from_slice(MAGIC);
    page[8] = FORMAT_VERSION;
    page[9..13].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32c::crc32c(&page[..13]);
    page[13..17].copy_from_slice(&checksum.to_le_bytes());
    page
}

fn is_sealed(header: &[u8; HEADER_LEN]) -> bool {
    let (said, checksum) = header.split_last_chunk().expect("a header has a checksum");
    u32::from_le_bytes(*checksum) == crc32c::crc32c(said)
}

fn name(number: u32) -> String {
    format!("{FOLDER}/{number:08x}.pag")
}

fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".pag")?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    // The last number has no successor, so it is never given.
    (number < u32::MAX && format!("{number:08x}") == digits).then_some(number)
}
