//! The machine of a scrubber: what is compared when, and what is done about it.
//!
//! It is told of holders' answers and of time; it says whom to ask and what to write anew. What is
//! compared is bounded by bytes a second, what is under way by [`COMPARED_MAX`]. Nothing of it
//! outlives the process: after a start the round begins anew.

use std::collections::{BTreeMap, VecDeque};

use tyr_types::{ByteRange, NodeId, Timestamp, TransactionId};

use super::comparison::{Comparison, Repair, sum};
use super::event::{Answer, Effect, Event, ScrubConfig, ScrubCounts};
use super::finding::What;
use super::stretch::{Reading, Stage, Stretch};
use crate::map::ClusterMap;
use crate::movement::ChunkName;
use crate::rule::{Rule, Rules};

/// Stretches that are compared at a time.
pub const COMPARED_MAX: usize = 16;

/// Bytes of a chunk that are compared at a time: few enough not to be felt, enough to be worth the
/// messages.
pub const STRETCH_LEN_MAX: u64 = 512 << 10;

/// Bytes that are written anew at a time, and compared to find out which.
pub const REPAIR_LEN_MAX: u64 = 64 << 10;

/// Where others keep writing, fewer bytes at a time have a better chance; not fewer than this.
pub const REPAIR_LEN_MIN: u64 = 4 << 10;

/// Bytes that a stretch counts for at least: what it costs to ask for it.
pub const STRETCH_COST_MIN: u64 = 16 << 10;

/// Names of chunks that are looked at in one go.
pub const NAMES_MAX: usize = 256;

/// Numbers of clients from here on are no client's: the repairs of each node carry its own, so that
/// nobody is answered.
const REPAIRS: u64 = u64::MAX << 16;

/// After so long without an answer a holder is asked again, in microseconds.
const ASK_AGAIN_US: u64 = 200_000;

/// After so long a comparison is given up, in microseconds. Versions linger for longer (V4).
const GIVE_UP_US: u64 = 3_000_000;

/// After so long it is looked whether a repair has helped, in microseconds.
const REPAIRED_US: u64 = 1_000_000;

/// How old S is when holders are asked, at one try after the other, in microseconds: with some age
/// replicas show what is below it, with none it is not overwritten yet.
const AGES_US: [u64; 3] = [100_000, 0, 300_000];

/// Comparisons of a stretch that come to nothing before its chunk is left for the next round.
const TRIES_MAX: u8 = 6;

/// Repairs of a stretch that do not help before it is left for the next round.
const REPAIRS_MAX: u8 = 5;

const _: () = {
    assert!(REPAIR_LEN_MIN <= REPAIR_LEN_MAX && REPAIR_LEN_MAX <= STRETCH_LEN_MAX);
    assert!(STRETCH_COST_MIN <= STRETCH_LEN_MAX, "a rate of one stretch gets on");
    assert!(ASK_AGAIN_US < GIVE_UP_US, "a message that was lost is asked for once more");
    assert!(REPAIRS | u16::MAX as u64 == u64::MAX, "each node has a client's number of its own");
};

/// The machine of a scrubber. With a rate of 0 it does nothing.
#[derive(Clone, Debug)]
pub struct Scrubber {
    node: NodeId,
    config: ScrubConfig,
    /// Names that were found and not begun with; at most [`NAMES_MAX`].
    names: VecDeque<ChunkName>,
    /// Where the round goes on: after this chunk; `None` at its beginning.
    after: Option<ChunkName>,
    /// When the round began; `None` before the first.
    began_us: Option<u64>,
    /// Whether the round has all names.
    is_listed: bool,
    /// Whether the round is over, and the next not begun.
    is_over: bool,
    /// By the number of the read; the one after it asks whether the chunk can be written. At most
    /// [`COMPARED_MAX`].
    stretches: BTreeMap<u64, Stretch>,
    /// Bytes that may be compared now; below 0 after more than that.
    allowance: i64,
    ticked_us: Option<u64>,
    /// The number of the last read or repair. Numbers of different incarnations are different, and
    /// from those of a recipient.
    numbers: u64,
    counts: ScrubCounts,
    pub(crate) rules: Rules,
}

