//! Kept snapshots: moments that stay until they are dropped, by names.

use std::ffi::c_char;

use tyr::{Stat, Timestamp};

use super::error::tyr_error;
use super::listing::{names, tyr_page};
use super::memory::{put, text, wanted};
use super::number::tyr_timestamp;
use super::snapshot::tyr_snapshot;
use super::store::tyr_store;
use super::{call, hand_out, of};
use crate::object::{Page, Store};

/// Keeps everything as it is now, under a name, until it is dropped, also when the store is closed
/// and opened again. It costs what is replaced later. `version`, which may be NULL, is the moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_kept_make(
    store: *mut tyr_store,
    name: *const c_char,
    version: *mut tyr_timestamp,
) -> *mut tyr_error {
    call(|| {
        let made = of::<Store, _>(store)?.0.keep(text(name, "name")?)?;
        put(version, made.at.into());
        Ok(())
    })
}

/// Opens a kept snapshot, to be read for as long as it is kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_kept_open(
    store: *mut tyr_store,
    name: *const c_char,
    snapshot: *mut *mut tyr_snapshot,
) -> *mut tyr_error {
    call(|| {
        wanted(snapshot, "snapshot")?;
        let found = of::<Store, _>(store)?.0.kept_snapshot(text(name, "name")?)?;
        put(snapshot, hand_out(found.into_async())?);
        Ok(())
    })
}

/// Lists the kept snapshots, oldest first: a page whose keys are their names; the size of an entry
/// is what is held for it and older ones, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_kept_list(
    store: *mut tyr_store,
    page: *mut *mut tyr_page,
) -> *mut tyr_error {
    call(|| {
        wanted(page, "page")?;
        let all = of::<Store, _>(store)?.0.kept()?;
        let stat = |size| Some(Stat { size, version: Timestamp::ZERO });
        let all = all.iter().map(|kept| (kept.name.as_str(), stat(kept.bytes)));
        put(page, hand_out(Page(names(all)?))?);
        Ok(())
    })
}

/// Drops a kept snapshot; `TYR_NOT_FOUND` when there is none of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_kept_drop(
    store: *mut tyr_store,
    name: *const c_char,
) -> *mut tyr_error {
    call(|| Ok(of::<Store, _>(store)?.0.drop_kept(text(name, "name")?)?))
}
