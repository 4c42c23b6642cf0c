//! A call that uploads a piece ahead of its transaction (U1), or has nodes fill it (U5).
//!
//! ```text
//!   a piece ─Stage, Copy─► one of the nodes that its chunk is placed on ─► all others
//!           ◄Staged, Copied─                                           ◄─
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
use crate::level::{LEVEL_COPYING, LEVEL_STAGING};
use crate::map::{ClusterMap, DROPPED};
use crate::message::Body;
use crate::upload::{Message, PieceSource, StagedPiece, sum_of};

/// A node that refuses just now is not asked again sooner, in microseconds.
const PAUSE_US: u64 = 50_000;

/// A call that uploads a piece.
#[derive(Clone, Debug)]
pub(super) struct Staging {
    blob: BlobName,
    chunk: u64,
    id: PieceId,
    content: Content,
    /// What answers name.
    pub number: u64,
    tries: Tries,
    /// Who was sent it last and has not said no.
    sent: Option<NodeId>,
    pub refusal: Option<Abort>,
}

/// What is in a piece.
#[derive(Clone, Debug)]
enum Content {
    /// Bytes, with their length and sum.
    Bytes(PieceRef, Bytes),
    /// What nodes find there.
    Source(PieceSource),
}

impl Staging {
    /// The chunk that the piece is for, and its name.
    pub fn of(self) -> ((BlobName, u64), PieceId) {
        ((self.blob, self.chunk), self.id)
    }

    fn message(&self) -> Message {
        let (number, blob, chunk) = (self.number, self.blob.clone(), self.chunk);
        match &self.content {
            Content::Bytes(piece, bytes) => {
                let staged = StagedPiece { piece: *piece, blob, chunk };
                Message::Stage { number, staged, bytes: bytes.clone() }
            }
            Content::Source(source) => {
                Message::Copy { number, id: self.id, blob, chunk, source: source.clone() }
            }
        }
    }

    /// The piece that an answer tells of, if it answers this.
    fn answered(&self, told: Option<PieceRef>) -> Option<PieceRef> {
        match (&self.content, told) {
            (Content::Bytes(piece, _), None) => Some(*piece),
            (Content::Source(source), Some(piece)) => {
                let is_it = piece.id == self.id && u64::from(piece.len) == source.range.len();
                is_it.then_some(piece)
            }
            (Content::Bytes(..), Some(_)) | (Content::Source(_), None) => None,
        }
    }

    /// Whether the map says that it cannot be.
    fn check(&self, map: &ClusterMap) -> Result<(), Abort> {
        let (needed, source) = match &self.content {
            Content::Bytes(..) => (LEVEL_STAGING, None),
            Content::Source(source) => (LEVEL_COPYING, Some(source.blob.keyspace)),
        };
        if source.is_some_and(|source| map.is_dropped(source)) {
            return Err(Abort::new(ErrorKind::NotFound, DROPPED));
        }
        let refused = map.check_level(needed);
        refused.map_err(|error| Abort::new(error.kind(), error.message().to_owned()))
    }
}

impl Session {
    /// Uploads a piece for a chunk; the answer names it.
    pub(super) fn begin_staging(
        &mut self,
        call: CallId,
        place: (BlobName, u64),
        bytes: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        let len = u32::try_from(bytes.len()).ok();
        let Some(len) = len.filter(|len| (1..=limits::PIECE_LEN_MAX).contains(len)) else {
            let reason = "a piece has 1 byte to 4 MiB";
            return super::fail(call, Abort::new(ErrorKind::InvalidArgument, reason), effects);
        };
        let sum = sum_of(&bytes);
        let content = |id| Content::Bytes(PieceRef { id, len, sum }, bytes);
        self.begin_piece(call, place, content, effects);
    }

    /// Has nodes fill a piece for a chunk; the answer names it.
    pub(super) fn begin_copying(
        &mut self,
        call: CallId,
        place: (BlobName, u64),
        source: PieceSource,
        effects: &mut Vec<Effect>,
    ) {
        self.begin_piece(call, place, |_| Content::Source(source), effects);
    }

    fn begin_piece(
        &mut self,
        call: CallId,
        (blob, chunk): (BlobName, u64),
        content: impl FnOnce(PieceId) -> Content,
        effects: &mut Vec<Effect>,
    ) {
        self.questions_begun += 1;
        let number = self.numbers.of(self.questions_begun);
        let id = PieceId::new(self.client, number);
        let (content, tries, sent, refusal) = (content(id), Tries::new(), None, None);
        self.stagings.insert(number, call);
        let staging = Staging { blob, chunk, id, content, number, tries, sent, refusal };
        self.enter(call, Task::Stage(staging));
        self.send_piece(call, effects);
    }

    /// Sends the piece to the next node.
    pub(super) fn send_piece(&mut self, call: CallId, effects: &mut Vec<Effect>) {
        let Some(Task::Stage(staging)) = self.calls.get(&call).map(|it| &it.task) else { return };
        let (blob, chunk) = (&staging.blob, staging.chunk);
        if self.map.is_dropped(blob.keyspace) {
            return self.give_up(call, Abort::new(ErrorKind::NotFound, DROPPED), effects);
        }
        if self.map.chunk_size(blob.keyspace).is_none() {
            return self.is_stuck(call, effects);
        }
        if let Err(abort) = staging.check(&self.map) {
            return self.give_up(call, abort, effects);
        }
        let holders = self.map.holders(blob, chunk);
        let live: Vec<NodeId> = holders.into_iter().filter(|it| self.map.is_live(*it)).collect();
        let to = self.routing.choose(&live, &staging.tries, self.now_us);
        let rounds = staging.tries.len() / live.len().max(1) + 1;
        let salt = self.client ^ staging.number;
        let first_us = self.config.commit_retry_us;
        let pause_us = pause_us(first_us, 4 * self.config.retry_max_us, rounds as u32, salt);
        let silent = staging.sent;
        let message = staging.message();
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
            self.ask_others_than(silent, effects);
        }
    }

    /// A node says something of a piece.
    pub(super) fn hear_of_piece(
        &mut self,
        from: NodeId,
        message: Message,
        effects: &mut Vec<Effect>,
    ) {
        match message {
            Message::Staged { number } => self.staged(from, number, None, effects),
            Message::Copied { number, piece } => self.staged(from, number, Some(piece), effects),
            Message::Stage { .. }
            | Message::Copy { .. }
            | Message::Pass { .. }
            | Message::Passed { .. }
            | Message::Fetch { .. }
            | Message::Lacking { .. }
            | Message::Drop { .. } => {} // Not for clients.
        }
    }

    /// The piece is durable wherever it is to be; one that nodes have filled is told.
    fn staged(
        &mut self,
        from: NodeId,
        number: u64,
        told: Option<PieceRef>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(call) = self.stagings.get(&number).copied() else { return };
        self.routing.has_answered(from);
        let Some(Task::Stage(staging)) = self.calls.get(&call).map(|it| &it.task) else { return };
        let Some(piece) = staging.answered(told) else { return };
        self.leave(call, effects);
        effects.push(Effect::Done { call, answer: Answer::Staged(piece) });
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
