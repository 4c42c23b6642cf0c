//! The host of calls: who asks for a method waits here until it was run.
//!
//! ```text
//!   a call ─┬─ a query ────────────────► run at once, in a transaction of its own
//!           └─► the queue of its object ─► batch: all that wait, one after the other, in one
//!                    ▲                     transaction ─► commit ─► an answer each
//!                    └── comes meanwhile ◄───────────────────┘
//! ```
//!
//! While a transaction of an object is under way, further calls of the object wait, and then run
//! together in the next (O4): so calls that this host runs never meet each other as conflicts.
//! Those of others are conflicts as ever, and the batch runs again.
//!
//! [`queue`] is where calls wait, [`batch`] how several are one transaction, [`pool`] the threads.

mod batch;
mod pool;
mod queue;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{Bytes, Error, ErrorKind, Key, Result};
use tyr_class::{Access, Class, Failure, MethodKind};

use self::batch::Batches;
use self::pool::Pool;
pub(crate) use self::queue::Waiting;
use self::queue::{Queues, Turn};
use crate::access::{Object, Within, occasion};
use crate::begun::Begun;
use crate::call::Call;
use crate::library::{self, Library};
use crate::rule::Rules;

/// A call that has waited so long is not begun any more: nobody waits for it then.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the answer to a call comes.
pub(crate) type Answered = oneshot::Receiver<Result<Bytes, Failure>>;

/// Runs calls on a store. Clones are the same.
#[derive(Clone)]
pub(crate) struct Host {
    shared: Arc<Shared>,
}

struct Shared {
    store: Tyr,
    library: Library,
    queues: Queues,
    pool: Pool,
}

impl Host {
    pub fn new(store: &Tyr, library: &Library) -> Self {
        let (store, library) = (store.clone(), library.clone());
        let (queues, pool) = (Queues::default(), Pool::default());
        Self { shared: Arc::new(Shared { store, library, queues, pool }) }
    }

    /// Runs a call: in this thread, unless others of the object are under way.
    ///
    /// # Errors
    /// As [`blocking::Classes::call`](crate::blocking::Classes::call).
    pub fn call(
        &self,
        keyspace: &Keyspace,
        key: Key,
        wanted: &Call,
        caller: &Arc<str>,
    ) -> Result<Bytes, Failure> {
        let object = Object::new(keyspace.clone(), key)?;
        if self.shared.library.was_query(&wanted.class, &wanted.method)
            && let Some(answer) = self.query(&object, wanted, caller)
        {
            return answer;
        }
        let (waiting, answered) = self.waiting(wanted.clone(), caller)?;
        let turn = self.shared.queues.push(object, waiting);
        if let Some(turn) = turn.and_then(|turn| self.run(turn, false)) {
            self.go_on(turn);
        }
        Begun(answered).wait()
    }

    /// Has a call run, on the threads of this host.
    ///
    /// # Errors
    /// `InvalidArgument` for a key that no object can have; `Unavailable` when too many wait.
    pub fn begin(
        &self,
        keyspace: &Keyspace,
        key: Key,
        wanted: Call,
        caller: &Arc<str>,
    ) -> Result<Begun> {
        let object = Object::new(keyspace.clone(), key)?;
        let is_query = self.shared.library.was_query(&wanted.class, &wanted.method);
        let (waiting, answered) = self.waiting(wanted, caller)?;
        match is_query {
            true => {
                let host = self.clone();
                self.shared.pool.run(move || host.query_or_queue(object, waiting));
            }
            false => self.queue(object, waiting),
        }
        Ok(Begun(answered))
    }

    fn waiting(&self, wanted: Call, caller: &Arc<str>) -> Result<(Waiting, Answered)> {
        let place = self.shared.queues.place(wanted.input.len())?;
        let (answer, answered) = oneshot::channel();
        let (caller, until) = (Arc::clone(caller), Instant::now() + PATIENCE);
        Ok((Waiting { wanted, caller, until, tries: 0, answer, _place: place }, answered))
    }

    fn queue(&self, object: Object, waiting: Waiting) {
        if let Some(turn) = self.shared.queues.push(object, waiting) {
            self.go_on(turn);
        }
    }

    /// Runs what waits for an object on the pool.
    fn go_on(&self, turn: Turn) {
        let host = self.clone();
        self.shared.pool.run(move || {
            if let Some(turn) = host.run(turn, true) {
                // Behind the other objects that wait for a thread.
                host.go_on(turn);
            }
        });
    }

    /// Runs the next batch of an object; answers the turn if more calls wait.
    fn run(&self, turn: Turn, is_pooled: bool) -> Option<Turn> {
        let calls = turn.take();
        let Shared { store, library, pool, .. } = &*self.shared;
        let (permits, rules) = (is_pooled.then_some(pool.permits()), Rules::default());
        let batches = Batches { store, library, object: turn.object(), permits, rules };
        // A method in Rust may panic: that has been said, and those of this batch are not answered.
        let left = catch_unwind(AssertUnwindSafe(|| batches.run(calls)));
        turn.put_back(left.unwrap_or_default());
        turn.next()
    }

    /// Runs a call that was a query when it was last called, or lets it wait.
    fn query_or_queue(&self, object: Object, waiting: Waiting) {
        let permit = self.shared.pool.permits().take();
        let answer = self.query(&object, &waiting.wanted, &waiting.caller);
        drop(permit);
        match answer {
            Some(answer) => waiting.answer(answer),
            None => self.queue(object, waiting),
        }
    }

    /// Runs a query in a transaction of its own; `None` when it is none any more.
    fn query(
        &self,
        object: &Object,
        wanted: &Call,
        caller: &str,
    ) -> Option<Result<Bytes, Failure>> {
        let class = match self.shared.library.class(object.keyspace(), &wanted.class) {
            Ok(class) => class,
            Err(error) => return Some(Err(error.into())),
        };
        if library::kind(&*class, &wanted.method) != Some(MethodKind::Query) {
            return None;
        }
        let mut failed = None;
        let called = self.shared.store.transact(|transaction| {
            match run_alone(&*class, transaction, object, wanted, caller) {
                // It asks to be run again, or the store does.
                Err(failure) if failure.kind().is_retryable() => {
                    let error = Error::from(failure.duplicate());
                    failed = Some(failure);
                    Err(error)
                }
                // A failure too is by what was read, and that is validated (O2).
                answer => Ok(answer),
            }
        });
        // What the body failed with, if it was that, and not the commit.
        Some(called.unwrap_or_else(|error| match failed {
            Some(failure) if failure.kind() == error.kind() => Err(failure),
            Some(_) | None => Err(Failure::Context(error)),
        }))
    }
}

/// Runs a method in a transaction; what it wrote is in it if it did not fail.
pub(crate) fn run_alone(
    class: &dyn Class,
    transaction: &mut Transaction,
    object: &Object,
    wanted: &Call,
    caller: &str,
) -> Result<Bytes, Failure> {
    let (keyspace, rules) = (object.keyspace(), Rules::default());
    let mut within = Within { transaction, keyspace, rules };
    let occasion = occasion(caller)?;
    let mut access = Access { blobs: &mut within, object: object.parts(), occasion };
    access.call(class, &wanted.method, &wanted.input)
}

/// The thread that ran the call ended without an answer.
pub(crate) fn lost() -> Error {
    let text = "the thread that ran the call ended; look before calling again whether it did";
    Error::new(ErrorKind::TimedOut, text)
}
