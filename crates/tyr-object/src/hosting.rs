//! Calls that come from elsewhere: what a node of a cluster does with those of its objects.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use blocking::unblock;
use parking_lot::Mutex;
use tyr::blocking::{Keyspace, Metadata, Tyr};
use tyr::{
    Error, ErrorKind, KeyspaceId, MethodAnswer, MethodCall, MethodFailure, NodeId, Result,
    SeatAnswer,
};
use tyr_class::Failure;

use crate::blocking::Classes;
use crate::call::Call;
use crate::seat::name::SeatName;
use crate::seat::record::SeatMode;
use crate::seat::serving::{Seating, seated_now, serve};
use crate::seat::table::{Looked, Seated};
use crate::seat::{Place, SeatKind, Seats, Whose};

/// Keyspaces that are remembered; when there are more all are looked for anew.
const KEYSPACES_MAX: usize = 1_024;

/// So often a request is made of a seat that is left, or moved, meanwhile.
const TURNS_MAX: usize = 4;

/// An answer of a seat, or where it is, later.
pub type SeatAnswering = std::pin::Pin<Box<dyn Future<Output = SeatAnswer> + Send>>;

/// How the store is reached.
type Connect = Box<dyn Fn() -> Result<Tyr> + Send + Sync>;

/// Runs calls for others, on a store that it connects to with the first of them. Clones are the
/// same.
///
/// Whether a user may call is for whoever gives the call on to find out.
#[derive(Clone)]
pub struct Hosting {
    shared: Arc<Shared>,
}

struct Shared {
    connect: Connect,
    /// Held by whoever connects: nobody else does meanwhile.
    connecting: Mutex<()>,
    opened: OnceLock<Classes>,
    /// By number, which no other keyspace ever gets.
    keyspaces: Mutex<HashMap<KeyspaceId, Keyspace>>,
    seats: Seats,
    looked: Mutex<Looked>,
}

/// The store of a [`Hosting`], which this does not keep.
#[derive(Clone)]
pub struct HostedStore(Weak<Shared>);

impl HostedStore {
    /// The store; `None` when calls are hosted no more.
    pub fn get(&self) -> Option<Result<Tyr>> {
        let shared = self.0.upgrade()?;
        Some(shared.classes().map(|classes| classes.store().clone()))
    }
}

impl fmt::Debug for Hosting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hosting")
    }
}

impl Hosting {
    /// Runs calls on the store that this connects to. It is tried again with the next call where it
    /// fails.
    pub fn on(connect: impl Fn() -> Result<Tyr> + Send + Sync + 'static) -> Self {
        Self::made(Vec::new(), None, Box::new(connect))
    }

    /// The same for a program that also has the seats of these kinds: calls of the classes that
    /// they are called by are requests to seats.
    pub fn seating(
        kinds: Vec<Arc<dyn SeatKind>>,
        connect: impl Fn() -> Result<Tyr> + Send + Sync + 'static,
    ) -> Self {
        Self::made(kinds, None, Box::new(connect))
    }

    /// The same for a node of this number, that seats can be moved to and from: it says in the
    /// service metadata that it is there, and what it has, and goes by what that assigns.
    pub fn serving(
        node: NodeId,
        kinds: Vec<Arc<dyn SeatKind>>,
        connect: impl Fn() -> Result<Tyr> + Send + Sync + 'static,
    ) -> Self {
        let hosting = Self::made(kinds, Some(node), Box::new(connect));
        let shared = Arc::downgrade(&hosting.shared);
        let thread = std::thread::Builder::new().name("tyr-seats".to_owned());
        if let Err(error) = thread.spawn(move || serve(&shared, node)) {
            tracing::warn!(%error, "no thread for seats: none can be moved to this node");
        }
        hosting
    }

