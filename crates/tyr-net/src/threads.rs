//! The network's threads: each runs tasks of its own, and has its own sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tyr_types::{Error, Result};

/// The threads.
#[derive(Debug)]
pub(super) struct Threads {
    handles: Vec<Handle>,
    next: AtomicUsize,
    running: Mutex<Vec<(Arc<Notify>, JoinHandle<()>)>>,
}

impl Threads {
    /// # Errors
    /// `Unavailable` when the system has no more threads or descriptors.
    pub fn start(count: usize) -> Result<Self> {
        assert!(count > 0, "there is one: the configuration was checked");
        let threads =
            Self { handles: Vec::new(), next: AtomicUsize::new(0), running: Mutex::default() };
        (0..count).try_fold(threads, |mut threads, number| {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Error::io("cannot watch sockets", error))?;
            threads.handles.push(runtime.handle().clone());
            let stopping = Arc::new(Notify::new());
            let stopped = Arc::clone(&stopping);
            let thread = std::thread::Builder::new()
                .name(format!("tyr-network-{number}"))
                .spawn(move || {
                    runtime.block_on(stopped.notified());
                    // Does not wait for names that are being looked up.
                    runtime.shutdown_background();
                })
                .map_err(|error| Error::io("cannot start a thread for the network", error))?;
            threads.running.lock().push((stopping, thread));
            debug_assert_eq!(threads.handles.len(), number + 1, "each has its handle");
            Ok(threads)
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.handles.len()
    }

    /// The thread whose turn it is.
    pub fn next(&self) -> &Handle {
        debug_assert!(!self.handles.is_empty(), "there is one");
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        &self.handles[turn % self.handles.len()]
    }

    /// Whether one of them calls.
    pub fn is_one(&self) -> bool {
        let this = std::thread::current().id();
        self.running.lock().iter().any(|(_, thread)| thread.thread().id() == this)
    }

    /// Stops them. Waits until they have, unless one of them calls.
    pub fn stop(&self) {
        let running = std::mem::take(&mut *self.running.lock());
        for (stopping, _) in &running {
            stopping.notify_one();
        }
        for (_, thread) in running {
            if thread.thread().id() != std::thread::current().id() {
                // A panic in it was reported where it happened.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}
