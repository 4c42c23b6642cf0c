//! What can go wrong, sorted by what the caller can do about it.

use std::error::Error as StdError;
use std::fmt;

use crate::id::BlobName;
use crate::operation::OperationId;

/// The result of everything in Týr that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an error. Few and stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumCount)]
pub enum ErrorKind {
    /// The blob or keyspace is not there. Nothing changed.
    NotFound,
    /// It is there already. Nothing changed.
    AlreadyExists,
    /// Another transaction was faster, or a condition did not hold. Nothing changed; retry.
    Conflict,
    /// The store cannot serve this now (disk full, closing, overload). Nothing changed unless the
    /// text says otherwise; retry later.
    Unavailable,
    /// No answer in time. The outcome is unknown; ask again with the same transaction id.
    TimedOut,
    /// The version that the snapshot needs is gone. Nothing changed; start a new snapshot.
    SnapshotTooOld,
    /// The request itself is wrong; the text gives the allowed range. Nothing changed.
    InvalidArgument,
    /// The caller lacks the right. Nothing changed.
    PermissionDenied,
    /// The keyspace's quota is used up. Nothing changed.
    QuotaExceeded,
    /// Stored bytes are not what was written; the text names file and place. Nothing changed.
    Corrupt,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::NotFound,
        Self::AlreadyExists,
        Self::Conflict,
        Self::Unavailable,
        Self::TimedOut,
        Self::SnapshotTooOld,
        Self::InvalidArgument,
        Self::PermissionDenied,
        Self::QuotaExceeded,
        Self::Corrupt,
    ];

    /// The kind's name, as in JSON output and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Unavailable => "Unavailable",
            Self::TimedOut => "TimedOut",
            Self::SnapshotTooOld => "SnapshotTooOld",
            Self::InvalidArgument => "InvalidArgument",
            Self::PermissionDenied => "PermissionDenied",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::Corrupt => "Corrupt",
        }
    }

    /// Whether running the whole transaction again may succeed without any other change.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Conflict | Self::SnapshotTooOld => true,
            Self::NotFound
            | Self::AlreadyExists
            | Self::Unavailable
            | Self::TimedOut
            | Self::InvalidArgument
            | Self::PermissionDenied
            | Self::QuotaExceeded
            | Self::Corrupt => false,
        }
    }
}

/// An error: its kind, what happened in words, and what caused it.
///
/// The text says what was wrong and what to do. Whether state changed follows from the kind:
/// only `TimedOut` leaves it open.
pub struct Error {
    kind: ErrorKind,
    message: String,
    blob: Option<Box<BlobName>>,
    operation: Option<OperationId>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind; `message` says what was wrong and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), blob: None, operation: None, source: None }
    }

    /// Shorthand for `InvalidArgument`.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Shorthand for `NotFound`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Shorthand for `Corrupt`; `message` names the file and the place.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Shorthand for `Conflict`.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// Shorthand for `Unavailable`.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// `what`, a file or something in one, has a format that only later programs know; this one
    /// knows those up to `known`. `Unavailable`: nothing is wrong with it.
    pub fn later_release(
        what: impl fmt::Display,
        format: impl fmt::Display,
        known: impl fmt::Display,
    ) -> Self {
        Self::unavailable(format!(
            "{what} was written by a later release of Týr ({format}; this program knows up to \
             {known}): start it with that release or later"
        ))
    }

    /// An I/O error while doing `what` (which names the file): `Unavailable`.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::unavailable(what).with_source(source)
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with `context` before its text.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// The same error, which happened at `blob`: that stands before its text.
    #[must_use]
    pub fn at(self, blob: BlobName) -> Self {
        self.context(&blob).naming(blob)
    }

    /// The same error, whose text names `blob` already.
    #[must_use]
    pub fn naming(mut self, blob: BlobName) -> Self {
        self.blob = Some(Box::new(blob));
        self
    }

    /// The same error, which is about this operation of its transaction.
    #[must_use]
    pub fn of_operation(mut self, operation: OperationId) -> Self {
        self.operation = Some(operation);
        self
    }

    /// The same error with the name of its blob's keyspace where the text has the number, which
    /// users do not know.
    #[must_use]
    pub fn in_keyspace(mut self, name: impl fmt::Display) -> Self {
        if let Some(blob) = &self.blob {
            self.message = self.message.replace(&blob.to_string(), &blob.in_keyspace(name));
        }
        self
    }

    /// The blob that it happened at, where it was one.
    pub fn blob(&self) -> Option<&BlobName> {
        self.blob.as_deref()
    }

    /// The condition of the transaction that did not hold, where it was one; `None` for what it
    /// read, and where only a program of before was there to say. Several may not hold: it is one.
    pub fn operation(&self) -> Option<OperationId> {
        self.operation
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The text without its cause.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A second copy for another waiter; the cause is folded into the text.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self {
            blob: self.blob.clone(),
            operation: self.operation,
            ..Self::new(self.kind, self.to_string())
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.kind.name())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Key, KeyspaceId};

    #[test]
    fn the_number_of_a_keyspace_gives_way_to_its_name_wherever_the_text_has_it() {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a\"b").unwrap() };
        let error = Error::conflict("it changed").at(blob.clone()).context("line 2");
        assert_eq!(error.message(), r#"line 2: keyspace 1 blob "a\"b": it changed"#);
        assert_eq!(error.blob(), Some(&blob));
        let named = error.duplicate().in_keyspace("notes");
        assert_eq!(named.message(), r#"line 2: keyspace notes blob "a\"b": it changed"#);
        assert_eq!(named.blob(), Some(&blob));
        let other = Error::conflict("keyspace 1 is spoken of").in_keyspace("notes");
        assert_eq!(other.message(), "keyspace 1 is spoken of");
    }
}
