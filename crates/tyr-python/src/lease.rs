//! Leases of keys and groups, and locks made of them.
//!
//! Whoever forgets one gives it back: its handle goes, and what that held with it. What is told of
//! a lease is waited for without holding it, so that it can be given back meanwhile.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tyr::{Error, LeaseOptions};

use crate::border::{self, Held, Holdable};
use crate::call::Front;
use crate::error::{self, Result};
use crate::holding::Kept;
use crate::input::seconds;
use crate::store::Shared;

/// How a lease or a lock is taken, from the words of a call: without `wait` it is waited for as
/// long as it takes, with 0 not at all.
///
/// # Errors
/// `InvalidArgument` for what is no time.
pub fn options_of(
    is_shared: bool,
    wait: Option<f64>,
    duration: Option<f64>,
    holder: Option<String>,
) -> Result<LeaseOptions> {
    let mut options = if is_shared { LeaseOptions::shared() } else { LeaseOptions::exclusive() };
    if let Some(wait) = wait {
        options = match seconds("wait", wait)? {
            Duration::ZERO => options.no_wait(),
            wait => options.wait(wait),
        };
    }
    if let Some(duration) = duration {
        options = options.duration(seconds("duration", duration)?);
    }
    if let Some(holder) = holder {
        options = options.holder(holder);
    }
    Ok(options)
}

/// What is known of a lock without having it.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct LockInfo(pub tyr::LockInfo);

#[pymethods]
impl LockInfo {
    /// How often it was got so far.
    #[getter]
    fn token(&self) -> u64 {
        self.0.token
    }

    #[getter]
    fn holder(&self) -> Option<&str> {
        self.0.holder.as_deref()
    }

    fn __repr__(&self) -> String {
        let holder = self.0.holder.as_deref().unwrap_or("nobody who says so");
        format!("<LockInfo: token {}, held by {holder}>", self.0.token)
    }
}

/// What leases and locks are to Python: both are held until they are given back.
#[derive(Debug)]
struct Holding<T: Holdable> {
    shared: Held<Arc<Shared>>,
    front: Front,
    key: tyr::Key,
    inner: Kept<T>,
}

impl<T: Holdable> Holding<T> {
    fn new(shared: &Arc<Shared>, front: &Front, key: tyr::Key, inner: T) -> Self {
        let shared = Held::new(Arc::clone(shared));
        Self { shared, front: front.clone(), key, inner: Kept::new(inner) }
    }

    /// Waits for what is told of it; whether it was told in time.
    fn wait<F: Future<Output = ()> + Send + 'static>(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        news: impl FnOnce(&T) -> F,
    ) -> Result<Py<PyAny>> {
        self.shared.check()?;
        let news = self.inner.with(news).ok_or_else(given_back)?;
        self.front.hear(py, timeout, news)
    }

    fn give_back(&self) -> PyResult<()> {
        border::check()?;
        drop(self.inner.take());
        Ok(())
    }

    /// Refuses `with` where it is `async with`.
    fn check_blocking(&self) -> Result<()> {
        border::check()?;
        self.front.check_blocking("this", "with")
    }

    fn state(&self, is_held: bool) -> &'static str {
        match (self.inner.with(|_| ()), is_held) {
            (Some(()), true) => "held",
            (Some(()), false) => "lost",
            (None, _) => "given back",
        }
    }
}

fn given_back() -> Error {
    Error::invalid("this was given back: take it anew")
}

/// A lease of a key or a group that is held.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Lease(Holding<tyr::Lease>);

impl Lease {
    /// A lease as Python has it.
    pub fn new(shared: &Arc<Shared>, front: &Front, inner: tyr::Lease) -> Self {
        Self(Holding::new(shared, front, inner.key().clone(), inner))
    }
}

