//! A listing as a stream: asks for the next page when the last one is used up.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tyr_types::{Key, Result, Stat, limits};

type Page = Result<Vec<(Key, Stat)>>;

/// Pages of a scan, fetched by `fetch` from after a key.
pub(crate) struct Pages<F, P> {
    fetch: F,
    fetching: Option<Pin<Box<P>>>,
    page: std::vec::IntoIter<(Key, Stat)>,
    after: Option<Key>,
    is_over: bool,
}

impl<F: FnMut(Option<Key>) -> P, P: Future<Output = Page>> Pages<F, P> {
    pub fn new(fetch: F) -> Self {
        Self { fetch, fetching: None, page: Vec::new().into_iter(), after: None, is_over: false }
    }
}

impl<F, P> Unpin for Pages<F, P> {}

impl<F: FnMut(Option<Key>) -> P, P: Future<Output = Page>> Stream for Pages<F, P> {
    type Item = Result<(Key, Stat)>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(entry) = this.page.next() {
                return Poll::Ready(Some(Ok(entry)));
            }
            if this.is_over {
                return Poll::Ready(None);
            }
            let after = this.after.clone();
            let fetching = this.fetching.get_or_insert_with(|| Box::pin((this.fetch)(after)));
            let page = match fetching.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(page) => page,
            };
            this.fetching = None;
            match page {
                Ok(page) => {
                    this.is_over = page.len() < limits::SCAN_LIMIT_MAX;
                    this.after = page.last().map(|(key, _)| key.clone());
                    this.page = page.into_iter();
                }
                Err(error) => {
                    this.is_over = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}
