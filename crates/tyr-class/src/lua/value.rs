//! What comes from scripts and goes to them: bytes, numbers, names.
//!
//! Bytes come as strings or buffers, and go as buffers. Offsets and lengths are numbers up to 2^53,
//! up to where every integer is one. 64-bit numbers of transforms may be strings of digits, and are
//! that where they are beyond 2^53. Versions are strings of 16 bytes that compare as versions do.

use mlua::{Lua, Value};
use tyr_types::{Number, NumberType};

/// The largest integer up to which a script's number can be every integer.
pub const EXACT_MAX: u64 = 1 << 53;

/// Why a value is refused.
pub type Refused<T> = Result<T, String>;

/// What a value is, with its article.
pub fn kind_of(value: &Value) -> String {
    let name = value.type_name();
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    if value.is_nil() { name.to_owned() } else { format!("{article} {name}") }
}

/// Runs `f` on the bytes of a string or a buffer.
pub fn with_bytes<R>(value: &Value, what: &str, f: impl FnOnce(&[u8]) -> R) -> Refused<R> {
    match value {
        Value::String(text) => Ok(f(&text.as_bytes())),
        Value::Buffer(buffer) => Ok(f(&buffer.to_vec())),
        other => Err(format!("{what} is a string or a buffer, not {}", kind_of(other))),
    }
}

/// A whole number from 0 to 2^53.
pub fn offset(value: &Value, what: &str) -> Refused<u64> {
    let number = match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Number(number) if number.fract() == 0.0 && *number >= 0.0 => Some(*number as u64),
        Value::Number(_) => None,
        other => return Err(format!("{what} is a number, not {}", kind_of(other))),
    };
    number.filter(|number| *number <= EXACT_MAX).ok_or_else(|| {
        format!("{what} is a whole number from 0 to 2^53, up to where numbers are exact")
    })
}

/// As [`offset`], with what holds where nothing is given.
pub fn offset_or(value: &Value, what: &str, default: u64) -> Refused<u64> {
    if value.is_nil() { Ok(default) } else { offset(value, what) }
}

/// A text.
pub fn text(value: &Value, what: &str) -> Refused<String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(format!("{what} is a string, not {}", kind_of(other))),
    }
}

/// The one of `all` that is called `value`.
pub fn named<T: Copy>(
    value: &Value,
    what: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Refused<T> {
    let given = text(value, what)?;
    let found = all.iter().copied().find(|it| name(*it) == given);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|it| name(*it)).collect();
        let given: String = given.chars().take(40).collect();
        format!("{what} is one of {}, not \"{}\"", names.join(", "), given.escape_debug())
    })
}

/// A number of this type.
pub fn number(value: &Value, number_type: NumberType) -> Refused<Number> {
    let text = match value {
        Value::Integer(number) => number.to_string(),
        Value::Number(number) if number_type.is_float() => number.to_string(),
        Value::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT_MAX as f64 => {
            format!("{number:.0}")
        }
        Value::Number(_) => {
            let name = number_type.name();
            return Err(format!(
                "the operand is a whole number for {name}; give it as a string of \
                                digits beyond 2^53"
            ));
        }
        other => text(other, "the operand")?,
    };
    Number::parse(number_type, &text).map_err(|error| error.message().to_owned())
}

/// A number for a script: a string of digits where numbers are not exact.
pub fn from_number(lua: &Lua, number: Number) -> mlua::Result<Value> {
    let whole = |value: i128| {
        if value.unsigned_abs() <= u128::from(EXACT_MAX) {
            Ok(Value::Number(value as f64))
        } else {
            lua.create_string(value.to_string()).map(Value::String)
        }
    };
    match number {
        Number::F32(value) => Ok(Value::Number(f64::from(value))),
        Number::F64(value) => Ok(Value::Number(value)),
        Number::I8(value) => whole(value.into()),
        Number::I16(value) => whole(value.into()),
        Number::I32(value) => whole(value.into()),
        Number::I64(value) => whole(value.into()),
        Number::U8(value) => whole(value.into()),
        Number::U16(value) => whole(value.into()),
        Number::U32(value) => whole(value.into()),
        Number::U64(value) => whole(value.into()),
    }
}

/// A size or an offset for a script.
pub fn from_offset(value: u64, what: &str) -> Refused<Value> {
    if value <= EXACT_MAX {
        return Ok(Value::Number(value as f64));
    }
    Err(format!("{what} is {value}, beyond 2^53, up to where numbers are exact"))
}

/// Bytes for a script.
pub fn from_bytes(lua: &Lua, bytes: &[u8]) -> mlua::Result<Value> {
    lua.create_buffer(bytes).map(Value::Buffer)
}
