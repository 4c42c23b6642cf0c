//! A node over the store itself: the engine that runs in a node, on files that lose power.
//!
//! ```text
//!   World ──event──► Engine::step ──Asked──► World: messages, reads that take the disk
//!            Piece::step, Folding::step, Preparation::step: each at a time of its own
//!                        │
//!                  SimulatedDisk, MemoryIndex ──power loss──► what is left ──► Engine::open
//! ```
//!
//! Everything is small, so that segments, extent files, folds and checkpoints are many. A process
//! may end between any two steps. When it does, what its log still has is found by opening the
//! store, on a copy: so an opening that fails is noticed at once, whoever starts there later.

mod found;
mod surroundings;
mod watched;

use std::sync::Arc;

use tyr_engine::fold::{Folding, Progress, Seen};
use tyr_engine::journal::Piece;
use tyr_engine::lists::Listed;
use tyr_engine::need::{LastFold, Limits};
use tyr_engine::tidy::{self, Tidying};
use tyr_engine::{Engine, Holdings, Retention};
use tyr_protocol::member::{ChunkName, Event, Member, Store as _};
use tyr_protocol::message::{Address, Envelope, Now};
use tyr_store::disk::SimulatedDisk;
use tyr_store::extents::ExtentOptions;
use tyr_store::index::memory::MemoryIndex;
use tyr_store::log::{LogOptions, Preparation};
use tyr_store::store::{Parts, Store};
use tyr_types::{ErrorKind, NodeId, Result, Timestamp};

pub use self::found::Found;
pub use self::surroundings::Asked;
use self::surroundings::{Own, Surroundings};
use self::watched::Watched;
use super::node::End;
use crate::checker::{HeldChunk, Replica};
use crate::random::Random;
use crate::setup::{Disks, Setup};
use crate::store::Done;

/// Bytes of a segment of the log; the first after a start has a sixteenth.
const SEGMENT_LEN: u64 = 128 << 10;

/// Bytes of an extent file.
const EXTENT_FILE_LEN: u64 = 512 << 10;

/// Memory above which it counts as short: more than a run writes, so that no reader is turned away.
const CACHE_BYTES: usize = 64 << 20;

/// Of a fold that was due now, how often it is left for the next time, in percent.
const HESITATION: u64 = 20;

/// Snapshots that were begun this long before a fold are not disturbed by it: what nodes know of
/// each other's is known at once here.
const GRACE_US: u64 = 200_000;

/// How far the log is durable is noted this long after something was written, at most.
const MARK_US: u64 = 100_000;

/// How long a fold waits for what is in flight before it gives up.
const PATIENCE_US: u64 = 20_000_000;

/// What is to be done about the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Due {
    /// The next step of a piece on its way to the disk.
    pub sync_us: Option<u64>,
    /// The next step of making a segment ahead.
    pub prepare_us: Option<u64>,
    /// When it is noted beside the log how far it is durable.
    pub mark_us: Option<u64>,
}

/// A disk with a store, and the process on it, while one runs.
pub struct Real {
    id: NodeId,
    disk: SimulatedDisk,
    index: MemoryIndex,
    process: Option<Process>,
    /// Records that were given to the log, and are not lost.
    log_len: usize,
    /// How far the base is that the process found.
    found: Found,
    config: Disks,
    limits: Limits,
    retention: Retention,
    random: Random,
    is_full: bool,
    slowness: u32,
}

/// A process: all that is lost when it is killed.
struct Process {
    engine: Engine<Watched>,
    /// On its way to the disk.
    piece: Option<Piece>,
    preparation: Option<Preparation>,
    /// Whether a mark beside the log is due.
    is_marking: bool,
    folding: Option<(Folding, u64)>,
    last: LastFold,
    tidying: Tidying,
    /// A fold is wanted from then on.
    fold_at_us: Option<u64>,
}

