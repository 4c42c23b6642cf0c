//! Classes in Lua: Luau, in a sandbox, within fuel, time and memory.
//!
//! ```text
//!   LuaClass ── a script, found to be a class
//!    ├─ pool        machines of each thread, waiting
//!    │   └─ machine     a virtual machine: prelude.luau, objclass.luau, the script
//!    │       ├─ meter       fuel and time
//!    │       └─ host        what scripts ask for: the blob, its map, its attributes
//!    └─ describe    what the script says it is
//! ```
//!
//! A script returns its class:
//!
//! ```lua
//! return { name = "register", methods = {
//!   set = { kind = "call", run = function(cx, blob, input)
//!     if blob:size() > 0 then cx:fail("AlreadyExists", "it is set") end
//!     blob:write(0, input)
//!   end },
//!   get = { kind = "query", run = function(cx, blob) return blob:read(0, 2 ^ 20) end } } }
//! ```
//!
//! or, written for RADOS, returns nothing and registers handlers at the global `objclass`.
//!
//! **What scripts have.** `blob:read(offset, len)`, `blob:write(offset, data)`,
//! `blob:append(data)`, `blob:truncate(size)`, `blob:create(exclusive)`, `blob:remove()`,
//! `blob:transform(offset, kind, type, operand)`, `blob:size()`, which returns size and existence,
//! and `blob:stat()`, which returns size, version and existence. `blob.map:get(key)`,
//! `set(key, value)`, `remove(key)`, `clear()`, `header()`, `header(value)`, and
//! `next(after, count)` and `prefix(prefix, after, count)`, which return keys and values as two
//! lists. `blob:xattr(name)` with `get()`, `set(value)`, `remove()`. `cx.now` in microseconds,
//! `cx.caller`, `cx.transaction`, `cx:log(level, text)`, and `cx:fail(kind, text, code)`, which
//! ends the call. Data goes in as strings or buffers and comes as buffers; keys come as strings;
//! [`value`] has the rest.
//!
//! **What they do not have.** `os`, `io`, `debug`, `load`, `collectgarbage`, and `require` but of
//! `objclass` and `bufferlist`; state from one call to the next; what is not said above of time or
//! chance: `math.random` begins anew for each call, from the transaction.
//!
//! The sandbox is Luau's, not the system's: a mistake in it is one in this process.

mod attributes;
mod describe;
mod host;
mod machine;
mod meter;
mod pool;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use tyr_types::{Bytes, Error, Result};

use crate::class::{Class, ClassInfo};
use crate::context::Context;
use crate::failure::Failure;
use crate::limits::{Limits, SOURCE_LEN_MAX};
use describe::Described;
pub use host::Calls;
use machine::{Machine, Run};
pub use meter::Clock;

/// A script, and what its calls may take.
struct Script {
    source: String,
    limits: Limits,
    clock: Clock,
}

/// A class in Lua.
pub struct LuaClass {
    script: Arc<Script>,
    info: ClassInfo,
    tests: Vec<String>,
    others: Vec<String>,
}

impl LuaClass {
    /// The class that a script returns. `clock` is any that never goes back; it stops calls that
    /// take too long.
    ///
    /// # Errors
    /// `InvalidArgument` when it is no script or returns no class, with the line and what to do.
    pub fn compile(source: &[u8], limits: Limits, clock: Clock) -> Result<Self> {
        Self::new(source, None, limits, clock)
    }

    /// The class of this name that a script written for RADOS is: its handlers are the methods.
    /// A script that returns a class keeps its own name.
    ///
    /// # Errors
    /// As [`LuaClass::compile`].
    pub fn compile_handlers(
        name: &str,
        source: &[u8],
        limits: Limits,
        clock: Clock,
    ) -> Result<Self> {
        Self::new(source, Some(name), limits, clock)
    }

    fn new(source: &[u8], name: Option<&str>, limits: Limits, clock: Clock) -> Result<Self> {
        let script = Arc::new(Script { source: check_source(source)?.to_owned(), limits, clock });
        let machine = Machine::new(&script.source, &limits, Arc::clone(&script.clock))?;
        let described = machine.describe();
        let words = described
            .result
            .map_err(|failure| Error::invalid(failure.text()).context("the script is no class"))?;
        let Described { info, tests, others } = describe::read(&words, name, limits)?;
        drop(words);
        if described.is_reusable {
            pool::put(&script, machine);
        }
        Ok(Self { script, info, tests, others })
    }

    /// The names of its tests, sorted.
    pub fn tests(&self) -> &[String] {
        &self.tests
    }

    /// Keys of its table that mean nothing, sorted: of a class that is new each is a mistake.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// Runs one of its tests beside the blob of `context`; the test calls methods by `calls`.
    ///
    /// # Errors
    /// Why it did not pass.
    pub fn run_test(
        &self,
        name: &str,
        context: &mut dyn Context,
        calls: &dyn Calls,
    ) -> Result<(), Failure> {
        let machine = pool::take(&self.script)?;
        let ended = machine.test(context, calls, name);
        if ended.is_reusable {
            pool::put(&self.script, machine);
        }
        ended.result
    }
}

impl Class for LuaClass {
    fn info(&self) -> &ClassInfo {
        &self.info
    }

    fn run(
        &self,
        method: usize,
        context: &mut dyn Context,
        input: &[u8],
    ) -> Result<Bytes, Failure> {
        let machine = pool::take(&self.script)?;
        let method = &self.info.methods()[method].name;
        let ended = machine.run(context, &Run { method, input });
        if ended.is_reusable {
            pool::put(&self.script, machine);
        }
        ended.result
    }
}

/// The text of a script; never compiled code.
fn check_source(source: &[u8]) -> Result<&str> {
    if source.len() > SOURCE_LEN_MAX {
        return Err(Error::invalid(format!(
            "the script has {} bytes, at most {SOURCE_LEN_MAX} (1 MiB) are taken: part it into \
             classes",
            source.len()
        )));
    }
    let text = std::str::from_utf8(source).map_err(|error| {
        Error::invalid(format!(
            "the script is no text in UTF-8 from byte {} on",
            error.valid_up_to()
        ))
    })?;
    // Compiled code begins with its version, or with ESC where it is of another Lua.
    if text.starts_with(|it: char| it.is_control() && !it.is_whitespace()) {
        return Err(Error::invalid(
            "compiled code is not taken: give the script as it was written",
        ));
    }
    Ok(text)
}
