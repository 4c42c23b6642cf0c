//! Calls that are started, and end in a queue.
//!
//! Each answers at once whether it was started. If it was, its completion comes exactly once; if
//! not, the error says why, nothing was begun, and no completion comes.

use std::ffi::c_void;
use std::future::Future;

use tyr::{Bytes, Committed, Error, Keyspace, ScanPage, Stat};
use tyr_completion::{Failure as Unfinished, Queue};

use super::blob::{data_of, key_of};
use super::error::tyr_error;
use super::memory::{Room, tyr_slice};
use super::number::{transform, tyr_number};
use super::options::tyr_scan;
use super::queue::tyr_queue;
use super::store::tyr_keyspace;
use super::transaction::{take, tyr_txn};
use super::{call, of};
use crate::border::BORDER;
use crate::failure::Failure;
use crate::object::{Answer, Value};

/// Starts a call on a queue.
pub(super) fn start<F: Future<Output = Result<Value, Error>> + Send + 'static>(
    queue: *mut tyr_queue,
    tag: u64,
    begin: impl FnOnce() -> Result<F, Failure>,
) -> *mut tyr_error {
    call(|| launch(queue, tag, begin))
}

/// The same, within a call.
pub(super) fn launch<F: Future<Output = Result<Value, Error>> + Send + 'static>(
    queue: *mut tyr_queue,
    tag: u64,
    begin: impl FnOnce() -> Result<F, Failure>,
) -> Result<(), Failure> {
    let queue = of::<Queue<Answer>, _>(queue)?;
    let begun = begin()?;
    let failed = |why| {
        Err(match why {
            Unfinished::Cancelled => Failure::cancelled(),
            Unfinished::Panicked(words) => BORDER.note_bug(&words),
        })
    };
    Ok(queue.start(tag, async { begun.await.map_err(Failure::from) }, failed)?)
}

/// Starts a call on a blob.
unsafe fn start_on<F: Future<Output = Result<Value, Error>> + Send + 'static>(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
    begin: impl FnOnce(Keyspace, tyr::Key) -> Result<F, Failure>,
) -> *mut tyr_error {
    start(queue, tag, || {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        begin((*keyspace).clone(), key_of(key)?)
    })
}

pub(super) fn nothing(_: ()) -> Value {
    Value::default()
}

pub(super) fn value(value: u64) -> Value {
    Value { value, ..Value::default() }
}

pub(super) fn bytes(bytes: Bytes) -> Value {
    Value { value: bytes.len() as u64, bytes: Some(bytes), ..Value::default() }
}

pub(super) fn stat(stat: Stat) -> Value {
    Value { value: stat.size, version: Some(stat.version), ..Value::default() }
}

pub(super) fn page(page: ScanPage) -> Value {
    Value { value: page.entries.len() as u64, page: Some(page), ..Value::default() }
}

/// Starts tyr_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_create_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        Ok(async move { keyspace.create(key).await.map(nothing) })
    })
}

/// Starts tyr_put. `data` is lent until this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_put_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    data: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        let data = data_of(data)?;
        Ok(async move { keyspace.put(key, data).await.map(nothing) })
    })
}

/// Starts tyr_write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_write_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    data: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        let data = data_of(data)?;
        Ok(async move { keyspace.write(key, offset, data).await.map(nothing) })
    })
}

/// Starts tyr_append: `value` of the completion is the offset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_append_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    data: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        let data = data_of(data)?;
        Ok(async move { keyspace.append(key, data).await.map(value) })
    })
}

/// Starts tyr_append_at: `value` of the completion is the offset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_append_at_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    expected: u64,
    data: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        let data = data_of(data)?;
        Ok(async move { keyspace.append_at(key, expected, data).await.map(value) })
    })
}

/// Starts tyr_truncate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_truncate_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    len: u64,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        Ok(async move { keyspace.truncate(key, len).await.map(nothing) })
    })
}

/// Starts tyr_clear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_clear_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    len: u64,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        Ok(async move { keyspace.clear(key, offset, len).await.map(nothing) })
    })
}

/// Starts tyr_delete: `value` of the completion is 1 if there was a blob.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_delete_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        Ok(async move { keyspace.delete(key).await.map(|existed| value(existed.into())) })
    })
}

/// Starts tyr_apply: `number` of the completion is the new value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_apply_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    what: i32,
    operand: tyr_number,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        let transform = transform(what, operand)?;
        Ok(async move {
            let number = keyspace.apply(key, offset, transform).await?;
            Ok(Value { number: Some(number), ..Value::default() })
        })
    })
}

/// Starts tyr_compare_and_swap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_compare_and_swap_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    expected: tyr_slice,
    data: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        let expected = Bytes::copy_from_slice(expected.bytes("expected")?);
        let data = data_of(data)?;
        let swap = async move { keyspace.compare_and_swap(key, offset, expected, data).await };
        Ok(async move { swap.await.map(nothing) })
    })
}

/// Starts tyr_stat_blob: `value` of the completion is the size, `version` the version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_stat_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        Ok(async move { keyspace.stat(key).await.map(stat) })
    })
}

/// Starts tyr_read: `value` of the completion is how many bytes are in `out`, which is lent until
/// the completion was taken, also after a cancel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_read_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    out: *mut c_void,
    len: usize,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        let room = Room::new(out, len)?;
        Ok(async move {
            let bytes = keyspace.read(key, offset, room.len()).await?;
            Ok(value(room.fill(&bytes) as u64))
        })
    })
}

/// Starts tyr_get: `bytes` of the completion are the blob's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_get_start(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start_on(keyspace, key, queue, tag, |keyspace, key| {
        Ok(async move { keyspace.get(key).await.map(bytes) })
    })
}

/// Starts tyr_scan_page: `page` of the completion is the page, `value` how many blobs it lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_scan_start(
    keyspace: *mut tyr_keyspace,
    scan: *const tyr_scan,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    start(queue, tag, || {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let scan = tyr_scan::scan(scan)?;
        Ok(async move { keyspace.scan_page(&scan).await.map(page) })
    })
}

/// Starts tyr_commit: `committed` of the completion is what it answers. It takes `txn`, whatever it
/// answers; if it was not started, everything is taken back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_commit_start(
    txn: *mut tyr_txn,
    queue: *mut tyr_queue,
    tag: u64,
) -> *mut tyr_error {
    call(|| {
        let transaction = take(txn)?.into_async();
        launch(queue, tag, || {
            Ok(async move {
                let committed: Committed = transaction.commit().await?;
                let version = Some(committed.version());
                Ok(Value { version, committed: Some(committed), ..Value::default() })
            })
        })
    })
}
