//! A store that does one thing after the other, for tests of workloads and checkers: right, or
//! wrong in one way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use tyr_protocol::Abort;
use tyr_protocol::commit::Answered;
use tyr_protocol::read::layout;
use tyr_protocol::session::{Answer, Began, Call, LeaseCall, Place, Seen, Want};
use tyr_types::scan::Filling;
use tyr_types::stretch;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, ErrorKind, Existence, KeyspaceId, Leased, Outcome,
    ReadCheck, Scan, ScanEntry, ScanPage, Stat, Timestamp, Transaction, TransactionId,
};

use super::super::{Next, Runner, is_in_two_chunks};
use crate::checker::model::{self, ATTRIBUTES, Blob, Ranges};
use crate::checker::{Applied, answers};
use crate::random::Random;
use crate::setup::Setup;

/// In which way the store is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Single reads show what was there some versions ago.
    StaleReads,
    /// Leases are given to several.
    TwoHolders,
    /// What transactions read is not validated.
    NoValidation,
    /// Conditions are not looked at.
    NoConditions,
    /// Some transactions are acknowledged and not done.
    Lost,
    /// Some transactions are aborted, and done all the same.
    DoneThoughAborted,
    /// Some transactions are done twice.
    DoneTwice,
    /// Some transactions that only write are aborted.
    NeedlessAborts,
    /// Reads of a snapshot are not all of its timestamp.
    TornSnapshots,
    /// Listings show attributes of one moment and bytes of another.
    MixedPages,
    /// `read_many` reads as of a while ago.
    StaleMany,
    /// Appends are told a wrong offset now and then.
    WrongAnswers,
    /// Some transactions are done at a timestamp before the newest of their blobs.
    OutOfOrder,
    /// Some calls are never answered.
    Silent,
    /// Snapshots in use are removed.
    Forgetful,
    /// What is written is told to be a hole now and then.
    FalseHoles,
}

impl Flaw {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::TwoHolders,
        Self::StaleReads,
        Self::NoValidation,
        Self::NoConditions,
        Self::Lost,
        Self::DoneThoughAborted,
        Self::DoneTwice,
        Self::NeedlessAborts,
        Self::TornSnapshots,
        Self::MixedPages,
        Self::StaleMany,
        Self::WrongAnswers,
        Self::OutOfOrder,
        Self::Silent,
        Self::Forgetful,
        Self::FalseHoles,
    ];
}

struct Version {
    at: Timestamp,
    changed: Ranges,
    blob: Blob,
}

#[derive(Debug)]
enum Step {
    Begin,
    Do(Call),
    Answer(Answer),
}

/// The store, its clients, and the time.
pub struct Serial {
    runner: Runner,
    blobs: BTreeMap<BlobName, Vec<Version>>,
    /// The leases that are held.
    leases: BTreeMap<Leased, u64>,
    chunk_size: u64,
    clock: u64,
    sequence: u64,
    applied: Applied,
    random: Random,
    flaw: Option<Flaw>,
    queue: BinaryHeap<Reverse<(u64, u64, u16)>>,
    steps: BTreeMap<u64, Step>,
}

impl Serial {
    /// Runs the workloads of `setup`.
    pub fn run(mut setup: Setup, flaw: Option<Flaw>) -> (Runner, Applied) {
        let chunk_size = setup.keyspaces[0].chunk_size;
        let random = Random::of(setup.seed, "serial", 0);
        let (duration_us, clients) = (setup.duration_us, setup.clients);
        let mut this = Self {
            runner: Runner::new(&mut setup),
            blobs: BTreeMap::new(),
            leases: BTreeMap::new(),
            chunk_size,
            clock: 0,
            sequence: 0,
            applied: Applied::default(),
            random,
            flaw,
            queue: BinaryHeap::new(),
            steps: BTreeMap::new(),
        };
        for client in 0..clients {
            this.push(1 + u64::from(client), client, Step::Begin);
        }
        while let Some(Reverse((now_us, number, client))) = this.queue.pop() {
            if now_us > duration_us {
                this.runner.stop();
            }
            let step = this.steps.remove(&number).expect("what is queued has a step");
            this.step(now_us, client, step);
        }
        (this.runner, this.applied)
    }

