//! What all parts of an opened log share: where it is, calls of its classes, and the view that this
//! client goes by.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{Bytes, Error, ErrorKind, Key, Result};
use tyr_object::{Call, Failure, blocking::Classes};

use crate::class::{Fields, OBJECT_CLASS, Refusal, VIEW_CLASS};
use crate::layout;
use crate::name::Name;
use crate::view::{Stripe, View};

/// An opened log, for threads.
#[derive(Debug)]
pub struct Client {
    pub store: Tyr,
    pub keyspace: Keyspace,
    pub classes: Classes,
    pub name: Name,
    view_key: Key,
    /// The newest view that is known here.
    view: RwLock<Arc<View>>,
    /// Held by who makes a stripe, so that of many appends here one does.
    extending: Mutex<()>,
}

/// Where a position is, in a view.
#[derive(Debug)]
pub struct Place {
    pub view: Arc<View>,
    pub key: Key,
}

impl Client {
    /// Opens a log.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn open(store: Tyr, keyspace: Keyspace, classes: Classes, name: Name) -> Result<Self> {
        let view_key = layout::view_key(&name)?;
        let view = newest_view(0, |call| classes.call(&keyspace, &view_key, &call));
        let view = view.map_err(|failure| or_no_log(failure, &name, keyspace.name()))?;
        let view = view.ok_or_else(|| no_log(&name, keyspace.name()))?;
        let (view, extending) = (RwLock::new(Arc::new(view)), Mutex::new(()));
        Ok(Self { store, keyspace, classes, name, view_key, view, extending })
    }

    /// The newest view that is known here.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    /// Looks for newer views; answers the newest.
    ///
    /// # Errors
    /// `NotFound` when the log was deleted; whatever the store answers.
    pub fn refresh(&self) -> Result<Arc<View>> {
        let known = self.view().epoch;
        let call = |call| self.classes.call(&self.keyspace, &self.view_key, &call);
        match newest_view(known + 1, call) {
            Ok(Some(view)) => Ok(self.learn(view)),
            Ok(None) => Ok(self.view()),
            Err(failure) => Err(or_no_log(failure, &self.name, self.keyspace.name())),
        }
    }

    /// Goes by this view, unless a newer one is known.
    pub fn learn(&self, view: View) -> Arc<View> {
        let mut known = self.view.write();
        if known.epoch < view.epoch {
            *known = Arc::new(view);
        }
        Arc::clone(&known)
    }

    /// The object of a column of a stripe.
    pub fn object(&self, stripe: Stripe, column: u64) -> Result<Key> {
        layout::object_key(&self.name, stripe.number, column)
    }

    /// Where a position is, in the view that is known here; `None` where no object is there for it.
    pub fn place_of(&self, position: u64) -> Result<Option<Place>> {
        let view = self.view();
        let is_there = position < view.end() && view.stripe_of(position).is_some();
        is_there.then(|| self.place_in(&view, position)).transpose()
    }

    /// Where a position is in a view that has a stripe for it.
    pub fn place_in(&self, view: &Arc<View>, position: u64) -> Result<Place> {
        let stripe = view.stripe_of(position).ok_or_else(|| {
            Error::invalid(format!("position {position} of log {} was trimmed", self.name))
        })?;
        let key = self.object(stripe, stripe.column_of(position))?;
        Ok(Place { view: Arc::clone(view), key })
    }

    /// Runs a body in a transaction, again where it meets others. What it fails with is answered as
    /// it is.
    pub fn transact<T>(
        &self,
        mut body: impl FnMut(&mut Transaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut failed = None;
        let done = self.store.transact(|transaction| {
            body(transaction).map_err(|failure| {
                let error = Error::from(failure.duplicate());
                failed = Some(failure);
                error
            })
        });
        done.map_err(|error| match failed {
            Some(failure) if failure.kind() == error.kind() => failure,
            Some(_) | None => Failure::Context(error),
        })
    }

    /// Calls a method of a storage object in a transaction.
    pub fn call_object(
        &self,
        transaction: &mut Transaction,
        key: &Key,
        method: &str,
        input: Fields,
    ) -> Result<Bytes, Failure> {
        self.classes.call_in(transaction, &self.keyspace, key, &object_call(method, input))
    }

    /// The newest view, as a transaction sees it.
    pub fn view_in(&self, transaction: &mut Transaction) -> Result<View, Failure> {
        let call = |call| self.classes.call_in(transaction, &self.keyspace, &self.view_key, &call);
        let view = newest_view(self.view().epoch, call)?;
        view.ok_or_else(|| no_log(&self.name, self.keyspace.name()).into())
    }

    /// Proposes a view, in a transaction: it fails with [`Refusal::Exists`] when there is one of
    /// its epoch.
    pub fn propose_in(&self, transaction: &mut Transaction, view: &View) -> Result<(), Failure> {
        let call = create_view(view)?;
        self.classes.call_in(transaction, &self.keyspace, &self.view_key, &call).map(drop)
    }

    /// Proposes the view that `next` makes of the newest one, until one is taken; `None` when
    /// `next` wants none.
    ///
    /// # Errors
    /// Whatever the store answers.
    pub fn propose(&self, next: impl Fn(&View) -> Option<View>) -> Result<Arc<View>> {
        loop {
            let view = self.refresh()?;
            let Some(next) = next(&view) else { return Ok(view) };
            match self.transact(|transaction| self.propose_in(transaction, &next)) {
                Ok(()) => return Ok(self.learn(next)),
                Err(failure) if Refusal::of(&failure) == Some(Refusal::Exists) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Adds a stripe to a view, with its objects, unless somebody has done so.
    ///
    /// # Errors
    /// Whatever the store answers.
    pub fn extend(&self, view: &View) -> Result<()> {
        let _one = self.extending.lock();
        if self.view().epoch != view.epoch {
            return Ok(());
        }
        let (next, stripe) = view.extended();
        let made = self.transact(|transaction| {
            self.propose_in(transaction, &next)?;
            self.init_in(transaction, next.epoch, stripe)
        });
        match made {
            Ok(()) => drop(self.learn(next)),
            Err(failure) if Refusal::of(&failure) == Some(Refusal::Exists) => {
                self.refresh()?;
            }
            Err(failure) => return Err(failure.into()),
        }
        Ok(())
    }

    /// Makes the objects of a stripe.
    pub fn init_in(
        &self,
        transaction: &mut Transaction,
        epoch: u64,
        stripe: Stripe,
    ) -> Result<(), Failure> {
        for column in 0..stripe.width {
            let input = Fields::of([epoch, stripe.first + column, stripe.width, stripe.slots]);
            self.call_object(transaction, &self.object(stripe, column)?, "init", input)?;
        }
        Ok(())
    }
}

/// A call of a method of a storage object.
pub fn object_call(method: &str, input: Fields) -> Call {
    Call::new(OBJECT_CLASS, method, input)
}

/// The call that creates a view.
pub fn create_view(view: &View) -> Result<Call> {
    let input = Fields::of([view.epoch]).and(&view.encode()?);
    Ok(Call::new(VIEW_CLASS, "create_view", input))
}

/// The newest view of a head, if it has one of this epoch or a later one. A head that has none at
/// all is none: [`Refusal::NoObject`].
fn newest_view(
    from: u64,
    mut call: impl FnMut(Call) -> Result<Bytes, Failure>,
) -> Result<Option<View>, Failure> {
    let mut wanted = from;
    loop {
        let input = Fields::of([wanted, 1]);
        let answer = call(Call::new(VIEW_CLASS, "read_views", input))?;
        let (total, view) = parse_views(&answer)?;
        if total == 0 {
            return Err(Refusal::NoObject.failure("there is no such log"));
        }
        if total <= from {
            return Ok(None);
        }
        if wanted == total - 1 {
            return Ok(Some(View::decode(wanted, view)?));
        }
        wanted = total - 1;
    }
}

/// How many views there are, and the bytes of the one that was asked for.
fn parse_views(answer: &[u8]) -> Result<(u64, &[u8])> {
    let parse = || {
        let (total, rest) = answer.split_first_chunk()?;
        Some((u64::from_le_bytes(*total), rest.get(16..).unwrap_or_default()))
    };
    parse().ok_or_else(|| Error::corrupt("the class zlog_view answered no views"))
}

/// What a failure is to users: that there is no such log, if it says so.
fn or_no_log(failure: Failure, name: &Name, keyspace: &str) -> Error {
    match Refusal::of(&failure) {
        Some(Refusal::NoObject) => no_log(name, keyspace),
        _ => failure.into(),
    }
}

/// That there is no such log.
pub fn no_log(name: &Name, keyspace: &str) -> Error {
    let text = format!("there is no log {name} in keyspace {keyspace}: create it first");
    Error::new(ErrorKind::NotFound, text)
}
