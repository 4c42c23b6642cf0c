//! Handles: what Java holds in the place of an object is a number that is looked up here.
//!
//! A number is given once. So a handle that was closed is found out, whatever other threads do, and
//! nothing is ever read through it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use foldhash::fast::FixedState;
use parking_lot::RwLock;

use crate::failure::Failure;
use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use crate::store::{Cause, Store};
use crate::transaction::Transaction;

/// Something that has a handle.
#[derive(Clone, Debug)]
enum Object {
    Store(Arc<Store>),
    Keyspace(Arc<Keyspace>),
    Snapshot(Arc<Snapshot>),
    Transaction(Arc<Transaction>),
    Cause(Arc<Cause>),
}

/// A type of things that have handles.
pub trait Kind: Sized {
    /// What it is called.
    const NAME: &'static str;
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "only this file makes and takes objects")]
    fn into_object(this: Arc<Self>) -> Object;
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "only this file makes and takes objects")]
    fn of(object: &Object) -> Option<&Arc<Self>>;
}

macro_rules! kinds {
    ($($name:literal => $variant:ident),* $(,)?) => {
        $(
            #[allow(private_interfaces, reason = "only this file makes and takes objects")]
            impl Kind for $variant {
                const NAME: &'static str = $name;

                fn into_object(this: Arc<Self>) -> Object {
                    Object::$variant(this)
                }

                fn of(object: &Object) -> Option<&Arc<Self>> {
                    if let Object::$variant(found) = object { Some(found) } else { None }
                }
            }
        )*
    };
}

kinds! {
    "store" => Store,
    "keyspace" => Keyspace,
    "snapshot" => Snapshot,
    "transaction" => Transaction,
    "call" => Cause,
}

/// The handles of a process, or of a test.
#[derive(Debug)]
pub struct Table {
    objects: RwLock<HashMap<i64, Object, FixedState>>,
    next: AtomicI64,
}

/// All handles of this process.
pub static HANDLES: Table = Table::new();

impl Table {
    const fn new() -> Self {
        let objects = RwLock::new(HashMap::with_hasher(FixedState::with_seed(0)));
        // 0 is a handle that Java has closed.
        Self { objects, next: AtomicI64::new(1) }
    }

    /// Gives an object a handle.
    pub fn add<T: Kind>(&self, object: T) -> i64 {
        self.add_shared(Arc::new(object))
    }

    /// The same for one that others hold as well.
    pub fn add_shared<T: Kind>(&self, object: Arc<T>) -> i64 {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        self.objects.write().insert(handle, T::into_object(object));
        handle
    }

    /// The object of a handle.
    ///
    /// # Errors
    /// `State` when it is none any more.
    pub fn get<T: Kind>(&self, handle: i64) -> Result<Arc<T>, Failure> {
        let found = self.objects.read().get(&handle).and_then(T::of).cloned();
        found.ok_or_else(|| Failure::State(format!("this {} is closed", T::NAME)))
    }

    /// Takes a handle back, of whatever it is: it is none any more.
    pub fn free(&self, handle: i64) {
        let object = self.objects.write().remove(&handle);
        // Outside of the lock: a store that goes waits for its disk.
        drop(object);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.objects.read().len()
    }
}

#[cfg(test)]
mod tests {
    use tyr::Error;

    use super::*;

    #[test]
    fn a_handle_is_what_it_was_given_for_until_it_is_taken_back() {
        let table = Table::new();
        let one = table.add(Cause::new(Error::invalid("one"), Vec::new()));
        let two = table.add(Cause::new(Error::invalid("two"), Vec::new()));
        assert_ne!(one, two);
        assert!(table.get::<Cause>(one).is_ok());
        table.free(one);
        table.free(one);
        assert_eq!(table.count(), 1);
        for (handle, name) in [(one, "call"), (0, "call"), (-1, "call")] {
            let failure = table.get::<Cause>(handle).unwrap_err();
            assert_eq!(failure.text(), format!("this {name} is closed"));
        }
        assert!(table.get::<Store>(two).is_err(), "it is of another kind");
    }
}
