//! What was applied goes into the base, and the log is cut.
//!
//! ```text
//!   pages of what is remembered ─► checkpoint at log position s, moment F (the clock)
//!     ─► everything up to F is applied, the log is synced to s
//!     ─► promises(s) durable ─► fold all chunks up to each kept moment below F, then up to F
//!     ─► checkpoint(s, F) ─► log below s goes
//! ```
//!
//! The steps, and why they are safe, are in `docs/internals/member.md`. The node goes on between
//! any two: what is written during a fold stays above F. Only some of them look at the engine, and
//! those are short; the others take the disk, and take as long as it does.
//!
//! Must not know: when to fold, and for how long to wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_protocol::member::Record;
use tyr_protocol::member::checkpoint::CHECKPOINT_PAGE;
use tyr_protocol::wire::{self, Outgoing};
use tyr_store::store::{Fold, PromisesWriter, Store};
use tyr_types::{ExtentRef, Result, Timestamp};

use crate::engine::Engine;
use crate::holdings::Held;

/// The way to the engine for who does not step it.
pub trait Access<H> {
    /// Looks at the engine between two of its steps. What is done there must be short.
    fn look<T>(&mut self, look: impl FnOnce(&mut Engine<H>) -> T) -> T;
}

/// How far the engine is with what a fold waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The fold's moment.
    pub at: Timestamp,
    /// Whether everything up to it is applied.
    pub is_applied: bool,
    /// Whether the log is durable as far as it has to be.
    pub is_synced: bool,
    /// The clock.
    pub clock: Timestamp,
    /// Bytes of log.
    pub log_bytes: u64,
}

impl Seen {
    /// Whether nothing is waited for but readers.
    pub fn is_ready(&self) -> bool {
        self.is_applied && self.is_synced
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The next step may follow at once.
    Steps,
    /// Something has to happen first.
    Waits(Seen),
    /// Some chunks are in the base, and may leave memory.
    Folded,
    /// All is done.
    Ended {
        /// Bytes of the checkpoint.
        promises_len: u64,
    },
}

/// A fold under way.
pub struct Folding {
    store: Arc<Store>,
    stage: Stage,
}

/// Where in the log it cuts, and at which moment.
#[derive(Clone, Copy, Debug)]
struct Place {
    sequence: u64,
    at: Timestamp,
}

/// What is next.
enum Stage {
    /// What is remembered is taken in pages, up to this clock.
    Pages { promises: Promises, after: u64 },
    /// Everything up to the moment has to be applied and durable first, the log up to `needed`.
    Waits(Waiting),
    /// The checkpoint's records become durable.
    Promises { promises: Promises, place: Place, fold: Fold },
    /// The extents that chunks refer to become durable.
    Extents { place: Place, fold: Fold, promises_len: u64 },
    /// Chunks go into the base.
    Chunks { place: Place, fold: Fold, promises_len: u64 },
    /// The base becomes durable, and the checkpoint with it.
    End { place: Place, fold: Fold, promises_len: u64 },
    /// Earlier checkpoints' records go.
    Tidy { place: Place, promises_len: u64 },
    /// The log goes below the place.
    Cut { place: Place, promises_len: u64 },
    /// It has ended, one way or the other.
    Over,
}

/// What waits until everything up to its moment is applied and durable.
struct Waiting {
    promises: Promises,
    place: Place,
    /// Extents that died before.
    dead: Vec<ExtentRef>,
    /// Extents that the promises refer to, or what is in flight.
    kept: BTreeSet<ExtentRef>,
    /// The log has to be durable up to there, when that is known.
    needed: Option<u64>,
}

/// The records of a checkpoint on their way to the disk.
struct Promises {
    writer: PromisesWriter,
    outgoing: Outgoing,
}

impl Promises {
    fn push(&mut self, record: &Record) -> Result<()> {
        wire::encode_record(record, &mut self.outgoing);
        self.writer.push(&self.outgoing.take_bytes())
    }
}

impl std::fmt::Debug for Folding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.stage {
            Stage::Pages { .. } => "Folding(pages)",
            Stage::Waits(_) => "Folding(waits)",
            Stage::Promises { .. } => "Folding(promises)",
            Stage::Extents { .. } => "Folding(extents)",
            Stage::Chunks { .. } => "Folding(chunks)",
            Stage::End { .. } => "Folding(end)",
            Stage::Tidy { .. } => "Folding(tidy)",
            Stage::Cut { .. } => "Folding(cut)",
            Stage::Over => "Folding(over)",
        })
    }
}

