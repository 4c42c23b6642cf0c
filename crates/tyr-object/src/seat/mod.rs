//! Seats: services with a state in memory, each at one place at a time.
//!
//! ```text
//!   request ──► the node that should have the seat ──► sat here? ── yes ──► answered from memory
//!                                                        └─ no ──► take: a lock of its key, with
//!                                                                  its token: the seat's epoch
//!   another should have it (the map, or an assignment, changed) ──► that one is asked, and waits
//!        for the lock: handed over, or its lease over ──► what the last one left, or recovery
//! ```
//!
//! Who *sits* holds a lock (K4), so nobody else does meanwhile (S2), and the token grows by one
//! with each who takes the seat (S3). State is soft: it is lost with whoever sits, and what a seat
//! makes durable it makes so under the fence of its token (S1). What kinds of seats there are, and
//! what they leave to the next, is not known here.
//!
//! Who *should have* a seat is the node that is assigned it in the service metadata, while that is
//! there, else the authority of its key (S4). That is a matter of where requests go: if two nodes
//! disagree for a moment about who should have a seat, the lock still decides who has it.
//!
//! [`name`] and [`record`] are what the metadata has, [`table`] what a node knows of it,
//! [`serving`] what keeps that up, [`directory`] is for who looks at seats and moves them.

pub(crate) mod directory;
pub(crate) mod name;
pub(crate) mod record;
pub(crate) mod serving;
pub(crate) mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tyr::blocking::Keyspace;
use tyr::{Bytes, Error, Key, KeyspaceId, NodeId, Result};
use tyr_class::Failure;

use self::name::SeatName;
use self::table::{Seated, Table, Unknown};
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
    /// Answers a request. It must not hold up the thread that calls it. A request that has to be
    /// made of the next one, since this one was left, fails as `Unavailable`, and has done nothing.
    fn ask(self: Arc<Self>, method: &str, input: &[u8]) -> Answering;

    /// Hands it over: what the next goes on with is left, and the lock is given back. Waits no
    /// longer than this; then it is as if this program had died.
    fn leave(&self, within: Duration);
}

/// The seat of a key in a keyspace.
pub(crate) type Place = (KeyspaceId, Key);

/// Where a seat is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Here; by an assignment, or as the authority of its key.
    Here { is_assigned: bool },
    /// At this node.
    Node(Seated),
    /// Wherever the authority of its key says.
    Elsewhere,
}

/// What requests are counted by.
#[derive(Debug, Default)]
pub(crate) struct Count {
    taken: AtomicU64,
    waiting: AtomicUsize,
}

/// A request under way, until it is dropped.
pub(crate) struct Asking(Arc<Count>);

impl Asking {
    fn of(count: &Arc<Count>) -> Self {
        count.taken.fetch_add(1, Ordering::Relaxed);
        count.waiting.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Sat {
    seat: Arc<dyn Seat>,
    name: SeatName,
    kind: String,
    is_assigned: bool,
    asked: Instant,
    since: Instant,
    count: Arc<Count>,
}

/// The seats of a program, by their keys.
pub(crate) struct Seats {
    kinds: Vec<Arc<dyn SeatKind>>,
    /// The node that they are at, if that is known: without it there are no assignments.
    node: Option<NodeId>,
    sat: Mutex<HashMap<Place, Sat>>,
    table: RwLock<Table>,
}

impl fmt::Debug for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        write!(f, "Seats({kinds:?}, {} of them)", self.sat.lock().len())
    }
}

impl Seats {
    pub fn of(kinds: Vec<Arc<dyn SeatKind>>, node: Option<NodeId>) -> Self {
        Self { kinds, node, sat: Mutex::default(), table: RwLock::default() }
    }

    /// The kind that requests of this class are of.
    pub fn kind(&self, class: &str) -> Option<Arc<dyn SeatKind>> {
        self.kinds.iter().find(|kind| kind.name() == class).cloned()
    }

    /// Where a seat is to be asked, by what is known here.
    ///
    /// # Errors
    /// [`Unknown`] when the metadata has to be asked.
    pub fn whose(
        &self,
        place: &Place,
        keyspace: &str,
        is_authority: bool,
    ) -> Result<Whose, Unknown> {
        let Some(node) = self.node else { return Ok(self.settled(None, is_authority)) };
        let seated = self.table.read().seated(|| SeatName::new(keyspace, &place.1))?;
        match seated {
            // Whoever sent this here knew it from somebody, perhaps of what is not known here yet.
            seated if !is_authority && seated.is_none_or(|it| it.node != node) => Err(Unknown),
            seated => Ok(self.settled(seated, is_authority)),
        }
    }

    /// The same where this is who should have it.
    pub fn settled(&self, seated: Option<Seated>, is_authority: bool) -> Whose {
        match seated {
            Some(seated) if Some(seated.node) == self.node => Whose::Here { is_assigned: true },
            Some(seated) => Whose::Node(seated),
            None if is_authority => Whose::Here { is_assigned: false },
            None => Whose::Elsewhere,
        }
    }

    /// The seat of a key, if it is one of this program, for a request.
    pub fn known(&self, place: &Place, is_assigned: bool) -> Option<(Arc<dyn Seat>, Asking)> {
        let mut sat = self.sat.lock();
        let sat = sat.get_mut(place)?;
        sat.asked = Instant::now();
        sat.is_assigned = is_assigned;
        Some((Arc::clone(&sat.seat), Asking::of(&sat.count)))
    }

    /// Whether this program still has this very seat.
    pub fn has(&self, place: &Place, seat: &Arc<dyn Seat>) -> bool {
        self.sat.lock().get(place).is_some_and(|it| Arc::ptr_eq(&it.seat, seat))
    }

    /// The seat of a key becomes one of this program.
    ///
    /// # Errors
    /// `Unavailable` when this program has as many as it may; those of the kind.
    pub fn sit(
        &self,
        kind: &dyn SeatKind,
        classes: &Classes,
        keyspace: &Keyspace,
        key: &Key,
    ) -> Result<()> {
        let place = (keyspace.id(), key.clone());
        let made = kind.seat(classes, keyspace, key)?;
        let now = Instant::now();
        let mut sat = self.sat.lock();
        // Of two who come at once one has the seat; the other's was never asked for anything.
        if sat.contains_key(&place) {
            return Ok(());
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
        let name = SeatName::new(keyspace.name(), key);
        let (kind, count) = (kind.name().to_owned(), Arc::default());
        let is_assigned = false;
        let (asked, since) = (now, now);
        sat.insert(place, Sat { seat: made, name, kind, is_assigned, asked, since, count });
        drop(sat);
        if let Some(left) = left {
            left.seat.leave(HANDOVER_MAX);
        }
        Ok(())
    }

    /// Takes out what another node should have now, so that it is not asked here any more, to be
    /// left.
    fn take_elsewhere(&self) -> Vec<Arc<dyn Seat>> {
        let mut sat = self.sat.lock();
        let table = self.table.read();
        let is_elsewhere = |_: &Place, it: &mut Sat| match table.seated(|| it.name.clone()) {
            Err(Unknown) => false,
            Ok(Some(seated)) => Some(seated.node) != self.node,
            Ok(None) => it.is_assigned,
        };
        sat.extract_if(is_elsewhere).map(|(_, it)| it.seat).collect()
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
