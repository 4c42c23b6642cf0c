//! Seats of nodes, and their moves from one to another: rules S1 to S4.
//!
//! The seat of these tests counts: it answers the number of its node, its token, and a number that
//! it answers once. What it does wrong is said by the key that it is made for.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blocking::unblock;
use parking_lot::Mutex;
use tyr::blocking::{Keyspace, Lock, Tyr};
use tyr::{
    BlobName, Bytes, Error, ErrorKind, Key, LeaseOptions, MethodCall, NodeId, Result, SeatAnswer,
};
use tyr_object::blocking::Classes;
use tyr_object::{
    Answering, Assignment, Failure, Hosting, Proviso, Seat, SeatDirectory, SeatKind, SeatMode,
    SeatName,
};

use crate::place::{Place, on_cluster};

const CLASS: &str = "counter";

/// What a counter does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It answers before it has the lock (S2).
    Early,
    /// It says the same token, whoever has it (S3).
    SameToken,
}

impl Fault {
    fn of(key: &Key) -> Self {
        match key.as_bytes() {
            b"early" => Self::Early,
            b"same-token" => Self::SameToken,
            _ => Self::None,
        }
    }
}

/// What happened to a seat, at all nodes of this process.
#[derive(Debug, Default)]
struct Ledger {
    /// Who answers now, and how many did at most.
    sitting: usize,
    sitting_max: usize,
    /// Tokens, in the order in which the seat was taken.
    tokens: Vec<u64>,
}

static LEDGERS: Mutex<Option<HashMap<SeatName, Ledger>>> = Mutex::new(None);

fn ledger<T>(name: &SeatName, act: impl FnOnce(&mut Ledger) -> T) -> T {
    let mut ledgers = LEDGERS.lock();
    act(ledgers.get_or_insert_default().entry(name.clone()).or_default())
}

/// The kind of the seats of a node.
pub struct CounterKind(pub NodeId);

impl SeatKind for CounterKind {
    fn name(&self) -> &str {
        CLASS
    }

    fn seat(&self, classes: &Classes, keyspace: &Keyspace, key: &Key) -> Result<Arc<dyn Seat>> {
        Ok(Arc::new(Counter {
            node: self.0,
            name: SeatName::new(keyspace.name(), key),
            store: classes.store().clone(),
            keyspace: keyspace.clone(),
            key: key.clone(),
            fault: Fault::of(key),
            held: Mutex::default(),
            is_left: AtomicBool::new(false),
        }))
    }
}

struct Counter {
    node: NodeId,
    name: SeatName,
    store: Tyr,
    keyspace: Keyspace,
    key: Key,
    fault: Fault,
    held: Mutex<Option<Held>>,
    is_left: AtomicBool,
}

struct Held {
    lock: Lock,
    next: u64,
}

impl Counter {
    fn state_key(&self) -> Key {
        Key::new([self.key.as_bytes(), b"\0state"].concat()).unwrap()
    }

    /// Takes the seat, with what was left.
    fn take(&self) -> Result<Held> {
        if self.fault == Fault::Early {
            ledger(&self.name, Ledger::sit);
        }
        let options = LeaseOptions::exclusive()
            .duration(Duration::from_secs(5))
            .wait(Duration::from_secs(20));
        let lock = self.keyspace.lock(&self.key, &options)?;
        let left = match self.keyspace.get(self.state_key()) {
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            left => u64::from_le_bytes(left?.as_ref().try_into().unwrap()),
        };
        ledger(&self.name, |ledger| {
            ledger.tokens.push(self.token(&lock));
            if self.fault != Fault::Early {
                ledger.sit();
            }
        });
        Ok(Held { lock, next: left })
    }

    fn token(&self, lock: &Lock) -> u64 {
        if self.fault == Fault::SameToken { 1 } else { lock.token() }
    }

    fn next(&self) -> Result<Bytes> {
        let mut held = self.held.lock();
        if self.is_left.load(Ordering::SeqCst) {
            return Err(Error::unavailable("the seat was left: ask the next"));
        }
        if held.is_none() {
            *held = Some(self.take()?);
        }
        let Held { lock, next } = held.as_mut().expect("it was taken");
        let answer = [self.node.0.into(), self.token(lock), *next];
        *next += 1;
        Ok(answer.map(u64::to_le_bytes).concat().into())
    }
}

impl Ledger {
    fn sit(&mut self) {
        self.sitting += 1;
        self.sitting_max = self.sitting_max.max(self.sitting);
    }
}

impl Seat for Counter {
    fn ask(self: Arc<Self>, _: &str, _: &[u8]) -> Answering {
        Box::pin(async move { unblock(move || self.next()).await.map_err(Failure::from) })
    }

