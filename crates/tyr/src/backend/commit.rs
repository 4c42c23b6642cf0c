//! A commit under way, whose error says what users call things.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tyr_runtime::ticket::{Committed, Ticket};
use tyr_types::Result;

use super::Backend;

/// A commit under way. Wait for it in a thread with [`Commit::wait`], or `.await` it.
#[derive(Debug)]
pub(crate) struct Commit {
    /// Knows the names.
    backend: Backend,
    ticket: Ticket,
}

impl Commit {
    pub(super) fn new(backend: &Backend, ticket: Ticket) -> Self {
        Self { backend: backend.clone(), ticket }
    }

    /// Waits for the answer, blocking the thread.
    pub fn wait(self) -> Result<Committed> {
        self.ticket.wait().map_err(|error| self.backend.named(error))
    }
}

impl IntoFuture for Commit {
    type Output = Result<Committed>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { backend, ticket } = self;
        let answer = ticket.into_future();
        Box::pin(async move { answer.await.map_err(|error| backend.named(error)) })
    }
}
