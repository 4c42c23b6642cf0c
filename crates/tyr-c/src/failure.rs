//! What a program in C is told of an error.

use std::ffi::{CStr, CString};

use tyr::{Error, ErrorKind, OperationId};

/// A call that was cancelled.
pub const CANCELLED: i32 = 100;
/// A bug of Týr's.
pub const BUG: i32 = 101;

/// An error with its number and its text as C has them.
#[derive(Debug)]
pub struct Failure {
    kind: i32,
    text: CString,
    /// As the store gave it, for asking again.
    cause: Option<Error>,
}

impl Failure {
    /// The request itself is wrong.
    pub fn invalid(text: impl Into<String>) -> Self {
        Error::invalid(text).into()
    }

    /// Somebody cancelled the call.
    pub fn cancelled() -> Self {
        let text = "the call was cancelled; if it was to change something, it may do so yet: look";
        Self { kind: CANCELLED, text: c_text(text), cause: None }
    }

    /// An error of the program's own: of a kind that a caller can do something about, or that
    /// something was cancelled. `None` for other numbers.
    pub fn own(kind: i32, words: &str) -> Option<Self> {
        if kind == CANCELLED {
            return Some(Self { kind, text: c_text(words), cause: None });
        }
        let known = ErrorKind::ALL.into_iter().find(|known| number_of(*known) == kind)?;
        Some(Error::new(known, words).into())
    }

    /// A bug of ours, in the words of the panic.
    pub fn bug(words: &str) -> Self {
        let text = format!(
            "a bug in Týr: {words}. This process is not to go on with it: stop it, look at the \
             store with `tyr check`, and tell us"
        );
        Self { kind: BUG, text: c_text(&text), cause: None }
    }

    /// Its number in the header.
    pub fn kind(&self) -> i32 {
        self.kind
    }

    /// What was wrong and what to do.
    pub fn text(&self) -> &CStr {
        &self.text
    }

    /// Whether running the whole transaction again may succeed.
    pub fn is_retryable(&self) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.kind().is_retryable())
    }

    /// Whether nobody knows what became of the call.
    pub fn is_open(&self) -> bool {
        match &self.cause {
            Some(cause) => cause.kind() == ErrorKind::TimedOut,
            None => true,
        }
    }

    /// The condition that did not hold, if it was one.
    pub fn operation(&self) -> Option<OperationId> {
        self.cause.as_ref()?.operation()
    }

    /// The same as an error of the store's.
    pub fn to_error(&self) -> Error {
        match &self.cause {
            Some(cause) => cause.duplicate(),
            None => Error::unavailable(self.text.to_string_lossy()),
        }
    }

    /// The error of the store; none of a call that was cancelled, and of a bug.
    pub fn cause(&self) -> Option<&Error> {
        self.cause.as_ref()
    }
}

impl From<Error> for Failure {
    fn from(cause: Error) -> Self {
        let text = c_text(&cause.to_string());
        Self { kind: number_of(cause.kind()), text, cause: Some(cause) }
    }
}

/// The number of a kind in the header, which never changes.
fn number_of(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::NotFound => 1,
        ErrorKind::AlreadyExists => 2,
        ErrorKind::Conflict => 3,
        ErrorKind::Unavailable => 4,
        ErrorKind::TimedOut => 5,
        ErrorKind::SnapshotTooOld => 6,
        ErrorKind::InvalidArgument => 7,
        ErrorKind::PermissionDenied => 8,
        ErrorKind::QuotaExceeded => 9,
        ErrorKind::Corrupt => 10,
    }
}

/// The text up to its end or its first zero byte, which none of ours has.
fn c_text(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).expect("there is no zero byte before the first")
}
