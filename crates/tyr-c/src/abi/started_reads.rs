//! Reads of transactions and snapshots that are started, and end in a queue.
//!
//! A call that was started with a transaction takes it along: until its completion is there, every
//! other call of that transaction is refused.

use std::ffi::c_void;
use std::future::Future;
use std::sync::Arc;

use tyr::{Error, Key, Keyspace, Snapshot};

use super::blob::key_of;
use super::error::tyr_error;
use super::memory::{Room, tyr_slice};
use super::of;
use super::options::tyr_scan;
use super::queue::tyr_queue;
use super::snapshot::tyr_snapshot;
use super::started::{bytes, page, start, stat, value};
use super::store::{tyr_keyspace, tyr_store};
use super::transaction::tyr_txn;
use crate::failure::Failure;
use crate::object::{Away, Store, Transaction, Value};

/// What is read: a keyspace, and a key if it is one blob.
struct Read {
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
}

/// Starts a read of a blob in a transaction.
unsafe fn start_in<F: Future<Output = Result<Value, Error>> + Send + 'static>(
    txn: *mut tyr_txn,
    read: Read,
    queue: *mut tyr_queue,
    tag: u64,
    begin: impl FnOnce(Away, Keyspace, Key) -> Result<F, Failure>,
) -> *mut tyr_error {
    start(queue, tag, || {
        let keyspace = of::<Keyspace, _>(read.keyspace)?;
        let key = key_of(read.key)?;
        begin(Away::take(of::<Transaction, _>(txn)?)?, (*keyspace).clone(), key)
    })
}

/// Starts a read of a blob at a snapshot's moment.
unsafe fn start_at<F: Future<Output = Result<Value, Error>> + Send + 'static>(
    snapshot: *const tyr_snapshot,
    read: Read,
    queue: *mut tyr_queue,
    tag: u64,
    begin: impl FnOnce(Arc<Snapshot>, Keyspace, Key) -> Result<F, Failure>,
) -> *mut tyr_error {
    start(queue, tag, || {
        let snapshot = of::<Snapshot, _>(snapshot.cast_mut())?;
        let keyspace = of::<Keyspace, _>(read.keyspace)?;
        begin(snapshot, (*keyspace).clone(), key_of(read.key)?)
    })
}

/// Starts tyr_txn_read, as tyr_read_start does. Until its completion was taken, every other call of
/// `txn` is refused, here and below; a tyr_commit then takes everything back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_read_start(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    out: *mut c_void,
    len: usize,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    let room = Room::new(out, len);
    start_in(txn, Read { keyspace, key }, queue, tag, |mut away, keyspace, key| {
        let room = room?;
        Ok(async move {
            let bytes = away.inner().read(&keyspace, key, offset, room.len()).await?;
            Ok(value(room.fill(&bytes) as u64))
        })
    })
}

/// Starts tyr_txn_get: `bytes` of the completion are the blob's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_get_start(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_in(txn, Read { keyspace, key }, queue, tag, |mut away, keyspace, key| {
        Ok(async move { away.inner().get(&keyspace, key).await.map(bytes) })
    })
}

/// Starts tyr_txn_stat: `value` of the completion is the size, `version` the version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_stat_start(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_in(txn, Read { keyspace, key }, queue, tag, |mut away, keyspace, key| {
        Ok(async move { away.inner().stat(&keyspace, key).await.map(stat) })
    })
}

/// Starts tyr_txn_scan: `page` of the completion is the page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_scan_start(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    scan: *const tyr_scan,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start(queue, tag, || {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let scan = tyr_scan::scan(scan)?;
        let mut away = Away::take(of::<Transaction, _>(txn)?)?;
        Ok(async move { away.inner().scan_page(&keyspace, &scan).await.map(page) })
    })
}

/// Starts tyr_snapshot_take: `snapshot` of the completion is the snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_take_start(
    store: *mut tyr_store,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start(queue, tag, || {
        let store = of::<Store, _>(store)?.0.clone().into_async();
        Ok(async move {
            let snapshot = store.snapshot().await?;
            let version = Some(snapshot.version());
            Ok(Value { version, snapshot: Some(snapshot), ..Value::default() })
        })
    })
}

/// Starts tyr_snapshot_read, as tyr_read_start does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_read_start(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    out: *mut c_void,
    len: usize,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    let room = Room::new(out, len);
    start_at(snapshot, Read { keyspace, key }, queue, tag, |snapshot, keyspace, key| {
        let room = room?;
        Ok(async move {
            let bytes = snapshot.read(&keyspace, key, offset, room.len()).await?;
            Ok(value(room.fill(&bytes) as u64))
        })
    })
}

/// Starts tyr_snapshot_get: `bytes` of the completion are the blob's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_get_start(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_at(snapshot, Read { keyspace, key }, queue, tag, |snapshot, keyspace, key| {
        Ok(async move { snapshot.get(&keyspace, key).await.map(bytes) })
    })
}

/// Starts tyr_snapshot_stat: `value` of the completion is the size, `version` the version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_stat_start(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_at(snapshot, Read { keyspace, key }, queue, tag, |snapshot, keyspace, key| {
        Ok(async move { snapshot.stat(&keyspace, key).await.map(stat) })
    })
}

/// Starts tyr_snapshot_scan: `page` of the completion is the page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_scan_start(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    scan: *const tyr_scan,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start(queue, tag, || {
        let snapshot = of::<Snapshot, _>(snapshot.cast_mut())?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let scan = tyr_scan::scan(scan)?;
        Ok(async move { snapshot.scan_page(&keyspace, &scan).await.map(page) })
    })
}
