//! Methods of objects: each is called at the node that is the object's authority by the map.

use std::time::{Duration, Instant};

use tyr_control::CallError;
use tyr_control::call::{CallAnswer, Called, failure};
use tyr_protocol::level::LEVEL_CALLING;
use tyr_types::{Error, ErrorKind, MethodAnswer, MethodCall, NodeId, Result};

use super::Client;

/// While the object has no node, or is not where it was looked for, it is looked for again after so
/// long: maps change within a second.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a node made of a call.
enum Told {
    /// It is done with, in this way; `None`: who calls has to run the method.
    Done(Option<MethodAnswer>),
    /// Nothing was done, and why.
    Nothing(String),
}

impl Client {
    /// Has a method run beside a blob at the node of that; `None` where nodes do not run methods:
    /// then who calls does it.
    ///
    /// # Errors
    /// `NotFound` when the keyspace was dropped; `InvalidArgument` for an input that is too long;
    /// `PermissionDenied`; `Unavailable` when the node of the blob is not reached in time, and
    /// nothing was done; `TimedOut` when it does not answer.
    pub async fn call_method(&self, call: MethodCall) -> Result<Option<MethodAnswer>> {
        let until = Instant::now() + self.timeout;
        let blob = call.blob.clone();
        let called = Called::try_from(call)?;
        let mut pause = Duration::ZERO;
        loop {
            let map = self.map();
            if map.level < LEVEL_CALLING {
                return Ok(None);
            }
            if map.is_dropped(blob.keyspace) {
                let text = format!("keyspace {} was dropped", blob.keyspace.0);
                return Err(Error::not_found(text));
            }
            let why = match map.holders(&blob, 0).first() {
                None => "no node that has the object is up".to_owned(),
                Some(node) => match self.call_at(*node, called.clone(), pause, until).await? {
                    Told::Done(answer) => return Ok(answer),
                    Told::Nothing(why) => why,
                },
            };
            pause = LOOK_AGAIN;
            if Instant::now() + pause >= until {
                return Err(Error::unavailable(format!("the method was not called: {why}")));
            }
            // If the monitors do not answer either, the node may by the next time.
            let _ = self.newest().await;
        }
    }

    async fn call_at(
        &self,
        node: NodeId,
        called: Called,
        pause: Duration,
        until: Instant,
    ) -> Result<Told> {
        let patience = until.saturating_duration_since(Instant::now());
        match self.control.call_at(node, called, pause, patience).await? {
            Ok(None | Some(CallAnswer::Unhosted)) => Ok(Told::Done(None)),
            Ok(Some(CallAnswer::Answered(answer))) => Ok(Told::Done(Some(Ok(answer)))),
            Ok(Some(CallAnswer::Failed { cause, refusal })) => {
                Ok(Told::Done(Some(Err(failure(cause, refusal)))))
            }
            Ok(Some(CallAnswer::Elsewhere(epoch))) => {
                let (node, map) = (node.0, epoch);
                let text = format!("by the map of epoch {map} the object is not at node {node}");
                Ok(Told::Nothing(text))
            }
            Err(CallError::NotSent(text)) => Ok(Told::Nothing(text)),
            Err(CallError::Fault(fault)) => Err(fault.into()),
            Err(CallError::Denied(text)) => Err(Error::new(ErrorKind::PermissionDenied, text)),
            Err(CallError::Lost(text)) => {
                let text =
                    format!("{text}; the call may have taken effect, look before calling again");
                Err(Error::new(ErrorKind::TimedOut, text))
            }
        }
    }
}
