//! Queues of completions: where calls that were started end.

use std::ffi::c_int;
use std::time::Duration;

use tyr_completion::{Completion, Queue};

use super::blob::tyr_bytes;
use super::committed::tyr_committed;
use super::error::tyr_error;
use super::listing::tyr_page;
use super::memory::{put, wanted};
use super::number::{tyr_number, tyr_timestamp};
use super::snapshot::tyr_snapshot;
use super::{call, hand_out, of};
use crate::failure::Failure;
use crate::handle::HANDLES;
use crate::object::{Answer, Page, Value};

/// Calls under way and the completions of those that are over: up to 65,536. Any thread may use it.
pub struct tyr_queue {
    _private: (),
}

/// The completion of a call. What it has of handles, the error among them, is the taker's to free.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_done {
    /// What the call was started with.
    pub tag: u64,
    /// NULL if it was good.
    pub error: *mut tyr_error,
    /// Of a read the bytes read, of an append the offset, of a stat the size, of a delete 1 if
    /// there was a blob.
    pub value: u64,
    /// Of an apply the new value.
    pub number: tyr_number,
    /// Of a stat and a commit the version.
    pub version: tyr_timestamp,
    /// Of a get the bytes.
    pub bytes: *mut tyr_bytes,
    /// Of a commit what it answers.
    pub committed: *mut tyr_committed,
    /// Of a scan the page.
    pub page: *mut tyr_page,
    /// Of a tyr_snapshot_take the snapshot.
    pub snapshot: *mut tyr_snapshot,
    /// For what may come.
    pub reserved: [u64; 3],
}

/// Makes a queue. `queue` is to be freed with tyr_queue_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_queue_new(queue: *mut *mut tyr_queue) -> *mut tyr_error {
    call(|| {
        wanted(queue, "queue")?;
        super::store::watch_forks();
        put(queue, hand_out(Queue::<Answer>::new())?);
        Ok(())
    })
}

/// Takes up to `most` completions, in the order in which they came, and says how many in `taken`.
/// Where there is none it waits for the first, for `timeout_us` microseconds at most: 0 does not
/// wait, a negative time has no end. `most` is 1 to 65,536.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_queue_take(
    queue: *mut tyr_queue,
    done: *mut tyr_done,
    most: usize,
    timeout_us: i64,
    taken: *mut usize,
) -> *mut tyr_error {
    call(|| {
        wanted(done, "done")?;
        wanted(taken, "taken")?;
        if !(1..=tyr_completion::CALLS_MAX).contains(&most) {
            let max = tyr_completion::CALLS_MAX;
            return Err(Failure::invalid(format!("most is 1 to {max}, not {most}")));
        }
        let queue = of::<Queue<Answer>, _>(queue)?;
        let wait = u64::try_from(timeout_us).ok().map(Duration::from_micros);
        let completions = queue.take(most, wait);
        put(taken, completions.len());
        for (at, completion) in completions.into_iter().enumerate() {
            put(done.add(at), done_of(completion));
        }
        Ok(())
    })
}

fn done_of(completion: Completion<Answer>) -> tyr_done {
    let mut done = tyr_done {
        tag: completion.tag,
        error: std::ptr::null_mut(),
        value: 0,
        number: tyr_number::default(),
        version: tyr_timestamp::default(),
        bytes: std::ptr::null_mut(),
        committed: std::ptr::null_mut(),
        page: std::ptr::null_mut(),
        snapshot: std::ptr::null_mut(),
        reserved: [0; 3],
    };
    done.error = call(|| {
        let Value { value, number, version, bytes, committed, page, snapshot } =
            completion.answer?;
        done.value = value;
        done.number = number.map(tyr_number::from).unwrap_or_default();
        done.version = version.map(tyr_timestamp::from).unwrap_or_default();
        if let Some(bytes) = bytes {
            done.bytes = hand_out(bytes)?;
        }
        if let Some(committed) = committed {
            done.committed = hand_out(committed)?;
        }
        if let Some(page) = page {
            done.page = hand_out(Page(page))?;
        }
        if let Some(snapshot) = snapshot {
            done.snapshot = hand_out(snapshot)?;
        }
        Ok(())
    });
    done
}

/// Puts a completion of the program's own into the queue, with `value`: it wakes who waits in
/// tyr_queue_take. It counts among the calls that a queue has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_queue_post(
    queue: *mut tyr_queue,
    tag: u64,
    value: u64,
) -> *mut tyr_error {
    call(|| {
        super::started::launch(queue, tag, || Ok(async move { Ok(super::started::value(value)) }))
    })
}

/// A descriptor that is readable while there are completions to take, for poll, epoll and event
/// loops. It is the queue's: neither read nor close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_queue_fd(queue: *mut tyr_queue, fd: *mut c_int) -> *mut tyr_error {
    call(|| {
        wanted(fd, "fd")?;
        put(fd, of::<Queue<Answer>, _>(queue)?.descriptor()?);
        Ok(())
    })
}

/// How many calls have no completion yet, in `under_way`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_queue_under_way(
    queue: *mut tyr_queue,
    under_way: *mut usize,
) -> *mut tyr_error {
    call(|| {
        wanted(under_way, "under_way")?;
        put(under_way, of::<Queue<Answer>, _>(queue)?.under_way());
        Ok(())
    })
}

/// Cancels the calls under way that were started with this tag; `cancelled`, which may be NULL, is
/// how many. Each has its completion all the same, with `TYR_CANCELLED` unless its answer was
/// faster.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_queue_cancel(
    queue: *mut tyr_queue,
    tag: u64,
    cancelled: *mut usize,
) -> *mut tyr_error {
    call(|| {
        put(cancelled, of::<Queue<Answer>, _>(queue)?.cancel(tag));
        Ok(())
    })
}

/// Frees a queue: cancels what is under way, waits until nothing is, and drops what was not taken.
/// After that no call touches anything that it was lent. NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_queue_free(queue: *mut tyr_queue) -> *mut tyr_error {
    call(|| {
        if !queue.is_null() {
            HANDLES.take::<Queue<Answer>>(queue.addr())?.close();
        }
        Ok(())
    })
}
