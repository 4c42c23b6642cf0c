//! Why a call has no answer: the method said so, it is broken, it met a limit, or its blob could
//! not be reached.

use std::fmt;

use tyr_types::{Error, ErrorKind, FailureCause, MethodFailure};

use crate::limits::TEXT_LEN_MAX;

/// A limit that a call met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount)]
pub enum Limit {
    /// Safepoints.
    Fuel,
    /// Time.
    Time,
    /// Memory of its virtual machine.
    Memory,
    /// Bytes of its input.
    Input,
    /// Bytes of one read.
    Read,
    /// Bytes that it writes.
    Effect,
    /// Bytes of its answer.
    Answer,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Fuel, Self::Time, Self::Memory, Self::Input, Self::Read, Self::Effect, Self::Answer];

    /// Its name, by which another program knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fuel => "fuel",
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Input => "input",
            Self::Read => "read",
            Self::Effect => "effect",
            Self::Answer => "answer",
        }
    }
}

/// Why a call has no answer. None of what it wrote counts.
#[derive(Debug)]
pub enum Failure {
    /// The method says so.
    Method {
        /// What the caller can do about it.
        kind: ErrorKind,
        /// A number that means something to those who use the class; of scripts for RADOS a
        /// negative error number. 0 where none was given.
        code: i32,
        /// What was wrong, in the method's words.
        text: String,
    },
    /// The method is broken: an error in its script, a wrong type, a write in a query.
    Broken {
        /// What is wrong with it, with the line where it is one of a script.
        text: String,
    },
    /// The call met a limit.
    Limit {
        /// Which one.
        limit: Limit,
        /// What it is, and what to do.
        text: String,
    },
    /// What its blob is on failed; the error is as it was.
    Context(Error),
}

impl Failure {
    /// The kinds that a method can fail with of its own. A [`ErrorKind::Conflict`] makes the
    /// caller's transaction run again.
    pub const METHOD_KINDS: [ErrorKind; 6] = [
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::Conflict,
        ErrorKind::InvalidArgument,
        ErrorKind::PermissionDenied,
        ErrorKind::QuotaExceeded,
    ];

    /// The method's own failure. A kind that no method can have becomes `InvalidArgument`.
    pub fn method(kind: ErrorKind, text: impl Into<String>) -> Self {
        let kind =
            if Self::METHOD_KINDS.contains(&kind) { kind } else { ErrorKind::InvalidArgument };
        Self::Method { kind, code: 0, text: cut(text.into()) }
    }

    /// The same failure with a number.
    #[must_use]
    pub fn with_code(self, code: i32) -> Self {
        match self {
            Self::Method { kind, text, .. } => Self::Method { kind, code, text },
            Self::Broken { .. } | Self::Limit { .. } | Self::Context(_) => self,
        }
    }

    /// That the method is broken.
    pub fn broken(text: impl Into<String>) -> Self {
        Self::Broken { text: cut(text.into()) }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Method { kind, .. } => *kind,
            Self::Limit { limit: Limit::Time, .. } => ErrorKind::Unavailable,
            Self::Broken { .. } | Self::Limit { .. } => ErrorKind::InvalidArgument,
            Self::Context(error) => error.kind(),
        }
    }

    /// What was wrong.
    pub fn text(&self) -> &str {
        match self {
            Self::Method { text, .. } | Self::Broken { text } | Self::Limit { text, .. } => text,
            Self::Context(error) => error.message(),
        }
    }

    /// A second copy, for who has to know too.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        match self {
            Self::Method { kind, code, text } => {
                Self::Method { kind: *kind, code: *code, text: text.clone() }
            }
            Self::Broken { text } => Self::Broken { text: text.clone() },
            Self::Limit { limit, text } => Self::Limit { limit: *limit, text: text.clone() },
            Self::Context(error) => Self::Context(error.duplicate()),
        }
    }
}

/// For a program elsewhere.
impl From<Failure> for MethodFailure {
    fn from(failure: Failure) -> Self {
        let kind = failure.kind();
        let (cause, text) = match failure {
            Failure::Method { code, text, .. } => (FailureCause::Method { code }, text),
            Failure::Broken { text } => (FailureCause::Broken, text),
            Failure::Limit { limit, text } => {
                (FailureCause::Limit { name: limit.name().to_owned() }, text)
            }
            Failure::Context(error) => (FailureCause::Store, error.to_string()),
        };
        Self { cause, kind, text }
    }
}

/// From a program elsewhere. A limit that is not known here is one of what it was run on.
impl From<MethodFailure> for Failure {
    fn from(MethodFailure { cause, kind, text }: MethodFailure) -> Self {
        let of_limit = |name: String| {
            let limit = Limit::ALL.into_iter().find(|limit| limit.name() == name);
            limit.map(|limit| Self::Limit { limit, text: text.clone() })
        };
        let known = match cause {
            FailureCause::Method { code } => Some(Self::method(kind, text.clone()).with_code(code)),
            FailureCause::Broken => Some(Self::broken(text.clone())),
            FailureCause::Limit { name } => of_limit(name),
            FailureCause::Store => None,
        };
        known.unwrap_or_else(|| Self::Context(Error::new(kind, text)))
    }
}

/// An error of a context ends the call as it is.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Context(error)
    }
}

/// For who answers a client.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Context(error) => error,
            Failure::Method { .. } | Failure::Broken { .. } | Failure::Limit { .. } => {
                Error::new(failure.kind(), failure.to_string())
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method { code: 0, text, .. } => f.write_str(text),
            Self::Method { code, text, .. } => write!(f, "{text} (code {code})"),
            Self::Broken { text } => write!(f, "the method is broken: {text}"),
            Self::Limit { text, .. } => f.write_str(text),
            Self::Context(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// At most [`TEXT_LEN_MAX`] bytes of a text.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > TEXT_LEN_MAX {
        let end = (0..=TEXT_LEN_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_the_same_in_another_program() {
        let text = || "what was wrong".to_owned();
        let of_limit = |limit| Failure::Limit { limit, text: text() };
        let mut all: Vec<Failure> = Limit::ALL.into_iter().map(of_limit).collect();
        all.extend(Failure::METHOD_KINDS.map(|kind| Failure::method(kind, text()).with_code(-17)));
        all.push(Failure::broken(text()));
        all.push(Failure::Context(Error::new(ErrorKind::TimedOut, text())));
        for failure in all {
            let read = Failure::from(MethodFailure::from(failure.duplicate()));
            assert_eq!(format!("{read:?}"), format!("{failure:?}"));
        }
        let cause = FailureCause::Limit { name: "patience".to_owned() };
        let later = MethodFailure { cause, kind: ErrorKind::InvalidArgument, text: text() };
        assert_eq!(Failure::from(later).text(), text(), "a limit of a later release");
    }
}
