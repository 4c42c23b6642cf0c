//! What a script asks for, and what it gets: the far side of the prelude's `ask`.
//!
//! What a script did wrong is *refused*: the prelude raises the text at the script's line, and the
//! script may catch it. What ends the call is an error of the virtual machine that the prelude lets
//! nobody catch, with its reason kept here; the meter then stops the script at its next safepoint.

use mlua::{Lua, Value};
use tyr_types::{Error, ErrorKind, NumberType, Transform, TransformKind};

use super::attributes;
use super::meter::Meter;
use super::value::{self, Refused};
use crate::context::{Companion, Context, LogLevel};
use crate::failure::Failure;
use crate::limits::MAP_LISTED_MAX;
use crate::map::Map;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount)]
pub enum Op {
    Read,
    Write,
    Append,
    Truncate,
    Create,
    Remove,
    Size,
    Stat,
    Transform,
    MapGet,
    MapSet,
    MapRemove,
    MapList,
    MapClear,
    MapHeader,
    AttributeGet,
    AttributeSet,
    AttributeRemove,
    AttributeList,
    Fail,
    Log,
    Call,
    Pass,
}

impl Op {
    /// All of them; the prelude names them by their place here.
    pub const ALL: [(Self, &'static str); <Self as strum::EnumCount>::COUNT] = [
        (Self::Read, "read"),
        (Self::Write, "write"),
        (Self::Append, "append"),
        (Self::Truncate, "truncate"),
        (Self::Create, "create"),
        (Self::Remove, "remove"),
        (Self::Size, "size"),
        (Self::Stat, "stat"),
        (Self::Transform, "transform"),
        (Self::MapGet, "map_get"),
        (Self::MapSet, "map_set"),
        (Self::MapRemove, "map_remove"),
        (Self::MapList, "map_list"),
        (Self::MapClear, "map_clear"),
        (Self::MapHeader, "map_header"),
        (Self::AttributeGet, "attribute_get"),
        (Self::AttributeSet, "attribute_set"),
        (Self::AttributeRemove, "attribute_remove"),
        (Self::AttributeList, "attribute_list"),
        (Self::Fail, "fail"),
        (Self::Log, "log"),
        (Self::Call, "call"),
        (Self::Pass, "pass"),
    ];
}

/// What a test of a class does besides looking at its blob.
pub trait Calls {
    /// Runs a method.
    ///
    /// # Errors
    /// Those of [`call`](crate::call()).
    fn call(&self, method: &str, input: &[u8]) -> Result<tyr_types::Bytes, Failure>;

    /// Lets so many microseconds pass.
    fn pass(&self, us: u64);
}

/// The far side of one call.
pub struct Host<'a> {
    /// The blob; `None` while the class is described.
    pub context: Option<&'a mut dyn Context>,
    /// What runs methods, in a test.
    pub calls: Option<&'a dyn Calls>,
    /// Why the call is over.
    pub failure: Option<Failure>,
}

/// What is asked: an operation and what it takes.
pub type Asked = (usize, Value, Value, Value, Value);

/// What is answered: a refusal, or values.
pub type Answered = (Option<String>, Value, Value, Value, Value);

/// Why something is not answered.
enum Unanswered {
    /// What was asked for is wrong.
    Refused(String),
    /// The call is over.
    Ended(Failure),
    /// The virtual machine has no more memory.
    Machine(mlua::Error),
}

impl From<String> for Unanswered {
    fn from(text: String) -> Self {
        Self::Refused(text)
    }
}

impl From<mlua::Error> for Unanswered {
    fn from(error: mlua::Error) -> Self {
        Self::Machine(error)
    }
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        Self::Ended(Failure::Context(error))
    }
}

type Values = Result<[Value; 4], Unanswered>;

const NIL: Value = Value::Nil;

fn one(value: Value) -> Values {
    Ok([value, NIL, NIL, NIL])
}

fn nothing() -> Values {
    Ok([NIL, NIL, NIL, NIL])
}