impl Folding {
    /// Begins a fold; there is one at a time.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or refuses.
    pub fn begin(store: &Arc<Store>) -> Result<Self> {
        let promises = Promises { writer: store.write_promises()?, outgoing: Outgoing::new() };
        Ok(Self { store: Arc::clone(store), stage: Stage::Pages { promises, after: 0 } })
    }

    /// Does what is next. `may_go_on` is asked when only readers stand in the way.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails: the fold has ended, and what it did not fold
    /// stays in memory and log.
    pub fn step<H: Held>(
        &mut self,
        access: &mut impl Access<H>,
        may_go_on: impl FnOnce(&Seen) -> bool,
    ) -> Result<Progress> {
        let stepped = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Pages { promises, after } => self.page(access, promises, after),
            Stage::Waits(waiting) => self.wait(access, waiting, may_go_on),
            stage => self.write(access, stage),
        };
        match stepped {
            Ok((stage, progress)) => {
                debug_assert_eq!(
                    matches!(stage, Stage::Over),
                    matches!(progress, Progress::Ended { .. }),
                    "a fold ends when it says so"
                );
                self.stage = stage;
                Ok(progress)
            }
            Err(error) => {
                access.look(|engine| engine.holdings().end_fold());
                Err(error)
            }
        }
    }

    /// Ends the fold as it is.
    pub fn abandon<H: Held>(&mut self, access: &mut impl Access<H>) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Waits(Waiting { dead, .. }) => self.store.recent().dead().give_back(dead),
            Stage::Promises { fold, .. }
            | Stage::Extents { fold, .. }
            | Stage::Chunks { fold, .. }
            | Stage::End { fold, .. } => self.store.abandon_fold(fold),
            Stage::Pages { .. } | Stage::Tidy { .. } | Stage::Cut { .. } | Stage::Over => {}
        }
        access.look(|engine| engine.holdings().end_fold());
    }

    /// One page more of what is remembered, or the rest of it.
    fn page<H: Held>(
        &self,
        access: &mut impl Access<H>,
        mut promises: Promises,
        after: u64,
    ) -> Result<(Stage, Progress)> {
        let page = access.look(|engine| engine.member().checkpoint_page(after, CHECKPOINT_PAGE));
        if let Some((record, next)) = page {
            debug_assert!(after < next, "page {next} of what is remembered comes after {after}");
            let after = next;
            promises.push(&record)?;
            return Ok((Stage::Pages { promises, after }, Progress::Steps));
        }
        let dead = self.store.take_dead();
        let (rest, kept, place) = access.look(|engine| {
            let (rest, kept) = (engine.checkpoint(after), engine.referred());
            let sequence = engine.journal().next_sequence();
            let clock = engine.member().clock();
            (rest, kept, Place { sequence, at: engine.holdings().begin_fold(clock) })
        });
        if let Err(error) = rest.iter().try_for_each(|record| promises.push(record)) {
            self.store.recent().dead().give_back(dead);
            return Err(error);
        }
        let waiting = Waiting { promises, place, dead, kept, needed: None };
        Ok((Stage::Waits(waiting), Progress::Steps))
    }

    /// Whether everything up to the moment is applied, the log is durable up to there, from the
    /// place on at least, and no snapshot needs what is below.
    fn wait<H: Held>(
        &self,
        access: &mut impl Access<H>,
        waiting: Waiting,
        may_go_on: impl FnOnce(&Seen) -> bool,
    ) -> Result<(Stage, Progress)> {
        let Waiting { promises, place, dead, kept, needed } = waiting;
        let seen = access.look(|engine| {
            if let Some(failure) = engine.failure() {
                return Err(failure.duplicate());
            }
            let is_applied = engine.member().applied_to() >= place.at;
            let journal = engine.journal();
            // What was applied up to the moment has to be durable before the base has it.
            let next = journal.next_sequence().max(place.sequence);
            let needed = needed.or(is_applied.then_some(next));
            let is_synced = needed.is_some_and(|needed| journal.synced_to() + 1 >= needed);
            let log_bytes = journal.bytes();
            let clock = engine.member().clock();
            // What the base has must never be ahead of what the log has durably.
            assert!(needed.is_none_or(|needed| place.sequence <= needed), "synced too little");
            Ok((needed, Seen { at: place.at, is_applied, is_synced, clock, log_bytes }))
        });
        let (needed, seen) = match seen {
            Ok(seen) => seen,
            Err(error) => {
                self.store.recent().dead().give_back(dead);
                return Err(error);
            }
        };
        if !seen.is_ready() || !may_go_on(&seen) {
            let waiting = Waiting { promises, place, dead, kept, needed };
            return Ok((Stage::Waits(waiting), Progress::Waits(seen)));
        }
        let mut fold = self.store.begin_fold(place.at, dead);
        fold.keep(kept);
        // They are in use until it has ended (V7).
        fold.stop_at(&access.look(|engine| engine.holdings().floors().kept().to_vec()));
        Ok((Stage::Promises { promises, place, fold }, Progress::Steps))
    }

    /// What takes the disk.
    fn write<H: Held>(
        &self,
        access: &mut impl Access<H>,
        stage: Stage,
    ) -> Result<(Stage, Progress)> {
        let store = &self.store;
        let next = match stage {
            Stage::Promises { promises, place, fold } => {
                match promises.writer.finish(place.sequence, place.at) {
                    Ok(promises_len) => Stage::Extents { place, fold, promises_len },
                    Err(error) => return self.failed(fold, error),
                }
            }
            Stage::Extents { place, fold, promises_len } => match store.extents().sync() {
                Ok(()) => Stage::Chunks { place, fold, promises_len },
                Err(error) => return self.failed(fold, error),
            },
            Stage::Chunks { place, mut fold, promises_len } => {
                match store.fold_some(&mut fold, |_| true) {
                    Ok(true) => {
                        let stage = Stage::Chunks { place, fold, promises_len };
                        return Ok((stage, Progress::Folded));
                    }
                    Ok(false) => Stage::End { place, fold, promises_len },
                    Err(error) => return self.failed(fold, error),
                }
            }
            Stage::End { place, fold, promises_len } => {
                store.end_fold(fold, place.sequence)?;
                Stage::Tidy { place, promises_len }
            }
            Stage::Tidy { place, promises_len } => {
                store.remove_old_promises()?;
                Stage::Cut { place, promises_len }
            }
            Stage::Cut { place, promises_len } => {
                let kept = store.base().last_checkpoint().sequence;
                assert!(
                    place.sequence <= kept,
                    "cut below {}, needed from {kept} on",
                    place.sequence
                );
                access.look(|engine| engine.journal().cut(place.sequence)).run()?;
                access.look(|engine| engine.holdings().end_fold());
                return Ok((Stage::Over, Progress::Ended { promises_len }));
            }
            Stage::Pages { .. } | Stage::Waits(_) | Stage::Over => {
                unreachable!("a fold that has ended is not stepped, and the others write nothing")
            }
        };
        Ok((next, Progress::Steps))
    }

    fn failed(&self, fold: Fold, error: tyr_types::Error) -> Result<(Stage, Progress)> {
        self.store.abandon_fold(fold);
        Err(error)
    }
}

#[cfg(test)]
mod tests;