/// Whether a transaction is a node's, to put something right: nobody waits for its answer.
pub fn is_repair(id: TransactionId) -> bool {
    id.0 >> 64 >= u128::from(REPAIRS)
}

impl Scrubber {
    /// A scrubber that has looked at nothing yet.
    pub fn new(node: NodeId, incarnation: u64, config: ScrubConfig) -> Self {
        Self {
            node,
            config,
            names: VecDeque::new(),
            after: None,
            began_us: None,
            is_listed: false,
            is_over: false,
            stretches: BTreeMap::new(),
            allowance: 0,
            ticked_us: None,
            numbers: incarnation << 32 | 1 << 31,
            counts: ScrubCounts::default(),
            rules: Rules::default(),
        }
    }

    /// What has been compared so far.
    pub fn counts(&self) -> ScrubCounts {
        self.counts
    }

    /// Whether names of chunks are needed, and those after which: then [`Scrubber::list`] is called
    /// before the next tick. Begins a round when it is time to.
    pub fn wanted(&mut self, now_us: u64) -> Option<Option<ChunkName>> {
        if self.is_listed && self.names.is_empty() && self.stretches.is_empty() {
            self.counts.rounds += u64::from(!self.is_over);
            self.is_over = true;
            let since_us = self.began_us.map_or(0, |began_us| now_us.saturating_sub(began_us));
            if since_us >= self.config.every_us {
                (self.is_listed, self.is_over) = (false, false);
            }
        }
        if self.config.rate == 0 || self.is_listed || !self.names.is_empty() {
            return None;
        }
        if self.after.is_none() {
            self.began_us = Some(now_us);
        }
        Some(self.after.clone())
    }

    /// Takes in names of chunks: those that this node is the authority of, and that others hold
    /// too; and after which chunk to ask on, `None` when that was all.
    pub fn list(&mut self, chunks: Vec<ChunkName>, next: Option<ChunkName>) {
        assert!(chunks.len() <= NAMES_MAX, "a page of names is bounded");
        self.names.extend(chunks);
        self.is_listed = next.is_none();
        self.after = next;
    }

    /// Takes in `event` by `map` at `now_us` (which does not jump) and adds what is to be done.
    pub fn step(&mut self, now_us: u64, event: Event, map: &ClusterMap, effects: &mut Vec<Effect>) {
        match event {
            Event::Read { from, read, answer } => self.read(now_us, from, read, answer, effects),
            Event::Map => {
                // They begin anew, by the new map.
                let stretches = std::mem::take(&mut self.stretches);
                let mut names: Vec<ChunkName> =
                    stretches.into_values().map(|stretch| stretch.chunk).collect();
                names.dedup();
                self.names.extend(names);
            }
            Event::Tick { clock, is_quiet } => self.tick(now_us, clock, is_quiet, map, effects),
        }
    }

    fn tick(
        &mut self,
        now_us: u64,
        clock: Timestamp,
        is_quiet: bool,
        map: &ClusterMap,
        effects: &mut Vec<Effect>,
    ) {
        let passed_us = now_us.saturating_sub(self.ticked_us.replace(now_us).unwrap_or(now_us));
        let earned = u128::from(self.config.rate) * u128::from(passed_us) / 1_000_000;
        let earned = i64::try_from(earned).unwrap_or(i64::MAX);
        // What was not needed is not saved up: beyond a second's worth, or a stretch.
        let most = i64::try_from(self.config.rate.max(STRETCH_LEN_MAX)).unwrap_or(i64::MAX);
        self.allowance = self.allowance.saturating_add(earned).min(most);
        while is_quiet
            && self.allowance > 0
            && self.stretches.len() < COMPARED_MAX
            && let Some(chunk) = self.names.pop_front()
        {
            self.begin_chunk(chunk, map);
        }
        let numbers: Vec<u64> = self.stretches.keys().copied().collect();
        for number in numbers {
            self.pass_time(now_us, clock, is_quiet, number, map, effects);
        }
    }

