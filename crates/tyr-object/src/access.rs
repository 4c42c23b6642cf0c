//! An object in a transaction of this store: where it lies, and what a call knows beside it.
//!
//! What a call reads is validated when the transaction commits (O2).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom, SystemRandom};
use tyr::blocking::{Keyspace, Transaction};
use tyr::{Bytes, Error, ErrorKind, Key, Result, Stat};
use tyr_class::{Blobs, LogLevel, Occasion, TransactionId};

use crate::rule::{Rule, Rules};

/// An object, in its keyspace.
#[derive(Clone)]
pub(crate) struct Object {
    keyspace: Keyspace,
    parts: tyr_class::Object,
}

impl Object {
    /// The object at this key.
    ///
    /// # Errors
    /// `InvalidArgument` when the key is too long for a companion.
    pub fn new(keyspace: Keyspace, blob: Key) -> Result<Self> {
        Ok(Self { keyspace, parts: tyr_class::Object::new(blob)? })
    }

    /// Where it lies.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// The key of its blob.
    pub fn key(&self) -> &Key {
        &self.parts.blob
    }

    /// The keys of its blobs.
    pub fn parts(&self) -> &tyr_class::Object {
        &self.parts
    }
}

/// The occasion of a call of this user that begins now.
///
/// # Errors
/// `Unavailable` when the system gives no random numbers.
pub(crate) fn occasion(caller: &str) -> Result<Occasion<'_>> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_us = since.map_or(0, |it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX));
    Ok(Occasion { caller, now_us, id: next_id()?, log })
}

/// An id that no other call has, of whatever program: 64 random bits of this one, and its count.
fn next_id() -> Result<TransactionId> {
    static PROGRAM: OnceLock<u64> = OnceLock::new();
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let program = match PROGRAM.get() {
        Some(program) => *program,
        None => {
            let drawn = random()?;
            *PROGRAM.get_or_init(|| drawn)
        }
    };
    Ok(TransactionId::new(program, CALLS.fetch_add(1, Ordering::Relaxed)))
}

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::unavailable("the system gives no random numbers"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// A transaction, and the keyspace whose blobs it is asked for.
pub(crate) struct Within<'a> {
    pub transaction: &'a mut Transaction,
    pub keyspace: &'a Keyspace,
    pub rules: Rules,
}

impl Blobs for Within<'_> {
    fn stat(&mut self, key: &Key) -> Result<Option<Stat>> {
        absent_is_none(match self.rules.hold(Rule::O2) {
            true => self.transaction.stat(self.keyspace, key),
            false => self.keyspace.stat(key),
        })
    }

    fn read(&mut self, key: &Key, offset: u64, len: u64) -> Result<Bytes> {
        let read = match self.rules.hold(Rule::O2) {
            true => self.transaction.read(self.keyspace, key, offset, len),
            false => self.keyspace.read(key, offset, len),
        };
        Ok(absent_is_none(read)?.unwrap_or_default())
    }

    fn write(&mut self, key: &Key, offset: u64, data: Bytes) -> Result<()> {
        self.transaction.write(self.keyspace, key, offset, data).map(drop)
    }

    fn truncate(&mut self, key: &Key, size: u64) -> Result<()> {
        self.transaction.truncate(self.keyspace, key, size).map(drop)
    }

    fn delete(&mut self, key: &Key) -> Result<()> {
        self.transaction.delete(self.keyspace, key).map(drop)
    }
}

fn absent_is_none<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Says in the log of this program what a method of a caller says.
fn log(level: LogLevel, caller: &str, text: &str) {
    match level {
        LogLevel::Debug => tracing::debug!(%caller, "{text}"),
        LogLevel::Info => tracing::info!(%caller, "{text}"),
        LogLevel::Warn => tracing::warn!(%caller, "{text}"),
        LogLevel::Error => tracing::error!(%caller, "{text}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tyr::blocking::Tyr;
    use tyr_class::{Access, Context};

    use super::*;
    use crate::keyspace_config;

    fn within<T>(
        store: &Tyr,
        object: &Object,
        act: impl Fn(&mut Access<'_>) -> Result<T>,
    ) -> Result<T> {
        store.transact(|transaction| {
            let (keyspace, rules) = (object.keyspace(), Rules::default());
            let mut within = Within { transaction, keyspace, rules };
            let (object, occasion) = (object.parts(), occasion("anybody")?);
            act(&mut Access { blobs: &mut within, object, occasion })
        })
    }

    /// Has a call of one object write to it, and then one of another look at its own.
    fn seen(store: &Tyr, one: &Object, other: &Object) -> (Option<u64>, Bytes) {
        let write = |access: &mut Access<'_>| {
            access.write(0, b"bytes")?;
            access.map_write(0, b"map")
        };
        within(store, one, write).unwrap();
        within(store, other, |access| Ok((access.size()?, access.map_read(0, 3)?))).unwrap()
    }

    #[test]
    fn no_two_calls_have_the_same_id() {
        let ids: BTreeSet<_> = (0..1_000).map(|_| occasion("anybody").unwrap().id).collect();
        assert_eq!(ids.len(), 1_000);
    }

    fn objects() -> (tempfile::TempDir, Tyr, [Object; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let store = Tyr::open(folder.path()).unwrap();
        let keyspace = store.create_keyspace("objects", keyspace_config()).unwrap();
        let object = |key| Object::new(keyspace.clone(), Key::new(key).unwrap()).unwrap();
        (folder, store, ["one", "other"].map(object))
    }

    #[test]
    fn a_call_sees_and_changes_its_object_alone_o1() {
        let (_folder, store, [one, other]) = objects();
        assert_eq!(seen(&store, &one, &other), (None, Bytes::new()));
        let there = one.keyspace.scan(b"", None, 10).unwrap();
        let keys: Vec<&[u8]> = there.iter().map(|(key, _)| key.as_bytes()).collect();
        assert_eq!(keys, [&b"one"[..], b"one\0m"]);
    }

    #[test]
    fn without_o1_a_call_sees_what_one_of_another_object_wrote() {
        let (_folder, store, [one, other]) = objects();
        let mut reaching = other.clone();
        reaching.parts.companion = one.parts.companion.clone();
        assert_eq!(seen(&store, &one, &reaching), (None, Bytes::from("map")));
    }
}
