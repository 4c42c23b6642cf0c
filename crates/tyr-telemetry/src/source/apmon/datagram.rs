//! The datagram of ApMon, byte for byte.
//!
//! Everything is XDR (RFC 4506): big-endian, in units of four bytes; a string is its length, its
//! bytes, and zeros up to a multiple of four.
//!
//! ```text
//!   string   "v:VERSIONp:PASSWORD"     VERSION like 2.2.8_cpp or 2.2.20_py
//!   int      instance of the sender    from version 2.2 on
//!   int      sequence number           from version 2.2 on
//!   string   cluster
//!   string   node
//!   int      number of parameters
//!     string   name                    each parameter
//!     int      type                    0 string, 2 int32, 3 int64, 4 float, 5 double
//!     ...      value                   of that type
//!   int      seconds since 1970        optional, from version 1.6 on; 0 or less: none
//! ```
//!
//! The oldest clients send no version: their first string is the cluster. What is accepted follows
//! MonALISA's own receiver (`XDRUDP.java`), what is sent its clients (`apmon.py`, `ApMon.cpp`).

use std::fmt;

use crate::calendar::SECOND_US;

/// The longest string that MonALISA's receiver takes.
const STRING_LEN_MAX: usize = 32_767;

/// The shortest parameter: a name, a type and a value, each in a unit of four bytes but the name.
const PARAMETER_LEN_MIN: usize = 16;

/// One datagram, as far as it matters here.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    /// The cluster that the sender names.
    pub cluster: String,
    /// The node that the sender names.
    pub node: String,
    /// What it sends.
    pub parameters: Vec<Parameter>,
    /// Parameters after one without a name, which nobody reads; never more than have room in it.
    pub unread: u64,
    /// When the values were taken, where the sender says so.
    pub time_us: Option<i64>,
}

/// One parameter of a datagram.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, not empty.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number of any of the numeric types.
    Number(f64),
    /// A string; it has no place in a series of numbers.
    Text,
}

/// Why bytes are not a datagram that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MalformedDatagram {
    /// It ends within `what`, which begins at byte `at`.
    Cut {
        /// What was expected.
        what: &'static str,
        /// Where it begins.
        at: usize,
    },
    /// A string is longer than MonALISA allows.
    LongString {
        /// What the string is.
        what: &'static str,
        /// The length it claims.
        len: u32,
    },
    /// A parameter has a type that the format does not know.
    UnknownType {
        /// The parameter's name.
        name: String,
        /// The type it claims.
        code: u32,
    },
    /// The password is missing or wrong.
    WrongPassword,
}

impl fmt::Display for MalformedDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { what, at } => write!(f, "it ends within its {what}, at byte {at}"),
            Self::LongString { what, len } => {
                write!(f, "its {what} claims {len} bytes, the most is {STRING_LEN_MAX}")
            }
            Self::UnknownType { name, code } => {
                write!(f, "parameter \"{}\" has the unknown type {code}", name.escape_debug())
            }
            Self::WrongPassword => f.write_str("its password is missing or wrong"),
        }
    }
}

/// Decodes a datagram; where `password` is given, only with that one.
///
/// # Errors
/// What is wrong with it, and where.
pub fn decode(bytes: &[u8], password: Option<&str>) -> Result<Datagram, MalformedDatagram> {
    let mut reader = Reader { bytes, at: 0 };
    let header = reader.string("header")?;
    let header = header.trim();
    let split = header.strip_prefix("v:").and_then(|rest| rest.split_once("p:"));
    let given = split.map(|(_, password)| password.trim());
    if password.is_some() && given != password {
        return Err(MalformedDatagram::WrongPassword);
    }
    let version = split.and_then(|(version, _)| parse_version(version));
    if version.is_some_and(|version| version >= (2, 2)) {
        reader.int("instance")?;
        reader.int("sequence number")?;
    }
    let cluster = match version {
        Some(_) => reader.string("cluster")?,
        None => header.to_owned(),
    };
    let node = reader.string("node")?;
    let count = reader.int("number of parameters")?;
    let mut parameters = Vec::new();
    let mut unread = 0;
    for _ in 0..count {
        let name = reader.string("parameter name")?;
        if name.is_empty() {
            let room = 1 + (bytes.len() - reader.at) / PARAMETER_LEN_MIN;
            unread = (count as usize - parameters.len()).min(room) as u64;
            break;
        }
        let value = reader.value(&name)?;
        parameters.push(Parameter { name, value });
    }
    let has_time = unread == 0 && reader.has_more() && version.is_some_and(|v| v >= (1, 6));
    let seconds = if has_time { reader.int("time")? } else { 0 };
    let time_us = (seconds > 0).then(|| i64::from(seconds) * SECOND_US);
    Ok(Datagram { cluster, node, parameters, unread, time_us })
}

/// Major and minor number of a version like `2.2.8_cpp`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let numbers = text.trim().split(['_', '-']).next()?;
    let mut numbers = numbers.split('.').map(|number| number.parse().ok());
    let major = numbers.next()??;
    Some((major, numbers.next().flatten().unwrap_or(0)))
}

/// Reads XDR from a slice.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn has_more(&self) -> bool {
        self.at < self.bytes.len()
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], MalformedDatagram> {
        let taken = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<N>);
        let taken = *taken.ok_or(MalformedDatagram::Cut { what, at: self.at })?;
        self.at += N;
        Ok(taken)
    }

    fn int(&mut self, what: &'static str) -> Result<u32, MalformedDatagram> {
        self.take(what).map(u32::from_be_bytes)
    }

    fn string(&mut self, what: &'static str) -> Result<String, MalformedDatagram> {
        let at = self.at;
        let claimed = self.int(what)?;
        let len = claimed as usize;
        if len > STRING_LEN_MAX {
            return Err(MalformedDatagram::LongString { what, len: claimed });
        }
        let cut = MalformedDatagram::Cut { what, at };
        let text = self.bytes.get(self.at..self.at + len).ok_or(cut)?;
        // The padding of the last string may be missing, as MonALISA's receiver allows.
        self.at = (self.at + len.next_multiple_of(4)).min(self.bytes.len());
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn value(&mut self, name: &str) -> Result<Value, MalformedDatagram> {
        let what = "parameter value";
        Ok(match self.int("parameter type")? {
            0 => {
                self.string(what)?;
                Value::Text
            }
            2 => Value::Number(f64::from(i32::from_be_bytes(self.take(what)?))),
            3 => Value::Number(i64::from_be_bytes(self.take(what)?) as f64),
            4 => Value::Number(f64::from(f32::from_be_bytes(self.take(what)?))),
            5 => Value::Number(f64::from_be_bytes(self.take(what)?)),
            code => return Err(MalformedDatagram::UnknownType { name: name.to_owned(), code }),
        })
    }
}
