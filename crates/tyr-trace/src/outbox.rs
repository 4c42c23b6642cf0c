//! Where spans that ended wait to be sent: bounded, and never waited for by who puts them there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::span::EndedSpan;

/// Spans that wait at most, some 5 MiB of them. They wait while the collector is not there.
const QUEUE_MAX: usize = 8192;

/// Spans that are sent at a time: less than 1 MiB, where a collector takes 4 MiB or more.
pub(super) const BATCH_MAX: usize = 512;

/// Spans on their way from the engine to the thread that sends them, and what became of them.
#[derive(Debug)]
pub struct Outbox {
    queue: Mutex<Vec<EndedSpan>>,
    room: usize,
    /// A batch is full.
    is_full: Notify,
    is_closed: watch::Sender<bool>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    exported: AtomicU64,
    crowded: AtomicU64,
    overflowed: AtomicU64,
    refused: AtomicU64,
    unsent: AtomicU64,
    is_failing: AtomicBool,
}

/// What became of the spans of a node since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceStatistics {
    /// Taken by the collector.
    pub exported: u64,
    /// Not begun: too many were open.
    pub crowded: u64,
    /// Dropped: too many waited to be sent.
    pub overflowed: u64,
    /// Refused by the collector.
    pub refused: u64,
    /// Not sent before the node stopped.
    pub unsent: u64,
    /// Whether the collector did not take the last batch.
    pub is_failing: bool,
}

impl Outbox {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self::with_room(QUEUE_MAX)
    }

    /// An empty one with room for so many spans.
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            queue: Mutex::default(),
            room,
            is_full: Notify::new(),
            is_closed: watch::Sender::new(false),
            counts: Counts::default(),
        }
    }

    /// Puts a span there, if there is room.
    pub(crate) fn push(&self, span: EndedSpan) {
        let len = {
            let mut queue = self.queue.lock();
            if queue.len() >= self.room {
                add(&self.counts.overflowed, 1);
                return;
            }
            queue.push(span);
            queue.len()
        };
        // Only then, or every span would wake a thread.
        if len == BATCH_MAX {
            self.is_full.notify_one();
        }
    }

    /// A span was not begun, since too many are open.
    pub fn note_crowded(&self) {
        add(&self.counts.crowded, 1);
    }

    /// No more than what is there is sent.
    pub fn close(&self) {
        self.is_closed.send_replace(true);
    }

    /// What became of spans so far.
    pub fn statistics(&self) -> TraceStatistics {
        let Counts { exported, crowded, overflowed, refused, unsent, is_failing } = &self.counts;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TraceStatistics {
            exported: read(exported),
            crowded: read(crowded),
            overflowed: read(overflowed),
            refused: read(refused),
            unsent: read(unsent),
            is_failing: is_failing.load(Ordering::Relaxed),
        }
    }

    /// Waits until a batch is full, the time has passed, or nothing comes any more.
    pub(super) async fn wait(&self, longest: Duration) {
        if self.queue.lock().len() < BATCH_MAX {
            tokio::select! {
                () = self.is_full.notified() => {}
                () = self.rest(longest) => {}
            }
        }
    }

    /// Waits until the time has passed or nothing comes any more.
    pub(super) async fn rest(&self, longest: Duration) {
        tokio::select! {
            () = self.closed() => {}
            () = tokio::time::sleep(longest) => {}
        }
    }

    /// Waits until nothing comes any more.
    pub(super) async fn closed(&self) {
        let mut is_closed = self.is_closed.subscribe();
        // The sender is ours, so it is there.
        let _ = is_closed.wait_for(|is_closed| *is_closed).await;
    }

    /// Whether nothing comes any more.
    pub(super) fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Takes the oldest spans, a batch at most.
    pub(super) fn take(&self) -> Vec<EndedSpan> {
        let mut queue = self.queue.lock();
        let count = queue.len().min(BATCH_MAX);
        queue.drain(..count).collect()
    }

    /// The collector took so many spans and refused so many.
    pub(super) fn note_sent(&self, taken: u64, refused: u64) {
        add(&self.counts.exported, taken);
        add(&self.counts.refused, refused);
    }

    /// Whether the collector takes what is sent, from now on; answers whether that is new.
    pub(super) fn set_failing(&self, is_failing: bool) -> bool {
        self.counts.is_failing.swap(is_failing, Ordering::Relaxed) != is_failing
    }

    /// What waits is not sent any more, nor are so many that were taken.
    pub(super) fn give_up(&self, taken: usize) {
        let left = std::mem::take(&mut *self.queue.lock()).len();
        add(&self.counts.unsent, (left + taken) as u64);
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
