//! Locks: one holder at a time, and fences that hold transactions to it.

use std::ffi::c_char;
use std::time::Duration;

use tyr::{Keyspace, LeaseOptions};

use super::blob::key_of;
use super::error::tyr_error;
use super::memory::{optional_text, put, tyr_slice, wanted};
use super::options::{Versioned, flag, read};
use super::store::tyr_keyspace;
use super::transaction::{number_of, tyr_txn, with};
use super::{call, free, of};
use crate::failure::Failure;
use crate::handle::HANDLES;
use crate::object::Lock;

/// A lock that is held, and renewed in the background. Any thread may use it. Unlock it, or free
/// it.
pub struct tyr_lock {
    _private: (),
}

/// How a lock is taken. Begin with `TYR_LOCK_OPTIONS_INIT`; 0 and NULL are the defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_lock_options {
    /// Of this struct.
    pub size: usize,
    /// How long to wait for others, in milliseconds. Default as long as it takes.
    pub wait_ms: u64,
    /// 1: not to wait.
    pub is_no_wait: i32,
    /// For what may come.
    pub reserved: i32,
    /// How long it lasts when its holder is gone, in milliseconds: 1,000 to 10,000, the default.
    pub duration_ms: u64,
    /// Who holds it, for others to see: 256 bytes of text at most.
    pub holder: *const c_char,
}

impl Versioned for tyr_lock_options {
    const NAME: &'static str = "tyr_lock_options";
    const SIZE_MIN: usize = 40;
}

impl tyr_lock_options {
    unsafe fn options(given: Option<Self>) -> Result<LeaseOptions, Failure> {
        let mut options = LeaseOptions::exclusive();
        let Some(given) = given else { return Ok(options) };
        match (given.wait_ms, flag("is_no_wait", given.is_no_wait)?) {
            (0, false) => {}
            (wait_ms, false) => options = options.wait(Duration::from_millis(wait_ms)),
            (0, true) => options = options.no_wait(),
            (_, true) => {
                return Err(Failure::invalid("wait_ms and is_no_wait are both set; set one"));
            }
        }
        if given.duration_ms > 0 {
            options = options.duration(Duration::from_millis(given.duration_ms));
        }
        if let Some(holder) = optional_text(given.holder, "holder")? {
            options = options.holder(holder);
        }
        Ok(options)
    }
}

/// Takes a lock: of a key, whose blob has the lock's number. `TYR_CONFLICT` when others have it for
/// as long as is waited. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_lock_take(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    options: *const tyr_lock_options,
    lock: *mut *mut tyr_lock,
) -> *mut tyr_error {
    call(|| {
        wanted(lock, "lock")?;
        let options = tyr_lock_options::options(read(options)?)?;
        let taken = of::<Keyspace, _>(keyspace)?.as_blocking().lock(key_of(key)?, &options)?;
        put(lock, super::hand_out(Lock(Some(taken).into()))?);
        Ok(())
    })
}

/// The lock's number, in `token`: higher than that of all who held it before. Whether it is held
/// now as far as this process knows, in `is_held`, and whether others wait for it, in
/// `is_recalled`. Each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_lock_stat(
    lock: *mut tyr_lock,
    token: *mut u64,
    is_held: *mut bool,
    is_recalled: *mut bool,
) -> *mut tyr_error {
    call(|| {
        of::<Lock, _>(lock)?.with(|lock| {
            put(token, lock.token());
            put(is_held, lock.is_held());
            put(is_recalled, lock.is_recalled());
            Ok(())
        })
    })
}

/// Adds a condition: the commit fails with `TYR_CONFLICT` if anybody else has got the lock since,
/// whatever this process thinks that it holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_fence(
    txn: *mut tyr_txn,
    lock: *mut tyr_lock,
    operation: *mut u64,
) -> *mut tyr_error {
    call(|| {
        let lock = of::<Lock, _>(lock)?;
        let id = lock.with(|lock| with(txn, |txn| Ok(txn.fence(lock)?)))?;
        put(operation, number_of(id));
        Ok(())
    })
}

/// Gives a lock back, and says so in its blob. It takes `lock`, whatever it answers: `TYR_CONFLICT`
/// when somebody else got it before, for it was over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_lock_unlock(lock: *mut tyr_lock) -> *mut tyr_error {
    call(|| {
        let lock = HANDLES.take::<Lock>(lock.addr())?;
        Ok(lock.end()?.unlock()?)
    })
}

/// Gives a lock back without a word in its blob. NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_lock_free(lock: *mut tyr_lock) -> *mut tyr_error {
    free::<Lock, _>(lock)
}
