//! How callers wait for answers, and what they get.
//!
//! A read whose waiter goes is cancelled. A transaction that was sent goes on. What a read began at
//! the nodes (V1) is in the hands of a [`Lease`], wherever the answer gets to: dropping it ends it.

use std::fmt;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;
use tyr_protocol::session::{Answer, Began, CallId, Seen};
use tyr_types::{
    BlobOperations, Error, ErrorKind, Notified, Outcome, PieceRef, Result, ScanPage, Timestamp,
    Transaction,
};

use super::driver::Driver;
use super::end;
use super::key_lease::KeyLease;
use super::key_watch::KeyWatch;
use tyr_runtime::lease_state::LeaseState;
use tyr_runtime::ticket::{self, Committed};
use tyr_runtime::watch_state::WatchState;

/// A snapshot that nodes keep for a read. Dropping it tells them that it is over (V1).
pub struct Lease {
    driver: Weak<Driver>,
    began: Option<Began>,
}

impl Lease {
    fn new(driver: &Weak<Driver>, began: Began) -> Self {
        Self { driver: Weak::clone(driver), began: Some(began) }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({:?})", self.began)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(began) = self.began.take() {
            end(&self.driver, vec![began]);
        }
    }
}

/// What a read saw, with what it began.
#[derive(Debug)]
pub struct Sight {
    /// What it saw; `began` is taken out of it.
    pub seen: Seen,
    /// What has to stay alive as long as this version is read: of a transaction's or snapshot's
    /// first read.
    pub lease: Option<Lease>,
}

/// A moment of everything, and what has to stay alive as long as anything is read there; `None` in
/// a cluster without a keyspace.
pub type Moment = Option<(Timestamp, Option<Lease>)>;

/// What a read of many blobs saw: its timestamp, and each blob in the order of the wants.
pub type Many = (Timestamp, Vec<Seen>);

/// The transaction whose outcome is unknown, as the source of a `TimedOut` error: ask again by it.
#[derive(Clone)]
pub struct Unresolved(Arc<Transaction>);

impl Unresolved {
    /// The transaction that an error leaves open, if it does.
    pub fn of(error: &Error) -> Option<Arc<Transaction>> {
        let source = std::error::Error::source(error)?;
        source.downcast_ref::<Self>().map(|unresolved| Arc::clone(&unresolved.0))
    }
}

impl fmt::Debug for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unresolved({:032x})", self.0.id.0)
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {:032x}", self.0.id.0)
    }
}

impl std::error::Error for Unresolved {}

/// Who waits for the answer to a call.
pub(super) enum Waiter {
    /// A commit, with what its reads began.
    Commit(ticket::Answer, Vec<Lease>),
    /// A read.
    Read(oneshot::Sender<Result<Sight>>),
    /// A read of many blobs.
    Many(oneshot::Sender<Result<Many>>),
    /// A scan.
    Scan(oneshot::Sender<Result<ScanPage>>),
    /// A lease, with what its holder will know of it.
    Lease(oneshot::Sender<Result<KeyLease>>, LeaseState),
    /// A watch, with what its watcher will be told.
    Watch(oneshot::Sender<Result<KeyWatch>>, WatchState),
    /// What becomes of a notice.
    Notice(oneshot::Sender<Result<Notified>>),
    /// A piece that is uploaded.
    Piece(oneshot::Sender<Result<PieceRef>>),
    /// A moment of everything.
    Moment(oneshot::Sender<Result<Moment>>),
    /// Nobody.
    Nobody,
}

impl Waiter {
    /// Tells it. What nobody waits for any more is dropped, and ended thereby.
    pub fn tell(self, driver: &Weak<Driver>, answer: Answer) {
        match self {
            Self::Commit(sender, held) => {
                // Who does not wait has let the transaction go on by itself.
                let _ = sender.send(committed(answer));
                drop(held);
            }
            Self::Read(sender) => {
                let _ = sender.send(sight(driver, answer));
            }
            Self::Many(sender) => {
                let _ = sender.send(many(answer));
            }
            Self::Scan(sender) => {
                let _ = sender.send(page(answer));
            }
            Self::Lease(sender, state) => {
                // Who does not wait any more lets it go: it is given back.
                let _ = sender.send(leased(driver, answer, state));
            }
            Self::Watch(sender, state) => {
                // Who does not wait any more lets it go: it is ended.
                let _ = sender.send(watching(driver, answer, state));
            }
            Self::Notice(sender) => {
                let _ = sender.send(notified(answer));
            }
            Self::Piece(sender) => {
                let _ = sender.send(staged(answer));
            }
            Self::Moment(sender) => {
                let _ = sender.send(moment(driver, answer));
            }
            Self::Nobody => {}
        }
    }

    /// The call was not even begun. Nothing changed.
    pub fn refuse(self, error: Error) {
        match self {
            Self::Commit(sender, _) => drop(sender.send(Err(error))),
            Self::Read(sender) => drop(sender.send(Err(error))),
            Self::Many(sender) => drop(sender.send(Err(error))),
            Self::Scan(sender) => drop(sender.send(Err(error))),
            Self::Lease(sender, _) => drop(sender.send(Err(error))),
            Self::Watch(sender, _) => drop(sender.send(Err(error))),
            Self::Notice(sender) => drop(sender.send(Err(error))),
            Self::Piece(sender) => drop(sender.send(Err(error))),
            Self::Moment(sender) => drop(sender.send(Err(error))),
            Self::Nobody => {}
        }
    }
}

