//! Snapshots: everything as it was at one moment.

use std::ffi::c_void;

use tyr::{Keyspace, Snapshot};

use super::blob::{key_of, tyr_bytes, tyr_stat};
use super::error::tyr_error;
use super::listing::tyr_page;
use super::memory::{Room, put, tyr_slice, wanted};
use super::number::tyr_timestamp;
use super::options::tyr_scan;
use super::store::{tyr_keyspace, tyr_store};
use super::{call, free, hand_out, of};
use crate::object::{Page, Store};

/// A read-only view of everything at one moment. Any thread may use it. Free it soon: what it needs
/// is kept for it, for 5 minutes unless set.
pub struct tyr_snapshot {
    _private: (),
}

/// Takes a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_take(
    store: *mut tyr_store,
    snapshot: *mut *mut tyr_snapshot,
) -> *mut tyr_error {
    call(|| {
        wanted(snapshot, "snapshot")?;
        let taken = of::<Store, _>(store)?.0.snapshot()?;
        put(snapshot, hand_out(taken.into_async())?);
        Ok(())
    })
}

/// The moment that it shows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_version(
    snapshot: *const tyr_snapshot,
    version: *mut tyr_timestamp,
) -> *mut tyr_error {
    call(|| {
        wanted(version, "version")?;
        put(version, of::<Snapshot, _>(snapshot.cast_mut())?.version().into());
        Ok(())
    })
}

/// Reads as tyr_read does, at the snapshot's moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_read(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    out: *mut c_void,
    len: usize,
    got: *mut usize,
) -> *mut tyr_error {
    call(|| {
        wanted(got, "got")?;
        let (snapshot, keyspace) =
            (of::<Snapshot, _>(snapshot.cast_mut())?, of::<Keyspace, _>(keyspace)?);
        let (room, key) = (Room::new(out, len)?, key_of(key)?);
        let (snapshot, keyspace) = (snapshot.as_blocking(), keyspace.as_blocking());
        put(got, room.fill(&snapshot.read(keyspace, key, offset, room.len())?));
        Ok(())
    })
}

/// Reads a whole blob of up to 64 MiB, at the snapshot's moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_get(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    bytes: *mut *mut tyr_bytes,
) -> *mut tyr_error {
    call(|| {
        wanted(bytes, "bytes")?;
        let snapshot = of::<Snapshot, _>(snapshot.cast_mut())?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let found = snapshot.as_blocking().get(keyspace.as_blocking(), key_of(key)?)?;
        put(bytes, hand_out(found)?);
        Ok(())
    })
}

/// A blob's size and version, at the snapshot's moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_stat(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    stat: *mut tyr_stat,
) -> *mut tyr_error {
    call(|| {
        wanted(stat, "stat")?;
        let snapshot = of::<Snapshot, _>(snapshot.cast_mut())?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let found = snapshot.as_blocking().stat(keyspace.as_blocking(), key_of(key)?)?;
        put(stat, found.into());
        Ok(())
    })
}

/// Lists a page, at the snapshot's moment. `scan` may be NULL: everything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_scan(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    scan: *const tyr_scan,
    page: *mut *mut tyr_page,
) -> *mut tyr_error {
    call(|| {
        wanted(page, "page")?;
        let snapshot = of::<Snapshot, _>(snapshot.cast_mut())?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let scan = tyr_scan::scan(scan)?;
        let found = snapshot.as_blocking().scan_page(keyspace.as_blocking(), &scan)?;
        put(page, hand_out(Page(found))?);
        Ok(())
    })
}

/// Frees it; NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_free(snapshot: *mut tyr_snapshot) -> *mut tyr_error {
    free::<Snapshot, _>(snapshot)
}
