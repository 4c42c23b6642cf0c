//! Notices to who watches keys, among the threads of this process (K6).
//!
//! ```text
//!   notify ─► all watches of the key ─► acknowledged by all, or the time is over ─► answered
//! ```
//!
//! Nothing is in between that could be lost, so each watch gets a notice once. A thread of its own,
//! there from the first notice on, sees to those whose time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tyr_types::limits::{NOTICES_OF_NODE_MAX, WATCHERS_OF_NOTICE_MAX};
use tyr_types::notice::check_notice;
use tyr_types::{BlobName, Bytes, Error, ErrorKind, Notice, NoticeId, Notified, Result, Watcher};

use crate::EmbeddedStore;

/// The one client that there is.
const CLIENT: u64 = 0;

/// What becomes of a notice, once it is known.
pub type AwaitedNotice = oneshot::AsyncReceiver<Result<Notified>>;

/// The notices of a store.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    inner: Mutex<Inner>,
    /// Somebody waits for no longer than before, or the store closes.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    pending: BTreeMap<u64, Pending>,
    due: BTreeSet<(Instant, u64)>,
    sent: u64,
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
}

#[derive(Debug)]
struct Pending {
    until: Instant,
    /// Those who have not acknowledged it.
    waiting: BTreeSet<u64>,
    notified: Notified,
    answer: oneshot::Sender<Result<Notified>>,
}

impl EmbeddedStore {
    /// Sends a notice to who watches a key; they have so long to acknowledge it.
    ///
    /// # Errors
    /// `InvalidArgument` for what is out of bounds; `Unavailable` when there are too many notices,
    /// or too many who watch, or the store is closed.
    pub fn notify(
        &self,
        blob: &BlobName,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<AwaitedNotice> {
        check_notice(&payload, timeout)?;
        let (answer, awaited) = oneshot::channel();
        let watchers = self.inner.watches.watchers(blob);
        if watchers.len() > WATCHERS_OF_NOTICE_MAX {
            return Err(Error::unavailable(format!(
                "more watch the key than a notice can reach, {WATCHERS_OF_NOTICE_MAX}; let some \
                 watch another key"
            )));
        }
        let mut inner = self.inner.notices.inner.lock();
        if inner.is_closed {
            return Err(Error::unavailable("the store is closed"));
        }
        if inner.pending.len() >= NOTICES_OF_NODE_MAX {
            return Err(Error::unavailable(format!(
                "{NOTICES_OF_NODE_MAX} notices wait to be acknowledged; try again later"
            )));
        }
        self.wake_notices_in_time(&mut inner)?;
        inner.sent += 1;
        let (number, until) = (inner.sent, Instant::now() + timeout);
        let waiting = watchers.iter().map(|(watch, _)| *watch).collect();
        let pending = Pending { until, waiting, notified: Notified::default(), answer };
        inner.due.insert((until, number));
        inner.pending.insert(number, pending);
        inner.conclude(number);
        self.inner.notices.changed.notify_all();
        drop(inner);
        let id = NoticeId { client: CLIENT, number };
        for (watch, state) in watchers {
            let notice = Notice { id, key: blob.key.clone(), payload: payload.clone() };
            if !state.notice(notice) {
                self.inner.notices.end(watch, Some(number)); // It has more than it takes.
            }
        }
        Ok(awaited.into_future())
    }

    fn wake_notices_in_time(&self, inner: &mut Inner) -> Result<()> {
        if inner.thread.is_some() {
            return Ok(());
        }
        let store = Arc::clone(&self.inner);
        let thread = std::thread::Builder::new()
            .name("tyr-notices".to_owned())
            .spawn(move || store.notices.wake())
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, "cannot start thread tyr-notices")
                    .with_source(error)
            })?;
        inner.thread = Some(thread);
        Ok(())
    }
}

impl Notices {
    /// A watch acknowledges a notice; only the first time counts.
    pub fn acknowledge(&self, watch: u64, id: NoticeId, reply: Bytes) {
        let mut inner = self.inner.lock();
        let Some(pending) = inner.pending.get_mut(&id.number) else { return };
        if pending.waiting.remove(&watch) {
            pending.notified.acknowledged.push((Watcher { client: CLIENT, watch }, reply));
            inner.conclude(id.number);
        }
    }

    /// Nobody waits for this watch any more, with this notice or any.
    pub fn end(&self, watch: u64, only: Option<u64>) {
        let mut inner = self.inner.lock();
        let is_meant = |number: &u64| only.is_none_or(|only| only == *number);
        let numbers: Vec<u64> = inner.pending.keys().copied().filter(is_meant).collect();
        for number in numbers {
            let pending = inner.pending.get_mut(&number).expect("it was just there");
            if pending.waiting.remove(&watch) {
                pending.notified.missed.push(Watcher { client: CLIENT, watch });
                inner.conclude(number);
            }
        }
    }

    /// The store closes: who waits hears that nobody will answer.
    pub fn close(&self) {
        let thread = {
            let mut inner = self.inner.lock();
            inner.is_closed = true;
            inner.due.clear();
            for pending in std::mem::take(&mut inner.pending).into_values() {
                let _ = pending.answer.send(Err(Error::unavailable("the store is closed")));
            }
            self.changed.notify_all();
            inner.thread.take()
        };
        if let Some(thread) = thread {
            let _ = thread.join(); // A panic there has been reported.
        }
    }

    /// Answers those whose time is over, until the store closes.
    fn wake(&self) {
        let mut inner = self.inner.lock();
        while !inner.is_closed {
            match inner.due.first().copied() {
                None => self.changed.wait(&mut inner),
                Some((until, number)) if until <= Instant::now() => {
                    let pending = inner.pending.get_mut(&number).expect("what is due is there");
                    let late = std::mem::take(&mut pending.waiting).into_iter();
                    let late = late.map(|watch| Watcher { client: CLIENT, watch });
                    pending.notified.missed.extend(late);
                    inner.conclude(number);
                }
                Some((until, _)) => drop(self.changed.wait_until(&mut inner, until)),
            }
        }
    }
}

impl Inner {
    /// Answers if nobody is waited for.
    fn conclude(&mut self, number: u64) {
        let is_done = |pending: &Pending| pending.waiting.is_empty();
        if !self.pending.get(&number).is_some_and(is_done) {
            return;
        }
        let Some(Pending { until, notified, answer, .. }) = self.pending.remove(&number) else {
            return;
        };
        self.due.remove(&(until, number));
        let _ = answer.send(Ok(notified)); // Nobody may wait for it.
    }
}
