//! What runs methods of objects at this node, and how many calls are under way there.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_types::{MethodAnswer, MethodCall, SeatAnswer};

/// Between two looks for calls under way, at the end.
const SETTLE_NAP: Duration = Duration::from_millis(5);

/// Runs methods of objects for those who call them at this node.
pub trait MethodHost: Send + Sync + 'static {
    /// Runs a method in the name of a user who may have that done. `keyspace` is the name of the
    /// blob's. It must not hold up the thread that calls it, nor the one that waits.
    fn call(&self, user: &str, keyspace: &str, call: MethodCall) -> Answering;

    /// Answers a request to a seat, or says where that is; `None` when it has no such seats.
    /// `is_authority` tells whether this node is the authority of the seat's key, and so is to know
    /// where it is. It must not hold up the thread that calls it, nor the one that waits.
    fn ask_seat(
        &self,
        keyspace: &str,
        request: &MethodCall,
        is_authority: bool,
    ) -> Option<SeatAnswering> {
        let _ = (keyspace, request, is_authority);
        None
    }

    /// What a change of the record of a class is, in words; `None` when it does not know that.
    fn describe_class(
        &self,
        class: &str,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Option<String> {
        let _ = (class, old, new);
        None
    }
}

/// An answer of a [`MethodHost`], later.
pub type Answering = Pin<Box<dyn Future<Output = MethodAnswer> + Send>>;

/// An answer of a seat, later.
pub type SeatAnswering = Pin<Box<dyn Future<Output = SeatAnswer> + Send>>;

/// What runs methods, if anything does.
#[derive(Default)]
pub(crate) struct Methods {
    host: Mutex<Option<Arc<dyn MethodHost>>>,
    /// Calls taken since the start.
    taken: AtomicU64,
    /// Calls under way.
    running: Arc<AtomicUsize>,
    is_stopping: AtomicBool,
}

/// A call under way, until it is dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Methods {
    /// From now on methods are run by this.
    pub fn host_by(&self, host: Arc<dyn MethodHost>) {
        *self.host.lock() = Some(host);
    }

    /// What runs methods.
    pub fn host(&self) -> Option<Arc<dyn MethodHost>> {
        self.host.lock().clone()
    }

    /// A call is run.
    pub fn note(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls taken since the start, and those under way.
    pub fn counts(&self) -> (u64, u64) {
        let running = self.running.load(Ordering::Relaxed) as u64;
        (self.taken.load(Ordering::Relaxed), running)
    }

    /// A place for a call; `None` when the node stops.
    pub fn place(&self) -> Option<Place> {
        self.running.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(&self.running));
        (!self.is_stopping.load(Ordering::Acquire)).then_some(place)
    }

    /// No more calls are taken; waits for those under way, but no longer than this. What ran them
    /// is let go of.
    pub fn settle(&self, max: Duration) {
        self.is_stopping.store(true, Ordering::Release);
        let until = Instant::now() + max;
        while self.running.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(SETTLE_NAP);
        }
        let host = self.host.lock().take();
        drop(host);
    }
}
