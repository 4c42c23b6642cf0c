//! Waiting for a future in a thread.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// Made once a thread. An unpark that was meant for an earlier future is one look too many.
    static WAKER: RefCell<Option<Waker>> = const { RefCell::new(None) };
}

/// Waits for a future, blocking the thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = WAKER.with_borrow_mut(|kept| {
        let made = || Waker::from(Arc::new(Unpark(std::thread::current())));
        kept.get_or_insert_with(made).clone()
    });
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
