//! The machine of a recipient: lists what is to come, copies it, says when all is here.
//!
//! It is told of every map, of every chunk that a chain brings, and of answers; it says what to
//! ask and what to install. What is in flight is bounded, and so may be the rate; what is done is
//! remembered by name for as long as the move lasts. After a restart the log tells it again what
//! was installed, and it goes on from there.
//!
//! Most chunks are small, and then their first piece is all there is of them: first pieces are
//! short ([`PieceLengths`]), and as long as they are all, more and more of them are
//! asked for at a time, up to [`SMALL_MAX`]. Of chunks that are longer [`COPIES_MAX`] come at a
//! time. What has come is waited for no more, but until it is durable, [`WRITTEN_MAX`] at most.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{NodeId, Timestamp};

use super::copy::{ChunkCopy, PieceLengths};
use super::effect::Effect;
use super::event::Event;
use crate::map::ClusterMap;
use crate::movement::ChunkName;
use crate::read::Kind;

/// Pieces behind first ones that are asked for at a time, and first ones before it is known whether
/// chunks are small: enough to hide the way there and back, few enough not to be felt by those who
/// work there.
pub const COPIES_MAX: usize = 8;

/// First pieces that are asked for at a time where they are all there is.
pub const SMALL_MAX: usize = 64;

/// Chunks that have come and are not durable yet, at most.
pub const WRITTEN_MAX: usize = 4096;

/// The most chunks that are known to be missing before listing goes on.
pub const MISSING_MAX: usize = 4096;

/// After so long without an answer, in microseconds, a question is asked again.
pub const PATIENCE_US: u64 = 400_000;

/// How far a recipient is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether there is something to catch up with.
    pub is_moving: bool,
    /// Nodes whose list is not complete, and those that have not told all they remember.
    pub unlisted: usize,
    /// Chunks known to be missing, those being copied among them.
    pub missing: usize,
    /// Chunks installed.
    pub installed: usize,
    /// Chunks compared with what their authorities have (D5), since the start.
    pub compared: u64,
    /// Chunks copied since the start.
    pub copied: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A page that is waited for: what comes after the one before.
#[derive(Clone, Debug, Default)]
struct Page<A> {
    after: A,
    asked_us: Option<u64>,
}

impl<A> Page<A> {
    /// Not asked for yet.
    fn after(after: A) -> Self {
        Self { after, asked_us: None }
    }
}

/// A chunk that is being copied.
#[derive(Clone, Debug)]
struct Copying {
    chunk: ChunkName,
    /// Where the next piece begins.
    offset: u64,
    /// Where the first piece was read.
    at: Option<Timestamp>,
    asked_us: Option<u64>,
    /// Chains bring something of it, which waits for the copy.
    is_heard: bool,
}

/// The machine of a recipient. Of a node that is none it is empty.
#[derive(Clone, Debug)]
pub struct Recipient {
    node: NodeId,
    is_moving: bool,
    /// Lists that are not complete, by who gives them; at most one a node.
    listings: BTreeMap<NodeId, Page<Option<ChunkName>>>,
    /// Who has not told all yet that it remembers; at most one a node.
    recalls: BTreeMap<NodeId, Page<u64>>,
    /// The last page that each has told in this move, and its incarnation then: by the next map it
    /// goes on from there.
    recalled: BTreeMap<NodeId, (u64, u64)>,
    /// Missing, and not asked for yet. Bounded by [`MISSING_MAX`] for what is listed, beyond that
    /// by what chains bring.
    missing: BTreeSet<ChunkName>,
    /// Those among them that chains bring something of: they are copied first.
    heard: BTreeSet<ChunkName>,
    /// Being copied; at most [`SMALL_MAX`].
    copying: BTreeMap<u64, Copying>,
    /// How many may be for now.
    window: usize,
    /// All pieces are installed; the last is not durable yet.
    written: BTreeSet<ChunkName>,
    /// Installed. One name for each chunk that the node is going to hold.
    installed: BTreeSet<ChunkName>,
    /// The number of the last read. Numbers of different incarnations are different.
    reads: u64,
    compared: u64,
    copied: u64,
    bytes: u64,
    /// Bytes a second that are copied at most; `None` for as many as come.
    rate: Option<u64>,
    /// In what pieces chunks are copied.
    pieces: PieceLengths,
    /// What came so far took until then at that rate: nothing is asked for before.
    paid_us: u64,
    /// Whether so much waits for copies that those come at any rate.
    is_pressed: bool,
    told_us: Option<u64>,
}

