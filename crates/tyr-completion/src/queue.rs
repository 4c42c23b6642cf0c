//! The queue: calls under way on one side, completions on the other.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::os::fd::RawFd;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use parking_lot::{Condvar, Mutex};
use tyr::{Error, Result};

use crate::bell::Bell;
use crate::worker::Worker;

/// Calls that a queue has under way or answered and not yet taken, at most. Each is some hundred
/// bytes and what it carries.
pub const CALLS_MAX: usize = 65_536;

/// The answer to a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Completion<T> {
    /// What the call was started with.
    pub tag: u64,
    /// What came of it.
    pub answer: T,
}

/// Why a call has no answer of its own.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// Somebody cancelled it. A read has done nothing; what writes may take effect all the same.
    Cancelled,
    /// A bug of ours, in the words of the panic.
    Panicked(String),
}

/// Calls under way, and the completions of those that are over. Clones share it.
///
/// Dropping the last clone does not wait for what is under way; [`Queue::close`] does.
pub struct Queue<T>(Arc<Inner<T>>);

struct Inner<T> {
    state: Mutex<State<T>>,
    /// Told when a completion came, and when the queue was closed.
    changed: Condvar,
    worker: Worker,
}

struct State<T> {
    done: VecDeque<Completion<T>>,
    under_way: HashMap<u64, UnderWay>,
    next: u64,
    bell: Bell,
    is_closed: bool,
}

struct UnderWay {
    tag: u64,
    handle: AbortHandle,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        let (under_way, done) = (state.under_way.len(), state.done.len());
        write!(f, "Queue({under_way} under way, {done} done)")
    }
}

impl<T: Send + 'static> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + 'static> Queue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        let state = State {
            done: VecDeque::new(),
            under_way: HashMap::new(),
            next: 0,
            bell: Bell::default(),
            is_closed: false,
        };
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            changed: Condvar::new(),
            worker: Worker::default(),
        }))
    }

    /// Starts a call: it is polled once before this returns, so what it can do at once is done
    /// then. Its completion comes exactly once; where the call does not come to its end, with what
    /// `failed` makes of the reason.
    ///
    /// # Errors
    /// `Unavailable` when the queue is closed, or has [`CALLS_MAX`] calls: nothing was started.
    pub fn start(
        &self,
        tag: u64,
        call: impl Future<Output = T> + Send + 'static,
        failed: impl FnOnce(Failure) -> T + Send + 'static,
    ) -> Result<()> {
        let line = self.0.worker.line()?;
        let (handle, registration) = AbortHandle::new_pair();
        let number = self.admit(UnderWay { tag, handle })?;
        let inner = Arc::clone(&self.0);
        let guarded = AssertUnwindSafe(Abortable::new(call, registration)).catch_unwind();
        let driven = async move {
            let answer = match guarded.await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => failed(Failure::Cancelled),
                Err(panic) => failed(Failure::Panicked(words_of(&*panic))),
            };
            inner.complete(number, Completion { tag, answer });
        };
        let schedule = move |call| {
            // The thread takes from the line as long as somebody can put something into it.
            let _ = line.send(call);
        };
        let (first, task) = async_task::spawn(driven, schedule);
        task.detach();
        first.run();
        Ok(())
    }

    fn admit(&self, call: UnderWay) -> Result<u64> {
        let mut state = self.0.state.lock();
        if state.is_closed {
            return Err(Error::unavailable("the queue is closed: make another"));
        }
        if state.under_way.len() + state.done.len() >= CALLS_MAX {
            return Err(Error::unavailable(format!(
                "the queue has {CALLS_MAX} calls under way or answered: take completions first"
            )));
        }
        let number = state.next;
        state.next += 1;
        state.under_way.insert(number, call);
        Ok(number)
    }

    /// Takes up to `most` completions, in the order in which they came. Where there is none it
    /// waits for the first, for `wait` at most, or without end for `None`. None are there after
    /// that, or when the queue is closed.
    pub fn take(&self, most: usize, wait: Option<Duration>) -> Vec<Completion<T>> {
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        let mut state = self.0.state.lock();
        while state.done.is_empty() && most > 0 && !state.is_closed {
            match deadline {
                None => self.0.changed.wait(&mut state),
                Some(deadline) => {
                    if self.0.changed.wait_until(&mut state, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        let count = most.min(state.done.len());
        let taken: Vec<Completion<T>> = state.done.drain(..count).collect();
        if count > 0 && state.done.is_empty() {
            state.bell.silence();
        }
        taken
    }

    /// Cancels the calls under way that were started with this tag, and says how many those are.
    /// Each has its completion all the same: with the answer, if that was faster.
    pub fn cancel(&self, tag: u64) -> usize {
        let state = self.0.state.lock();
        let wanted = state.under_way.values().filter(|call| call.tag == tag);
        let handles: Vec<AbortHandle> = wanted.map(|call| call.handle.clone()).collect();
        drop(state);
        handles.iter().for_each(AbortHandle::abort);
        handles.len()
    }

    /// Calls that have no answer yet.
    pub fn under_way(&self) -> usize {
        self.0.state.lock().under_way.len()
    }

    /// A descriptor that is readable as long as there are completions to take, for `poll` and its
    /// like. It is the queue's: nobody else reads or closes it.
    ///
    /// # Errors
    /// `Unavailable` when the process has no descriptor left.
    pub fn descriptor(&self) -> Result<RawFd> {
        let mut state = self.0.state.lock();
        let is_ringing = !state.done.is_empty();
        state.bell.descriptor(is_ringing)
    }

    /// Cancels everything, and waits until nothing is under way: after that no call touches
    /// anything that it was lent. Starts nothing any more; what was not taken is dropped, and who
    /// waits in [`Queue::take`] gets nothing.
    pub fn close(&self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        let handles: Vec<AbortHandle> =
            state.under_way.values().map(|call| call.handle.clone()).collect();
        drop(state);
        handles.iter().for_each(AbortHandle::abort);
        let mut state = self.0.state.lock();
        self.0.changed.notify_all();
        while !state.under_way.is_empty() {
            self.0.changed.wait(&mut state);
        }
        let done = std::mem::take(&mut state.done);
        state.bell.silence();
        drop(state);
        drop(done);
    }
}

impl<T> Inner<T> {
    fn complete(&self, number: u64, completion: Completion<T>) {
        let mut state = self.state.lock();
        state.under_way.remove(&number);
        if state.done.is_empty() {
            state.bell.ring();
        }
        state.done.push_back(completion);
        self.changed.notify_all();
    }
}

/// What a panic said.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words").to_owned()
}

#[cfg(test)]
mod tests;
