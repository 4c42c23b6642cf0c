//! What a program gives piece by piece, on its way into a blob.
//!
//! Of a call that blocks, the thread that waits asks Python for a piece whenever one is wanted. In
//! an event loop each piece is given by a call of its own, answered when the piece has been taken:
//!
//! ```text
//!   Python's iterator ──> Feed, one piece ──> Pieces ──> put_stream of the public crate
//!                     <── taken, or gone <──
//! ```

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use tyr::Bytes;

use crate::border::Held;
use crate::call::{Front, wait_here};
use crate::error::{Failure, Result};
use crate::input::Data;
use crate::queue::Queue;

/// A piece; nothing is the end.
type Piece = Option<Bytes>;

/// Where a piece is handed over.
#[derive(Debug, Default)]
pub struct Handover(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    piece: Option<Piece>,
    /// Whether nobody takes anything any more.
    is_gone: bool,
    /// Who waits for a piece.
    taker: Option<Waker>,
    /// Who waits for it to be taken.
    giver: Option<Waker>,
}

impl Handover {
    fn is_wanted(&self) -> bool {
        self.0.lock().taker.is_some()
    }

    fn give(&self, piece: Piece) {
        let taker = {
            let mut state = self.0.lock();
            state.piece = Some(piece);
            state.taker.take()
        };
        taker.into_iter().for_each(Waker::wake);
    }

    /// Waits until what was given is taken, or nobody takes anything any more.
    fn poll_taken(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.piece.is_none() || state.is_gone {
            return Poll::Ready(());
        }
        state.giver = Some(context.waker().clone());
        Poll::Pending
    }
}

/// The pieces, as a stream.
#[derive(Debug)]
pub struct Pieces(Arc<Handover>);

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.0.0.lock();
        let Some(piece) = state.piece.take() else {
            state.taker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let giver = state.giver.take();
        drop(state);
        giver.into_iter().for_each(Waker::wake);
        Poll::Ready(piece.map(Ok))
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let giver = {
            let mut state = self.0.0.lock();
            state.is_gone = true;
            state.giver.take()
        };
        giver.into_iter().for_each(Waker::wake);
    }
}

/// Writes all that an iterator of Python has, and waits for that.
///
/// # Errors
/// What the iterator raises: then nothing is written; else as the writing.
pub fn write<F: Future<Output = tyr::Result<u64>> + Send>(
    py: Python<'_>,
    pieces: &Bound<'_, PyAny>,
    begin: impl FnOnce(Pieces) -> F,
) -> Result<u64> {
    let mut pieces = pieces.try_iter()?;
    let handover = Arc::new(Handover::default());
    let mut writing = pin!(begin(Pieces(Arc::clone(&handover))));
    let all = poll_fn(|context| {
        let waker = context.waker();
        let polled = py.detach(|| writing.as_mut().poll(&mut Context::from_waker(waker)));
        if polled.is_pending() && handover.is_wanted() {
            match next_of(&mut pieces) {
                // It is looked at signals before this goes on.
                Ok(piece) => handover.give(piece),
                Err(error) => return Poll::Ready(Err(Failure::Python(error))),
            }
        }
        polled.map_err(Failure::Tyr)
    });
    wait_here(py, all)?
}

fn next_of(pieces: &mut Bound<'_, PyIterator>) -> PyResult<Piece> {
    match pieces.next() {
        Some(piece) => Ok(Some(piece?.extract::<Data>()?.0)),
        None => Ok(None),
    }
}

/// What `tyr.aio` gives pieces to.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Feed {
    front: Front,
    handover: Held<Arc<Handover>>,
}

impl Feed {
    /// What is given to it.
    pub fn pieces(&self) -> Pieces {
        Pieces(Arc::clone(&self.handover))
    }

    fn hand_over(&self, py: Python<'_>, piece: Piece) -> PyResult<Py<PyAny>> {
        crate::border::check()?;
        self.handover.give(piece);
        let handover = Arc::clone(&self.handover);
        let taken = async move {
            poll_fn(|context| handover.poll_taken(context)).await;
            Ok(())
        };
        self.front.run(py, taken, |py, ()| Ok(py.None()))
    }
}

#[pymethods]
impl Feed {
    #[new]
    fn new(queue: &Bound<'_, Queue>) -> Self {
        Self { front: queue.get().front(), handover: Held::new(Arc::default()) }
    }

    /// Gives a piece; answered when it has been taken.
    fn give(&self, py: Python<'_>, piece: Data) -> PyResult<Py<PyAny>> {
        self.hand_over(py, Some(piece.0))
    }

    /// There are no more.
    fn end(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.hand_over(py, None)
    }
}
