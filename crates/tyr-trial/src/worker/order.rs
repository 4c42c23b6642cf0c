//! What a worker is told, and what it answers, as words of a line.
//!
//! | order | answer |
//! |---|---|
//! | `read BLOB START LEN` | the bytes |
//! | `size BLOB` | its size in bytes, 0 where there is none |
//! | `many [BLOB START LEN]…` | the bytes of each, all of one moment |
//! | `snapshot [BLOB START LEN]…` | the same, of a snapshot that is taken for it |
//! | `begin` | nothing: a transaction is open, in place of one that was |
//! | `in BLOB START LEN` | the bytes, read in the transaction |
//! | `commit [CHANGE]…` | what each change answers |
//! | `outcome` | the same, of the commit before, which ended as `TimedOut` |
//!
//! A `BLOB` is the place of its keyspace among those of the command line, from 0, and its key,
//! which has no spaces. A `CHANGE` is `append BLOB BYTES`, `put BLOB BYTES`, `compare BLOB BYTES`
//! (at its start) or `add BLOB N` (to the unsigned number of 64 bits at its start). `BYTES` are `=`
//! and hexadecimal digits; `-` is no such blob.
//!
//! An answer is `ok` and its words, of a change the offset or the number, or `.` for nothing; or
//! `error`, the kind's name, and a text.

use std::fmt::{Display, Formatter, Write};

use tyr_types::{Bytes, Error, ErrorKind, Result};

/// A part of a blob that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The place of its keyspace.
    pub keyspace: usize,
    /// Its key.
    pub key: String,
    /// The first byte.
    pub start: u64,
    /// How many bytes, fewer where the blob ends.
    pub len: u64,
}

/// A change that is to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The place of the blob's keyspace.
    pub keyspace: usize,
    /// Its key.
    pub key: String,
    /// What becomes of it.
    pub what: What,
}

/// What becomes of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Bytes are appended; answers where.
    Append(Bytes),
    /// It is these bytes, and nothing else.
    Put(Bytes),
    /// It must begin with these bytes.
    Compare(Bytes),
    /// To the number at its start is added; answers the sum.
    Add(u64),
}

/// What a worker is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Reads.
    Read(Wanted),
    /// Tells a blob's size.
    Size {
        /// The place of its keyspace.
        keyspace: usize,
        /// Its key.
        key: String,
    },
    /// Reads several at one moment.
    Many(Vec<Wanted>),
    /// Reads several in a snapshot.
    Snapshot(Vec<Wanted>),
    /// Begins a transaction.
    Begin,
    /// Reads in the transaction.
    In(Wanted),
    /// Commits changes with the transaction that was begun, or one of their own.
    Commit(Vec<Change>),
    /// Asks what became of the last commit.
    Outcome,
}

/// A word of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// What was read.
    Bytes(Bytes),
    /// There is no such blob.
    Absent,
    /// An offset, a size, a sum.
    Number(u64),
    /// Done, and there is nothing to tell.
    Done,
}

impl Display for Wanted {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {} {}", self.keyspace, self.key, self.start, self.len)
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let (keyspace, key) = (self.keyspace, &self.key);
        match &self.what {
            What::Append(bytes) => write!(f, "append {keyspace} {key} {}", hex(bytes)),
            What::Put(bytes) => write!(f, "put {keyspace} {key} {}", hex(bytes)),
            What::Compare(bytes) => write!(f, "compare {keyspace} {key} {}", hex(bytes)),
            What::Add(more) => write!(f, "add {keyspace} {key} {more}"),
        }
    }
}

impl Display for Order {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(wanted) => write!(f, "read {wanted}"),
            Self::Size { keyspace, key } => write!(f, "size {keyspace} {key}"),
            Self::Many(wanted) => all(f, "many", wanted),
            Self::Snapshot(wanted) => all(f, "snapshot", wanted),
            Self::Begin => f.write_str("begin"),
            Self::In(wanted) => write!(f, "in {wanted}"),
            Self::Commit(changes) => all(f, "commit", changes),
            Self::Outcome => f.write_str("outcome"),
        }
    }
}

fn all(f: &mut Formatter<'_>, verb: &str, some: &[impl Display]) -> std::fmt::Result {
    f.write_str(verb)?;
    some.iter().try_for_each(|one| write!(f, " {one}"))
}

impl Display for Told {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&hex(bytes)),
            Self::Absent => f.write_str("-"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Done => f.write_str("."),
        }
    }
}

impl Order {
    /// The order of a line.
    ///
    /// # Errors
    /// `InvalidArgument` for lines that are none.
    pub fn parse(line: &str) -> Result<Self> {
        let mut words = Words { all: line, left: line.split(' ') };
        let order = match words.next()? {
            "read" => Self::Read(words.wanted()?),
            "size" => Self::Size { keyspace: words.number()? as usize, key: words.text()? },
            "many" => Self::Many(words.rest(Words::wanted)?),
            "snapshot" => Self::Snapshot(words.rest(Words::wanted)?),
            "begin" => Self::Begin,
            "in" => Self::In(words.wanted()?),
            "commit" => Self::Commit(words.rest(Words::change)?),
            "outcome" => Self::Outcome,
            _ => return Err(words.wrong()),
        };
        match words.left.next() {
            None => Ok(order),
            Some(_) => Err(words.wrong()),
        }
    }
}

