//! How answers reach the program: the calling thread waits, or the call is started.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use futures_util::FutureExt;
use tyr_completion::{Completion, Queue};

use crate::answer::Answer;
use crate::failure::Failure;

/// How long a thread that waits lets an interrupt wait.
const INTERRUPTS_EVERY: Duration = Duration::from_millis(50);

/// What is taken of the queue.
pub type Done = Completion<Result<Answer, Failure>>;

/// Calls that were started, of the whole process.
static QUEUE: LazyLock<Queue<Result<Answer, Failure>>> = LazyLock::new(Queue::new);

/// Takes calls that are over, up to `most`; waits for the first.
pub fn take(most: usize) -> Vec<Done> {
    QUEUE.take(most, None)
}

/// Cancels a call that was started.
pub fn cancel(tag: i64) {
    QUEUE.cancel(tag as u64);
}

/// How an answer reaches the program.
pub enum Front<'a> {
    /// The thread that calls waits; what is here says whether it was interrupted.
    Waits(&'a mut dyn FnMut() -> bool),
    /// It goes on, and takes the answer later, by this tag.
    Started(i64),
}

impl Front<'_> {
    /// Has a call done. Answers nothing when the answer is to be taken later.
    ///
    /// # Errors
    /// What the call fails with, as far as that is known.
    pub fn run(
        self,
        call: impl Future<Output = Result<Answer, Failure>> + Send + 'static,
    ) -> Result<Option<Answer>, Failure> {
        match self {
            Self::Waits(is_interrupted) => wait_for(call, is_interrupted)?.map(Some),
            Self::Started(tag) => start(tag, call),
        }
    }
}

/// Starts a call; one that is over at once is not put into the queue.
fn start(
    tag: i64,
    call: impl Future<Output = Result<Answer, Failure>> + Send + 'static,
) -> Result<Option<Answer>, Failure> {
    let mut call = Box::pin(AssertUnwindSafe(call).catch_unwind());
    // The queue polls it again, with what wakes it.
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(answer)) => answer.map(Some),
        Poll::Ready(Err(panic)) => Err(bug(&*panic)),
        Poll::Pending => {
            let call = call.map(|it| it.unwrap_or_else(|panic| Err(bug(&*panic))));
            QUEUE.start(tag as u64, call, |why| Err(why.into()))?;
            Ok(None)
        }
    }
}

/// Waits for a future in this thread, and looks now and then whether it was interrupted.
///
/// # Errors
/// `Interrupted`: then the future is dropped, which takes a read back; what changes something may
/// take effect all the same.
pub fn wait_for<T>(
    future: impl Future<Output = T>,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<T, Failure> {
    let mut future = pin!(future);
    // Most are over at once, and then nothing needs to wake this thread.
    if let Poll::Ready(answer) = poll(future.as_mut(), Waker::noop())? {
        return Ok(answer);
    }
    let bell = Arc::new(Bell { thread: std::thread::current(), is_rung: AtomicBool::new(true) });
    let waker = Waker::from(Arc::clone(&bell));
    loop {
        if bell.is_rung.swap(false, Ordering::Acquire) {
            if let Poll::Ready(answer) = poll(future.as_mut(), &waker)? {
                return Ok(answer);
            }
            continue;
        }
        std::thread::park_timeout(INTERRUPTS_EVERY);
        if !bell.is_rung.load(Ordering::Acquire) && is_interrupted() {
            return Err(Failure::Interrupted);
        }
    }
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>, waker: &Waker) -> Result<Poll<T>, Failure> {
    let polled = catch_unwind(AssertUnwindSafe(|| future.poll(&mut Context::from_waker(waker))));
    polled.map_err(|panic| bug(&*panic))
}

/// What wakes a thread that waits. It remembers that it rang: the thread may be waiting for
/// something else just then, within the body of a transaction.
struct Bell {
    thread: Thread,
    is_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.is_rung.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// The failure that a panic is.
pub fn bug(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Failure::Bug(text.unwrap_or("no words").to_owned())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn a_call_that_is_over_at_once_is_not_queued() {
        let answer = Front::Started(1).run(ready(Ok(Answer::truth(true)))).unwrap();
        assert!(matches!(answer, Some(Answer::Numbers(it)) if it.as_slice() == [1]));
        let failure = Front::Started(2).run(ready(Err(Failure::invalid("no")))).unwrap_err();
        assert_eq!(failure.text(), "no");
    }

    #[test]
    fn a_call_that_is_cancelled_is_taken_as_that() {
        assert!(Front::Started(3).run(pending()).unwrap().is_none());
        cancel(3);
        let done = take(10);
        assert_eq!(done.iter().map(|it| it.tag).collect::<Vec<_>>(), [3]);
        assert!(matches!(done[0].answer, Err(Failure::Cancelled)));
    }

    #[test]
    fn an_interrupt_ends_a_call_that_waits() {
        let mut looks = 0;
        let mut is_interrupted = || {
            looks += 1;
            looks == 2
        };
        let ended = Front::Waits(&mut is_interrupted).run(pending());
        assert!(matches!(ended, Err(Failure::Interrupted)));
    }

    #[test]
    fn a_panic_is_a_bug_with_its_words() {
        async fn broken() -> Result<Answer, Failure> {
            panic!("rule {} is broken", 3)
        }
        let mut never = || false;
        for front in [Front::Waits(&mut never), Front::Started(4)] {
            let failure = front.run(broken()).unwrap_err();
            assert!(matches!(&failure, Failure::Bug(words) if words == "rule 3 is broken"));
        }
    }
}
