//! Listings: keys in order, page by page.

use tyr::{Bytes, Error, Key, Keyspace, ScanEntry, ScanPage, Stat, Timestamp};

use super::blob::tyr_stat;
use super::error::tyr_error;
use super::memory::{put, tyr_slice, wanted};
use super::options::tyr_scan;
use super::store::tyr_keyspace;
use super::{call, free, hand_out, of};
use crate::failure::Failure;
use crate::object::Page;

/// A page of a listing. Free it.
pub struct tyr_page {
    _private: (),
}

/// A blob that is listed. Its slices are the page's, and good until that is freed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_entry {
    /// Its key.
    pub key: tyr_slice,
    /// Its size and version; zeros where only keys are listed.
    pub stat: tyr_stat,
    /// Its first bytes, if they were asked for.
    pub bytes: tyr_slice,
}

/// Lists a page of a keyspace, all of one moment. `scan` may be NULL: everything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_scan_page(
    keyspace: *mut tyr_keyspace,
    scan: *const tyr_scan,
    page: *mut *mut tyr_page,
) -> *mut tyr_error {
    call(|| {
        wanted(page, "page")?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let found = keyspace.as_blocking().scan_page(&tyr_scan::scan(scan)?)?;
        put(page, hand_out(Page(found))?);
        Ok(())
    })
}

/// How many blobs it lists; 0 for what is no page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_page_len(page: *const tyr_page) -> usize {
    count(page, |page| page.0.entries.len())
}

/// How many groups it lists, which a delimiter makes; 0 for what is no page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_page_groups(page: *const tyr_page) -> usize {
    count(page, |page| page.0.groups.len())
}

/// A blob of the page, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_page_entry(
    page: *const tyr_page,
    at: usize,
    entry: *mut tyr_entry,
) -> *mut tyr_error {
    call(|| {
        wanted(entry, "entry")?;
        let page = of::<Page, _>(page.cast_mut())?;
        let found = page.0.entries.get(at).ok_or_else(|| none(at, page.0.entries.len()))?;
        let stat = found.stat.unwrap_or(Stat { size: 0, version: Timestamp::ZERO });
        let (key, bytes) = (found.key.as_bytes(), &found.bytes);
        let (key, bytes) = (tyr_slice::lending(key), tyr_slice::lending(bytes));
        put(entry, tyr_entry { key, stat: stat.into(), bytes });
        Ok(())
    })
}

/// What the keys of a group begin with, from 0. The slice is the page's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_page_group(
    page: *const tyr_page,
    at: usize,
    group: *mut tyr_slice,
) -> *mut tyr_error {
    call(|| {
        wanted(group, "group")?;
        let page = of::<Page, _>(page.cast_mut())?;
        let found = page.0.groups.get(at).ok_or_else(|| none(at, page.0.groups.len()))?;
        put(group, tyr_slice::lending(found));
        Ok(())
    })
}

/// Where to go on, as `from` of the next scan; empty when this was all. The slice is the page's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_page_resume(
    page: *const tyr_page,
    from: *mut tyr_slice,
) -> *mut tyr_error {
    call(|| {
        wanted(from, "from")?;
        let page = of::<Page, _>(page.cast_mut())?;
        put(from, tyr_slice::lending(page.0.resume.as_deref().unwrap_or_default()));
        Ok(())
    })
}

/// Frees it; NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_page_free(page: *mut tyr_page) -> *mut tyr_error {
    free::<Page, _>(page)
}

/// A page of names that are listed like keys.
pub(super) fn names<'a>(
    all: impl IntoIterator<Item = (&'a str, Option<Stat>)>,
) -> Result<ScanPage, Failure> {
    let entry = |(name, stat)| {
        Ok::<_, Error>(ScanEntry { key: Key::new(name)?, stat, bytes: Bytes::new() })
    };
    let entries = all.into_iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    Ok(ScanPage { entries, ..ScanPage::default() })
}

/// A page of keys alone.
pub(super) fn keys(all: impl IntoIterator<Item = Key>) -> ScanPage {
    let entry = |key| ScanEntry { key, stat: None, bytes: Bytes::new() };
    ScanPage { entries: all.into_iter().map(entry).collect(), ..ScanPage::default() }
}

fn count(page: *const tyr_page, of_page: impl FnOnce(&Page) -> usize) -> usize {
    let mut count = 0;
    let error = call(|| {
        count = of_page(&*of::<Page, _>(page.cast_mut())?);
        Ok(())
    });
    // SAFETY: an error is a handle, which is looked up.
    unsafe { super::error::tyr_error_free(error) };
    count
}

fn none(at: usize, len: usize) -> Failure {
    Failure::invalid(format!("there is no number {at} in a page of {len}; they begin with 0"))
}
