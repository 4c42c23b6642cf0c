//! A call that reads: one blob, or many at one timestamp.
//!
//! Of many, the clocks of all their authorities are asked for first; the highest is S (R6). Then,
//! or at once, each blob is gathered. At most [`QUESTIONS_MAX`] questions are open at a time.

use std::collections::BTreeMap;

use tyr_types::{BlobName, ErrorKind, Timestamp, limits};

use super::effect::{Answer, Seen};
use super::event::{Began, Place, Want};
use super::gather::{Gather, Keyspace, Question};
use super::sizes::Sizes;
use crate::abort::Abort;
use crate::map::{ClusterMap, DROPPED};
use crate::message::ReadPart;
use crate::rule::{Rule, Rules};

/// The most questions of one call that wait for answers: enough to keep every disk of a cluster
/// busy, and with chunks of 64 MiB as much as one read may answer, many times over.
pub const QUESTIONS_MAX: usize = 64;

/// How often a read whose versions are gone is placed anew before its caller hears of it.
pub const RESTARTS_MAX: u32 = 3;

const _: () = assert!(QUESTIONS_MAX > 0, "who may ask nothing is never answered");

/// What a question is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The cluster's clock, for the first commit.
    Time,
    /// The clock of one of many blobs.
    Clock,
    /// The gather of this want.
    Gather(usize),
}

/// A question with what it is for.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub target: Target,
    pub blob: BlobName,
    pub question: Question,
}

/// The clocks of many blobs, as they come in.
#[derive(Clone, Debug)]
struct Clocks {
    /// Those still to be asked.
    blobs: Vec<BlobName>,
    pending: usize,
    highest: Timestamp,
}

/// What came of going on.
#[derive(Debug, Default)]
pub(super) struct Advance {
    pub asks: Vec<Ask>,
    /// Snapshots that are over.
    pub ended: Vec<Began>,
    /// Whether the map does not know a keyspace.
    pub is_stuck: bool,
    pub answer: Option<Answer>,
}

/// A call that reads.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    wants: Vec<Want>,
    place: Place,
    is_many: bool,
    rules: Rules,
    clocks: Option<Clocks>,
    /// Those that are gathered now, by want. Bounded by [`QUESTIONS_MAX`].
    gathers: BTreeMap<usize, Gather>,
    /// Those that are answered. Bounded by the wants, which are, and `READ_LEN_MAX` bytes.
    seen: BTreeMap<usize, Seen>,
    next: usize,
    len: u64,
    restarts: u32,
}

impl Reading {
    /// A read of one blob.
    pub fn one(want: Want, place: Place, rules: Rules) -> Self {
        Self::new(vec![want], place, false, rules)
    }

    /// A read of many blobs at one timestamp.
    ///
    /// # Errors
    /// `InvalidArgument` when they are too many.
    pub fn many(wants: Vec<Want>, rules: Rules) -> Result<Self, Abort> {
        if wants.len() > limits::READ_MANY_MAX {
            let reason = "one read names at most 10,000 blobs; read them in several, or in a \
                          snapshot";
            return Err(Abort::new(ErrorKind::InvalidArgument, reason));
        }
        Ok(Self::new(wants, Place::At(Timestamp::ZERO), true, rules))
    }

    fn new(wants: Vec<Want>, place: Place, is_many: bool, rules: Rules) -> Self {
        let (gathers, seen) = (BTreeMap::new(), BTreeMap::new());
        let clocks = is_many.then(|| Clocks::of(&wants));
        let (next, len, restarts) = (0, 0, 0);
        Self { wants, place, is_many, rules, clocks, gathers, seen, next, len, restarts }
    }

    /// Goes on as far as it can with `room` more questions.
    ///
    /// # Errors
    /// `InvalidArgument` when more is there than a read may answer; `NotFound` when a keyspace was
    /// dropped.
    pub fn advance(
        &mut self,
        room: usize,
        map: &ClusterMap,
        sizes: &mut Sizes,
    ) -> Result<Advance, Abort> {
        let mut advance = Advance::default();
        if let Some(clocks) = &mut self.clocks {
            if !clocks.advance(room, &mut advance.asks) {
                return Ok(advance);
            }
            self.place = Place::At(clocks.highest);
            self.clocks = None;
        }
        self.collect(&mut advance)?;
        for (index, gather) in &mut self.gathers {
            ask(*index, gather, &self.wants[*index].blob, room, &mut advance.asks);
        }
        while self.next < self.wants.len() && advance.asks.len() < room {
            let want = &self.wants[self.next];
            if map.is_dropped(want.blob.keyspace) {
                return Err(Abort::new(ErrorKind::NotFound, DROPPED));
            }
            let Some(chunk_size) = map.chunk_size(want.blob.keyspace) else {
                advance.is_stuck = true;
                break;
            };
            let guess = sizes.guess(&want.blob);
            let keyspace = Keyspace { chunk_size, is_guarded: map.is_guarded(want.blob.keyspace) };
            let mut gather = Gather::new(want, self.place, keyspace, guess, self.rules);
            ask(self.next, &mut gather, &want.blob, room, &mut advance.asks);
            self.gathers.insert(self.next, gather);
            self.next += 1;
        }
        let begun = self.seen.len() + self.gathers.len();
        debug_assert_eq!(begun, self.next, "a blob that was begun is gathered, or seen");
        debug_assert!(advance.asks.len() <= room, "questions at a time are bounded");
        if self.seen.len() == self.wants.len() {
            advance.answer = Some(self.answer());
        }
        Ok(advance)
    }

