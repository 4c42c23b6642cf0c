//! A store, for async code.

#[cfg(feature = "embedded")]
use std::path::Path;
#[cfg(feature = "embedded")]
use std::time::Duration;

#[cfg(feature = "embedded")]
use tyr_embedded::{CheckReport, EmbeddedStore, TornTail};
use tyr_runtime::statistics::Statistics;
use tyr_types::{
    BlobName, ByteRange, Bytes, Error, KeptName, KeptSnapshot, Key, KeyspaceConfig, KeyspaceInfo,
    KeyspaceName, Result, Usage, limits,
};

#[cfg(feature = "cluster")]
use crate::ConnectOptions;
use crate::attempts::Attempts;
#[cfg(feature = "embedded")]
use crate::backend::Backend;
use crate::backend::BlobPart;
use crate::blocking;
use crate::copying::BlobCopy;
use crate::metadata::Metadata;
use crate::offload::offload;
use crate::{Committed, Keyspace, Snapshot, Transaction};

/// A store. Clone it freely: clones share it. The last one to go closes it.
///
/// Its futures work on any executor. What may wait for the disk runs on a pool of threads.
#[derive(Clone, Debug)]
pub struct Tyr {
    inner: blocking::Tyr,
}

/// How a store is opened; see [`Tyr::options`].
#[cfg(feature = "embedded")]
#[derive(Clone, Debug, Default)]
pub struct Options(tyr_embedded::Options);

#[cfg(feature = "embedded")]
impl Options {
    /// Memory for recent operations and cache, in bytes; default 128 MiB. Below 64 MiB opening
    /// warns, as an event of `tracing`.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.0.cache_bytes = bytes;
        self
    }

    /// Whether nothing on disk is changed; default false.
    #[must_use]
    pub fn is_read_only(mut self, is_read_only: bool) -> Self {
        self.0.is_read_only = is_read_only;
        self
    }

    /// Whether a store whose log is damaged opens read-only all the same; default false: `Corrupt`.
    ///
    /// It opens as it was before the first transaction that cannot be read: [`Tyr::damage`] says
    /// which. To go on with what is left, copy it into a new store.
    #[must_use]
    pub fn despite_damage(mut self, despite_damage: bool) -> Self {
        self.0.is_damage_accepted = despite_damage;
        self
    }

    /// Whether a missing store is an error instead of being made; default false.
    #[must_use]
    pub fn must_exist(mut self, must_exist: bool) -> Self {
        self.0.must_exist = must_exist;
        self
    }

    /// After this long a snapshot is too old; default 5 minutes.
    #[must_use]
    pub fn snapshot_timeout(mut self, timeout: Duration) -> Self {
        self.0.snapshot_timeout = timeout;
        self
    }

    /// Bytes of log after which what is in it moves into the index and the log is cut; default
    /// 64 MiB. Fewer make opening after a crash faster, and writing slower.
    #[must_use]
    pub fn fold_log_bytes(mut self, bytes: u64) -> Self {
        self.0.fold_log_bytes = bytes;
        self
    }

    /// Bytes of a blob that move into the index at a time, roughly, if there are more; default
    /// 1 MiB, at least 16 KiB. The fewer, the sooner there is room for who writes meanwhile.
    #[must_use]
    pub fn fold_step_bytes(mut self, bytes: u64) -> Self {
        self.0.fold_step_bytes = bytes;
        self
    }

    /// Bytes that may be held for kept snapshots; default 64 GiB. When it is more, the oldest are
    /// dropped, and events of `tracing` say which.
    #[must_use]
    pub fn kept_bytes_max(mut self, bytes: u64) -> Self {
        self.0.kept_bytes_max = bytes;
        self
    }

    /// Opens the store in a folder, or makes one there.
    ///
    /// # Errors
    /// As [`Tyr::open`].
    pub async fn open(self, path: impl AsRef<Path>) -> Result<Tyr> {
        let path = path.as_ref().to_owned();
        offload(move || self.open_blocking(path)).await.map(Tyr::from_blocking)
    }

    /// The same for threads.
    ///
    /// # Errors
    /// As [`Tyr::open`].
    pub fn open_blocking(self, path: impl AsRef<Path>) -> Result<blocking::Tyr> {
        let backend = Backend::Embedded(EmbeddedStore::open(path.as_ref(), self.0)?);
        Ok(blocking::Tyr { backend })
    }
}

