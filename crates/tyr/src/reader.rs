//! A blob as a stream of pieces, for async code.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tyr_types::{Bytes, Result};

use crate::blocking;

type Fetched = (blocking::Reader, Result<Option<Bytes>>);

/// Part of a blob at one version: a stream of pieces of up to 1 MiB, read as they are needed.
pub struct Reader {
    size: u64,
    state: State,
}

enum State {
    Idle(blocking::Reader),
    Fetching(Pin<Box<dyn Future<Output = Fetched> + Send>>),
    Over,
}

impl Reader {
    pub(crate) fn from_blocking(inner: blocking::Reader) -> Self {
        Self { size: inner.size(), state: State::Idle(inner) }
    }

    /// The size of the whole blob.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Stream for Reader {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<Self::Item>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Idle(mut reader) => {
                    let fetch = async move {
                        let piece = reader.fetch_next().await;
                        (reader, piece)
                    };
                    self.state = State::Fetching(Box::pin(fetch));
                }
                State::Fetching(mut fetching) => match fetching.as_mut().poll(context) {
                    Poll::Pending => {
                        self.state = State::Fetching(fetching);
                        return Poll::Pending;
                    }
                    Poll::Ready((reader, Ok(Some(piece)))) => {
                        self.state = State::Idle(reader);
                        return Poll::Ready(Some(Ok(piece)));
                    }
                    Poll::Ready((_, Ok(None))) => return Poll::Ready(None),
                    Poll::Ready((_, Err(error))) => return Poll::Ready(Some(Err(error))),
                },
                State::Over => return Poll::Ready(None),
            }
        }
    }
}
