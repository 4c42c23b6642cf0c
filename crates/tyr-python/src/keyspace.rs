//! A keyspace: every operation on single blobs.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tyr::{Bytes, Durability, Error, KeyspaceConfig, PlacedBy};

use crate::border::Held;
use crate::call::Front;
use crate::error::Result;
use crate::input::{Count, Data, Key, Part, Room, seconds};
use crate::lease::{Lease, Lock, LockInfo, options_of};
use crate::listing::{Entries, Page, ScanWords};
use crate::number::{Stat, Transform, to_python};
use crate::operation::refused;
use crate::queue::Queue;
use crate::store::{Shared, Store};
use crate::stream::{self, Feed, Pieces};
use crate::stretch::{Stretches, range_of};
use crate::watch::{Notified, Watch};

/// What a keyspace is created with, from the words of a call.
pub fn config_of(words: Option<&Bound<'_, PyDict>>) -> Result<KeyspaceConfig> {
    let mut config = KeyspaceConfig::default();
    for (name, value) in words.into_iter().flatten() {
        match &*name.extract::<String>()? {
            "chunk_size" => config.chunk_size = value.extract::<Count>()?.0,
            "replication" => config.replication = value.extract()?,
            "live_replicas_min" => config.live_replicas_min = value.extract()?,
            "durability" => config.durability = Durability::parse(&value.extract::<String>()?)?,
            "is_compressed" => config.is_compressed = value.extract()?,
            "is_multi_versioned" => config.is_multi_versioned = value.extract()?,
            "is_guarded" => config.is_guarded = value.extract()?,
            "placed_by" => config.placed_by = PlacedBy::parse(&value.extract::<String>()?)?,
            other => {
                return Err(Error::invalid(format!(
                    "a keyspace is created with chunk_size, replication, live_replicas_min, \
                     durability, is_compressed, is_multi_versioned, is_guarded and placed_by, not \
                     \"{other}\""
                ))
                .into());
            }
        }
    }
    Ok(config)
}

/// A namespace of blobs.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Keyspace {
    shared: Held<Arc<Shared>>,
    front: Front,
    inner: Held<tyr::Keyspace>,
}

impl Keyspace {
    /// A keyspace of a store.
    pub fn new(shared: &Arc<Shared>, front: &Front, inner: tyr::Keyspace) -> Self {
        let shared = Held::new(Arc::clone(shared));
        Self { shared, front: front.clone(), inner: Held::new(inner) }
    }

    /// It, if it is of this store.
    ///
    /// # Errors
    /// `Forked`, `Closed`; `InvalidArgument` when it is of another.
    pub fn of(&self, shared: &Arc<Shared>) -> Result<&tyr::Keyspace> {
        shared.check()?;
        if !Arc::ptr_eq(shared, &self.shared) {
            let (name, place) = (self.inner.name(), shared.place());
            return Err(Error::invalid(format!(
                "keyspace {name} was found in another store: find it in {place}"
            ))
            .into());
        }
        Ok(&self.inner)
    }

    /// Has a call on it done.
    fn run<T: Send + 'static, F: Future<Output = tyr::Result<T>> + Send + 'static>(
        &self,
        py: Python<'_>,
        begin: impl FnOnce(tyr::Keyspace) -> F,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        self.shared.check()?;
        self.front.run(py, begin((*self.inner).clone()), finish)
    }

