//! Memory of the program: what it lends for a call, and where it wants answers.

use std::ffi::{CStr, c_char, c_void};

use crate::failure::Failure;

/// Bytes that are lent for the call: Týr has its own copy when it returns. `data` may be NULL when
/// `len` is 0.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_slice {
    /// The first byte.
    pub data: *const c_void,
    /// How many bytes.
    pub len: usize,
}

impl tyr_slice {
    /// A slice of bytes that somebody else keeps.
    pub(super) fn lending(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), len: bytes.len() }
    }

    /// The bytes, for as long as the call lasts.
    pub(super) unsafe fn bytes<'call>(self, name: &str) -> Result<&'call [u8], Failure> {
        if self.len == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() {
            let text = format!("{name} is NULL and has {} bytes", self.len);
            return Err(Failure::invalid(text));
        }
        check_len(self.len, name)?;
        Ok(std::slice::from_raw_parts(self.data.cast(), self.len))
    }
}

/// Refuses what cannot be a length: a negative number, most likely.
fn check_len(len: usize, name: &str) -> Result<(), Failure> {
    if len > isize::MAX as usize {
        return Err(Failure::invalid(format!("{name} has {len} bytes, more than memory can have")));
    }
    Ok(())
}

/// A text of the program.
pub(super) unsafe fn text<'call>(text: *const c_char, name: &str) -> Result<&'call str, Failure> {
    if text.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    let bytes = CStr::from_ptr(text);
    bytes.to_str().map_err(|_| Failure::invalid(format!("{name} is not UTF-8: {bytes:?}")))
}

/// A text that may be left out.
pub(super) unsafe fn optional_text<'call>(
    it: *const c_char,
    name: &str,
) -> Result<Option<&'call str>, Failure> {
    if it.is_null() { Ok(None) } else { text(it, name).map(Some) }
}

/// Refuses to begin a call whose answer has no place.
pub(super) fn wanted<T>(place: *mut T, name: &str) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL: there is no place for the answer")));
    }
    Ok(())
}

/// Puts an answer where it is wanted, if it is.
pub(super) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        place.write_unaligned(value);
    }
}

/// Memory that answers are written to, which the program leaves alone until it has its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    start: *mut u8,
    len: usize,
}

// SAFETY: the header says that the room of a call that was started is lent until its completion,
// whichever thread writes to it; it is copied to once, before the completion is there to take.
unsafe impl Send for Room {}

impl Room {
    /// Room for `len` bytes.
    pub unsafe fn new(out: *mut c_void, len: usize) -> Result<Self, Failure> {
        if out.is_null() && len > 0 {
            return Err(Failure::invalid(format!("out is NULL and has room for {len} bytes")));
        }
        check_len(len, "out")?;
        Ok(Self { start: out.cast(), len })
    }

    /// How many bytes it has room for.
    pub fn len(self) -> u64 {
        self.len as u64
    }

    /// Copies what was read, which is never more than there is room for; answers how many bytes.
    pub fn fill(self, bytes: &[u8]) -> usize {
        assert!(bytes.len() <= self.len, "a read answers no more than was asked for");
        if !bytes.is_empty() {
            // SAFETY: the program lends it, and it has room, as was just asserted.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, bytes.len()) };
        }
        bytes.len()
    }
}
