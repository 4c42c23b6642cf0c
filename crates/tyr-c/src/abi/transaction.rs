//! Transactions: gathered, then committed as a whole.

use std::ffi::c_void;
use std::sync::Arc;

use tyr::{Bytes, Error, Keyspace, OperationId, blocking};

use super::blob::{data_of, key_of, tyr_bytes, tyr_stat};
use super::committed::tyr_committed;
use super::error::tyr_error;
use super::listing::tyr_page;
use super::memory::{Room, put, tyr_slice, wanted};
use super::number::{relation, transform, tyr_number, tyr_timestamp};
use super::options::tyr_scan;
use super::store::{tyr_keyspace, tyr_store};
use super::{call, hand_out, of};
use crate::failure::Failure;
use crate::handle::HANDLES;
use crate::object::{Page, Place, Store, Transaction, in_use, over};

/// Operations on any blobs that take effect together or not at all. One thread at a time.
pub struct tyr_txn {
    _private: (),
}

/// The number by which C knows an operation.
pub(super) fn number_of(operation: OperationId) -> u64 {
    u64::from(operation.blob) << 32 | u64::from(operation.operation)
}

/// Does something with a transaction.
pub(super) fn with<T>(
    txn: *mut tyr_txn,
    work: impl FnOnce(&mut blocking::Transaction) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let transaction = of::<Transaction, _>(txn)?;
    let mut place = transaction.place.try_lock().ok_or_else(in_use)?;
    match &mut *place {
        Place::Here(transaction) => work(transaction),
        Place::Away => Err(in_use()),
        Place::Over => Err(over()),
    }
}

/// What is answered for an operation that is gathered.
pub(super) type Gathered = Result<OperationId, Failure>;

/// Gathers an operation on a blob.
pub(super) unsafe fn gather(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    operation: *mut u64,
    add: impl FnOnce(&mut blocking::Transaction, &blocking::Keyspace) -> Gathered,
) -> *mut tyr_error {
    call(|| {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let id = with(txn, |transaction| add(transaction, keyspace.as_blocking()))?;
        put(operation, number_of(id));
        Ok(())
    })
}

/// Takes a transaction out of its handle, which is none any more; `None` when a call that was
/// started has it, which then drops it.
fn end(txn: *mut tyr_txn) -> Result<Option<blocking::Transaction>, Failure> {
    if of::<Transaction, _>(txn)?.is_lent {
        return Err(Failure::invalid(
            "this tyr_txn is lent to the body of tyr_transact, which ends it: return from the body",
        ));
    }
    Ok(HANDLES.take::<Transaction>(txn.addr())?.end())
}

/// Takes a transaction that is to be committed.
pub(super) fn take(txn: *mut tyr_txn) -> Result<blocking::Transaction, Failure> {
    end(txn)?.ok_or_else(|| {
        Failure::invalid(
            "a call that was started with this tyr_txn is under way: it is rolled back; take the \
             completion before the commit",
        )
    })
}

/// Begins a transaction: tyr_commit or tyr_rollback ends it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_begin(
    store: *mut tyr_store,
    txn: *mut *mut tyr_txn,
) -> *mut tyr_error {
    call(|| {
        wanted(txn, "txn")?;
        let begun = of::<Store, _>(store)?.0.begin();
        put(txn, hand_out(Transaction::new(begun, false))?);
        Ok(())
    })
}

/// Makes an empty blob; the commit fails with `TYR_ALREADY_EXISTS` if there is one. `operation`,
/// here and below, may be NULL: it is a number to ask `tyr_committed` or an error with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_create(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| Ok(txn.create(keyspace, key_of(key)?)?))
}

/// Makes a blob's content `data` and nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_put(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    data: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.put(keyspace, key_of(key)?, data_of(data)?)?)
    })
}

/// Writes `data` at `offset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_write(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    data: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.write(keyspace, key_of(key)?, offset, data_of(data)?)?)
    })
}

