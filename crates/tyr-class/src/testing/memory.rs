//! A blob in memory: what a method's context is, without a store.

use tyr_types::{Bytes, Epoch, Error, Result, Stat, Timestamp, TransactionId, limits};

use crate::call::call;
use crate::class::Class;
use crate::context::{Context, LogLevel};
use crate::failure::Failure;
use crate::map::Region;

/// The largest blob: what is beyond is refused, so that a test runs in little memory.
const SIZE_MAX: u64 = 64 << 20;

/// A blob with its companion, in memory. Its clock moves by one with each call.
#[derive(Clone, Debug)]
pub struct MemoryContext {
    /// The blob's bytes; `None` when there is none.
    pub blob: Option<Vec<u8>>,
    /// The companion's bytes.
    pub map: Vec<u8>,
    /// The timestamp of the last call that wrote.
    pub version: Timestamp,
    /// The clock, in microseconds.
    pub now_us: u64,
    /// The user who calls.
    pub caller: String,
    /// The transaction of the next call.
    pub transaction: TransactionId,
    /// What was logged.
    pub lines: Vec<(LogLevel, String)>,
    /// How many more accesses go well; the one after is `Unavailable`, and so are all then.
    pub accesses_left: Option<usize>,
    /// Whether the last call wrote.
    pub has_written: bool,
}

impl Default for MemoryContext {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryContext {
    /// Without a blob.
    pub fn new() -> Self {
        Self {
            blob: None,
            map: Vec::new(),
            version: Timestamp::ZERO,
            now_us: 1_000_000,
            caller: "tester".to_owned(),
            transaction: TransactionId::new(1, 1),
            lines: Vec::new(),
            accesses_left: None,
            has_written: false,
        }
    }

    /// Runs a method beside this blob. A call that fails leaves it as it was.
    ///
    /// # Errors
    /// Those of [`call`](crate::call()).
    pub fn call(
        &mut self,
        class: &dyn Class,
        method: &str,
        input: &[u8],
    ) -> Result<Bytes, Failure> {
        let before = (self.blob.clone(), self.map.clone());
        self.has_written = false;
        let result = call(class, method, self, input);
        self.now_us += 1;
        self.transaction = TransactionId(self.transaction.0.wrapping_add(1));
        if result.is_err() {
            (self.blob, self.map) = before;
        } else if self.has_written {
            self.version = Timestamp { epoch: Epoch(0), clock: self.now_us, node: 0 };
        }
        result
    }

    fn access(&mut self) -> Result<()> {
        match &mut self.accesses_left {
            None => Ok(()),
            Some(0) => Err(Error::unavailable("the blob is away, as the test wants it")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn change(&mut self, end: u64) -> Result<()> {
        self.access()?;
        if end > SIZE_MAX {
            return Err(Error::invalid(format!(
                "a blob in memory has at most {SIZE_MAX} bytes, and would have {end}"
            )));
        }
        self.has_written = true;
        Ok(())
    }
}

impl Context for MemoryContext {
    fn stat(&mut self) -> Result<Option<Stat>> {
        self.access()?;
        let version = self.version;
        Ok(self.blob.as_ref().map(|blob| Stat { size: blob.len() as u64, version }))
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.access()?;
        match &mut self.blob {
            Some(blob) => blob.read(offset, len as usize),
            None => Ok(Bytes::new()),
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.change(offset.saturating_add(data.len() as u64))?;
        self.blob.get_or_insert_default().write(offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.change(size)?;
        self.blob.get_or_insert_default().resize(size as usize, 0);
        Ok(())
    }

    fn create(&mut self) -> Result<bool> {
        self.change(0)?;
        let is_new = self.blob.is_none();
        self.blob.get_or_insert_default();
        Ok(is_new)
    }

    fn remove(&mut self) -> Result<bool> {
        self.change(0)?;
        self.map.clear();
        Ok(self.blob.take().is_some())
    }

    fn map_size(&mut self) -> Result<u64> {
        self.access()?;
        Ok(self.map.len() as u64)
    }

    fn map_read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.access()?;
        self.map.read(offset, len as usize)
    }

    fn map_write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.change(offset.saturating_add(data.len() as u64))?;
        self.map.write(offset, data)
    }

    fn map_truncate(&mut self, size: u64) -> Result<()> {
        self.change(size)?;
        self.map.resize(size as usize, 0);
        Ok(())
    }

    fn now_us(&self) -> u64 {
        self.now_us
    }

    fn caller(&self) -> &str {
        &self.caller
    }

    fn transaction(&self) -> TransactionId {
        self.transaction
    }

    fn log(&mut self, level: LogLevel, text: &str) {
        self.lines.push((level, text.to_owned()));
    }
}

const _: () = assert!(SIZE_MAX <= limits::BLOB_SIZE_MAX);
