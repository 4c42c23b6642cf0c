//! The threads of a host: many that wait for commits, and of these as many as there are cores that
//! run methods.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Jobs at once; most of them wait for a commit.
const JOBS_MAX: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs on threads that are there while there is something to do.
#[derive(Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    jobs: Mutex<Jobs>,
    permits: Permits,
}

#[derive(Default)]
struct Jobs {
    running: usize,
    /// Those without a thread; bounded by the calls that a host has in hand.
    waiting: VecDeque<Job>,
}

impl Default for Pool {
    fn default() -> Self {
        let permits = Permits { free: Mutex::new(cores()), given_back: Condvar::new() };
        Self { shared: Arc::new(Shared { jobs: Mutex::default(), permits }) }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Pool {
    /// What a job takes while it runs methods.
    pub fn permits(&self) -> &Permits {
        &self.shared.permits
    }

    /// Runs a job as soon as there is a thread.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut jobs = self.shared.jobs.lock();
        if jobs.running == JOBS_MAX {
            jobs.waiting.push_back(Box::new(job));
            return;
        }
        jobs.running += 1;
        drop(jobs);
        let running = Running(self.clone());
        blocking::unblock(move || {
            job();
            while let Some(next) = running.next() {
                next();
            }
        })
        .detach();
    }
}

/// A thread of the pool at work. If a job panics the rest goes on with another.
struct Running(Pool);

impl Running {
    fn next(&self) -> Option<Job> {
        self.0.shared.jobs.lock().waiting.pop_front()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let next = {
            let mut jobs = self.0.shared.jobs.lock();
            jobs.running -= 1;
            jobs.waiting.pop_front()
        };
        if let Some(next) = next {
            self.0.run(next);
        }
    }
}

/// As many as there are cores.
pub(crate) struct Permits {
    free: Mutex<usize>,
    given_back: Condvar,
}

/// One of them, until it is dropped.
pub(crate) struct Permit<'a>(&'a Permits);

impl Permits {
    /// Waits for one.
    pub fn take(&self) -> Permit<'_> {
        let mut free = self.free.lock();
        while *free == 0 {
            self.given_back.wait(&mut free);
        }
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.given_back.notify_one();
    }
}
