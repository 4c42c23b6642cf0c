//! The tests that a class brings: a table `tests` of functions of (blob, call, pass), by name.
//!
//! `call(method, input)` runs a method as ever, within its limits, and returns its answer, or nil,
//! kind, text and code of its failure. `pass(us)` lets time pass, which stands still otherwise but
//! for a microsecond with each call. The test looks at the blob, and raises what is wrong.

use std::cell::RefCell;

use tyr_types::{Bytes, Number, Result, Stat, TransactionId, Transform};

use super::memory::MemoryContext;
use crate::context::{Context, LogLevel};
use crate::failure::Failure;
use crate::lua::{Calls, LuaClass};

/// What came of a test.
#[derive(Debug)]
pub struct TestOutcome {
    /// Its name.
    pub name: String,
    /// Why it did not pass; `None` when it did.
    pub failure: Option<Failure>,
    /// What its calls logged.
    pub lines: Vec<(LogLevel, String)>,
}

/// Runs all tests of a class, each beside a blob of its own that is not there yet.
pub fn run_tests(class: &LuaClass) -> Vec<TestOutcome> {
    let run = |name: &String| {
        let blob = RefCell::new(MemoryContext::new());
        let failure = class.run_test(name, &mut Seen(&blob), &CallsOn { class, blob: &blob }).err();
        TestOutcome { name: name.clone(), failure, lines: blob.into_inner().lines }
    };
    class.tests().iter().map(run).collect()
}

/// What a test does to its blob.
struct CallsOn<'a> {
    class: &'a LuaClass,
    blob: &'a RefCell<MemoryContext>,
}

impl Calls for CallsOn<'_> {
    fn call(&self, method: &str, input: &[u8]) -> Result<Bytes, Failure> {
        self.blob.borrow_mut().call(self.class, method, input)
    }

    fn pass(&self, us: u64) {
        let now_us = &mut self.blob.borrow_mut().now_us;
        *now_us = now_us.saturating_add(us);
    }
}

/// The blob of a test, between its calls.
struct Seen<'a>(&'a RefCell<MemoryContext>);

impl Context for Seen<'_> {
    fn stat(&mut self) -> Result<Option<Stat>> {
        self.0.borrow_mut().stat()
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.0.borrow_mut().read(offset, len)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.borrow_mut().write(offset, data)
    }

    fn append(&mut self, data: &[u8]) -> Result<u64> {
        self.0.borrow_mut().append(data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.0.borrow_mut().truncate(size)
    }

    fn create(&mut self) -> Result<bool> {
        self.0.borrow_mut().create()
    }

    fn remove(&mut self) -> Result<bool> {
        self.0.borrow_mut().remove()
    }

    fn transform(&mut self, offset: u64, transform: Transform) -> Result<Number> {
        self.0.borrow_mut().transform(offset, transform)
    }

    fn map_size(&mut self) -> Result<u64> {
        self.0.borrow_mut().map_size()
    }

    fn map_read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        self.0.borrow_mut().map_read(offset, len)
    }

    fn map_write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.borrow_mut().map_write(offset, data)
    }

    fn map_truncate(&mut self, size: u64) -> Result<()> {
        self.0.borrow_mut().map_truncate(size)
    }

    fn now_us(&self) -> u64 {
        self.0.borrow().now_us()
    }

    /// The test itself.
    fn caller(&self) -> &str {
        "tester"
    }

    fn transaction(&self) -> TransactionId {
        self.0.borrow().transaction()
    }

    fn log(&mut self, level: LogLevel, text: &str) {
        self.0.borrow_mut().log(level, text);
    }
}
