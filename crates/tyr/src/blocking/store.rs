//! A store, for threads.

#[cfg(feature = "embedded")]
use std::path::Path;

#[cfg(feature = "embedded")]
use tyr_embedded::{CheckReport, TornTail};
use tyr_runtime::statistics::Statistics;
use tyr_runtime::waiting::block_on;
use tyr_types::{
    Bytes, Error, ErrorKind, KeptName, KeptSnapshot, KeyspaceConfig, KeyspaceInfo, KeyspaceName,
    Result, Usage,
};

use super::{Keyspace, Metadata, Snapshot, Transaction};
#[cfg(feature = "cluster")]
use crate::ConnectOptions;
#[cfg(feature = "embedded")]
use crate::Options;
use crate::attempts::Attempts;
use crate::backend::{Backend, ReadVersions};
use crate::copying::BlobCopy;
use crate::pending::Pending;
use crate::{Committed, ReadRequest};

/// A store. Clone it freely: clones share it. The last one to go closes it.
#[derive(Clone, Debug)]
pub struct Tyr {
    pub(crate) backend: Backend,
}

impl Tyr {
    /// Opens the store in a folder, or makes one there.
    ///
    /// # Errors
    /// `Unavailable` when somebody else has it open (the text names them) or the disk fails;
    /// `Corrupt` when it is damaged.
    #[cfg(feature = "embedded")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        crate::Tyr::options().open_blocking(path)
    }

    /// How a store can be opened otherwise.
    #[cfg(feature = "embedded")]
    pub fn options() -> Options {
        Options::default()
    }

    /// Connects to a cluster: see [`crate::Tyr::connect`].
    ///
    /// # Errors
    /// As [`crate::Tyr::connect`].
    #[cfg(feature = "cluster")]
    pub fn connect(address: impl AsRef<str>) -> Result<Self> {
        Self::connect_options().connect_blocking(address)
    }

    /// How a cluster can be connected to otherwise.
    #[cfg(feature = "cluster")]
    pub fn connect_options() -> ConnectOptions {
        ConnectOptions::default()
    }

    /// The same store, for async code.
    pub fn into_async(self) -> crate::Tyr {
        crate::Tyr::from_blocking(self)
    }

    /// Makes a keyspace.
    ///
    /// # Errors
    /// `AlreadyExists`; `InvalidArgument` with the allowed range.
    pub fn create_keyspace(&self, name: &str, config: KeyspaceConfig) -> Result<Keyspace> {
        self.backend.create_keyspace(&KeyspaceName::new(name)?, &config).map(Keyspace::new)
    }

    /// Finds a keyspace, or makes it if there is none: see [`crate::Tyr::keyspace_or_create`].
    ///
    /// # Errors
    /// As [`crate::Tyr::keyspace_or_create`].
    pub fn keyspace_or_create(&self, name: &str, config: KeyspaceConfig) -> Result<Keyspace> {
        config.validate()?;
        let is = |result: &Result<Keyspace>, kind| {
            result.as_ref().err().is_some_and(|error: &Error| error.kind() == kind)
        };
        let mut found = self.keyspace(name);
        if is(&found, ErrorKind::NotFound) {
            let made = self.create_keyspace(name, config.clone());
            if !is(&made, ErrorKind::AlreadyExists) {
                return made;
            }
            // Somebody else was faster.
            found = self.keyspace(name);
        }
        let found = found?;
        match found.config().difference(&config) {
            None => Ok(found),
            Some(difference) => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!(
                    "keyspace {name} exists with another configuration: {difference}; ask for what \
                     it has, or find it without"
                ),
            )),
        }
    }

    /// Finds a keyspace.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.backend.keyspace(&KeyspaceName::new(name)?).map(Keyspace::new)
    }

    /// All keyspaces, by name.
    pub fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        self.backend.keyspaces()
    }

    /// Removes a keyspace and everything in it, for good.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.backend.drop_keyspace(&KeyspaceName::new(name)?)
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction {
        Transaction::new(self.backend.clone(), None)
    }

    /// Runs `body` in a transaction and commits it; runs it again, after a pause that grows, when
    /// it met a conflict, up to 64 times: see [`crate::Tyr::transact`].
    ///
    /// # Errors
    /// What `body` fails with (nothing is committed then), and what commit fails with.
    pub fn transact<T>(&self, body: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transact_committed(body).map(|(value, _)| value)
    }

    /// The same as [`Tyr::transact`]; answers also what the operations of the transaction did.
    ///
    /// # Errors
    /// As [`Tyr::transact`].
    pub fn transact_committed<T>(
        &self,
        mut body: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<(T, Committed)> {
        let mut attempts = Attempts::default();
        loop {
            let moment = self.backend.moment(attempts.read());
            let mut transaction = Transaction::new(self.backend.clone(), moment);
            let done = body(&mut transaction);
            let read = transaction.only_read();
            let done = done.and_then(|value| Ok((value, transaction.commit()?)));
            let Err(error) = done else { return done };
            let Some(pause) = attempts.pause_after(&error, read) else { return Err(error) };
            std::thread::sleep(pause);
        }
    }

    /// Keeps everything as it is now, under a name: it can be read until it is dropped, across
    /// restarts. It costs what is replaced later: that is held until the snapshot is dropped, as
    /// the oldest are when more is held than `Options::kept_bytes_max` says, or, in a cluster, a
    /// node's setting of that name.
    ///
    /// Keyspaces in memory are empty after a restart, as kept, too; one that is dropped is gone
    /// from kept snapshots as well.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name; `InvalidArgument` for a name that cannot be;
    /// `Unavailable` when there are 256, the disk is full or fails, or some node of a cluster is of
    /// a release that keeps none, or does not answer.
    pub fn keep(&self, name: &str) -> Result<KeptSnapshot> {
        block_on(self.backend.keep(&KeptName::new(name)?))
    }

    /// All kept snapshots, oldest first.
    ///
    /// # Errors
    /// `Unavailable` when the monitors of a cluster do not answer.
    pub fn kept(&self) -> Result<Vec<KeptSnapshot>> {
        block_on(self.backend.kept())
    }

    /// Drops a kept snapshot. What only it had is given back bit by bit.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `Unavailable` as [`Tyr::kept`] says.
    pub fn drop_kept(&self, name: &str) -> Result<()> {
        block_on(self.backend.drop_kept(&KeptName::new(name)?))
    }

    /// Opens a kept snapshot, to be read for as long as it is kept.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `Unavailable` as [`Tyr::kept`] says.
    pub fn kept_snapshot(&self, name: &str) -> Result<Snapshot> {
        Ok(Snapshot::new(block_on(self.backend.kept_view(&KeptName::new(name)?))?))
    }

    /// A read-only view of everything at one moment.
    ///
    /// # Errors
    /// `Unavailable` when the store is closed.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.backend.view().map(Snapshot::new)
    }

    /// Copies a blob, or a range of one, into another in one transaction: see
    /// [`crate::Tyr::copy`].
    ///
    /// # Errors
    /// As [`crate::Tyr::copy`].
    pub fn copy(&self, copy: &BlobCopy) -> Result<u64> {
        block_on(self.begin_copy(copy))
    }

    pub(crate) async fn begin_copy(&self, copy: &BlobCopy) -> Result<u64> {
        let (from, name) = copy.source();
        if !self.backend.is(&from.space.backend()) {
            return Err(Error::invalid(format!(
                "keyspace {} is of another store; find it in the one that is to copy",
                from.name()
            )));
        }
        let found = from.space.take_view_of(name).await?;
        let (view, size) = found.ok_or_else(|| from.absent(name))?;
        let gathered = copy.gather(&view, copy.range_in(size)?).await;
        let gathered = gathered.map_err(|error| self.backend.named(error))?;
        let (len, mut pending) = (gathered.len(), Pending::default());
        gathered.add_to(&mut pending)?;
        if !pending.is_empty() {
            pending.commit(&self.backend, ReadVersions::new(&self.backend, None)).await?;
        }
        Ok(len)
    }

    /// Reads parts of many blobs at one moment, which everything acknowledged before precedes.
    /// `None`: no such blob.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits; `Corrupt` and `Unavailable` as the disk has it.
    pub fn read_many(&self, wanted: &[ReadRequest]) -> Result<Vec<Option<Bytes>>> {
        self.backend.read_many(&ReadRequest::parts(wanted)?)
    }

    /// What became of a transaction or single operation of a cluster that failed with `error`,
    /// which is `TimedOut`: see [`crate::Tyr::outcome`].
    ///
    /// # Errors
    /// As [`crate::Tyr::outcome`].
    pub fn outcome(&self, error: &Error) -> Result<Committed> {
        self.backend.ask(error)?.wait()
    }

    /// Where the log is damaged, in a store that was opened read-only all the same: transactions
    /// from there on are missing.
    #[cfg(feature = "embedded")]
    pub fn damage(&self) -> Option<&Error> {
        self.backend.damage()
    }

    /// What a crash left at the end of the log that was not whole: opening cut it off, or passes
    /// over it when it is read-only. None of it is known to have been durable; after a crash of the
    /// program alone there is hardly ever any.
    #[cfg(feature = "embedded")]
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.backend.torn_tail()
    }

    /// The service metadata: see [`crate::metadata`].
    pub fn metadata(&self) -> Metadata {
        Metadata::new(crate::metadata::Metadata::new(self.backend.clone()))
    }

    /// How much there is of each keyspace, and how full the disks are: see [`crate::Tyr::usage`].
    ///
    /// # Errors
    /// As [`crate::Tyr::usage`].
    pub fn usage(&self) -> Result<Usage> {
        block_on(self.backend.usage())
    }

    /// Everything that was acknowledged before is on disk when it returns: see
    /// [`crate::Tyr::sync`].
    ///
    /// # Errors
    /// As [`crate::Tyr::sync`].
    pub fn sync(&self) -> Result<()> {
        block_on(self.backend.sync())
    }

    /// Counters and sizes. Of a cluster: what this client did, and no more.
    pub fn statistics(&self) -> Statistics {
        self.backend.statistics()
    }

    /// Verifies every checksum and every cross-reference on disk. `progress` gets the share done,
    /// 0 to 1. Folds first, so that all of it is on disk.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails; `InvalidArgument` for a cluster, whose nodes' folders are
    /// checked one by one. Damage is in the report, not an error.
    #[cfg(feature = "embedded")]
    pub fn check(&self, progress: &mut dyn FnMut(f64)) -> Result<CheckReport> {
        self.backend.check(progress)
    }

    /// Writes everything back and closes the store. Other handles to it then fail.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails; what was acknowledged stays durable all the same.
    pub fn close(self) -> Result<()> {
        self.backend.close()
    }
}
