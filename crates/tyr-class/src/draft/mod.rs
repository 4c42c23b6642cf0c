//! A draft of an object: what was written to it, and not yet handed on to what it is a draft of.
//!
//! ```text
//!   call ──► draft of the call ──► draft of all calls ──► transaction
//!              │ it fails: dropped         │ at the end
//!              └─ hand_on ────────────────►┴─ hand_on ──►
//! ```
//!
//! It is a context like what is below it. Reads go below for what the draft does not know yet, so
//! that is validated there as ever, and stays when the draft is dropped; what was read is kept, so
//! the same bytes are read once. What is handed on is what came of all changes, not each of them
//! (O3).

mod layer;
#[cfg(test)]
mod tests;

use tyr_types::{Bytes, Result, Stat, TransactionId};

use self::layer::{Below, Layer};
use crate::context::{Companion, Context, LogLevel};
use crate::map::Region;

/// What was written to an object, over what it has.
pub struct Draft<'a> {
    below: &'a mut dyn Context,
    blob: Layer,
    companion: Layer,
    /// Whether the object was removed: then nothing of it is seen here but what came after.
    is_removed: bool,
}

impl<'a> Draft<'a> {
    /// A draft in which nothing is written.
    pub fn new(below: &'a mut dyn Context) -> Self {
        let (blob, companion) = (Layer::default(), Layer::default());
        Self { below, blob, companion, is_removed: false }
    }

    /// Whether anything is written.
    pub fn is_changed(&self) -> bool {
        self.is_removed || self.blob.is_changed() || self.companion.is_changed()
    }

    /// Bytes that are to be handed on.
    pub fn written(&self) -> usize {
        self.blob.written() + self.companion.written()
    }

    /// Does below what was done here.
    ///
    /// # Errors
    /// Those of what is below, which may have part of it then.
    pub fn hand_on(self) -> Result<()> {
        let Self { below, blob, companion, is_removed } = self;
        if is_removed {
            below.remove()?;
        }
        blob.hand_on(&mut Blob(below))?;
        companion.hand_on(&mut Companion(below))
    }
}

/// The blob of a context, as [`Companion`] is its companion.
struct Blob<'a>(&'a mut dyn Context);

impl Below for Blob<'_> {
    fn size(&mut self) -> Result<Option<u64>> {
        self.0.size()
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.0.read(offset, len)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write(offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.0.truncate(size)
    }
}

/// Of a companion nobody asks whether it is there.
impl Below for Companion<'_> {
    fn size(&mut self) -> Result<Option<u64>> {
        Region::size(self).map(Some)
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.0.map_read(offset, len)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.map_write(offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.0.map_truncate(size)
    }
}

impl Context for Draft<'_> {
    /// The version is that of what is below: what is written here has none yet.
    fn stat(&mut self) -> Result<Option<Stat>> {
        let version = self.below.stat()?.map(|stat| stat.version).unwrap_or_default();
        Ok(self.size()?.map(|size| Stat { size, version }))
    }

    fn size(&mut self) -> Result<Option<u64>> {
        self.blob.size(&mut Blob(self.below))
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.blob.read(&mut Blob(self.below), offset, len)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.blob.write(offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.blob.truncate(size)
    }

    fn create(&mut self) -> Result<bool> {
        let is_new = self.size()?.is_none();
        if is_new {
            self.blob.truncate(0)?;
        }
        Ok(is_new)
    }

    fn remove(&mut self) -> Result<bool> {
        let was_there = self.size()?.is_some();
        (self.blob, self.companion) = (Layer::removed(None), Layer::removed(Some(0)));
        self.is_removed = true;
        Ok(was_there)
    }

    fn map_size(&mut self) -> Result<u64> {
        Ok(self.companion.size(&mut Companion(self.below))?.unwrap_or(0))
    }

    fn map_read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.companion.read(&mut Companion(self.below), offset, len)
    }

    fn map_write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.companion.write(offset, data)
    }

    fn map_truncate(&mut self, size: u64) -> Result<()> {
        self.companion.truncate(size)
    }

    fn now_us(&self) -> u64 {
        self.below.now_us()
    }

    fn caller(&self) -> &str {
        self.below.caller()
    }

    fn transaction(&self) -> TransactionId {
        self.below.transaction()
    }

    fn log(&mut self, level: LogLevel, text: &str) {
        self.below.log(level, text);
    }
}