impl Real {
    /// An empty disk that nothing runs on.
    pub fn new(id: NodeId, setup: &Setup) -> Self {
        let mut random = Random::of(setup.seed, "real", id.0.into());
        let fold_log_bytes = match setup.disks.checkpoint_us {
            Some(_) => random.between(16 << 10, 256 << 10),
            None => u64::MAX / 16,
        };
        let policy = setup.versions;
        Self {
            id,
            disk: SimulatedDisk::new(),
            index: MemoryIndex::new(),
            process: None,
            log_len: 0,
            found: Found::default(),
            config: setup.disks,
            limits: Limits { cache_bytes: CACHE_BYTES, fold_log_bytes, grace_us: GRACE_US },
            retention: Retention {
                read_timeout_us: policy.read_timeout_us,
                linger_us: policy.linger_us,
            },
            random,
            is_full: false,
            slowness: 1,
        }
    }

    fn parts(disk: &SimulatedDisk, index: &MemoryIndex) -> Parts {
        Parts {
            disk: Arc::new(disk.clone()),
            index: Box::new(index.clone()),
            log: LogOptions { segment_len: SEGMENT_LEN, is_direct: true },
            extents: ExtentOptions { file_len_max: EXTENT_FILE_LEN },
            is_read_only: false,
        }
    }

