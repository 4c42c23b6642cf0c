//! Objects and their classes, for threads.

use std::fmt;
use std::sync::Arc;

use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{Bytes, Error, Key, Result, ToKey};
use tyr_class::testing::run_tests;
use tyr_class::{Class, Failure};

use crate::access::Object;
use crate::begun::Begun;
use crate::call::Call;
use crate::catalog::Installed;
use crate::host::{Host, run_alone};
use crate::library::Library;
use crate::record::ClassRecord;

/// Who calls, where nobody said a name.
const NOBODY: &str = "anybody";

/// The classes of a store, and calls of their methods. Clone it freely: clones share what they have
/// compiled, and the queues in which calls of an object wait for each other.
#[derive(Clone)]
pub struct Classes {
    store: Tyr,
    library: Library,
    host: Host,
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
        let library = Library::of(store);
        let host = Host::new(store, &library);
        Self { store: store.clone(), library, host, caller: NOBODY.into() }
    }

    /// The same for calls of this user, as methods see it (`cx.caller`) that run in this program;
    /// those that a node runs see the user who is connected.
    #[must_use]
    pub fn called_by(self, user: &str) -> Self {
        Self { caller: user.into(), ..self }
    }

    /// The store that they are of.
    pub fn store(&self) -> &Tyr {
        &self.store
    }

    /// A class that is part of this program. It needs no installation, and is called in any
    /// keyspace; installed classes of its name are not looked at. Its methods must not call methods
    /// themselves: those of the same object wait for them.
    ///
    /// # Errors
    /// `AlreadyExists` when one of this name was registered before.
    pub fn register(&self, class: Arc<dyn Class>) -> Result<()> {
        self.library.loaded.register(class)
    }

    /// Runs the tests that a script brings, and makes it the version of its class that is called
    /// from now on. `name` is that of the class where the script does not say it.
    ///
    /// # Errors
    /// `InvalidArgument` when it is no class, with the line, or when a test of it fails;
    /// `PermissionDenied`; `Unavailable` when the service metadata cannot be written.
    pub fn install(&self, name: Option<&str>, script: &[u8]) -> Result<Installed> {
        let class = self.library.loaded.compile_new(name, script)?;
        let failed = run_tests(&class).into_iter().find_map(|test| {
            test.failure.map(|failure| format!("test {} failed: {}", test.name, failure.text()))
        });
        match failed {
            None => self.library.catalog.install(class.info().name(), script),
            Some(text) => Err(Error::invalid(format!(
                "{text}; nothing was installed: mend the script or its test"
            ))),
        }
    }

    /// Makes sure that a script is the version of its class that is called. Where it is already
    /// nothing is written, no test is run, and nobody is waited for: somebody may have made it so
    /// just now, and for half a second calls may still run what was there before.
    ///
    /// # Errors
    /// As [`Classes::install`].
    pub fn ensure(&self, name: Option<&str>, script: &[u8]) -> Result<Installed> {
        let class = self.library.loaded.compile(name, script)?;
        match self.library.catalog.current(class.info().name(), script)? {
            Some(current) => Ok(current),
            None => self.install(name, script),
        }
    }

    /// Everything that is installed, by name.
    ///
    /// # Errors
    /// `Unavailable` when the service metadata cannot be read.
    pub fn list(&self) -> Result<Vec<(String, ClassRecord)>> {
        self.library.catalog.list()
    }

    /// What is known of a class.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` when the service metadata cannot be read.
    pub fn get(&self, class: &str) -> Result<ClassRecord> {
        Ok(ClassRecord::clone(&self.library.catalog.find(class)?.record))
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
        if version.is_retired {
            let number = version.number;
            let text = format!("version {number} of class {class} is retired, and its script gone");
            return Err(Error::not_found(text));
        }
        self.library.catalog.script(class, version)
    }

    /// Lets a class be called in a keyspace; answers whether it was not before.
    ///
    /// # Errors
    /// `NotFound` when there is no such class or keyspace; `PermissionDenied`; `Unavailable`.
    pub fn enable(&self, class: &str, keyspace: &str) -> Result<bool> {
        self.store.keyspace(keyspace)?;
        self.library.catalog.set_enabled(class, keyspace, true)
    }

    /// Lets it be called there no more; answers whether it was before.
    ///
    /// # Errors
    /// `NotFound` when there is no such class; `PermissionDenied`; `Unavailable`.
    pub fn disable(&self, class: &str, keyspace: &str) -> Result<bool> {
        self.library.catalog.set_enabled(class, keyspace, false)
    }

    /// Lets a version be called no more, and removes its script. Where it was the one that is
    /// called, that is the highest that is left.
    ///
    /// # Errors
    /// `NotFound` when there is no such version; `PermissionDenied`; `Unavailable`.
    pub fn retire(&self, class: &str, number: u32) -> Result<()> {
        self.library.catalog.retire(class, number)
    }

    /// Calls a method beside an object, in a transaction, which runs again where it meets others.
    /// In a cluster that is done by the node that the object is at, but for classes of this
    /// program; where some node is of a release that does not, by this program, as in a directory.
    /// Calls of an object that come while one of it is under way wait, and run together in the next
    /// transaction, one after the other. The object need not be there: most methods make it.
    ///
    /// # Errors
    /// The method's own failure; `NotFound` when there is no such class or method;
    /// `PermissionDenied` when the class is not enabled in the keyspace; a limit that it met;
    /// `Unavailable` when 1,024 calls or 64 MiB of input are under way where it runs, when it has
    /// waited for 10 s, or when the node is not reached; and as [`Tyr::transact`]. Nothing has
    /// changed then, unless it is `TimedOut`.
    pub fn call(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        call: &Call,
    ) -> Result<Bytes, Failure> {
        let (key, Call { class, method, input }) = (key.to_key()?, call);
        if !self.is_of_program(class)
            && let Some(answer) = keyspace.call_method(&key, class, method, input.clone())?
        {
            return answer.map_err(Failure::from);
        }
        self.call_here(keyspace, key, call)
    }

    /// Whether a class is part of this program.
    pub(crate) fn is_of_program(&self, class: &str) -> bool {
        self.library.loaded.native(class).is_some()
    }

    /// Calls a method, which is run in this program.
    pub(crate) fn call_here(
        &self,
        keyspace: &Keyspace,
        key: Key,
        call: &Call,
    ) -> Result<Bytes, Failure> {
        self.host.call(keyspace, key, call, &self.caller)
    }

    /// Has a method called in the name of a user, on threads that all clones of this share, as many
    /// at once as there are cores: for who calls for others. Else it is as with
    /// [`Classes::call`]; nothing is sent to another program.
    ///
    /// # Errors
    /// `InvalidArgument` for a key that no object can have; `Unavailable` when 1,024 calls or
    /// 64 MiB of input are under way.
    pub fn begin(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        call: Call,
        user: &str,
    ) -> Result<Begun> {
        self.host.begin(keyspace, key.to_key()?, call, &user.into())
    }

    /// Calls a method beside an object as a part of a transaction, whose earlier operations it
    /// sees (O7). What it answers counts when that commits. It runs in this thread, and meets
    /// others as any transaction does.
    ///
    /// # Errors
    /// The method's own failure; `NotFound` when there is no such class or method;
    /// `PermissionDenied` when the class is not enabled in the keyspace; a limit that it met. What
    /// the method wrote is not in the transaction then; what it read is validated all the same.
    pub fn call_in(
        &self,
        transaction: &mut Transaction,
        keyspace: &Keyspace,
        key: impl ToKey,
        call: &Call,
    ) -> Result<Bytes, Failure> {
        let object = Object::new(keyspace.clone(), key.to_key()?)?;
        let class = self.library.class(keyspace, &call.class)?;
        run_alone(&*class, transaction, &object, call, &self.caller)
    }
}