    fn begin_chunk(&mut self, chunk: ChunkName, map: &ClusterMap) {
        let Some(size) = map.chunk_size(chunk.0.keyspace) else { return };
        let Some(start) = chunk.1.checked_mul(size) else { return };
        let chunk_end = start.saturating_add(size);
        let range = ByteRange { start, end: chunk_end.min(start + STRETCH_LEN_MAX) };
        debug_assert!(!range.is_empty(), "D4: a chunk has bytes to compare: {chunk:?}");
        let stretch = Stretch {
            chunk,
            chunk_end,
            range,
            part_until: None,
            part_len: REPAIR_LEN_MAX,
            tries: 0,
            repairs: 0,
            stage: Stage::Due,
        };
        self.put(stretch);
    }

    /// Keeps a stretch under a number that is new: what is still said of the one before is of an
    /// older S.
    fn put(&mut self, stretch: Stretch) {
        let number = self.number();
        debug_assert!(stretch.range.end <= stretch.chunk_end, "D4: it lies in its chunk");
        let before = self.stretches.insert(number, stretch);
        debug_assert!(before.is_none(), "a number is never used again: {number}");
        debug_assert!(self.stretches.len() <= COMPARED_MAX, "what is compared is bounded");
    }

    /// The number of another read, and of the one after it.
    fn number(&mut self) -> u64 {
        self.numbers += 2;
        debug_assert!(self.numbers & 1 == 0, "the odd ones ask whether it can be written");
        self.numbers
    }

    /// Does what is due at a stretch because time has passed.
    fn pass_time(
        &mut self,
        now_us: u64,
        clock: Timestamp,
        is_quiet: bool,
        number: u64,
        map: &ClusterMap,
        effects: &mut Vec<Effect>,
    ) {
        let (allowance, rules) = (self.allowance, self.rules);
        let Some(stretch) = self.stretches.get_mut(&number) else { return };
        let settling = Stage::Settling { at: clock, since_us: now_us };
        match &mut stretch.stage {
            Stage::Due if is_quiet && allowance > 0 => {
                self.allowance = self.allowance.saturating_sub_unsigned(STRETCH_COST_MIN);
                stretch.stage = settling;
            }
            Stage::Repairing { since_us } if now_us.saturating_sub(*since_us) >= REPAIRED_US => {
                stretch.stage = settling;
            }
            Stage::Reading(reading) if now_us.saturating_sub(reading.since_us) >= GIVE_UP_US => {
                return self.try_again(number, effects);
            }
            Stage::Reading(reading) if now_us.saturating_sub(reading.asked_us) >= ASK_AGAIN_US => {
                reading.asked_us = now_us;
                stretch.ask(number, effects);
            }
            Stage::Due | Stage::Settling { .. } | Stage::Repairing { .. } | Stage::Reading(_) => {}
        }
        if let Stage::Settling { at, since_us } = stretch.stage {
            let age_us = AGES_US[usize::from(stretch.tries + stretch.repairs) % AGES_US.len()];
            if now_us.saturating_sub(since_us) < age_us {
                return;
            }
            let holders = map.holders(&stretch.chunk.0, stretch.chunk.1);
            let comparison = Comparison::new(&holders);
            let is_ours = holders.first() == Some(&self.node);
            let Some(mut comparison) = comparison.filter(|_| is_ours) else {
                self.stretches.remove(&number); // Somebody else's by now.
                return;
            };
            comparison.rules = rules;
            stretch.stage = Stage::Reading(Reading {
                at,
                since_us: now_us,
                asked_us: now_us,
                comparison,
                bytes: BTreeMap::new(),
                len: 0,
                has_read: false,
                sizes: BTreeMap::new(),
                probes: BTreeMap::new(),
            });
            stretch.ask(number, effects);
        }
    }

