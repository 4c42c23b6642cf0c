//! Service metadata: small values under paths, shared by all who use the store.

use std::ffi::c_char;

use tyr::metadata::{Expected, Path, Transaction};
use tyr::{Bytes, Error, Key, ScanEntry, ScanPage};

use super::blob::tyr_bytes;
use super::error::tyr_error;
use super::listing::tyr_page;
use super::memory::{optional_text, put, text, tyr_slice, wanted};
use super::store::tyr_store;
use super::{call, hand_out, of};
use crate::failure::Failure;
use crate::object::{Page, Store};

/// Any revision: what tyr_metadata_put takes as `expected` where it does not matter.
pub const TYR_ANY_REVISION: u64 = u64::MAX;

/// What a path has: NULL where there is nothing. `revision`, which may be NULL, is that of its last
/// change, 0 where there is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_metadata_get(
    store: *mut tyr_store,
    path: *const c_char,
    value: *mut *mut tyr_bytes,
    revision: *mut u64,
) -> *mut tyr_error {
    call(|| {
        wanted(value, "value")?;
        let found = of::<Store, _>(store)?.0.metadata().get(text(path, "path")?)?;
        put(revision, found.as_ref().map_or(0, |entry| entry.changed));
        let bytes = found.map(|entry| entry.value);
        put(value, bytes.map_or(Ok(std::ptr::null_mut()), hand_out)?);
        Ok(())
    })
}

/// Gives a path this value, if `expected` is the revision of its last change, 0 if there is none;
/// else `TYR_CONFLICT`. `TYR_ANY_REVISION` has it without a condition. `revision`, which may be
/// NULL, is the new one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_metadata_put(
    store: *mut tyr_store,
    path: *const c_char,
    value: tyr_slice,
    expected: u64,
    revision: *mut u64,
) -> *mut tyr_error {
    call(|| {
        let store = of::<Store, _>(store)?;
        let path = Path::new(text(path, "path")?)?;
        let value = Bytes::copy_from_slice(value.bytes("value")?);
        let change = when(Transaction::new(), &path, expected).put(path, value);
        put(revision, store.0.metadata().transact(change)?);
        Ok(())
    })
}

/// Takes a path away, on the condition that tyr_metadata_put has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_metadata_delete(
    store: *mut tyr_store,
    path: *const c_char,
    expected: u64,
    revision: *mut u64,
) -> *mut tyr_error {
    call(|| {
        let store = of::<Store, _>(store)?;
        let path = Path::new(text(path, "path")?)?;
        let change = when(Transaction::new(), &path, expected).delete(path);
        put(revision, store.0.metadata().transact(change)?);
        Ok(())
    })
}

fn when(change: Transaction, path: &Path, expected: u64) -> Transaction {
    match expected {
        TYR_ANY_REVISION => change,
        0 => change.when(path.clone(), Expected::Absent),
        revision => change.when(path.clone(), Expected::Revision(revision)),
    }
}

/// Lists paths that begin with `prefix` and come after `after`, which may be NULL, in order: a page
/// whose keys are the paths and whose bytes the values, at most `limit`. The next begins after the
/// last of them, and there is none after an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_metadata_list(
    store: *mut tyr_store,
    prefix: *const c_char,
    after: *const c_char,
    limit: usize,
    page: *mut *mut tyr_page,
) -> *mut tyr_error {
    call(|| {
        wanted(page, "page")?;
        let store = of::<Store, _>(store)?;
        let (prefix, after) = (text(prefix, "prefix")?, optional_text(after, "after")?);
        let found = store.0.metadata().list(prefix, after, limit)?;
        let entries = found.entries.into_iter().map(|(path, entry)| {
            Ok(ScanEntry { key: Key::new(path.as_str())?, stat: None, bytes: entry.value })
        });
        let entries = entries.collect::<Result<Vec<_>, Error>>().map_err(Failure::from)?;
        put(page, hand_out(Page(ScanPage { entries, ..ScanPage::default() }))?);
        Ok(())
    })
}
