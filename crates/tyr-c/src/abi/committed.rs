//! What a committed transaction answers, operation by operation.

use tyr::{Committed, OperationId};

use super::error::tyr_error;
use super::memory::{put, wanted};
use super::number::{tyr_number, tyr_timestamp};
use super::{call, free, of};
use crate::failure::Failure;

/// What a committed transaction answers. Free it.
pub struct tyr_committed {
    _private: (),
}

fn operation_of(number: u64) -> OperationId {
    OperationId { blob: (number >> 32) as u32, operation: number as u32 }
}

/// The version of everything that the transaction wrote.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_committed_version(
    committed: *const tyr_committed,
    version: *mut tyr_timestamp,
) -> *mut tyr_error {
    answer(committed, version, |found| Some(found.version().into()), "a version")
}

/// The offset that an append got.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_committed_offset(
    committed: *const tyr_committed,
    operation: u64,
    offset: *mut u64,
) -> *mut tyr_error {
    answer(committed, offset, |found| found.offset(operation_of(operation)), "an append")
}

/// The new value after arithmetic in place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_committed_value(
    committed: *const tyr_committed,
    operation: u64,
    value: *mut tyr_number,
) -> *mut tyr_error {
    let of = |found: &Committed| found.value(operation_of(operation)).map(tyr_number::from);
    answer(committed, value, of, "arithmetic")
}

/// Whether there was a blob to delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_committed_existed(
    committed: *const tyr_committed,
    operation: u64,
    existed: *mut bool,
) -> *mut tyr_error {
    answer(committed, existed, |found| found.existed(operation_of(operation)), "a delete")
}

/// Frees it; NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_committed_free(committed: *mut tyr_committed) -> *mut tyr_error {
    free::<Committed, _>(committed)
}

unsafe fn answer<T>(
    committed: *const tyr_committed,
    place: *mut T,
    look: impl FnOnce(&Committed) -> Option<T>,
    what: &str,
) -> *mut tyr_error {
    call(|| {
        wanted(place, "the answer")?;
        let found = look(&*of::<Committed, _>(committed.cast_mut())?);
        let found = found.ok_or_else(|| {
            Failure::invalid(format!("this is not the number of {what} in this transaction"))
        })?;
        put(place, found);
        Ok(())
    })
}
