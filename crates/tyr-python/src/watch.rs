//! Watches of keys, what they tell, and notices to who watches.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tyr::{Bytes, Error, WatchEvent};

use crate::border::{self, Held};
use crate::call::Front;
use crate::error::Result;
use crate::holding::{Kept, Turns};
use crate::input::Data;
use crate::number::Version;
use crate::store::Shared;

/// What was sent to who watches a key.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Notice(tyr::Notice);

#[pymethods]
impl Notice {
    /// The key that it was sent to.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.key.as_bytes())
    }

    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.payload)
    }

    fn __repr__(&self) -> String {
        format!("<Notice to {}: {} bytes>", self.0.key, self.0.payload.len())
    }
}

/// What a watch tells: some changes as one.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Event {
    is_anew: bool,
    is_more: bool,
    version: tyr::Timestamp,
    keys: Py<PyList>,
    notices: Py<PyList>,
}

impl Event {
    fn new(py: Python<'_>, event: WatchEvent) -> PyResult<Self> {
        let WatchEvent { is_anew, changes, notices } = event;
        let keys = changes.keys.iter().map(|key| PyBytes::new(py, key.as_bytes()));
        let keys = PyList::new(py, keys.collect::<Vec<_>>())?.unbind();
        let notices: Vec<Notice> = notices.into_iter().map(Notice).collect();
        let notices = PyList::new(py, notices)?.unbind();
        Ok(Self { is_anew, is_more: changes.is_more, version: changes.at, keys, notices })
    }
}

#[pymethods]
impl Event {
    /// Whether it is to be looked at what is there: something may have changed that was not told.
    #[getter]
    fn is_anew(&self) -> bool {
        self.is_anew
    }

    /// Keys that have changed, in order.
    #[getter]
    fn keys(&self, py: Python<'_>) -> Py<PyList> {
        self.keys.clone_ref(py)
    }

    /// Whether more have changed than are named.
    #[getter]
    fn is_more(&self) -> bool {
        self.is_more
    }

    /// The latest version among the changes.
    #[getter]
    fn version(&self) -> Version {
        Version(self.version)
    }

    #[getter]
    fn notices(&self, py: Python<'_>) -> Py<PyList> {
        self.notices.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let keys = self.keys.bind(py).repr()?;
        let anew = if self.is_anew { ", anew" } else { "" };
        Ok(format!("<Event: {keys}{anew}>"))
    }
}

/// Who has acknowledged a notice, and who has not. Who watches is named by two numbers.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Notified(pub tyr::Notified);

#[pymethods]
impl Notified {
    /// Those who have, in time, with what they replied.
    #[getter]
    fn acknowledged<'py>(&self, py: Python<'py>) -> Vec<((u64, u64), Bound<'py, PyBytes>)> {
        let acknowledged = self.0.acknowledged.iter();
        acknowledged.map(|(who, reply)| (numbers(*who), PyBytes::new(py, reply))).collect()
    }

    #[getter]
    fn missed(&self) -> Vec<(u64, u64)> {
        self.0.missed.iter().map(|who| numbers(*who)).collect()
    }

    fn __repr__(&self) -> String {
        let (have, have_not) = (self.0.acknowledged.len(), self.0.missed.len());
        format!("<Notified: {have} have acknowledged it, {have_not} have not>")
    }
}

fn numbers(who: tyr::Watcher) -> (u64, u64) {
    (who.client, who.watch)
}

/// A watch of a key, or of all keys with a prefix.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Watch {
    shared: Held<Arc<Shared>>,
    front: Front,
    of: String,
    inner: Kept<Arc<tyr::Watch>>,
    turns: Held<Arc<Turns<Arc<tyr::Watch>>>>,
}

impl Watch {
    /// A watch as Python has it, `of` what it says.
    pub fn new(shared: &Arc<Shared>, front: &Front, of: String, inner: tyr::Watch) -> Self {
        let (shared, inner) = (Held::new(Arc::clone(shared)), Arc::new(inner));
        let turns = Held::new(Arc::new(Turns::new(Arc::clone(&inner))));
        Self { shared, front: front.clone(), of, inner: Kept::new(inner), turns }
    }
}

#[pymethods]
impl Watch {
    /// Waits until there is something to tell; `None` when nothing was in time.
    #[pyo3(signature = (timeout=None))]
    fn changed(&self, py: Python<'_>, timeout: Option<f64>) -> Result<Py<PyAny>> {
        self.shared.check()?;
        let (mut turn, closing) = self.turns.begin()?;
        let next = async move { closing.or(turn.inner().changed()).await };
        let finish = |py: Python<'_>, event| Event::new(py, event)?.into_py_any(py);
        let told = self.front.run_within(py, timeout, next, finish)?;
        Ok(told.unwrap_or_else(|| py.None()))
    }

    /// Acknowledges a notice, with a reply for who sent it.
    #[pyo3(signature = (notice, reply=None))]
    fn acknowledge(&self, notice: &Bound<'_, Notice>, reply: Option<Data>) -> Result<()> {
        self.shared.check()?;
        let reply = reply.map_or_else(Bytes::new, |reply| reply.0);
        let acknowledged = self.inner.with(|watch| watch.acknowledge(&notice.get().0, reply));
        Ok(acknowledged.ok_or_else(|| Error::invalid("this watch was closed"))??)
    }

    /// Ends it, and what waits for it.
    fn close(&self) -> PyResult<()> {
        border::check()?;
        self.turns.close();
        drop(self.inner.take());
        Ok(())
    }

    fn __iter__(this: Py<Self>) -> Result<Py<Self>> {
        this.get().front.check_blocking("this watch", "for")?;
        Ok(this)
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Py<PyAny>>> {
        let told = self.changed(py, None);
        self.turns.unless_closed(py, told)
    }

    fn __enter__(this: Py<Self>) -> Result<Py<Self>> {
        this.get().front.check_blocking("this watch", "with")?;
        this.get().shared.check()?;
        Ok(this)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.close()?;
        Ok(false)
    }

    fn __repr__(&self) -> String {
        let state = if self.turns.is_closed() { ": closed" } else { "" };
        format!("<Watch of {}{state}>", self.of)
    }
}
