//! Waiting for a future in a thread.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

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
    wait(future, || {
        std::thread::park();
        true
    })
    .expect("it waits for as long as it takes")
}

/// Waits for a future for so long, blocking the thread; `None` when it is not ready by then.
pub fn block_on_within<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
    let until = Instant::now() + timeout;
    wait(future, || {
        let left = until.saturating_duration_since(Instant::now());
        std::thread::park_timeout(left);
        !left.is_zero()
    })
}

/// Polls a future until it is ready, or until `park`, which waits to be woken, says to give up.
fn wait<F: Future>(future: F, park: impl Fn() -> bool) -> Option<F::Output> {
    let waker = WAKER.with_borrow_mut(|kept| {
        let made = || Waker::from(Arc::new(Unpark(std::thread::current())));
        kept.get_or_insert_with(made).clone()
    });
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return Some(answer),
            Poll::Pending if park() => {}
            Poll::Pending => return None,
        }
    }
}
