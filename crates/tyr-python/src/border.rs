//! The border that every call passes: nothing of ours is touched in a forked child.
//!
//! Our threads are not in a child, and locks may be held by nobody there. So calls are refused, and
//! what handles hold is left where it is, for to close a store would wait for those threads.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Has Python tell us of forks.
pub fn watch_forks(py: Python<'_>) -> PyResult<()> {
    let options = PyDict::new(py);
    options.set_item("after_in_child", wrap_pyfunction!(note_fork, py)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&options)).map(drop)
}

#[pyfunction]
fn note_fork() {
    IS_CHILD.store(true, Ordering::Relaxed);
}

/// Refuses to go on in a forked child.
///
/// # Errors
/// `Forked` there.
pub fn check() -> PyResult<()> {
    if !IS_CHILD.load(Ordering::Relaxed) {
        return Ok(());
    }
    let text = "this process was forked of one that used Týr, whose threads are not here: use it \
                in the parent, or start the child anew (multiprocessing: the start method \
                \"spawn\")";
    Err(Python::attach(|py| error::named(py, "Forked", text)))
}

/// What a handle may hold.
pub trait Holdable: Send + Sized {
    /// What goes with the last handle.
    type Last: Send;

    /// Lets it go, and answers what is to be dropped with that: nothing, if others hold it too.
    fn let_go(self) -> Option<Self::Last>;
}

impl<T: Send + Sync> Holdable for Arc<T> {
    type Last = T;

    fn let_go(self) -> Option<T> {
        Self::into_inner(self)
    }
}

macro_rules! is_alone {
    ($($name:ty),*) => {$(
        impl Holdable for $name {
            type Last = Self;

            fn let_go(self) -> Option<Self> {
                Some(self)
            }
        }
    )*};
}

is_alone!(tyr::Keyspace, tyr::Lease, tyr::Lock);

/// Something of ours that a handle holds. What goes with the last handle is dropped without
/// Python's lock; in a forked child it is left alone.
#[derive(Debug)]
pub struct Held<T: Holdable>(Option<T>);

impl<T: Holdable> Held<T> {
    /// Holds it.
    pub fn new(inner: T) -> Self {
        Self(Some(inner))
    }

    /// It, for a call that has it from now on.
    pub fn into_inner(mut self) -> T {
        self.0.take().expect("it is there until it is dropped")
    }
}

impl<T: Holdable> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Holdable> Drop for Held<T> {
    fn drop(&mut self) {
        let Some(inner) = self.0.take() else { return };
        if IS_CHILD.load(Ordering::Relaxed) {
            std::mem::forget(inner);
            return;
        }
        let Some(last) = inner.let_go() else { return };
        // Where Python is on its way out there is no lock to give up.
        let _ = Python::try_attach(|py| py.detach(|| drop(last)));
    }
}
