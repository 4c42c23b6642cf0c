//! An object as a transaction has it: two blobs, whose content a call of a method sees and changes,
//! and nothing else (O1).
//!
//! What a call reads is read by the transaction, which validates it when it commits (O2); what is
//! handed on to it become the transaction's operations. Answers that depend on where the blob ends
//! are known at once, since the size was read. What a transaction is, and how it commits, is not
//! known here: that is behind [`Blobs`].

use tyr_types::{Bytes, Error, Key, Result, Stat, TransactionId};

use crate::class::Class;
use crate::context::{Context, LogLevel};
use crate::draft::Draft;
use crate::failure::Failure;

/// What comes behind the key of an object's blob in that of its companion, which has its map.
pub const COMPANION: &[u8] = b"\0m";

/// The blob of an object, and that of its map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The key of its blob.
    pub blob: Key,
    /// The key of its companion.
    pub companion: Key,
}

impl Object {
    /// The object at this key.
    ///
    /// # Errors
    /// `InvalidArgument` when the key is too long for a companion, or is one: the map of an object
    /// is changed by calls of that object alone (O1).
    pub fn new(blob: Key) -> Result<Self> {
        if blob.as_bytes().ends_with(COMPANION) {
            let text = "a key that ends in \\0m is that of an object's map; call the object";
            return Err(Error::invalid(text));
        }
        let companion = Key::new([blob.as_bytes(), COMPANION].concat())?;
        Ok(Self { blob, companion })
    }
}

/// A transaction, as far as a call of a method needs one: blobs of the keyspace that its object is
/// in.
pub trait Blobs {
    /// What is known of a blob; `None` where there is none.
    ///
    /// # Errors
    /// Those of the store.
    fn stat(&mut self, key: &Key) -> Result<Option<Stat>>;

    /// `len` bytes from `offset` on; fewer where the blob ends, none where there is none.
    ///
    /// # Errors
    /// Those of the store.
    fn read(&mut self, key: &Key, offset: u64, len: u64) -> Result<Bytes>;

    /// Writes `data` at `offset`; creates the blob where there is none.
    ///
    /// # Errors
    /// Those of the store.
    fn write(&mut self, key: &Key, offset: u64, data: Bytes) -> Result<()>;

    /// Cuts a blob, or extends it with zeros; creates it where there is none.
    ///
    /// # Errors
    /// Those of the store.
    fn truncate(&mut self, key: &Key, size: u64) -> Result<()>;

    /// Deletes a blob, if there is one.
    ///
    /// # Errors
    /// Those of the store.
    fn delete(&mut self, key: &Key) -> Result<()>;
}

/// What a call knows beside its object.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    /// The user who calls.
    pub caller: &'a str,
    /// The clock when it began, in microseconds since 1970.
    pub now_us: u64,
    /// By which its random numbers are drawn, and by which it is told from others.
    pub id: TransactionId,
    /// Where the lines go that a method logs, with the caller.
    pub log: fn(LogLevel, &str, &str),
}

/// An object within a transaction: what calls in it see and change.
pub struct Access<'a> {
    /// The transaction.
    pub blobs: &'a mut dyn Blobs,
    /// The object.
    pub object: &'a Object,
    /// What is known beside it.
    pub occasion: Occasion<'a>,
}

impl Access<'_> {
    /// Runs a method; what it wrote is in the transaction then, if it did not fail.
    ///
    /// # Errors
    /// As [`call`](crate::call()).
    pub fn call(
        &mut self,
        class: &dyn Class,
        method: &str,
        input: &[u8],
    ) -> Result<Bytes, Failure> {
        let mut draft = Draft::new(self);
        let answer = crate::call(class, method, &mut draft, input)?;
        draft.hand_on()?;
        Ok(answer)
    }
}

impl Context for Access<'_> {
    fn stat(&mut self) -> Result<Option<Stat>> {
        self.blobs.stat(&self.object.blob)
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.blobs.read(&self.object.blob, offset, len)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.blobs.write(&self.object.blob, offset, Bytes::copy_from_slice(data))
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.blobs.truncate(&self.object.blob, size)
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
            self.blobs.delete(key)?;
        }
        Ok(was_there)
    }

    fn map_size(&mut self) -> Result<u64> {
        Ok(self.blobs.stat(&self.object.companion)?.map_or(0, |stat| stat.size))
    }

    fn map_read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.blobs.read(&self.object.companion, offset, len)
    }

    fn map_write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.blobs.write(&self.object.companion, offset, Bytes::copy_from_slice(data))
    }

    fn map_truncate(&mut self, size: u64) -> Result<()> {
        self.blobs.truncate(&self.object.companion, size)
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
        (self.occasion.log)(level, self.occasion.caller, text);
    }
}