    fn made(kinds: Vec<Arc<dyn SeatKind>>, node: Option<NodeId>, connect: Connect) -> Self {
        let shared = Shared {
            connect,
            connecting: Mutex::default(),
            opened: OnceLock::new(),
            keyspaces: Mutex::default(),
            seats: Seats::of(kinds, node),
            looked: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What has the store that it runs calls on, connected to if it is not yet, for as long as it
    /// is there itself.
    pub fn store(&self) -> HostedStore {
        HostedStore(Arc::downgrade(&self.shared))
    }

    /// Runs a method in the name of a user; `keyspace` is the name of the blob's.
    ///
    /// # Errors
    /// As [`blocking::Classes::call`](crate::blocking::Classes::call).
    pub async fn call(&self, user: &str, keyspace: &str, call: MethodCall) -> MethodAnswer {
        let called = self.run(user, keyspace, call).await;
        called.map_err(MethodFailure::from)
    }

    async fn run(
        &self,
        user: &str,
        keyspace: &str,
        call: MethodCall,
    ) -> Result<tyr::Bytes, Failure> {
        if let Some(kind) = self.shared.seats.kind(&call.class) {
            // Whoever asks so does not know where seats are told to be: it is passed on.
            let way = Way { is_authority: true, must_pass: true };
            return match self.shared.ask(kind, keyspace, call, way).await? {
                SeatAnswer::Answered(answer) => answer.map_err(Failure::from),
                SeatAnswer::Moved(_) | SeatAnswer::Elsewhere => Err(unsettled().into()),
            };
        }
        let MethodCall { blob, class, method, input } = call;
        let (classes, keyspace) = self.shared.found(blob.keyspace, keyspace).await?;
        let call = Call::new(class, method, input);
        classes.begin(&keyspace, &blob.key, call, user)?.answer().await
    }

    /// Answers a request to a seat, or says where that is; `None` when this program has no seats of
    /// that kind. `is_authority` tells whether this node is the authority of the seat's key.
    pub fn ask_seat(
        &self,
        keyspace: &str,
        request: &MethodCall,
        is_authority: bool,
    ) -> Option<SeatAnswering> {
        let kind = self.shared.seats.kind(&request.class)?;
        let (shared, keyspace) = (Arc::clone(&self.shared), keyspace.to_owned());
        let (request, way) = (request.clone(), Way { is_authority, must_pass: false });
        Some(Box::pin(async move {
            let answer = shared.ask(kind, &keyspace, request, way).await;
            answer.unwrap_or_else(|failure| SeatAnswer::Answered(Err(failure.into())))
        }))
    }
}

/// How a request came.
#[derive(Clone, Copy)]
struct Way {
    /// To the authority of the seat's key.
    is_authority: bool,
    /// From who would not understand where the seat is.
    must_pass: bool,
}

fn unsettled() -> Error {
    Error::unavailable("the seat moves again and again: ask it again")
}

impl Seating for Shared {
    fn seats(&self) -> &Seats {
        &self.seats
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(self.classes()?.store().metadata())
    }
}

impl Shared {
    /// Asks a seat: here, or where it should be.
    async fn ask(
        self: &Arc<Self>,
        kind: Arc<dyn SeatKind>,
        keyspace: &str,
        request: MethodCall,
        way: Way,
    ) -> Result<SeatAnswer, Failure> {
        let place = (request.blob.keyspace, request.blob.key.clone());
        for turn in 0..TURNS_MAX {
            // What is known here was no good if this comes round.
            let known = self.seats.whose(&place, keyspace, way.is_authority);
            let whose = match known.ok().filter(|_| turn == 0) {
                Some(whose) => whose,
                None => self.look(&place, keyspace, way.is_authority).await?,
            };
            match whose {
                Whose::Elsewhere => return Ok(SeatAnswer::Elsewhere),
                Whose::Node(Seated { node, mode: SeatMode::Client }) if !way.must_pass => {
                    return Ok(SeatAnswer::Moved(node));
                }
                Whose::Node(Seated { node, .. }) if !way.is_authority => {
                    return Ok(SeatAnswer::Moved(node));
                }
                Whose::Node(Seated { node, .. }) => {
                    let (_, space) = self.found(place.0, keyspace).await?;
                    let MethodCall { class, method, input, .. } = request.clone();
                    let space = space.into_async();
                    let asked = space.ask_seat_at(node, &place.1, &class, &method, input).await;
                    match asked {
                        Ok(Some(SeatAnswer::Answered(answer))) => {
                            return Ok(SeatAnswer::Answered(answer));
                        }
                        Ok(Some(SeatAnswer::Moved(_) | SeatAnswer::Elsewhere) | None) => {}
                        Err(error) if error.kind() == ErrorKind::Unavailable => {
                            // It is gone, and nobody says so yet. Whoever asks waits as one does
                            // who asked there, and asks here again.
                            if turn > 0 && !way.must_pass {
                                return Ok(SeatAnswer::Elsewhere);
                            }
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                Whose::Here { is_assigned } => {
                    let answer = self.ask_here(&kind, keyspace, &place, &request, is_assigned);
                    if let Some(answer) = answer.await? {
                        return Ok(SeatAnswer::Answered(answer));
                    }
                }
            }
        }
        match way.must_pass {
            true => Err(unsettled().into()),
            false => Ok(SeatAnswer::Elsewhere),
        }
    }

    /// Asks a seat of this program; `None` when it was left meanwhile, and did nothing.
    async fn ask_here(
        self: &Arc<Self>,
        kind: &Arc<dyn SeatKind>,
        keyspace: &str,
        place: &Place,
        request: &MethodCall,
        is_assigned: bool,
    ) -> Result<Option<MethodAnswer>, Failure> {
        let found = match self.seats.known(place, is_assigned) {
            Some(found) => Some(found),
            None => {
                let (shared, keyspace) = (Arc::clone(self), keyspace.to_owned());
                let (kind, at) = (Arc::clone(kind), place.clone());
                let sit = move || {
                    let (classes, keyspace) = shared.find(at.0, &keyspace)?;
                    shared.seats.sit(&*kind, &classes, &keyspace, &at.1)
                };
                unblock(sit).await?;
                self.seats.known(place, is_assigned)
            }
        };
        let Some((seat, _asking)) = found else { return Ok(None) };
        let answer = Arc::clone(&seat).ask(&request.method, &request.input).await;
        let is_refused =
            answer.as_ref().is_err_and(|failure| failure.kind() == ErrorKind::Unavailable);
        if is_refused && !self.seats.has(place, &seat) {
            return Ok(None);
        }
        Ok(Some(answer.map_err(MethodFailure::from)))
    }

    /// Where a seat is to be asked, as the metadata has it now.
    async fn look(
        self: &Arc<Self>,
        place: &Place,
        keyspace: &str,
        is_authority: bool,
    ) -> Result<Whose> {
        let name = SeatName::new(keyspace, &place.1);
        let known = self.looked.lock().find(&name, Instant::now());
        let seated = match known {
            Some(seated) => seated,
            None => {
                let (shared, asked) = (Arc::clone(self), name.clone());
                let seated = unblock(move || seated_now(&shared.metadata()?, &asked)).await?;
                self.looked.lock().note(name, seated, Instant::now());
                seated
            }
        };
        Ok(self.seats.settled(seated, is_authority))
    }

    /// The keyspace of a number and a name, and the classes of its store.
    async fn found(self: &Arc<Self>, id: KeyspaceId, name: &str) -> Result<(Classes, Keyspace)> {
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        let (shared, name) = (Arc::clone(self), name.to_owned());
        unblock(move || shared.find(id, &name)).await
    }

    /// What was found before.
    fn known(&self, keyspace: KeyspaceId) -> Option<(Classes, Keyspace)> {
        Some((self.opened.get()?.clone(), self.keyspaces.lock().get(&keyspace)?.clone()))
    }

    /// The classes of the store, connected to if it is not yet.
    fn classes(&self) -> Result<Classes> {
        let _connecting = self.connecting.lock();
        if let Some(classes) = self.opened.get() {
            return Ok(classes.clone());
        }
        let classes = Classes::of(&(self.connect)()?);
        Ok(self.opened.get_or_init(|| classes).clone())
    }

    fn find(&self, id: KeyspaceId, name: &str) -> Result<(Classes, Keyspace)> {
        let classes = self.classes()?;
        let keyspace = classes.store().keyspace(name)?;
        if keyspace.id() != id {
            let text = format!("the keyspace of number {} was dropped; find it anew", id.0);
            return Err(Error::not_found(text));
        }
        let mut keyspaces = self.keyspaces.lock();
        if keyspaces.len() >= KEYSPACES_MAX {
            keyspaces.clear();
        }
        keyspaces.insert(id, keyspace.clone());
        Ok((classes, keyspace))
    }
}
