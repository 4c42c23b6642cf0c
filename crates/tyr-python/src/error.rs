//! Exceptions: one class a kind of error, which `tyr/_errors.py` defines.

use std::sync::Arc;

use pyo3::prelude::*;
use tyr::Error;

/// Why a call ends without an answer: an error of Týr's, or an exception that Python has already.
#[derive(Debug)]
pub enum Failure {
    Tyr(Error),
    Python(PyErr),
}

/// What a step of a call answers.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Tyr(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Tyr(error) => Python::attach(|py| exception(py, error)),
            Failure::Python(error) => error,
        }
    }
}

/// The error of Týr's under an exception: what became of a call is asked for with it.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Cause(pub Arc<Error>);

/// The exception for an error.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    filled(py, error).unwrap_or_else(|error| error)
}

fn filled(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let class = py.import("tyr._errors")?.getattr(error.kind().name())?;
    let value = class.call1((error.to_string(),))?;
    if let Some(blob) = error.blob() {
        value.setattr("key", blob.key.as_bytes())?;
    }
    if let Some(id) = error.operation() {
        value.setattr("operation", (id.blob, id.operation))?;
    }
    value.setattr("_cause", Cause(Arc::new(error)))?;
    Ok(PyErr::from_value(value))
}

/// The exception of this class, which is none of a kind.
pub fn named(py: Python<'_>, class: &str, text: &str) -> PyErr {
    let made = py.import("tyr._errors").and_then(|it| it.getattr(class)?.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// What `__exit__` answers when it has ended something by a call, and the block has raised `class`,
/// or `None`: an exception that the block ends with says more than that the call failed.
///
/// # Errors
/// Those of the call, where the block has raised nothing.
pub fn after_block(
    py: Python<'_>,
    class: &Bound<'_, PyAny>,
    ended: Result<Py<PyAny>>,
) -> Result<bool> {
    match ended.map_err(PyErr::from) {
        Err(error) if !class.is_none() && cause_of(py, &error).is_some() => Ok(false),
        ended => Ok(ended.map(|_| false)?),
    }
}

/// The error of Týr's that an exception was made of.
pub fn cause_of(py: Python<'_>, error: &PyErr) -> Option<Arc<Error>> {
    let cause = error.value(py).getattr("_cause").ok()?;
    cause.cast::<Cause>().ok().map(|cause| Arc::clone(&cause.get().0))
}

/// A bug of ours, in the words of the panic.
pub fn bug(py: Python<'_>, words: &str) -> PyErr {
    let text = format!(
        "a bug in Týr: {words}. This process is not to go on with it: stop it, look at the store \
         with `tyr check`, and tell us"
    );
    named(py, "Bug", &text)
}
