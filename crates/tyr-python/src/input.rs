//! What Python gives: keys, bytes-like objects, offsets and lengths.
//!
//! Of bytes-like objects only `bytes` cannot change: large ones are lent as they are. Whatever can
//! (`bytearray`, arrays, memoryviews) is copied before the call goes on, so a program may change it
//! as soon as the call has returned, or, of `tyr.aio`, has been made.

use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyInt, PyMemoryView, PyString};
use tyr::{Bytes, Error};

use crate::error::{self, exception};

/// Bytes from which on a `bytes` object is lent instead of copied: what is shorter may stay in the
/// memory of a store for long.
const LENT_MIN: usize = 32 << 10;

/// A key: `str`, which is UTF-8, or `bytes`.
#[derive(Debug)]
pub struct Key(pub tyr::Key);

impl<'a, 'py> FromPyObject<'a, 'py> for Key {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let key = with_part(&given, "a key", |bytes| tyr::Key::new(bytes))?;
        key.map(Self).map_err(|error| exception(given.py(), error))
    }
}

/// The beginning of keys, or what parts them.
#[derive(Debug)]
pub struct Part(pub Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Part {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        with_part(&given, "part of a key", <[u8]>::to_vec).map(Self)
    }
}

/// Makes something of the bytes of a key, or of part of one.
fn with_part<T>(
    given: &Bound<'_, PyAny>,
    what: &str,
    make: impl FnOnce(&[u8]) -> T,
) -> PyResult<T> {
    if let Ok(text) = given.cast::<PyString>() {
        return text.to_cow().map(|text| make(text.as_bytes()));
    }
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok(make(bytes.as_bytes()));
    }
    let class = given.get_type().name()?;
    Err(PyTypeError::new_err(format!("{what} is str or bytes, not {class}")))
}

/// What is to be written: any bytes-like object.
#[derive(Debug)]
pub struct Data(pub Bytes);

impl<'a, 'py> FromPyObject<'a, 'py> for Data {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Self(of_bytes(&bytes)));
        }
        // In the order of C, whatever its shape and strides.
        let copied = PyMemoryView::from(&given)?.call_method0("tobytes")?.cast_into::<PyBytes>()?;
        Ok(Self(of_bytes(&copied)))
    }
}

fn of_bytes(bytes: &Bound<'_, PyBytes>) -> Bytes {
    match bytes.as_bytes() {
        short if short.len() < LENT_MIN => Bytes::copy_from_slice(short),
        _ => Bytes::from_owner(PyBackedBytes::from(bytes.clone())),
    }
}

/// A time in seconds, which `name` names.
///
/// # Errors
/// `InvalidArgument` for what is none.
pub fn seconds(name: &str, given: f64) -> error::Result<Duration> {
    let parsed = Duration::try_from_secs_f64(given);
    Ok(parsed.map_err(|_| {
        Error::invalid(format!("{name} is a time in seconds, 0 or more, not {given}"))
    })?)
}

/// An offset or a length in bytes, or how many of something.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Count {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let number = given.extract::<u64>();
        let wrong = |_| match given.is_instance_of::<PyInt>() {
            true => {
                let text = format!("an offset or a length is 0 to 2^63-1, not {}", &*given);
                exception(given.py(), Error::invalid(text))
            }
            false => {
                let class = given.get_type();
                PyTypeError::new_err(format!("an offset or a length is an int, not {class}"))
            }
        };
        number.map(Self).map_err(wrong)
    }
}

/// Memory of the program that something is read into: writable, and of one piece.
#[derive(Debug)]
pub struct Room<'py>(Bound<'py, PyAny>);

impl<'py> Room<'py> {
    /// The memory of an object.
    ///
    /// # Errors
    /// `TypeError` when it is not writable, or not of one piece.
    pub fn of(given: &Bound<'py, PyAny>) -> PyResult<Self> {
        let view = PyMemoryView::from(given)?;
        if view.getattr("readonly")?.is_truthy()? {
            let class = given.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "this {class} is read-only: give a bytearray"
            )));
        }
        view.call_method1("cast", ("B",)).map(Self)
    }

    /// How many bytes there are.
    pub fn len(&self) -> PyResult<usize> {
        self.0.len()
    }

    /// Copies bytes to its beginning.
    pub fn fill(&self, bytes: &[u8]) -> PyResult<()> {
        let py = self.0.py();
        let first = self.0.get_item(pyo3::types::PySlice::new(py, 0, bytes.len() as isize, 1))?;
        PyBuffer::<u8>::get(&first)?.copy_from_slice(py, bytes)
    }
}
