//! Why a transaction or a read was refused.
//!
//! Cheaper than an error, since a machine makes many under contention: the text is static where it
//! is made (and owned where it came from another node), and the blob's name shares its bytes. The
//! driver turns it into an error for the client.

use std::borrow::Cow;

use tyr_types::{BlobName, Error, ErrorKind, OperationId};

/// Why a transaction did not take effect, or a read was not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// What happened, and what to do.
    pub reason: Cow<'static, str>,
    /// The blob that it happened at, where it was one.
    pub blob: Option<BlobName>,
    /// The condition that did not hold, where it was one (C12). Merely told: it is left out for
    /// readers of before, and where an abort is written down.
    pub operation: Option<OperationId>,
}

impl Abort {
    /// An abort at `blob`.
    pub fn at(blob: &BlobName, kind: ErrorKind, reason: &'static str) -> Self {
        debug_assert!(!reason.is_empty(), "who is refused is told why");
        Self { blob: Some(blob.clone()), ..Self::new(kind, reason) }
    }

    /// The same abort, because of this operation of its transaction.
    #[must_use]
    pub fn of_operation(self, operation: OperationId) -> Self {
        debug_assert!(self.blob.is_some(), "an operation is one on a blob");
        Self { operation: Some(operation), ..self }
    }

    /// An abort that is about no blob.
    pub fn new(kind: ErrorKind, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, reason: reason.into(), blob: None, operation: None }
    }
}

impl From<Abort> for Error {
    fn from(abort: Abort) -> Self {
        let mut error = Self::new(abort.kind, abort.reason);
        if let Some(operation) = abort.operation {
            error = error.of_operation(operation);
        }
        match abort.blob {
            Some(blob) => error.at(blob),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_types::{Key, KeyspaceId};

    #[test]
    fn an_error_made_of_an_abort_keeps_the_kind_and_names_the_blob() {
        let blob = BlobName { keyspace: KeyspaceId(3), key: Key::new("a").unwrap() };
        let error = Error::from(Abort::at(&blob, ErrorKind::Conflict, "it changed"));
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(error.message(), "keyspace 3 blob \"a\": it changed");
        assert_eq!(error.blob(), Some(&blob));
        assert_eq!(error.operation(), None, "it may be what it read");
        let first = OperationId { blob: 0, operation: 0 };
        let error =
            Error::from(Abort::at(&blob, ErrorKind::Conflict, "it changed").of_operation(first));
        assert_eq!(error.operation(), Some(first));
    }
}
