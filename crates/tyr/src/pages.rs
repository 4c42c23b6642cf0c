//! A listing as a stream: asks for the next page when the last one is used up.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tyr_types::{Key, Result, Scan, ScanPage, Stat, limits};

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

/// Pages of a scan, each fetched by `fetch`, until the last or the first error.
pub(crate) struct ScanPages<F, P> {
    fetch: F,
    fetching: Option<(Scan, Pin<Box<P>>)>,
    next: Option<Scan>,
}

impl<F: FnMut(Scan) -> P, P: Future<Output = Result<ScanPage>>> ScanPages<F, P> {
    pub fn new(scan: &Scan, fetch: F) -> Self {
        Self { fetch, fetching: None, next: Some(scan.clone()) }
    }
}

impl<F, P> Unpin for ScanPages<F, P> {}

impl<F: FnMut(Scan) -> P, P: Future<Output = Result<ScanPage>>> Stream for ScanPages<F, P> {
    type Item = Result<ScanPage>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.fetching.is_none() {
            let Some(scan) = this.next.take() else { return Poll::Ready(None) };
            let fetching = Box::pin((this.fetch)(scan.clone()));
            this.fetching = Some((scan, fetching));
        }
        let (_, fetching) = this.fetching.as_mut().expect("it was just put there");
        let page = match fetching.as_mut().poll(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(page) => page,
        };
        let fetched = this.fetching.take();
        this.next = page.as_ref().ok().and_then(|page| fetched?.0.resumed(page));
        Poll::Ready(Some(page))
    }
}
