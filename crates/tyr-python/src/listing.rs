//! Listings: what is asked for, a page, and all pages as an iterator.

use std::collections::VecDeque;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tyr::{Error, Scan, ScanEntry, ScanPage};

use crate::error::{Result, exception};
use crate::input::{Count, Part};
use crate::keyspace::Keyspace;
use crate::number::{Stat, Version};
use crate::snapshot::Snapshot;

/// What is to be listed, from the words of a call.
#[derive(Debug, Default)]
pub struct ScanWords(pub Scan);

impl<'a, 'py> FromPyObject<'a, 'py> for ScanWords {
    type Error = PyErr;

    fn extract(words: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let mut scan = Scan::new();
        for (name, value) in words.cast::<PyDict>()?.iter() {
            if value.is_none() {
                continue;
            }
            scan = match &*name.extract::<String>()? {
                "prefix" => scan.prefix(value.extract::<Part>()?.0),
                "start" => scan.from(value.extract::<Part>()?.0),
                "end" => scan.to(value.extract::<Part>()?.0),
                "after" => scan.after(value.extract::<Part>()?.0),
                "delimiter" => scan.delimiter(value.extract::<Part>()?.0),
                "limit" => scan.limit(value.extract::<Count>()?.0.try_into().unwrap_or(usize::MAX)),
                "first_bytes" => scan.first_bytes(value.extract::<Count>()?.0),
                "keys_only" if value.is_truthy()? => scan.keys_only(),
                "keys_only" => scan,
                other => {
                    let text = format!(
                        "a listing has the words prefix, start, end, after, delimiter, limit, \
                         first_bytes and keys_only, not \"{other}\""
                    );
                    return Err(exception(words.py(), Error::invalid(text)));
                }
            };
        }
        Ok(Self(scan))
    }
}

/// A blob in a listing.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Entry(ScanEntry);

#[pymethods]
impl Entry {
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.key.as_bytes())
    }

    #[getter]
    fn size(&self) -> Option<u64> {
        self.0.stat.map(|stat| stat.size)
    }

    #[getter]
    fn version(&self) -> Option<Version> {
        self.0.stat.map(|stat| Version(stat.version))
    }

    #[getter]
    fn stat(&self) -> Option<Stat> {
        self.0.stat.map(Stat)
    }

    /// Its first bytes, if they were asked for.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.bytes)
    }

    fn __repr__(&self) -> String {
        let size = self.0.stat.map_or_else(String::new, |stat| format!(": {} bytes", stat.size));
        format!("<Entry {}{size}>", self.0.key)
    }
}

/// A page of a listing.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Page {
    entries: Py<PyList>,
    groups: Py<PyList>,
    resume: Option<Py<PyBytes>>,
}

impl Page {
    /// A page as Python has it.
    pub fn new(py: Python<'_>, page: ScanPage) -> PyResult<Self> {
        let groups = page.groups.iter().map(|group| PyBytes::new(py, group));
        let groups = PyList::new(py, groups.collect::<Vec<_>>())?.unbind();
        let entries: Vec<Entry> = page.entries.into_iter().map(Entry).collect();
        let resume = page.resume.map(|resume| PyBytes::new(py, &resume).unbind());
        Ok(Self { entries: PyList::new(py, entries)?.unbind(), groups, resume })
    }
}

#[pymethods]
impl Page {
    #[getter]
    fn entries(&self, py: Python<'_>) -> Py<PyList> {
        self.entries.clone_ref(py)
    }

    /// What keys up to the delimiter begin with, one for all of them.
    #[getter]
    fn groups(&self, py: Python<'_>) -> Py<PyList> {
        self.groups.clone_ref(py)
    }

    /// From where on to go on, as `start`; `None` when that was all.
    #[getter]
    fn resume(&self, py: Python<'_>) -> Option<Py<PyBytes>> {
        self.resume.as_ref().map(|resume| resume.clone_ref(py))
    }
}

/// The blobs of a listing, each page asked for when the last one is used up.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Entries {
    /// A keyspace, or a snapshot with a keyspace.
    source: Py<PyAny>,
    of: Option<Py<Keyspace>>,
    state: Mutex<Listing>,
}

#[derive(Debug)]
struct Listing {
    next: Option<Scan>,
    found: VecDeque<ScanEntry>,
}

impl Entries {
    /// All that `scan` finds in a keyspace, or, `of` that, in a snapshot.
    pub fn new(source: Py<PyAny>, of: Option<Py<Keyspace>>, scan: Scan) -> Self {
        let state = Mutex::new(Listing { next: Some(scan), found: VecDeque::new() });
        Self { source, of, state }
    }

    fn page(&self, py: Python<'_>, scan: &Scan) -> Result<ScanPage> {
        match &self.of {
            Some(of) => {
                let snapshot = self.source.bind(py).cast::<Snapshot>().map_err(PyErr::from)?;
                snapshot.get().page(of.bind(py), scan)
            }
            None => {
                let keyspace = self.source.bind(py).cast::<Keyspace>().map_err(PyErr::from)?;
                keyspace.get().page(py, scan)
            }
        }
    }
}

#[pymethods]
impl Entries {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Entry>> {
        loop {
            let mut state = self.state.lock();
            if let Some(entry) = state.found.pop_front() {
                return Ok(Some(Entry(entry)));
            }
            let Some(scan) = state.next.take() else { return Ok(None) };
            drop(state);
            let page = self.page(py, &scan);
            let mut state = self.state.lock();
            match page {
                Ok(page) => {
                    state.next = scan.resumed(&page);
                    state.found.extend(page.entries);
                }
                // It goes on there when it is asked again.
                Err(failure) => {
                    state.next = Some(scan);
                    return Err(failure);
                }
            }
        }
    }
}
