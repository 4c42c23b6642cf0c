//! The language of `tyr txn`: a transaction as text, one operation a line.
//!
//! ```text
//! # moves 5 from one counter to another, if the first still says 10
//! compare accounts alice 0 hex:0a00000000000000
//! apply   accounts alice 0 sub u64 5
//! apply   accounts bob   0 add u64 5
//! ```
//!
//! A line is words; [`words`] says how they are quoted. The whole script is parsed before
//! anything is done, and every complaint names its line. This module knows no store: what it
//! yields is run by `commands/txn.rs`.

mod words;

use tyr::{Data, Error, Key, Number, NumberType, Relation, Result, Transform, TransformKind};

use words::{Word, split};

/// One operation of a script, and where it stands.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// The line, counted from 1.
    pub line: usize,
    /// The name of the keyspace.
    pub keyspace: String,
    /// The blob's key, or what those begin with that are listed.
    pub key: Key,
    /// What is done.
    pub action: Action,
}

/// What a step does to its blob.
#[derive(Debug, PartialEq)]
#[allow(missing_docs, reason = "they are the operations of the store, with its arguments")]
pub enum Action {
    Create,
    Put { data: Data },
    Write { offset: u64, data: Data },
    Append { data: Data },
    AppendAt { offset: u64, data: Data },
    Truncate { len: u64 },
    Clear { offset: u64, len: u64 },
    Delete,
    Apply { offset: u64, transform: Transform },
    Compare { offset: u64, expected: Vec<u8> },
    CompareNumber { offset: u64, relation: Relation, value: Number },
    ExpectAbsent,
    ExpectPresent,
    Read { offset: u64, len: u64 },
    Get,
    Stat,
    List,
}

impl Action {
    /// The word that a script says for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Put { .. } => "put",
            Self::Write { .. } => "write",
            Self::Append { .. } => "append",
            Self::AppendAt { .. } => "append-at",
            Self::Truncate { .. } => "truncate",
            Self::Clear { .. } => "clear",
            Self::Delete => "delete",
            Self::Apply { .. } => "apply",
            Self::Compare { .. } => "compare",
            Self::CompareNumber { .. } => "compare-number",
            Self::ExpectAbsent => "expect-absent",
            Self::ExpectPresent => "expect-present",
            Self::Read { .. } => "read",
            Self::Get => "get",
            Self::Stat => "stat",
            Self::List => "list",
        }
    }
}

/// The form of every operation, for complaints and help.
pub const FORMS: [(&str, &str); 17] = [
    ("create", "create KEYSPACE KEY"),
    ("put", "put KEYSPACE KEY DATA"),
    ("write", "write KEYSPACE KEY OFFSET DATA"),
    ("append", "append KEYSPACE KEY DATA"),
    ("append-at", "append-at KEYSPACE KEY OFFSET DATA"),
    ("truncate", "truncate KEYSPACE KEY LEN"),
    ("clear", "clear KEYSPACE KEY OFFSET LEN"),
    ("delete", "delete KEYSPACE KEY"),
    ("apply", "apply KEYSPACE KEY OFFSET KIND TYPE VALUE"),
    ("compare", "compare KEYSPACE KEY OFFSET DATA"),
    ("compare-number", "compare-number KEYSPACE KEY OFFSET TYPE RELATION VALUE"),
    ("expect-absent", "expect-absent KEYSPACE KEY"),
    ("expect-present", "expect-present KEYSPACE KEY"),
    ("read", "read KEYSPACE KEY OFFSET LEN"),
    ("get", "get KEYSPACE KEY"),
    ("stat", "stat KEYSPACE KEY"),
    ("list", "list KEYSPACE PREFIX"),
];

/// The steps of `script`.
///
/// # Errors
/// `InvalidArgument` that names the line and what it should look like.
pub fn parse(script: &[u8]) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for (index, line) in script.split(|byte| *byte == b'\n').enumerate() {
        let line_number = index + 1;
        let at_line = |error: Error| error.context(format_args!("line {line_number}"));
        let text = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).map_err(|_| {
            at_line(Error::invalid("it is not UTF-8; give other bytes as hex: or base64:"))
        })?;
        let words = split(text).map_err(at_line)?;
        if !words.is_empty() {
            steps.push(parse_step(line_number, &words).map_err(at_line)?);
        }
    }
    Ok(steps)
}

fn parse_step(line: usize, words: &[Word]) -> Result<Step> {
    let name = words[0].text()?;
    let (_, form) = named("operation", name, &FORMS, |(known, _)| known)?;
    let wanted = form.split(' ').count();
    if words.len() != wanted {
        return Err(Error::invalid(format!(
            "it has {} words where {wanted} belong: {form}",
            words.len()
        )));
    }
    let keyspace = words[1].text()?.to_owned();
    let key = Key::new(words[2].bytes()?)?;
    Ok(Step { line, keyspace, key, action: parse_action(name, &words[3..])? })
}

/// The action `name` of the operands after the key; their number is right.
fn parse_action(name: &str, operands: &[Word]) -> Result<Action> {
    Ok(match name {
        "create" => Action::Create,
        "put" => Action::Put { data: operands[0].data()? },
        "write" => Action::Write { offset: operands[0].count()?, data: operands[1].data()? },
        "append" => Action::Append { data: operands[0].data()? },
        "append-at" => Action::AppendAt { offset: operands[0].count()?, data: operands[1].data()? },
        "truncate" => Action::Truncate { len: operands[0].count()? },
        "clear" => Action::Clear { offset: operands[0].count()?, len: operands[1].count()? },
        "delete" => Action::Delete,
        "apply" => {
            let kind = parse_kind(operands[1].text()?)?;
            let number = parse_number(operands[2].text()?, operands[3].text()?)?;
            Action::Apply { offset: operands[0].count()?, transform: Transform::new(kind, number)? }
        }
        "compare" => {
            Action::Compare { offset: operands[0].count()?, expected: operands[1].bytes()? }
        }
        "compare-number" => Action::CompareNumber {
            offset: operands[0].count()?,
            relation: named("relation", operands[2].text()?, &Relation::ALL, Relation::sign)?,
            value: parse_number(operands[1].text()?, operands[3].text()?)?,
        },
        "expect-absent" => Action::ExpectAbsent,
        "expect-present" => Action::ExpectPresent,
        "read" => Action::Read { offset: operands[0].count()?, len: operands[1].count()? },
        "get" => Action::Get,
        "stat" => Action::Stat,
        "list" => Action::List,
        other => return Err(Error::invalid(format!("there is no operation \"{other}\""))),
    })
}

/// The kind of transform of this name.
///
/// # Errors
/// `InvalidArgument` with all the names.
pub fn parse_kind(name: &str) -> Result<TransformKind> {
    named("transform", name, &TransformKind::ALL, TransformKind::name)
}

/// The number `value` of the type of this name.
///
/// # Errors
/// `InvalidArgument` with all the names, or when `value` is no such number.
pub fn parse_number(type_name: &str, value: &str) -> Result<Number> {
    Number::parse(named("number type", type_name, &NumberType::ALL, NumberType::name)?, value)
}

/// That of `all` which is called `name`; `what` they are is for who mistypes it.
fn named<T: Copy>(
    what: &str,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T> {
    all.iter().copied().find(|it| name_of(*it) == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|it| name_of(*it)).collect();
        Error::invalid(format!(
            "there is no {what} \"{}\"; there are {}",
            name.escape_debug(),
            names.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests;
