//! Clients in processes of their own, that stand still or are killed in the middle of something.
//!
//! ```text
//!   workload ──► Puppet ══ lines of JSON ══► tyr-trial puppet ──► the public crate ──► cluster
//!                  └── stop, go on, kill: signals ──┘
//! ```
//!
//! A client within the trial could not stand still: its library has threads that go on, and renews
//! what it holds. [`Puppet`] is how a workload has one, [`serve()`] is what runs there. It is made
//! of the public crate and of those on it, as programs of users are: locks, payloads in pieces,
//! consumers of logs and files are made there.
//!
//! It must not know what workloads make of its answers.

mod files;
mod handle;
mod logs;
mod serve;

use serde::{Deserialize, Serialize};
use tyr_types::{Error, ErrorKind, Result};

#[cfg(test)]
pub(crate) use self::files::Files;
pub(crate) use self::files::crowd_name;
pub use self::files::{FileOrder, told};
pub use self::handle::{Plan, Puppet};
pub use self::logs::LogOrder;
pub use self::serve::{PuppetArguments, serve};
use crate::history::How;

/// What a puppet is to do. It does one thing at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Order {
    /// Takes a lock, and lets go of the one before; answers the token.
    Lock {
        /// The lock's key.
        key: String,
        /// How long it lasts unless it is renewed.
        lasts_ms: u64,
        /// How long to wait for it.
        wait_ms: u64,
    },
    /// Whether the lock is held, as far as it knows: answers 1 or 0.
    Held,
    /// Appends token and value to a blob, if nobody has got the lock since; answers the offset.
    Fenced {
        /// The blob.
        key: String,
        /// The value.
        value: u64,
    },
    /// The same, whoever has got the lock since: what a program does that was never taught better.
    Unfenced {
        /// The blob.
        key: String,
        /// The value.
        value: u64,
    },
    /// Gives the lock back, if nobody has got it since.
    Unlock,
    /// Puts, writes or appends a long payload; answers the offset of an append.
    Upload {
        /// The blob.
        key: String,
        /// By which its words are known.
        value: u64,
        /// How many words.
        len: u64,
        /// What becomes of the blob.
        how: How,
        /// Where it is written, or expected to be appended, in words.
        at: u64,
    },
    /// Begins to put such a payload, answers when half of it is sent, and never ends.
    Half {
        /// The blob.
        key: String,
        /// By which its words are known.
        value: u64,
        /// How many words.
        len: u64,
    },
    /// Deletes a blob.
    Delete {
        /// The blob.
        key: String,
    },
    /// Does something with a log.
    Log {
        /// What.
        order: LogOrder,
    },
    /// Does something with a file system; answers 0 where nothing else is said.
    File {
        /// What.
        order: FileOrder,
    },
}

impl From<FileOrder> for Order {
    fn from(order: FileOrder) -> Self {
        Self::File { order }
    }
}

impl From<LogOrder> for Order {
    fn from(order: LogOrder) -> Self {
        Self::Log { order }
    }
}

/// What a puppet answers: a number or several, or the kind of an error and its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Done(Vec<u64>),
    Refused(String, String),
}

impl Answer {
    fn of(done: &Result<Vec<u64>>) -> Self {
        match done {
            Ok(numbers) => Self::Done(numbers.clone()),
            Err(error) => Self::Refused(error.kind().name().to_owned(), error.to_string()),
        }
    }

    fn result(self) -> Result<Vec<u64>> {
        match self {
            Self::Done(numbers) => Ok(numbers),
            Self::Refused(name, text) => {
                let kind = ErrorKind::ALL.into_iter().find(|kind| kind.name() == name);
                Err(Error::new(kind.unwrap_or(ErrorKind::Corrupt), text))
            }
        }
    }
}

/// The words of a payload as bytes: each has the payload's value, and its place there.
pub fn payload(value: u64, len: u64) -> Vec<u8> {
    (0..len).flat_map(|place| (value << 32 | place).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ordered_and_answered_is_the_same_in_lines() {
        let how = How::Expected;
        let order = Order::Upload { key: "a".to_owned(), value: 3, len: 4, how, at: 9 };
        let line = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&line).unwrap(), order);
        for kind in ErrorKind::ALL {
            let answer = Answer::of(&Err(Error::new(kind, "why")));
            let line = serde_json::to_string(&answer).unwrap();
            let answer = serde_json::from_str::<Answer>(&line).unwrap();
            assert_eq!(answer.result().unwrap_err().kind(), kind);
        }
        assert_eq!(Answer::of(&Ok(vec![7, 8])).result().unwrap(), [7, 8]);
    }
}
