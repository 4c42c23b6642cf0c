//! Opening a store: find or make the files, then play the log over the base.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tyr_types::{
    Bytes, Durability, Error, ErrorKind, ExtentRef, KeyspaceId, Payload, Result, Timestamp,
    Transaction,
};

use super::folded_to::FoldedTo;
use super::{Store, promises};
use crate::base::{Base, Checkpoint, synced_batch};
use crate::check::Report;
use crate::disk::{Disk, FolderLock, RealDisk};
use crate::extents::{ExtentOptions, Extents};
use crate::index::Index;
use crate::index::fjall::FjallIndex;
use crate::log::{self, Entry, Log, LogOptions, ReplayMode, Replayed, TornTail};
use crate::recent::{BlobCell, Readers, Recent};

/// The folder of the index within a store.
const INDEX_FOLDER: &str = "index";

/// What a store is put together from.
pub struct Parts {
    /// Log, extents and checkpoint.
    pub disk: Arc<dyn Disk>,
    /// The index.
    pub index: Box<dyn Index>,
    /// Sizes of log segments.
    pub log: LogOptions,
    /// Sizes of extent files.
    pub extents: ExtentOptions,
    /// Whether nothing is to be changed.
    pub is_read_only: bool,
}

/// A store that has been opened.
pub struct Opened<L = FolderLock> {
    /// The store.
    pub store: Store,
    /// The log's end; `None` when nothing is to be changed.
    pub log: Option<Log>,
    /// The highest timestamp that was seen.
    pub clock: Timestamp,
    /// Keeps others out of the folder.
    pub lock: L,
}

/// A record of a node, as it comes back.
#[derive(Clone, Debug)]
pub enum Reread {
    /// Of the checkpoint that stands for the log before the base.
    Checkpoint(Bytes),
    /// Of the log since.
    Log(Bytes),
}

/// Gets what a node has logged, record by record, with the store as it was then; adds the extents
/// that the record refers to.
pub type Visit<'v> = &'v mut dyn FnMut(&Arc<Store>, Reread, &mut Vec<ExtentRef>) -> Result<()>;

/// What a node of a cluster has opened.
pub struct OpenedNode<L = FolderLock> {
    /// The store.
    pub store: Arc<Store>,
    /// The log's end.
    pub log: Log,
    /// What a crash left there that was not whole, and is cut off.
    pub torn_tail: Option<TornTail>,
    /// Keeps others out of the folder.
    pub lock: L,
}

impl Store {
    /// Opens the store of a node of a cluster, or makes one there; `visit` gets everything that the
    /// node has logged since its last checkpoint, in order.
    ///
    /// # Errors
    /// As [`Store::open`], and what `visit` says.
    pub fn open_node(path: &Path, visit: Visit<'_>) -> Result<OpenedNode> {
        let disk = RealDisk::create(path)?;
        let lock = disk.lock()?;
        disk.balance_reserve();
        let synced = synced_batch(&disk)?;
        let index = Box::new(FjallIndex::open(&path.join(INDEX_FOLDER), synced)?);
        // A node syncs all that it promises.
        let log = LogOptions { is_direct: true, ..LogOptions::default() };
        let extents = ExtentOptions::default();
        let parts = Parts { disk: Arc::new(disk), index, log, extents, is_read_only: false };
        let OpenedNode { store, log, torn_tail, lock: () } = Self::assemble_node(parts, visit)?;
        Ok(OpenedNode { store, log, torn_tail, lock })
    }

