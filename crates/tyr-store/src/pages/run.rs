//! Pages that lie side by side, and the checksums by which they are known.
//!
//! The checksum is not in the page but beside the place that refers to it. So a page is exactly the
//! 4096 bytes that a blob has there, and is written and read without a copy; and what the disk put
//! elsewhere, or never wrote, is noticed like a flipped bit, since other bytes lie there then.

/// Bytes of a page.
pub const PAGE_LEN: usize = 4096;

/// Pages of one run at most.
pub const RUN_PAGES_MAX: usize = 4;

/// Bytes of blobs that up to [`RUN_PAGES_MAX`] pages of a file hold, one after the other; the last
/// may hold less than [`PAGE_LEN`], then zeros follow in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The file's number.
    pub file: u32,
    /// The first page's number in it; page 0 is the file's header.
    pub first: u32,
    len: u32,
    /// The crc32c of each page; zero where there is none.
    checksums: [u32; RUN_PAGES_MAX],
}

/// Pages of a file by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageSpan {
    /// The file's number.
    pub file: u32,
    /// The first page's number in it.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl PageSpan {
    /// Bytes of these pages.
    #[expect(clippy::len_without_is_empty, reason = "there is none without a page")]
    pub fn len(&self) -> usize {
        self.count as usize * PAGE_LEN
    }
}

impl PageRun {
    /// The run of these pages, if there can be one.
    pub fn new(file: u32, first: u32, len: u32, of_pages: &[u32]) -> Option<Self> {
        let count = (len as usize).div_ceil(PAGE_LEN);
        let is_possible = first > 0
            && (1..=RUN_PAGES_MAX).contains(&count)
            && of_pages.len() == count
            && first.checked_add(count as u32).is_some();
        is_possible.then(|| {
            let mut checksums = [0; RUN_PAGES_MAX];
            checksums[..count].copy_from_slice(of_pages);
            Self { file, first, len, checksums }
        })
    }

    /// The number of bytes; at least one.
    #[expect(clippy::len_without_is_empty, reason = "there is none without a byte")]
    pub fn len(&self) -> u64 {
        u64::from(self.len)
    }

    /// The number of pages.
    pub fn count(&self) -> u32 {
        self.len.div_ceil(PAGE_LEN as u32)
    }

    /// Each page's checksum.
    pub fn checksums(&self) -> &[u32] {
        &self.checksums[..self.count() as usize]
    }

    /// Its pages.
    pub fn span(&self) -> PageSpan {
        PageSpan { file: self.file, first: self.first, count: self.count() }
    }

    /// Whether the bytes `from..to` of it are whole pages, so that they are a run, too.
    pub fn is_whole(&self, from: u64, to: u64) -> bool {
        let is_boundary = |at: u64| at.is_multiple_of(PAGE_LEN as u64);
        from < to && is_boundary(from) && (is_boundary(to) || to == self.len())
    }

    /// The bytes `from..to` of it, which must be [whole](Self::is_whole) pages.
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> Self {
        assert!(self.is_whole(from, to) && to <= self.len(), "{from}..{to} of {self:?}");
        let before = (from / PAGE_LEN as u64) as u32;
        let len = (to - from) as u32;
        let count = len.div_ceil(PAGE_LEN as u32) as usize;
        let of_pages = &self.checksums[before as usize..before as usize + count];
        Self::new(self.file, self.first + before, len, of_pages).expect("a part of one is one")
    }
}

/// The checksum of a page.
pub(super) fn checksum(page: &[u8]) -> u32 {
    debug_assert_eq!(page.len(), PAGE_LEN, "what is behind the bytes counts, too: zeros");
    crc32c::crc32c(page)
}
