//! What a program has until it gives it back, or until what waits for it is told to stop.
//!
//! Leases, locks and presences are [`Kept`]: calls look at them where they are, and waiting for
//! news of one does not hold it. Watches have [`Turns`]: what is told to one call is told to no
//! other, so one at a time waits; closing a watch ends that call. They may end with a call on a
//! thread of ours, so it is for their handle to have them held.

use std::sync::Arc;

use futures_util::future::{AbortHandle, AbortRegistration, Abortable};
use parking_lot::Mutex;
use pyo3::prelude::*;
use tyr::Error;

use crate::border::{Held, Holdable};
use crate::error::{self, Result};

/// Something that is there until it is given back.
#[derive(Debug)]
pub struct Kept<T: Holdable>(Mutex<Option<Held<T>>>);

impl<T: Holdable> Kept<T> {
    /// It is there.
    pub fn new(inner: T) -> Self {
        Self(Mutex::new(Some(Held::new(inner))))
    }

    /// Looks at it; `None` when it was given back.
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.lock().as_ref().map(|held| look(held))
    }

    /// Takes it out for good; `None` when it was given back before.
    pub fn take(&self) -> Option<Held<T>> {
        self.0.lock().take()
    }
}

/// Where a watch is.
#[derive(Debug)]
enum Place<T> {
    Here(T),
    /// A call waits for it, which this ends.
    Away(AbortHandle),
    Closed,
}

/// A watch, which one call at a time waits for, and which may be closed meanwhile.
#[derive(Debug)]
pub struct Turns<T>(Mutex<Place<T>>);

impl<T> Turns<T> {
    /// It is there.
    pub fn new(inner: T) -> Self {
        Self(Mutex::new(Place::Here(inner)))
    }

    /// Takes it for a call. It is there again when the turn is over.
    ///
    /// # Errors
    /// `InvalidArgument` while another call has it, and after it was closed.
    pub fn begin(self: &Arc<Self>) -> tyr::Result<(Turn<T>, Closing)> {
        let (abort, aborted) = AbortHandle::new_pair();
        let mut place = self.0.lock();
        match std::mem::replace(&mut *place, Place::Away(abort)) {
            Place::Here(inner) => {
                let turn = Turn { of: Arc::clone(self), inner: Some(inner) };
                Ok((turn, Closing(aborted)))
            }
            Place::Away(other) => {
                *place = Place::Away(other);
                let text = "another call is waiting for this watch: one at a time may";
                Err(Error::invalid(text))
            }
            Place::Closed => {
                *place = Place::Closed;
                Err(closed())
            }
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        matches!(*self.0.lock(), Place::Closed)
    }

    /// What a call was told, for a loop, which ends when it is closed.
    ///
    /// # Errors
    /// Those of the call, but that of its being closed.
    pub fn unless_closed<R>(&self, py: Python<'_>, told: Result<R>) -> Result<Option<R>> {
        match told.map_err(PyErr::from) {
            Ok(told) => Ok(Some(told)),
            Err(error) if self.is_closed() && error::cause_of(py, &error).is_some() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Closes it, and ends the call that has it.
    pub fn close(&self) {
        let before = std::mem::replace(&mut *self.0.lock(), Place::Closed);
        if let Place::Away(abort) = before {
            abort.abort();
        }
    }
}

fn closed() -> Error {
    Error::invalid("this watch was closed: begin another")
}

/// What ends a call when what it uses is closed.
#[derive(Debug)]
pub struct Closing(AbortRegistration);

impl Closing {
    /// Waits for something as long as that is not closed.
    ///
    /// # Errors
    /// `InvalidArgument` when it is closed; else as that.
    pub async fn or<R>(self, call: impl Future<Output = tyr::Result<R>>) -> tyr::Result<R> {
        Abortable::new(call, self.0).await.unwrap_or_else(|_| Err(closed()))
    }
}

/// A call's turn: what it uses goes back when this is dropped.
#[derive(Debug)]
pub struct Turn<T> {
    of: Arc<Turns<T>>,
    inner: Option<T>,
}

impl<T> Turn<T> {
    /// What it uses.
    pub fn inner(&mut self) -> &mut T {
        self.inner.as_mut().expect("it is here until this is dropped")
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        let mut place = self.of.0.lock();
        if let Place::Away(_) = *place
            && let Some(inner) = self.inner.take()
        {
            *place = Place::Here(inner);
        }
        // Else it was closed meanwhile, and goes with this.
    }
}
