//! Writes with places that the commit fills with its version.

use tyr::{Bytes, Data, Stamped};

use super::blob::key_of;
use super::error::tyr_error;
use super::memory::tyr_slice;
use super::store::tyr_keyspace;
use super::transaction::{gather, tyr_txn};
use crate::failure::Failure;

/// What is written with stamps.
unsafe fn stamped(data: tyr_slice, places: *const usize, count: usize) -> Result<Data, Failure> {
    if places.is_null() || count > tyr::limits::STAMPS_MAX {
        return Err(Failure::invalid(format!(
            "places is NULL, or has not 1 to {} numbers but {count}",
            tyr::limits::STAMPS_MAX
        )));
    }
    let places = (0..count).map(|at| places.add(at).read_unaligned());
    let bytes = Bytes::copy_from_slice(data.bytes("data")?);
    Ok(Stamped::new(bytes, places)?.into())
}

/// As tyr_txn_put, and the commit fills the 16 bytes at each of the `count` places, which are
/// counted from the beginning of `data`, with its version: as in `tyr_timestamp`, so they order as
/// commits do. 1 to 16 places that do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_put_stamped(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    data: tyr_slice,
    places: *const usize,
    count: usize,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.put(keyspace, key_of(key)?, stamped(data, places, count)?)?)
    })
}

/// As tyr_txn_append, with stamps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_append_stamped(
    txn: *mut tyr_txn,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    data: tyr_slice,
    places: *const usize,
    count: usize,
    operation: *mut u64,
) -> *mut tyr_error {
    gather(txn, keyspace, operation, |txn, keyspace| {
        Ok(txn.append(keyspace, key_of(key)?, stamped(data, places, count)?)?)
    })
}
