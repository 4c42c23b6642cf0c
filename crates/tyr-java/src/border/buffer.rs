//! Memory of a buffer of Java's.

use jni::Env;
use jni::objects::JByteBuffer;
use jni::sys::jint;

use super::object::{Result, Stop};
use crate::failure::Failure;

/// Copies bytes into a direct buffer, from a position on; answers how many.
///
/// # Errors
/// `InvalidArgument` when they do not fit, or the buffer is none that is direct.
pub fn fill(env: &Env<'_>, buffer: &JByteBuffer<'_>, position: jint, bytes: &[u8]) -> Result<jint> {
    let (address, capacity) =
        (env.get_direct_buffer_address(buffer)?, env.get_direct_buffer_capacity(buffer)?);
    let position = usize::try_from(position).map_err(|_| out_of_bounds())?;
    if position.checked_add(bytes.len()).is_none_or(|end| end > capacity) {
        return Err(out_of_bounds());
    }
    // SAFETY: a direct buffer has `capacity` bytes at `address` as long as there is a reference to
    // it, as the one that we were given is; all of `bytes` is within them, and is no memory of
    // Java's. If the program writes to the buffer meanwhile it gets what it asked for: bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address.add(position), bytes.len()) };
    Ok(bytes.len() as jint)
}

fn out_of_bounds() -> Stop {
    Failure::invalid("what is to be read does not fit into the buffer").into()
}
