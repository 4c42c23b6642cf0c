//! What can go wrong, as POSIX has it: an error number, and a text that says what was wrong.

use std::fmt;

use rustix::io::Errno;
use tyr::ErrorKind;

/// The result of everything in a file system that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error number of POSIX, with what was wrong in words.
///
/// Nothing changed, except after `EIO` of a store that did not tell in time what became of a
/// transaction; the text says so then.
#[derive(Debug)]
pub struct Error {
    errno: Errno,
    text: String,
    source: Option<tyr::Error>,
}

impl Error {
    /// An error of this number; `text` says what was wrong.
    pub fn new(errno: Errno, text: impl Into<String>) -> Self {
        Self { errno, text: text.into(), source: None }
    }

    /// Stored bytes are not what this program writes there; `text` names the place.
    pub(crate) fn damaged(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(Errno::IO, format!("{text}; run `tyr fs check`"))
    }

    /// Its number.
    pub fn errno(&self) -> Errno {
        self.errno
    }

    /// Whether a moment was read that the store does not keep any more.
    pub(crate) fn is_too_old(&self) -> bool {
        self.source.as_ref().is_some_and(|it| it.kind() == ErrorKind::SnapshotTooOld)
    }

    /// What was wrong.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same with what was being done in front.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.text = format!("{what}: {}", self.text);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

impl From<tyr::Error> for Error {
    fn from(error: tyr::Error) -> Self {
        let errno = match error.kind() {
            ErrorKind::NotFound => Errno::NOENT,
            ErrorKind::AlreadyExists => Errno::EXIST,
            ErrorKind::Conflict | ErrorKind::SnapshotTooOld => Errno::AGAIN,
            ErrorKind::Unavailable if is_full(&error) => Errno::NOSPC,
            ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Corrupt => Errno::IO,
            ErrorKind::InvalidArgument => Errno::INVAL,
            ErrorKind::PermissionDenied => Errno::ACCESS,
            ErrorKind::QuotaExceeded => Errno::DQUOT,
        };
        Self { errno, text: error.message().to_owned(), source: Some(error) }
    }
}

/// Whether what is behind it is a disk without space.
fn is_full(error: &tyr::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::StorageFull;
        }
        cause = error.source();
    }
    false
}
