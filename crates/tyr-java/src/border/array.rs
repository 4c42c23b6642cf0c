//! Java's arrays, copied.
//!
//! By functions of JNI itself: the crate `jni` asks before and after each whether an exception is
//! pending, which takes longer than to copy what most calls give and get.

use jni::Env;
use jni::errors::{Error, Result};
use jni::objects::{JByteArray, JLongArray};
use jni::sys::jsize;

/// The bytes of an array; none of null.
pub fn bytes(env: &Env<'_>, array: &JByteArray<'_>) -> Vec<u8> {
    if array.is_null() {
        return Vec::new();
    }
    let (raw, array) = (env.get_raw(), array.as_raw());
    // SAFETY: `raw` is the environment of this thread, where no exception is pending: a call of the
    // border begins without one. `array` is a byte[] and not null, as Native.java declares, and no
    // array changes its length: all of it is within its bounds, and has room in `bytes`, which the
    // second function fills.
    unsafe {
        let functions = &(**raw).v1_1;
        let len = (functions.GetArrayLength)(raw, array);
        let mut bytes = Vec::<u8>::with_capacity(len as usize);
        (functions.GetByteArrayRegion)(raw, array, 0, len, bytes.as_mut_ptr().cast());
        bytes.set_len(len as usize);
        bytes
    }
}

/// A `byte[]` of these bytes.
pub fn of_bytes<'local>(env: &Env<'local>, bytes: &[u8]) -> Result<JByteArray<'local>> {
    let (raw, len) = (env.get_raw(), len_of(bytes)?);
    // SAFETY: as above; what was made is looked at, and all of it is filled from `bytes`, which has
    // as many. It is a reference of this frame, of which there are few.
    unsafe {
        let functions = &(**raw).v1_1;
        let array = (functions.NewByteArray)(raw, len);
        if array.is_null() {
            return Err(Error::JavaException);
        }
        (functions.SetByteArrayRegion)(raw, array, 0, len, bytes.as_ptr().cast());
        Ok(JByteArray::from_raw(env, array))
    }
}

/// A `long[]` of these numbers.
pub fn of_numbers<'local>(env: &Env<'local>, numbers: &[i64]) -> Result<JLongArray<'local>> {
    let (raw, len) = (env.get_raw(), len_of(numbers)?);
    // SAFETY: as above.
    unsafe {
        let functions = &(**raw).v1_1;
        let array = (functions.NewLongArray)(raw, len);
        if array.is_null() {
            return Err(Error::JavaException);
        }
        (functions.SetLongArrayRegion)(raw, array, 0, len, numbers.as_ptr());
        Ok(JLongArray::from_raw(env, array))
    }
}

/// No array of Java's is longer than this number can be.
fn len_of<T>(slice: &[T]) -> Result<jsize> {
    jsize::try_from(slice.len()).map_err(|_| Error::IndexOutOfBounds)
}
