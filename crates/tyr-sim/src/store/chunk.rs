//! The versions of a chunk: what was applied to it, newest last, over a base.
//!
//! ```text
//!   base (floor) ── effect ── effect ── … ── effect = latest
//!                     └ a checkpoint after every so many
//! ```
//!
//! A read at a timestamp is the base and the effects up to there, done again from the checkpoint
//! before. What is below the floor is gone (V3, V4). While the chunk is on its way here by copy,
//! effects come before the base that they lie over: they wait, and are done again on top of it.

mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use tyr_protocol::movement::ChunkCopy;
use tyr_protocol::upload::with_content;
use tyr_types::chunk::{Answers, Place, Start};
use tyr_types::{
    ByteRange, Bytes, Operation, PieceContent, PieceId, PieceRef, Timestamp, TransactionId,
};

use super::content::{Content, Written};

/// Effects between checkpoints: about what costs as much to do again as a small chunk to copy.
const CHECKPOINT_EVERY: usize = 16;

/// What made a version of a chunk.
#[derive(Clone, Debug)]
pub struct Effect {
    /// When: the version.
    pub at: Timestamp,
    /// What happened.
    pub cause: Cause,
    /// What it wrote here.
    pub written: Written,
}

/// What happened to a chunk.
#[derive(Clone, Debug)]
pub enum Cause {
    /// A transaction.
    Transaction {
        /// Which.
        id: TransactionId,
        /// What it does on the blob, in order.
        operations: Arc<[Operation]>,
        /// Where the blob ended before.
        start: Start,
    },
    /// It came like this from another node.
    Copy(Arc<Content>),
}

/// A chunk with its versions.
#[derive(Clone, Debug)]
pub struct Chunk {
    place: Place,
    /// What is below is gone: reads see the base from here on.
    floor: Timestamp,
    base: Arc<Content>,
    /// What the base is made of: versions with what they wrote, ascending.
    folded: Vec<(Timestamp, Written)>,
    effects: Vec<Effect>,
    /// What there was after every [`CHECKPOINT_EVERY`]th effect.
    checkpoints: Vec<Arc<Content>>,
    /// The newest content; shared by those who read it, so that nobody copies it.
    latest: Arc<Content>,
    /// Whether the base is still to come; the pieces that came.
    awaited: Option<Vec<ChunkCopy>>,
    /// While it is awaited: of which moment it is what is here of it, which may be the base.
    stands_at: Option<Timestamp>,
    /// Up to where it was copied from elsewhere, or folded before a restart: what is at or below is
    /// in the base.
    copied: Option<Timestamp>,
    /// What came without all of its pieces: a base that has it must follow (U3), or the chunk goes.
    hollow: BTreeSet<Timestamp>,
}

/// A version of a chunk that could go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// Its timestamp.
    pub version: Timestamp,
    /// That of the next one.
    pub superseded_at: Timestamp,
}

impl Chunk {
    /// An empty one, of these bytes of its blob.
    pub fn new(range: ByteRange) -> Self {
        Self {
            place: Place { range },
            floor: Timestamp::ZERO,
            base: Arc::default(),
            folded: Vec::new(),
            effects: Vec::new(),
            checkpoints: Vec::new(),
            latest: Arc::default(),
            awaited: None,
            stands_at: None,
            copied: None,
            hollow: BTreeSet::new(),
        }
    }

    /// The newest content.
    pub fn latest(&self) -> &Content {
        &self.latest
    }

    /// Whether the base is still to come.
    pub fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// The number of versions.
    pub fn versions(&self) -> usize {
        self.effects.len() + 1
    }

    /// Applies what a transaction does here; answers what its operations answer, nothing while the
    /// base is still to come, and when it came with the copy. What was applied already answers the
    /// same again.
    ///
    /// # Panics
    /// When something newer was applied (C6).
    pub fn apply(&mut self, at: Timestamp, mut cause: Cause) -> Answers {
        if self.copied.is_some_and(|copied| at <= copied) {
            return Answers::new();
        }
        if cause.fill(self.place) {
            self.hollow.insert(at);
        }
        let place = self.effects.partition_point(|other| other.at < at);
        let is_again = self.effects.get(place).is_some_and(|other| other.at == at);
        let answers = match is_again {
            true => self.answers_again(place),
            false => self.apply_once(place, Effect { at, cause, written: Written::default() }),
        };
        if self.is_awaited() { Answers::new() } else { answers }
    }

    fn apply_once(&mut self, place: usize, effect: Effect) -> Answers {
        let newest = self.effects.last().map_or(self.floor, |last| last.at);
        let is_late = effect.at <= newest && newest != Timestamp::ZERO;
        assert!(
            !is_late || self.is_awaited(),
            "violation: {} at {} is applied to {:?} after what came at {newest} (C6)",
            effect.cause.name(),
            effect.at,
            self.place.range,
        );
        if place == self.effects.len() {
            return self.add(effect);
        }
        self.effects.insert(place, effect);
        self.redo(place)
    }