    fn leave(&self, _: Duration) {
        let mut held = self.held.lock();
        self.is_left.store(true, Ordering::SeqCst);
        let Some(Held { lock, next }) = held.take() else { return };
        let mut transaction = self.store.begin();
        transaction.fence(&lock).unwrap();
        transaction.put(&self.keyspace, self.state_key(), next.to_le_bytes().to_vec()).unwrap();
        transaction.commit().expect("nobody else has the lock");
        ledger(&self.name, |ledger| ledger.sitting -= 1);
        lock.unlock().unwrap();
    }
}

/// An answer of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Counted {
    number: u64,
    token: u64,
    node: u16,
}

fn read(answer: &[u8]) -> Counted {
    let numbers: Vec<u64> = answer.as_chunks().0.iter().map(|it| u64::from_le_bytes(*it)).collect();
    let [node, token, number] = numbers[..] else { panic!("{numbers:?}") };
    Counted { number, token, node: node as u16 }
}

pub fn wait_for<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
}

/// A seat of a test.
struct Seated {
    place: Place,
    key: Key,
    name: SeatName,
    directory: SeatDirectory,
}

impl Seated {
    fn new(place: Place, key: &'static str) -> Self {
        let key = Key::new(key).unwrap();
        let name = SeatName::new(place.keyspace.name(), &key);
        let directory = SeatDirectory::of(&place.store);
        let are_there = || {
            let nodes = directory.list().unwrap().nodes;
            (0..3).all(|node| nodes.iter().any(|it| it.node == node))
        };
        assert!(std::iter::repeat_with(are_there).take(100_000).any(|it| it), "nodes serve seats");
        Self { place, key, name, directory }
    }

    /// Asks as clients do.
    fn ask(&self) -> Counted {
        let asked = self.place.keyspace.ask_seat(&self.key, CLASS, "next", Bytes::new());
        read(&asked.unwrap().expect("nodes have seats").unwrap())
    }

    /// Asks one node.
    fn ask_at(&self, node: u16) -> SeatAnswer {
        let keyspace = self.place.keyspace.clone().into_async();
        let asked = keyspace.ask_seat_at(NodeId(node), &self.key, CLASS, "next", Bytes::new());
        wait_for(asked).unwrap().expect("nodes have seats")
    }

    /// Asks a node until it answers so: it is told of what is assigned, a moment later.
    fn ask_at_until(&self, node: u16, is_wanted: impl Fn(&SeatAnswer) -> bool) {
        let answers = std::iter::repeat_with(|| self.ask_at(node));
        assert!(answers.take(100_000).any(|it| is_wanted(&it)), "node {node} never says so");
    }

    /// The node that is asked where nobody is assigned.
    fn authority(&self) -> u16 {
        let asked = |node: &u16| self.ask_at(*node) != SeatAnswer::Elsewhere;
        let answering: Vec<u16> = (0..3).filter(asked).collect();
        assert_eq!(answering.len(), 1, "one node has it: {answering:?}");
        answering[0]
    }

    /// Asks until this node answers.
    fn ask_until(&self, node: u16) -> Counted {
        let answers = std::iter::repeat_with(|| self.ask());
        answers.take(100_000).find(|it| it.node == node).expect("it is moved there")
    }

    fn move_to(&self, node: u16, mode: SeatMode) {
        self.directory.move_to(&self.name, node, mode, "a test").unwrap();
    }
}

/// Moves a seat round the nodes while two programs ask it; what they were answered.
fn asked_while_moved(seated: &Seated) -> Vec<Counted> {
    const ROUNDS: u16 = 2;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut answers = Vec::new();
                    while !is_over.load(Ordering::SeqCst) {
                        answers.push(seated.ask());
                    }
                    answers
                })
            })
            .collect();
        let moved = catch_unwind(AssertUnwindSafe(|| {
            let moved = (0..ROUNDS).flat_map(|_| 0..3).map(|node| {
                seated.move_to(node, SeatMode::Client);
                seated.ask_until(node)
            });
            moved.collect::<Vec<_>>()
        }));
        // Also where that failed: the others ask on.
        is_over.store(true, Ordering::SeqCst);
        let mut answers = moved.unwrap();
        answers.extend(asking.into_iter().flat_map(|it| it.join().unwrap()));
        answers
    })
}

/// What is wrong with what happened to a seat, if anything is.
fn faults(seated: &Seated) -> Vec<&'static str> {
    ledger(&seated.name, |ledger| {
        let mut faults = Vec::new();
        if ledger.sitting_max > 1 {
            faults.push("two had it at once (S2)");
        }
        if !ledger.tokens.is_sorted_by(|a, b| a < b) {
            faults.push("its token did not grow (S3)");
        }
        faults
    })
}

