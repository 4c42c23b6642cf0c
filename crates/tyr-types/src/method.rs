//! A method of an object's class, called at the node of the object: what is asked and answered.
//!
//! What a class is, and how a method is run, is not known here.

use bytes::Bytes;

use crate::error::ErrorKind;
use crate::id::{BlobName, NodeId};

/// A method that is to be run beside a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodCall {
    /// The blob.
    pub blob: BlobName,
    /// The class.
    pub class: String,
    /// Its method.
    pub method: String,
    /// What the method is given; at most [`METHOD_INPUT_MAX`](crate::limits::METHOD_INPUT_MAX).
    pub input: Bytes,
}

/// What came of a method.
pub type MethodAnswer = Result<Bytes, MethodFailure>;

/// What a node makes of a request to a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeatAnswer {
    /// The seat is here, or was asked by this node, and answers this.
    Answered(MethodAnswer),
    /// Nothing was done: this node has the seat (S4).
    Moved(NodeId),
    /// Nothing was done: the seat is not here, and whoever is the authority of its key knows where.
    Elsewhere,
}

/// Why a method has no answer. Nothing has changed then, unless the kind is
/// [`ErrorKind::TimedOut`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodFailure {
    /// Where that comes from.
    pub cause: FailureCause,
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// What was wrong.
    pub text: String,
}

/// Where the failure of a method comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The method says so.
    Method {
        /// The number that it gives; 0 for none.
        code: i32,
    },
    /// The method is broken.
    Broken,
    /// It met a limit.
    Limit {
        /// The name of the limit.
        name: String,
    },
    /// The store that it is run on.
    Store,
}