    fn answers_again(&self, place: usize) -> Answers {
        let before = place.checked_sub(1).map_or(self.floor, |before| self.effects[before].at);
        let content = self.content_at(Some(before)).expect("nothing above the floor is gone");
        let (_, answers) = self.effects[place].happen(self.place, &mut Content::clone(&content));
        answers
    }

    /// Does an effect on top of all others.
    fn add(&mut self, mut effect: Effect) -> Answers {
        let latest = Arc::make_mut(&mut self.latest);
        let (written, answers) = effect.happen(self.place, latest);
        effect.written = written;
        self.effects.push(effect);
        if self.effects.len().is_multiple_of(CHECKPOINT_EVERY) {
            self.checkpoints.push(Arc::clone(&self.latest));
        }
        answers
    }

    /// What is read at `at`, or the newest; `None` when that is gone.
    pub fn content_at(&self, at: Option<Timestamp>) -> Option<Arc<Content>> {
        let Some(at) = at else { return Some(Arc::clone(&self.latest)) };
        if at < self.floor {
            return None;
        }
        let count = self.effects.partition_point(|effect| effect.at <= at);
        let checkpoint = count / CHECKPOINT_EVERY;
        let mut content = match checkpoint.checked_sub(1) {
            None => Arc::clone(&self.base),
            Some(place) => Arc::clone(&self.checkpoints[place]),
        };
        for effect in &self.effects[checkpoint * CHECKPOINT_EVERY..count] {
            effect.happen(self.place, Arc::make_mut(&mut content));
        }
        Some(content)
    }

    /// The newest version up to `at` that wrote something of `range`, or the attributes if they are
    /// asked for.
    pub fn newest(&self, range: ByteRange, is_attributes: bool, at: Timestamp) -> Timestamp {
        let above = self.effects.iter().rev().map(|effect| (effect.at, &effect.written));
        let below = self.folded.iter().rev().map(|(version, written)| (*version, written));
        above
            .chain(below)
            .find(|(version, written)| *version <= at && written.overlaps(range, is_attributes))
            .map_or(Timestamp::ZERO, |(version, _)| version)
    }

    /// Removes the oldest versions for as long as `may_go` says; answers how many.
    pub fn remove_versions(&mut self, mut may_go: impl FnMut(Oldest) -> bool) -> usize {
        let mut version = self.floor;
        let gone = self
            .effects
            .iter()
            .take_while(|effect| {
                let oldest = Oldest { version, superseded_at: effect.at };
                version = effect.at;
                may_go(oldest)
            })
            .count();
        if gone > 0 {
            let floor = self.effects[gone - 1].at;
            self.base = self.content_at(Some(floor)).expect("the floor is not above it yet");
            self.floor = floor;
            let effects = self.effects.drain(..gone);
            self.folded.extend(effects.map(|effect| (effect.at, effect.written)));
            self.redo(0);
        }
        gone
    }

    /// Whether everything at or below `at` is in the base.
    pub fn has_base_at(&self, at: Timestamp) -> bool {
        self.copied.is_some_and(|copied| at <= copied)
    }

    /// What becomes durable of it when everything at or below `at` is applied: that, in its base,
    /// and nothing above. What went already, and what was copied, may be of a later moment. From
    /// the first kept moment on its versions stay (V7).
    pub fn folded(&self, at: Timestamp, kept: Option<Timestamp>) -> Self {
        let at = at.max(self.floor).max(self.copied.unwrap_or_default());
        let at = self.stands_at.unwrap_or(at);
        let base_at = kept.map_or(at, |kept| kept.min(at)).max(self.floor);
        let base = self.content_at(Some(base_at)).expect("it is not below the floor");
        let below = self.effects.iter().take_while(|effect| effect.at <= base_at);
        let below: Vec<_> = below.map(|effect| (effect.at, effect.written.clone())).collect();
        let mut folded = Self {
            place: self.place,
            floor: below.last().map_or(self.floor, |(version, _)| *version),
            latest: Arc::clone(&base),
            base,
            folded: self.folded.iter().cloned().chain(below).collect(),
            effects: Vec::new(),
            checkpoints: Vec::new(),
            awaited: None,
            stands_at: None,
            copied: Some(at),
            hollow: BTreeSet::new(),
        };
        let later = self.effects.iter().filter(|effect| base_at < effect.at && effect.at <= at);
        later.for_each(|effect| drop(folded.add(effect.clone())));
        folded
    }

    /// The chunk's bytes.
    pub fn range(&self) -> ByteRange {
        self.place.range
    }

    /// Whether it is the first of its blob, which has the attributes.
    pub fn is_first(&self) -> bool {
        self.place.is_first()
    }

