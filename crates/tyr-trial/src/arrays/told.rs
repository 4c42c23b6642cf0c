//! What programs on arrays and tables say, a line of JSON each: `workers/arrays.py`.

use serde::Deserialize;
use tyr_types::{Error, Result};

/// A line. Times are nanoseconds of the system's monotonic clock, which all processes share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Told {
    /// What is read and written is there, with the stamp 0.
    Made,
    /// A write begins: all cells of a region or a table get this stamp.
    Begins {
        /// Of what.
        of: String,
        /// The stamp, which nothing else gets.
        stamp: u64,
        /// When.
        at: u64,
    },
    /// It took effect.
    Written {
        /// Of what.
        of: String,
        /// Which.
        stamp: u64,
        /// When that was known.
        at: u64,
    },
    /// It took no effect.
    Refused {
        /// Of what.
        of: String,
        /// Which.
        stamp: u64,
        /// The kind of error.
        error: String,
    },
    /// Whether it took effect is not known.
    Unknown {
        /// Of what.
        of: String,
        /// Which.
        stamp: u64,
        /// The kind of error.
        error: String,
    },
    /// What a read saw.
    Read {
        /// Of what.
        of: String,
        /// All stamps that there were.
        stamps: Vec<u64>,
        /// Pairs that are to be equal: what was added up, and what it should be.
        #[serde(default)]
        sums: Vec<(i64, i64)>,
        /// When it began.
        begun: u64,
        /// When it ended.
        at: u64,
    },
    /// A read got no answer.
    Unread {
        /// The kind of error.
        error: String,
    },
    /// It was told to end, and did.
    Ended,
}

/// What a line says.
///
/// # Errors
/// `Corrupt` when it is none of these.
pub fn read(line: &str) -> Result<Told> {
    serde_json::from_str(line).map_err(|error| Error::corrupt(format!("{error} in {line:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_the_program_writes_it() {
        let line = r#"{"is": "read", "begun": 1, "at": 2, "of": "table", "stamps": [3],
            "sums": [[4, 4]]}"#;
        let read_as = Told::Read {
            of: "table".to_owned(),
            stamps: vec![3],
            sums: vec![(4, 4)],
            begun: 1,
            at: 2,
        };
        assert_eq!(read(line).unwrap(), read_as);
        let line = r#"{"is": "unread", "at": 2, "error": "TimedOut"}"#;
        assert_eq!(read(line).unwrap(), Told::Unread { error: "TimedOut".to_owned() });
        assert!(read("Traceback").is_err());
    }
}