    fn push(&mut self, at_us: u64, client: u16, step: Step) {
        self.sequence += 1;
        self.steps.insert(self.sequence, step);
        self.queue.push(Reverse((at_us, self.sequence, client)));
    }

    fn later(&mut self, now_us: u64) -> u64 {
        now_us + self.random.between(100, 4_000)
    }

    fn step(&mut self, now_us: u64, client: u16, step: Step) {
        let later_us = self.later(now_us);
        match step {
            Step::Begin => self.begin(now_us, client),
            Step::Do(call) => {
                let answer = self.perform(now_us, call);
                if !self.is_flawed(Flaw::Silent, 1) {
                    self.push(later_us, client, Step::Answer(answer));
                }
            }
            Step::Answer(answer) => {
                self.runner.answered(client, answer, now_us);
                self.begin(now_us, client);
            }
        }
    }

    fn begin(&mut self, now_us: u64, client: u16) {
        let later_us = self.later(now_us);
        match self.runner.next(client, now_us) {
            Next::Call(call) => self.push(later_us, client, Step::Do(call)),
            Next::Wait(until_us) => self.push(until_us, client, Step::Begin),
            Next::Nothing => {}
        }
    }

    fn is_flawed(&mut self, flaw: Flaw, percent: u64) -> bool {
        self.flaw == Some(flaw) && self.random.percent(percent)
    }

    fn now(&self) -> Timestamp {
        Timestamp { clock: self.clock, ..Timestamp::ZERO }
    }

    fn lease(&mut self, now_us: u64, what: LeaseCall) -> Answer {
        let is_held = self.leases.keys().any(|of| of.meets(&what.of));
        if is_held && !self.is_flawed(Flaw::TwoHolders, 50) {
            let reason = "another holds it";
            return Answer::Failed(Abort::new(ErrorKind::Conflict, reason));
        }
        self.sequence += 1;
        let (lease, until_us) = (self.sequence, now_us + what.duration_us);
        self.leases.insert(what.of, lease);
        Answer::Leased { lease, until_us }
    }

    fn perform(&mut self, now_us: u64, call: Call) -> Answer {
        match call {
            Call::Commit { blobs, reads } => self.commit(now_us, blobs, reads),
            Call::Ask { .. } => panic!("this store never leaves an outcome open"),
            Call::End { .. } => Answer::Ended,
            Call::Stage { .. }
            | Call::Copy { .. }
            | Call::Unstage { .. }
            | Call::Watch { .. }
            | Call::EndWatch { .. }
            | Call::Notify(_)
            | Call::Acknowledge { .. } => {
                unreachable!("its clients upload nothing and do not watch")
            }
            Call::GiveBack { lease } => {
                self.leases.retain(|_, held| *held != lease);
                Answer::Ended
            }
            Call::Lease(what) => self.lease(now_us, what),
            Call::Read { want, place } => {
                let mut at = match place {
                    Place::Newest | Place::Transaction | Place::Snapshot => self.now(),
                    Place::At(at) | Place::Layout(at) => at,
                };
                if let Place::Layout(at) = place {
                    let is_false = self.is_flawed(Flaw::FalseHoles, 10);
                    return Answer::Read(self.layout(want, at, is_false));
                }
                if matches!(place, Place::At(_)) && self.is_flawed(Flaw::Forgetful, 30) {
                    let reason = "it is gone";
                    return Answer::Failed(Abort::new(ErrorKind::SnapshotTooOld, reason));
                }
                let is_direct = place == Place::Newest
                    && want.range.start / self.chunk_size
                        == want.range.end.saturating_sub(1) / self.chunk_size;
                if place == Place::Newest && self.is_flawed(Flaw::StaleReads, 20) {
                    at.clock = at.clock.saturating_sub(30);
                }
                let told = (!is_direct).then_some(at);
                if matches!(place, Place::At(_)) && self.is_flawed(Flaw::TornSnapshots, 50) {
                    at = self.now();
                }
                let is_beginning = matches!(place, Place::Transaction | Place::Snapshot);
                let mut seen = self.read(want, at, told);
                seen.began =
                    is_beginning.then(|| Began { read: now_us, nodes: [].into_iter().collect() });
                Answer::Read(seen)
            }
            Call::Scan { keyspace, scan, at } => {
                let at = at.unwrap_or(self.now());
                let is_mixed = self.is_flawed(Flaw::MixedPages, 50);
                Answer::Page(self.page(keyspace, &scan, at, if is_mixed { self.now() } else { at }))
            }
            Call::Moment => {
                let mut at = self.now();
                if self.is_flawed(Flaw::StaleMany, 50) {
                    at.clock = at.clock.saturating_sub(30);
                }
                Answer::Moment { at: Some(at), began: None }
            }
            Call::ReadMany { wants } => {
                let mut at = self.now();
                if self.is_flawed(Flaw::StaleMany, 50) {
                    at.clock = at.clock.saturating_sub(30);
                }
                let seen = wants.into_iter().map(|want| self.read(want, at, Some(at))).collect();
                Answer::Many { at, seen }
            }
        }
    }

