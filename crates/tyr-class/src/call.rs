//! A call: a method, run within what its class and its kind allow.
//!
//! What is checked here is checked for classes of any kind, in Lua and in Rust: the length of
//! input, reads, effect and answer, and that a query writes nothing (O8). What ended a call once is
//! what it ends with (O5): a method that goes on all the same is refused everything, and its answer
//! is not looked at.

use tyr_types::{Bytes, Error, ErrorKind, Number, Result, Stat, TransactionId, Transform};

use crate::class::Class;
use crate::context::{Context, LogLevel};
use crate::failure::{Failure, Limit, cut};
use crate::limits::{CALL_READ_LEN_MAX, CHANGE_COST, LOG_LINES_MAX};

/// Runs a method of a class beside the blob of `context`.
///
/// # Errors
/// Those of the method; that there is no such method; that it met a limit; those of the context.
/// Whoever runs it drops what it wrote then.
pub fn call(
    class: &dyn Class,
    method: &str,
    context: &mut dyn Context,
    input: &[u8],
) -> Result<Bytes, Failure> {
    let info = class.info();
    let index =
        info.method(method).map_err(|error| Failure::method(error.kind(), error.message()))?;
    let limits = info.limits();
    if input.len() > limits.input {
        return Err(met(Limit::Input, "input", limits.input, "send less, or in parts"));
    }
    let mut guarded = Guarded {
        context,
        is_writing: info.methods()[index].kind.is_writing(),
        effect_max: limits.effect,
        effect: 0,
        lines: 0,
        ended: None,
    };
    let result = class.run(index, &mut guarded, input);
    if let Some(ended) = guarded.ended {
        return Err(ended);
    }
    let answer = result?;
    if answer.len() > limits.answer {
        return Err(met(Limit::Answer, "answer", limits.answer, "answer in parts"));
    }
    Ok(answer)
}

fn met(limit: Limit, what: &str, max: impl std::fmt::Display, remedy: &str) -> Failure {
    let text = format!("the {what} of a call has at most {max} bytes, and this has more: {remedy}");
    Failure::Limit { limit, text }
}

/// A context within the limits of a call.
struct Guarded<'a> {
    context: &'a mut dyn Context,
    is_writing: bool,
    effect_max: usize,
    /// Bytes written so far, with what each change counts for.
    effect: usize,
    /// Lines logged so far.
    lines: usize,
    /// What ended the call.
    ended: Option<Failure>,
}

impl Guarded<'_> {
    /// Passes on to the context, unless the call has ended.
    fn pass<R>(&mut self, access: impl FnOnce(&mut dyn Context) -> Result<R>) -> Result<R> {
        if let Some(ended) = &self.ended {
            return Err(ended.duplicate().into());
        }
        access(self.context).map_err(|error| self.end(Failure::Context(error)))
    }

    /// As [`Guarded::pass`], for a change with `len` bytes.
    fn change<R>(
        &mut self,
        len: usize,
        access: impl FnOnce(&mut dyn Context) -> Result<R>,
    ) -> Result<R> {
        if self.ended.is_none() && !self.is_writing {
            let text = "a query wrote: make its kind \"call\", or write nothing";
            return Err(self.end(Failure::broken(text)));
        }
        self.effect = self.effect.saturating_add(len + CHANGE_COST);
        if self.ended.is_none() && self.effect > self.effect_max {
            let remedy = "write less in one call";
            return Err(self.end(met(Limit::Effect, "effect", self.effect_max, remedy)));
        }
        self.pass(access)
    }

    /// As [`Guarded::pass`], for a read of `len` bytes.
    fn read_of(
        &mut self,
        len: u64,
        size: impl FnOnce(&mut dyn Context) -> Result<u64>,
        offset: u64,
        access: impl FnOnce(&mut dyn Context, u64) -> Result<Bytes>,
    ) -> Result<Bytes> {
        let mut len = len;
        if len > CALL_READ_LEN_MAX {
            // Who asks for more than there is means all there is.
            len = len.min(self.pass(size)?.saturating_sub(offset));
        }
        if len > CALL_READ_LEN_MAX {
            let remedy = "read in parts";
            return Err(self.end(met(Limit::Read, "read", CALL_READ_LEN_MAX, remedy)));
        }
        self.pass(|context| access(context, len))
    }

    /// Ends the call, and answers an error for the method.
    fn end(&mut self, failure: Failure) -> Error {
        let error = Error::new(ErrorKind::Unavailable, format!("the call has ended: {failure}"));
        self.ended.get_or_insert(failure);
        error
    }
}

impl Context for Guarded<'_> {
    fn stat(&mut self) -> Result<Option<Stat>> {
        self.pass(|context| context.stat())
    }

    fn size(&mut self) -> Result<Option<u64>> {
        self.pass(|context| context.size())
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        let size = |context: &mut dyn Context| Ok(context.size()?.unwrap_or(0));
        self.read_of(len, size, offset, |context, len| context.read(offset, len))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.change(data.len(), |context| context.write(offset, data))
    }

    fn append(&mut self, data: &[u8]) -> Result<u64> {
        self.change(data.len(), |context| context.append(data))
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.change(0, |context| context.truncate(size))
    }

    fn create(&mut self) -> Result<bool> {
        self.change(0, |context| context.create())
    }

    fn remove(&mut self) -> Result<bool> {
        self.change(0, |context| context.remove())
    }

    fn transform(&mut self, offset: u64, transform: Transform) -> Result<Number> {
        self.change(0, |context| context.transform(offset, transform))
    }

    fn map_size(&mut self) -> Result<u64> {
        self.pass(|context| context.map_size())
    }

    fn map_read(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        let size = |context: &mut dyn Context| context.map_size();
        self.read_of(len, size, offset, |context, len| context.map_read(offset, len))
    }

    fn map_write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.change(data.len(), |context| context.map_write(offset, data))
    }

    fn map_truncate(&mut self, size: u64) -> Result<()> {
        self.change(0, |context| context.map_truncate(size))
    }

    fn now_us(&self) -> u64 {
        self.context.now_us()
    }

    fn caller(&self) -> &str {
        self.context.caller()
    }

    fn transaction(&self) -> TransactionId {
        self.context.transaction()
    }

    fn log(&mut self, level: LogLevel, text: &str) {
        self.lines += 1;
        if self.lines < LOG_LINES_MAX {
            self.context.log(level, &cut(text.to_owned()));
        } else if self.lines == LOG_LINES_MAX {
            let text =
                format!("the call logs more than {LOG_LINES_MAX} lines; the rest is left out");
            self.context.log(LogLevel::Warn, &text);
        }
    }
}
