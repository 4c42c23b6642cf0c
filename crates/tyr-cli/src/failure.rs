//! How a command fails: what the user reads, and the exit code that scripts read.
//!
//! The codes are a promise (docs/reference/cli.md has the table): one for each kind of error of
//! the store, a few for what only a command line knows.

use std::fmt;
use std::io;

use serde_json::{Value, json};
use tyr::ErrorKind;

/// What a command ends with.
pub type Outcome<T = ()> = Result<T, Failure>;

/// The exit code of a command line that makes no sense; clap's own, and the shell's habit.
pub const USAGE_CODE: u8 = 2;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The store refused, or a file could not be read or written.
    Store(tyr::Error),
    /// A call of a method failed.
    Method(tyr_object::Failure),
    /// The arguments do not fit together.
    Usage(String),
    /// A check ran to its end, and not everything was as it should be.
    Differences(String),
    /// Standard output does not take any more.
    Output(io::Error),
    /// A signal of this number asked to stop.
    Interrupted(i32),
    /// A command that was run ended with this exit code, and has said why.
    Command(u8),
}

impl Failure {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Store(error) => kind_code(error.kind()),
            Self::Method(failure) => kind_code(failure.kind()),
            Self::Usage(_) => USAGE_CODE,
            Self::Differences(_) => 1,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(_) => 1,
            Self::Command(code) => *code,
            Self::Interrupted(signal) => 128_u8.saturating_add(u8::try_from(*signal).unwrap_or(0)),
        }
    }

    /// The name of its kind, as in JSON output.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Store(error) => error.kind().name(),
            Self::Method(failure) => failure.kind().name(),
            Self::Usage(_) => "Usage",
            Self::Differences(_) => "Differences",
            Self::Output(_) => "Output",
            Self::Interrupted(_) => "Interrupted",
            Self::Command(_) => "Command",
        }
    }

    /// Whether the user should not hear of it: the reader of a pipe had enough, or has heard.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::Command(_) => true,
            Self::Store(_)
            | Self::Method(_)
            | Self::Usage(_)
            | Self::Differences(_)
            | Self::Interrupted(_) => false,
        }
    }

    /// Tells the user on standard error, as one line of text or one JSON object.
    pub fn report(&self, is_json: bool) {
        if self.is_quiet() {
            return;
        }
        if is_json {
            eprintln!("{}", self.as_json());
        } else {
            eprintln!("tyr: {self}");
        }
    }

    /// What a program is told.
    fn as_json(&self) -> Value {
        let kind = self.kind();
        match self {
            Self::Method(tyr_object::Failure::Method { code, text, .. }) => {
                json!({"error": {"kind": kind, "message": text, "code": code}})
            }
            _ => json!({"error": {"kind": kind, "message": self.to_string()}}),
        }
    }
}

/// The exit code of each kind of error.
pub fn kind_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::NotFound => 3,
        ErrorKind::AlreadyExists => 4,
        ErrorKind::Conflict => 5,
        ErrorKind::Unavailable => 6,
        ErrorKind::TimedOut => 7,
        ErrorKind::SnapshotTooOld => 8,
        ErrorKind::InvalidArgument => 9,
        ErrorKind::PermissionDenied => 10,
        ErrorKind::QuotaExceeded => 11,
        ErrorKind::Corrupt => 12,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "{error}"),
            Self::Method(failure) => write!(f, "{failure}"),
            Self::Usage(message) | Self::Differences(message) => f.write_str(message),
            Self::Output(error) => write!(f, "cannot write the output: {error}"),
            Self::Interrupted(signal) => write!(f, "stopped by signal {signal}"),
            Self::Command(code) => write!(f, "the command ended with exit code {code}"),
        }
    }
}

impl From<tyr::Error> for Failure {
    fn from(error: tyr::Error) -> Self {
        Self::Store(error)
    }
}

impl From<tyr_object::Failure> for Failure {
    fn from(failure: tyr_object::Failure) -> Self {
        Self::Method(failure)
    }
}

impl From<tyr_fs::Error> for Failure {
    fn from(error: tyr_fs::Error) -> Self {
        use tyr_fs::Errno;
        let kind = match error.errno() {
            Errno::NOENT | Errno::STALE | Errno::NODATA => ErrorKind::NotFound,
            Errno::EXIST => ErrorKind::AlreadyExists,
            Errno::AGAIN => ErrorKind::Conflict,
            Errno::ACCESS => ErrorKind::PermissionDenied,
            Errno::DQUOT => ErrorKind::QuotaExceeded,
            Errno::IO | Errno::NOSPC | Errno::INTR | Errno::OPNOTSUPP => ErrorKind::Unavailable,
            _ => ErrorKind::InvalidArgument,
        };
        let number = std::io::Error::from(error.errno());
        Self::Store(tyr::Error::new(kind, format!("{error} ({number})")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_exit_code() {
        let kinds = [
            ErrorKind::NotFound,
            ErrorKind::AlreadyExists,
            ErrorKind::Conflict,
            ErrorKind::Unavailable,
            ErrorKind::TimedOut,
            ErrorKind::SnapshotTooOld,
            ErrorKind::InvalidArgument,
            ErrorKind::PermissionDenied,
            ErrorKind::QuotaExceeded,
            ErrorKind::Corrupt,
        ];
        let mut codes: Vec<u8> = kinds.map(kind_code).to_vec();
        codes.extend([0, 1, USAGE_CODE]);
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), kinds.len() + 3);
    }

    #[test]
    fn a_closed_pipe_is_no_failure_and_a_full_disk_is_one() {
        let closed = Failure::Output(io::ErrorKind::BrokenPipe.into());
        assert!(closed.is_quiet());
        assert_eq!(closed.exit_code(), 0);
        let full = Failure::Output(io::ErrorKind::StorageFull.into());
        assert!(!full.is_quiet());
        assert_eq!(full.exit_code(), 1);
    }

    #[test]
    fn signals_give_the_codes_that_shells_give() {
        assert_eq!(Failure::Interrupted(2).exit_code(), 130);
        assert_eq!(Failure::Interrupted(15).exit_code(), 143);
    }
}
