//! Leases of keys and of groups, and locks made of them (K1, K4, K7).

mod lock;

use std::time::Duration;

use tyr_types::limits::LEASE_DURATION_MAX;
use tyr_types::{BlobName, Key, LeaseMode, Leased, Result};

pub use self::lock::{Lock, LockInfo};
pub(crate) use self::lock::{acquire, inspect};

use crate::backend::KeyLease;
use crate::{Keyspace, ToKey};

/// How a lease is held, for how long, and how long to wait for it.
///
/// ```
/// use std::time::Duration;
/// use tyr::LeaseOptions;
///
/// let patient = LeaseOptions::exclusive();
/// let brief = LeaseOptions::shared().wait(Duration::from_secs(2));
/// let now_or_never = LeaseOptions::exclusive().no_wait();
/// # let _ = (patient, brief, now_or_never);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    mode: LeaseMode,
    duration: Duration,
    wait: Option<Duration>,
    holder: String,
}

impl LeaseOptions {
    /// Held by one alone. It is waited for as long as it takes.
    pub fn exclusive() -> Self {
        Self::new(LeaseMode::Exclusive)
    }

    /// Held beside others that are shared. It is waited for as long as it takes.
    pub fn shared() -> Self {
        Self::new(LeaseMode::Shared)
    }

    fn new(mode: LeaseMode) -> Self {
        let (duration, wait) = (LEASE_DURATION_MAX, Some(Duration::MAX));
        Self { mode, duration, wait, holder: String::new() }
    }

    /// How long it lasts when it is not renewed, because its holder is gone, stands still or
    /// reaches no node: 1 to 10 s; 10 s unless this is set. What others wait at most for one that
    /// is gone is a tenth longer. In a store in this process it lasts until it is given back.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// To wait so long at most, where others are in the way.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Not to wait where others are in the way.
    pub fn no_wait(mut self) -> Self {
        self.wait = None;
        self
    }

    /// Says who holds it, for whoever looks at a lock: 256 bytes of text at most. Leases that are
    /// no locks show nobody.
    pub fn holder(mut self, holder: impl Into<String>) -> Self {
        self.holder = holder.into();
        self
    }
}

/// A lease of a key, or of a group, which is one of each of its keys (K7): a promise, for some
/// seconds and renewed all the time, that nobody else gets one that excludes it (K1). Dropping it
/// gives it back.
///
/// It keeps nobody from reading or writing: it holds among those who ask for leases. A holder that
/// stands still does not know when it is over; who must not write then takes a [`Lock`] and fences
/// its transactions.
#[derive(Debug)]
pub struct Lease {
    key: Key,
    mode: LeaseMode,
    handle: KeyLease,
}

impl Lease {
    /// Waits for it.
    pub(crate) async fn take(
        keyspace: &Keyspace,
        key: Key,
        kind: fn(BlobName) -> Leased,
        with: &LeaseOptions,
    ) -> Result<Self> {
        let space = &keyspace.as_blocking().space;
        let of = kind(keyspace.as_blocking().blob(key.clone())?);
        let handle = space.lease(of, with.mode, with.duration, with.wait).await?;
        Ok(Self { key, mode: with.mode, handle })
    }

    /// Its key; of a group, what its keys begin with.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// How it is held.
    pub fn mode(&self) -> LeaseMode {
        self.mode
    }

    /// Whether it is held now, as far as this process knows.
    pub fn is_held(&self) -> bool {
        self.handle.state().is_held()
    }

    /// Whether somebody waits for what it excludes.
    pub fn is_recalled(&self) -> bool {
        self.handle.state().is_recalled()
    }

    /// Waits until somebody waits for what it excludes, or it is over. What to do then is the
    /// holder's affair: it may finish first, or keep it. Waiting does not hold it: the future is
    /// ready also when it is given back.
    pub fn recalled(&self) -> impl Future<Output = ()> + Send + use<> {
        let state = self.handle.state().clone();
        async move { state.recalled().await }
    }

    /// Waits until it is over: no node renewed it in time. Waiting does not hold it: the future is
    /// ready also when it is given back.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let state = self.handle.state().clone();
        async move { state.lost().await }
    }

    /// Gives it back. Dropping it does the same.
    pub fn give_back(self) {
        drop(self);
    }
}

impl Keyspace {
    /// A lease of a key, which is renewed until it is dropped (K1). There need be no such blob.
    ///
    /// # Errors
    /// `Conflict` when others are in the way for as long as is waited; `InvalidArgument` for a
    /// duration out of range; `Unavailable` when there are too many, or no node answers.
    pub async fn lease(&self, key: impl ToKey, options: &LeaseOptions) -> Result<Lease> {
        Lease::take(self, key.to_key()?, Leased::Key, options).await
    }

    /// A lease of a whole group, which is renewed until it is dropped: of all its keys, also of
    /// those that have no blob (K7). The group is named as its listings are: by what its keys begin
    /// with, `home/` where they are placed `up-to:/`, the first four bytes where by `first:4`.
    ///
    /// In a guarded keyspace whoever makes, changes or deletes a blob of the group waits for a
    /// shared one; whoever reads there or lists it too, for an exclusive one (K2).
    ///
    /// # Errors
    /// As [`Keyspace::lease`]; `InvalidArgument` when the keyspace has no such group;
    /// `Unavailable` below feature level 19.
    pub async fn lease_group(&self, group: impl ToKey, options: &LeaseOptions) -> Result<Lease> {
        let group = group.to_key()?;
        let placed_by = self.config().placed_by;
        placed_by.check_group(group.as_bytes())?;
        Lease::take(self, group, Leased::Group, options).await
    }

    /// A lock: an exclusive lease of a key, whose blob has a number that is one higher with each
    /// who gets it (K4). [`Transaction::fence`](crate::Transaction::fence) holds transactions to
    /// it.
    ///
    /// # Errors
    /// As [`Keyspace::lease`]; `InvalidArgument` when the key has a blob that is no lock.
    pub async fn lock(&self, key: impl ToKey, options: &LeaseOptions) -> Result<Lock> {
        acquire(self, key.to_key()?, options).await
    }

    /// What is known of a lock without having it.
    ///
    /// # Errors
    /// `NotFound` when nobody ever had it; `InvalidArgument` when the key has a blob
    /// that is no lock.
    pub async fn inspect_lock(&self, key: impl ToKey) -> Result<LockInfo> {
        inspect(self, key.to_key()?).await
    }
}
