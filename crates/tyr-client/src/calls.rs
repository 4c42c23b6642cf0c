//! Methods of objects: each is called at the node that is the object's authority by the map. And
//! seats, which are asked at the node that has them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_control::CallError;
use tyr_control::call::{CallAnswer, CallKind, Called, failure};
use tyr_protocol::level::LEVEL_CALLING;
use tyr_types::{BlobName, Error, ErrorKind, MethodAnswer, MethodCall, NodeId, Result, SeatAnswer};

use super::Client;

/// While the object has no node, or is not where it was looked for, it is looked for again after so
/// long: maps change within a second.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a node made of a call.
enum Told {
    /// It is done with, in this way.
    Done(MethodAnswer),
    /// Nothing was done: who calls has to run the method, or to ask otherwise.
    Unhosted,
    /// Nothing was done: this node has the seat that was asked.
    Moved(NodeId),
    /// Nothing was done: the node is not who is to be asked, and why.
    Elsewhere(String),
    /// Nothing was done: the node was not reached, and why.
    Nothing(String),
}

/// Seats of which a client remembers where they were; when there are more, all are asked for anew.
const SEATS_MAX: usize = 4_096;

/// Where seats were when they were last asked, if not at the authority of their key.
#[derive(Debug, Default)]
pub(super) struct KnownSeats(Mutex<HashMap<BlobName, NodeId>>);

impl KnownSeats {
    fn get(&self, seat: &BlobName) -> Option<NodeId> {
        self.0.lock().get(seat).copied()
    }

    fn set(&self, seat: &BlobName, node: Option<NodeId>) {
        let mut known = self.0.lock();
        let Some(node) = node else {
            known.remove(seat);
            return;
        };
        if known.len() >= SEATS_MAX {
            known.clear();
        }
        known.insert(seat.clone(), node);
    }
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
                Some(node) => {
                    let told = self.call_at(*node, CallKind::Object, called.clone(), pause, until);
                    match told.await? {
                        Told::Done(answer) => return Ok(Some(answer)),
                        Told::Unhosted => return Ok(None),
                        Told::Moved(node) => format!("node {} has it", node.0),
                        Told::Elsewhere(why) | Told::Nothing(why) => why,
                    }
                }
            };
            pause = LOOK_AGAIN;
            if Instant::now() + pause >= until {
                return Err(Error::unavailable(format!("the method was not called: {why}")));
            }
            // If the monitors do not answer either, the node may by the next time.
            let _ = self.newest().await;
        }
    }

    /// Asks a seat, at the node that has it (S4): the one that had it last, then the authority of
    /// its key, which knows who has; `None` where nodes have no seats.
    ///
    /// # Errors
    /// As [`Client::call_method`].
    pub async fn ask_seat(&self, request: MethodCall) -> Result<Option<MethodAnswer>> {
        let until = Instant::now() + self.timeout;
        let seat = request.blob.clone();
        let called = Called::try_from(request.clone())?;
        for turn in 0_u32.. {
            let map = self.map();
            if map.level < LEVEL_CALLING || map.is_dropped(seat.keyspace) {
                // It says in words what there is to say.
                return self.call_method(request).await;
            }
            // Who had it last, the authority, and whom that names are asked without a pause.
            let pause = if turn <= 2 { Duration::ZERO } else { LOOK_AGAIN };
            if turn > 0 && Instant::now() + pause >= until {
                break;
            }
            let known = self.seats.get(&seat);
            let asked = known.or_else(|| map.holders(&seat, 0).first().copied());
            let told = match asked {
                Some(node) => {
                    self.call_at(node, CallKind::Seat, called.clone(), pause, until).await?
                }
                None => Told::Nothing("no node that knows where it is is up".to_owned()),
            };
            match told {
                Told::Done(answer) => return Ok(Some(answer)),
                // One of an older release is asked as ever.
                Told::Unhosted if known.is_none() => return self.call_method(request).await,
                Told::Moved(next) => self.seats.set(&seat, Some(next)),
                Told::Unhosted | Told::Elsewhere(_) | Told::Nothing(_) => {
                    self.seats.set(&seat, None);
                    if known.is_none() {
                        let _ = self.newest().await;
                    }
                }
            }
        }
        Err(Error::unavailable("the seat was not asked: no node says that it has it"))
    }

    /// Asks a seat at one node, whether or not that has it; `None` where that has no seats.
    ///
    /// # Errors
    /// As [`Client::call_method`].
    pub async fn ask_seat_at(
        &self,
        node: NodeId,
        request: MethodCall,
    ) -> Result<Option<SeatAnswer>> {
        let until = Instant::now() + self.timeout;
        let called = Called::try_from(request)?;
        match self.call_at(node, CallKind::Seat, called, Duration::ZERO, until).await? {
            Told::Done(answer) => Ok(Some(SeatAnswer::Answered(answer))),
            Told::Moved(node) => Ok(Some(SeatAnswer::Moved(node))),
            Told::Elsewhere(_) => Ok(Some(SeatAnswer::Elsewhere)),
            Told::Unhosted => Ok(None),
            Told::Nothing(why) => Err(Error::unavailable(format!("the seat was not asked: {why}"))),
        }
    }

    async fn call_at(
        &self,
        node: NodeId,
        kind: CallKind,
        called: Called,
        pause: Duration,
        until: Instant,
    ) -> Result<Told> {
        let patience = until.saturating_duration_since(Instant::now());
        match self.control.call_at(node, kind, called, pause, patience).await? {
            Ok(None | Some(CallAnswer::Unhosted)) => Ok(Told::Unhosted),
            Ok(Some(CallAnswer::Moved(node))) => Ok(Told::Moved(NodeId(node))),
            Ok(Some(CallAnswer::Answered(answer))) => Ok(Told::Done(Ok(answer))),
            Ok(Some(CallAnswer::Failed { cause, refusal })) => {
                Ok(Told::Done(Err(failure(cause, refusal))))
            }
            Ok(Some(CallAnswer::Elsewhere(epoch))) => {
                let (node, map) = (node.0, epoch);
                let text = format!("by the map of epoch {map} the object is not at node {node}");
                Ok(Told::Elsewhere(text))
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
