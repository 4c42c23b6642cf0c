//! A store: a folder that was opened, or a cluster that was connected to.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use tyr::{BlobCopy, ByteRange, ConnectOptions, Error, ReadRequest, Tyr};

use crate::border::{self, Held};
use crate::call::{Front, wait_here};
use crate::error::{self, Cause, Failure, Result};
use crate::input::{Count, Key, seconds};
use crate::keyspace::{Keyspace, config_of};
use crate::metadata::Metadata;
use crate::operation::{Committed, refused};
use crate::queue::Queue;
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;

/// What all handles to a store share.
#[derive(Debug)]
pub struct Shared {
    tyr: Tyr,
    place: String,
    is_closed: AtomicBool,
}

impl Shared {
    /// Refuses to go on in a forked child, and after the store was closed.
    ///
    /// # Errors
    /// `Forked`, `Closed`.
    pub fn check(&self) -> PyResult<()> {
        border::check()?;
        if !self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let text = format!("the store {} is closed: open it again", self.place);
        Err(Python::attach(|py| error::named(py, "Closed", &text)))
    }

    /// The store.
    pub fn tyr(&self) -> &Tyr {
        &self.tyr
    }

    /// What it was opened with.
    pub fn place(&self) -> &str {
        &self.place
    }
}

/// A store.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Store {
    shared: Held<Arc<Shared>>,
    front: Front,
}

fn made(py: Python<'_>, front: Front, place: String, tyr: Tyr) -> PyResult<Py<PyAny>> {
    let shared = Shared { tyr, place, is_closed: AtomicBool::new(false) };
    Store { shared: Held::new(Arc::new(shared)), front }.into_py_any(py)
}

fn front_of(queue: Option<&Bound<'_, Queue>>) -> Front {
    queue.map_or(Front::Blocking, |queue| queue.get().front())
}

/// Opens the store in a folder, or makes one there.
#[pyfunction]
#[pyo3(signature = (path, *, cache_bytes=None, is_read_only=false, must_exist=false,
                    snapshot_timeout=None, queue=None))]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    cache_bytes: Option<Count>,
    is_read_only: bool,
    must_exist: bool,
    snapshot_timeout: Option<f64>,
    queue: Option<&Bound<'_, Queue>>,
) -> Result<Py<PyAny>> {
    border::check()?;
    let mut options = Tyr::options().is_read_only(is_read_only).must_exist(must_exist);
    if let Some(bytes) = cache_bytes {
        options = options.cache_bytes(bytes.0);
    }
    if let Some(timeout) = snapshot_timeout {
        options = options.snapshot_timeout(seconds("snapshot_timeout", timeout)?);
    }
    let (front, place) = (front_of(queue), path.display().to_string());
    let opened = front.clone();
    Ok(front.run(py, options.open(path), |py, tyr| made(py, opened, place, tyr))?)
}

/// Connects to a cluster.
#[pyfunction]
#[pyo3(signature = (address, *, user=None, key=None, key_file=None, timeout=None,
                    connect_timeout=None, tls_ca=None, tls_certificate=None, tls_key=None,
                    tls_domain=None, queue=None))]
#[allow(clippy::too_many_arguments, reason = "they are words of a call in Python")]
pub fn connect(
    py: Python<'_>,
    address: String,
    user: Option<String>,
    key: Option<String>,
    key_file: Option<PathBuf>,
    timeout: Option<f64>,
    connect_timeout: Option<f64>,
    tls_ca: Option<PathBuf>,
    tls_certificate: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_domain: Option<String>,
    queue: Option<&Bound<'_, Queue>>,
) -> Result<Py<PyAny>> {
    border::check()?;
    let mut options = with_user(Tyr::connect_options(), user, key, key_file)?;
    if let Some(timeout) = timeout {
        options = options.timeout(seconds("timeout", timeout)?);
    }
    if let Some(timeout) = connect_timeout {
        options = options.connect_timeout(seconds("connect_timeout", timeout)?);
    }
    if let Some(authorities) = tls_ca {
        options = options.tls_ca(authorities);
    }
    options = match (tls_certificate, tls_key) {
        (None, None) => options,
        (Some(certificate), Some(key)) => options.tls_certificate(certificate, key),
        (Some(_), None) | (None, Some(_)) => {
            let text = "tls_certificate and tls_key go together: give both";
            return Err(Error::invalid(text).into());
        }
    };
    if let Some(domain) = tls_domain {
        options = options.tls_domain(domain);
    }
    // What follows the addresses may name files with keys: it is not shown.
    let place = address.split('?').next().unwrap_or_default().to_owned();
    let front = front_of(queue);
    let opened = front.clone();
    let connecting = async move { options.connect(address).await };
    Ok(front.run(py, connecting, |py, tyr| made(py, opened, place, tyr))?)
}

