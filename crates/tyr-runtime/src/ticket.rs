//! The answer to a commit, now or later.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use tyr_types::{Error, Outcome, Result, Timestamp};

/// What a committed transaction answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// Its commit timestamp: the version of everything it wrote.
    pub at: Timestamp,
    /// One outcome an operation, blob after blob, in the transaction's order.
    pub outcomes: Vec<Outcome>,
}

/// The other end of a [`Ticket`].
pub type Answer = oneshot::Sender<Result<Committed>>;

/// A commit under way. Wait for it in a thread with [`Ticket::wait`], or `.await` it.
///
/// Dropping it does not take the transaction back.
#[derive(Debug)]
pub struct Ticket(State);

#[derive(Debug)]
enum State {
    Ready(Result<Committed>),
    Waiting(oneshot::Receiver<Result<Committed>>),
}

impl Ticket {
    /// A ticket that has its answer.
    pub fn ready(answer: Result<Committed>) -> Self {
        Self(State::Ready(answer))
    }

    /// A ticket whose answer comes later.
    pub fn waiting() -> (Answer, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(State::Waiting(receiver)))
    }

    /// The answer, if the ticket was made with it.
    ///
    /// # Errors
    /// The ticket itself, when its answer comes later.
    pub fn known(self) -> std::result::Result<Result<Committed>, Self> {
        match self.0 {
            State::Ready(answer) => Ok(answer),
            State::Waiting(receiver) => Err(Self(State::Waiting(receiver))),
        }
    }

    /// Waits for the answer, blocking the thread.
    ///
    /// # Errors
    /// Why the transaction did not commit; nothing changed, except after `TimedOut`.
    pub fn wait(self) -> Result<Committed> {
        match self.0 {
            State::Ready(answer) => answer,
            State::Waiting(receiver) => receiver.recv().unwrap_or_else(|_| Err(lost())),
        }
    }
}

impl IntoFuture for Ticket {
    type Output = Result<Committed>;
    type IntoFuture = Answering;

    fn into_future(self) -> Answering {
        Answering(match self.0 {
            State::Ready(answer) => Awaited::Ready(Some(answer)),
            State::Waiting(receiver) => Awaited::Waiting(receiver.into_future()),
        })
    }
}

/// The future of a [`Ticket`]. It allocates nothing: most commits to a directory have their answer
/// when it is made.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct Answering(Awaited);

#[derive(Debug)]
enum Awaited {
    /// Taken by the poll that answers.
    Ready(Option<Result<Committed>>),
    Waiting(oneshot::AsyncReceiver<Result<Committed>>),
}

impl Future for Answering {
    type Output = Result<Committed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Awaited::Ready(answer) => {
                Poll::Ready(answer.take().expect("nobody polls a future that has answered"))
            }
            Awaited::Waiting(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|answer| answer.unwrap_or_else(|_| Err(lost()))),
        }
    }
}

fn lost() -> Error {
    Error::new(
        tyr_types::ErrorKind::TimedOut,
        "the store closed before the transaction was known to be durable; \
         open it again and look whether it took effect",
    )
}
