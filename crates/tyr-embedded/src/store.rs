//! An embedded store: opening, closing, and everything that can be asked of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tyr_store::check::Report;
use tyr_store::disk::FolderLock;
use tyr_store::log::TornTail;
use tyr_store::store::{Answer, Attributes, Opened, Parts, Store};
use tyr_types::{
    BlobName, ByteRange, Error, ErrorKind, ExtentRef, KeyspaceConfig, KeyspaceInfo, KeyspaceName,
    Result, Scan, ScanPage, Stretches, Timestamp, Transaction, TransactionId,
};

use crate::ExtentLease;
use crate::arbiter::Arbiter;
use crate::commit::Held;
use crate::inner::{Inner, Refusal};
use crate::keyspaces::KeyspaceEntry;
use crate::options::Options;
use crate::snapshot::SnapshotGuard;
use crate::{committer, folder};
use tyr_runtime::cache::warn_of_small_cache;
use tyr_runtime::marking::Marking;
use tyr_runtime::statistics::Statistics;
use tyr_runtime::ticket::Ticket;

/// A store in this process, on one folder. Dropping it closes it.
#[derive(Debug)]
pub struct EmbeddedStore {
    pub(crate) inner: Arc<Inner>,
    running: Mutex<Option<Running>>,
}

/// What ends when the store closes.
#[derive(Debug)]
struct Running {
    threads: Vec<JoinHandle<()>>,
    /// `None` when nothing is written.
    marking: Option<Marking>,
    /// `None` on parts of the caller's choosing.
    lock: Option<FolderLock>,
}

impl EmbeddedStore {
    /// Opens the store at `path`, or makes one there.
    ///
    /// # Errors
    /// `Unavailable` when somebody else has it open (the text names them) or the disk fails;
    /// `NotFound` when it must exist and does not; `Corrupt` when it is damaged.
    pub fn open(path: &Path, options: Options) -> Result<Arc<Self>> {
        options.validate()?;
        warn_of_small_cache(options.cache_bytes);
        let opened = Store::open(path, options.must_exist, options.is_read_only)?;
        let Opened { store, log, clock, lock } = opened;
        Self::start(Opened { store, log, clock, lock: Some(lock) }, options)
    }

    /// Opens a store on parts of the caller's choosing: how tests run it on a simulated disk.
    /// Nothing locks them; whether it is read-only is the options' affair.
    ///
    /// # Errors
    /// As [`EmbeddedStore::open`].
    pub fn assemble(parts: Parts, options: Options) -> Result<Arc<Self>> {
        options.validate()?;
        let is_read_only = options.is_read_only;
        let Opened { store, log, clock, lock: () } =
            Store::assemble(Parts { is_read_only, ..parts })?;
        Self::start(Opened { store, log, clock, lock: None }, options)
    }

    fn start(opened: Opened<Option<FolderLock>>, options: Options) -> Result<Arc<Self>> {
        let Opened { store, log, clock, lock } = opened;
        if let (Some(damage), false) = (store.damage(), options.is_damage_accepted) {
            return Err(Error::corrupt(format!(
                "{}; what was committed after that place cannot be read. To read what is from \
                 before it, and copy it into a new store, say so: --despite-damage, or \
                 Options::despite_damage",
                damage.message()
            )));
        }
        if let Some(torn) = store.torn_tail() {
            tracing::warn!("{torn}");
        }
        let marking = log
            .as_ref()
            .map(|log| {
                let marker = log.marker();
                Marking::start(move || marker.mark())
            })
            .transpose()?;
        let arbiter = Arbiter::new(log, clock);
        let inner = Inner::new(store, arbiter, options);
        let mut threads = Vec::new();
        if !inner.options.is_read_only {
            threads.push(spawn("tyr-committer", &inner, committer::run)?);
            threads.push(spawn("tyr-folder", &inner, folder::run)?);
            threads.push(spawn("tyr-giver", &inner, folder::give_back)?);
        }
        let running = Mutex::new(Some(Running { threads, marking, lock }));
        Ok(Arc::new(Self { inner, running }))
    }

    /// Writes everything back and closes; does nothing the second time.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails; what was acknowledged as durable is so all the same.
    pub fn close(&self) -> Result<()> {
        let Some(Running { threads, marking, lock }) = self.running.lock().take() else {
            return Ok(());
        };
        let refusal = self.inner.refusal.lock().replace(Refusal::Closed);
        self.inner.is_closed.store(true, Ordering::Release);
        self.inner.metadata.wake();
        self.inner.leases.close();
        self.inner.watches.close();
        self.inner.notices.close();
        self.inner.arbiter.lock().is_stopping = true;
        self.inner.sync_wanted.notify_all();
        self.inner.folding.state.lock().is_stopping = true;
        self.inner.folding.wanted.notify_all();
        self.inner.folding.done.notify_all();
        for thread in threads {
            if thread.join().is_err() {
                return Err(Error::unavailable("a thread of the store panicked"));
            }
        }
        marking.map_or(Ok(()), Marking::end)?;
        let closed = match refusal {
            None => self.fold_and_seal(),
            Some(Refusal::ReadOnly | Refusal::Closed) => Ok(()),
            Some(Refusal::Poisoned(why)) => Err(Refusal::Poisoned(why).error()),
        };
        // Others may hold on to this store; the folder is free all the same.
        self.inner.store.base().close();
        drop(lock);
        closed
    }