    /// Puts the store of a node of a cluster together from its parts.
    ///
    /// # Errors
    /// As [`Store::open_node`].
    pub fn assemble_node(parts: Parts, visit: Visit<'_>) -> Result<OpenedNode<()>> {
        let Parts { disk, index, log, extents, is_read_only: _ } = parts;
        let store = Arc::new(Self::before_replay(disk, index, extents)?);
        // Until a map says that all nodes can read them.
        store.base.write_pages(false);
        store.folded_to.load(&*store.disk);
        let Checkpoint { sequence: from, timestamp } = store.base.last_checkpoint();
        // What was deleted before it left no trace.
        store.recent.know_from(timestamp);
        let mut in_log = Vec::new();
        if from > 0 {
            let mut promise = |it| visit(&store, Reread::Checkpoint(it), &mut in_log);
            promises::read(&*store.disk, from, &mut promise)?;
        }
        promises::remove_others(&*store.disk, from)?;
        let mut play = |_: u64, _: Timestamp, entry: Entry| match entry {
            Entry::Node(body) => visit(&store, Reread::Log(body), &mut in_log),
            Entry::Transaction(_) => Err(Error::invalid(
                "the folder holds an embedded store, not a node of a cluster; give the node a \
                 folder of its own",
            )),
        };
        let start = store.base.log_start();
        let replayed = log::replay(&*store.disk, start, ReplayMode::Cut, &mut play)?;
        assert!(from <= replayed.next_sequence, "the log goes on at or behind its checkpoint");
        store.base.reclaim(&in_log)?;
        let log = Log::open(Arc::clone(&store.disk), log, &replayed)?;
        Ok(OpenedNode { store, log, torn_tail: replayed.torn, lock: () })
    }

    /// Opens the store in a folder, or makes one there.
    ///
    /// # Errors
    /// `Unavailable` when somebody else has it open (the text names them) or the disk fails;
    /// `NotFound` when it must exist and does not; `Corrupt` when it is damaged.
    pub fn open(path: &Path, must_exist: bool, is_read_only: bool) -> Result<Opened> {
        let mut disk =
            if must_exist || is_read_only { existing(path)? } else { RealDisk::create(path)? };
        let refuses_writes = is_read_only && disk.refuses_writes();
        if refuses_writes {
            disk = disk.read_only();
        }
        let lock = disk.lock()?;
        if !is_read_only {
            disk.balance_reserve();
        }
        let synced = synced_batch(&disk)?;
        let index = Box::new(open_index(path, synced, refuses_writes)?);
        let (log, extents) = (LogOptions::default(), ExtentOptions::default());
        let parts = Parts { disk: Arc::new(disk), index, log, extents, is_read_only };
        let Opened { store, log, clock, lock: () } = Self::assemble(parts)?;
        Ok(Opened { store, log, clock, lock })
    }

    /// What is on disk but for the log, over which the log is still to be played.
    fn before_replay(
        disk: Arc<dyn Disk>,
        index: Box<dyn Index>,
        extents: ExtentOptions,
    ) -> Result<Self> {
        let extents = Arc::new(Extents::open(Arc::clone(&disk), extents)?);
        let base = Base::open(index, Arc::clone(&extents), Arc::clone(&disk))?;
        let (recent, folding) = (Recent::default(), Mutex::new(()));
        let folded_to = FoldedTo::default();
        Ok(Self { disk, extents, base, recent, folding, folded_to, damage: None, torn_tail: None })
    }

    /// Puts a store together from its parts.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged; `Unavailable` when the disk fails.
    pub fn assemble(parts: Parts) -> Result<Opened<()>> {
        let Parts { disk, index, log, extents, is_read_only } = parts;
        let mut store = Self::before_replay(disk, index, extents)?;
        if is_read_only {
            let clock = store.replay_to_look()?;
            return Ok(Opened { store, log: None, clock, lock: () });
        }
        store.clear_memory_keyspaces()?;
        let (replayed, clock) = store.replay()?;
        let log = Log::open(Arc::clone(&store.disk), log, &replayed)?;
        Ok(Opened { store, log: Some(log), clock, lock: () })
    }

    /// Verifies a store that nobody has open.
    ///
    /// # Errors
    /// `NotFound` when there is none; `Unavailable` when somebody has it open or the disk fails.
    pub fn check_closed(path: &Path, progress: &mut dyn FnMut(f64)) -> Result<Report> {
        let mut disk = existing(path)?;
        let refuses_writes = disk.refuses_writes();
        if refuses_writes {
            disk = disk.read_only();
        }
        let _lock = disk.lock()?;
        let index = |synced| open_index(path, synced, refuses_writes);
        crate::check::run_closed(Arc::new(disk), index, progress)
    }

    fn clear_memory_keyspaces(&self) -> Result<()> {
        for info in self.base.keyspaces() {
            if info.config.durability == Durability::Memory {
                self.base.clear_keyspace(info.id)?;
            }
        }
        Ok(())
    }

