//! What a transaction's operations answered, known after its commit.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use tyr::{Error, OperationId};

use crate::border::Held;
use crate::error::{Result, exception};
use crate::number::{Version, to_python};
use crate::transaction::Slot;

/// An operation that a transaction has gathered.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Operation {
    slot: Held<Arc<Slot>>,
    id: OperationId,
}

impl Operation {
    /// The operation of this number of a transaction.
    pub fn new(slot: &Arc<Slot>, id: OperationId) -> Self {
        Self { slot: Held::new(Arc::clone(slot)), id }
    }

    fn committed(&self) -> Result<&tyr::Committed> {
        let text = "what an operation answered is known once its transaction has committed";
        Ok(self.slot.committed().ok_or_else(|| Error::invalid(text))?)
    }
}

#[pymethods]
impl Operation {
    #[getter]
    fn offset(&self) -> Result<Option<u64>> {
        Ok(self.committed()?.offset(self.id))
    }

    #[getter]
    fn value(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        Ok(value_of(py, self.committed()?, self.id)?)
    }

    #[getter]
    fn existed(&self) -> Result<Option<bool>> {
        Ok(self.committed()?.existed(self.id))
    }

    /// As the attribute `operation` of an exception has it.
    #[getter]
    fn id(&self) -> (u32, u32) {
        (self.id.blob, self.id.operation)
    }

    fn __repr__(&self) -> String {
        format!("<Operation {}.{}>", self.id.blob, self.id.operation)
    }
}

fn value_of(py: Python<'_>, committed: &tyr::Committed, id: OperationId) -> PyResult<Py<PyAny>> {
    committed.value(id).map_or_else(|| py.None().into_py_any(py), |value| to_python(py, value))
}

/// A transaction that has committed.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Committed(pub tyr::Committed);

#[pymethods]
impl Committed {
    #[getter]
    fn version(&self) -> Version {
        Version(self.0.version())
    }

    fn offset(&self, operation: &Bound<'_, Operation>) -> Option<u64> {
        self.0.offset(operation.get().id)
    }

    fn value(&self, operation: &Bound<'_, Operation>) -> PyResult<Py<PyAny>> {
        value_of(operation.py(), &self.0, operation.get().id)
    }

    fn existed(&self, operation: &Bound<'_, Operation>) -> Option<bool> {
        self.0.existed(operation.get().id)
    }

    fn __repr__(&self) -> String {
        format!("<Committed at {}>", self.0.version())
    }
}

/// Says that a transaction cannot be used now.
pub fn refused(py: Python<'_>, text: &str) -> PyErr {
    exception(py, Error::invalid(text))
}