    fn page(
        &self,
        keyspace: KeyspaceId,
        scan: &Scan,
        at: Timestamp,
        bytes_at: Timestamp,
    ) -> ScanPage {
        let mut filling = Filling::new(scan);
        let mut group_before = None;
        let named = self.blobs.keys().filter(|name| name.keyspace == keyspace);
        for name in named.filter(|name| scan.keys().contains(name.key.as_bytes())) {
            let seen = self.blobs[name].iter().rfind(|version| version.at <= at);
            let Some((version, blob)) = seen.and_then(|seen| Some((seen.at, seen.blob.as_ref()?)))
            else {
                continue;
            };
            let group = scan.group_of(name.key.as_bytes()).map(<[u8]>::to_vec);
            if group.is_some() && group == group_before {
                continue;
            }
            if filling.is_full() {
                return filling.finish_here();
            }
            group_before.clone_from(&group);
            match group {
                Some(group) => filling.push_group(group.into()),
                None => {
                    let range = scan.get_range().unwrap_or(ByteRange::NOTHING);
                    let want = Want::bytes(name.clone(), range);
                    let bytes = self.read(want, bytes_at, None).bytes;
                    let stat = Some(Stat { size: blob.len() as u64, version });
                    filling.push(ScanEntry { key: name.key.clone(), stat, bytes });
                }
            }
        }
        filling.finish(None)
    }

    fn read(&self, want: Want, at: Timestamp, told: Option<Timestamp>) -> Seen {
        let versions = self.blobs.get(&want.blob).map_or(&[][..], |versions| versions);
        let seen = versions.iter().rfind(|version| version.at <= at);
        let blob = seen.and_then(|version| version.blob.as_ref());
        let len = blob.map_or(0, Vec::len) as u64;
        let (from, to) = (want.range.start.min(len), want.range.end.min(len));
        let bytes = blob.map_or(&[][..], |blob| &blob[from as usize..to as usize]);
        Seen {
            at: told,
            version: seen.map_or(Timestamp::ZERO, |version| version.at),
            bytes: Bytes::copy_from_slice(bytes),
            size: Some(blob.map(|_| len)),
            is_sized: want.is_attributes || (bytes.len() as u64) < want.range.len(),
            began: None,
            want,
        }
    }

    /// Which bytes are written: those that are not zero.
    fn layout(&self, want: Want, at: Timestamp, is_false: bool) -> Seen {
        let range = want.range;
        let mut seen = self.read(want, at, Some(at));
        let places = (range.start..).zip(seen.bytes.iter()).filter(|(_, byte)| **byte != 0);
        let bytes = places.map(|(start, _)| ByteRange { start, end: start + 1 });
        let mut written = stretch::joined(bytes);
        if is_false {
            written.pop();
        }
        seen.bytes = layout::encode(range, &written);
        seen
    }

