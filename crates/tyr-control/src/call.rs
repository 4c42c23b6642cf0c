//! Calls of methods of objects, on their way to the node of the object and back.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tyr_types::limits::{METHOD_ANSWER_MAX, METHOD_INPUT_MAX};
use tyr_types::{
    BlobName, Error, FailureCause, KeyspaceId, MethodAnswer, MethodCall, MethodFailure, Result,
    SeatAnswer,
};

use crate::client::MetadataClient;
use crate::connection::CallError;
use crate::message::{Answer, Question, Request};
use crate::refusal::Refusal;

/// A method that is to be run beside a blob, by the node that is its authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The number of the keyspace.
    keyspace: u32,
    /// The key of the blob.
    key: Bytes,
    /// The class.
    class: String,
    /// Its method.
    method: String,
    /// What the method is given.
    input: Bytes,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallAnswer {
    /// The method was run, and answers this.
    Answered(Bytes),
    /// It was not, or failed.
    Failed {
        /// Where that comes from.
        cause: Cause,
        /// What the caller can do about it, and what was wrong.
        refusal: Refusal,
    },
    /// Nothing was done: by the map of this epoch another node is the authority.
    Elsewhere(u32),
    /// Nothing was done: this node runs no methods.
    Unhosted,
    /// Nothing was done: this node has the seat that was asked.
    Moved(u16),
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// An object: the node that is asked is to be the authority of its key.
    Object,
    /// A seat: any node is asked that may have it, or know who has.
    Seat,
}

/// [`FailureCause`], written by its place here: new ones are added at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The method says so, with a number.
    Method(i32),
    /// The method is broken.
    Broken,
    /// It met the limit of this name.
    Limit(String),
    /// The store that it is run on.
    Store,
}

impl Called {
    /// The call.
    ///
    /// # Errors
    /// `InvalidArgument` for a key that is none, and an input that is too long.
    pub fn read(self) -> Result<MethodCall> {
        let Self { keyspace, key, class, method, input } = self;
        check_len("input", input.len(), METHOD_INPUT_MAX)?;
        let blob = BlobName { keyspace: KeyspaceId(keyspace), key: tyr_types::Key::new(key)? };
        Ok(MethodCall { blob, class, method, input })
    }
}

/// Fails with `InvalidArgument` for an input that is too long.
impl TryFrom<MethodCall> for Called {
    type Error = Error;

    fn try_from(call: MethodCall) -> Result<Self> {
        let MethodCall { blob, class, method, input } = call;
        check_len("input", input.len(), METHOD_INPUT_MAX)?;
        let key = Bytes::copy_from_slice(blob.key.as_bytes());
        Ok(Self { keyspace: blob.keyspace.0, key, class, method, input })
    }
}

fn check_len(what: &str, len: usize, max: usize) -> Result<()> {
    match len <= max {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the {what} of a call has at most {max} bytes, and this has {len}: send less, or in \
             parts"
        ))),
    }
}

impl From<MethodAnswer> for CallAnswer {
    fn from(answer: MethodAnswer) -> Self {
        let checked = |bytes: Bytes| match check_len("answer", bytes.len(), METHOD_ANSWER_MAX) {
            Ok(()) => Self::Answered(bytes),
            Err(error) => Self::Failed { cause: Cause::Store, refusal: error.into() },
        };
        let failed = |MethodFailure { cause, kind, text }| {
            let cause = match cause {
                FailureCause::Method { code } => Cause::Method(code),
                FailureCause::Broken => Cause::Broken,
                FailureCause::Limit { name } => Cause::Limit(name),
                FailureCause::Store => Cause::Store,
            };
            Self::Failed { cause, refusal: Error::new(kind, text).into() }
        };
        answer.map_or_else(failed, checked)
    }
}

impl From<SeatAnswer> for CallAnswer {
    fn from(answer: SeatAnswer) -> Self {
        match answer {
            SeatAnswer::Answered(answer) => answer.into(),
            SeatAnswer::Moved(node) => Self::Moved(node.0),
            SeatAnswer::Elsewhere => Self::Elsewhere(0),
        }
    }
}

/// Why a method did not answer, as its caller sees it.
pub fn failure(cause: Cause, refusal: Refusal) -> MethodFailure {
    let cause = match cause {
        Cause::Method(code) => FailureCause::Method { code },
        Cause::Broken => FailureCause::Broken,
        Cause::Limit(name) => FailureCause::Limit { name },
        Cause::Store => FailureCause::Store,
    };
    let error = Error::from(refusal);
    MethodFailure { cause, kind: error.kind(), text: error.message().to_owned() }
}

impl MetadataClient {
    /// Has the node at this address run a method of an object, or ask a seat; `None` when its
    /// program is of an older release, to which this means nothing.
    ///
    /// # Errors
    /// As [`CallError`] says; `Lost`, too, when there is no answer in time.
    pub async fn call_at(
        &self,
        address: &str,
        kind: CallKind,
        called: Called,
        patience: Duration,
    ) -> Result<Option<CallAnswer>, CallError> {
        let connection = self.calls().connection(address).await?;
        let request = match kind {
            CallKind::Object => Request::Call(called),
            CallKind::Seat => Request::Seat(called),
        };
        if !connection.understands(&request) {
            return Ok(None);
        }
        let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        let question = Question { actor: None, is_handed_on: true, patience_ms, request };
        match tokio::time::timeout(patience, connection.call(question)).await {
            Ok(Ok(Answer::Called(answer))) => Ok(Some(answer)),
            Ok(Ok(other)) => Err(CallError::Lost(other.unexpected().message().to_owned())),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(CallError::Lost(format!("{address} does not answer in time"))),
        }
    }
}