fn committed(answer: Answer) -> Result<Committed> {
    match answer {
        Answer::Committed { transaction, at, outcomes } => {
            let mut all = Outcomes::of(&transaction);
            for answered in outcomes.iter() {
                all.put(answered.blob, answered.operation, answered.outcome);
            }
            Ok(Committed { at, outcomes: all.all })
        }
        Answer::Aborted { transaction, abort } if abort.kind == ErrorKind::TimedOut => {
            Err(Error::from(abort).with_source(Unresolved(transaction)))
        }
        Answer::Aborted { .. }
        | Answer::Failed(_)
        | Answer::Read(_)
        | Answer::Many { .. }
        | Answer::Page(_)
        | Answer::Leased { .. }
        | Answer::Watching { .. }
        | Answer::Notified(_)
        | Answer::Staged(_)
        | Answer::Moment { .. }
        | Answer::Ended => Err(refusal(answer)),
    }
}

fn sight(driver: &Weak<Driver>, answer: Answer) -> Result<Sight> {
    let Answer::Read(mut seen) = answer else { return Err(refusal(answer)) };
    let lease = seen.began.take().map(|began| Lease::new(driver, began));
    Ok(Sight { lease, seen })
}

fn many(answer: Answer) -> Result<Many> {
    let Answer::Many { at, seen } = answer else { return Err(refusal(answer)) };
    Ok((at, seen))
}

fn page(answer: Answer) -> Result<ScanPage> {
    let Answer::Page(page) = answer else { return Err(refusal(answer)) };
    Ok(page)
}

fn leased(driver: &Weak<Driver>, answer: Answer, state: LeaseState) -> Result<KeyLease> {
    let Answer::Leased { lease, .. } = answer else { return Err(refusal(answer)) };
    Ok(KeyLease::new(Weak::clone(driver), lease, state))
}

fn watching(driver: &Weak<Driver>, answer: Answer, state: WatchState) -> Result<KeyWatch> {
    let Answer::Watching { watch } = answer else { return Err(refusal(answer)) };
    Ok(KeyWatch::new(Weak::clone(driver), watch, state))
}

fn notified(answer: Answer) -> Result<Notified> {
    let Answer::Notified(notified) = answer else { return Err(refusal(answer)) };
    Ok(notified)
}

fn staged(answer: Answer) -> Result<PieceRef> {
    let Answer::Staged(piece) = answer else { return Err(refusal(answer)) };
    Ok(piece)
}

fn moment(driver: &Weak<Driver>, answer: Answer) -> Result<Moment> {
    if let Answer::Many { at, .. } = answer {
        return Ok(Some((at, None))); // Of a cluster that counts no moments of everything.
    }
    let Answer::Moment { at, began } = answer else { return Err(refusal(answer)) };
    Ok(at.map(|at| (at, began.map(|began| Lease::new(driver, began)))))
}

/// Why an answer is not the one that was asked for.
fn refusal(answer: Answer) -> Error {
    match answer {
        Answer::Failed(abort) | Answer::Aborted { abort, .. } => abort.into(),
        Answer::Committed { .. }
        | Answer::Read(_)
        | Answer::Many { .. }
        | Answer::Page(_)
        | Answer::Leased { .. }
        | Answer::Watching { .. }
        | Answer::Notified(_)
        | Answer::Staged(_)
        | Answer::Moment { .. }
        | Answer::Ended => {
            Error::unavailable("the session answered another call than was asked; report this")
        }
    }
}

/// One outcome an operation, blob after blob.
struct Outcomes {
    all: Vec<Outcome>,
    /// Where each blob's begin.
    starts: SmallVec<[usize; 4]>,
}

impl Outcomes {
    /// Those that answer nothing.
    fn of(transaction: &Transaction) -> Self {
        let mut len = 0;
        let start = |entry: &BlobOperations| {
            let start = len;
            len += entry.operations.len();
            start
        };
        let starts: SmallVec<[usize; 4]> = transaction.blobs.iter().map(start).collect();
        debug_assert_eq!(starts.len(), transaction.blobs.len(), "each blob's begin somewhere");
        debug_assert!(starts.is_sorted() && starts.last().is_none_or(|last| *last <= len));
        Self { all: vec![Outcome::Done; len], starts }
    }

    /// An answer; of an operation that is not there it is not understood.
    fn put(&mut self, blob: u32, operation: u32, outcome: Outcome) {
        let start = self.starts.get(blob as usize).copied();
        let place = start.and_then(|start| start.checked_add(operation as usize));
        if let Some(known) = place.and_then(|place| self.all.get_mut(place)) {
            *known = outcome;
        }
    }
}

/// An answer that is waited for. Dropping it cancels the read.
pub struct Waiting<T> {
    driver: Arc<Driver>,
    call: CallId,
    receiver: Option<oneshot::Receiver<Result<T>>>,
    is_over: bool,
}

impl<T> Waiting<T> {
    pub(super) fn new(
        driver: &Arc<Driver>,
        call: CallId,
        receiver: oneshot::Receiver<Result<T>>,
    ) -> Self {
        Self { driver: Arc::clone(driver), call, receiver: Some(receiver), is_over: false }
    }

    /// The answer, on any executor.
    ///
    /// # Errors
    /// What the nodes answered; `Unavailable` when none that could answer did so in time.
    pub async fn answer(mut self) -> Result<T> {
        debug_assert!(!self.is_over, "it is waited for once");
        let receiver = self.receiver.take().expect("it is waited for once");
        let answer = receiver.await;
        self.is_over = true;
        answer.unwrap_or_else(|_| Err(closed()))
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        if !self.is_over {
            self.driver.cancel(self.call);
        }
    }
}

impl<T> fmt::Debug for Waiting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiting({:?})", self.call)
    }
}

/// Why nothing is done any more.
pub(super) fn closed() -> Error {
    Error::unavailable("the connection to the cluster was closed; connect again")
}
