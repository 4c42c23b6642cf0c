//! What a method sees of its blob, and of the call that it runs in.

use tyr_types::{Bytes, Number, Result, Stat, TransactionId, Transform};

use crate::map::Region;

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumCount)]
pub enum LogLevel {
    /// For who looks for a mistake.
    Debug,
    /// What happened.
    Info,
    /// What somebody should know.
    Warn,
    /// What somebody should mend.
    Error,
}

impl LogLevel {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// Its name, as a script gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// The blob of a call, as it stands still for the call: what the call wrote before is seen.
///
/// An error of any of these is the end of the call: it is what the call ends with, whatever the
/// method makes of it. What a method may want to know before is asked for without errors.
pub trait Context {
    /// What is known of the blob; `None` when there is none.
    ///
    /// # Errors
    /// Those of what the blob is on.
    fn stat(&mut self) -> Result<Option<Stat>>;

    /// The size of the blob; `None` when there is none. Who does not need the version asks for
    /// this: the version of what calls before this one wrote is known when they are committed.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn size(&mut self) -> Result<Option<u64>> {
        Ok(self.stat()?.map(|stat| stat.size))
    }

    /// `len` bytes from `offset` on; fewer where the blob ends before.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes>;

    /// Writes `data` at `offset`; creates the blob where there is none.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()>;

    /// Writes `data` at the end; answers the offset that it got.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn append(&mut self, data: &[u8]) -> Result<u64> {
        let offset = self.size()?.unwrap_or(0);
        self.write(offset, data)?;
        Ok(offset)
    }

    /// Cuts the blob, or extends it with zeros; creates it where there is none.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn truncate(&mut self, size: u64) -> Result<()>;

    /// Makes an empty blob where there is none; answers whether it did.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn create(&mut self) -> Result<bool>;

    /// Removes the blob with its map; answers whether there was one.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn remove(&mut self) -> Result<bool>;

    /// Arithmetic in place; answers the new value.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn transform(&mut self, offset: u64, transform: Transform) -> Result<Number> {
        let width = transform.width();
        let mut place = self.read(offset, width as u64)?.to_vec();
        place.resize(width, 0);
        let number = transform.apply(&mut place);
        self.write(offset, &place)?;
        Ok(number)
    }

    /// Bytes of the companion blob, which has the map; 0 where there is none.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn map_size(&mut self) -> Result<u64>;

    /// As [`Context::read`], of the companion.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn map_read(&mut self, offset: u64, len: u64) -> Result<Bytes>;

    /// As [`Context::write`], of the companion.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn map_write(&mut self, offset: u64, data: &[u8]) -> Result<()>;

    /// As [`Context::truncate`], of the companion.
    ///
    /// # Errors
    /// As [`Context::stat`].
    fn map_truncate(&mut self, size: u64) -> Result<()>;

    /// The clock of the cluster when the call began, in microseconds since 1970.
    fn now_us(&self) -> u64;

    /// The user whose transaction it is.
    fn caller(&self) -> &str;

    /// The transaction.
    fn transaction(&self) -> TransactionId;

    /// Says something in the log.
    fn log(&mut self, level: LogLevel, text: &str);
}

/// The companion of a context's blob, as the place of a [`Map`](crate::Map).
pub struct Companion<'a>(pub &'a mut dyn Context);

impl Region for Companion<'_> {
    fn size(&mut self) -> Result<u64> {
        self.0.map_size()
    }

    fn read(&mut self, offset: u64, len: usize) -> Result<Bytes> {
        self.0.map_read(offset, len as u64)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.map_write(offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.0.map_truncate(size)
    }
}
