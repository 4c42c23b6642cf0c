//! Objects and their classes, for async code.

use std::sync::Arc;

use blocking::unblock;
use tyr::{Bytes, Keyspace, Result, ToKey, Tyr};
use tyr_class::{Class, Failure};

use crate::call::Call;
use crate::catalog::Installed;
use crate::record::ClassRecord;

/// The classes of a store, and calls of their methods: see
/// [`blocking::Classes`](crate::blocking::Classes), of which these are the same in async code. A
/// call that runs in this program does so on a thread of its own.
#[derive(Clone, Debug)]
pub struct Classes {
    inner: crate::blocking::Classes,
}

impl Classes {
    /// The classes of a store.
    pub fn of(store: &Tyr) -> Self {
        Self { inner: crate::blocking::Classes::of(&store.blocking()) }
    }

    /// The same for calls of this user, as methods see it (`cx.caller`).
    #[must_use]
    pub fn called_by(self, user: &str) -> Self {
        Self { inner: self.inner.called_by(user) }
    }

    /// The same for threads, with what was compiled.
    pub fn as_blocking(&self) -> &crate::blocking::Classes {
        &self.inner
    }

    /// See [`blocking::Classes::register`](crate::blocking::Classes::register).
    ///
    /// # Errors
    /// As there.
    pub fn register(&self, class: Arc<dyn Class>) -> Result<()> {
        self.inner.register(class)
    }

    /// See [`blocking::Classes::install`](crate::blocking::Classes::install).
    ///
    /// # Errors
    /// As there.
    pub async fn install(&self, name: Option<&str>, script: &[u8]) -> Result<Installed> {
        let (inner, name, script) = (self.inner.clone(), name.map(str::to_owned), script.to_vec());
        unblock(move || inner.install(name.as_deref(), &script)).await
    }

    /// See [`blocking::Classes::ensure`](crate::blocking::Classes::ensure).
    ///
    /// # Errors
    /// As there.
    pub async fn ensure(&self, name: Option<&str>, script: &[u8]) -> Result<Installed> {
        let (inner, name, script) = (self.inner.clone(), name.map(str::to_owned), script.to_vec());
        unblock(move || inner.ensure(name.as_deref(), &script)).await
    }

    /// See [`blocking::Classes::list`](crate::blocking::Classes::list).
    ///
    /// # Errors
    /// As there.
    pub async fn list(&self) -> Result<Vec<(String, ClassRecord)>> {
        let inner = self.inner.clone();
        unblock(move || inner.list()).await
    }

    /// See [`blocking::Classes::get`](crate::blocking::Classes::get).
    ///
    /// # Errors
    /// As there.
    pub async fn get(&self, class: &str) -> Result<ClassRecord> {
        let (inner, class) = (self.inner.clone(), class.to_owned());
        unblock(move || inner.get(&class)).await
    }

    /// See [`blocking::Classes::script`](crate::blocking::Classes::script).
    ///
    /// # Errors
    /// As there.
    pub async fn script(&self, class: &str, number: Option<u32>) -> Result<Vec<u8>> {
        let (inner, class) = (self.inner.clone(), class.to_owned());
        unblock(move || inner.script(&class, number)).await
    }

    /// See [`blocking::Classes::enable`](crate::blocking::Classes::enable).
    ///
    /// # Errors
    /// As there.
    pub async fn enable(&self, class: &str, keyspace: &str) -> Result<bool> {
        let (inner, class, keyspace) = (self.inner.clone(), class.to_owned(), keyspace.to_owned());
        unblock(move || inner.enable(&class, &keyspace)).await
    }

    /// See [`blocking::Classes::disable`](crate::blocking::Classes::disable).
    ///
    /// # Errors
    /// As there.
    pub async fn disable(&self, class: &str, keyspace: &str) -> Result<bool> {
        let (inner, class, keyspace) = (self.inner.clone(), class.to_owned(), keyspace.to_owned());
        unblock(move || inner.disable(&class, &keyspace)).await
    }

    /// See [`blocking::Classes::retire`](crate::blocking::Classes::retire).
    ///
    /// # Errors
    /// As there.
    pub async fn retire(&self, class: &str, number: u32) -> Result<()> {
        let (inner, class) = (self.inner.clone(), class.to_owned());
        unblock(move || inner.retire(&class, number)).await
    }

    /// See [`blocking::Classes::call`](crate::blocking::Classes::call).
    ///
    /// # Errors
    /// As there.
    pub async fn call(
        &self,
        keyspace: &Keyspace,
        key: impl ToKey,
        call: &Call,
    ) -> Result<Bytes, Failure> {
        let (key, Call { class, method, input }) = (key.to_key()?, call);
        if !self.inner.is_of_program(class)
            && let Some(answer) = keyspace.call_method(&key, class, method, input.clone()).await?
        {
            return answer.map_err(Failure::from);
        }
        let (inner, call) = (self.inner.clone(), call.clone());
        let keyspace = keyspace.as_blocking().clone();
        unblock(move || inner.call_here(&keyspace, key, &call)).await
    }
}