impl Host<'_> {
    /// Answers what a script asks.
    ///
    /// # Errors
    /// When the call is over.
    pub fn serve(&mut self, lua: &Lua, meter: &Meter, asked: Asked) -> mlua::Result<Answered> {
        match self.answer(lua, &asked) {
            Ok([a, b, c, d]) => Ok((None, a, b, c, d)),
            Err(Unanswered::Refused(text)) => Ok((Some(text), NIL, NIL, NIL, NIL)),
            Err(Unanswered::Machine(error)) => Err(error),
            Err(Unanswered::Ended(failure)) => {
                self.failure.get_or_insert(failure);
                meter.stop();
                Err(mlua::Error::runtime("the call is over"))
            }
        }
    }

    fn answer(&mut self, lua: &Lua, asked: &Asked) -> Values {
        let (op, a, b, c, d) = asked;
        let (op, _) = Op::ALL.get(*op).ok_or_else(|| "there is no such operation".to_owned())?;
        if let Some(failure) = &self.failure {
            return Err(Unanswered::Ended(failure.duplicate()));
        }
        let Some(context) = self.context.as_deref_mut() else {
            let text = "nothing can be asked for while the class is made: do it in a method";
            return Err(Unanswered::Ended(Failure::broken(text)));
        };
        match op {
            Op::Read => {
                let (offset, len) =
                    (value::offset(a, "the offset")?, value::offset(b, "the length")?);
                let bytes = context.read(offset, len)?;
                one(value::from_bytes(lua, &bytes)?)
            }
            Op::Write => {
                let offset = value::offset(a, "the offset")?;
                value::with_bytes(b, "what is written", |data| context.write(offset, data))??;
                nothing()
            }
            Op::Append => {
                let offset = value::with_bytes(a, "what is appended", |it| context.append(it))??;
                one(value::from_offset(offset, "where the blob ended")?)
            }
            Op::Truncate => {
                context.truncate(value::offset(a, "the size")?)?;
                nothing()
            }
            Op::Create => one(Value::Boolean(context.create()?)),
            Op::Remove => one(Value::Boolean(context.remove()?)),
            Op::Size => size(context),
            Op::Stat => stat(lua, context),
            Op::Transform => transform(lua, context, [a, b, c, d]),
            Op::MapGet => get(lua, context, &map_key(a)?),
            Op::MapSet => set(context, &map_key(a)?, b),
            Op::MapRemove => remove(context, &map_key(a)?),
            Op::MapList => list(lua, context, [a, b, c]),
            Op::MapClear => {
                attributes::clear_others(context)?;
                nothing()
            }
            Op::MapHeader => header(lua, context, a),
            Op::AttributeGet => get(lua, context, &attribute_key(a)?),
            Op::AttributeSet => set(context, &attribute_key(a)?, b),
            Op::AttributeRemove => remove(context, &attribute_key(a)?),
            Op::AttributeList => {
                let found = attributes::list(&mut Map::new(&mut Companion(context)));
                listed(lua, of_map(found)?)
            }
            Op::Fail => Err(failure(a, b, c)?),
            Op::Log => {
                let level = value::named(a, "the level", &LogLevel::ALL, LogLevel::name)?;
                context.log(level, &value::text(b, "the text")?);
                nothing()
            }
            Op::Call => self.call(lua, a, b),
            Op::Pass => {
                let us = value::offset(a, "the microseconds that pass")?;
                self.calls.ok_or_else(|| "time passes in a test only".to_owned())?.pass(us);
                nothing()
            }
        }
    }

    /// A method that a test calls.
    fn call(&mut self, lua: &Lua, method: &Value, input: &Value) -> Values {
        let Some(calls) = self.calls else {
            return Err("only a test calls methods".to_owned().into());
        };
        let method = value::text(method, "the method")?;
        let result = if input.is_nil() {
            calls.call(&method, &[])
        } else {
            value::with_bytes(input, "the input", |input| calls.call(&method, input))?
        };
        match result {
            Ok(answer) => one(value::from_bytes(lua, &answer)?),
            Err(failure) => {
                let code = match &failure {
                    Failure::Method { code, .. } => *code,
                    Failure::Broken { .. } | Failure::Limit { .. } | Failure::Context(_) => 0,
                };
                let kind = lua.create_string(failure.kind().name())?;
                let text = lua.create_string(failure.to_string())?;
                Ok([NIL, Value::String(kind), Value::String(text), Value::Integer(code.into())])
            }
        }
    }
}

/// The failure that a method says it has.
fn failure(kind: &Value, text: &Value, code: &Value) -> Refused<Unanswered> {
    let kind = value::named(kind, "the kind", &Failure::METHOD_KINDS, ErrorKind::name)?;
    let code = if code.is_nil() { 0 } else { self::code(code)? };
    let failure = Failure::method(kind, value::text(text, "the text")?).with_code(code);
    Ok(Unanswered::Ended(failure))
}

fn code(value: &Value) -> Refused<i32> {
    match value {
        Value::Integer(code) => i32::try_from(*code).ok(),
        _ => None,
    }
    .ok_or_else(|| "the code is a whole number of 32 bits".to_owned())
}

