//! Reads: who may be answered here, and the way between askers and the read machine (R1..R7).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_types::{ByteRange, Bytes, ErrorKind, NodeId, Timestamp};

use super::submission::AHEAD_MAX_US;
use super::{Effect, Store, Turn};
use crate::abort::Abort;
use crate::footprint::Footprint;
use crate::map::ClusterMap;
use crate::message::{Address, Asked, Body, ReadPart, ReadRequest};
use crate::read::{self, Kind, ReadId, Request};
use crate::rule::Rule;

/// A read that is in the read machine.
#[derive(Clone, Debug)]
struct InMachine {
    request: ReadRequest,
    since_us: u64,
}

/// The reads in the read machine, by the number they have there, and by asker.
#[derive(Debug, Default)]
pub(super) struct AskedReads {
    by_id: BTreeMap<ReadId, InMachine>,
    by_asker: BTreeMap<(Address, u64), ReadId>,
    given: u64,
}

impl AskedReads {
    /// A number in the read machine that no other has.
    pub fn number(&mut self) -> ReadId {
        self.given += 1;
        ReadId(self.given)
    }

    fn add(&mut self, request: ReadRequest, since_us: u64) -> ReadId {
        let id = self.number();
        let asked = self.by_asker.insert((request.asker, request.read), id);
        debug_assert!(asked.is_none(), "a read of an asker is asked once: {id:?}");
        let numbered = self.by_id.insert(id, InMachine { request, since_us });
        debug_assert!(numbered.is_none(), "a number is never used again: {id:?}");
        id
    }

    fn remove(&mut self, id: ReadId) -> Option<ReadRequest> {
        let InMachine { request, .. } = self.by_id.remove(&id)?;
        let found_as = self.by_asker.remove(&(request.asker, request.read));
        debug_assert_eq!(found_as, Some(id), "a read is found by its asker while it waits");
        debug_assert_eq!(self.by_id.len(), self.by_asker.len(), "both have the same reads");
        Some(request)
    }

    /// The number of reads that are in the machine.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn invariants(&self) {
        assert_eq!(self.by_id.len(), self.by_asker.len(), "a read of an asker is asked once");
        let last = self.by_id.last_key_value().map_or(0, |(id, _)| id.0);
        assert!(last <= self.given, "a number that is used was given, and is not given again");
        for (asked, id) in &self.by_asker {
            let request = &self.by_id[id].request;
            assert_eq!((request.asker, request.read), *asked, "a read is found by its asker");
        }
    }
}

