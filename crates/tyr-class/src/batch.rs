//! A batch of calls, those of one object in one transaction: one after the other, each sees what
//! those before it wrote (O4), and one that fails leaves nothing (O3).
//!
//! ```text
//!   call ──► draft of the call ──► draft of all ──► transaction
//!              │ it fails: dropped     └─ hand_on: what came of all of them
//!              └─ else handed on
//! ```

use tyr_types::{Bytes, Error, Result, Stat, TransactionId};

use crate::call::call;
use crate::class::Class;
use crate::context::{Context, LogLevel};
use crate::draft::Draft;
use crate::failure::Failure;
use crate::object::Occasion;

/// Calls of one object that are run in one transaction.
pub struct Batch<'a> {
    all: Draft<'a>,
    /// O3 taken away: what a call has written that failed is handed on.
    #[cfg(test)]
    keeps_failed: bool,
}

impl<'a> Batch<'a> {
    /// None yet, on what is below: the object in the transaction.
    pub fn new(below: &'a mut dyn Context) -> Self {
        Self {
            all: Draft::new(below),
            #[cfg(test)]
            keeps_failed: false,
        }
    }

    /// Bytes that they wrote.
    pub fn written(&self) -> usize {
        self.all.written()
    }

    /// Runs a call on what those before it did; `None` when it has to be the first of another
    /// transaction: it asked for the version of what they wrote, which has none yet.
    ///
    /// # Errors
    /// Those of the store for which the whole transaction is to run again.
    pub fn call(
        &mut self,
        occasion: Occasion<'_>,
        class: &dyn Class,
        method: &str,
        input: &[u8],
    ) -> Result<Option<Result<Bytes, Failure>>> {
        let mut next = Next { all: &mut self.all, occasion, is_version_wanted: false };
        let mut draft = Draft::new(&mut next);
        let answer = match call(class, method, &mut draft, input) {
            Ok(answer) => draft.hand_on().map(|()| answer).map_err(Failure::from),
            #[cfg(test)]
            Err(failure) if self.keeps_failed => {
                draft.hand_on().map_err(Failure::from).and(Err(failure))
            }
            Err(failure) => Err(failure),
        };
        match answer {
            _ if next.is_version_wanted => Ok(None),
            // The store's: what the transaction has read is not there any more.
            Err(Failure::Context(error)) if error.kind().is_retryable() => Err(error),
            answer => Ok(Some(answer)),
        }
    }

    /// Does in the transaction what they did.
    ///
    /// # Errors
    /// Those of the store.
    pub fn hand_on(self) -> Result<()> {
        self.all.hand_on()
    }
}

/// What a call sees that comes after others: the object as they leave it, on its own occasion.
struct Next<'a, 'b> {
    all: &'a mut Draft<'b>,
    occasion: Occasion<'a>,
    /// Whether it asked for the version of what they wrote, which has none yet.
    is_version_wanted: bool,
}

impl Context for Next<'_, '_> {
    fn stat(&mut self) -> Result<Option<Stat>> {
        if self.all.is_changed() {
            self.is_version_wanted = true;
            return Err(Error::unavailable("the version is known when the batch is committed"));
        }
        self.all.stat()
    }

    fn size(&mut self) -> Result<Option<u64>> {
        self.all.size()
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.all.read(offset, len)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.all.write(offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.all.truncate(size)
    }

    fn create(&mut self) -> Result<bool> {
        self.all.create()
    }

    fn remove(&mut self) -> Result<bool> {
        self.all.remove()
    }

    fn map_size(&mut self) -> Result<u64> {
        self.all.map_size()
    }

    fn map_read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.all.map_read(offset, len)
    }

    fn map_write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.all.map_write(offset, data)
    }

    fn map_truncate(&mut self, size: u64) -> Result<()> {
        self.all.map_truncate(size)
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

#[cfg(test)]
mod tests {
    use tyr_types::ErrorKind;

    use super::*;
    use crate::class::{ClassInfo, MethodKind};
    use crate::limits::Limits;
    use crate::testing::MemoryContext;

    /// A number that is counted up.
    struct Counter(ClassInfo);

    impl Counter {
        fn new() -> Self {
            let methods = ["add", "jump"].map(|name| (name, MethodKind::Call));
            Self(ClassInfo::new("counter", methods, Limits::IN_PLACE).unwrap())
        }
    }

    impl Class for Counter {
        fn info(&self) -> &ClassInfo {
            &self.0
        }

        fn run(
            &self,
            method: usize,
            context: &mut dyn Context,
            _: &[u8],
        ) -> Result<Bytes, Failure> {
            if self.0.methods()[method].name == "jump" {
                context.write(0, &[100])?;
                return Err(Failure::method(ErrorKind::QuotaExceeded, "it counts no further"));
            }
            let sum = context.read(0, 1)?.first().map_or(1, |count| count + 1);
            context.write(0, &[sum])?;
            Ok(vec![sum].into())
        }
    }

    /// What `add`, `jump` and `add` answer in one batch, and what a counter is at then.
    fn counted(keeps_failed: bool) -> ([Option<u8>; 3], u8) {
        let (mut context, class) = (MemoryContext::new(), Counter::new());
        let mut batch = Batch::new(&mut context);
        batch.keeps_failed = keeps_failed;
        let (id, log) = (TransactionId(0), |_: LogLevel, _: &str, _: &str| ());
        let occasion = Occasion { caller: "anybody", now_us: 0, id, log };
        let answers = ["add", "jump", "add"].map(|method| {
            let answer = batch.call(occasion, &class, method, b"").unwrap().unwrap();
            answer.ok().map(|sum| sum[0])
        });
        batch.hand_on().unwrap();
        (answers, context.blob.unwrap()[0])
    }

    #[test]
    fn what_a_method_has_written_that_fails_is_nowhere_o3() {
        assert_eq!(counted(false), ([Some(1), None, Some(2)], 2));
    }

    #[test]
    fn without_o3_what_a_call_that_failed_has_written_is_there() {
        assert_eq!(counted(true), ([Some(1), None, Some(101)], 101));
    }
}
