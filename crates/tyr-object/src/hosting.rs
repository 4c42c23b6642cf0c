//! Calls that come from elsewhere: what a node of a cluster does with those of its objects.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use blocking::unblock;
use parking_lot::Mutex;
use tyr::blocking::{Keyspace, Tyr};
use tyr::{Error, KeyspaceId, MethodAnswer, MethodCall, MethodFailure, Result};
use tyr_class::Failure;

use crate::blocking::Classes;
use crate::call::Call;
use crate::seat::{SeatKind, Seats};

/// Keyspaces that are remembered; when there are more all are looked for anew.
const KEYSPACES_MAX: usize = 1_024;

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
        Self::seating(Vec::new(), connect)
    }

    /// The same for a program that also has the seats of these kinds: calls of the classes that
    /// they are called by are requests to seats.
    pub fn seating(
        kinds: Vec<Arc<dyn SeatKind>>,
        connect: impl Fn() -> Result<Tyr> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            connect: Box::new(connect),
            connecting: Mutex::default(),
            opened: OnceLock::new(),
            keyspaces: Mutex::default(),
            seats: Seats::of(kinds),
        };
        Self { shared: Arc::new(shared) }
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
        let MethodCall { blob, class, method, input } = call;
        if let Some(kind) = self.shared.seats.kind(&class) {
            let place = (blob.keyspace, blob.key);
            let seat = match self.shared.seats.known(&place) {
                Some(seat) => seat,
                None => {
                    let (shared, keyspace) = (Arc::clone(&self.shared), keyspace.to_owned());
                    let sit = move || {
                        let (classes, keyspace) = shared.find(place.0, &keyspace)?;
                        shared.seats.sit(&*kind, &classes, &keyspace, &place.1)
                    };
                    unblock(sit).await?
                }
            };
            return seat.ask(&method, &input).await;
        }
        let known = self.shared.known(blob.keyspace);
        let (classes, keyspace) = match known {
            Some(known) => known,
            None => {
                let (shared, keyspace) = (Arc::clone(&self.shared), keyspace.to_owned());
                unblock(move || shared.find(blob.keyspace, &keyspace)).await?
            }
        };
        let call = Call::new(class, method, input);
        classes.begin(&keyspace, &blob.key, call, user)?.answer().await
    }
}

impl Shared {
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
