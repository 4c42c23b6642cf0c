//! A snapshot: everything as it was at one moment.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tyr::{Bytes, Error};

use crate::border::Held;
use crate::call::Front;
use crate::error::Result;
use crate::input::{Count, Key};
use crate::keyspace::Keyspace;
use crate::listing::{Entries, Page, ScanWords};
use crate::number::{Stat, Version};
use crate::operation::refused;
use crate::queue::Queue;
use crate::store::Shared;
use crate::stretch::{Stretches, range_of};

/// A read-only view of a store at one moment.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Snapshot {
    shared: Held<Arc<Shared>>,
    front: Front,
    version: tyr::Timestamp,
    inner: Mutex<Option<Held<Arc<tyr::Snapshot>>>>,
}

impl Snapshot {
    /// A snapshot of a store.
    pub fn new(shared: &Arc<Shared>, front: &Front, inner: tyr::Snapshot) -> Self {
        Self::of(shared, front, inner.version(), Arc::new(inner))
    }

    fn of(
        shared: &Arc<Shared>,
        front: &Front,
        version: tyr::Timestamp,
        inner: Arc<tyr::Snapshot>,
    ) -> Self {
        let inner = Mutex::new(Some(Held::new(inner)));
        Self { shared: Held::new(Arc::clone(shared)), front: front.clone(), version, inner }
    }

    fn inner(&self) -> Result<Arc<tyr::Snapshot>> {
        self.shared.check()?;
        let inner = self.inner.lock().as_ref().map(|it| Arc::clone(it));
        Ok(inner.ok_or_else(|| Error::invalid("this snapshot was given back: take another"))?)
    }

    fn run<T: Send + 'static, F: Future<Output = tyr::Result<T>> + Send + 'static>(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        begin: impl FnOnce(Arc<tyr::Snapshot>, tyr::Keyspace) -> F,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Result<Py<PyAny>> {
        let inner = self.inner()?;
        let of = keyspace.get().of(&self.shared)?.clone();
        Ok(self.front.run(keyspace.py(), begin(inner, of), finish)?)
    }

    /// A page of a listing, waited for.
    pub fn page(&self, keyspace: &Bound<'_, Keyspace>, scan: &tyr::Scan) -> Result<tyr::ScanPage> {
        let (inner, scan) = (self.inner()?, scan.clone());
        let of = keyspace.get().of(&self.shared)?.clone();
        let page = async move { inner.scan_page(&of, &scan).await };
        Ok(crate::call::wait_for(keyspace.py(), page)??)
    }
}

fn bytes(py: Python<'_>, bytes: Bytes) -> PyResult<Py<PyAny>> {
    Ok(PyBytes::new(py, &bytes).into_any().unbind())
}

#[pymethods]
impl Snapshot {
    #[getter]
    fn version(&self) -> Version {
        Version(self.version)
    }

    /// The same snapshot, answering through a queue. Each is given back by itself.
    fn through(&self, queue: &Bound<'_, Queue>) -> Result<Self> {
        let inner = self.inner()?;
        Ok(Self::of(&self.shared, &queue.get().front(), self.version, inner))
    }

    fn read(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Count,
        length: Count,
    ) -> Result<Py<PyAny>> {
        let (key, offset, length) = (key.0, offset.0, length.0);
        let begin = move |it: Arc<tyr::Snapshot>, keyspace: tyr::Keyspace| async move {
            it.read(&keyspace, key, offset, length).await
        };
        self.run(keyspace, begin, bytes)
    }

    fn get(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Py<PyAny>> {
        let begin = move |it: Arc<tyr::Snapshot>, keyspace: tyr::Keyspace| async move {
            it.get(&keyspace, key.0).await
        };
        self.run(keyspace, begin, bytes)
    }

    fn stat(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Py<PyAny>> {
        let begin = move |it: Arc<tyr::Snapshot>, keyspace: tyr::Keyspace| async move {
            it.stat(&keyspace, key.0).await
        };
        self.run(keyspace, begin, |py, stat| Stat(stat).into_py_any(py))
    }

    #[pyo3(signature = (keyspace, key, offset=None, length=None))]
    fn stretches(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: Key,
        offset: Option<Count>,
        length: Option<Count>,
    ) -> Result<Py<PyAny>> {
        let range = range_of(offset, length)?;
        let begin = move |it: Arc<tyr::Snapshot>, keyspace: tyr::Keyspace| async move {
            it.stretches(&keyspace, key.0, range).await
        };
        self.run(keyspace, begin, |py, page| Stretches(page).into_py_any(py))
    }

    fn allocated(&self, keyspace: &Bound<'_, Keyspace>, key: Key) -> Result<Py<PyAny>> {
        let begin = move |it: Arc<tyr::Snapshot>, keyspace: tyr::Keyspace| async move {
            it.allocated(&keyspace, key.0).await
        };
        self.run(keyspace, begin, |py, len| len.into_py_any(py))
    }

    #[pyo3(signature = (keyspace, **words))]
    fn scan_page(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        words: Option<ScanWords>,
    ) -> Result<Py<PyAny>> {
        let scan = words.unwrap_or_default().0;
        let begin = move |it: Arc<tyr::Snapshot>, keyspace: tyr::Keyspace| async move {
            it.scan_page(&keyspace, &scan).await
        };
        self.run(keyspace, begin, |py, page| Page::new(py, page)?.into_py_any(py))
    }

    #[pyo3(signature = (keyspace, **words))]
    fn list(
        this: Py<Self>,
        keyspace: &Bound<'_, Keyspace>,
        words: Option<ScanWords>,
    ) -> Result<Entries> {
        this.get().inner()?;
        keyspace.get().of(&this.get().shared)?;
        if let Front::Queued(_) = this.get().front {
            return Err(refused(keyspace.py(), "a listing of tyr.aio is `async for`").into());
        }
        let of = keyspace.clone().unbind();
        Ok(Entries::new(this.into_any(), Some(of), words.unwrap_or_default().0))
    }

    /// Gives it back: what it kept may go.
    fn release(&self) -> PyResult<()> {
        crate::border::check()?;
        let inner = self.inner.lock().take();
        drop(inner);
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> Result<Py<Self>> {
        this.get().inner()?;
        Ok(this)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.release()?;
        Ok(false)
    }

    fn __repr__(&self) -> String {
        format!("<Snapshot of {} at {}>", self.shared.place(), self.version)
    }
}
