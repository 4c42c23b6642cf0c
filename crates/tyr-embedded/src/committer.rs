//! Group commit: one sync for everybody who waits.
//!
//! While a sync is under way, new transactions gather behind it; the next sync takes them all. So
//! the more writers there are, the more transactions share a sync.

use std::sync::Arc;

use tyr_protocol::commit::{Attempt, Event};
use tyr_types::{Error, Result, TransactionId};

use crate::inner::Inner;

/// Runs until the arbiter says stop and nobody waits any more.
pub(crate) fn run(inner: &Arc<Inner>) {
    loop {
        let mut arbiter = inner.arbiter.lock();
        while arbiter.to_sync.is_empty() && !arbiter.is_stopping {
            inner.sync_wanted.wait(&mut arbiter);
        }
        if arbiter.to_sync.is_empty() {
            return;
        }
        drop(arbiter);
        // A failure is told to everybody who waits, and refuses all further writes.
        let _ = sync_now(inner);
    }
}

/// Makes everything committed so far durable, and answers everybody whom that concerns.
///
/// # Errors
/// `Unavailable` when the disk fails; the store refuses writes from then on.
pub(crate) fn sync_now(inner: &Inner) -> Result<()> {
    let (ids, synced) = sync_log(inner);
    let mut due = Vec::with_capacity(ids.len());
    let mut arbiter = inner.arbiter.lock();
    for (id, attempt) in ids {
        let event = match &synced {
            Ok(()) => Event::Persisted { id, attempt },
            Err(error) => {
                if let Some(waiting) = arbiter.waiting.get_mut(&id) {
                    waiting.failure = Some(error.duplicate());
                }
                Event::PersistFailed { id }
            }
        };
        arbiter.drive(inner, event, &mut due);
    }
    drop(arbiter);
    inner.counters.synced_commits.add(due.len() as u64);
    inner.deliver(due, Ok(()));
    synced
}

/// Makes everything that is in the log's memory durable, extents before the records that refer to
/// them. Answers which transactions that covers.
fn sync_log(inner: &Inner) -> (Vec<(TransactionId, Attempt)>, Result<()>) {
    let _syncing = inner.log_syncer.lock();
    let writing = inner.log_writer.lock();
    let mut arbiter = inner.arbiter.lock();
    let ids: Vec<_> = arbiter.to_sync.drain(..).collect();
    let Some(log) = arbiter.log.as_mut() else { return (ids, Ok(())) };
    if let Err(error) = inner.check_sound() {
        return (ids, Err(error));
    }
    let pending = log.take_pending();
    drop(arbiter);
    let written = inner.store.extents().sync().and_then(|()| pending.write());
    match &written {
        Ok(()) => {
            let end = pending.last_sequence() + 1;
            inner.written.fetch_max(end, std::sync::atomic::Ordering::Release);
        }
        // Before anybody else may write.
        Err(error) => inner.poison(error),
    }
    drop(writing);
    let synced = written.and_then(|()| pending.sync());
    inner.counters.log_syncs.add(1);
    inner.recycle(pending);
    (ids, synced.inspect_err(|error: &Error| inner.poison(error)))
}
