//! A virtual machine with one script in it, for one call at a time.
//!
//! ```text
//!   new    library ─► prelude ─► objclass ─► sandbox closed: all of it is read-only
//!   call   fuel and time set ─► the script runs anew in an environment of its own ─► the method
//! ```
//!
//! The script runs anew for each call, so what it keeps in locals and globals is gone with the
//! call. A few microseconds buy that nobody can rely on what another call left behind.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value};
use tyr_types::{Bytes, Error, ErrorKind};

use super::host::{Asked, Calls, Host, Op};
use super::meter::{Clock, Meter, met};
use super::value;
use crate::context::Context;
use crate::failure::{Failure, Limit};
use crate::limits::Limits;

const PRELUDE: &str = include_str!("prelude.luau");
const OBJCLASS: &str = include_str!("objclass.luau");

/// A machine that has more than this part of its memory in use after a call is not kept.
const KEPT_MEMORY_PART: usize = 2;

/// How the prelude says that a call ended.
const ANSWERED: i64 = 0;
const CODE: i64 = 2;

/// A virtual machine.
pub struct Machine {
    lua: Lua,
    run: Function,
    test: Function,
    describe: Function,
    meter: Rc<Meter>,
    limits: Limits,
}

/// How a call ended, and whether its machine can have another one.
pub struct Ended<T> {
    /// What came of it.
    pub result: Result<T, Failure>,
    /// Whether the machine is as good as before.
    pub is_reusable: bool,
}

/// What a call of a method is.
pub struct Run<'a> {
    /// The method.
    pub method: &'a str,
    /// Its input.
    pub input: &'a [u8],
}

impl Machine {
    /// A machine with this script, which has not run yet.
    ///
    /// # Errors
    /// `InvalidArgument` when the script cannot be compiled.
    pub fn new(source: &str, limits: &Limits, clock: Clock) -> Result<Self, Error> {
        let libraries = StdLib::COROUTINE
            | StdLib::TABLE
            | StdLib::STRING
            | StdLib::UTF8
            | StdLib::BIT
            | StdLib::MATH
            | StdLib::BUFFER;
        let lua = Lua::new_with(libraries, LuaOptions::new()).map_err(unmade)?;
        let chunk =
            lua.load(source).set_name("=class").set_mode(ChunkMode::Text).into_function().map_err(
                |error| {
                    let text = text_of(&error);
                    Error::invalid(format!("the script cannot be compiled: {text}; mend that line"))
                },
            )?;
        let meter = Rc::new(Meter::new(clock));
        Self::with_chunk(lua, chunk, meter, limits).map_err(unmade)
    }

    fn with_chunk(
        lua: Lua,
        chunk: Function,
        meter: Rc<Meter>,
        limits: &Limits,
    ) -> mlua::Result<Self> {
        let names = lua.create_table()?;
        for (place, (_, name)) in Op::ALL.iter().enumerate() {
            names.raw_set(*name, place)?;
        }
        let load = |text: &'static str, name| lua.load(text).set_name(name);
        let prelude: Table = load(PRELUDE, "=prelude").call((names.clone(), chunk))?;
        load(OBJCLASS, "=objclass").call::<()>((names, prelude.clone()))?;
        lua.sandbox(true)?;
        let passed = Rc::clone(&meter);
        lua.set_interrupt(move |_| passed.pass());
        lua.set_memory_limit(limits.memory)?;
        Ok(Self {
            run: prelude.raw_get("run")?,
            test: prelude.raw_get("test")?,
            describe: prelude.raw_get("describe")?,
            meter,
            limits: *limits,
            lua,
        })
    }

    /// Bytes that it has now.
    pub fn used_memory(&self) -> usize {
        self.lua.used_memory()
    }

    /// Runs a method.
    pub fn run(&self, context: &mut dyn Context, run: &Run<'_>) -> Ended<Bytes> {
        let (now, transaction) = (context.now_us(), context.transaction());
        let caller = context.caller().to_owned();
        let host = Host { context: Some(context), calls: None, failure: None };
        let (result, is_reusable) = self.within(host, |host| {
            let input = value::from_bytes(&self.lua, run.input)?;
            let transaction_text = format!("{:032x}", transaction.0);
            let seed = seed(transaction.0);
            let now = now as f64;
            self.run.call((host, seed, run.method, input, now, caller, transaction_text))
        });
        let result = result.and_then(|answer| bytes_of(&answer));
        Ended { result, is_reusable }
    }

    /// Runs a test of the class.
    pub fn test(&self, context: &mut dyn Context, calls: &dyn Calls, name: &str) -> Ended<()> {
        let seed = seed(context.transaction().0);
        let host = Host { context: Some(context), calls: Some(calls), failure: None };
        let (result, is_reusable) = self.within(host, |host| self.test.call((host, seed, name)));
        Ended { result: result.map(drop), is_reusable }
    }

