//! Which bytes of a blob are written.

use pyo3::prelude::*;
use tyr::{ByteRange, Result};

use crate::input::Count;

/// A page of the stretches of a blob that are written.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Stretches(pub tyr::Stretches);

#[pymethods]
impl Stretches {
    /// Where each begins and ends, in order.
    #[getter]
    fn written(&self) -> Vec<(u64, u64)> {
        self.0.written.iter().map(|it| (it.start, it.end)).collect()
    }

    /// The offset to ask on from; `None` at the end of what was asked for.
    #[getter]
    fn resume(&self) -> Option<u64> {
        self.0.resume
    }

    fn __repr__(&self) -> String {
        let more = if self.0.resume.is_some() { ", and more" } else { "" };
        format!("<Stretches: {} bytes in {}{more}>", self.0.len(), self.0.written.len())
    }
}

/// So many bytes from there on, or all.
///
/// # Errors
/// `InvalidArgument` for what goes beyond the largest blob.
pub fn range_of(offset: Option<Count>, length: Option<Count>) -> Result<ByteRange> {
    let start = offset.map_or(0, |offset| offset.0);
    match length {
        Some(length) => ByteRange::at(start, length.0),
        None => Ok(ByteRange { start: start.min(ByteRange::ALL.end), ..ByteRange::ALL }),
    }
}
