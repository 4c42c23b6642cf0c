//! Scrubbing: which chunks are compared, and what is asked and written for it (D4).
//!
//! Holders are asked by reads at a timestamp, as by any client (R5), and what is right is written
//! by a transaction: so nothing new is said to anybody, and nodes of an older version take part.

use std::sync::Arc;

use tyr_types::{
    BlobOperations, ByteRange, Bytes, ErrorKind, NodeId, Operation, Payload, ReadCheck, Timestamp,
    Transaction, TransactionId,
};

use super::{ChunkName, Store, Turn};
use crate::chain::Ends;
use crate::commit;
use crate::commit::recovery;
use crate::message::{Address, Body, ReadPart, ReadRequest};
use crate::movement::scrub::scrubber::NAMES_MAX;
use crate::movement::scrub::{Answer, Effect, Event};
use crate::read::Kind;

impl<S: Store> Turn<'_, S> {
    /// Some time has passed, and there is a lease.
    pub(super) fn scrub(&mut self) {
        let Some(map) = self.member.map.clone() else { return };
        // Also while chunks move: what an authority cannot read nobody can copy from it.
        let is_quiet = self.member.planned.is_empty();
        let now_us = self.member.now.monotonic_us;
        if is_quiet && let Some(after) = self.member.scrubber.wanted(now_us) {
            let mut names = self.store.held(after.as_ref(), NAMES_MAX);
            debug_assert!(names.len() <= NAMES_MAX, "D4: a list is bounded");
            let next = (names.len() == NAMES_MAX).then(|| names.last().cloned()).flatten();
            names.retain(|(blob, chunk)| {
                let holders = map.holders(blob, *chunk);
                holders.first() == Some(&self.member.node) && holders.len() > 1
            });
            self.member.scrubber.list(names, next);
        }
        let clock = self.member.commit.clock();
        self.step_scrubber(Event::Tick { clock, is_quiet });
    }

    /// The node goes by another map.
    pub(super) fn scrub_by_map(&mut self) {
        self.step_scrubber(Event::Map);
    }

    /// A holder has read what it was asked for.
    pub(super) fn scrubbed(&mut self, from: NodeId, part: ReadPart) {
        let ReadPart { read, at, bytes, size, .. } = part;
        let answer = Answer::Holds { at, bytes, size };
        self.step_scrubber(Event::Read { from, read, answer });
    }

    /// A holder does not answer what it was asked for.
    pub(super) fn not_scrubbed(&mut self, from: NodeId, read: u64, kind: ErrorKind) {
        let answer = match kind {
            ErrorKind::Corrupt => Answer::Unreadable,
            ErrorKind::SnapshotTooOld => Answer::TooOld,
            // Perhaps another time.
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Conflict
            | ErrorKind::Unavailable
            | ErrorKind::TimedOut
            | ErrorKind::InvalidArgument
            | ErrorKind::PermissionDenied
            | ErrorKind::QuotaExceeded => return,
        };
        self.step_scrubber(Event::Read { from, read, answer });
    }

    fn step_scrubber(&mut self, event: Event) {
        let Some(map) = self.member.map.clone() else { return };
        let mut effects = Vec::new();
        let now_us = self.member.now.monotonic_us;
        self.member.scrubber.step(now_us, event, &map, &mut effects);
        for effect in effects {
            match effect {
                Effect::Ask { to, read, chunk, range, at } => {
                    self.ask_holder(to, read, chunk, range, at);
                }
                Effect::Rewrite { id, chunk, offset, bytes, at } => {
                    self.rewrite(id, chunk, offset, bytes, at);
                }
                Effect::Tell(finding) => self.effects.push(super::Effect::Found(finding)),
            }
        }
    }

    fn ask_holder(
        &mut self,
        to: NodeId,
        read: u64,
        (blob, chunk): ChunkName,
        range: ByteRange,
        at: Timestamp,
    ) {
        let own = Address::Node(self.member.node);
        let (is_attributes, is_copy, kind) = (chunk == 0, false, Kind::At(at));
        let request = ReadRequest { read, asker: own, blob, range, is_attributes, kind, is_copy };
        match to == self.member.node {
            true => self.read(own, request),
            false => self.send(Address::Node(to), Body::Read(request)),
        }
    }

    /// Writes bytes where they are, if they are still the newest.
    ///
    /// The head of the chain drives it, like one that its client asks about again (F4): whoever
    /// that is finds that nobody knows of it. If it does not come to that, it was never begun.
    fn rewrite(
        &mut self,
        id: TransactionId,
        (blob, _): ChunkName,
        offset: u64,
        bytes: Bytes,
        at: Timestamp,
    ) {
        debug_assert!(!bytes.is_empty(), "D4: what differs has bytes, or is read as it is");
        let Some(map) = self.member.map.clone() else { return };
        let range = ByteRange { start: offset, end: offset + bytes.len() as u64 };
        let check = ReadCheck { blob: blob.clone(), range, is_attributes: false, at, listed: None };
        let operations = vec![Operation::Write { offset, payload: Payload::Inline(bytes) }];
        let blobs = vec![BlobOperations { blob, operations }];
        let transaction = Arc::new(Transaction { id, blobs, reads: vec![check] });
        let Ok(chain) = map.chain(&transaction, &Ends::new()) else { return };
        let is_full = self.member.commit.len() >= commit::IN_FLIGHT_MAX;
        if is_full || !self.member.planned.is_empty() {
            return; // It shows that nothing was written.
        }
        let begun = self.member.commit.clock();
        match chain.hops()[0].node {
            head if head == self.member.node => {
                self.commit(commit::Event::Submit { transaction, chain, begun });
            }
            head => {
                let message = recovery::Message::Ask { transaction, chain, begun };
                self.send(Address::Node(head), Body::Recovery(message));
            }
        }
    }
}