    /// A comparison came to nothing.
    fn try_again(&mut self, number: u64, effects: &mut Vec<Effect>) {
        let Some(mut stretch) = self.stretches.remove(&number) else { return };
        stretch.tries += 1;
        stretch.stage = Stage::Due;
        if stretch.tries < TRIES_MAX {
            self.put(stretch);
        } else if stretch.repairs > 0 {
            self.counts.unrepaired += 1;
            effects.push(stretch.tell(What::Unrepaired, Vec::new()));
        }
    }

    /// A holder has answered.
    fn read(
        &mut self,
        now_us: u64,
        from: NodeId,
        read: u64,
        answer: Answer,
        effects: &mut Vec<Effect>,
    ) {
        let number = read & !1;
        let Some(stretch) = self.stretches.get_mut(&number) else { return };
        let is_short = stretch.range.len() <= REPAIR_LEN_MAX;
        let Stage::Reading(reading) = &mut stretch.stage else { return };
        if read != number {
            if let Some(probe) = reading.probes.get_mut(&from) {
                *probe = Some(matches!(answer, Answer::Holds { .. }));
            }
        } else if reading.comparison.waiting().all(|waiting| waiting != from) {
            return; // It came twice.
        } else {
            match answer {
                Answer::Holds { at, .. } if at != Some(reading.at) => return,
                Answer::TooOld => return self.try_again(number, effects),
                Answer::Holds { bytes, size, .. } => {
                    reading.comparison.answered(from, sum(&bytes));
                    reading.len = reading.len.max(bytes.len() as u64);
                    reading.has_read = true;
                    reading.sizes.extend(size.map(|size| (from, size)));
                    reading.bytes.extend(is_short.then_some((from, bytes)));
                }
                Answer::Unreadable => {
                    reading.comparison.cannot_read(from);
                    if is_short {
                        reading.probes.insert(from, None);
                        effects.push(stretch.probe(number, from));
                    }
                }
            }
        }
        if self.stretches.get(&number).is_some_and(Stretch::is_answered) {
            self.conclude(now_us, number, effects);
        }
    }

    /// All holders have answered.
    fn conclude(&mut self, now_us: u64, number: u64, effects: &mut Vec<Effect>) {
        let Some(mut stretch) = self.stretches.remove(&number) else { return };
        let stage = std::mem::replace(&mut stretch.stage, Stage::Due);
        let Stage::Reading(reading) = stage else { return };
        let cost = reading.len.saturating_sub(STRETCH_COST_MIN);
        self.allowance = self.allowance.saturating_sub_unsigned(cost);
        if stretch.part_until.is_none() && stretch.repairs == 0 {
            self.counts.bytes += reading.len;
            self.compare_sizes(&stretch, &reading, effects);
        }
        let unreadable: Vec<NodeId> = reading.comparison.unreadable().collect();
        match reading.comparison.repair() {
            _ if !self.rules.hold(Rule::D4) => self.go_on(stretch, &reading),
            None if unreadable.is_empty() => {
                if stretch.repairs > 0 {
                    self.counts.repaired += 1;
                    effects.push(stretch.tell(What::Repaired, Vec::new()));
                }
                self.go_on(stretch, &reading);
            }
            _ if stretch.range.len() > REPAIR_LEN_MAX => {
                stretch.part_until = Some(stretch.range.end);
                stretch.range.end = stretch.range.start + stretch.part_len;
                stretch.tries = 0;
                self.put(stretch);
            }
            None => {
                self.counts.differing += 1;
                self.counts.unrepaired += 1;
                effects.push(stretch.tell(What::Lost, unreadable));
                self.go_on(stretch, &reading);
            }
            Some(repair) => self.repair(now_us, stretch, &reading, repair, effects),
        }
    }

