//! One blob's read: which chunks to ask, in which order, and how the parts become an answer.
//!
//! A gather asks questions, each of one chunk, and takes their answers in any order; where the
//! chunks lie and who is asked again is not its affair.
//!
//! ```text
//!   one chunk  ──► Direct ── short, not the first chunk ──┐
//!                    │  ▲                                 ▼
//!                    │  └─ short: with attributes      Opening ◄── several chunks, Transaction,
//!                    │                                    │        Snapshot (R3, R6)
//!   at S ────────────┼──────────────► Pieces ◄────────────┘ S and the size are known
//!                    ▼                 │   └─ short, size unknown ──► Sizing (R7)
//!                 Complete ◄───────────┴────────────────────────────────┘
//! ```
//!
//! The opening goes to a version manager, which answers S and the size with its own chunk; the
//! others are then asked by us, not by the version manager: the client may choose the replicas it
//! finds quick, asks another one when one is silent, holds back when it has asked enough, and
//! never asks for chunks beyond the end. It costs one more trip than if the version manager passed
//! the read on, and no node keeps anything for it.

use std::collections::BTreeMap;

use bytes::BytesMut;
use tyr_types::{ByteRange, Bytes, ErrorKind, Timestamp, limits};

use super::effect::Seen;
use super::event::{Began, Place, Want};
use crate::abort::Abort;
use crate::message::ReadPart;
use crate::read::ending::{Ending, ending};
use crate::read::{Kind, layout};
use crate::rule::{Rule, Rules};

const NOTHING: ByteRange = ByteRange::NOTHING;

/// What is asked of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub chunk: u64,
    pub range: ByteRange,
    pub is_attributes: bool,
    pub kind: Kind,
}

impl Question {
    /// The clock of a blob's authority (R6).
    pub const CLOCK: Self =
        Self { chunk: 0, range: NOTHING, is_attributes: true, kind: Kind::Clock };

    /// Whether `part` can be the answer; nodes that answer anything else are not understood.
    pub fn is_answered_by(&self, part: &ReadPart) -> bool {
        let is_placed = match self.kind {
            Kind::Direct => true,
            Kind::Whole | Kind::First | Kind::Clock => part.at.is_some(),
            Kind::At(at) | Kind::Layout(at) => part.at == Some(at),
        };
        let is_sized = part.size.is_some() || !self.is_attributes || self.kind == Kind::Clock;
        let is_within = match self.kind {
            Kind::Layout(_) => layout::decode(self.range, &part.bytes).is_some(),
            Kind::Direct | Kind::Whole | Kind::First | Kind::Clock | Kind::At(_) => {
                part.bytes.len() as u64 <= self.range.len()
            }
        };
        part.range == self.range && is_within && is_placed && is_sized
    }

    /// Whether its answer begins a snapshot at the version managers (V1).
    pub fn is_beginning(&self) -> bool {
        matches!(self.kind, Kind::Whole | Kind::First)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The newest of one chunk (R1).
    Direct { is_attributes: bool },
    /// S, the size, and what lies in the first chunk.
    Opening(Kind),
    /// The chunks, each at S.
    Pieces,
    /// The size at S (R7).
    Sizing,
    /// Which bytes are written at S.
    Layout(Timestamp),
    /// Everything is there.
    Complete,
}

/// What the blob's keyspace says about reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyspace {
    /// Bytes of a chunk.
    pub chunk_size: u64,
    /// Whether leases keep others off.
    pub is_guarded: bool,
}

/// One blob's read.
#[derive(Clone, Debug)]
pub(super) struct Gather {
    want: Want,
    chunk_size: u64,
    rules: Rules,
    /// What is wanted, cut to the size once that is known.
    range: ByteRange,
    stage: Stage,
    /// The next chunk to ask for in [`Stage::Pieces`]; else 0 while the question is to be asked.
    next: u64,
    pending: u32,
    at: Option<Timestamp>,
    version: Timestamp,
    size: Option<Option<u64>>,
    /// What was found, by where it starts. Bounded by `READ_LEN_MAX`.
    pieces: BTreeMap<u64, Bytes>,
    began: Option<Began>,
    /// What was found is which bytes are written.
    is_layout: bool,
}