fn with_user(
    options: ConnectOptions,
    user: Option<String>,
    key: Option<String>,
    key_file: Option<PathBuf>,
) -> Result<ConnectOptions> {
    match (user, key, key_file) {
        (None, None, None) => Ok(options),
        (Some(user), Some(key), None) => Ok(options.user(user, key)),
        (Some(user), None, Some(file)) => Ok(options.user_with_key_file(user, file)),
        (Some(_), Some(_), Some(_)) => Err(Error::invalid("give key or key_file, not both").into()),
        (Some(user), None, None) => {
            Err(Error::invalid(format!("user {user} has no key: give key or key_file")).into())
        }
        (None, _, _) => Err(Error::invalid("a key is of a user: give both").into()),
    }
}

impl Store {
    /// Another handle to a store.
    pub fn new(shared: &Arc<Shared>, front: &Front) -> Self {
        Self { shared: Held::new(Arc::clone(shared)), front: front.clone() }
    }

    fn run<T: Send + 'static, F: Future<Output = tyr::Result<T>> + Send + 'static>(
        &self,
        py: Python<'_>,
        begin: impl FnOnce(Tyr) -> F,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        self.shared.check()?;
        self.front.run(py, begin(self.shared.tyr.clone()), finish)
    }

    /// Makes a keyspace of the public crate one of Python's.
    fn keyspace_maker(
        &self,
    ) -> impl FnOnce(Python<'_>, tyr::Keyspace) -> PyResult<Py<PyAny>> + Send + 'static {
        let (shared, front) = (Arc::clone(&self.shared), self.front.clone());
        move |py, inner| Keyspace::new(&shared, &front, inner).into_py_any(py)
    }

    fn snapshot_maker(
        &self,
    ) -> impl FnOnce(Python<'_>, tyr::Snapshot) -> PyResult<Py<PyAny>> + Send + 'static {
        let (shared, front) = (Arc::clone(&self.shared), self.front.clone());
        move |py, inner| Snapshot::new(&shared, &front, inner).into_py_any(py)
    }
}

/// A function of Python's that `transact` runs, and what it is called with.
struct Body {
    body: Py<PyAny>,
    arguments: Py<PyTuple>,
    words: Option<Py<PyDict>>,
    /// What it raised, the last time that it did.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Body {
    /// Runs it once, in a transaction that it is lent.
    fn run(
        &self,
        shared: &Arc<Shared>,
        transaction: &mut tyr::Transaction,
    ) -> tyr::Result<Py<PyAny>> {
        self.raised.lock().take();
        Python::attach(|py| {
            self.call(py, shared, transaction).map_err(|error| {
                let cause = error::cause_of(py, &error);
                *self.raised.lock() = Some(error);
                // What is no error of ours is of no kind that is tried again.
                cause.map_or_else(|| Error::unavailable("an exception"), |it| it.duplicate())
            })
        })
    }

    fn call(
        &self,
        py: Python<'_>,
        shared: &Arc<Shared>,
        transaction: &mut tyr::Transaction,
    ) -> PyResult<Py<PyAny>> {
        let inner = std::mem::replace(transaction, shared.tyr.begin());
        let lent = Py::new(py, Transaction::new(shared, &Front::Blocking, inner, true))?;
        let first = PyTuple::new(py, [lent.clone_ref(py)])?;
        let arguments = first.add(self.arguments.bind(py))?.cast_into::<PyTuple>()?;
        let words = self.words.as_ref().map(|words| words.bind(py));
        let value = self.body.bind(py).call(arguments, words);
        match (lent.get().take_back(), value) {
            (Some(back), Ok(value)) => {
                *transaction = back;
                Ok(value.unbind())
            }
            (None, Ok(_)) => {
                let text = "another thread was using the transaction when the function returned: \
                            wait for it there";
                Err(error::exception(py, Error::invalid(text)))
            }
            (_, Err(error)) => Err(error),
        }
    }
}

fn nothing(py: Python<'_>, _: ()) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}

#[pymethods]
impl Store {
    /// The same store, answering through a queue.
    fn through(&self, queue: &Bound<'_, Queue>) -> PyResult<Self> {
        self.shared.check()?;
        Ok(Self::new(&self.shared, &queue.get().front()))
    }

    /// Finds a keyspace, or makes it where that is asked for.
    #[pyo3(signature = (name, *, create=false, **config))]
    fn keyspace(
        &self,
        py: Python<'_>,
        name: String,
        create: bool,
        config: Option<&Bound<'_, PyDict>>,
    ) -> Result<Py<PyAny>> {
        let finish = self.keyspace_maker();
        if create {
            let config = config_of(config)?;
            let begin = |it: Tyr| async move { it.keyspace_or_create(&name, config).await };
            return Ok(self.run(py, begin, finish)?);
        }
        if config.is_some() {
            let text = "a keyspace that is only looked up has no configuration: say create=True";
            return Err(Error::invalid(text).into());
        }
        Ok(self.run(py, |it| async move { it.keyspace(&name).await }, finish)?)
    }

    #[pyo3(signature = (name, **config))]
    fn create_keyspace(
        &self,
        py: Python<'_>,
        name: String,
        config: Option<&Bound<'_, PyDict>>,
    ) -> Result<Py<PyAny>> {
        let (config, finish) = (config_of(config)?, self.keyspace_maker());
        let begin = |it: Tyr| async move { it.create_keyspace(&name, config).await };
        Ok(self.run(py, begin, finish)?)
    }

    fn drop_keyspace(&self, py: Python<'_>, name: String) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.drop_keyspace(&name).await }, nothing)
    }

    /// The names of all keyspaces, in order.
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let finish = |py: Python<'_>, all: Vec<tyr::KeyspaceInfo>| {
            let names = all.iter().map(|it| it.name.as_str().to_owned());
            names.collect::<Vec<String>>().into_py_any(py)
        };
        self.run(py, |it| async move { it.keyspaces().await }, finish)
    }

    fn begin(&self) -> PyResult<Transaction> {
        self.shared.check()?;
        Ok(Transaction::new(&self.shared, &self.front, self.shared.tyr.begin(), false))
    }

    /// Runs a function in a transaction and commits it; again when it met a conflict.
    #[pyo3(signature = (body, *arguments, **words))]
    fn transact(
        &self,
        py: Python<'_>,
        body: Py<PyAny>,
        arguments: Py<PyTuple>,
        words: Option<Py<PyDict>>,
    ) -> Result<Py<PyAny>> {
        self.shared.check()?;
        if let Front::Queued(_) = self.front {
            return Err(refused(py, "transact of tyr.aio is in Python").into());
        }
        let (shared, raised) = (Arc::clone(&self.shared), Arc::new(Mutex::new(None)));
        let body = Body { body, arguments, words, raised: Arc::clone(&raised) };
        let attempt = async |transaction: &mut tyr::Transaction| body.run(&shared, transaction);
        let transacted = shared.tyr.transact(attempt);
        let answer = wait_here(py, transacted)?;
        let raised = raised.lock().take();
        answer.map_err(|error| raised.map_or(Failure::Tyr(error), Failure::Python))
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.snapshot().await }, self.snapshot_maker())
    }

    fn keep(&self, py: Python<'_>, name: String) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.keep(&name).await.map(drop) }, nothing)
    }

    /// The names of all kept snapshots, oldest first.
    fn kept(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let finish = |py: Python<'_>, all: Vec<tyr::KeptSnapshot>| {
            let names = all.iter().map(|it| it.name.as_str().to_owned());
            names.collect::<Vec<String>>().into_py_any(py)
        };
        self.run(py, |it| async move { it.kept().await }, finish)
    }

    fn kept_snapshot(&self, py: Python<'_>, name: String) -> PyResult<Py<PyAny>> {
        let finish = self.snapshot_maker();
        self.run(py, |it| async move { it.kept_snapshot(&name).await }, finish)
    }

    fn drop_kept(&self, py: Python<'_>, name: String) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.drop_kept(&name).await }, nothing)
    }

    /// Copies a blob in one transaction; answers how many bytes.
    fn copy(
        &self,
        py: Python<'_>,
        source: &Bound<'_, Keyspace>,
        source_key: Key,
        target: &Bound<'_, Keyspace>,
        target_key: Key,
    ) -> Result<Py<PyAny>> {
        let into = target.get().of(&self.shared)?;
        let copy = BlobCopy::new(source.get().of(&self.shared)?, source_key.0, into, target_key.0)?;
        let finish = |py: Python<'_>, copied: u64| copied.into_py_any(py);
        Ok(self.run(py, |it| async move { it.copy(&copy).await }, finish)?)
    }

    /// Reads parts of many blobs at one moment; `None` for a blob that is not there.
    fn read_many(
        &self,
        py: Python<'_>,
        wanted: Vec<(Bound<'_, Keyspace>, Key, Count, Count)>,
    ) -> Result<Py<PyAny>> {
        let request = |(keyspace, key, offset, len): (Bound<'_, Keyspace>, Key, Count, Count)| {
            let keyspace = keyspace.get().of(&self.shared)?.clone();
            let range = ByteRange::at(offset.0, len.0)?;
            Ok(ReadRequest { keyspace, key: key.0, range })
        };
        let wanted = wanted.into_iter().map(request).collect::<Result<Vec<ReadRequest>>>()?;
        let finish = |py: Python<'_>, read: Vec<Option<tyr::Bytes>>| {
            let read = read.iter().map(|it| it.as_ref().map(|bytes| PyBytes::new(py, bytes)));
            read.collect::<Vec<_>>().into_py_any(py)
        };
        Ok(self.run(py, |it| async move { it.read_many(&wanted).await }, finish)?)
    }

    /// What became of a call of a cluster that ended as `TimedOut`.
    fn outcome(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        let cause = error.getattr("_cause").ok();
        let cause = cause.and_then(|it| it.cast_into::<Cause>().ok());
        let cause = cause.ok_or_else(|| Error::invalid("give the tyr.TimedOut that was raised"))?;
        let cause = Arc::clone(&cause.get().0);
        let finish = |py: Python<'_>, committed| Committed(committed).into_py_any(py);
        Ok(self.run(py, |it| async move { it.outcome(&cause).await }, finish)?)
    }

    /// The service metadata.
    #[getter]
    fn metadata(&self) -> PyResult<Metadata> {
        self.shared.check()?;
        Ok(Metadata::new(&self.shared, &self.front))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.run(py, |it| async move { it.sync().await }, nothing)
    }

    /// Writes everything back and closes it. Its other handles are closed with it.
    fn close(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        border::check()?;
        let is_closed = self.shared.is_closed.swap(true, Ordering::AcqRel);
        let tyr = self.shared.tyr.clone();
        let close = async move { if is_closed { Ok(()) } else { tyr.close().await } };
        self.front.run(py, close, nothing)
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().shared.check()?;
        Ok(this)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.front.check_blocking("this store", "with")?;
        self.close(py)?;
        Ok(false)
    }

    fn __repr__(&self) -> String {
        format!("<Store {}>", self.shared.place())
    }
}
