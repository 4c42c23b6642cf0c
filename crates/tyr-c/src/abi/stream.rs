//! Blobs as streams, of more than memory has.

use std::ffi::c_void;
use std::io::{self, Read};

use tyr::{ByteRange, Keyspace, Snapshot};

use super::blob::{key_of, tyr_bytes};
use super::error::tyr_error;
use super::memory::{put, tyr_slice, wanted};
use super::snapshot::tyr_snapshot;
use super::store::tyr_keyspace;
use super::{call, free, hand_out, of};
use crate::failure::Failure;
use crate::object::Reader;

/// Part of a blob at one version, read piece by piece. One thread at a time. Free it.
pub struct tyr_reader {
    _private: (),
}

/// Where what is written comes from: it puts up to `len` bytes into `out` and answers how many; 0
/// at the end, and a negative number when it fails.
type SourceFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> i64;

struct Source {
    fill: SourceFunction,
    context: *mut c_void,
}

impl Source {
    fn new(fill: Option<SourceFunction>, context: *mut c_void) -> Result<Self, Failure> {
        let fill = fill.ok_or_else(|| Failure::invalid("source is NULL"))?;
        Ok(Self { fill, context })
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the program says that its function fills what it is given, and no more.
        let got = unsafe { (self.fill)(self.context, out.as_mut_ptr().cast(), out.len()) };
        let got = usize::try_from(got).ok().filter(|got| *got <= out.len());
        got.ok_or_else(|| io::Error::other("the program's source failed"))
    }
}

/// Opens `len` bytes from `offset` on, fewer where the blob ends: `UINT64_MAX` is all that follow.
/// It shows the blob as it is now, for 5 minutes unless set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_reader_open(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    len: u64,
    reader: *mut *mut tyr_reader,
) -> *mut tyr_error {
    call(|| {
        wanted(reader, "reader")?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let opened = keyspace.as_blocking().reader(key_of(key)?, range(offset, len))?;
        put(reader, hand_out(Reader::new(opened))?);
        Ok(())
    })
}

/// The same at a snapshot's moment. The reader needs the snapshot no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_snapshot_reader_open(
    snapshot: *const tyr_snapshot,
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    len: u64,
    reader: *mut *mut tyr_reader,
) -> *mut tyr_error {
    call(|| {
        wanted(reader, "reader")?;
        let snapshot = of::<Snapshot, _>(snapshot.cast_mut())?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let (space, key) = (keyspace.as_blocking(), key_of(key)?);
        let opened = snapshot.as_blocking().reader(space, key, range(offset, len))?;
        put(reader, hand_out(Reader::new(opened))?);
        Ok(())
    })
}

fn range(offset: u64, len: u64) -> ByteRange {
    ByteRange { start: offset, end: offset.saturating_add(len) }
}

/// The size of the whole blob, in `size`, and how many bytes are still to come, in `remaining`.
/// Either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_reader_stat(
    reader: *mut tyr_reader,
    size: *mut u64,
    remaining: *mut u64,
) -> *mut tyr_error {
    call(|| {
        let reader = of::<Reader, _>(reader)?;
        let inner = reader.lock()?;
        put(size, inner.size());
        put(remaining, inner.remaining());
        Ok(())
    })
}

/// Reads the next piece, of up to 1 MiB; NULL at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_reader_next(
    reader: *mut tyr_reader,
    bytes: *mut *mut tyr_bytes,
) -> *mut tyr_error {
    call(|| {
        wanted(bytes, "bytes")?;
        let next = of::<Reader, _>(reader)?.lock()?.next()?;
        put(bytes, next.map_or(Ok(std::ptr::null_mut()), hand_out)?);
        Ok(())
    })
}

/// Frees it; NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_reader_free(reader: *mut tyr_reader) -> *mut tyr_error {
    free::<Reader, _>(reader)
}

/// Writes to a keyspace what a source gives, and tells the number that came of it, where `told` is
/// not NULL: then it must be room for one.
unsafe fn take_in(
    keyspace: *mut tyr_keyspace,
    source: Option<SourceFunction>,
    context: *mut c_void,
    told: *mut u64,
    write: impl FnOnce(&tyr::blocking::Keyspace, Source) -> Result<u64, Failure>,
) -> *mut tyr_error {
    call(|| {
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let source = Source::new(source, context)?;
        put(told, write(keyspace.as_blocking(), source)?);
        Ok(())
    })
}

/// Makes a blob's content what `source` gives until it answers 0, in one transaction: nobody sees a
/// part of it. `source` puts up to `len` bytes into `out` and answers how many; where it answers a
/// negative number, nothing changes, and the call fails. `context` is passed on. `size`, which may
/// be NULL, is how many bytes it were.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_put_stream(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    source: Option<unsafe extern "C" fn(context: *mut c_void, out: *mut c_void, len: usize) -> i64>,
    context: *mut c_void,
    size: *mut u64,
) -> *mut tyr_error {
    take_in(keyspace, source, context, size, |keyspace, source| {
        Ok(keyspace.put_reader(key_of(key)?, source)?)
    })
}

/// Writes what `source` gives at `offset`, as tyr_put_stream does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_write_stream(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    offset: u64,
    source: Option<unsafe extern "C" fn(context: *mut c_void, out: *mut c_void, len: usize) -> i64>,
    context: *mut c_void,
    size: *mut u64,
) -> *mut tyr_error {
    take_in(keyspace, source, context, size, |keyspace, source| {
        Ok(keyspace.write_reader(key_of(key)?, offset, source)?)
    })
}

/// Appends what `source` gives, as tyr_put_stream does; `offset`, which may be NULL, is where it
/// lies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_append_stream(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    source: Option<unsafe extern "C" fn(context: *mut c_void, out: *mut c_void, len: usize) -> i64>,
    context: *mut c_void,
    offset: *mut u64,
) -> *mut tyr_error {
    take_in(keyspace, source, context, offset, |keyspace, source| {
        Ok(keyspace.append_reader(key_of(key)?, source)?)
    })
}