impl Gather {
    /// A read of `want`; `guess` is the size as last heard of.
    pub fn new(
        want: &Want,
        place: Place,
        keyspace: Keyspace,
        guess: Option<u64>,
        rules: Rules,
    ) -> Self {
        let Keyspace { chunk_size, is_guarded } = keyspace;
        let mut want = want.clone();
        if want.range.is_empty() {
            (want.range, want.is_attributes) = (NOTHING, true);
        }
        debug_assert!(chunk_size > 0, "a keyspace's configuration is checked");
        let range = want.range;
        let is_of_one =
            range.is_empty() || range.start / chunk_size == (range.end - 1) / chunk_size;
        let is_long = range.len() > limits::READ_LEN_MAX;
        let is_short = guess.is_some_and(|size| size < range.end);
        let is_first = range.start < chunk_size;
        let (stage, at) = match place {
            Place::Newest if is_of_one && is_first && !is_long => {
                (Stage::Direct { is_attributes: want.is_attributes || is_short }, None)
            }
            // Who knows of leases is asked first (K2).
            Place::Newest if is_guarded => (Stage::Opening(Kind::First), None),
            Place::Newest if is_of_one && !is_long && !is_short && !want.is_attributes => {
                (Stage::Direct { is_attributes: false }, None)
            }
            Place::Newest | Place::Transaction => (Stage::Opening(Kind::First), None),
            Place::Snapshot => (Stage::Opening(Kind::First), None),
            Place::Layout(at) => (Stage::Layout(at), Some(at)),
            Place::At(at) if !rules.hold(Rule::R4) && is_of_one && is_first => {
                (Stage::Direct { is_attributes: true }, Some(at))
            }
            // Several chunks, and perhaps not all of them exist: the size comes first.
            Place::At(at) => {
                let is_vague = !is_of_one && (is_short || guess.is_none());
                match want.is_attributes || is_vague || is_long {
                    true => (Stage::Opening(Kind::At(at)), Some(at)),
                    false => (Stage::Pieces, Some(at)),
                }
            }
        };
        let next = if stage == Stage::Pieces { range.start / chunk_size } else { 0 };
        let (version, pieces) = (Timestamp::ZERO, BTreeMap::new());
        let (pending, size, began, is_layout) = (0, None, None, false);
        Self {
            want,
            chunk_size,
            rules,
            range,
            stage,
            next,
            pending,
            at,
            version,
            size,
            pieces,
            began,
            is_layout,
        }
    }

    /// Adds what is to be asked now, at most `room` questions.
    pub fn ask(&mut self, room: usize, questions: &mut Vec<Question>) {
        if room == 0 {
            return;
        }
        let single = match self.stage {
            Stage::Complete => return,
            Stage::Pieces => return self.ask_pieces(room, questions),
            Stage::Direct { .. } | Stage::Opening(_) | Stage::Sizing | Stage::Layout(_)
                if self.next > 0 =>
            {
                return;
            }
            Stage::Layout(at) => {
                let (chunk, range) = (self.range.start / self.chunk_size, self.range);
                Question { chunk, range, is_attributes: false, kind: Kind::Layout(at) }
            }
            Stage::Direct { is_attributes } => {
                let chunk = self.range.start / self.chunk_size;
                Question { chunk, range: self.range, is_attributes, kind: Kind::Direct }
            }
            Stage::Opening(kind) => {
                let mut range = self.share(0);
                range.end = range.end.min(range.start + limits::READ_LEN_MAX);
                Question { chunk: 0, range, is_attributes: true, kind }
            }
            Stage::Sizing => {
                let at = self.at.expect("the size is asked for at S");
                Question { chunk: 0, range: NOTHING, is_attributes: true, kind: Kind::At(at) }
            }
        };
        debug_assert_eq!(self.pending, 0, "what is asked alone is asked when nothing else is");
        (self.next, self.pending) = (1, 1);
        questions.push(single);
    }

    fn ask_pieces(&mut self, room: usize, questions: &mut Vec<Question>) {
        let kind = Kind::At(self.at.expect("pieces are asked for at S"));
        for _ in 0..room {
            if self.next >= self.chunks_end() {
                return;
            }
            let (chunk, range) = (self.next, self.share(self.next));
            debug_assert!(!range.is_empty(), "nothing is asked of chunk {chunk}");
            self.next += 1;
            self.pending += 1;
            questions.push(Question { chunk, range, is_attributes: false, kind });
        }
    }

