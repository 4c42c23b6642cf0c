//! Where calls wait for their object: a queue for each that is called now, and one turn at it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tyr::{Bytes, Error, Key, KeyspaceId, Result};
use tyr_class::Failure;

use crate::access::Object;
use crate::call::Call;

/// Calls that a host has in hand at most.
const CALLS_MAX: usize = 1_024;

/// Bytes of their inputs at most; one may have a megabyte.
const INPUT_BYTES_MAX: usize = 64 << 20;

/// Calls that are run in one transaction at most.
const BATCH_MAX: usize = 256;

/// Bytes of their inputs at most, unless it is one call.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// A call that waits for its turn, or is run.
pub(crate) struct Waiting {
    pub wanted: Call,
    /// The user who calls.
    pub caller: Arc<str>,
    /// When nobody waits for it any more.
    pub until: Instant,
    /// How often its method said that it is to run again.
    pub tries: u32,
    pub answer: oneshot::Sender<Result<Bytes, Failure>>,
    pub _place: Place,
}

impl Waiting {
    /// Answers it. Whoever does not wait any more need not be told.
    pub fn answer(self, answer: Result<Bytes, Failure>) {
        let _ = self.answer.send(answer);
    }
}

/// What a host has in hand.
#[derive(Default)]
struct InHand {
    calls: AtomicUsize,
    input_bytes: AtomicUsize,
}

/// A call's place among those that a host has in hand.
pub(crate) struct Place {
    in_hand: Arc<InHand>,
    len: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.in_hand.calls.fetch_sub(1, Ordering::Relaxed);
        self.in_hand.input_bytes.fetch_sub(self.len, Ordering::Relaxed);
    }
}

type Name = (KeyspaceId, Key);

/// The queues of the objects that are called now.
#[derive(Default)]
pub(crate) struct Queues {
    /// An object is here while somebody has its turn.
    objects: Arc<Mutex<HashMap<Name, VecDeque<Waiting>>>>,
    in_hand: Arc<InHand>,
}

/// The right to run the calls of an object, which one has at a time, until nothing waits.
pub(crate) struct Turn {
    objects: Arc<Mutex<HashMap<Name, VecDeque<Waiting>>>>,
    object: Object,
    name: Name,
}

impl Queues {
    /// A place for a call with an input of this length.
    ///
    /// # Errors
    /// `Unavailable` when there is none.
    pub fn place(&self, len: usize) -> Result<Place> {
        let in_hand = Arc::clone(&self.in_hand);
        let calls = in_hand.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = in_hand.input_bytes.fetch_add(len, Ordering::Relaxed) + len;
        let place = Place { in_hand, len };
        if calls <= CALLS_MAX && bytes <= INPUT_BYTES_MAX {
            return Ok(place);
        }
        Err(Error::unavailable(format!(
            "as many calls of methods wait or run here as may ({CALLS_MAX} calls, \
             {INPUT_BYTES_MAX} bytes of input); nothing was done, call again in a moment"
        )))
    }

    /// Lets a call wait for its object; answers the turn if nobody has it.
    pub fn push(&self, object: Object, waiting: Waiting) -> Option<Turn> {
        let name = (object.keyspace().id(), object.key().clone());
        let mut objects = self.objects.lock();
        if let Some(queue) = objects.get_mut(&name) {
            queue.push_back(waiting);
            return None;
        }
        objects.insert(name.clone(), VecDeque::from([waiting]));
        Some(Turn { objects: Arc::clone(&self.objects), object, name })
    }
}

impl Turn {
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The calls of the next batch, those first that have waited longest.
    pub fn take(&self) -> Vec<Waiting> {
        let mut objects = self.objects.lock();
        let queue = objects.get_mut(&self.name).expect("the turn keeps it");
        let mut bytes = 0;
        let fits = |waiting: &&Waiting| {
            bytes += waiting.wanted.input.len();
            bytes <= BATCH_BYTES_MAX
        };
        let count = queue.iter().take(BATCH_MAX).take_while(fits).count().max(1);
        queue.drain(..count.min(queue.len())).collect()
    }

    /// What was taken and is to be taken again, before all others.
    pub fn put_back(&self, calls: Vec<Waiting>) {
        let mut objects = self.objects.lock();
        let queue = objects.get_mut(&self.name).expect("the turn keeps it");
        calls.into_iter().rev().for_each(|waiting| queue.push_front(waiting));
    }

    /// The turn, if calls wait; else it is over.
    pub fn next(self) -> Option<Self> {
        let mut objects = self.objects.lock();
        if objects.get(&self.name).is_some_and(VecDeque::is_empty) {
            objects.remove(&self.name);
            return None;
        }
        drop(objects);
        Some(self)
    }
}
