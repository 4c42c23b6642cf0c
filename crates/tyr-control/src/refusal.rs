//! An error that travels: through the monitors' log and over the control plane.

use serde::{Deserialize, Serialize};
use tyr_types::{Error, ErrorKind};

/// An [`Error`] as a plain value: its kind and its text, with the cause folded in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    kind: Kind,
    message: String,
}

/// [`ErrorKind`], written by its place here: new ones are added at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    NotFound,
    AlreadyExists,
    Conflict,
    Unavailable,
    TimedOut,
    SnapshotTooOld,
    InvalidArgument,
    PermissionDenied,
    QuotaExceeded,
    Corrupt,
}

impl Refusal {
    /// Whether a condition did not hold.
    pub fn is_conflict(&self) -> bool {
        matches!(self.kind, Kind::Conflict)
    }
}

impl From<ErrorKind> for Kind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::AlreadyExists => Self::AlreadyExists,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::SnapshotTooOld => Self::SnapshotTooOld,
            ErrorKind::InvalidArgument => Self::InvalidArgument,
            ErrorKind::PermissionDenied => Self::PermissionDenied,
            ErrorKind::QuotaExceeded => Self::QuotaExceeded,
            ErrorKind::Corrupt => Self::Corrupt,
        }
    }
}

impl From<Kind> for ErrorKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::NotFound => Self::NotFound,
            Kind::AlreadyExists => Self::AlreadyExists,
            Kind::Conflict => Self::Conflict,
            Kind::Unavailable => Self::Unavailable,
            Kind::TimedOut => Self::TimedOut,
            Kind::SnapshotTooOld => Self::SnapshotTooOld,
            Kind::InvalidArgument => Self::InvalidArgument,
            Kind::PermissionDenied => Self::PermissionDenied,
            Kind::QuotaExceeded => Self::QuotaExceeded,
            Kind::Corrupt => Self::Corrupt,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { kind: error.kind().into(), message: error.to_string() }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.kind.into(), refusal.message)
    }
}