    /// Starts a process on what is on the disk; none when the disk is full and it has to write.
    pub fn start(&mut self, member: Member) {
        let parts = Self::parts(&self.disk, &self.index);
        let (id, retention) = (self.id, self.retention);
        let hold = |store| Watched::new(id, Holdings::new(id, store, retention));
        let opened = Engine::open(member, hold, |visit| Store::assemble_node(parts, visit));
        let (mut engine, ()) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let is_full = self.is_full && error.kind() == ErrorKind::Unavailable;
                assert!(is_full, "violation: node {} cannot open its store: {error}", id.0);
                return;
            }
        };
        self.log_len = len(&mut engine);
        self.found = Found::of(engine.store()).unwrap_or_else(|error| {
            panic!("violation: node {} cannot read its base: {error}", id.0)
        });
        self.process = Some(Process {
            engine,
            piece: None,
            preparation: None,
            is_marking: false,
            folding: None,
            last: LastFold::default(),
            tidying: Tidying::default(),
            fold_at_us: None,
        });
    }

    /// Ends the process, if one runs; what is left on the disk is left to chance when the power
    /// goes.
    pub fn end(&mut self, end: End) {
        let is_power_lost = match end {
            End::PowerLoss => true,
            End::Crash => self.process.is_some() && self.random.percent(60),
            End::Stop => {
                self.settle();
                false
            }
        };
        if self.process.is_none() && !is_power_lost {
            return;
        }
        // What the process does as it goes is done to another disk.
        (self.disk, self.index) = match (is_power_lost, end) {
            (true, _) => {
                let unsynced = self.index.unsynced_batches() as u64;
                let kept = self.random.between(0, unsynced) as usize;
                (self.disk.crash(self.random.any()), self.index.crash(kept))
            }
            (false, End::Stop) => (self.disk.clone(), self.index.clone()),
            (false, _) => (self.disk.copy(), self.index.copy()),
        };
        self.process = None;
        self.fill(self.is_full);
        self.log_len = self.left();
    }

    /// Records that are left in the log of a process that ended.
    fn left(&self) -> usize {
        let (disk, index) = (self.disk.copy(), self.index.copy());
        let opened = Store::assemble_node(Self::parts(&disk, &index), &mut |_, _, _| Ok(()));
        match opened {
            Ok(opened) => usize::try_from(opened.log.next_sequence() - 1).expect("few records"),
            Err(error) => {
                panic!("violation: node {} leaves a store that is none: {error}", self.id.0)
            }
        }
    }

    /// Waits until the log is durable as it is.
    fn settle(&mut self) {
        let Some(Process { engine, piece, .. }) = &mut self.process else { return };
        let (store, log) = (Arc::clone(engine.store()), engine.journal().log());
        while !engine.journal().is_settled() {
            // It may be on its way already, taken or not.
            engine.journal().begin(true);
            let mut piece = piece.take().unwrap_or_else(|| Piece::take(&store, &log));
            let result = piece.finish();
            engine.journal().settle(piece, &result);
        }
    }

    /// Another disk, empty, takes its disk's place.
    pub fn replace(&mut self) {
        (self.disk, self.index) = (SimulatedDisk::new(), MemoryIndex::new());
        self.log_len = 0;
    }

    /// From now on the disk has no room for more, or for everything again.
    pub fn fill(&mut self, is_full: bool) {
        self.is_full = is_full;
        self.disk.set_capacity(is_full.then(|| self.disk.disk_bytes()));
    }

    /// A sync takes so many times longer.
    pub fn slow_down(&mut self, times: u32) {
        self.slowness = times;
    }

    /// The member that runs.
    pub fn member(&self) -> Option<&Member> {
        self.process.as_ref().map(|process| process.engine.member())
    }

    /// The most older versions that a chunk had left since the process started.
    pub fn versions_most(&self) -> usize {
        self.process.as_ref().map_or(0, |process| process.tidying.versions_most())
    }

    /// Records that were given to the log, and are not lost.
    pub fn log_len(&self) -> usize {
        self.log_len
    }

    /// How far the base is that the process found when it started.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Whether the log, or the store, did not take something since the process started.
    pub fn is_broken(&self) -> bool {
        self.process.as_ref().is_some_and(|process| {
            process.engine.failure().is_some() || process.engine.refusal().is_some()
        })
    }

    /// What the process has done since this was asked last.
    pub fn take_done(&mut self) -> Vec<Done> {
        let process = self.process.as_mut();
        process.map(|process| process.engine.held().take_done()).unwrap_or_default()
    }

    /// The chunks that the process holds.
    pub fn replica(&mut self) -> Option<Replica> {
        let engine = &mut self.process.as_mut()?.engine;
        let names = engine.held().held(None, usize::MAX);
        let store = Arc::clone(engine.store());
        let mut read = |name: &ChunkName| -> Result<HeldChunk> {
            let Some(read) = engine.holdings().plan_whole(name)? else {
                return Ok(HeldChunk::Awaited);
            };
            let reading = store.finish_chunk_read(read)?;
            let attributes = reading.attributes;
            let size = (name.1 == 0 && attributes.exists).then_some(attributes.size);
            Ok(HeldChunk::Here { size, bytes: reading.bytes })
        };
        let held = |name: ChunkName| match read(&name) {
            Ok(chunk) => (name, chunk),
            Err(error) => panic!("violation: {name:?} cannot be read: {error}"),
        };
        Some(names.into_iter().map(held).collect())
    }

    /// Hands an event to the process, if one runs.
    pub fn step(&mut self, now: Now, event: Event) -> Vec<Asked> {
        let mut asked = Vec::new();
        if let Some(process) = &mut self.process {
            process.engine.step(&mut Surroundings { now, asked: &mut asked }, event);
            self.log_len = len(&mut process.engine);
        }
        asked
    }

    /// What is to be done about the log after some steps; `is_due` when some time has passed.
    pub fn round(&mut self, is_due: bool) -> Due {
        let Some(process) = &mut self.process else { return Due::default() };
        if !process.engine.journal().begin(is_due) {
            return Due::default();
        }
        process.preparation = process.preparation.take().or(process.engine.journal().prepare());
        let prepare_us = process.preparation.is_some().then(|| self.random.between(500, 5_000));
        let begins = !std::mem::replace(&mut process.is_marking, true);
        let mark_us = begins.then(|| self.random.between(1, MARK_US));
        Due { sync_us: Some(self.moment()), prepare_us, mark_us }
    }

    /// Notes beside the log how far it is durable.
    pub fn mark(&mut self) {
        let Some(process) = &mut self.process else { return };
        process.is_marking = false;
        let marker = process.engine.journal().log().lock().marker();
        let marked = marker.mark();
        let may_fail = self.is_full || process.engine.failure().is_some();
        assert!(marked.is_ok() || may_fail, "violation: no mark beside the log: {marked:?}");
    }

    /// A third of the time of a sync.
    fn moment(&mut self) -> u64 {
        let (low, high) = self.config.sync_us;
        (self.random.between(low, high) * u64::from(self.slowness)).div_ceil(3)
    }

    /// The next step of what is on its way to the disk; answers when the one after it comes, or
    /// what came of it.
    pub fn sync(&mut self, now: Now) -> (Option<u64>, Vec<Asked>) {
        let Some(process) = &mut self.process else { return (None, Vec::new()) };
        let mut piece = match process.piece.take() {
            Some(piece) => piece,
            None => {
                let (store, log) =
                    (Arc::clone(process.engine.store()), process.engine.journal().log());
                Piece::take(&store, &log)
            }
        };
        let Some(result) = piece.step() else {
            process.piece = Some(piece);
            return (Some(self.moment()), Vec::new());
        };
        let mut asked = Vec::new();
        process.engine.synced(&mut Surroundings { now, asked: &mut asked }, piece, &result);
        self.log_len = len(&mut process.engine);
        (None, asked)
    }

    /// The next step of making a segment ahead; answers when the one after it comes.
    pub fn prepare(&mut self) -> Option<u64> {
        let preparation = &mut self.process.as_mut()?.preparation;
        if preparation.as_mut()?.step() {
            return Some(self.random.between(500, 5_000));
        }
        *preparation = None;
        None
    }

    /// What a listing found comes back.
    pub fn listed(&self, listed: Listed) -> Option<(Address, Envelope)> {
        Some(self.process.as_ref()?.engine.listed(listed))
    }

    /// Some of what keeps the store small: a step of a fold, or what goes between folds. `floor` is
    /// down to where snapshots are read anywhere. Answers what a fold came to, and when to go on.
    pub fn keep(&mut self, now_us: u64, floor: Option<Timestamp>) -> (Option<Progress>, u64) {
        let Self { process: Some(process), random, limits, config, .. } = self else {
            return (None, 1);
        };
        let Process { engine, folding, last, tidying, fold_at_us, .. } = process;
        let store = Arc::clone(engine.store());
        let Some((mut fold, begun_us)) = folding.take() else {
            let shortage = tidying.shortage(&store, *limits);
            tidying.collect(engine, shortage);
            // What the base has may be forgotten at any time.
            let budget = if random.percent(30) { 0 } else { limits.cache_bytes };
            tidying.forget(&store, budget, tidy::FORGET_MAX);
            tidy::remove_dropped(&store);
            // What fails is tried again after the next fold.
            let _ = store.base().give_back();
            let between = config.checkpoint_us;
            let at_us = *fold_at_us.get_or_insert_with(|| {
                between.map_or(u64::MAX, |(low, high)| now_us + random.between(low, high))
            });
            let (log_bytes, dirty) = (engine.journal().bytes(), store.recent().dirty_memory());
            let dead_bytes = store.recent().dead().bytes();
            let is_due = last.is_due(*limits, log_bytes, dirty, dead_bytes);
            let is_due = is_due && !random.percent(HESITATION);
            if now_us < at_us && !is_due {
                let next_us = at_us.min(now_us + random.between(10_000, 50_000)) - now_us;
                return (None, next_us.max(1));
            }
            *folding = Folding::begin(&store).ok().map(|fold| (fold, now_us));
            *fold_at_us = None;
            return (None, random.between(100, 10_000));
        };
        let is_long = last.is_long(*limits, engine.journal().bytes());
        let may_go_on = |seen: &Seen| {
            let is_read = floor.is_some_and(|floor| floor < seen.at)
                || seen.clock.clock < seen.at.clock + limits.grace_us;
            is_long || seen.clock.epoch > seen.at.epoch || !is_read
        };
        let stepped = fold.step(&mut Own(engine), may_go_on);
        let is_over = match &stepped {
            Ok(Progress::Steps | Progress::Folded) => false,
            Ok(Progress::Waits(seen)) => {
                let is_over = !seen.is_ready() && now_us > begun_us + PATIENCE_US;
                if is_over {
                    fold.abandon(&mut Own(engine));
                }
                is_over
            }
            Ok(Progress::Ended { promises_len }) => {
                last.promises_len = *promises_len;
                true
            }
            Err(error) => {
                let is_expected = error.kind() == ErrorKind::Unavailable;
                assert!(is_expected, "violation: a fold fails: {error}");
                true
            }
        };
        match is_over {
            true => {
                last.log_bytes = engine.journal().bytes();
                last.dirty = store.recent().dirty_memory();
            }
            false => *folding = Some((fold, begun_us)),
        }
        let next_us =
            if is_over { random.between(1_000, 50_000) } else { random.between(100, 30_000) };
        (stepped.ok(), next_us)
    }
}

/// Records that were given to the log.
fn len(engine: &mut Engine<Watched>) -> usize {
    usize::try_from(engine.journal().next_sequence() - 1).expect("a run has few records")
}