    /// Has what comes in pieces written.
    fn stream<F: Future<Output = tyr::Result<u64>> + Send + 'static>(
        &self,
        pieces: &Bound<'_, PyAny>,
        begin: impl FnOnce(tyr::Keyspace, Pieces) -> F,
    ) -> Result<Py<PyAny>> {
        let py = pieces.py();
        if let Front::Blocking = self.front {
            self.shared.check()?;
            let written = stream::write(py, pieces, |pieces| begin((*self.inner).clone(), pieces))?;
            return Ok(written.into_py_any(py)?);
        }
        let pieces = pieces.cast::<Feed>().map_err(PyErr::from)?.get().pieces();
        let finish = |py: Python<'_>, written: u64| written.into_py_any(py);
        Ok(self.run(py, |it| begin(it, pieces), finish)?)
    }

    /// Makes a lease of the public crate one of Python's.
    fn lease_maker(
        &self,
    ) -> impl FnOnce(Python<'_>, tyr::Lease) -> PyResult<Py<PyAny>> + Send + 'static {
        let (shared, front) = (Arc::clone(&self.shared), self.front.clone());
        move |py, inner| Lease::new(&shared, &front, inner).into_py_any(py)
    }

    fn watch_maker(
        &self,
        of: String,
    ) -> impl FnOnce(Python<'_>, tyr::Watch) -> PyResult<Py<PyAny>> + Send + 'static {
        let (shared, front) = (Arc::clone(&self.shared), self.front.clone());
        move |py, inner| Watch::new(&shared, &front, of, inner).into_py_any(py)
    }
}

fn nothing(py: Python<'_>, _: ()) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}

fn bytes(py: Python<'_>, bytes: Bytes) -> PyResult<Py<PyAny>> {
    Ok(PyBytes::new(py, &bytes).into_any().unbind())
}

#[pymethods]
impl Keyspace {
    #[getter]
    fn name(&self) -> PyResult<&str> {
        crate::border::check()?;
        Ok(self.inner.name())
    }

    #[getter]
    fn chunk_size(&self) -> PyResult<u64> {
        crate::border::check()?;
        Ok(self.inner.config().chunk_size)
    }

    /// The store that it is of.
    #[getter]
    fn store(&self) -> PyResult<Store> {
        self.shared.check()?;
        Ok(Store::new(&self.shared, &self.front))
    }

    /// The same keyspace, answering through a queue.
    fn through(&self, queue: &Bound<'_, Queue>) -> PyResult<Self> {
        self.shared.check()?;
        Ok(Self::new(&self.shared, &queue.get().front(), (*self.inner).clone()))
    }

    fn create(&self, py: Python<'_>, key: Key) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.create(key.0).await }, nothing)
    }

    fn put(&self, py: Python<'_>, key: Key, data: Data) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.put(key.0, data.0).await }, nothing)
    }

    /// Puts all that an iterator has, in one transaction; answers how many bytes.
    fn put_stream(&self, key: Key, pieces: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.stream(pieces, |it, pieces| async move { it.put_stream(key.0, pieces).await })
    }

    /// Writes all that an iterator has, in one transaction; answers how many bytes.
    fn write_stream(
        &self,
        key: Key,
        offset: Count,
        pieces: &Bound<'_, PyAny>,
    ) -> Result<Py<PyAny>> {
        let begin = |it: tyr::Keyspace, pieces| async move {
            it.write_stream(key.0, offset.0, pieces).await
        };
        self.stream(pieces, begin)
    }

    /// Appends all that an iterator has, in one transaction; answers where.
    fn append_stream(&self, key: Key, pieces: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        self.stream(pieces, |it, pieces| async move { it.append_stream(key.0, pieces).await })
    }

    fn write(&self, py: Python<'_>, key: Key, offset: Count, data: Data) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.write(key.0, offset.0, data.0).await }, nothing)
    }

    #[pyo3(signature = (key, data, *, at=None))]
    fn append(
        &self,
        py: Python<'_>,
        key: Key,
        data: Data,
        at: Option<Count>,
    ) -> PyResult<Py<PyAny>> {
        let begin = |it: tyr::Keyspace| async move {
            match at {
                Some(at) => it.append_at(key.0, at.0, data.0).await,
                None => it.append(key.0, data.0).await,
            }
        };
        self.run(py, begin, |py, offset| offset.into_py_any(py))
    }

    fn read(&self, py: Python<'_>, key: Key, offset: Count, length: Count) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.read(key.0, offset.0, length.0).await }, bytes)
    }

    /// Reads, and says what the blob was like then.
    fn read_with_stat(
        &self,
        py: Python<'_>,
        key: Key,
        offset: Count,
        length: Count,
    ) -> PyResult<Py<PyAny>> {
        let begin =
            |it: tyr::Keyspace| async move { it.read_with_stat(key.0, offset.0, length.0).await };
        let finish = |py: Python<'_>, (stat, read): (tyr::Stat, Bytes)| {
            (bytes(py, read)?, Stat(stat)).into_py_any(py)
        };
        self.run(py, begin, finish)
    }

    /// Reads into writable memory of one piece; answers how many bytes.
    fn read_into(
        &self,
        py: Python<'_>,
        key: Key,
        offset: Count,
        buffer: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        if let Front::Queued(_) = self.front {
            return Err(refused(py, "read_into is not there in tyr.aio: read, and copy"));
        }
        self.shared.check()?;
        let (room, it) = (Room::of(buffer)?, (*self.inner).clone());
        let len = room.len()? as u64;
        let read = async move { it.read(key.0, offset.0, len).await };
        let read = crate::call::wait_for(py, read)?;
        let read = read.map_err(|error| crate::error::exception(py, error))?;
        room.fill(&read)?;
        Ok(read.len())
    }

    fn get(&self, py: Python<'_>, key: Key) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.get(key.0).await }, bytes)
    }

    fn stat(&self, py: Python<'_>, key: Key) -> PyResult<Py<PyAny>> {
        let finish = |py: Python<'_>, stat| Stat(stat).into_py_any(py);
        self.run(py, |it| async move { it.stat(key.0).await }, finish)
    }

    /// A page of the stretches that are written: all else is holes.
    #[pyo3(signature = (key, offset=None, length=None))]
    fn stretches(
        &self,
        py: Python<'_>,
        key: Key,
        offset: Option<Count>,
        length: Option<Count>,
    ) -> Result<Py<PyAny>> {
        let range = range_of(offset, length)?;
        let finish = |py: Python<'_>, page| Stretches(page).into_py_any(py);
        Ok(self.run(py, |it| async move { it.stretches(key.0, range).await }, finish)?)
    }

    /// How many bytes are in stretches that are written.
    fn allocated(&self, py: Python<'_>, key: Key) -> PyResult<Py<PyAny>> {
        let finish = |py: Python<'_>, len: u64| len.into_py_any(py);
        self.run(py, |it| async move { it.allocated(key.0).await }, finish)
    }

    fn truncate(&self, py: Python<'_>, key: Key, size: Count) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.truncate(key.0, size.0).await }, nothing)
    }

    fn clear(&self, py: Python<'_>, key: Key, offset: Count, length: Count) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.clear(key.0, offset.0, length.0).await }, nothing)
    }

    fn delete(&self, py: Python<'_>, key: Key) -> PyResult<Py<PyAny>> {
        let finish = |py: Python<'_>, existed: bool| existed.into_py_any(py);
        self.run(py, |it| async move { it.delete(key.0).await }, finish)
    }

    fn apply(
        &self,
        py: Python<'_>,
        key: Key,
        offset: Count,
        transform: &Bound<'_, Transform>,
    ) -> PyResult<Py<PyAny>> {
        let transform = transform.get().0;
        let begin = |it: tyr::Keyspace| async move { it.apply(key.0, offset.0, transform).await };
        self.run(py, begin, to_python)
    }

    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: Key,
        offset: Count,
        expected: Data,
        new: Data,
    ) -> PyResult<Py<PyAny>> {
        let begin = |it: tyr::Keyspace| async move {
            it.compare_and_swap(key.0, offset.0, expected.0, new.0).await
        };
        self.run(py, begin, nothing)
    }

    /// Takes a lock.
    #[pyo3(signature = (key, *, wait=None, duration=None, holder=None))]
    fn lock(
        &self,
        py: Python<'_>,
        key: Key,
        wait: Option<f64>,
        duration: Option<f64>,
        holder: Option<String>,
    ) -> Result<Py<PyAny>> {
        let options = options_of(false, wait, duration, holder)?;
        let (shared, front) = (Arc::clone(&self.shared), self.front.clone());
        let finish = move |py: Python<'_>, lock| Lock::new(&shared, &front, lock).into_py_any(py);
        Ok(self.run(py, |it| async move { it.lock(key.0, &options).await }, finish)?)
    }

    fn inspect_lock(&self, py: Python<'_>, key: Key) -> PyResult<Py<PyAny>> {
        let finish = |py: Python<'_>, info| LockInfo(info).into_py_any(py);
        self.run(py, |it| async move { it.inspect_lock(key.0).await }, finish)
    }

    /// Takes a lease of a key.
    #[pyo3(signature = (key, *, is_shared=false, wait=None, duration=None))]
    fn lease(
        &self,
        py: Python<'_>,
        key: Key,
        is_shared: bool,
        wait: Option<f64>,
        duration: Option<f64>,
    ) -> Result<Py<PyAny>> {
        let options = options_of(is_shared, wait, duration, None)?;
        let begin = |it: tyr::Keyspace| async move { it.lease(key.0, &options).await };
        Ok(self.run(py, begin, self.lease_maker())?)
    }

    /// Takes a lease of all keys of a group.
    #[pyo3(signature = (group, *, is_shared=false, wait=None, duration=None))]
    fn lease_group(
        &self,
        py: Python<'_>,
        group: Key,
        is_shared: bool,
        wait: Option<f64>,
        duration: Option<f64>,
    ) -> Result<Py<PyAny>> {
        let options = options_of(is_shared, wait, duration, None)?;
        let begin = |it: tyr::Keyspace| async move { it.lease_group(group.0, &options).await };
        Ok(self.run(py, begin, self.lease_maker())?)
    }

    /// Watches a key.
    fn watch(&self, py: Python<'_>, key: Key) -> PyResult<Py<PyAny>> {
        let finish = self.watch_maker(key.0.to_string());
        self.run(py, |it| async move { it.watch(key.0).await }, finish)
    }

    /// Watches all keys that begin so.
    #[pyo3(signature = (prefix=None))]
    fn watch_prefix(&self, py: Python<'_>, prefix: Option<Part>) -> PyResult<Py<PyAny>> {
        let prefix = prefix.map_or_else(Vec::new, |prefix| prefix.0);
        let finish = self.watch_maker(format!("{}*", prefix.escape_ascii()));
        self.run(py, |it| async move { it.watch_prefix(prefix).await }, finish)
    }

    /// Sends a notice to who watches a key, and says who has acknowledged it in time.
    #[pyo3(signature = (key, payload=None, *, timeout=10.0))]
    fn notify(
        &self,
        py: Python<'_>,
        key: Key,
        payload: Option<Data>,
        timeout: f64,
    ) -> Result<Py<PyAny>> {
        let payload = payload.map_or_else(Bytes::new, |payload| payload.0);
        let timeout = seconds("timeout", timeout)?;
        let begin = |it: tyr::Keyspace| async move { it.notify(key.0, payload, timeout).await };
        Ok(self.run(py, begin, |py, notified| Notified(notified).into_py_any(py))?)
    }

    #[pyo3(signature = (**words))]
    fn scan_page(&self, py: Python<'_>, words: Option<ScanWords>) -> PyResult<Py<PyAny>> {
        let scan = words.unwrap_or_default().0;
        let begin = |it: tyr::Keyspace| async move { it.scan_page(&scan).await };
        self.run(py, begin, |py, page| Page::new(py, page)?.into_py_any(py))
    }

    /// All that a scan finds, page by page.
    #[pyo3(signature = (**words))]
    fn list(this: Py<Self>, py: Python<'_>, words: Option<ScanWords>) -> Result<Entries> {
        this.get().shared.check()?;
        if let Front::Queued(_) = this.get().front {
            return Err(refused(py, "a listing of tyr.aio is `async for`").into());
        }
        let source = this.into_any();
        Ok(Entries::new(source, None, words.unwrap_or_default().0))
    }

    fn __repr__(&self) -> PyResult<String> {
        crate::border::check()?;
        Ok(format!("<Keyspace {} of {}>", self.inner.name(), self.shared.place()))
    }
}

impl Keyspace {
    /// A page of a listing, waited for.
    pub fn page(&self, py: Python<'_>, scan: &tyr::Scan) -> Result<tyr::ScanPage> {
        self.shared.check()?;
        let (it, scan) = ((*self.inner).clone(), scan.clone());
        Ok(crate::call::wait_for(py, async move { it.scan_page(&scan).await })??)
    }
}