fn size(context: &mut dyn Context) -> Values {
    let size = context.size()?;
    let shown = value::from_offset(size.unwrap_or(0), "the size of the blob")?;
    Ok([shown, Value::Boolean(size.is_some()), NIL, NIL])
}

fn stat(lua: &Lua, context: &mut dyn Context) -> Values {
    let stat = context.stat()?;
    let (size, version) = stat.map_or_else(Default::default, |stat| (stat.size, stat.version));
    let stamp = lua.create_string(version.to_stamp())?;
    let clock = value::from_offset(version.clock, "the clock of the version")?;
    let size = value::from_offset(size, "the size of the blob")?;
    Ok([size, Value::String(stamp), Value::Boolean(stat.is_some()), clock])
}

fn transform(lua: &Lua, context: &mut dyn Context, asked: [&Value; 4]) -> Values {
    let [offset, kind, number_type, operand] = asked;
    let offset = value::offset(offset, "the offset")?;
    let kind = value::named(kind, "the kind", &TransformKind::ALL, TransformKind::name)?;
    let number_type = value::named(number_type, "the type", &NumberType::ALL, NumberType::name)?;
    let operand = value::number(operand, number_type)?;
    let transform = Transform::new(kind, operand).map_err(|error| error.message().to_owned())?;
    let number = context.transform(offset, transform)?;
    one(value::from_number(lua, number)?)
}

/// Of errors of a map, what the script did wrong is refused; all else is of what the map is on.
fn of_map<T>(result: Result<T, Error>) -> Result<T, Unanswered> {
    result.map_err(|error| {
        if error.kind() == ErrorKind::InvalidArgument {
            Unanswered::Refused(error.message().to_owned())
        } else {
            error.into()
        }
    })
}

fn map_key(value: &Value) -> Refused<Vec<u8>> {
    value::with_bytes(value, "the key", attributes::kept)
}

fn attribute_key(value: &Value) -> Refused<Vec<u8>> {
    value::with_bytes(value, "the name of the attribute", attributes::key)
}

fn get(lua: &Lua, context: &mut dyn Context, key: &[u8]) -> Values {
    match of_map(Map::new(&mut Companion(context)).get(key))? {
        Some(found) => one(value::from_bytes(lua, &found)?),
        None => nothing(),
    }
}

fn set(context: &mut dyn Context, key: &[u8], value: &Value) -> Values {
    let mut companion = Companion(context);
    let mut map = Map::new(&mut companion);
    of_map(value::with_bytes(value, "the value", |value| map.set(key, value))?)?;
    nothing()
}

fn remove(context: &mut dyn Context, key: &[u8]) -> Values {
    let was_there = of_map(Map::new(&mut Companion(context)).remove(key))?;
    one(Value::Boolean(was_there))
}

fn header(lua: &Lua, context: &mut dyn Context, value: &Value) -> Values {
    let mut companion = Companion(context);
    let mut map = Map::new(&mut companion);
    if value.is_nil() {
        return one(value::from_bytes(lua, &of_map(map.header())?)?);
    }
    of_map(value::with_bytes(value, "the header", |header| map.set_header(header))?)?;
    nothing()
}

fn list(lua: &Lua, context: &mut dyn Context, [prefix, after, count]: [&Value; 3]) -> Values {
    let prefix = value::with_bytes(prefix, "the prefix", <[u8]>::to_vec)?;
    let after = if after.is_nil() {
        Vec::new()
    } else {
        value::with_bytes(after, "the key before", <[u8]>::to_vec)?
    };
    let count = value::offset_or(count, "the count", LISTED_DEFAULT)?;
    let count = count.min(MAP_LISTED_MAX as u64) as usize;
    let mut companion = Companion(context);
    let mut map = Map::new(&mut companion);
    listed(lua, of_map(attributes::list_others(&mut map, &prefix, &after, count))?)
}

/// Entries of a listing that says no number.
const LISTED_DEFAULT: u64 = 100;

fn listed(lua: &Lua, entries: Vec<crate::map::Entry>) -> Values {
    let keys = lua.create_table_with_capacity(entries.len(), 0)?;
    let values = lua.create_table_with_capacity(entries.len(), 0)?;
    for (index, (key, found)) in entries.iter().enumerate() {
        keys.raw_set(index + 1, lua.create_string(key)?)?;
        values.raw_set(index + 1, value::from_bytes(lua, found)?)?;
    }
    Ok([Value::Table(keys), Value::Table(values), NIL, NIL])
}
