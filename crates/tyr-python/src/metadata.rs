//! Service metadata: small values under paths that programs agree on, and watches of it.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tyr::Error;
use tyr::metadata::{self, Expected, Path};

use crate::border::{self, Held};
use crate::call::Front;
use crate::error::{self, Result};
use crate::holding::Turns;
use crate::input::{Data, seconds};
use crate::presence::Presence;
use crate::store::Shared;

/// What a path must be like: the revision of its last change, `"absent"` or `"present"`.
#[derive(Clone, Copy, Debug)]
pub struct Condition(Expected);

impl<'a, 'py> FromPyObject<'a, 'py> for Condition {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(revision) = given.extract() {
            return Ok(Self(Expected::Revision(revision)));
        }
        let word = given.extract::<String>().ok();
        match word.as_deref() {
            Some("absent") => Ok(Self(Expected::Absent)),
            Some("present") => Ok(Self(Expected::Present)),
            _ => {
                let said = given.repr()?;
                let text = format!("a revision, \"absent\" or \"present\" is expected, not {said}");
                Err(error::exception(given.py(), Error::invalid(text)))
            }
        }
    }
}

/// Nothing yet, on a condition if there is one.
pub fn on(path: &Path, expected: Option<Condition>) -> metadata::Transaction {
    let change = metadata::Transaction::new();
    match expected {
        Some(Condition(expected)) => change.when(path.clone(), expected),
        None => change,
    }
}

/// Conditions and changes, gathered.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct MetadataTransaction(Mutex<metadata::Transaction>);

impl MetadataTransaction {
    /// What it has gathered so far.
    pub fn gathered(&self) -> metadata::Transaction {
        self.0.lock().clone()
    }

    fn add(
        this: Py<Self>,
        path: &str,
        add: impl FnOnce(metadata::Transaction, Path) -> metadata::Transaction,
    ) -> Result<Py<Self>> {
        let path = Path::new(path)?;
        let mut gathered = this.get().0.lock();
        *gathered = add(std::mem::take(&mut *gathered), path);
        drop(gathered);
        Ok(this)
    }
}

#[pymethods]
impl MetadataTransaction {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// Also requires that a path is like this.
    fn when(this: Py<Self>, path: &str, expected: Condition) -> Result<Py<Self>> {
        Self::add(this, path, |it, path| it.when(path, expected.0))
    }

    /// Also gives a path this value.
    fn put(this: Py<Self>, path: &str, value: Data) -> Result<Py<Self>> {
        Self::add(this, path, |it, path| it.put(path, value.0))
    }

    /// Also takes a path away.
    fn delete(this: Py<Self>, path: &str) -> Result<Py<Self>> {
        Self::add(this, path, |it, path| it.delete(path))
    }

    fn __repr__(&self) -> String {
        let it = self.0.lock();
        let (conditions, changes) = (it.conditions.len(), it.alterations.len());
        format!("<MetadataTransaction: {conditions} conditions, {changes} changes>")
    }
}

/// What a path has.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct MetadataEntry {
    path: Path,
    entry: metadata::Entry,
}

#[pymethods]
impl MetadataEntry {
    #[getter]
    fn path(&self) -> &str {
        self.path.as_str()
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.entry.value)
    }

    /// The revision in which it came to be.
    #[getter]
    fn created(&self) -> u64 {
        self.entry.created
    }

    /// The revision of its last change.
    #[getter]
    fn changed(&self) -> u64 {
        self.entry.changed
    }

    fn __repr__(&self) -> String {
        format!("<MetadataEntry {} of revision {}>", self.path, self.entry.changed)
    }
}

/// Entries of a listing, and the revision that they are of.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct MetadataPage {
    entries: Py<PyList>,
    revision: u64,
}

#[pymethods]
impl MetadataPage {
    #[getter]
    fn entries(&self, py: Python<'_>) -> Py<PyList> {
        self.entries.clone_ref(py)
    }

    #[getter]
    fn revision(&self) -> u64 {
        self.revision
    }
}

/// What became of a path.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct MetadataChange(metadata::KeyChange);

#[pymethods]
impl MetadataChange {
    #[getter]
    fn path(&self) -> &str {
        self.0.path.as_str()
    }

    /// What it has from then on; `None` when it is gone.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.value.as_ref().map(|value| PyBytes::new(py, value))
    }

    #[getter]
    fn revision(&self) -> u64 {
        self.0.revision
    }

    fn __repr__(&self) -> String {
        let what = if self.0.value.is_some() { "put" } else { "gone" };
        format!("<MetadataChange {}: {what} in revision {}>", self.0.path, self.0.revision)
    }
}

/// What a watch tells: all changes up to a revision.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct MetadataChanges {
    changes: Py<PyList>,
    revision: u64,
}

#[pymethods]
impl MetadataChanges {
    #[getter]
    fn changes(&self, py: Python<'_>) -> Py<PyList> {
        self.changes.clone_ref(py)
    }

    #[getter]
    fn revision(&self) -> u64 {
        self.revision
    }
}

/// The service metadata of a store.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Metadata {
    shared: Held<Arc<Shared>>,
    front: Front,
}

impl Metadata {
    /// That of a store.
    pub fn new(shared: &Arc<Shared>, front: &Front) -> Self {
        Self { shared: Held::new(Arc::clone(shared)), front: front.clone() }
    }

