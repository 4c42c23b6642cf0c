//! Single operations on blobs, each of which takes effect at once.

use std::ffi::c_void;

use tyr::{Bytes, Key, Keyspace, ReadRequest, Stat};

use super::error::tyr_error;
use super::memory::{Room, put, tyr_slice, wanted};
use super::number::{transform, tyr_number, tyr_timestamp};
use super::store::{tyr_keyspace, tyr_store};
use super::{call, free, hand_out, of};
use crate::failure::Failure;
use crate::object::Store;

/// Bytes that were read, as they lie in Týr's memory. Free them.
pub struct tyr_bytes {
    _private: (),
}

/// What is known of a blob without reading it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct tyr_stat {
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written.
    pub version: tyr_timestamp,
}

impl From<Stat> for tyr_stat {
    fn from(stat: Stat) -> Self {
        Self { size: stat.size, version: stat.version.into() }
    }
}

/// One of many reads.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_read_request {
    /// The keyspace.
    pub keyspace: *mut tyr_keyspace,
    /// The blob's key.
    pub key: tyr_slice,
    /// From which byte on.
    pub offset: u64,
    /// How many bytes, at most 64 MiB; fewer are read where the blob ends.
    pub len: u64,
}

/// A key of the program.
pub(super) unsafe fn key_of(key: tyr_slice) -> Result<Key, Failure> {
    Ok(Key::new(key.bytes("key")?)?)
}

/// A copy of what is to be written.
pub(super) unsafe fn data_of(data: tyr_slice) -> Result<Bytes, Failure> {
    Ok(Bytes::copy_from_slice(data.bytes("data")?))
}

/// Makes an empty blob; `TYR_ALREADY_EXISTS` if there is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_create(keyspace: *mut tyr_keyspace, key: tyr_slice) -> *mut tyr_error {
    call(|| Ok(of::<Keyspace, _>(keyspace)?.as_blocking().create(key_of(key)?)?))
}

/// Makes a blob's content `data` and nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_put(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    data: tyr_slice,
) -> *mut tyr_error {
    call(|| Ok(of::<Keyspace, _>(keyspace)?.as_blocking().put(key_of(key)?, data_of(data)?)?))
}

/// Writes `data` at `offset`; makes the blob if there is none; a gap reads as zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_write(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    data: tyr_slice,
) -> *mut tyr_error {
    call(|| {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        Ok(keyspace.as_blocking().write(key_of(key)?, offset, data_of(data)?)?)
    })
}

/// Appends `data`; makes the blob if there is none. `offset`, which may be NULL, is where it lies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_append(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    data: tyr_slice,
    offset: *mut u64,
) -> *mut tyr_error {
    call(|| {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        put(offset, keyspace.as_blocking().append(key_of(key)?, data_of(data)?)?);
        Ok(())
    })
}

/// Appends `data` if the blob ends at `expected` (0 for an absent one); else `TYR_CONFLICT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_append_at(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    expected: u64,
    data: tyr_slice,
) -> *mut tyr_error {
    call(|| {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        keyspace.as_blocking().append_at(key_of(key)?, expected, data_of(data)?)?;
        Ok(())
    })
}

/// Cuts a blob to `len` bytes, or extends it with zeros; makes it if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_truncate(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    len: u64,
) -> *mut tyr_error {
    call(|| Ok(of::<Keyspace, _>(keyspace)?.as_blocking().truncate(key_of(key)?, len)?))
}

/// Makes a hole of `len` bytes at `offset`: they read as zeros and take no space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_clear(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    len: u64,
) -> *mut tyr_error {
    call(|| Ok(of::<Keyspace, _>(keyspace)?.as_blocking().clear(key_of(key)?, offset, len)?))
}

/// Removes a blob. `existed`, which may be NULL, is whether there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_delete(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    existed: *mut bool,
) -> *mut tyr_error {
    call(|| {
        put(existed, of::<Keyspace, _>(keyspace)?.as_blocking().delete(key_of(key)?)?);
        Ok(())
    })
}