impl Recipient {
    /// A machine that has nothing to get.
    pub fn new(node: NodeId, incarnation: u64) -> Self {
        Self {
            node,
            is_moving: false,
            listings: BTreeMap::new(),
            recalls: BTreeMap::new(),
            recalled: BTreeMap::new(),
            missing: BTreeSet::new(),
            heard: BTreeSet::new(),
            copying: BTreeMap::new(),
            window: COPIES_MAX,
            written: BTreeSet::new(),
            installed: BTreeSet::new(),
            reads: incarnation << 32,
            compared: 0,
            copied: 0,
            bytes: 0,
            rate: None,
            pieces: PieceLengths::default(),
            paid_us: 0,
            is_pressed: false,
            told_us: None,
        }
    }

    /// The same, that copies so many bytes a second at most.
    #[must_use]
    pub fn at_rate(self, rate: Option<u64>) -> Self {
        Self { rate, ..self }
    }

    /// The same, that asks for pieces of these lengths.
    #[must_use]
    pub fn in_pieces(self, pieces: PieceLengths) -> Self {
        Self { pieces, ..self }
    }

    /// Whether much waits in memory for copies: then those come at any rate.
    pub fn press(&mut self, is_pressed: bool) {
        self.is_pressed = is_pressed;
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress {
            is_moving: self.is_moving,
            unlisted: {
                let told = self.recalls.keys().filter(|node| !self.listings.contains_key(node));
                self.listings.len() + told.count()
            },
            missing: self.missing.len() + self.copying.len() + self.written.len(),
            installed: self.installed.len(),
            compared: self.compared,
            copied: self.copied,
            bytes: self.bytes,
        }
    }

    /// So many chunks were compared.
    pub fn note_compared(&mut self, chunks: usize) {
        self.compared += chunks as u64;
    }

    /// Whether the base of `chunk` is here, and durable.
    pub fn has(&self, chunk: &ChunkName) -> bool {
        self.installed.contains(chunk)
    }

    /// Whether a copy of `chunk` is still to be asked for, or on its way.
    pub fn is_wanting(&self, chunk: &ChunkName) -> bool {
        let is_copied = || self.copying.values().any(|copying| copying.chunk == *chunk);
        self.missing.contains(chunk) || is_copied()
    }

    /// Whether the base of `chunk` is here, and not durable yet.
    pub fn has_written(&self, chunk: &ChunkName) -> bool {
        self.written.contains(chunk)
    }

    /// What is here of `chunk` stands: it is not copied, should a list name it once more.
    pub fn note_standing(&mut self, chunk: &ChunkName) {
        if !self.is_wanting(chunk) {
            self.installed.insert(chunk.clone());
        }
    }

    /// Whether `from` was asked for its list after `after`, and this page of it is waited for.
    pub fn is_listing(&self, from: NodeId, after: Option<&ChunkName>) -> bool {
        self.listings.get(&from).is_some_and(|page| page.after.as_ref() == after)
    }

    /// Whether another page may be asked for: not too much is missing.
    pub fn may_list(&self) -> bool {
        self.missing.len() < MISSING_MAX
    }

    /// Whether the list of `from` has come as far as `chunk`, by the newest map.
    pub fn has_listed(&self, from: NodeId, chunk: &ChunkName) -> bool {
        let is_behind = |page: &Page<Option<ChunkName>>| page.after.as_ref() < Some(chunk);
        self.is_moving && !self.listings.get(&from).is_some_and(is_behind)
    }

    /// The chunks that nothing of is here yet but what chains brought.
    pub fn missing(&self) -> Vec<ChunkName> {
        let copying = self.copying.values().map(|copying| copying.chunk.clone());
        self.missing.iter().cloned().chain(copying).collect()
    }

    /// Chunks of which some pieces came, and not the last, begin anew.
    pub fn begin_pieces_anew(&mut self) {
        for copying in self.copying.values_mut().filter(|it| it.offset > 0) {
            (copying.offset, copying.at, copying.asked_us) = (0, None, None);
        }
    }

    /// Whether the read of this number is a copy that is waited for.
    pub fn is_asking(&self, read: u64) -> bool {
        self.copying.contains_key(&read)
    }

    /// Whether `from` was asked for what it remembers after the clock `after`, and this page of it
    /// is waited for.
    pub fn is_recalling(&self, from: NodeId, after: u64) -> bool {
        self.recalls.get(&from).is_some_and(|recalling| recalling.after == after)
    }