/// The line that answers.
pub fn answer(done: &Result<Vec<Told>>) -> String {
    match done {
        Ok(told) => told.iter().fold("ok".to_owned(), |line, word| format!("{line} {word}")),
        Err(error) => {
            let text = error.to_string().replace('\n', " ");
            format!("error {} {text}", error.kind().name())
        }
    }
}

/// What a line answers.
///
/// # Errors
/// The error that it tells; `Corrupt` for lines that are no answers.
pub fn answered(line: &str) -> Result<Vec<Told>> {
    let line = line.trim_end_matches('\n');
    if let Some(rest) = line.strip_prefix("error ") {
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let kind = ErrorKind::ALL.into_iter().find(|kind| kind.name() == name);
        return Err(Error::new(kind.unwrap_or(ErrorKind::Corrupt), format!("{name}: {text}")));
    }
    let wrong = || Error::corrupt(format!("a worker answers {line:?}"));
    let told = line.strip_prefix("ok").ok_or_else(wrong)?;
    told.split_ascii_whitespace().map(|word| one_told(word).ok_or_else(wrong)).collect()
}

fn one_told(word: &str) -> Option<Told> {
    match word {
        "-" => Some(Told::Absent),
        "." => Some(Told::Done),
        _ => match unhex(word) {
            Some(bytes) => Some(Told::Bytes(bytes)),
            None => word.parse().ok().map(Told::Number),
        },
    }
}

/// The words of an order that were not looked at yet.
struct Words<'a> {
    all: &'a str,
    left: std::str::Split<'a, char>,
}

impl<'a> Words<'a> {
    fn wrong(&self) -> Error {
        Error::invalid(format!("a worker is told {:?}", self.all))
    }

    fn next(&mut self) -> Result<&'a str> {
        self.left.next().ok_or_else(|| self.wrong())
    }

    fn number(&mut self) -> Result<u64> {
        self.next()?.parse().map_err(|_| self.wrong())
    }

    fn text(&mut self) -> Result<String> {
        self.next().map(str::to_owned)
    }

    fn bytes(&mut self) -> Result<Bytes> {
        unhex(self.next()?).ok_or_else(|| self.wrong())
    }

    fn wanted(&mut self) -> Result<Wanted> {
        let (keyspace, key) = (self.number()? as usize, self.text()?);
        Ok(Wanted { keyspace, key, start: self.number()?, len: self.number()? })
    }

    fn change(&mut self) -> Result<Change> {
        let (verb, keyspace, key) = (self.next()?, self.number()? as usize, self.text()?);
        let what = match verb {
            "append" => What::Append(self.bytes()?),
            "put" => What::Put(self.bytes()?),
            "compare" => What::Compare(self.bytes()?),
            "add" => What::Add(self.number()?),
            _ => return Err(self.wrong()),
        };
        Ok(Change { keyspace, key, what })
    }

    /// All that there are until the line ends.
    fn rest<T>(&mut self, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while self.left.clone().next().is_some() {
            all.push(one(self)?);
        }
        Ok(all)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("=".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes what is written to it");
        text
    })
}

fn unhex(word: &str) -> Option<Bytes> {
    let (pairs, rest) = word.strip_prefix('=')?.as_bytes().as_chunks::<2>();
    let one = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    rest.is_empty().then(|| pairs.iter().map(one).collect::<Option<Vec<u8>>>())?.map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_answers_are_the_same_in_lines() {
        let wanted = |key: &str| Wanted { keyspace: 1, key: key.to_owned(), start: 8, len: 16 };
        let change = |what| Change { keyspace: 0, key: "b".to_owned(), what };
        let bytes = Bytes::from_static(&[0, 255, 16]);
        let changes = vec![
            change(What::Append(bytes.clone())),
            change(What::Put(Bytes::new())),
            change(What::Compare(bytes.clone())),
            change(What::Add(u64::MAX)),
        ];
        for order in [
            Order::Read(wanted("a")),
            Order::Size { keyspace: 2, key: "a".to_owned() },
            Order::Many(vec![wanted("a"), wanted("b")]),
            Order::Snapshot(vec![wanted("c")]),
            Order::Begin,
            Order::In(wanted("d")),
            Order::Commit(changes),
            Order::Commit(Vec::new()),
            Order::Outcome,
        ] {
            assert_eq!(Order::parse(&order.to_string()).unwrap(), order, "{order}");
        }
        let told = vec![Told::Bytes(bytes), Told::Absent, Told::Number(7), Told::Done];
        assert_eq!(answered(&answer(&Ok(told.clone()))).unwrap(), told);
        for kind in ErrorKind::ALL {
            let line = answer(&Err(Error::new(kind, "why\nnot")));
            assert_eq!(answered(&line).unwrap_err().kind(), kind, "{line}");
        }
    }

    #[test]
    fn lines_that_are_none_are_refused() {
        for line in ["", "sing", "read 0 a 1", "read 0 a 1 2 3", "commit put 0 a 00", "size a a"] {
            assert_eq!(Order::parse(line).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        for line in ["", "well", "ok =0", "ok =0g", "ok x"] {
            assert_eq!(answered(line).unwrap_err().kind(), ErrorKind::Corrupt, "{line}");
        }
    }
}
