//! A call's view of its object: a transaction.
//!
//! What it reads is validated when the transaction commits, what it writes is seen by what it reads
//! afterwards. Answers that depend on where the blob ends are known at once, since the size was
//! read.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom, SystemRandom};
use tyr::blocking::{Keyspace, Transaction};
use tyr::{Bytes, Error, ErrorKind, Key, Result, Stat};
use tyr_class::{Context, LogLevel, TransactionId};

use crate::COMPANION;

/// The blob of an object, and that of its map.
#[derive(Clone)]
pub(crate) struct Object {
    keyspace: Keyspace,
    blob: Key,
    companion: Key,
}

impl Object {
    /// The object at this key.
    ///
    /// # Errors
    /// `InvalidArgument` when the key is too long for a companion.
    pub fn new(keyspace: Keyspace, blob: Key) -> Result<Self> {
        let companion = Key::new([blob.as_bytes(), COMPANION].concat())?;
        Ok(Self { keyspace, blob, companion })
    }

    /// Where it lies.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// The key of its blob.
    pub fn key(&self) -> &Key {
        &self.blob
    }
}

/// What a call knows beside its object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occasion<'a> {
    pub caller: &'a str,
    pub now_us: u64,
    /// By which its random numbers are drawn, and by which it is told from others.
    pub id: TransactionId,
}

impl<'a> Occasion<'a> {
    /// A call of this user that begins now.
    ///
    /// # Errors
    /// `Unavailable` when the system gives no random numbers.
    pub fn now(caller: &'a str) -> Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_us = since.map_or(0, |it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX));
        let mut bytes = [0; 16];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| Error::unavailable("the system gives no random numbers"))?;
        Ok(Self { caller, now_us, id: TransactionId(u128::from_le_bytes(bytes)) })
    }
}

/// An object within a transaction.
pub(crate) struct Access<'a> {
    pub transaction: &'a mut Transaction,
    pub object: &'a Object,
    pub occasion: Occasion<'a>,
}

impl Access<'_> {
    /// What is known of a blob, `None` where there is none.
    fn stat_of(&mut self, key: &Key) -> Result<Option<Stat>> {
        absent_is_none(self.transaction.stat(&self.object.keyspace, key))
    }

    fn read_of(&mut self, key: &Key, offset: u64, len: u64) -> Result<Bytes> {
        let read = self.transaction.read(&self.object.keyspace, key, offset, len);
        Ok(absent_is_none(read)?.unwrap_or_default())
    }

    fn write_of(&mut self, key: &Key, offset: u64, data: &[u8]) -> Result<()> {
        let data = Bytes::copy_from_slice(data);
        self.transaction.write(&self.object.keyspace, key, offset, data).map(drop)
    }
}

fn absent_is_none<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

impl Context for Access<'_> {
    fn stat(&mut self) -> Result<Option<Stat>> {
        self.stat_of(&self.object.blob)
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.read_of(&self.object.blob, offset, len)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_of(&self.object.blob, offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.transaction.truncate(&self.object.keyspace, &self.object.blob, size).map(drop)
    }

    fn create(&mut self) -> Result<bool> {
        if self.stat()?.is_some() {
            return Ok(false);
        }
        self.truncate(0)?;
        Ok(true)
    }

    fn remove(&mut self) -> Result<bool> {
        let was_there = self.stat()?.is_some();
        for key in [&self.object.blob, &self.object.companion] {
            self.transaction.delete(&self.object.keyspace, key)?;
        }
        Ok(was_there)
    }

    fn map_size(&mut self) -> Result<u64> {
        Ok(self.stat_of(&self.object.companion)?.map_or(0, |stat| stat.size))
    }

    fn map_read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.read_of(&self.object.companion, offset, len)
    }

    fn map_write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_of(&self.object.companion, offset, data)
    }

    fn map_truncate(&mut self, size: u64) -> Result<()> {
        self.transaction.truncate(&self.object.keyspace, &self.object.companion, size).map(drop)
    }

    fn now_us(&self) -> u64 {
        self.occasion.now_us
    }

    fn caller(&self) -> &str {
        self.occasion.caller
    }

    fn transaction(&self) -> TransactionId {
        self.occasion.id
    }

    fn log(&mut self, level: LogLevel, text: &str) {
        log(level, self.occasion.caller, text);
    }
}

/// Says in the log of this program what a method of a caller says.
pub(crate) fn log(level: LogLevel, caller: &str, text: &str) {
    match level {
        LogLevel::Debug => tracing::debug!(%caller, "{text}"),
        LogLevel::Info => tracing::info!(%caller, "{text}"),
        LogLevel::Warn => tracing::warn!(%caller, "{text}"),
        LogLevel::Error => tracing::error!(%caller, "{text}"),
    }
}
