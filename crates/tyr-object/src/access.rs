//! An object in a transaction of this store: where it lies, and what a call knows beside it.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom, SystemRandom};
use tyr::blocking::{Keyspace, Transaction};
use tyr::{Bytes, Error, ErrorKind, Key, Result, Stat};
use tyr_class::{Blobs, LogLevel, Occasion, TransactionId};

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
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::unavailable("the system gives no random numbers"))?;
    Ok(Occasion { caller, now_us, id: TransactionId(u128::from_le_bytes(bytes)), log })
}

/// A transaction, and the keyspace whose blobs it is asked for.
pub(crate) struct Within<'a> {
    pub transaction: &'a mut Transaction,
    pub keyspace: &'a Keyspace,
}

impl Blobs for Within<'_> {
    fn stat(&mut self, key: &Key) -> Result<Option<Stat>> {
        absent_is_none(self.transaction.stat(self.keyspace, key))
    }

    fn read(&mut self, key: &Key, offset: u64, len: u64) -> Result<Bytes> {
        let read = self.transaction.read(self.keyspace, key, offset, len);
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
