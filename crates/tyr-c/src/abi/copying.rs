//! Copies of blobs that pass no program.

use tyr::{BlobCopy, ByteRange, Keyspace};

use super::blob::key_of;
use super::error::tyr_error;
use super::memory::{put, tyr_slice};
use super::options::{Versioned, flag, read};
use super::store::{tyr_keyspace, tyr_store};
use super::transaction::{tyr_txn, with};
use super::{call, of};
use crate::failure::Failure;
use crate::object::Store;

/// What is copied to where. Begin with `TYR_COPY_INIT`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_copy {
    /// Of this struct.
    pub size: usize,
    /// Where it is copied from.
    pub from: *mut tyr_keyspace,
    /// The blob that is copied.
    pub from_key: tyr_slice,
    /// Where it is copied to; a keyspace of the same store.
    pub to: *mut tyr_keyspace,
    /// The blob that has it then.
    pub to_key: tyr_slice,
    /// 1: a part alone, and what else the other blob has stays. 0: the other one becomes the same.
    pub is_part: i32,
    /// For what may come.
    pub reserved: i32,
    /// The part: from here on,
    pub from_offset: u64,
    /// so many bytes, fewer where the blob ends,
    pub len: u64,
    /// to here.
    pub to_offset: u64,
}

impl Versioned for tyr_copy {
    const NAME: &'static str = "tyr_copy";
    const SIZE_MIN: usize = 88;
}

impl tyr_copy {
    unsafe fn copy(given: *const Self) -> Result<BlobCopy, Failure> {
        let given = read(given)?.ok_or_else(|| Failure::invalid("copy is NULL"))?;
        let (from, to) = (of::<Keyspace, _>(given.from)?, of::<Keyspace, _>(given.to)?);
        let (from_key, to_key) = (key_of(given.from_key)?, key_of(given.to_key)?);
        let copy = BlobCopy::new(from.as_blocking(), from_key, to.as_blocking(), to_key)?;
        if flag("is_part", given.is_part)? {
            return Ok(copy.range(ByteRange::at(given.from_offset, given.len)?, given.to_offset));
        }
        Ok(copy)
    }
}

/// Copies a blob, or a part of one, in one transaction; in a cluster from node to node. `copied`,
/// which may be NULL, is how many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_copy_blob(
    store: *mut tyr_store,
    copy: *const tyr_copy,
    copied: *mut u64,
) -> *mut tyr_error {
    call(|| {
        let store = of::<Store, _>(store)?;
        put(copied, store.0.copy(&tyr_copy::copy(copy)?)?);
        Ok(())
    })
}

/// Copies with a transaction: a read of the one blob, which the commit validates, and a write of
/// the other. What the transaction has written itself is not copied: copy first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_txn_copy(
    txn: *mut tyr_txn,
    copy: *const tyr_copy,
    copied: *mut u64,
) -> *mut tyr_error {
    call(|| {
        let copy = tyr_copy::copy(copy)?;
        put(copied, with(txn, |txn| Ok(txn.copy(&copy)?))?);
        Ok(())
    })
}