impl<S: Store> Turn<'_, S> {
    /// A read arrives, from its asker or handed on by a node.
    pub(super) fn read(&mut self, from: Address, request: ReadRequest) {
        self.read_unless_kept_off(from, request, self.member.now.monotonic_us);
    }

    /// The same of a read that came then, and may have been kept off since (K2).
    pub(super) fn read_unless_kept_off(
        &mut self,
        from: Address,
        request: ReadRequest,
        since_us: u64,
    ) {
        let asked = (request.asker, request.read);
        if matches!(from, Address::Client(_)) && (request.asker != from || request.is_copy) {
            return; // For somebody else: not for a client to ask.
        }
        let own = Address::Node(self.member.node);
        if request.asker == own && from != own {
            return; // A holder cannot show that yet: it is asked again (D4).
        }
        if self.member.asked.by_asker.contains_key(&asked) {
            return; // It waits here already.
        }
        let Some(map) = self.member.map.clone() else { return };
        let chunk = match chunk_of(&map, &request) {
            Ok(chunk) => chunk,
            Err(abort) => return self.refuse_read(&request, abort),
        };
        let holders = map.holders(&request.blob, chunk);
        let authority = holders.first().copied();
        let was_handed_on = matches!(from, Address::Node(_)) && from != request.asker;
        let needs_authority = was_handed_on || request.is_copy;
        let (Some(authority), true) = (authority, self.may_answer(&request, chunk)) else {
            return self.read_not_here(&request);
        };
        // Who hands a read on means this node to wait. If it is not the authority by its own map
        // the asker has to look again; or two nodes would hand it to and fro.
        if needs_authority && authority != self.member.node || self.is_ahead(request.kind) {
            return self.read_not_here(&request);
        }
        if chunk == 0 && self.is_read_guarded(&request) {
            if authority != self.member.node {
                return self.send(Address::Node(authority), Body::Read(request));
            }
            if self.is_read_kept_off(from, &request, since_us) {
                return;
            }
        }
        let mut footprint = footprint(&request, chunk, &map);
        if chunk == 0 && authority != self.member.node && !footprint.is_attributes {
            footprint.is_attributes = self.may_show_growth(&request);
        }
        let (blob, kind) = (request.blob.clone(), request.kind);
        let id = self.member.asked.add(request, self.member.now.monotonic_us);
        self.ask_reads(read::Event::Ask(Request { id, blob, footprint, authority, kind }));
    }

    /// Whether what is read here of a first chunk may be a hole, rather than behind the blob's end,
    /// by what is not to be shown here yet (R2): a first chunk knows where the blob ends.
    fn may_show_growth(&self, ReadRequest { blob, range, .. }: &ReadRequest) -> bool {
        let reshaped = || self.store.newest_overlapping(blob, *range, true);
        self.member.commit.may_show_growth(blob, reshaped)
    }

    /// Whether a read is at a timestamp that no node has given out: reading there would pull the
    /// clock along (R5).
    pub(super) fn is_ahead(&self, kind: Kind) -> bool {
        let Some(at) = kind.at() else { return false };
        let now_us = self.member.commit.clock().clock.max(self.member.now.wall_us);
        at.epoch > self.member.epoch() || at.clock > now_us.saturating_add(AHEAD_MAX_US)
    }

    /// Whether this node may answer the read: it has a lease and holds the chunk, and no planned
    /// map takes it away, nor the authority over it.
    fn may_answer(&self, request: &ReadRequest, chunk: u64) -> bool {
        let node = self.member.node;
        let Some(map) = &self.member.map else { return false };
        let holders = map.holders(&request.blob, chunk);
        let is_authority = holders.first() == Some(&node);
        let is_copied =
            |asker: NodeId| is_authority && map.recipients(&request.blob, chunk).contains(&asker);
        let is_allowed = match (request.is_copy, request.asker) {
            (true, Address::Node(asker)) => is_copied(asker),
            (true, Address::Client(_) | Address::Monitors) => false,
            (false, _) => true,
        };
        let is_taken = |planned: &Arc<ClusterMap>| {
            let then = planned.holders(&request.blob, chunk);
            !then.contains(&node) || is_authority && then.first() != Some(&node)
        };
        self.member.has_lease()
            && holders.contains(&node)
            && is_allowed
            && !self.is_planned_away(is_taken)
    }

    /// Tells the read machine of an event, and does what it asks for.
    pub(super) fn ask_reads(&mut self, event: read::Event) {
        let mut effects = Vec::new();
        self.member.reads.step(event, &mut self.member.commit, &mut effects);
        for effect in effects {
            match effect {
                read::Effect::Serve { id, at } => self.serve(id, at),
                read::Effect::List { id } => self.serve_listing(id),
                read::Effect::AnswerClock { id, clock } => self.answer_clock(id, clock),
                read::Effect::Forward { to, request } => {
                    if let Some(request) = self.member.asked.remove(request.id) {
                        self.send(Address::Node(to), Body::Read(request));
                    }
                }
                read::Effect::Refuse { id, abort } if self.refuse_listing(id, &abort) => {}
                read::Effect::Refuse { id, abort } => {
                    if let Some(request) = self.member.asked.remove(id) {
                        self.refuse_read(&request, abort);
                    }
                }
            }
        }
    }

    /// A read has waited long enough: it is answered, if it still may be.
    fn serve(&mut self, id: ReadId, at: Option<Timestamp>) {
        let Some(request) = self.member.asked.remove(id) else { return };
        if !self.is_still_here(&request) {
            return self.read_not_here(&request);
        }
        // V1: a snapshot is in use from its first read on.
        if let (Kind::Whole | Kind::First, Some(at), false) = (request.kind, at, request.is_copy)
            && self.member.commit.rules.hold(Rule::V1)
        {
            let (asker, read) = (request.asker, request.read);
            let (in_use, now_us) = (&mut self.member.in_use, self.member.now.monotonic_us);
            if let Err(abort) = in_use.begin(asker, read, &request.blob, at, now_us) {
                return self.refuse_read(&request, abort);
            }
        }
        let (clock, rules) = (self.member.commit.clock(), self.member.commit.rules);
        let is_fixed = at.is_none_or(|at| at <= clock) || !rules.hold(Rule::C8);
        debug_assert!(is_fixed, "R5: what is served at {at:?} may still change");
        self.effects.push(Effect::Serve { request, at });
    }

    fn answer_clock(&mut self, id: ReadId, clock: Timestamp) {
        let Some(request) = self.member.asked.remove(id) else { return };
        if !self.is_still_here(&request) {
            return self.read_not_here(&request);
        }
        debug_assert!(
            clock <= self.member.commit.clock(),
            "R6: a clock was reached when it is told"
        );
        let part = ReadPart {
            read: request.read,
            range: request.range,
            at: Some(clock),
            version: Timestamp::ZERO,
            bytes: Bytes::new(),
            size: None,
            clock,
        };
        self.send(request.asker, Body::Part(part));
    }

    fn is_still_here(&self, request: &ReadRequest) -> bool {
        let map = self.member.map.as_ref();
        let chunk = map.and_then(|map| chunk_of(map, request).ok());
        chunk.is_some_and(|chunk| self.may_answer(request, chunk))
    }

    /// Nobody waits for this read any more.
    pub(super) fn cancel_read(&mut self, asker: Address, read: u64) {
        if let Some(id) = self.member.asked.by_asker.get(&(asker, read)).copied() {
            self.member.asked.remove(id);
            self.ask_reads(read::Event::Cancel { id });
        }
        if self.member.key_leases.reads.len() > 0 {
            self.member.key_leases.reads.cancel(asker, read);
        }
        if let Address::Client(client) = asker {
            self.cancel_listing(client, read);
        }
    }

    /// Gives up the reads that may not be answered here any more, and those that wait too long.
    pub(super) fn review_reads(&mut self) {
        let now_us = self.member.now.monotonic_us;
        let wait_max_us = self.member.config.wait_max_us;
        let given_up: BTreeSet<ReadId> = self
            .member
            .asked
            .by_id
            .iter()
            .filter(|(_, it)| {
                let is_late = now_us.saturating_sub(it.since_us) >= wait_max_us;
                is_late || !self.is_still_here(&it.request)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in given_up {
            let Some(request) = self.member.asked.remove(id) else { continue };
            self.ask_reads(read::Event::Cancel { id });
            self.read_not_here(&request);
        }
        self.review_listings();
    }

    fn read_not_here(&mut self, request: &ReadRequest) {
        self.send(request.asker, Body::NotHere(Asked::Read(request.read)));
    }

    fn refuse_read(&mut self, request: &ReadRequest, abort: Abort) {
        self.send(request.asker, Body::Refused { read: request.read, abort });
    }
}

/// The chunk that a read is of; why it is of none.
pub(super) fn chunk_of(map: &ClusterMap, request: &ReadRequest) -> Result<u64, Abort> {
    let refuse = |kind, reason| Err(Abort::at(&request.blob, kind, reason));
    let Some(size) = map.chunk_size(request.blob.keyspace) else {
        return refuse(ErrorKind::NotFound, "there is no keyspace of this number");
    };
    let chunk = request.range.start / size;
    if request.range.start > request.range.end {
        return refuse(ErrorKind::InvalidArgument, "a range ends at or after its start");
    }
    if !request.range.is_empty() && (request.range.end - 1) / size != chunk {
        return refuse(
            ErrorKind::InvalidArgument,
            "a read is of one chunk; ask for each by itself",
        );
    }
    let is_attributes = request.is_attributes && !request.is_copy;
    match chunk {
        1.. if is_attributes || matches!(request.kind, Kind::Clock) => {
            refuse(ErrorKind::InvalidArgument, "size and clock are asked of chunk 0")
        }
        chunk => Ok(chunk),
    }
}

/// What a read waits for. A copy of a piece also says whether that is all there is of the chunk:
/// so it waits for what is written behind it, too (D2).
fn footprint(request: &ReadRequest, chunk: u64, map: &ClusterMap) -> Footprint {
    let is_attributes = request.is_attributes && chunk == 0;
    match request.kind {
        Kind::Whole | Kind::At(_) if request.is_copy => {
            let whole = map.chunk_range(request.blob.keyspace, chunk).unwrap_or(request.range);
            let range = ByteRange { end: whole.end, ..request.range };
            Footprint { range, is_attributes: chunk == 0 }
        }
        Kind::Whole | Kind::Clock => Footprint::BLOB,
        Kind::First => Footprint { range: request.range, is_attributes: chunk == 0 },
        Kind::Direct | Kind::At(_) | Kind::Layout(_) => {
            Footprint { range: request.range, is_attributes }
        }
    }
}
