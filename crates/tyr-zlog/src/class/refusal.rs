//! What the methods refuse, as a number by which callers tell it apart.

use tyr::ErrorKind;
use tyr_class::Failure;

/// Why a method did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The object was sealed with a later epoch than the caller has.
    Stale,
    /// The position is written, filled or trimmed.
    ReadOnly,
    /// The position was filled or trimmed: it has no data, and never will.
    Invalid,
    /// The position is not written.
    NotWritten,
    /// There is no such object.
    NoObject,
    /// The object, or the view, is there already.
    Exists,
    /// The input is none, or the position is not of this object.
    Wrong,
}

impl Refusal {
    /// All of them.
    const ALL: [Self; 7] = [
        Self::Stale,
        Self::ReadOnly,
        Self::Invalid,
        Self::NotWritten,
        Self::NoObject,
        Self::Exists,
        Self::Wrong,
    ];

    /// Its number: the one that the original answers, from `errno.h`.
    pub fn code(self) -> i32 {
        match self {
            Self::Stale => -11,
            Self::ReadOnly => -30,
            Self::Invalid => -61,
            Self::NotWritten => -2,
            Self::NoObject => -6,
            Self::Exists => -17,
            Self::Wrong => -22,
        }
    }

    /// The kind of error that it is for who calls a method by hand.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Stale | Self::Wrong => ErrorKind::InvalidArgument,
            Self::ReadOnly | Self::Exists => ErrorKind::AlreadyExists,
            Self::Invalid | Self::NotWritten | Self::NoObject => ErrorKind::NotFound,
        }
    }

    /// What a call was refused for, if its method did.
    pub fn of(failure: &Failure) -> Option<Self> {
        match failure {
            Failure::Method { code, .. } => Self::ALL.into_iter().find(|it| it.code() == *code),
            Failure::Broken { .. } | Failure::Limit { .. } | Failure::Context(_) => None,
        }
    }

    /// The failure of a method.
    pub fn failure(self, text: impl Into<String>) -> Failure {
        Failure::method(self.kind(), text).with_code(self.code())
    }
}