    fn inner(&self) -> PyResult<metadata::Metadata> {
        self.shared.check()?;
        Ok(self.shared.tyr().metadata())
    }

    fn change(&self, py: Python<'_>, change: metadata::Transaction) -> PyResult<Py<PyAny>> {
        let it = self.inner()?;
        self.front.run(py, async move { it.transact(change).await }, revision)
    }
}

/// A revision as Python has it.
pub fn revision(py: Python<'_>, revision: u64) -> PyResult<Py<PyAny>> {
    revision.into_py_any(py)
}

#[pymethods]
impl Metadata {
    /// What a path has; `None` when there is nothing.
    fn get(&self, py: Python<'_>, path: &str) -> Result<Py<PyAny>> {
        let (it, path) = (self.inner()?, Path::new(path)?);
        let get = async move {
            let found = it.get(path.as_str()).await?;
            Ok(found.map(|entry| MetadataEntry { path, entry }))
        };
        Ok(self.front.run(py, get, |py, found| found.into_py_any(py))?)
    }

    /// Gives a path this value; answers the revision in which it has it.
    #[pyo3(signature = (path, value, *, expected=None))]
    fn put(
        &self,
        py: Python<'_>,
        path: &str,
        value: Data,
        expected: Option<Condition>,
    ) -> Result<Py<PyAny>> {
        let path = Path::new(path)?;
        Ok(self.change(py, on(&path, expected).put(path, value.0))?)
    }

    /// Takes a path away; answers the revision afterwards.
    #[pyo3(signature = (path, *, expected=None))]
    fn delete(&self, py: Python<'_>, path: &str, expected: Option<Condition>) -> Result<Py<PyAny>> {
        let path = Path::new(path)?;
        Ok(self.change(py, on(&path, expected).delete(path))?)
    }

    /// Makes conditions and changes take effect, all or nothing.
    fn transact(
        &self,
        py: Python<'_>,
        transaction: &Bound<'_, MetadataTransaction>,
    ) -> PyResult<Py<PyAny>> {
        self.change(py, transaction.get().gathered())
    }

    /// A page of what begins with a prefix.
    #[pyo3(signature = (prefix="", *, after=None, limit=1024))]
    fn list(
        &self,
        py: Python<'_>,
        prefix: &str,
        after: Option<String>,
        limit: usize,
    ) -> PyResult<Py<PyAny>> {
        let (it, prefix) = (self.inner()?, prefix.to_owned());
        let list = async move { it.list(&prefix, after.as_deref(), limit).await };
        self.front.run(py, list, |py, page: metadata::Page| {
            let entries = page.entries.into_iter();
            let entries: Vec<MetadataEntry> =
                entries.map(|(path, entry)| MetadataEntry { path, entry }).collect();
            let entries = PyList::new(py, entries)?.unbind();
            MetadataPage { entries, revision: page.revision }.into_py_any(py)
        })
    }

    /// Watches what changes under a prefix after a revision.
    #[pyo3(signature = (prefix="", *, after))]
    fn watch(&self, prefix: &str, after: u64) -> PyResult<MetadataWatch> {
        let turns = Held::new(Arc::new(Turns::new(self.inner()?.watch(prefix, after))));
        let shared = Held::new(Arc::clone(&self.shared));
        let (front, prefix) = (self.front.clone(), prefix.to_owned());
        Ok(MetadataWatch { shared, front, prefix, turns })
    }

    /// That this program is there.
    #[pyo3(signature = (ttl=10.0))]
    fn presence(&self, py: Python<'_>, ttl: f64) -> Result<Py<PyAny>> {
        let (it, ttl) = (self.inner()?, seconds("ttl", ttl)?);
        let (shared, front) = (Arc::clone(&self.shared), self.front.clone());
        let finish =
            move |py: Python<'_>, inner| Presence::new(&shared, &front, inner).into_py_any(py);
        Ok(self.front.run(py, async move { it.presence(ttl).await }, finish)?)
    }

    fn __repr__(&self) -> String {
        format!("<Metadata of {}>", self.shared.place())
    }
}

/// A watch of what changes under a prefix.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct MetadataWatch {
    shared: Held<Arc<Shared>>,
    front: Front,
    prefix: String,
    turns: Held<Arc<Turns<metadata::Watch>>>,
}

#[pymethods]
impl MetadataWatch {
    /// Waits until something has changed; `None` when nothing has in time.
    #[pyo3(signature = (timeout=None))]
    fn changed(&self, py: Python<'_>, timeout: Option<f64>) -> Result<Py<PyAny>> {
        self.shared.check()?;
        let (mut turn, closing) = self.turns.begin()?;
        let next = async move { closing.or(turn.inner().next()).await };
        let finish = |py: Python<'_>, told: metadata::Changes| {
            let changes: Vec<MetadataChange> =
                told.changes.into_iter().map(MetadataChange).collect();
            let changes = PyList::new(py, changes)?.unbind();
            MetadataChanges { changes, revision: told.revision }.into_py_any(py)
        };
        let told = self.front.run_within(py, timeout, next, finish)?;
        Ok(told.unwrap_or_else(|| py.None()))
    }

    /// Ends it, and what waits for it.
    fn close(&self) -> PyResult<()> {
        border::check()?;
        self.turns.close();
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
        format!("<MetadataWatch of {:?}{state}>", self.prefix)
    }
}
