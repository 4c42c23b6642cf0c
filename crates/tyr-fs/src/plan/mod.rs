//! What becomes of an operation: pure functions from the operation and what is known to a
//! transaction, to "read this first", or to an error.
//!
//! ```text
//!   operation ──► plan(known) ──► Read(want)   ──► the caller reads, knows more, plans again
//!                    │     └────► Fail(error)  ──► the answer
//!                    └──────────► Draft        ──► one transaction; a condition that does not
//!                                                  hold: nothing is known any more, plan again
//! ```
//!
//! Everything that a draft was made from stands in it as a condition on bytes, so that what is
//! known may be old by the time it is committed: it then fails, and is planned anew. An error that
//! follows from more than one read has such conditions, too.
//!
//! [`known`] has what was read, [`draft`] what is to be done, [`node`] how a file is found;
//! [`lookup`], [`create`], [`remove`], [`link`], [`rename`] are of names, [`content`],
//! [`segments`] and [`allocate`] of bytes, [`attributes`] and [`xattrs`] of the rest; [`orphan`]
//! lets go of files without names. [`rights`] says who may do what. [`overlay`] is of several
//! operations that are committed together.

pub mod allocate;
pub mod attributes;
pub mod content;
pub mod create;
pub mod draft;
pub mod known;
pub mod link;
pub mod lookup;
pub mod node;
pub mod orphan;
pub mod overlay;
pub mod remove;
pub mod rename;
pub mod rights;
pub mod segments;
pub mod xattrs;

pub use draft::{Change, Condition, Draft};
pub use known::{Found, Known, Want};

use crate::error::Error;

/// Why there is no draft.
#[derive(Debug)]
pub enum Stop {
    /// This has to be known.
    Read(Want),
    /// The operation fails.
    Fail(Error),
    /// It fails if these conditions hold together.
    FailIf(Error, Vec<Condition>),
    /// What is known is of different moments and does not fit together: forget it.
    Again,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

/// What planning ends with.
pub type Plan<T> = Result<T, Stop>;

/// What an answer follows from, and has to stay so until what others depend on it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The conditions of the draft.
    Draft,
    /// Everything that was read.
    Versions,
    /// Nothing: it may be of any moment.
    Nothing,
}

/// Something that is done to a file system.
pub trait Operation {
    /// What it answers.
    type Answer;

    /// What the answer follows from. Of a draft that changes nothing it matters only together with
    /// others: alone it is true of the moment at which it was read.
    const BASIS: Basis = Basis::Draft;

    /// What is to be done, as far as is known.
    ///
    /// # Errors
    /// What has to be read first, or why it cannot be done.
    fn plan(&self, known: &Known) -> Plan<Draft<Self::Answer>>;
}
