//! Seats: services with a state in memory, each at one place at a time.
//!
//! ```text
//!   request ──► the node of the seat's key ──► sat here? ── yes ──► answered from memory
//!                                                 └─ no ──► take: a lock of that key, with its
//!                                                           token, which is the seat's epoch
//!   another node is asked (the map changed) ──► it waits for the lock: handed over, or its lease
//!                                               over ──► what the last one left, or recovery
//! ```
//!
//! Who *sits* holds a lock (K4), so nobody else does meanwhile, and the token grows by one with
//! each who takes the seat. State is soft: it is lost with whoever sits, and what a seat makes
//! durable it makes so under the fence of its token. What kinds of seats there are, and what they
//! leave to the next, is not known here.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr::blocking::Keyspace;
use tyr::{Bytes, Error, Key, KeyspaceId, Result};
use tyr_class::Failure;

use crate::blocking::Classes;

/// Seats that one program sits on at most: each has a thread that keeps its lock.
const SEATS_MAX: usize = 256;

/// A seat that nobody has asked for so long is given up when room is needed.
const IDLE: Duration = Duration::from_secs(60);

/// How long who ends waits for a seat to be handed over.
const HANDOVER_MAX: Duration = Duration::from_secs(1);

/// An answer of a seat, later.
pub type Answering = std::pin::Pin<Box<dyn Future<Output = Result<Bytes, Failure>> + Send>>;

/// A kind of seats, such as the sequencers of logs. Requests name it as the class that they call.
pub trait SeatKind: Send + Sync + 'static {
    /// The class that is called.
    fn name(&self) -> &str;

    /// The seat of this key. It is taken when it is first asked for something, and by then whoever
    /// sat before has left it, or is known to be gone. May wait for the store.
    ///
    /// # Errors
    /// `NotFound` when there is nothing of the kind at this key.
    fn seat(&self, classes: &Classes, keyspace: &Keyspace, key: &Key) -> Result<Arc<dyn Seat>>;
}

/// A seat of this program.
pub trait Seat: Send + Sync + 'static {
    /// Answers a request. It must not hold up the thread that calls it.
    fn ask(self: Arc<Self>, method: &str, input: &[u8]) -> Answering;

    /// Hands it over: what the next goes on with is left, and the lock is given back. Waits no
    /// longer than this; then it is as if this program had died.
    fn leave(&self, within: Duration);
}

type Place = (KeyspaceId, Key);

struct Sat {
    seat: Arc<dyn Seat>,
    asked: Instant,
}

/// The seats of a program, by their keys.
pub(crate) struct Seats {
    kinds: Vec<Arc<dyn SeatKind>>,
    sat: Mutex<HashMap<Place, Sat>>,
}

impl fmt::Debug for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        write!(f, "Seats({kinds:?}, {} of them)", self.sat.lock().len())
    }
}

impl Seats {
    pub fn of(kinds: Vec<Arc<dyn SeatKind>>) -> Self {
        Self { kinds, sat: Mutex::default() }
    }

    /// The kind that requests of this class are of.
    pub fn kind(&self, class: &str) -> Option<Arc<dyn SeatKind>> {
        self.kinds.iter().find(|kind| kind.name() == class).cloned()
    }

    /// The seat of a key, if it is one of this program.
    pub fn known(&self, place: &Place) -> Option<Arc<dyn Seat>> {
        let mut sat = self.sat.lock();
        let sat = sat.get_mut(place)?;
        sat.asked = Instant::now();
        Some(Arc::clone(&sat.seat))
    }

    /// The seat of a key, which is one of this program from now on.
    ///
    /// # Errors
    /// `Unavailable` when this program has as many as it may; those of the kind.
    pub fn sit(
        &self,
        kind: &dyn SeatKind,
        classes: &Classes,
        keyspace: &Keyspace,
        key: &Key,
    ) -> Result<Arc<dyn Seat>> {
        let place = (keyspace.id(), key.clone());
        let made = kind.seat(classes, keyspace, key)?;
        let now = Instant::now();
        let mut sat = self.sat.lock();
        // Of two who come at once one has the seat; the other's was never asked for anything.
        if let Some(known) = sat.get(&place) {
            return Ok(Arc::clone(&known.seat));
        }
        let mut left = None;
        if sat.len() >= SEATS_MAX {
            let oldest = sat.iter().min_by_key(|(_, it)| it.asked);
            let idle = oldest.filter(|(_, it)| now.duration_since(it.asked) >= IDLE);
            let Some(idle) = idle.map(|(place, _)| place.clone()) else {
                return Err(Error::unavailable(format!(
                    "this node has {SEATS_MAX} seats, all of them in use, and can have no more"
                )));
            };
            left = sat.remove(&idle);
        }
        sat.insert(place, Sat { seat: Arc::clone(&made), asked: now });
        drop(sat);
        if let Some(left) = left {
            left.seat.leave(HANDOVER_MAX);
        }
        Ok(made)
    }
}

/// Seats are handed over by who ends in peace.
impl Drop for Seats {
    fn drop(&mut self) {
        let until = Instant::now() + HANDOVER_MAX;
        for (_, Sat { seat, .. }) in self.sat.get_mut().drain() {
            seat.leave(until.saturating_duration_since(Instant::now()));
        }
    }
}