    /// A short stretch is not the same everywhere: it is written anew, if that helps.
    fn repair(
        &mut self,
        now_us: u64,
        mut stretch: Stretch,
        reading: &Reading,
        repair: Repair,
        effects: &mut Vec<Effect>,
    ) {
        if stretch.repairs == 0 {
            self.counts.differing += 1;
            let (unreadable, differing): (Vec<_>, Vec<_>) =
                repair.to.iter().partition(|node| reading.probes.contains_key(node));
            let found = [(What::Unreadable, unreadable), (What::Differs, differing)];
            let found = found.into_iter().filter(|(_, nodes)| !nodes.is_empty());
            effects.extend(found.map(|(what, nodes)| stretch.tell(what, nodes)));
        }
        if stretch.repairs >= REPAIRS_MAX || !reading.is_reparable(&repair) {
            self.counts.unrepaired += 1;
            effects.push(stretch.tell(What::Unrepaired, repair.to));
            return self.go_on(stretch, reading);
        }
        if stretch.repairs > 1 && stretch.part_len > REPAIR_LEN_MIN {
            // Others keep writing here: a part of it has a better chance than all.
            stretch.part_until = stretch.part_until.or(Some(stretch.range.end));
            stretch.part_len /= 4;
            stretch.range.end = stretch.range.end.min(stretch.range.start + stretch.part_len);
        }
        stretch.repairs += 1;
        stretch.tries = 0;
        debug_assert!(stretch.repairs <= REPAIRS_MAX, "D4: what does not help is left");
        debug_assert!(stretch.range.len() <= REPAIR_LEN_MAX, "D4: of longer ones nothing is read");
        let right = &reading.bytes[&repair.from];
        let len = right.len().min(stretch.range.len() as usize);
        effects.push(Effect::Rewrite {
            id: TransactionId::new(REPAIRS | u64::from(self.node.0), self.number()),
            chunk: stretch.chunk.clone(),
            offset: stretch.range.start,
            bytes: right.slice(..len),
            at: reading.at,
        });
        stretch.stage = Stage::Repairing { since_us: now_us };
        self.put(stretch);
    }

    /// How large its managers take a blob to be is compared once. It is not written anew: a
    /// transaction that would do it is placed by that very size.
    fn compare_sizes(&mut self, stretch: &Stretch, reading: &Reading, effects: &mut Vec<Effect>) {
        let Some(first) = reading.sizes.values().next() else { return };
        let is_first = stretch.chunk.1 == 0 && stretch.range.start == 0;
        if is_first && reading.sizes.values().any(|size| size != first) {
            self.counts.differing += 1;
            self.counts.unrepaired += 1;
            effects.push(stretch.tell(What::Size, reading.sizes.keys().copied().collect()));
        }
    }

    /// A stretch is done with: goes on with what follows it in its chunk, if anything does.
    fn go_on(&mut self, mut stretch: Stretch, reading: &Reading) {
        let is_end = reading.has_read && reading.len < stretch.range.len();
        let start = stretch.range.end;
        if is_end || start >= stretch.chunk_end {
            self.counts.chunks += 1;
            return;
        }
        let end = match stretch.part_until.filter(|until| start < *until) {
            Some(until) => until.min(start + stretch.part_len),
            None => {
                (stretch.part_until, stretch.part_len) = (None, REPAIR_LEN_MAX);
                stretch.chunk_end.min(start + STRETCH_LEN_MAX)
            }
        };
        debug_assert!(start < end, "D4: what follows has bytes, or this would never end");
        stretch.range = ByteRange { start, end };
        (stretch.tries, stretch.repairs, stretch.stage) = (0, 0, Stage::Due);
        self.put(stretch);
    }

    /// Checks what must hold between steps.
    ///
    /// # Panics
    /// When it does not.
    pub fn invariants(&self) {
        assert!(self.stretches.len() <= COMPARED_MAX, "what is compared at a time is bounded");
        let names_max = NAMES_MAX + COMPARED_MAX;
        assert!(self.names.len() <= names_max, "names that wait are bounded");
        for (number, stretch) in &self.stretches {
            assert!(*number <= self.numbers && number & 1 == 0, "numbers of reads are given here");
            assert!(!stretch.range.is_empty(), "something of a chunk is compared");
            assert!(stretch.range.end <= stretch.chunk_end, "a stretch lies in its chunk");
        }
    }
}
