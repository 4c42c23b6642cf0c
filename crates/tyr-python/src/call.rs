//! Calls: a future of the public crate, waited for here or started in a queue.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use tyr::Error;

use crate::error;
use crate::input::seconds;
use crate::queue::Calls;

/// How long a thread that waits lets Ctrl-C wait.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// How answers reach the program.
#[derive(Clone, Debug)]
pub enum Front {
    /// The thread that calls waits.
    Blocking,
    /// It gets a tag, and takes the completion out of a queue: `tyr.aio`.
    Queued(Arc<Calls>),
}

impl Front {
    /// Refuses what waits, where `tyr.aio` has `async with` or `async for` (`word`) for it.
    ///
    /// # Errors
    /// `InvalidArgument`, of what is queued.
    pub fn check_blocking(&self, what: &str, word: &str) -> error::Result<()> {
        match self {
            Self::Blocking => Ok(()),
            Self::Queued(_) => {
                let text = format!("{what} is of tyr.aio: use `async {word}`");
                Err(Error::invalid(text).into())
            }
        }
    }

    /// Has a call done; `finish` makes its answer Python's. Answers that, or a tag.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        future: impl Future<Output = tyr::Result<T>> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        match self {
            Self::Blocking => {
                let answer = wait_for(py, future)?;
                finish(py, answer.map_err(|error| error::exception(py, error))?)
            }
            Self::Queued(calls) => calls.start(py, future, finish),
        }
    }

    /// The same for so many seconds at most; nothing when they have passed. The loop of what is
    /// queued has bounds of its own.
    pub fn run_within<T: Send + 'static>(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        future: impl Future<Output = tyr::Result<T>> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> error::Result<Option<Py<PyAny>>> {
        let Some(timeout) = timeout else { return Ok(Some(self.run(py, future, finish)?)) };
        let deadline = Instant::now().checked_add(seconds("timeout", timeout)?);
        match self {
            Self::Blocking => match wait_until(py, deadline, detached(py, pin!(future)))? {
                Some(answer) => Ok(Some(finish(py, answer?)?)),
                None => Ok(None),
            },
            Self::Queued(_) => Err(Error::invalid("tyr.aio has no timeout here").into()),
        }
    }

    /// The same for news, which say nothing but that they are there: whether they came in time.
    pub fn hear(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        news: impl Future<Output = ()> + Send + 'static,
    ) -> error::Result<Py<PyAny>> {
        let told = news.map(Ok);
        let answer = self.run_within(py, timeout, told, |py, ()| true.into_py_any(py))?;
        Ok(answer.map_or_else(|| false.into_py_any(py), Ok)?)
    }
}

/// Polls a future without Python's lock.
fn detached<T: Send>(
    py: Python<'_>,
    mut future: Pin<&mut (impl Future<Output = T> + Send)>,
) -> impl Future<Output = T> {
    poll_fn(move |context| {
        let waker = context.waker();
        py.detach(|| future.as_mut().poll(&mut Context::from_waker(waker)))
    })
}

/// Waits for a future without Python's lock, and looks at signals now and then.
///
/// # Errors
/// What a handler of signals raises, `KeyboardInterrupt` by itself: then the future is dropped,
/// which takes a read back; what changes something may take effect all the same.
pub fn wait_for<T: Send>(py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
    wait_here(py, detached(py, pin!(future)))
}

/// The same for a future that is polled with Python's lock: it is given up in between.
///
/// # Errors
/// As [`wait_for`].
pub fn wait_here<T>(py: Python<'_>, future: impl Future<Output = T>) -> PyResult<T> {
    let answer = wait_until(py, None, future)?;
    Ok(answer.expect("there is no deadline that could pass"))
}

/// The same until then; nothing when there is no answer by then.
fn wait_until<T>(
    py: Python<'_>,
    deadline: Option<Instant>,
    future: impl Future<Output = T>,
) -> PyResult<Option<T>> {
    let mut future = pin!(AssertUnwindSafe(future).catch_unwind());
    let bell = Arc::new(Bell { thread: std::thread::current(), is_rung: AtomicBool::new(true) });
    let waker = Waker::from(Arc::clone(&bell));
    loop {
        if bell.is_rung.swap(false, Ordering::Acquire)
            && let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return answer.map(Some).map_err(|panic| error::bug(py, words_of(&*panic)));
        }
        let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(None);
        }
        py.detach(|| {
            if !bell.is_rung.load(Ordering::Acquire) {
                std::thread::park_timeout(left.map_or(SIGNALS_EVERY, |it| it.min(SIGNALS_EVERY)));
            }
        });
        py.check_signals()?;
    }
}

/// What wakes a thread that waits. It remembers that it rang: the thread may be waiting for
/// something else just then, within the body of a transaction.
struct Bell {
    thread: Thread,
    is_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.is_rung.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// What a panic said.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}