    fn fold_and_seal(&self) -> Result<()> {
        if self.inner.store.recent().dirty_memory() > 0 {
            folder::fold(&self.inner)?;
        }
        match self.inner.arbiter.lock().log.take() {
            Some(log) => log.seal(),
            None => Ok(()),
        }
    }

    /// A new transaction's name.
    pub fn next_transaction_id(&self) -> TransactionId {
        self.inner.next_transaction_id()
    }

    /// Commits a transaction; `held` stays alive until it is decided.
    pub fn commit(&self, transaction: Transaction, held: Held) -> Ticket {
        self.inner.commit(transaction, held)
    }

    /// Reads a range of a blob, as of a snapshot's moment or [`Timestamp::MAX`].
    ///
    /// # Errors
    /// `NotFound` for a keyspace that is gone; `SnapshotTooOld`; `Corrupt`; `Unavailable`.
    pub fn read(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Answer> {
        self.inner.check_open()?;
        self.inner.read(entry, name, range, at)
    }

    /// The same, if memory alone can answer; `None` when the disk is needed.
    pub fn read_resident(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Option<Result<Answer>> {
        match self.inner.check_open() {
            Ok(()) => self.inner.read_resident(entry, name, range, at),
            Err(error) => Some(Err(error)),
        }
    }

    /// Reads all of `range`, which must lie within the blob, into `out`, which is as long, past the
    /// cache: for streams. `None` when there is no such blob.
    ///
    /// # Errors
    /// As [`EmbeddedStore::read`].
    pub fn read_into(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
        out: &mut [u8],
    ) -> Result<Option<Attributes>> {
        let store = self.readable(entry)?;
        self.inner.counters.reads.add(1);
        store.read_into(name, range, at, out)
    }

    /// What is read of a keyspace, while this store is open and the keyspace there.
    pub(crate) fn readable(&self, entry: &KeyspaceEntry) -> Result<&Store> {
        self.inner.check_open()?;
        entry.check()?;
        Ok(&self.inner.store)
    }

    /// A blob's attributes; `None` when there is no such blob.
    ///
    /// # Errors
    /// As [`EmbeddedStore::read`].
    pub fn attributes(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        at: Timestamp,
    ) -> Result<Option<Attributes>> {
        self.readable(entry)?.attributes(name, at)
    }

    /// The same, if memory alone can answer; `None` when the disk is needed.
    pub fn attributes_resident(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        at: Timestamp,
    ) -> Option<Result<Option<Attributes>>> {
        match self.readable(entry) {
            Ok(store) => store.attributes_resident(name, at),
            Err(error) => Some(Err(error)),
        }
    }

    /// A page of what is written of a range of a blob; `None` when there is no such blob.
    ///
    /// # Errors
    /// As [`EmbeddedStore::read`].
    pub fn stretches(
        &self,
        entry: &KeyspaceEntry,
        name: &BlobName,
        range: ByteRange,
        at: Timestamp,
    ) -> Result<Option<(Attributes, Stretches)>> {
        self.readable(entry)?.stretches(name, range, at)
    }

    /// A page of blobs as of a snapshot's moment, in key order (Q2).
    ///
    /// # Errors
    /// As [`EmbeddedStore::read`]; `InvalidArgument` for a scan out of range.
    pub fn scan(&self, entry: &KeyspaceEntry, scan: &Scan, at: Timestamp) -> Result<ScanPage> {
        self.inner.check_open()?;
        self.inner.scan(entry, scan, at)
    }

    /// Begins a snapshot of everything.
    ///
    /// # Errors
    /// `Unavailable` when the store is closed.
    pub fn snapshot(&self) -> Result<SnapshotGuard> {
        self.inner.snapshot()
    }

    /// Writes a piece of a large payload to disk, ahead of the transaction that refers to it.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails; `NotFound` for a keyspace that is gone.
    pub fn upload(&self, entry: &KeyspaceEntry, data: &[u8]) -> Result<Arc<ExtentLease>> {
        self.inner.check_writable()?;
        entry.check()?;
        self.inner.counters.extent_bytes.add(data.len() as u64);
        self.inner.store.write_extent(data, entry.info().config.is_compressed)
    }

    /// Reads part of an uploaded piece back.
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub fn read_extent(&self, extent: &ExtentRef, skip: u32, out: &mut [u8]) -> Result<()> {
        self.inner.store.read_extent(extent, skip, out)
    }

    /// Makes a keyspace.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`, `Unavailable`.
    pub fn create_keyspace(
        &self,
        name: &KeyspaceName,
        config: &KeyspaceConfig,
    ) -> Result<Arc<KeyspaceEntry>> {
        self.inner.check_writable()?;
        config.validate()?;
        let id = self.inner.store.base().create_keyspace(name, config)?;
        let info = KeyspaceInfo { id, name: name.clone(), config: config.clone() };
        Ok(self.inner.keyspaces.insert(info))
    }

    /// Finds a keyspace.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn keyspace(&self, name: &KeyspaceName) -> Result<Arc<KeyspaceEntry>> {
        self.inner.check_open()?;
        self.inner.keyspaces.find(name)
    }

    /// All keyspaces, by name.
    pub fn keyspaces(&self) -> Vec<KeyspaceInfo> {
        self.inner.keyspaces.list()
    }

    /// Removes a keyspace and everything in it.
    ///
    /// # Errors
    /// `NotFound`, `Unavailable`.
    pub fn drop_keyspace(&self, name: &KeyspaceName) -> Result<()> {
        self.inner.check_writable()?;
        let id = self.inner.keyspaces.find(name)?.info().id;
        // No commit may come between: one that did would write to a keyspace that is gone.
        let _arbiter = self.inner.arbiter.lock();
        let base = self.inner.store.base();
        self.inner.keyspaces.remove(id, || base.drop_keyspace(id))?;
        self.inner.watches.drop_keyspace(id);
        self.inner.store.recent().forget_keyspace(id);
        Ok(())
    }

    /// What a crash left at the end of the log that was not whole: opening cut it off, or passes
    /// over it when it is read-only.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.inner.store.torn_tail()
    }