    /// Takes an answer in; `began` is the snapshot that it began, if any.
    ///
    /// # Errors
    /// `InvalidArgument` when more is there than a read may answer.
    pub fn take(
        &mut self,
        question: &Question,
        part: ReadPart,
        began: Option<Began>,
    ) -> Result<(), Abort> {
        debug_assert!(self.pending > 0, "what was not asked is not taken");
        debug_assert!(question.is_answered_by(&part), "other answers were not understood");
        self.pending -= 1;
        self.version = self.version.max(part.version);
        let is_short = (part.bytes.len() as u64) < question.range.len();
        if question.is_attributes {
            self.size = part.size;
        }
        if !part.bytes.is_empty() {
            let before = self.pieces.insert(part.range.start, part.bytes);
            debug_assert!(before.is_none(), "R4: bytes are asked for once at one timestamp");
        }
        match self.stage {
            Stage::Direct { is_attributes } => {
                self.stage = match (is_short, question.chunk, is_attributes) {
                    (false, _, _) | (true, 0, true) => Stage::Complete,
                    (true, ..) if !self.rules.hold(Rule::R7) => Stage::Complete,
                    // Whether that is the end is ordered only with the attributes (C4).
                    (true, 0, false) => Stage::Direct { is_attributes: true },
                    (true, ..) => Stage::Opening(Kind::First),
                };
                self.next = 0;
                if self.stage != Stage::Complete {
                    self.pieces.clear();
                }
            }
            Stage::Opening(_) => {
                (self.at, self.began) = (part.at, began);
                let size = self.size.flatten().unwrap_or(0);
                self.range.end = self.range.end.min(size).max(self.range.start);
                if self.range.len() > limits::READ_LEN_MAX {
                    let reason = "a read answers at most 64 MiB; read it in several pieces";
                    return Err(Abort::at(&self.want.blob, ErrorKind::InvalidArgument, reason));
                }
                self.stage = Stage::Pieces;
                self.next = (self.range.start / self.chunk_size).max(1);
                self.complete();
            }
            Stage::Pieces => self.complete(),
            Stage::Sizing => self.stage = Stage::Complete,
            Stage::Layout(_) => (self.stage, self.is_layout) = (Stage::Complete, true),
            Stage::Complete => unreachable!("nothing is asked when everything is there"),
        }
        Ok(())
    }

    /// All pieces may be there: is it complete? (R7)
    fn complete(&mut self) {
        if self.pending > 0 || self.next < self.chunks_end() {
            return;
        }
        let is_sized = self.size.is_some() || !self.rules.hold(Rule::R7);
        let ending = ending(self.range, self.held_end(), None);
        self.stage = match ending {
            Ending::AskVersionManager if !is_sized => Stage::Sizing,
            Ending::Complete | Ending::Short { .. } | Ending::AskVersionManager => Stage::Complete,
        };
        self.next = 0;
    }

    /// Whether everything is there.
    pub fn is_complete(&self) -> bool {
        self.stage == Stage::Complete
    }

    /// The answer, once complete.
    pub fn seen(self) -> Seen {
        debug_assert!(self.is_complete() && self.pending == 0, "R7: something is to be asked yet");
        if self.is_layout {
            let Self { want, at, version, size, began, mut pieces, .. } = self;
            let bytes = pieces.pop_first().map(|(_, told)| told).unwrap_or_default();
            return Seen { want, at, version, bytes, size, is_sized: false, began };
        }
        let ByteRange { start, end } = self.range;
        let held_end = self.held_end();
        let end = match ending(self.range, held_end, self.size.map(Option::unwrap_or_default)) {
            Ending::Complete => end,
            Ending::Short { len } => start + len,
            Ending::AskVersionManager => held_end, // R7 is taken away.
        };
        let bytes = self.assemble(end - start);
        debug_assert_eq!(bytes.len() as u64, end - start, "R7: holes are zeros, up to the end");
        let is_sized = self.want.is_attributes || held_end < self.want.range.end;
        let Self { want, at, version, size, began, .. } = self;
        Seen { want, at, version, bytes, size, is_sized, began }
    }

    /// What it began, if it is given up.
    pub fn began(&mut self) -> Option<Began> {
        self.began.take()
    }

    /// Questions that are not answered yet.
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// The first `len` bytes of the range, zeros where nothing was found.
    fn assemble(&self, len: u64) -> Bytes {
        let start = self.range.start;
        let len = usize::try_from(len).expect("READ_LEN_MAX fits");
        match self.pieces.get(&start) {
            Some(piece) if piece.len() >= len => return piece.slice(..len),
            Some(_) | None => {}
        }
        let mut whole = BytesMut::zeroed(len);
        for (at, piece) in &self.pieces {
            let from = usize::try_from(at - start).map_or(len, |from| from.min(len));
            let until = (from + piece.len()).min(len);
            whole[from..until].copy_from_slice(&piece[..until - from]);
        }
        whole.freeze()
    }

    /// Where the last byte found ends.
    fn held_end(&self) -> u64 {
        let last = self.pieces.last_key_value();
        last.map_or(self.range.start, |(at, piece)| at + piece.len() as u64)
    }

    /// What is wanted of a chunk.
    fn share(&self, chunk: u64) -> ByteRange {
        let start = chunk * self.chunk_size;
        let end = start.saturating_add(self.chunk_size);
        let share = self.range.intersection(ByteRange { start, end });
        if share.is_empty() { NOTHING } else { share }
    }

    /// One past the last chunk that is wanted.
    fn chunks_end(&self) -> u64 {
        match self.range.is_empty() {
            true => 0,
            false => (self.range.end - 1) / self.chunk_size + 1,
        }
    }
}
