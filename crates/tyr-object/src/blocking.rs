//! Objects and their classes, for threads.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom, SystemRandom};
use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{Bytes, Error, ErrorKind, Result, ToKey};
use tyr_class::testing::run_tests;
use tyr_class::{Class, Failure, TransactionId, call};

use crate::access::{Access, Object, Occasion};
use crate::call::Call;
use crate::catalog::{Catalog, Installed};
use crate::loaded::Loaded;
use crate::record::ClassRecord;

/// Who calls, where nobody said a name.
const NOBODY: &str = "anybody";

/// The classes of a store, and calls of their methods. Clone it freely: clones share what they have
/// compiled.
#[derive(Clone)]
pub struct Classes {
    store: Tyr,
    catalog: Catalog,
    loaded: Arc<Loaded>,
    caller: Arc<str>,
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Classes(of {:?})", self.store)
    }
}

impl Classes {
    /// The classes of a store.
    pub fn of(store: &Tyr) -> Self {
        let (catalog, loaded) = (Catalog::of(store), Arc::default());
        Self { store: store.clone(), catalog, loaded, caller: NOBODY.into() }
    }

    /// The same for calls of this user, as methods see it (`cx.caller`).
    #[must_use]
    pub fn called_by(self, user: &str) -> Self {
        Self { caller: user.into(), ..self }
    }

    /// A class that is part of this program. It needs no installation, and is called in any
    /// keyspace; installed classes of its name are not looked at.
    ///
    /// # Errors
    /// `AlreadyExists` when one of this name was registered before.
    pub fn register(&self, class: Arc<dyn Class>) -> Result<()> {
        self.loaded.register(class)
    }

    /// Runs the tests that a script brings, and makes it the version of its class that is called
    /// from now on. `name` is that of the class where the script does not say it.
    ///
    /// # Errors
    /// `InvalidArgument` when it is no class, with the line, or when a test of it fails;
    /// `PermissionDenied`; `Unavailable` when the service metadata cannot be written.
    pub fn install(&self, name: Option<&str>, script: &[u8]) -> Result<Installed> {
        let class = self.loaded.compile(name, script)?;
        let failed = run_tests(&class).into_iter().find_map(|test| {
            test.failure.map(|failure| format!("test {} failed: {failure}", test.name))
        });
        match failed {
            None => self.catalog.install(class.info().name(), script),
            Some(text) => Err(Error::invalid(format!(
                "{text}; nothing was installed: mend the script or its test"
            ))),
        }
    }

    /// Everything that is installed, by name.
    ///
    /// # Errors
    /// `Unavailable` when the service metadata cannot be read.
    pub fn list(&self) -> Result<Vec<(String, ClassRecord)>> {
        self.catalog.list()
    }

    /// What is known of a class.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` when the service metadata cannot be read.
    pub fn get(&self, class: &str) -> Result<ClassRecord> {
        Ok(self.catalog.find(class)?.record)
    }

    /// The script of a version of a class, or of the one that is called.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` when the service metadata cannot be read.
    pub fn script(&self, class: &str, number: Option<u32>) -> Result<Vec<u8>> {
        let record = self.get(class)?;
        let version = match number {
            None => record.current(class)?,
            Some(number) => record.version(number).ok_or_else(|| {
                Error::not_found(format!("class {class} has no version {number}"))
            })?,
        };
        self.catalog.script(class, version)
    }

    /// Lets a class be called in a keyspace; answers whether it was not before.
    ///
    /// # Errors
    /// `NotFound` when there is no such class or keyspace; `PermissionDenied`; `Unavailable`.
    pub fn enable(&self, class: &str, keyspace: &str) -> Result<bool> {
        self.store.keyspace(keyspace)?;
        self.catalog.set_enabled(class, keyspace, true)
    }

    /// Lets it be called there no more; answers whether it was before.
    ///
    /// # Errors
    /// `NotFound` when there is no such class; `PermissionDenied`; `Unavailable`.
    pub fn disable(&self, class: &str, keyspace: &str) -> Result<bool> {
        self.catalog.set_enabled(class, keyspace, false)
    }

    /// Lets a version be called no more, and removes its script. Where it was the one that is
    /// called, that is the highest that is left.
    ///
    /// # Errors
    /// `NotFound` when there is no such version; `PermissionDenied`; `Unavailable`.
    pub fn retire(&self, class: &str, number: u32) -> Result<()> {
        self.catalog.retire(class, number)
    }

    /// Calls a method beside an object, in a transaction of its own, which runs again where it
    /// meets others. The object need not be there: most methods make it.
    ///
    /// # Errors
    /// The method's own failure; `NotFound` when there is no such class or method;
    /// `PermissionDenied` when the class is not enabled in the keyspace; a limit that it met; and
    /// as [`Tyr::transact`]. Nothing has changed then, unless it is `TimedOut`.
    pub fn call(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        call: &Call,
    ) -> Result<Bytes, Failure> {
        let object = Object::new(keyspace, key.to_key()?)?;
        let class = self.class(keyspace, &call.class)?;
        let mut failed = None;
        let called = self.store.transact(|transaction| {
            let answer = self.run(&*class, transaction, &object, call);
            answer.map_err(|failure| {
                let error = Error::from(failure.duplicate());
                failed = Some(failure);
                error
            })
        });
        // What the body failed with, if it was that, and not the commit.
        called.map_err(|error| match failed {
            Some(failure) if failure.kind() == error.kind() => failure,
            Some(_) | None => Failure::Context(error),
        })
    }

    /// Calls a method beside an object as a part of a transaction, whose earlier operations it
    /// sees. What it answers counts when that commits.
    ///
    /// # Errors
    /// As [`Classes::call`]. What the method wrote before it failed is in the transaction: roll it
    /// back.
    pub fn call_in(
        &self,
        transaction: &mut Transaction,
        keyspace: &Keyspace,
        key: impl ToKey,
        call: &Call,
    ) -> Result<Bytes, Failure> {
        let object = Object::new(keyspace, key.to_key()?)?;
        self.run(&*self.class(keyspace, &call.class)?, transaction, &object, call)
    }

    fn run(
        &self,
        class: &dyn Class,
        transaction: &mut Transaction,
        object: &Object<'_>,
        wanted: &Call,
    ) -> Result<Bytes, Failure> {
        let occasion = Occasion { caller: &self.caller, now_us: now_us(), id: draw_id()? };
        let mut access = Access { transaction, object, occasion };
        call(class, &wanted.method, &mut access, &wanted.input)
    }

    /// The class that calls run in this keyspace.
    fn class(&self, keyspace: &Keyspace, name: &str) -> Result<Arc<dyn Class>> {
        if let Some(native) = self.loaded.native(name) {
            return Ok(native);
        }
        let record = self.get(name)?;
        let keyspace = keyspace.name();
        if !record.keyspaces.contains(keyspace) {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!(
                    "class {name} is not enabled in keyspace {keyspace}: `tyr class enable {name} \
                     {keyspace}` does that"
                ),
            ));
        }
        let version = record.current(name)?;
        Ok(self.loaded.version(name, version, || self.catalog.script(name, version))?)
    }
}

/// The machine's clock, in microseconds since 1970.
fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// A number that no other call has.
fn draw_id() -> Result<TransactionId> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::unavailable("the system gives no random numbers"))?;
    Ok(TransactionId(u128::from_le_bytes(bytes)))
}