/// Does arithmetic in place: `what` is `TYR_ADD` and so on, `operand` has the type of the number.
/// Makes or extends the blob with zeros. `value`, which may be NULL, is the new value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_apply(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    what: i32,
    operand: tyr_number,
    value: *mut tyr_number,
) -> *mut tyr_error {
    call(|| {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let transform = transform(what, operand)?;
        let new = keyspace.as_blocking().apply(key_of(key)?, offset, transform)?;
        put(value, new.into());
        Ok(())
    })
}

/// Replaces `expected` at `offset` by `data`, if exactly that is there; else `TYR_CONFLICT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_compare_and_swap(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    expected: tyr_slice,
    data: tyr_slice,
) -> *mut tyr_error {
    call(|| {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let expected = Bytes::copy_from_slice(expected.bytes("expected")?);
        let (key, data) = (key_of(key)?, data_of(data)?);
        Ok(keyspace.as_blocking().compare_and_swap(key, offset, expected, data)?)
    })
}

/// A blob's size and version; `TYR_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_stat_blob(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    stat: *mut tyr_stat,
) -> *mut tyr_error {
    call(|| {
        wanted(stat, "stat")?;
        put(stat, of::<Keyspace, _>(keyspace)?.as_blocking().stat(key_of(key)?)?.into());
        Ok(())
    })
}

/// Reads up to `len` bytes at `offset` into `out`; `got` of them were there. At most 64 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_read(
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
        let bytes = keyspace.as_blocking().read(key_of(key)?, offset, room.len())?;
        put(got, room.fill(&bytes));
        Ok(())
    })
}

/// Reads a whole blob of up to 64 MiB without a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_get(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    bytes: *mut *mut tyr_bytes,
) -> *mut tyr_error {
    call(|| {
        wanted(bytes, "bytes")?;
        let found = of::<Keyspace, _>(keyspace)?.as_blocking().get(key_of(key)?)?;
        put(bytes, hand_out(found)?);
        Ok(())
    })
}

/// Reads many ranges of many blobs at one moment. `found` has room for `count` answers, each of
/// which is bytes to free, or NULL for a blob that is not there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_read_many(
    store: *mut tyr_store,
    requests: *const tyr_read_request,
    count: usize,
    found: *mut *mut tyr_bytes,
) -> *mut tyr_error {
    call(|| {
        let store = of::<Store, _>(store)?;
        let wanted = requests_of(requests, count)?;
        if count > 0 {
            super::memory::wanted(found, "found")?;
        }
        for (at, answer) in store.0.read_many(&wanted)?.into_iter().enumerate() {
            let handle = answer.map_or(Ok(std::ptr::null_mut()), hand_out);
            put(found.add(at), handle?);
        }
        Ok(())
    })
}

unsafe fn requests_of(
    requests: *const tyr_read_request,
    count: usize,
) -> Result<Vec<ReadRequest>, Failure> {
    if count > tyr::limits::READ_MANY_MAX {
        return Err(Failure::invalid(format!(
            "one tyr_read_many reads at most {} blobs, not {count}",
            tyr::limits::READ_MANY_MAX
        )));
    }
    wanted(requests.cast_mut(), "requests")?;
    let request = |at| {
        let request = requests.add(at).read_unaligned();
        let keyspace = of::<Keyspace, _>(request.keyspace)?;
        let range = tyr::ByteRange::at(request.offset, request.len)?;
        Ok(ReadRequest { keyspace: (*keyspace).clone(), key: key_of(request.key)?, range })
    };
    (0..count).map(request).collect()
}

/// The bytes themselves, good until they are freed; an empty slice for what is no `tyr_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_bytes_slice(bytes: *const tyr_bytes) -> tyr_slice {
    let mut slice = tyr_slice::lending(&[]);
    let found = call(|| {
        // The bytes lie where they lie as long as the table has them.
        slice = tyr_slice::lending(&of::<Bytes, _>(bytes.cast_mut())?);
        Ok(())
    });
    super::error::tyr_error_free(found);
    slice
}

/// Frees bytes; NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_bytes_free(bytes: *mut tyr_bytes) -> *mut tyr_error {
    free::<Bytes, _>(bytes)
}