    /// Where the log is damaged: a store that was opened read-only then ends before that place.
    pub fn damage(&self) -> Option<&Error> {
        self.inner.store.damage()
    }

    /// Counters and sizes.
    pub fn statistics(&self) -> Statistics {
        let inner = &self.inner;
        let (counters, recent) = (&inner.counters, inner.store.recent());
        Statistics {
            commits: counters.commits.get(),
            aborts: counters.aborts.get(),
            reads: counters.reads.get(),
            reads_from_disk: counters.reads_from_disk.get(),
            log_syncs: counters.log_syncs.get(),
            synced_commits: counters.synced_commits.get(),
            log_bytes: inner.log_bytes(),
            extent_bytes: counters.extent_bytes.get(),
            index_bytes: inner.store.base().disk_bytes(),
            versions_held: recent.versions() as u64,
            snapshots_in_use: inner.snapshots.len() as u64,
            memory_bytes: recent.memory() as u64,
            dirty_bytes: recent.dirty_memory() as u64,
            folds: counters.folds.get(),
        }
    }

    /// Everything that was acknowledged before is on disk when it returns, also of keyspaces that
    /// are `buffered`; not of those in `memory`, which are empty after a restart.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails: the store then refuses writes until it is opened again.
    pub fn sync(&self) -> Result<()> {
        self.inner.check_open()?;
        self.inner.check_sound()?;
        committer::sync_now(&self.inner)
    }

    /// Moves everything committed so far into the base, lets the log below it go, and gives back
    /// the space of what is dead, as happens by itself when the log is long.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or fails: what was not moved stays in memory and log.
    pub fn fold(&self) -> Result<()> {
        self.inner.check_writable()?;
        folder::fold(&self.inner)?;
        folder::give_all_back(&self.inner, || self.inner.is_closed.load(Ordering::Acquire));
        Ok(())
    }

    /// Folds, so that everything is on disk, and verifies all of it.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails. Damage is in the report.
    pub fn check(&self, progress: &mut dyn FnMut(f64)) -> Result<Report> {
        self.inner.check_open()?;
        if self.inner.check_writable().is_ok() {
            folder::fold(&self.inner)?;
        }
        self.inner.store.check(progress)
    }

    /// Verifies a store that nobody has open.
    ///
    /// # Errors
    /// `NotFound` when there is none; `Unavailable` when somebody has it open.
    pub fn check_closed(path: &Path, progress: &mut dyn FnMut(f64)) -> Result<Report> {
        Store::check_closed(path, progress)
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure; whoever wants to know calls `close`.
        let _ = self.close();
    }
}

fn spawn(name: &str, inner: &Arc<Inner>, run: fn(&Arc<Inner>)) -> Result<JoinHandle<()>> {
    let inner = Arc::clone(inner);
    std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&inner)).map_err(|error| {
        Error::new(ErrorKind::Unavailable, format!("cannot start thread {name}")).with_source(error)
    })
}