#[pymethods]
impl Lease {
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.key.as_bytes())
    }

    #[getter]
    fn is_held(&self) -> PyResult<bool> {
        border::check()?;
        Ok(self.0.inner.with(tyr::Lease::is_held) == Some(true))
    }

    #[getter]
    fn is_recalled(&self) -> PyResult<bool> {
        border::check()?;
        Ok(self.0.inner.with(tyr::Lease::is_recalled) == Some(true))
    }

    /// Waits until somebody waits for what it excludes, or it is over.
    #[pyo3(signature = (timeout=None))]
    fn recalled(&self, py: Python<'_>, timeout: Option<f64>) -> Result<Py<PyAny>> {
        self.0.wait(py, timeout, |lease| lease.recalled())
    }

    /// Waits until it is over.
    #[pyo3(signature = (timeout=None))]
    fn lost(&self, py: Python<'_>, timeout: Option<f64>) -> Result<Py<PyAny>> {
        self.0.wait(py, timeout, |lease| lease.lost())
    }

    fn give_back(&self) -> PyResult<()> {
        self.0.give_back()
    }

    fn __enter__(this: Py<Self>) -> Result<Py<Self>> {
        this.get().0.check_blocking()?;
        Ok(this)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.give_back()?;
        Ok(false)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<Lease of {}: {}>", self.0.key, self.0.state(self.is_held()?)))
    }
}

/// A lock that is held.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Lock {
    holding: Holding<tyr::Lock>,
    token: u64,
}

impl Lock {
    /// A lock as Python has it.
    pub fn new(shared: &Arc<Shared>, front: &Front, inner: tyr::Lock) -> Self {
        let (key, token) = (inner.lease().key().clone(), inner.token());
        Self { holding: Holding::new(shared, front, key, inner), token }
    }

    /// Does something with it, in this store.
    ///
    /// # Errors
    /// `Forked`, `Closed`; `InvalidArgument` when it is of another store, or was given back.
    pub fn with<R>(&self, shared: &Arc<Shared>, work: impl FnOnce(&tyr::Lock) -> R) -> Result<R> {
        shared.check()?;
        if !Arc::ptr_eq(shared, &self.holding.shared) {
            let place = shared.place();
            let text = format!("this lock is of another store: take one in {place}");
            return Err(Error::invalid(text).into());
        }
        Ok(self.holding.inner.with(work).ok_or_else(given_back)?)
    }
}

#[pymethods]
impl Lock {
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.holding.key.as_bytes())
    }

    /// Its number: higher than that of all who held it before.
    #[getter]
    fn token(&self) -> u64 {
        self.token
    }

    #[getter]
    fn is_held(&self) -> PyResult<bool> {
        border::check()?;
        Ok(self.holding.inner.with(|lock| lock.lease().is_held()) == Some(true))
    }

    #[getter]
    fn is_recalled(&self) -> PyResult<bool> {
        border::check()?;
        Ok(self.holding.inner.with(|lock| lock.lease().is_recalled()) == Some(true))
    }

    /// Waits until somebody waits for it, or it is over.
    #[pyo3(signature = (timeout=None))]
    fn recalled(&self, py: Python<'_>, timeout: Option<f64>) -> Result<Py<PyAny>> {
        self.holding.wait(py, timeout, |lock| lock.lease().recalled())
    }

    /// Waits until it is over.
    #[pyo3(signature = (timeout=None))]
    fn lost(&self, py: Python<'_>, timeout: Option<f64>) -> Result<Py<PyAny>> {
        self.holding.wait(py, timeout, |lock| lock.lease().lost())
    }

    /// Gives it back, and says so in its blob.
    fn unlock(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        self.holding.shared.check()?;
        let lock = self.holding.inner.take().ok_or_else(given_back)?.into_inner();
        let unlock = async move { lock.unlock().await };
        Ok(self.holding.front.run(py, unlock, |py, ()| Ok(py.None()))?)
    }

    /// Gives it back without a word in its blob.
    fn give_back(&self) -> PyResult<()> {
        self.holding.give_back()
    }

    fn __enter__(this: Py<Self>) -> Result<Py<Self>> {
        this.get().holding.check_blocking()?;
        Ok(this)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        class: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        self.holding.check_blocking()?;
        if self.holding.inner.with(|_| ()).is_none() {
            return Ok(false);
        }
        error::after_block(py, class, self.unlock(py))
    }

    fn __repr__(&self) -> PyResult<String> {
        let state = self.holding.state(self.is_held()?);
        Ok(format!("<Lock {}, token {}: {state}>", self.holding.key, self.token))
    }
}
