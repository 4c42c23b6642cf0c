//! That a program is there, and what goes when it is not any more.

use std::sync::Arc;

use pyo3::prelude::*;
use tyr::Error;
use tyr::metadata::{self, Path};

use crate::border::{self, Held};
use crate::call::Front;
use crate::error::{self, Result};
use crate::holding::Kept;
use crate::input::Data;
use crate::metadata::{Condition, MetadataTransaction, on, revision};
use crate::store::Shared;

/// That this program is there: what is put by it goes when it is over.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Presence {
    shared: Held<Arc<Shared>>,
    front: Front,
    inner: Kept<Arc<metadata::Presence>>,
}

fn ended() -> Error {
    Error::invalid("this presence was ended: begin another")
}

impl Presence {
    /// A presence as Python has it.
    pub fn new(shared: &Arc<Shared>, front: &Front, inner: metadata::Presence) -> Self {
        let (shared, inner) = (Held::new(Arc::clone(shared)), Kept::new(Arc::new(inner)));
        Self { shared, front: front.clone(), inner }
    }

    fn change(&self, py: Python<'_>, change: metadata::Transaction) -> Result<Py<PyAny>> {
        self.shared.check()?;
        let it = self.inner.with(Arc::clone).ok_or_else(ended)?;
        Ok(self.front.run(py, async move { it.transact(change).await }, revision)?)
    }
}

#[pymethods]
impl Presence {
    /// Whether it is there, as far as this process knows.
    #[getter]
    fn is_there(&self) -> PyResult<bool> {
        border::check()?;
        Ok(self.inner.with(|it| it.is_there()) == Some(true))
    }

    /// Gives a path this value for as long as this program is there.
    #[pyo3(signature = (path, value, *, expected=None))]
    fn put(
        &self,
        py: Python<'_>,
        path: &str,
        value: Data,
        expected: Option<Condition>,
    ) -> Result<Py<PyAny>> {
        let path = Path::new(path)?;
        self.change(py, on(&path, expected).put(path, value.0))
    }

    /// Makes conditions and changes take effect, of which what is put is bound to this.
    fn transact(
        &self,
        py: Python<'_>,
        transaction: &Bound<'_, MetadataTransaction>,
    ) -> Result<Py<PyAny>> {
        self.change(py, transaction.get().gathered())
    }

    /// Waits until it is over; whether it was in time.
    #[pyo3(signature = (timeout=None))]
    fn lost(&self, py: Python<'_>, timeout: Option<f64>) -> Result<Py<PyAny>> {
        self.shared.check()?;
        let lost = self.inner.with(|it| it.lost()).ok_or_else(ended)?;
        self.front.hear(py, timeout, lost)
    }

    /// Ends it: what is bound to it is gone when this returns.
    fn end(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        self.shared.check()?;
        let it = self.inner.take().ok_or_else(ended)?.into_inner();
        let end = async move {
            match Arc::into_inner(it) {
                Some(it) => it.end().await,
                // It ends with the last call that is under way with it.
                None => Ok(()),
            }
        };
        Ok(self.front.run(py, end, |py, ()| Ok(py.None()))?)
    }

    fn __enter__(this: Py<Self>) -> Result<Py<Self>> {
        this.get().shared.check()?;
        this.get().front.check_blocking("this presence", "with")?;
        Ok(this)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        class: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        if self.inner.with(|_| ()).is_none() {
            return Ok(false);
        }
        error::after_block(py, class, self.end(py))
    }

    fn __repr__(&self) -> PyResult<String> {
        let state = if self.is_there()? { "there" } else { "over" };
        Ok(format!("<Presence: {state}>"))
    }
}