#[test]
fn a_seat_is_handed_over_with_its_state_and_nobody_is_refused_s2_s3() {
    on_cluster(|place| {
        let seated = Seated::new(place, "counter");
        let mut answers = asked_while_moved(&seated);
        answers.sort_unstable();
        // `ask_until` keeps the last of its answers only, so some numbers are not seen here.
        let numbers = answers.windows(2);
        assert!(numbers.clone().all(|pair| pair[0].number < pair[1].number), "given twice");
        let mut pairs = numbers.filter(|pair| pair[0].token > pair[1].token);
        assert_eq!(pairs.next(), None, "what is given later has no lower token (S3)");
        assert_eq!(faults(&seated), Vec::<&str>::new());
        let taken = ledger(&seated.name, |ledger| ledger.tokens.len());
        assert!(taken >= 6, "each node took it when it was its turn, not {taken} of them");
    });
}

#[test]
fn without_s2_two_have_a_seat_at_once_and_without_s3_its_token_says_nothing() {
    on_cluster(|place| {
        let seated = Seated::new(place, "early");
        asked_while_moved(&seated);
        assert!(faults(&seated).contains(&"two had it at once (S2)"));
    });
    on_cluster(|place| {
        let seated = Seated::new(place, "same-token");
        asked_while_moved(&seated);
        assert_eq!(faults(&seated), ["its token did not grow (S3)"]);
    });
}

/// What is left of a blob that a seat writes, after another has the seat and has written it.
fn written_by_who_lost_it(place: &Place, is_fenced: bool) -> Bytes {
    let Place { store, keyspace, .. } = place;
    let options = LeaseOptions::exclusive();
    let lock = keyspace.lock("seat", &options).unwrap();
    let mut late = store.begin();
    if is_fenced {
        late.fence(&lock).unwrap();
    }
    late.put(keyspace, "state", "of the one before").unwrap();
    lock.unlock().unwrap();
    let lock = keyspace.lock("seat", &options).unwrap();
    let mut next = store.begin();
    next.fence(&lock).unwrap();
    next.put(keyspace, "state", "of the next").unwrap();
    next.commit().unwrap();
    match late.commit() {
        Ok(_) => assert!(!is_fenced),
        Err(error) => assert!(is_fenced && error.kind() == ErrorKind::Conflict, "{error}"),
    }
    keyspace.get("state").unwrap()
}

#[test]
fn what_a_seat_writes_that_another_has_by_now_is_refused_s1() {
    on_cluster(|place| assert_eq!(written_by_who_lost_it(&place, true), "of the next"));
}

#[test]
fn without_s1_who_lost_a_seat_undoes_what_the_next_has_written() {
    on_cluster(|place| assert_eq!(written_by_who_lost_it(&place, false), "of the one before"));
}

#[test]
fn who_does_not_have_a_seat_says_who_has_or_passes_on_s4() {
    on_cluster(|place| {
        let seated = Seated::new(place, "asked");
        let authority = seated.authority();
        let [one, other] = [(authority + 1) % 3, (authority + 2) % 3];
        seated.move_to(one, SeatMode::Client);
        seated.ask_until(one);
        let moved_to = |node| move |answer: &SeatAnswer| *answer == SeatAnswer::Moved(NodeId(node));
        seated.ask_at_until(authority, moved_to(one));
        // What a node found of assignments it keeps for a moment.
        seated.ask_at_until(other, moved_to(one));
        // Who knows only how objects are called is passed on.
        let called = seated.place.keyspace.call_method(&seated.key, CLASS, "next", Bytes::new());
        assert_eq!(read(&called.unwrap().unwrap().unwrap()).node, one);
        seated.move_to(other, SeatMode::Proxy);
        seated.ask_until(other);
        let is_of_other = |answer: &SeatAnswer| match answer {
            SeatAnswer::Answered(answer) => read(answer.as_ref().unwrap()).node == other,
            SeatAnswer::Moved(_) | SeatAnswer::Elsewhere => false,
        };
        seated.ask_at_until(authority, is_of_other);
        seated.ask_at_until(one, moved_to(other));
        // Without an assignment it is where its key is.
        seated.directory.assign(&seated.name, None, None).unwrap();
        seated.ask_until(authority);
        let refused = seated.directory.move_to(&seated.name, 77, SeatMode::Client, "a test");
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    });
}