    /// Plays the log from the last checkpoint on, and makes what it holds durable.
    fn replay(&mut self) -> Result<(Replayed, Timestamp)> {
        let unsynced = self.unsynced_extents()?;
        // The log says of every record it goes on after that all of it is durable.
        let files: BTreeSet<u32> = unsynced.iter().map(|(_, extent)| extent.file).collect();
        if !files.is_empty() {
            self.extents.adopt_files(files)?;
        }
        let intact = self.last_intact(unsynced)?;
        let Played { replayed, clock, extents, left_out } = self.play_log(ReplayMode::Cut, intact);
        let replayed = replayed?;
        self.base.reclaim(&extents)?;
        if intact.to < replayed.next_sequence - 1 {
            self.fold_everything(clock, replayed.next_sequence)?;
        }
        self.torn_tail = left_out.or_else(|| replayed.torn.clone());
        Ok((replayed, clock))
    }

    /// Plays the log as far as it is whole, and changes nothing. Damage in it ends it there, and is
    /// remembered.
    fn replay_to_look(&mut self) -> Result<Timestamp> {
        let intact = match self.unsynced_extents() {
            Ok(unsynced) => self.last_intact(unsynced)?,
            // Playing it says the same, and how far it got.
            Err(error) if error.kind() == ErrorKind::Corrupt => Intact { to: u64::MAX, lost: None },
            Err(error) => return Err(error),
        };
        let Played { replayed, clock, left_out, .. } = self.play_log(ReplayMode::ReadOnly, intact);
        match replayed {
            Err(error) if error.kind() == ErrorKind::Corrupt => self.damage = Some(error),
            replayed => self.torn_tail = left_out.or(replayed?.torn),
        }
        Ok(clock)
    }

    /// Plays the log from the last checkpoint as far as it is intact.
    fn play_log(&self, mode: ReplayMode, intact: Intact) -> Played {
        let known: Vec<KeyspaceId> = self.base.keyspaces().iter().map(|info| info.id).collect();
        let mut clock = self.base.last_checkpoint().timestamp;
        let kept = self.base.kept_unfolded();
        // What was deleted before it left no trace.
        self.recent.know_from(clock);
        let (mut extents, mut records_lost, mut bytes) = (Vec::new(), 0, 0);
        let mut play = |sequence: u64, at: Timestamp, entry: Entry| {
            let transaction = transaction_of(entry)?;
            if sequence > intact.to {
                let mut without = Vec::new();
                extents_of(&transaction, &mut without);
                bytes += without.iter().map(|extent| u64::from(extent.len)).sum::<u64>();
                records_lost += 1;
                return Ok(());
            }
            clock = clock.max(at);
            extents_of(&transaction, &mut extents);
            self.play(&transaction, at, &known, Readers::new(&kept))
        };
        let replayed = log::replay(&*self.disk, self.base.log_start(), mode, &mut play);
        for cell in self.recent.dirty_cells() {
            self.catch_up(&cell, Timestamp::MAX);
        }
        // What is committed now is none of what was kept.
        let clock = clock.max(self.base.kept_to());
        let left_out = intact.lost.map(|extent| TornTail {
            file: self.extents.path(extent.file),
            offset: extent.position,
            sequence: intact.to + 1,
            records_lost,
            bytes,
        });
        Played { replayed, clock, extents, left_out }
    }

    /// Folds what was played, so that nothing in the log below `sequence` is ever played again.
    fn fold_everything(&self, clock: Timestamp, sequence: u64) -> Result<()> {
        self.extents.sync()?;
        let mut fold = self.begin_fold(clock, Vec::new());
        fold.stop_at(&self.base.kept_unfolded());
        while self.fold_some(&mut fold, |_| true)? {}
        self.end_fold(fold, sequence)
    }

    /// Applies one logged transaction to the blobs that the base has not folded it into.
    fn play(
        &self,
        transaction: &Transaction,
        at: Timestamp,
        known: &[KeyspaceId],
        readers: Readers<'_>,
    ) -> Result<()> {
        for entry in &transaction.blobs {
            if !known.contains(&entry.blob.keyspace) {
                continue;
            }
            let cell = self.cell(&entry.blob)?;
            if cell.lock().folded_at() >= at {
                continue;
            }
            self.catch_up(&cell, at);
            let one =
                Transaction { id: transaction.id, blobs: vec![entry.clone()], reads: Vec::new() };
            self.apply(&one, &[cell], at, |_| readers)?;
        }
        Ok(())
    }

