//! Errors of Týr as those of `object_store`, which have the path in them.

use object_store::path::Path;
use tyr::ErrorKind;

/// The name of this store in errors.
pub(crate) const STORE: &str = "Tyr";

/// What the crate is called where something is not implemented.
const IMPLEMENTER: &str = "tyr-object-store";

/// What `error`, met at `location`, is for users of `object_store`.
pub(crate) fn told(error: tyr::Error, location: &Path) -> object_store::Error {
    let kind = error.kind();
    let (path, source) = (location.to_string(), Box::new(error));
    match kind {
        ErrorKind::NotFound => object_store::Error::NotFound { path, source },
        ErrorKind::AlreadyExists => object_store::Error::AlreadyExists { path, source },
        ErrorKind::PermissionDenied => object_store::Error::PermissionDenied { path, source },
        ErrorKind::Conflict
        | ErrorKind::Unavailable
        | ErrorKind::TimedOut
        | ErrorKind::SnapshotTooOld
        | ErrorKind::InvalidArgument
        | ErrorKind::QuotaExceeded
        | ErrorKind::Corrupt => object_store::Error::Generic { store: STORE, source },
    }
}

/// That the object is not as the caller expects it.
pub(crate) fn precondition(location: &Path, found: String) -> object_store::Error {
    object_store::Error::Precondition { path: location.to_string(), source: found.into() }
}

/// That what a caller asks for is not offered.
pub(crate) fn not_implemented(operation: &str) -> object_store::Error {
    object_store::Error::NotImplemented {
        operation: operation.to_owned(),
        implementer: IMPLEMENTER.to_owned(),
    }
}

/// Anything else that is wrong.
pub(crate) fn generic(
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> object_store::Error {
    object_store::Error::Generic { store: STORE, source: source.into() }
}
