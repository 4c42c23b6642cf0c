//! InfluxDB's line protocol: one line is one point with any number of fields.
//!
//! ```text
//!   measurement,tag=value,tag=value field=1.5,field=3i,field="text",field=t 1700000000000000000
//! ```
//!
//! Escapes are `\,` `\=` `\ ` in names and tag values (`\=` not in the measurement), `\"` and `\\`
//! in quoted strings; before anything else a backslash is itself. A quoted string may hold line
//! breaks. Lines that begin with `#`, and empty ones, say nothing.

use std::borrow::Cow;
use std::fmt;

/// One point.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    /// Its measurement.
    pub measurement: Cow<'a, str>,
    /// Its tags, in the order of the line.
    pub tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Its fields, at least one.
    pub fields: Vec<(Cow<'a, str>, FieldValue)>,
    /// Its time, in the unit of the request.
    pub timestamp: Option<i64>,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue {
    /// A float, an integer, or a boolean as 0 or 1.
    Number(f64),
    /// A string; it has no place in a series of numbers.
    Text,
}

/// What is wrong with a line, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedLine(pub String);

impl fmt::Display for MalformedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn malformed<T>(what: impl Into<String>) -> Result<T, MalformedLine> {
    Err(MalformedLine(what.into()))
}

/// Goes through the lines of a body, with their numbers from 1 on.
pub struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    /// The lines of this body.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body, number: 1 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, Result<Line<'a>, MalformedLine>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (bytes, rest) = split_line(self.rest);
            let number = self.number;
            self.rest = rest;
            self.number += 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
            let Ok(text) = std::str::from_utf8(bytes) else {
                return Some((number, malformed("it is not UTF-8")));
            };
            let text = text.trim_start().trim_end_matches([' ', '\t', '\r']);
            if !text.is_empty() && !text.starts_with('#') {
                return Some((number, parse(text)));
            }
        }
        None
    }
}

/// Splits off the first line. Within a quoted field value a line break is part of the value,
/// unless the quote never ends.
fn split_line(body: &[u8]) -> (&[u8], &[u8]) {
    let is_comment = body.trim_ascii_start().starts_with(b"#");
    let mut first_break = None;
    let mut is_quoted = false;
    let (mut has_fields, mut equals, mut commas) = (false, 0_u32, 0_u32);
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            b'\\' if !is_comment => at += 1,
            b'\n' if !is_quoted => return (&body[..at], &body[at + 1..]),
            b'\n' => first_break = first_break.or(Some(at)),
            b' ' if at > 0 => has_fields = true,
            b'=' if has_fields && !is_quoted => equals += 1,
            b',' if has_fields && !is_quoted => commas += 1,
            b'"' if is_quoted || (!is_comment && equals > commas) => {
                is_quoted = !is_quoted;
                if is_quoted {
                    first_break = None;
                }
            }
            _ => {}
        }
        at += 1;
    }
    match first_break {
        Some(at) if is_quoted => (&body[..at], &body[at + 1..]),
        Some(_) | None => (body, &[]),
    }
}

/// Parses one line without its line break.
///
/// # Errors
/// What is wrong with it.
pub fn parse(line: &str) -> Result<Line<'_>, MalformedLine> {
    let mut cursor = Cursor { text: line, at: 0 };
    let measurement = cursor.name(b", ", b", ");
    if measurement.is_empty() {
        return malformed("it has no measurement");
    }
    let mut tags = Vec::new();
    while cursor.skip(b',') {
        let key = cursor.name(b"=, ", b",= ");
        if !cursor.skip(b'=') {
            return malformed(format!("tag \"{}\" has no value", key.escape_debug()));
        }
        let value = cursor.name(b", ", b",= ");
        if key.is_empty() || value.is_empty() {
            return malformed("a tag has an empty name or value");
        }
        tags.push((key, value));
    }
    cursor.skip_spaces();
    let mut fields = Vec::new();
    loop {
        let key = cursor.name(b"=, ", b",= ");
        if key.is_empty() || !cursor.skip(b'=') {
            return malformed(match (fields.is_empty(), key.is_empty()) {
                (true, true) => "it has no field".to_owned(),
                (_, false) => format!("field \"{}\" has no value", key.escape_debug()),
                (false, true) => "a field has no name".to_owned(),
            });
        }
        fields.push((key, cursor.field_value()?));
        if !cursor.skip(b',') {
            break;
        }
    }
    cursor.skip_spaces();
    let timestamp = cursor.rest();
    if timestamp.is_empty() {
        return Ok(Line { measurement, tags, fields, timestamp: None });
    }
    match timestamp.parse() {
        Ok(time) => Ok(Line { measurement, tags, fields, timestamp: Some(time) }),
        Err(_) => malformed(format!("\"{}\" is not a timestamp", timestamp.escape_debug())),
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, byte: u8) -> bool {
        let is_there = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_spaces(&mut self) {
        while self.skip(b' ') || self.skip(b'\t') {}
    }

    /// The text up to one of `ends`, without the backslashes before the `escapable`.
    fn name(&mut self, ends: &[u8], escapable: &[u8]) -> Cow<'a, str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while let Some(byte) = bytes.get(self.at) {
            let is_escape =
                *byte == b'\\' && bytes.get(self.at + 1).is_some_and(|b| escapable.contains(b));
            if is_escape {
                self.at += 2;
            } else if ends.contains(byte) {
                break;
            } else {
                self.at += 1;
            }
        }
        unescape(&self.text[start..self.at], escapable)
    }

    fn field_value(&mut self) -> Result<FieldValue, MalformedLine> {
        if self.skip(b'"') {
            return self.skip_string();
        }
        let start = self.at;
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(|byte| !b", \t".contains(byte)) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        match parse_number(text) {
            Some(number) => Ok(FieldValue::Number(number)),
            None => {
                malformed(format!("\"{}\" is not a value; strings are quoted", text.escape_debug()))
            }
        }
    }

    fn skip_string(&mut self) -> Result<FieldValue, MalformedLine> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => {
                    return match bytes.get(self.at) {
                        None | Some(b',' | b' ' | b'\t') => Ok(FieldValue::Text),
                        Some(_) => malformed("something follows a quoted string"),
                    };
                }
                b'\\' => self.at += 1,
                _ => {}
            }
        }
        malformed("a quoted string does not end")
    }
}

fn unescape<'a>(text: &'a str, escapable: &[u8]) -> Cow<'a, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_escape = character == '\\'
            && characters.peek().is_some_and(|next| {
                u8::try_from(*next).is_ok_and(|byte| escapable.contains(&byte))
            });
        if !is_escape {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// A float, an integer (`3i`), an unsigned integer (`3u`) or a boolean.
fn parse_number(text: &str) -> Option<f64> {
    match text {
        "t" | "T" | "true" | "True" | "TRUE" => return Some(1.0),
        "f" | "F" | "false" | "False" | "FALSE" => return Some(0.0),
        _ => {}
    }
    if let Some(integer) = text.strip_suffix('i') {
        return integer.parse::<i64>().ok().map(|number| number as f64);
    }
    if let Some(unsigned) = text.strip_suffix('u') {
        return unsigned.parse::<u64>().ok().map(|number| number as f64);
    }
    // Rust also reads "inf" and "nan"; the protocol does not.
    let is_decimal = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    if is_decimal { text.parse().ok() } else { None }
}
