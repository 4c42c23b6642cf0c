//! Errors: NULL is good; the rest is a handle that says what was wrong.

use std::ffi::{CStr, c_char};

use super::call;
use super::memory::text;
use crate::border::fixed_text;
use crate::failure::{BUG, CANCELLED, Failure};
use crate::handle::HANDLES;

/// What went wrong. The answer of most functions: NULL when nothing did. Free it.
pub struct tyr_error {
    _private: (),
}

/// No error.
pub const TYR_OK: i32 = 0;
/// The blob or keyspace is not there. Nothing changed.
pub const TYR_NOT_FOUND: i32 = 1;
/// It is there already. Nothing changed.
pub const TYR_ALREADY_EXISTS: i32 = 2;
/// Another transaction was faster, or a condition did not hold. Nothing changed; run it again.
pub const TYR_CONFLICT: i32 = 3;
/// The store cannot serve this now (disk full, closed, overload, forked). Nothing changed.
pub const TYR_UNAVAILABLE: i32 = 4;
/// No answer in time. What became of it is unknown: tyr_outcome asks.
pub const TYR_TIMED_OUT: i32 = 5;
/// The version that the snapshot needs is gone. Nothing changed; take another.
pub const TYR_SNAPSHOT_TOO_OLD: i32 = 6;
/// The request itself is wrong, a handle or a pointer for example. Nothing changed.
pub const TYR_INVALID_ARGUMENT: i32 = 7;
/// The user may not. Nothing changed.
pub const TYR_PERMISSION_DENIED: i32 = 8;
/// The keyspace's quota is used up. Nothing changed.
pub const TYR_QUOTA_EXCEEDED: i32 = 9;
/// Stored bytes are not what was written. Nothing changed.
pub const TYR_CORRUPT: i32 = 10;
/// tyr_queue_cancel stopped it. A read did nothing; what changes something may do so yet.
pub const TYR_CANCELLED: i32 = 100;
/// A bug in Týr. Every call from now on answers this.
pub const TYR_BUG: i32 = 101;

/// No operation: what tyr_error_operation answers where the error is about none.
pub const TYR_NO_OPERATION: u64 = u64::MAX;

// Written out above, for the header shows what is written.
const _: () = assert!(TYR_CANCELLED == CANCELLED && TYR_BUG == BUG);

/// Makes an error, for the body of a tyr_transact that is to fail for a reason of the program's
/// own. `kind` is one of `TYR_NOT_FOUND` to `TYR_CORRUPT`, of which `TYR_CONFLICT` has the body run
/// again, or `TYR_CANCELLED`. Never NULL: for another kind, or a text that is none, it answers an
/// error that says so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_error_new(kind: i32, text: *const c_char) -> *mut tyr_error {
    call(|| {
        let words = self::text(text, "text")?;
        Err(Failure::own(kind, words).unwrap_or_else(|| {
            Failure::invalid(format!(
                "the kind of an error is {TYR_NOT_FOUND} to {TYR_CORRUPT} or {TYR_CANCELLED}, not \
                 {kind}: see tyr.h"
            ))
        }))
    })
}

/// What a caller can do about an error: `TYR_NOT_FOUND` and so on, `TYR_OK` for NULL. More may
/// come: treat what you do not know like `TYR_UNAVAILABLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_error_kind(error: *const tyr_error) -> i32 {
    if error.is_null() {
        return TYR_OK;
    }
    if fixed_text(error.addr()).is_some() {
        return TYR_UNAVAILABLE;
    }
    HANDLES.get::<Failure>(error.addr()).map_or(TYR_INVALID_ARGUMENT, |found| found.kind())
}

/// What was wrong and what to do, in UTF-8; good until the error is freed. Never NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_error_text(error: *const tyr_error) -> *const c_char {
    if error.is_null() {
        return c"no error".as_ptr();
    }
    if let Some(fixed) = fixed_text(error.addr()) {
        return fixed.as_ptr();
    }
    match HANDLES.get::<Failure>(error.addr()) {
        // The text lies in the object, which the table keeps until the error is freed.
        Ok(found) => found.text().as_ptr(),
        Err(_) => c"this is no tyr_error, or one that was freed before".as_ptr(),
    }
}

/// Whether running the whole transaction again may succeed. tyr_transact does so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_error_is_retryable(error: *const tyr_error) -> bool {
    look(error, false, Failure::is_retryable)
}

/// Whether it is unknown what became of the call: it may have taken effect, or do so yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_error_is_open(error: *const tyr_error) -> bool {
    look(error, false, Failure::is_open)
}

/// The condition of the transaction that did not hold, as its function numbered it;
/// `TYR_NO_OPERATION` where it was none, or is not known. Several may not hold: it is one of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_error_operation(error: *const tyr_error) -> u64 {
    look(error, TYR_NO_OPERATION, |found| {
        found.operation().map_or(TYR_NO_OPERATION, super::transaction::number_of)
    })
}

/// Frees an error. Answers whether there was one: not for NULL, and not a second time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_error_free(error: *mut tyr_error) -> bool {
    if error.is_null() || fixed_text(error.addr()).is_some() {
        return false;
    }
    HANDLES.take::<Failure>(error.addr()).is_ok()
}

/// The name of a kind, "NotFound" for `TYR_NOT_FOUND`; "unknown" for what is none. Never freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_error_kind_name(kind: i32) -> *const c_char {
    let name: &CStr = match kind {
        TYR_OK => c"OK",
        TYR_NOT_FOUND => c"NotFound",
        TYR_ALREADY_EXISTS => c"AlreadyExists",
        TYR_CONFLICT => c"Conflict",
        TYR_UNAVAILABLE => c"Unavailable",
        TYR_TIMED_OUT => c"TimedOut",
        TYR_SNAPSHOT_TOO_OLD => c"SnapshotTooOld",
        TYR_INVALID_ARGUMENT => c"InvalidArgument",
        TYR_PERMISSION_DENIED => c"PermissionDenied",
        TYR_QUOTA_EXCEEDED => c"QuotaExceeded",
        TYR_CORRUPT => c"Corrupt",
        TYR_CANCELLED => c"Cancelled",
        TYR_BUG => c"Bug",
        _ => c"unknown",
    };
    name.as_ptr()
}

fn look<T>(error: *const tyr_error, otherwise: T, at: impl FnOnce(&Failure) -> T) -> T {
    if error.is_null() || fixed_text(error.addr()).is_some() {
        return otherwise;
    }
    HANDLES.get::<Failure>(error.addr()).map_or(otherwise, |found| at(&found))
}

/// How many handles of all kinds there are: what a program has not freed. For its tests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_handles() -> usize {
    if crate::border::BORDER.is_child() { 0 } else { HANDLES.count() }
}

/// The version of the library, "0.1.0". Never freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use tyr::{Error, ErrorKind};

    use super::*;

    #[test]
    fn every_kind_has_the_number_and_the_name_of_the_header() {
        for kind in ErrorKind::ALL {
            let failure = Failure::from(Error::new(kind, "x"));
            // SAFETY: the name is static.
            let name = unsafe { CStr::from_ptr(tyr_error_kind_name(failure.kind())) };
            assert_eq!(name.to_str().unwrap(), kind.name());
        }
    }
}