    /// The log has come to `at`: what it brought of a blob where the base was ahead goes.
    fn catch_up(&self, cell: &Arc<BlobCell>, at: Timestamp) {
        self.recent.change(cell, &mut cell.lock(), |state| state.catch_up(at));
    }

    /// The extents of the records that may not have been synced, with the records' sequences.
    fn unsynced_extents(&self) -> Result<Vec<(u64, ExtentRef)>> {
        let mut unsynced = Vec::new();
        let mut look = |sequence: u64, _: Timestamp, entry: Entry| {
            let mut extents = Vec::new();
            extents_of(&transaction_of(entry)?, &mut extents);
            unsynced.extend(extents.into_iter().map(|extent| (sequence, extent)));
            Ok(())
        };
        let start = self.base.log_start();
        let replayed = log::replay(&*self.disk, start, ReplayMode::ReadOnly, &mut look)?;
        unsynced.retain(|(sequence, _)| *sequence > replayed.synced_to);
        Ok(unsynced)
    }

    /// How far every record has all of its extents.
    ///
    /// A buffered commit is synced about a second later, its extents with it. When the power goes
    /// before that, the system may have kept the record and not the extents: then the log ends
    /// before that record, as if it had been torn.
    fn last_intact(&self, unsynced: Vec<(u64, ExtentRef)>) -> Result<Intact> {
        debug_assert!(unsynced.is_sorted_by_key(|(sequence, _)| *sequence), "in the log's order");
        let mut intact = Intact { to: u64::MAX, lost: None };
        for (sequence, extent) in unsynced {
            if sequence <= intact.to {
                match self.extents.verify(&extent) {
                    Ok(()) => {}
                    Err(error) if is_lost(&error) => {
                        intact = Intact { to: sequence - 1, lost: Some(extent) };
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(intact)
    }
}

/// How far the log and what it refers to are whole.
#[derive(Clone, Copy, Debug)]
struct Intact {
    /// The last record whose extents, and those of every record before it, are there.
    to: u64,
    /// The extent that the next record refers to, and that is not there.
    lost: Option<ExtentRef>,
}

/// What came of playing the log.
struct Played {
    replayed: Result<Replayed>,
    /// How far the clock came.
    clock: Timestamp,
    /// What the records that were played refer to.
    extents: Vec<ExtentRef>,
    /// The records that were left out since they refer to an extent that is not there.
    left_out: Option<TornTail>,
}

/// The transaction of an embedded store's log.
fn transaction_of(entry: Entry) -> Result<Transaction> {
    match entry {
        Entry::Transaction(transaction) => Ok(transaction),
        Entry::Node(_) => Err(Error::invalid(
            "the folder belongs to a node of a cluster; start it with tyr serve, and connect to it",
        )),
    }
}

/// The index of the store in `path`.
fn open_index(path: &Path, synced: u64, refuses_writes: bool) -> Result<FjallIndex> {
    let folder = path.join(INDEX_FOLDER);
    match refuses_writes {
        true => FjallIndex::open_elsewhere(&folder, synced),
        false => FjallIndex::open(&folder, synced),
    }
}

fn existing(path: &Path) -> Result<RealDisk> {
    let none = || {
        Error::not_found(format!(
            "there is no store in {}; check the path, or make one by opening it for writing",
            path.display()
        ))
    };
    let disk = RealDisk::existing(path).map_err(|_| none())?;
    match disk.list(INDEX_FOLDER) {
        Ok(_) => Ok(disk),
        Err(_) => Err(none()),
    }
}

/// Whether an extent is not there as it was written, its whole file perhaps.
fn is_lost(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound)
}

fn extents_of(transaction: &Transaction, out: &mut Vec<ExtentRef>) {
    let operations = transaction.blobs.iter().flat_map(|entry| &entry.operations);
    for payload in operations.filter_map(|operation| operation.payload()) {
        if let Payload::Extents(extents) = payload {
            out.extend(extents);
        }
    }
}
