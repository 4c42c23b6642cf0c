//! Why a call has no answer, as Java is told of it.

use tyr::{Error, ErrorKind, OperationId};
use tyr_completion::Failure as Unfinished;

use crate::store::Cause;

/// What is no kind of error of Týr's, by the numbers that Java knows. Those of kinds are their
/// places in [`ErrorKind::ALL`].
const STATE: i32 = 100;
const CANCELLED: i32 = 101;
const INTERRUPTED: i32 = 102;
const BUG: i32 = 103;

/// Why a call has no answer.
#[derive(Debug)]
pub enum Failure {
    /// An error of Týr's.
    Tyr(Error),
    /// One of a commit, with the operations of the transaction in their order.
    Commit(Error, Vec<OperationId>),
    /// A handle is closed, or a transaction over or in use: `IllegalStateException`.
    State(String),
    /// Somebody cancelled it.
    Cancelled,
    /// The thread that waited was interrupted.
    Interrupted,
    /// An invariant of ours is broken, in the words of the panic.
    Bug(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Tyr(error)
    }
}

impl From<Unfinished> for Failure {
    fn from(unfinished: Unfinished) -> Self {
        match unfinished {
            Unfinished::Cancelled => Self::Cancelled,
            Unfinished::Panicked(words) => Self::Bug(words),
        }
    }
}

impl Failure {
    /// A request that is wrong.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::Tyr(Error::invalid(text))
    }

    /// The key of the blob that it is about, where it is about one.
    pub fn key(&self) -> Option<&[u8]> {
        Some(self.error()?.blob()?.key.as_bytes())
    }

    /// The condition that did not hold: its place among the operations of the transaction.
    pub fn operation(&self) -> Option<usize> {
        let Self::Commit(error, operations) = self else { return None };
        let wanted = error.operation()?;
        operations.iter().position(|it| *it == wanted)
    }

    fn error(&self) -> Option<&Error> {
        match self {
            Self::Tyr(error) | Self::Commit(error, _) => Some(error),
            Self::State(_) | Self::Cancelled | Self::Interrupted | Self::Bug(_) => None,
        }
    }

    /// What is asked again with, where it is open what became of it.
    pub fn into_cause(self) -> Option<Cause> {
        let (error, operations) = match self {
            // A single call is a transaction of one operation.
            Self::Tyr(error) => (error, vec![OperationId { blob: 0, operation: 0 }]),
            Self::Commit(error, operations) => (error, operations),
            Self::State(_) | Self::Cancelled | Self::Interrupted | Self::Bug(_) => return None,
        };
        (error.kind() == ErrorKind::TimedOut).then(|| Cause::new(error, operations))
    }

    /// Its number.
    pub fn number(&self) -> i32 {
        match self {
            Self::Tyr(error) | Self::Commit(error, _) => number_of(error.kind()),
            Self::State(_) => STATE,
            Self::Cancelled => CANCELLED,
            Self::Interrupted => INTERRUPTED,
            Self::Bug(_) => BUG,
        }
    }

    /// What was wrong and what to do.
    pub fn text(&self) -> String {
        match self {
            Self::Tyr(error) | Self::Commit(error, _) => error.to_string(),
            Self::State(text) => text.clone(),
            Self::Cancelled => "the call was cancelled: what was to change something may have \
                                taken effect all the same"
                .into(),
            Self::Interrupted => "the thread was interrupted: what was to change something may \
                                  have taken effect all the same"
                .into(),
            Self::Bug(words) => format!(
                "a bug in Týr: {words}. This process is not to go on with it: stop it, look at \
                 the store with `tyr check`, and tell us"
            ),
        }
    }
}

/// The number of a kind: its place among all.
fn number_of(kind: ErrorKind) -> i32 {
    let place = ErrorKind::ALL.iter().position(|it| *it == kind);
    place.expect("every kind is among all") as i32
}

/// The kind of this number, if it is one.
pub fn kind_of(number: i32) -> Option<ErrorKind> {
    ErrorKind::ALL.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_kinds_are_their_names_in_java_in_order() {
        let java = include_str!("../java/src/main/java/io/github/tyrstore/Failures.java");
        for kind in ErrorKind::ALL {
            let case = format!("case {}: return new {}Exception(", number_of(kind), kind.name());
            assert!(java.contains(&case), "{case}");
            assert_eq!(kind_of(number_of(kind)), Some(kind));
        }
        for number in [STATE, CANCELLED, INTERRUPTED] {
            assert_eq!(kind_of(number), None);
            assert!(java.contains(&format!("case {number}: ")), "{number}");
        }
        assert_eq!(kind_of(BUG), None);
        assert_eq!(kind_of(-1), None);
    }
}