    /// What the script says it is, in words.
    pub fn describe(&self) -> Ended<Vec<Vec<Value>>> {
        let host = Host { context: None, calls: None, failure: None };
        let (result, is_reusable) = self.within(host, |host| self.describe.call((host, 0)));
        let words = |value: Value| {
            let Value::Table(lines) = value else { return Ok(Vec::new()) };
            let lines: mlua::Result<Vec<Table>> = lines.sequence_values().collect();
            lines?.iter().map(|line| (1..=4).map(|at| line.raw_get(at)).collect()).collect()
        };
        let result = result.and_then(|value| {
            words(value).map_err(|error: mlua::Error| Failure::broken(text_of(&error)))
        });
        Ended { result, is_reusable }
    }

    /// Runs `call` within the limits, with the function by which the script reaches `host`. Answers
    /// what came of it, and whether the machine can be used again.
    fn within(
        &self,
        host: Host<'_>,
        call: impl FnOnce(Function) -> mlua::Result<(i64, Value)>,
    ) -> (Result<Value, Failure>, bool) {
        let host = RefCell::new(host);
        let meter = &*self.meter;
        meter.begin(&self.limits);
        let result =
            self.lua.scope(|scope| {
                call(scope.create_function(|lua, asked: Asked| {
                    host.borrow_mut().serve(lua, meter, asked)
                })?)
            });
        let limit = meter.end();
        let is_out_of_memory = result.as_ref().is_err_and(is_memory);
        let failure = host.into_inner().failure;
        let result = match (failure, limit, result) {
            (Some(failure), _, _) => Err(failure),
            (None, Some(limit), _) => Err(met(limit, &self.limits)),
            (None, None, Err(_)) if is_out_of_memory => Err(met(Limit::Memory, &self.limits)),
            (None, None, Err(error)) => Err(Failure::broken(text_of(&error))),
            (None, None, Ok((ANSWERED, value))) => Ok(value),
            (None, None, Ok((CODE, code))) => Err(of_code(&code)),
            (None, None, Ok((_, text))) => Err(broken(&text)),
        };
        let is_large = self.lua.used_memory() > self.limits.memory / KEPT_MEMORY_PART;
        (result, !is_out_of_memory && !is_large)
    }
}

fn unmade(error: mlua::Error) -> Error {
    Error::unavailable("a virtual machine for a class cannot be made; give classes more memory")
        .with_source(text_of(&error))
}

/// A seed for the random numbers of a transaction, which are the same whenever it is run.
fn seed(transaction: u128) -> i32 {
    let [a, b, c, d] = [0, 32, 64, 96].map(|shift| (transaction >> shift) as u32);
    (a ^ b.rotate_left(8) ^ c.rotate_left(16) ^ d.rotate_left(24)) as i32
}

/// What a method returned, as bytes.
fn bytes_of(answer: &Value) -> Result<Bytes, Failure> {
    if answer.is_nil() {
        return Ok(Bytes::new());
    }
    value::with_bytes(answer, "what a method returns", Bytes::copy_from_slice)
        .map_err(|text| Failure::broken(format!("{text}: return one of these, or nothing")))
}

fn broken(text: &Value) -> Failure {
    match text {
        Value::String(text) => Failure::broken(text.to_string_lossy()),
        other => Failure::broken(format!("it failed with a {}", other.type_name())),
    }
}

/// The failure of a script for RADOS that returned or raised an error number.
fn of_code(code: &Value) -> Failure {
    let code = match code {
        Value::Integer(code) => i32::try_from(*code).ok(),
        Value::Number(code) if code.fract() == 0.0 && code.abs() < 1e9 => Some(*code as i32),
        _ => None,
    };
    let Some(code) = code else {
        return Failure::broken("it failed with a number that is no error number");
    };
    let kind = match code {
        -2 | -61 => ErrorKind::NotFound,
        -17 => ErrorKind::AlreadyExists,
        -1 | -13 => ErrorKind::PermissionDenied,
        -28 => ErrorKind::QuotaExceeded,
        -11 | -16 => ErrorKind::Conflict,
        _ => ErrorKind::InvalidArgument,
    };
    Failure::method(kind, format!("the handler failed with {code}")).with_code(code)
}

/// Whether the machine ran out of memory.
fn is_memory(error: &mlua::Error) -> bool {
    match error {
        mlua::Error::MemoryError(_) => true,
        mlua::Error::CallbackError { cause, .. } | mlua::Error::BadArgument { cause, .. } => {
            is_memory(cause)
        }
        mlua::Error::RuntimeError(text) => text.starts_with("not enough memory"),
        _ => false,
    }
}

/// What an error of the machine says, without the stack.
fn text_of(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => {
            text.clone()
        }
        mlua::Error::CallbackError { cause, .. } => text_of(cause),
        other => other.to_string(),
    };
    text.split("\nstack traceback:").next().unwrap_or_default().trim().to_owned()
}
