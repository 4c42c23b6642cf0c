//! A call that uploads a piece ahead of its transaction (U1).
//!
//! ```text
//!   a piece ─Stage─► one of the nodes that its chunk is placed on ─► all others
//!           ◄Staged─                                             ◄─
//! ```
//!
//! The piece goes out once, to one of them, which passes it on. Who is silent may be gone, or wait
//! for one that is: then another is sent the same piece, under the same name. Refusals for want of
//! room, or a lease, are tried again elsewhere; others end the call.

use tyr_types::{BlobName, Bytes, ErrorKind, NodeId, PieceId, PieceRef, limits};

use super::effect::{Answer, Effect};
use super::event::CallId;
use super::routing::{Tries, Try, pause_us};
use super::{Session, Task};
use crate::abort::Abort;
use crate::level::LEVEL_STAGING;
use crate::map::DROPPED;
use crate::message::Body;
use crate::upload::{Message, StagedPiece, sum_of};

/// A node that refuses just now is not asked again sooner, in microseconds.
const PAUSE_US: u64 = 50_000;

/// A call that uploads a piece.
#[derive(Clone, Debug)]
pub(super) struct Staging {
    staged: StagedPiece,
    bytes: Bytes,
    /// What answers name.
    pub number: u64,
    tries: Tries,
    /// Who was sent it last and has not said no.
    sent: Option<NodeId>,
    pub refusal: Option<Abort>,
}

impl Staging {
    /// The chunk that the piece is for, and its name.
    pub fn of(self) -> ((BlobName, u64), PieceId) {
        let StagedPiece { piece, blob, chunk } = self.staged;
        ((blob, chunk), piece.id)
    }
}

impl Session {
    /// Uploads a piece for a chunk; the answer names it.
    pub(super) fn begin_staging(
        &mut self,
        call: CallId,
        (blob, chunk): (BlobName, u64),
        bytes: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        let len = u32::try_from(bytes.len()).ok();
        let Some(len) = len.filter(|len| (1..=limits::PIECE_LEN_MAX).contains(len)) else {
            let reason = "a piece has 1 byte to 4 MiB";
            return super::fail(call, Abort::new(ErrorKind::InvalidArgument, reason), effects);
        };
        self.questions_begun += 1;
        let number = self.numbers.of(self.questions_begun);
        let (id, sum) = (PieceId::new(self.client, number), sum_of(&bytes));
        let staged = StagedPiece { piece: PieceRef { id, len, sum }, blob, chunk };
        let (tries, sent, refusal) = (Tries::new(), None, None);
        self.stagings.insert(number, call);
        self.enter(call, Task::Stage(Staging { staged, bytes, number, tries, sent, refusal }));
        self.send_piece(call, effects);
    }

    /// Sends the piece to the next node.
    pub(super) fn send_piece(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Stage(staging)) = self.calls.get(&call).map(|it| &it.task) else { return };
        let StagedPiece { blob, chunk, .. } = &staging.staged;
        if self.map.is_dropped(blob.keyspace) {
            return self.give_up(call, Abort::new(ErrorKind::NotFound, DROPPED), effects);
        }
        if self.map.chunk_size(blob.keyspace).is_none() {
            return self.is_stuck(call, effects);
        }
        if let Err(error) = self.map.check_level(LEVEL_STAGING) {
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return self.give_up(call, abort, effects);
        }
        let holders = self.map.holders(blob, *chunk);
        let live: Vec<NodeId> = holders.into_iter().filter(|it| self.map.is_live(*it)).collect();
        let to = self.routing.choose(&live, &staging.tries, self.now_us);
        let rounds = staging.tries.len() / live.len().max(1) + 1;
        let salt = self.client ^ staging.number;
        let first_us = self.config.commit_retry_us;
        let pause_us = pause_us(first_us, 4 * self.config.retry_max_us, rounds as u32, salt);
        let silent = staging.sent;
        let message = Message::Stage {
            number: staging.number,
            staged: staging.staged.clone(),
            bytes: staging.bytes.clone(),
        };
        let Some(in_flight) = self.calls.get_mut(&call) else { return };
        let Task::Stage(staging) = &mut in_flight.task else { return };
        in_flight.stuck = None;
        staging.sent = to;
        staging.tries.extend(to.map(|node| Try { node, is_open: true }));
        self.resume_in(call, pause_us);
        match to {
            Some(to) => self.send(to, Body::Upload(message), effects),
            None => self.fetch_map(None, effects),
        }
        if let Some(silent) = silent {
            let other = self.another_than(silent); // It may be gone, and the others know.
            self.fetch_map(other, effects);
        }
    }

    /// The piece is durable wherever it is to be.
    pub(super) fn staged(&mut self, from: NodeId, number: u64, effects: &mut Vec<Effect>) {
        let Some(call) = self.stagings.get(&number).copied() else { return };
        self.routing.has_answered(from);
        let Some(Task::Stage(staging)) = self.leave(call, effects) else { return };
        effects.push(Effect::Done { call, answer: Answer::Staged(staging.staged.piece) });
    }

    /// A node does not take the piece, and says why.
    pub(super) fn piece_refused(&mut self, number: u64, abort: Abort, effects: &mut Vec<Effect>) {
        let Some(call) = self.stagings.get(&number).copied() else { return };
        match abort.kind {
            // Another node may have room, or this one soon.
            ErrorKind::Unavailable | ErrorKind::TimedOut => {
                let Some(Task::Stage(staging)) = self.calls.get_mut(&call).map(|it| &mut it.task)
                else {
                    return;
                };
                (staging.sent, staging.refusal) = (None, Some(abort));
                self.resume_in(call, PAUSE_US);
            }
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Conflict
            | ErrorKind::SnapshotTooOld
            | ErrorKind::InvalidArgument
            | ErrorKind::PermissionDenied
            | ErrorKind::QuotaExceeded
            | ErrorKind::Corrupt => self.give_up(call, abort, effects),
        }
    }

    /// A node has no lease, or does not hold the chunk.
    pub(super) fn piece_not_here(&mut self, number: u64) {
        let Some(call) = self.stagings.get(&number).copied() else { return };
        if let Some(Task::Stage(staging)) = self.calls.get_mut(&call).map(|it| &mut it.task) {
            staging.sent = None;
            self.resume_in(call, PAUSE_US);
        }
    }

    /// Tells nodes that pieces of a chunk are not needed any more (U2).
    pub(super) fn unstage(
        &mut self,
        (blob, chunk): (BlobName, u64),
        ids: Vec<PieceId>,
        effects: &mut Vec<Effect>,
    ) {
        let first = self.map.holders(&blob, chunk).into_iter().find(|it| self.map.is_live(*it));
        if let Some(to) = first {
            self.send(to, Body::Upload(Message::Drop { blob, chunk, ids }), effects);
        }
    }
}
