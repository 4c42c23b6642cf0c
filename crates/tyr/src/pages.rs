//! Listings as streams: pages, each asked for when the last one is used up, and their entries.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tyr_types::{Key, Result, Scan, ScanEntry, ScanPage, Stat};

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

/// The blobs of pages, one by one, with size and version.
pub(crate) struct Entries<S> {
    pages: S,
    page: std::vec::IntoIter<ScanEntry>,
}

impl<S> Entries<S> {
    pub fn new(pages: S) -> Self {
        Self { pages, page: Vec::new().into_iter() }
    }
}

impl<S: Stream<Item = Result<ScanPage>> + Unpin> Stream for Entries<S> {
    type Item = Result<(Key, Stat)>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(found) = this.page.find_map(|it| Some((it.key, it.stat?))) {
                return Poll::Ready(Some(Ok(found)));
            }
            match Pin::new(&mut this.pages).poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(page))) => this.page = page.entries.into_iter(),
            }
        }
    }
}