/// A request to a seat, as it comes to a program.
fn ask_program(hosting: &Hosting, seated: &Seated) -> SeatAnswer {
    let keyspace = &seated.place.keyspace;
    let blob = BlobName { keyspace: keyspace.id(), key: seated.key.clone() };
    let (class, method) = (CLASS.to_owned(), "next".to_owned());
    let request = MethodCall { blob, class, method, input: Bytes::new() };
    wait_for(hosting.ask_seat(keyspace.name(), &request, true).expect("of its kind"))
}

#[test]
fn without_s4_a_seat_is_taken_back_by_who_should_not_have_it() {
    on_cluster(|place| {
        let seated = Seated::new(place, "taken back");
        let authority = seated.authority();
        let one = (authority + 1) % 3;
        seated.move_to(one, SeatMode::Client);
        let before = seated.ask_until(one);
        // A program that knows nothing of assignments, as the authority might.
        let store = seated.place.store.clone();
        let kinds: Vec<Arc<dyn SeatKind>> = vec![Arc::new(CounterKind(NodeId(55)))];
        let knows = Hosting::serving(NodeId(55), kinds, move || Ok(store.clone()));
        assert_eq!(ask_program(&knows, &seated), SeatAnswer::Moved(NodeId(one)));
        assert!(seated.ask().number > before.number);
        let store = seated.place.store.clone();
        let kinds: Vec<Arc<dyn SeatKind>> = vec![Arc::new(CounterKind(NodeId(56)))];
        let ignores = Hosting::seating(kinds, move || Ok(store.clone()));
        seated.directory.assign(&seated.name, None, None).unwrap();
        seated.ask_until(authority);
        seated.move_to(authority, SeatMode::Client);
        let asking = std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask_program(&ignores, &seated));
            // It waits for the lock, and has it as soon as the node is made to leave it.
            seated.move_to(one, SeatMode::Client);
            asked.join().unwrap()
        });
        let SeatAnswer::Answered(answer) = asking else { panic!("it does not say who has it") };
        assert_eq!(read(&answer.unwrap()).node, 56, "though another should have it");
    });
}

#[test]
fn a_seat_of_a_node_that_is_gone_is_where_its_key_is() {
    on_cluster(|place| {
        let seated = Seated::new(place, "gone");
        let authority = seated.authority();
        let store = seated.place.store.clone();
        let node = Hosting::serving(NodeId(99), Vec::new(), move || Ok(store.clone()));
        let is_there = || {
            let listing = seated.directory.list().unwrap();
            listing.nodes.iter().any(|it| it.node == 99)
        };
        assert!(std::iter::repeat_with(is_there).take(100_000).any(|it| it));
        seated.move_to(99, SeatMode::Client);
        seated.ask_at_until(authority, |it| *it == SeatAnswer::Moved(NodeId(99)));
        drop(node);
        assert_eq!(seated.ask_until(authority).node, authority);
    });
}

#[test]
fn nodes_say_which_seats_they_have_and_how_often_those_are_asked() {
    on_cluster(|place| {
        let seated = Seated::new(place, "listed");
        let node = seated.ask().node;
        let found = std::iter::repeat_with(|| {
            seated.ask();
            let listing = seated.directory.list().unwrap();
            let found = listing.find(&seated.name).map(|(node, seat)| (node, seat.clone()));
            found.filter(|(_, seat)| seat.rate > 0.0)
        });
        let (at, seat) = found.take(100_000).flatten().next().expect("it is told");
        assert_eq!((at, seat.kind.as_str()), (node, CLASS));
    });
}

/// What comes of an assignment by who leads no more.
fn assigned_by_who_led(place: Place, is_fenced: bool) -> (Result<()>, usize) {
    let seated = Seated::new(place, "led");
    let metadata = seated.place.store.metadata();
    let path = format!("leader-of-{}", seated.place.keyspace.name());
    let revision = metadata.put(&path, "one").unwrap();
    metadata.put(&path, "another").unwrap();
    let assignment = Assignment { node: 0, mode: SeatMode::Client, by: "one".to_owned() };
    let proviso = is_fenced.then_some(Proviso { path, revision });
    let assigned = seated.directory.assign(&seated.name, Some(&assignment), proviso.as_ref());
    let listing = seated.directory.list().unwrap();
    (assigned, listing.assigned.iter().filter(|(name, _)| *name == seated.name).count())
}

#[test]
fn who_does_not_lead_any_more_assigns_nothing_b1() {
    on_cluster(|place| {
        let (assigned, there) = assigned_by_who_led(place, true);
        assert_eq!((assigned.unwrap_err().kind(), there), (ErrorKind::Conflict, 0));
    });
}

#[test]
fn without_b1_two_balancers_assign() {
    on_cluster(|place| assert_eq!(assigned_by_who_led(place, false).1, 1));
}
