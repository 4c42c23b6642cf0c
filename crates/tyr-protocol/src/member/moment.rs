//! Moments of everything: what a snapshot of a cluster reads at (R6, V5).
//!
//! Every node that is the authority of anything is asked for its clock, and the highest of them is
//! the moment: whoever acknowledged a transaction was the authority of what it wrote, and has moved
//! its clock past it (C8). What was in flight is waited for where it is read (R5).
//!
//! ```text
//!   client ── Moment ────────────► each authority    counts: all blobs, from its clock on
//!          ◄─ Part at its clock ──
//!          ── Moment, at S ──────► each of them      counts: all blobs, at S
//!          ◄─ Part at S ──────────
//!          ── SnapshotEnded ─────► each of them
//! ```
//!
//! Between the two nobody knows S, but all know from where on it is: so what an authority tells of
//! any blob (V2) is true from the first answer on. It must go by the asker's map: an authority that
//! the asker does not know of may have acknowledged something above all of these clocks.

use tyr_types::{ByteRange, Bytes, Epoch, Timestamp};

use super::{Member, Store, Turn};
use crate::abort::Abort;
use crate::message::{Address, Asked, Body, ReadPart};
use crate::read::Kind;
use crate::rule::Rule;

impl<S: Store> Turn<'_, S> {
    /// A client asks the one or the other.
    pub(super) fn take_moment(
        &mut self,
        asker: Address,
        epoch: Epoch,
        read: u64,
        placed: Option<(u64, Timestamp)>,
    ) {
        match placed {
            None => self.begin_moment(asker, epoch, read),
            Some((first, at)) => self.place_moment(asker, first, read, at),
        }
    }

    /// A client asks for the clock, to read all blobs there or above.
    fn begin_moment(&mut self, asker: Address, epoch: Epoch, read: u64) {
        if !self.member.may_begin_moment(epoch) {
            return self.send(asker, Body::NotHere(Asked::Read(read)));
        }
        let (clock, now_us) = (self.member.commit.clock(), self.member.now.monotonic_us);
        let begun = match self.member.commit.rules.hold(Rule::V5) {
            true => self.member.in_use.begin_from(asker, read, clock, now_us),
            false => Ok(clock),
        };
        match begun {
            Ok(clock) => self.answer_moment(asker, read, clock),
            Err(abort) => self.refuse_moment(asker, read, abort),
        }
    }

    /// The client says where it reads who was told a clock as `first`.
    fn place_moment(&mut self, asker: Address, first: u64, read: u64, at: Timestamp) {
        if self.is_ahead(Kind::At(at)) {
            return self.send(asker, Body::NotHere(Asked::Read(read)));
        }
        let now_us = self.member.now.monotonic_us;
        let placed = match self.member.commit.rules.hold(Rule::V5) {
            true => self.member.in_use.place(asker, first, read, at, now_us),
            false => Ok(true),
        };
        match placed {
            Ok(true) => {
                self.member.commit.observe(at); // R5: what comes from now on is above it.
                self.answer_moment(asker, read, at);
            }
            Ok(false) => self.send(asker, Body::NotHere(Asked::Read(read))),
            Err(abort) => self.refuse_moment(asker, read, abort),
        }
    }

    fn answer_moment(&mut self, asker: Address, read: u64, at: Timestamp) {
        let clock = self.member.commit.clock();
        debug_assert!(
            at <= clock || !self.member.commit.rules.hold(Rule::C8),
            "R6: a clock was reached when it is told"
        );
        let part = ReadPart {
            read,
            range: ByteRange::NOTHING,
            at: Some(at),
            version: Timestamp::ZERO,
            bytes: Bytes::new(),
            size: None,
            clock,
        };
        self.send(asker, Body::Part(part));
    }

    fn refuse_moment(&mut self, asker: Address, read: u64, abort: Abort) {
        self.send(asker, Body::Refused { read, abort });
    }
}

impl Member {
    /// Whether a moment may be taken here by who goes by a map of that epoch: under a lease, and
    /// while no other map is known or planned that makes other nodes authorities (M3).
    fn may_begin_moment(&self, epoch: Epoch) -> bool {
        let Some(map) = &self.map else { return false };
        let is_moving = self.planned.iter().any(|planned| planned.map.moved > map.moved);
        self.has_lease() && map.epoch <= epoch && !is_moving
    }
}