    fn commit(&mut self, now_us: u64, blobs: Vec<BlobOperations>, reads: Vec<ReadCheck>) -> Answer {
        self.sequence += 1;
        let id = TransactionId::new(7, self.sequence);
        let transaction = Arc::new(Transaction { id, blobs, reads });
        let aborted = |kind| {
            let transaction = Arc::clone(&transaction);
            Answer::Aborted { transaction, abort: Abort::new(kind, "it is refused") }
        };
        if transaction.blobs.iter().any(|written| is_in_two_chunks(written, self.chunk_size)) {
            return aborted(ErrorKind::InvalidArgument);
        }
        let is_stale = transaction.reads.iter().any(|read| self.is_stale(read));
        if is_stale && self.flaw != Some(Flaw::NoValidation) {
            return aborted(ErrorKind::Conflict);
        }
        if self.is_flawed(Flaw::NeedlessAborts, 2) {
            return aborted(ErrorKind::Conflict);
        }
        self.clock = (self.clock + 1).max(now_us);
        let mut at = self.now();
        if self.is_flawed(Flaw::OutOfOrder, 3) {
            at.clock = self.newest(&transaction.blobs).clock.clamp(2, at.clock) - 1;
        }
        let mut outcomes = Vec::new();
        let mut changes = Vec::new();
        for entry in &transaction.blobs {
            let versions = self.blobs.entry(entry.blob.clone()).or_default();
            let mut blob = versions.last().and_then(|version| version.blob.clone());
            let mut changed = Ranges::new();
            match model::operate(&mut blob, &entry.operations, at, &mut changed) {
                Ok(its) => outcomes.push(its),
                Err(_) if self.flaw == Some(Flaw::NoConditions) => outcomes.push(Vec::new()),
                Err(place) => {
                    return aborted(match answers::asked(&entry.operations[place]) {
                        Some(Existence::Absent) => ErrorKind::AlreadyExists,
                        Some(Existence::Present) => ErrorKind::NotFound,
                        None => ErrorKind::Conflict,
                    });
                }
            }
            changes.push((entry, changed, blob));
        }
        if !self.is_flawed(Flaw::Lost, 1) {
            for (entry, changed, blob) in changes {
                let versions = self.blobs.get_mut(&entry.blob).expect("it was just there");
                versions.push(Version { at, changed, blob });
            }
            if !transaction.blobs.is_empty() {
                self.applied.note(id, at);
            }
        }
        if self.is_flawed(Flaw::DoneTwice, 2) {
            for entry in &transaction.blobs {
                let versions = self.blobs.get_mut(&entry.blob).expect("it was just there");
                let mut blob = versions.last().and_then(|version| version.blob.clone());
                if model::operate(&mut blob, &entry.operations, at, &mut Ranges::new()).is_ok() {
                    let changed = [ATTRIBUTES].into_iter().collect();
                    versions.push(Version { at, changed, blob });
                }
            }
        }
        if self.is_flawed(Flaw::DoneThoughAborted, 2) && transaction.is_conditional() {
            return aborted(ErrorKind::Conflict);
        }
        let outcomes = self.answers(&outcomes).into();
        Answer::Committed { transaction, at, outcomes }
    }

    /// When the newest version of these blobs was written.
    fn newest(&self, blobs: &[BlobOperations]) -> Timestamp {
        let versions = blobs.iter().filter_map(|entry| self.blobs.get(&entry.blob)?.last());
        versions.map(|version| version.at).max().unwrap_or(Timestamp::ZERO)
    }

    fn answers(&mut self, outcomes: &[Vec<Outcome>]) -> Vec<Answered> {
        let mut answers = Vec::new();
        for (blob, its) in (0..).zip(outcomes) {
            for (operation, outcome) in (0..).zip(its) {
                let outcome = match outcome {
                    Outcome::Done => continue,
                    Outcome::Offset(offset) if self.is_flawed(Flaw::WrongAnswers, 2) => {
                        Outcome::Offset(offset + 8)
                    }
                    other => *other,
                };
                answers.push(Answered { blob, operation, outcome });
            }
        }
        answers
    }

    fn is_stale(&self, read: &ReadCheck) -> bool {
        if let Some(listed) = &read.listed {
            let is_listed = |blob: &BlobName| {
                blob.keyspace == read.blob.keyspace && listed.keys.contains(blob.key.as_bytes())
            };
            let mut listed = self.blobs.iter().filter(|(blob, _)| is_listed(blob));
            return listed.any(|(_, all)| all.last().is_some_and(|newest| newest.at > read.at));
        }
        let versions = self.blobs.get(&read.blob).map_or(&[][..], |versions| versions);
        let newer = versions.iter().rev().take_while(|version| version.at > read.at);
        newer.flat_map(|version| &version.changed).any(|changed| {
            changed.overlaps(read.range) || read.is_attributes && *changed == ATTRIBUTES
        })
    }
}