    /// Takes an answer in; `began` is the snapshot that it began, if any.
    ///
    /// # Errors
    /// `InvalidArgument` when more is there than a read may answer.
    pub fn take(
        &mut self,
        target: Target,
        question: &Question,
        part: ReadPart,
        began: Option<Began>,
    ) -> Result<(), Abort> {
        match target {
            Target::Time => Ok(()),
            Target::Clock => {
                let clocks = self.clocks.as_mut().expect("clocks are asked for before the reads");
                debug_assert!(clocks.pending > 0, "R6: each blob's clock comes in once");
                clocks.pending -= 1;
                let clock = part.at.unwrap_or_default();
                clocks.highest = match self.rules.hold(Rule::R6) {
                    true => clocks.highest.max(clock),
                    false => clock,
                };
                Ok(())
            }
            Target::Gather(index) => {
                let gather = self.gathers.get_mut(&index).expect("what is asked is gathered");
                gather.take(question, part, began)
            }
        }
    }

    /// Starts again, where nobody has seen anything yet: the versions it was placed at are gone.
    /// `false` when the caller chose the timestamp, or it was tried often enough.
    pub fn restart(&mut self) -> bool {
        let is_ours = self.is_many || self.place == Place::Newest;
        if !is_ours || self.restarts >= RESTARTS_MAX {
            return false;
        }
        self.restarts += 1;
        self.clocks = self.is_many.then(|| Clocks::of(&self.wants));
        self.gathers.clear();
        self.seen.clear();
        (self.next, self.len) = (0, 0);
        true
    }

    /// The snapshots that it began, if it is given up.
    pub fn began(&mut self) -> Vec<Began> {
        self.gathers.values_mut().filter_map(Gather::began).collect()
    }

    /// Questions that are not answered yet.
    pub fn pending(&self) -> usize {
        let clocks = self.clocks.as_ref().map_or(0, |clocks| clocks.pending);
        let gathers = self.gathers.values().map(|gather| gather.pending() as usize);
        clocks + gathers.sum::<usize>()
    }

    /// Moves what is complete to what is seen.
    fn collect(&mut self, advance: &mut Advance) -> Result<(), Abort> {
        let complete = self.gathers.iter().filter(|(_, gather)| gather.is_complete());
        let complete: Vec<usize> = complete.map(|(index, _)| *index).collect();
        for index in complete {
            let gather = self.gathers.remove(&index).expect("it was just there");
            let mut seen = gather.seen();
            if !matches!(self.place, Place::Transaction | Place::Snapshot) {
                advance.ended.extend(seen.began.take());
            }
            self.len += seen.bytes.len() as u64;
            let before = self.seen.insert(index, seen);
            debug_assert!(before.is_none(), "a blob is seen once: {index}");
        }
        if self.len > limits::READ_LEN_MAX {
            let reason = "one read answers at most 64 MiB; read fewer blobs at a time";
            return Err(Abort::new(ErrorKind::InvalidArgument, reason));
        }
        Ok(())
    }

    fn answer(&mut self) -> Answer {
        let mut seen = std::mem::take(&mut self.seen).into_values();
        match (self.is_many, self.place) {
            (true, Place::At(at)) => Answer::Many { at, seen: seen.collect() },
            (true, Place::Newest | Place::Transaction | Place::Snapshot | Place::Layout(_))
            | (false, _) => Answer::Read(seen.next().expect("one was wanted")),
        }
    }
}

impl Clocks {
    fn of(wants: &[Want]) -> Self {
        let mut blobs: Vec<BlobName> = wants.iter().map(|want| want.blob.clone()).collect();
        blobs.sort_unstable();
        blobs.dedup();
        Self { blobs, pending: 0, highest: Timestamp::ZERO }
    }

    /// Asks as many as there is room for; whether all are in.
    fn advance(&mut self, room: usize, asks: &mut Vec<Ask>) -> bool {
        for _ in 0..room {
            let Some(blob) = self.blobs.pop() else { break };
            self.pending += 1;
            asks.push(Ask { target: Target::Clock, blob, question: Question::CLOCK });
        }
        self.pending == 0 && self.blobs.is_empty()
    }
}

fn ask(index: usize, gather: &mut Gather, blob: &BlobName, room: usize, asks: &mut Vec<Ask>) {
    let mut questions = Vec::new();
    gather.ask(room.saturating_sub(asks.len()), &mut questions);
    let target = Target::Gather(index);
    let of_blob = |question| Ask { target, blob: blob.clone(), question };
    asks.extend(questions.into_iter().map(of_blob));
}