    /// Takes in `event` by `map` at `now_us` (which does not jump) and adds what is to be done.
    pub fn step(&mut self, now_us: u64, event: Event, map: &ClusterMap, effects: &mut Vec<Effect>) {
        match event {
            Event::Map { is_moving, is_anew } => self.begin(is_moving, is_anew, map),
            Event::Heard(chunk) => self.heard(chunk, map),
            Event::Listed { from, epoch, after, chunks, next, is_asked } => {
                let is_due = self.listings.get(&from).is_some_and(|asked| asked.after == after);
                if epoch != map.epoch || !is_due {
                    return;
                }
                chunks.into_iter().for_each(|chunk| self.want(chunk, map));
                match next {
                    None => self.listings.remove(&from),
                    after => {
                        let asked_us = is_asked.then_some(now_us);
                        self.listings.insert(from, Page { after, asked_us })
                    }
                };
            }
            Event::Recalled { from, epoch, after, next } => {
                if epoch != map.epoch || !self.is_recalling(from, after) {
                    return;
                }
                let incarnation = map.incarnation(from).unwrap_or_default();
                self.recalled.insert(from, (incarnation, after));
                match next {
                    None => self.recalls.remove(&from),
                    Some(after) => self.recalls.insert(from, Page::after(after)),
                };
            }
            Event::Copied { read, chunk, copy } => {
                self.copied(now_us, read, &chunk, copy, map, effects)
            }
            Event::Refused { read } => {
                if let Some(copying) = self.copying.get_mut(&read) {
                    (copying.offset, copying.at) = (0, None); // Patience, and from the start.
                }
            }
            Event::Stored(chunk) => {
                self.forget_missing(&chunk);
                if !self.written.remove(&chunk) {
                    self.copying.retain(|_, copying| copying.chunk != chunk);
                }
                self.installed.insert(chunk);
            }
            Event::Tick => {}
        }
        self.go_on(now_us, map, effects);
    }

    /// Another map: other authorities, and perhaps another move. What was listed by the old one is
    /// listed anew, for a chunk whose authority changed in between was perhaps on no list. What
    /// others remember is noted in the order of their clocks: what came since is asked for, and the
    /// last page again.
    fn begin(&mut self, is_moving: bool, is_anew: bool, map: &ClusterMap) {
        self.is_moving = is_moving;
        if is_anew || !is_moving {
            self.missing.clear();
            self.heard.clear();
            self.copying.clear();
            self.written.clear();
            self.installed.clear();
            self.recalled.clear();
        }
        self.told_us = None;
        self.listings.clear();
        self.recalls.clear();
        if !is_moving {
            return;
        }
        let node = self.node;
        let is_ours = |(blob, chunk): &ChunkName| map.recipients(blob, *chunk).contains(&node);
        self.missing.retain(is_ours);
        self.heard.retain(is_ours);
        self.copying.retain(|_, copying| is_ours(&copying.chunk));
        self.written.retain(is_ours);
        self.installed.retain(is_ours);
        for other in map.serving().filter(|other| *other != node) {
            self.listings.insert(other, Page::default());
            let incarnation = map.incarnation(other);
            let known = self.recalled.get(&other).filter(|it| Some(it.0) == incarnation);
            self.recalls.insert(other, Page::after(known.map_or(0, |(_, after)| *after)));
        }
    }

    fn want(&mut self, chunk: ChunkName, map: &ClusterMap) {
        let is_ours = map.recipients(&chunk.0, chunk.1).contains(&self.node);
        let is_known = self.installed.contains(&chunk)
            || self.written.contains(&chunk)
            || self.copying.values().any(|copying| copying.chunk == chunk);
        if self.is_moving && is_ours && !is_known {
            self.missing.insert(chunk);
        }
        debug_assert!(self.is_moving || self.missing.is_empty(), "D1: without a move nothing is");
    }

    /// What a chain brings of a chunk waits in memory until its copy is here.
    fn heard(&mut self, chunk: ChunkName, map: &ClusterMap) {
        let mut copying = self.copying.values_mut();
        if let Some(copying) = copying.find(|copying| copying.chunk == chunk) {
            copying.is_heard = true;
            return;
        }
        self.want(chunk.clone(), map);
        if self.missing.contains(&chunk) {
            self.heard.insert(chunk);
        }
    }

    fn forget_missing(&mut self, chunk: &ChunkName) {
        self.missing.remove(chunk);
        self.heard.remove(chunk);
    }