/// Part of a blob that [`Tyr::read_many`] shall read.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The keyspace.
    pub keyspace: Keyspace,
    /// The blob's key.
    pub key: Key,
    /// The bytes; cut to the blob's size.
    pub range: ByteRange,
}

impl ReadRequest {
    /// What is to be read, if it is not too much.
    pub(crate) fn parts(wanted: &[Self]) -> Result<Vec<BlobPart>> {
        Self::check(wanted)?;
        let part = |request: &Self| {
            let keyspace = request.keyspace.as_blocking();
            let name = BlobName { keyspace: keyspace.id(), key: request.key.clone() };
            BlobPart { space: keyspace.space.clone(), name, range: request.range }
        };
        Ok(wanted.iter().map(part).collect())
    }

    fn check(wanted: &[Self]) -> Result<()> {
        if wanted.len() > limits::READ_MANY_MAX {
            return Err(Error::invalid(format!(
                "one read_many reads at most {} blobs, not {}",
                limits::READ_MANY_MAX,
                wanted.len()
            )));
        }
        let bytes: u128 = wanted.iter().map(|request| u128::from(request.range.len())).sum();
        let is_bounded = wanted.iter().all(|request| request.range.len() <= limits::READ_LEN_MAX);
        if !is_bounded {
            return Err(Error::invalid(format!(
                "each range of a read_many is at most {} bytes (64 MiB); {bytes} were asked for \
                 in all",
                limits::READ_LEN_MAX
            )));
        }
        Ok(())
    }
}

