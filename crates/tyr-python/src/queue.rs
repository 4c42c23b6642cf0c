//! Calls that are started, and end in a queue: what `tyr.aio` stands on.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use tyr::Error;
use tyr_completion::Failure;

use crate::border::{self, Held};
use crate::call::Front;
use crate::error;

/// Makes an answer Python's.
type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Why there is no answer.
enum Fault {
    Tyr(Error),
    Unfinished(Failure),
}

/// The calls of a queue.
#[derive(Debug)]
pub struct Calls {
    queue: tyr_completion::Queue<Result<Finish, Fault>>,
    next: AtomicU64,
}

impl Calls {
    /// Starts a call; answers its tag.
    pub fn start<T: Send + 'static>(
        &self,
        py: Python<'_>,
        future: impl Future<Output = tyr::Result<T>> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        let tag = self.next.fetch_add(1, Ordering::Relaxed);
        let call = async {
            let answer = future.await.map_err(Fault::Tyr)?;
            let finish: Finish = Box::new(move |py| finish(py, answer));
            Ok(finish)
        };
        let started = py.detach(|| self.queue.start(tag, call, |why| Err(Fault::Unfinished(why))));
        started.map_err(|error| error::exception(py, error))?;
        tag.into_py_any(py)
    }
}

/// Completions of calls that were started, of one event loop.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Queue(Held<Arc<Calls>>);

impl Queue {
    /// How calls are answered through it.
    pub fn front(&self) -> Front {
        Front::Queued(Arc::clone(&self.0))
    }
}

#[pymethods]
impl Queue {
    #[new]
    fn new() -> PyResult<Self> {
        border::check()?;
        let calls = Calls { queue: tyr_completion::Queue::new(), next: AtomicU64::new(0) };
        Ok(Self(Held::new(Arc::new(calls))))
    }

    /// A descriptor that is readable while there are completions.
    fn descriptor(&self) -> error::Result<i32> {
        border::check()?;
        Ok(self.0.queue.descriptor()?)
    }

    /// All completions that there are: tag, whether it is good, and answer or exception; neither,
    /// of a call that was cancelled.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<(u64, bool, Py<PyAny>)>> {
        border::check()?;
        let taken = self.0.queue.take(tyr_completion::CALLS_MAX, Some(Duration::ZERO));
        let completed = taken.into_iter().map(|done| {
            let answer = match done.answer {
                Ok(finish) => finish(py),
                Err(Fault::Tyr(error)) => Err(error::exception(py, error)),
                Err(Fault::Unfinished(Failure::Cancelled)) => return (done.tag, false, py.None()),
                Err(Fault::Unfinished(Failure::Panicked(words))) => Err(error::bug(py, &words)),
            };
            match answer {
                Ok(value) => (done.tag, true, value),
                Err(error) => (done.tag, false, error.into_value(py).into_any()),
            }
        });
        Ok(completed.collect())
    }

    /// Cancels a call that is under way.
    fn cancel(&self, py: Python<'_>, tag: u64) -> PyResult<()> {
        border::check()?;
        py.detach(|| self.0.queue.cancel(tag));
        Ok(())
    }

    /// Cancels everything, and waits until nothing is under way.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        border::check()?;
        py.detach(|| self.0.queue.close());
        Ok(())
    }
}