    fn copied(
        &mut self,
        now_us: u64,
        read: u64,
        chunk: &ChunkName,
        copy: ChunkCopy,
        map: &ClusterMap,
        effects: &mut Vec<Effect>,
    ) {
        let Some(copying) = self.copying.get_mut(&read) else { return };
        let range = self.pieces.piece(map, &copying.chunk, copying.offset);
        let Some(range) = range else { return };
        let is_asked = copying.chunk == *chunk && copy.range == range;
        if !is_asked || copying.at.is_some_and(|at| at != copy.at) || !copy.is_sound() {
            return; // Asked again when patience ends.
        }
        let len = copy.versions.iter().map(|version| version.bytes.len() as u64).sum::<u64>();
        self.bytes += len;
        if let Some(rate) = self.rate {
            let took_us = len.saturating_mul(1_000_000) / rate.max(1);
            self.paid_us = self.paid_us.max(now_us).saturating_add(took_us);
        }
        match (copying.offset == 0, copy.is_last) {
            (true, true) => self.window = (self.window + 1).min(SMALL_MAX),
            (true, false) => self.window = COPIES_MAX,
            (false, _) => {}
        }
        copying.offset += range.len();
        (copying.at, copying.asked_us) = (Some(copy.at), None);
        if copy.is_last {
            self.copied += 1;
            self.copying.remove(&read);
            self.written.insert(chunk.clone());
        }
        effects.push(Effect::Install { chunk: chunk.clone(), copy });
    }

    /// Asks for what is missing and not asked for, and again for what is overdue.
    fn go_on(&mut self, now_us: u64, map: &ClusterMap, effects: &mut Vec<Effect>) {
        if !self.is_moving {
            return;
        }
        let is_due = |asked_us: Option<u64>| {
            asked_us.is_none_or(|asked_us| now_us.saturating_sub(asked_us) >= PATIENCE_US)
        };
        if self.may_list() {
            for (to, listing) in &mut self.listings {
                if is_due(listing.asked_us) {
                    listing.asked_us = Some(now_us);
                    effects.push(Effect::List { to: *to, after: listing.after.clone() });
                }
            }
        }
        for (to, recalling) in &mut self.recalls {
            if is_due(recalling.asked_us) {
                recalling.asked_us = Some(now_us);
                effects.push(Effect::Recall { to: *to, after: recalling.after });
            }
        }
        let is_long = |copying: &&Copying| copying.offset > 0;
        let long = self.copying.values().filter(is_long).count();
        while long < COPIES_MAX
            && self.copying.len() < self.window
            && self.written.len() < WRITTEN_MAX
            && let Some(chunk) = self.heard.first().or(self.missing.first()).cloned()
        {
            self.reads += 1;
            let is_heard = self.heard.contains(&chunk);
            self.forget_missing(&chunk);
            let (offset, at, asked_us) = (0, None, None);
            let copying = Copying { chunk, offset, at, asked_us, is_heard };
            let before = self.copying.insert(self.reads, copying);
            debug_assert!(before.is_none(), "a number is never used again: {}", self.reads);
        }
        let mut long_so_far = 0;
        for (read, copying) in &mut self.copying {
            let is_paid = now_us >= self.paid_us || copying.is_heard && self.is_pressed;
            long_so_far += usize::from(copying.offset > 0);
            let is_turn = copying.offset == 0 || long_so_far <= COPIES_MAX;
            if !is_due(copying.asked_us) || !is_paid || !is_turn {
                continue;
            }
            let (blob, number) = &copying.chunk;
            let holders = map.holders(blob, *number);
            let range = self.pieces.piece(map, &copying.chunk, copying.offset);
            let (Some(to), Some(range)) = (holders.first().copied(), range) else { continue };
            copying.asked_us = Some(now_us);
            let (read, chunk) = (*read, copying.chunk.clone());
            let kind = copying.at.map_or(Kind::Whole, Kind::At);
            effects.push(Effect::Ask { to, read, chunk, range, kind });
        }
        let is_told = self.listings.is_empty() && self.recalls.is_empty();
        let is_here = self.copying.is_empty() && self.written.is_empty();
        let is_done = is_told && self.missing.is_empty() && is_here;
        debug_assert!(!is_done || self.heard.is_empty(), "D3: what chains bring waits for a copy");
        if is_done && is_due(self.told_us) {
            self.told_us = Some(now_us);
            effects.push(Effect::CaughtUp);
        }
    }

    /// Checks what must hold between steps.
    ///
    /// # Panics
    /// When it does not.
    pub fn invariants(&self) {
        assert!(self.copying.len() <= SMALL_MAX, "copies at a time are bounded");
        assert!((COPIES_MAX..=SMALL_MAX).contains(&self.window), "as they are asked for");
        let is_told = self.listings.is_empty() && self.recalls.is_empty();
        let is_idle = is_told && self.missing.is_empty();
        assert!(self.is_moving || is_idle, "without a move nothing is missing");
        for copying in self.copying.values() {
            let is_apart =
                !self.missing.contains(&copying.chunk) && !self.written.contains(&copying.chunk);
            assert!(is_apart, "a chunk that is being copied is not to be asked for as well");
        }
        assert!(self.heard.is_subset(&self.missing), "what chains bring something of is missing");
    }
}