impl Tyr {
    /// Opens the store in a folder, or makes one there.
    ///
    /// # Errors
    /// `Unavailable` when somebody else has it open (the text names them) or the disk fails;
    /// `Corrupt` when it is damaged.
    #[cfg(feature = "embedded")]
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path).await
    }

    /// How a store can be opened otherwise.
    #[cfg(feature = "embedded")]
    pub fn options() -> Options {
        Options::default()
    }

    /// Connects to a cluster. `address` names some of its nodes, `tyr://host:port,host:port`; what
    /// is said of [`ConnectOptions`] can be added: `/?user=ann&key_file=/etc/ann.key&timeout=5s`,
    /// and for TLS `tls_ca=/etc/ca.pem&tls_certificate=/etc/ann.pem&tls_key=/etc/ann-key.pem`.
    ///
    /// # Errors
    /// `InvalidArgument` for an address that cannot be; `Unavailable` when no node answers in time;
    /// `PermissionDenied` when the cluster does not let the user in, or one side does not take the
    /// other's certificate.
    #[cfg(feature = "cluster")]
    pub async fn connect(address: impl AsRef<str>) -> Result<Self> {
        Self::connect_options().connect(address).await
    }

    /// How a cluster can be connected to otherwise.
    #[cfg(feature = "cluster")]
    pub fn connect_options() -> ConnectOptions {
        ConnectOptions::default()
    }

    pub(crate) fn from_blocking(inner: blocking::Tyr) -> Self {
        Self { inner }
    }

    /// The same store, for threads.
    pub fn blocking(&self) -> blocking::Tyr {
        self.inner.clone()
    }

    /// Makes a keyspace.
    ///
    /// # Errors
    /// `AlreadyExists`; `InvalidArgument` with the allowed range.
    pub async fn create_keyspace(&self, name: &str, config: KeyspaceConfig) -> Result<Keyspace> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        offload(move || inner.create_keyspace(&name, config)).await.map(Keyspace::from_blocking)
    }

    /// Finds a keyspace, or makes it if there is none. Of several programs that ask at once one
    /// makes it, and all get it.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one with another configuration, which stays as it is; the text
    /// names what differs. `InvalidArgument` with the allowed range.
    pub async fn keyspace_or_create(&self, name: &str, config: KeyspaceConfig) -> Result<Keyspace> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        offload(move || inner.keyspace_or_create(&name, config)).await.map(Keyspace::from_blocking)
    }

    /// Finds a keyspace.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let found = self.inner.backend.find_keyspace(&KeyspaceName::new(name)?).await?;
        Ok(Keyspace::from_blocking(blocking::Keyspace::new(found)))
    }

    /// All keyspaces, by name.
    ///
    /// # Errors
    /// `Unavailable` when the store is closed.
    pub async fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        self.inner.backend.list_keyspaces().await
    }

    /// Removes a keyspace and everything in it, for good.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn drop_keyspace(&self, name: &str) -> Result<()> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        offload(move || inner.drop_keyspace(&name)).await
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction {
        Transaction::from_blocking(self.inner.begin())
    }

    /// Runs `body` in a transaction and commits it; runs it again, after a pause that grows, when
    /// it met a conflict, up to 64 times.
    ///
    /// A body that only reads does not starve, however often others write what it reads: from the
    /// second run on it sees one moment of the blobs that the runs before have read, as
    /// [`Tyr::read_many`] does, which everything acknowledged before precedes. Only what it reads
    /// beyond those has to be unchanged at commit. (Keyspaces without older versions have no such
    /// moments; what a body reads there is validated each time.)
    ///
    /// # Errors
    /// What `body` fails with (nothing is committed then), and what commit fails with.
    pub async fn transact<T>(
        &self,
        body: impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        self.transact_committed(body).await.map(|(value, _)| value)
    }

    /// The same as [`Tyr::transact`]; answers also what the operations of the transaction did.
    ///
    /// # Errors
    /// As [`Tyr::transact`].
    pub async fn transact_committed<T>(
        &self,
        mut body: impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<(T, Committed)> {
        let mut attempts = Attempts::default();
        loop {
            let moment = self.inner.backend.take_moment(attempts.read()).await;
            let inner = blocking::Transaction::new(self.inner.backend.clone(), moment);
            let mut transaction = Transaction::from_blocking(inner);
            let done = body(&mut transaction).await;
            let read = transaction.only_read();
            let done = match done {
                Ok(value) => transaction.commit().await.map(|committed| (value, committed)),
                Err(error) => Err(error),
            };
            let Err(error) = done else { return done };
            let Some(pause) = attempts.pause_after(&error, read) else { return Err(error) };
            offload(move || std::thread::sleep(pause)).await;
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
    pub async fn keep(&self, name: &str) -> Result<KeptSnapshot> {
        self.inner.backend.keep(&KeptName::new(name)?).await
    }

    /// All kept snapshots, oldest first.
    ///
    /// # Errors
    /// `Unavailable` when the monitors of a cluster do not answer.
    pub async fn kept(&self) -> Result<Vec<KeptSnapshot>> {
        self.inner.backend.kept().await
    }

    /// Drops a kept snapshot. What only it had is given back bit by bit.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `Unavailable` as [`Tyr::kept`] says.
    pub async fn drop_kept(&self, name: &str) -> Result<()> {
        self.inner.backend.drop_kept(&KeptName::new(name)?).await
    }

    /// Opens a kept snapshot, to be read for as long as it is kept.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `Unavailable` as [`Tyr::kept`] says.
    pub async fn kept_snapshot(&self, name: &str) -> Result<Snapshot> {
        let view = self.inner.backend.kept_view(&KeptName::new(name)?).await?;
        Ok(Snapshot::from_blocking(blocking::Snapshot::new(view)))
    }

    /// A read-only view of everything at one moment.
    ///
    /// # Errors
    /// `Unavailable` when the store is closed.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        let view = self.inner.backend.take_view().await?;
        Ok(Snapshot::from_blocking(blocking::Snapshot::new(view)))
    }

    /// Copies a blob, or a range of one, into another in one transaction; answers how many bytes,
    /// holes among them. What is copied is the source as it was at one moment, which everything
    /// acknowledged before precedes, whatever becomes of it since: it never conflicts. Holes of 4
    /// KiB and more stay holes. In a directory a few MiB at a time are in memory; in a cluster the
    /// nodes copy, and the bytes do not pass the client, but stretches of less than 32 KiB.
    ///
    /// Readers see the target as it was until all of it is there. If it fails, nothing changed.
    ///
    /// # Errors
    /// `NotFound` when there is no such blob, or a keyspace was dropped meanwhile;
    /// `InvalidArgument` for a whole blob onto itself, keyspaces of another store, and more than
    /// 65,536 chunks in a cluster; `SnapshotTooOld` when the source was overwritten and the copy
    /// took more than 5 minutes, or the source's keyspace keeps no older versions; `QuotaExceeded`;
    /// `Unavailable` in a cluster some node of which is of a release that does not copy (feature
    /// level 16); else as [`Keyspace::put`].
    pub async fn copy(&self, copy: &BlobCopy) -> Result<u64> {
        self.inner.begin_copy(copy).await
    }

    /// Reads parts of many blobs at one moment, which everything acknowledged before precedes.
    /// `None`: no such blob.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits; `Corrupt` and `Unavailable` as the disk has it.
    pub async fn read_many(&self, wanted: &[ReadRequest]) -> Result<Vec<Option<Bytes>>> {
        self.inner.backend.fetch_many(ReadRequest::parts(wanted)?).await
    }

    /// What became of a transaction or single operation of a cluster that failed with `error`,
    /// which is `TimedOut`. It takes effect once at most, however often it is asked for, and can be
    /// asked for within half a minute.
    ///
    /// # Errors
    /// Why it did not take effect; `TimedOut` when nobody knows yet; `InvalidArgument` for an error
    /// that leaves nothing open.
    pub async fn outcome(&self, error: &Error) -> Result<Committed> {
        self.inner.backend.ask(error)?.fetch().await
    }

    /// Where the log is damaged, in a store that was opened read-only all the same: transactions
    /// from there on are missing.
    #[cfg(feature = "embedded")]
    pub fn damage(&self) -> Option<&Error> {
        self.inner.damage()
    }

    /// What a crash left at the end of the log that was not whole: opening cut it off, or passes
    /// over it when it is read-only. None of it is known to have been durable; after a crash of the
    /// program alone there is hardly ever any.
    #[cfg(feature = "embedded")]
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.inner.torn_tail()
    }

    /// The service metadata: what services must agree on; see [`crate::metadata`].
    pub fn metadata(&self) -> Metadata {
        Metadata::new(self.inner.backend.clone())
    }

    /// How much there is of each keyspace, and how full the disks are.
    ///
    /// In a store in this process the numbers are exact. On a cluster each node counts all the time
    /// the blobs that it is the authority of, and is asked for that: blobs and bytes are exact once
    /// all were counted after nodes came or went, and `None` as the time of the count says that
    /// they are not yet ([`KeyspaceSize::counted_ago`](crate::KeyspaceSize::counted_ago)). It is
    /// never of one moment: of what is committed meanwhile some may count.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it; `Unavailable` when the monitors do not
    /// answer. Of nodes that do not answer the result says so.
    pub async fn usage(&self) -> Result<Usage> {
        self.inner.backend.usage().await
    }

    /// Everything that was acknowledged before is on disk when it returns, also of keyspaces that
    /// are `buffered`; not of those in `memory`, which are empty after a restart. A cluster syncs
    /// every commit before it answers: there it does nothing.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails: the store then refuses writes until it is opened again.
    pub async fn sync(&self) -> Result<()> {
        self.inner.backend.sync().await
    }

    /// Counters and sizes. Of a cluster: what this client did, and no more.
    pub fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    /// Verifies every checksum and every cross-reference on disk; `progress` gets the share done,
    /// 0 to 1. Folds first, so that all of it is on disk.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails; `InvalidArgument` for a cluster, whose nodes' folders are
    /// checked one by one. Damage is in the report, not an error.
    #[cfg(feature = "embedded")]
    pub async fn check(
        &self,
        mut progress: impl FnMut(f64) + Send + 'static,
    ) -> Result<CheckReport> {
        let inner = self.inner.clone();
        offload(move || inner.check(&mut progress)).await
    }

    /// Writes everything back and closes the store. Other handles to it then fail.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails; what was acknowledged stays durable all the same.
    pub async fn close(self) -> Result<()> {
        offload(move || self.inner.close()).await
    }
}

/// Verifies a store that nobody has open. Damage is in the report.
///
/// # Errors
/// `Unavailable` when somebody has it open or the disk fails; `NotFound` when there is none.
#[cfg(feature = "embedded")]
pub fn check(path: impl AsRef<Path>, progress: &mut dyn FnMut(f64)) -> Result<CheckReport> {
    EmbeddedStore::check_closed(path.as_ref(), progress)
}