/// Appends `data`; tyr_committed_offset tells where.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_append(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    data: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.append(keyspace, key_of(key)?, data_of(data)?)?)
    })
}

/// Appends `data` if the blob ends at `expected` then; else the commit fails with `TYR_CONFLICT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_append_at(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    expected: u64,
    data: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.append_at(keyspace, key_of(key)?, expected, data_of(data)?)?)
    })
}

/// Cuts a blob to `len` bytes, or extends it with zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_truncate(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    len: u64,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.truncate(keyspace, key_of(key)?, len)?)
    })
}

/// Makes a hole of `len` bytes at `offset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_clear(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    len: u64,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.clear(keyspace, key_of(key)?, offset, len)?)
    })
}

/// Removes a blob; tyr_committed_existed tells whether there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_delete(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| Ok(txn.delete(keyspace, key_of(key)?)?))
}

/// Does arithmetic in place; tyr_committed_value tells the new value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_apply(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    what: i32,
    operand: tyr_number,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.apply(keyspace, key_of(key)?, offset, transform(what, operand)?)?)
    })
}

/// Adds a condition: the commit fails with `TYR_CONFLICT` unless exactly `expected` is at `offset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_compare(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    expected: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        let expected = Bytes::copy_from_slice(expected.bytes("expected")?);
        Ok(txn.compare(keyspace, key_of(key)?, offset, expected)?)
    })
}

/// Adds a condition: the commit fails with `TYR_CONFLICT` unless the number at `offset` stands so
/// to `value`: x `relation` value, `TYR_LESS` for example. One that was never written is zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_compare_number(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    relation: i32,
    value: tyr_number,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        let relation = self::relation(relation)?;
        Ok(txn.compare_number(keyspace, key_of(key)?, offset, relation, value.read()?)?)
    })
}

/// Adds a condition: the commit fails with `TYR_ALREADY_EXISTS` if there is a blob.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_expect_absent(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| Ok(txn.expect_absent(keyspace, key_of(key)?)?))
}

/// Adds a condition: the commit fails with `TYR_NOT_FOUND` unless there is a blob.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_expect_present(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(
        txn,
        keyspace,
        operation,
        |txn, keyspace| Ok(txn.expect_present(keyspace, key_of(key)?)?),
    )
}

/// Adds a condition: the commit fails with `TYR_CONFLICT` if the blob was written after `version`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_expect_version(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    version: tyr_timestamp,
) -> *mut tyr_error {
    call(|| {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let (key, version) = (key_of(key)?, version.read()?);
        with(txn, |txn| Ok(txn.expect_version(keyspace.as_blocking(), key, version)?))
    })
}

/// Reads as tyr_read does, at one version, with this transaction's own writes. What was read is
/// validated by the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_read(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    out: *mut c_void,
    len: usize,
    got: *mut usize,
) -> *mut tyr_error {
    call(|| {
        wanted(got, "got")?;
        let (keyspace, room) = (of::<Keyspace, _>(keyspace)?, Room::new(out, len)?);
        let key = key_of(key)?;
        let read =
            with(txn, |txn| Ok(txn.read(keyspace.as_blocking(), key, offset, room.len())?));
        put(got, room.fill(&read?));
        Ok(())
    })
}

/// Reads a whole blob of up to 64 MiB in a transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_get(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    bytes: *mut *mut tyr_bytes,
) -> *mut tyr_error {
    call(|| {
        wanted(bytes, "bytes")?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let key = key_of(key)?;
        put(bytes, hand_out(with(txn, |txn| Ok(txn.get(keyspace.as_blocking(), key)?))?)?);
        Ok(())
    })
}

/// A blob's size and version in a transaction. Whatever others write of the blob until the commit
/// is a conflict.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_stat(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    stat: *mut tyr_stat,
) -> *mut tyr_error {
    call(|| {
        wanted(stat, "stat")?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let key = key_of(key)?;
        put(stat, with(txn, |txn| Ok(txn.stat(keyspace.as_blocking(), key)?))?.into());
        Ok(())
    })
}