    /// The versions that can be read, ascending.
    pub fn kept(&self) -> impl DoubleEndedIterator<Item = Timestamp> {
        std::iter::once(self.floor).chain(self.effects.iter().map(|effect| effect.at))
    }

    /// From now on the base is still to come, all but these pieces of it.
    pub fn await_base(&mut self, pieces: Vec<ChunkCopy>) {
        self.awaited = Some(pieces);
    }

    /// Whether it has all that was applied to it, or is to get it with its base.
    ///
    /// # Panics
    /// When bytes are nowhere (U1).
    pub fn check_whole(&self) {
        let lacking = self.hollow.first();
        assert!(
            self.is_awaited() || lacking.is_none(),
            "violation: {lacking:?} is applied to {:?} without its bytes (U1)",
            self.place.range
        );
    }

    /// The pieces of the base that came.
    pub(super) fn take_pieces(&mut self) -> Vec<ChunkCopy> {
        self.awaited.take().unwrap_or_default()
    }

    /// Takes away everything, and answers what was applied above `at`.
    pub(super) fn detach(&mut self, at: Timestamp) -> Vec<(Timestamp, Cause)> {
        let above = (Bound::Excluded(at), Bound::Unbounded);
        let lacking = self.hollow.range(above).next();
        assert!(
            lacking.is_none(),
            "violation: {lacking:?} has no bytes, nor the copy at {at} (U3)"
        );
        self.hollow.clear();
        self.checkpoints.clear();
        let effects = std::mem::take(&mut self.effects).into_iter();
        effects.filter(|effect| effect.at > at).map(|effect| (effect.at, effect.cause)).collect()
    }

    /// Makes `base` all that there is: from `floor` on, and in it what is at or below `copied`.
    pub(super) fn put_base(&mut self, copied: Timestamp, floor: Timestamp, base: Arc<Content>) {
        self.stands_at = None;
        let is_attributes = self.is_first();
        let written = Written { ranges: [self.range()].into_iter().collect(), is_attributes };
        self.folded = Vec::from([(floor, written)]);
        self.latest = Arc::clone(&base);
        (self.floor, self.base, self.copied) = (floor, base, Some(copied));
    }

    /// Puts what happened on top of all else; answers what it answers.
    pub(super) fn push(&mut self, at: Timestamp, cause: Cause) -> Answers {
        self.add(Effect { at, cause, written: Written::default() })
    }

    /// Does everything from the `place`-th effect on again; answers what that one answers.
    fn redo(&mut self, place: usize) -> Answers {
        self.checkpoints.truncate(place / CHECKPOINT_EVERY);
        let from = self.checkpoints.len() * CHECKPOINT_EVERY;
        let before = self.checkpoints.last().unwrap_or(&self.base);
        self.latest = Arc::clone(before);
        let mut answers = Answers::new();
        for (number, effect) in self.effects.split_off(from).into_iter().enumerate() {
            let its = self.add(effect);
            if from + number == place {
                answers = its;
            }
        }
        answers
    }
}

impl Effect {
    fn happen(&self, place: Place, content: &mut Content) -> (Written, Answers) {
        match &self.cause {
            Cause::Transaction { operations, start, .. } => {
                content.operate(place, operations, *start, self.at)
            }
            Cause::Copy(copied) => {
                let is_attributes = content.size != copied.size;
                content.clone_from(copied);
                let ranges = [place.range].into_iter().collect();
                (Written { ranges, is_attributes }, Answers::new())
            }
        }
    }
}

impl Cause {
    /// Puts zeros in the place of pieces of the chunk that are not here; answers whether there were
    /// such.
    fn fill(&mut self, place: Place) -> bool {
        let Self::Transaction { operations, .. } = self else { return false };
        let mut is_lacking = false;
        for (offset, uploaded) in operations.iter().filter_map(Operation::uploaded) {
            is_lacking |= uploaded.placed().any(|(start, it)| {
                let start = offset + start;
                let span = ByteRange { start, end: start + u64::from(it.piece.len) };
                it.content == PieceContent::Elsewhere && span.overlaps(place.range)
            });
        }
        if is_lacking {
            let held: BTreeMap<PieceId, PieceContent> = operations
                .iter()
                .filter_map(Operation::uploaded)
                .flat_map(|(_, uploaded)| uploaded.pieces())
                .map(|it| (it.piece.id, it.content.clone()))
                .collect();
            let content = |piece: &PieceRef| match held.get(&piece.id) {
                Some(PieceContent::Elsewhere) | None => {
                    PieceContent::Bytes(Bytes::from(vec![0; piece.len as usize]))
                }
                Some(held) => held.clone(),
            };
            *operations = with_content(operations, content).into();
        }
        is_lacking
    }

    fn name(&self) -> String {
        match self {
            Self::Transaction { id, .. } => format!("transaction {:x}", id.0),
            Self::Copy(_) => "a version copied".to_owned(),
        }
    }
}
