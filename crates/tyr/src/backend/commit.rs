//! A commit under way, whose error says what users call things; and a question what became of one.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use tyr_runtime::ticket::{Answering, Committed, Ticket};
use tyr_types::Result;

use super::{Backend, RemoteUpload};

/// A commit under way. Wait for it in a thread with [`Commit::wait`], or `.await` it.
#[derive(Debug)]
pub(crate) struct Commit {
    ticket: Ticket,
    /// Who knows the names, where the answer is still to come.
    names: Option<Backend>,
    /// What was uploaded ahead, to be dropped if it is not used.
    uploads: Vec<RemoteUpload>,
}

impl Commit {
    pub(super) fn new(backend: &Backend, ticket: Ticket, uploads: Vec<RemoteUpload>) -> Self {
        match ticket.known() {
            Ok(answer) => {
                let answer = answer.map_err(|error| backend.named(error));
                Self { ticket: Ticket::ready(answer), names: None, uploads }
            }
            Err(ticket) => Self { ticket, names: Some(backend.clone()), uploads },
        }
    }

    /// Waits for the answer, blocking the thread.
    pub fn wait(mut self) -> Result<Committed> {
        let answer = self.ticket.wait();
        self.uploads.iter_mut().for_each(|upload| upload.end(&answer));
        named(self.names.as_ref(), answer)
    }
}

impl IntoFuture for Commit {
    type Output = Result<Committed>;
    type IntoFuture = Committing;

    fn into_future(self) -> Committing {
        Committing { answer: self.ticket.into_future(), names: self.names, uploads: self.uploads }
    }
}

/// The future of a [`Commit`].
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub(crate) struct Committing {
    answer: Answering,
    names: Option<Backend>,
    uploads: Vec<RemoteUpload>,
}

impl Future for Committing {
    type Output = Result<Committed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.answer).poll(context);
        polled.map(|answer| {
            self.uploads.iter_mut().for_each(|upload| upload.end(&answer));
            named(self.names.as_ref(), answer)
        })
    }
}

fn named(names: Option<&Backend>, answer: Result<Committed>) -> Result<Committed> {
    match names {
        Some(backend) => answer.map_err(|error| backend.named(error)),
        None => answer,
    }
}

/// A question what became of a transaction.
pub(crate) struct Asked {
    commit: Commit,
    shape: Vec<u32>,
}

impl Asked {
    pub(super) fn new(commit: Commit, shape: Vec<u32>) -> Self {
        Self { commit, shape }
    }

    pub fn wait(self) -> Result<crate::Committed> {
        Ok(crate::Committed::new(self.commit.wait()?, self.shape))
    }

    pub async fn fetch(self) -> Result<crate::Committed> {
        Ok(crate::Committed::new(self.commit.await?, self.shape))
    }
}