/// Lists a page of the keys of one group in a transaction; what it shows is validated by the
/// commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_scan(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    scan: *const tyr_scan,
    page: *mut *mut tyr_page,
) -> *mut tyr_error {
    call(|| {
        wanted(page, "page")?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let scan = tyr_scan::scan(scan)?;
        let found = with(txn, |txn| Ok(txn.scan_page(keyspace.as_blocking(), &scan)?))?;
        put(page, hand_out(Page(found))?);
        Ok(())
    })
}

/// Commits: everything takes effect, at once, or nothing. It takes `txn`, whatever it answers.
/// `committed` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_commit(
    txn: *mut tyr_txn,
    committed: *mut *mut tyr_committed,
) -> *mut tyr_error {
    call(|| {
        let answer = take(txn)?.commit()?;
        if !committed.is_null() {
            put(committed, hand_out(answer)?);
        }
        Ok(())
    })
}

/// Takes everything back. NULL is nothing to take back. A call that was started with it ends as if
/// nothing had happened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_rollback(txn: *mut tyr_txn) -> *mut tyr_error {
    call(|| if txn.is_null() { Ok(()) } else { end(txn).map(drop) })
}

/// Runs `body` with a transaction and commits it; runs it again, up to 64 times, when it or the
/// commit meets a conflict. The transaction is lent: it is neither committed nor rolled back in
/// `body`. An error that `body` returns rolls back, and is the answer unless it is retryable.
/// `context` is passed on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_transact(
    store: *mut tyr_store,
    body: Option<unsafe extern "C" fn(txn: *mut tyr_txn, context: *mut c_void) -> *mut tyr_error>,
    context: *mut c_void,
) -> *mut tyr_error {
    call(|| {
        let store = of::<Store, _>(store)?;
        let body = body.ok_or_else(|| Failure::invalid("body is NULL"))?;
        // What the body of the last run answered, unless it was good.
        let mut own = None;
        let done = store.0.transact(|transaction| {
            own = run(&store, transaction, |txn| body(txn, context)).err();
            own.as_ref().map_or(Ok(()), |failure| Err(failure.to_error()))
        });
        done.map_err(|error| own.unwrap_or_else(|| error.into()))
    })
}

/// Lends a transaction to a body, as a handle that is none when this returns.
fn run(
    store: &Store,
    transaction: &mut blocking::Transaction,
    body: impl FnOnce(*mut tyr_txn) -> *mut tyr_error,
) -> Result<(), Failure> {
    let begun = std::mem::replace(transaction, store.0.begin());
    let lent = HANDLES.add(Transaction::new(begun, true))?;
    let error = body(std::ptr::without_provenance_mut(lent));
    let back = HANDLES.take::<Transaction>(lent)?.end();
    let is_back = back.map(|back| *transaction = back).is_some();
    if error.is_null() {
        return if is_back { Ok(()) } else { Err(left_under_way()) };
    }
    let failure = HANDLES.take::<Failure>(error.addr())?;
    let copy = Failure::from(failure.to_error());
    Err(Arc::into_inner(failure).unwrap_or(copy))
}

fn left_under_way() -> Failure {
    Failure::invalid(
        "the body of a tyr_transact returned with a call under way that it started with its \
         tyr_txn: take the completion first",
    )
}

/// Asks what became of a commit that ended as `TYR_TIMED_OUT`: what it answers, or why it did not
/// take effect. `committed` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_outcome(
    store: *mut tyr_store,
    error: *const tyr_error,
    committed: *mut *mut tyr_committed,
) -> *mut tyr_error {
    call(|| {
        let store = of::<Store, _>(store)?;
        let failure = of::<Failure, _>(error.cast_mut())?;
        let cause = failure.cause();
        let cause: &Error = cause.ok_or_else(|| {
            Failure::invalid("this error is not of a commit whose outcome could be asked for")
        })?;
        let answer = store.0.outcome(cause)?;
        if !committed.is_null() {
            put(committed, hand_out(answer)?);
        }
        Ok(())
    })
}
