//! Leases of keys and groups, and locks, for threads.

use std::time::Duration;

use tyr_runtime::waiting::{block_on, block_on_within};
use tyr_types::{Key, LeaseMode, OperationId, Result};

use super::{Keyspace, Transaction};
use crate::key::ToKey;
use crate::{Lease as AsyncLease, LeaseOptions, Lock as AsyncLock, LockInfo};

/// A lease of a key or a group: see [`crate::Lease`]. Dropping it gives it back.
#[derive(Debug)]
pub struct Lease {
    inner: AsyncLease,
}

impl Lease {
    /// Its key; of a group, what its keys begin with.
    pub fn key(&self) -> &Key {
        self.inner.key()
    }

    /// How it is held.
    pub fn mode(&self) -> LeaseMode {
        self.inner.mode()
    }

    /// Whether it is held now, as far as this process knows.
    pub fn is_held(&self) -> bool {
        self.inner.is_held()
    }

    /// Whether somebody waits for what it excludes.
    pub fn is_recalled(&self) -> bool {
        self.inner.is_recalled()
    }

    /// Waits so long for somebody to wait for what it excludes, or for it to be over; whether one
    /// of them is so.
    pub fn recalled_within(&self, wait: Duration) -> bool {
        block_on_within(self.inner.recalled(), wait).is_some()
    }

    /// Waits so long for it to be over though it was not given back; whether it is.
    pub fn lost_within(&self, wait: Duration) -> bool {
        block_on_within(self.inner.lost(), wait).is_some()
    }

    /// Gives it back. Dropping it does the same.
    pub fn give_back(self) {
        drop(self);
    }
}

/// A lock that is held: see [`crate::Lock`]. Dropping it gives it back.
#[derive(Debug)]
pub struct Lock {
    inner: AsyncLock,
}

impl Lock {
    /// Its number: higher than that of all who held it before.
    pub fn token(&self) -> u64 {
        self.inner.token()
    }

    /// Whether it is held now, as far as this process knows.
    pub fn is_held(&self) -> bool {
        self.inner.lease().is_held()
    }

    /// Whether somebody waits for it.
    pub fn is_recalled(&self) -> bool {
        self.inner.lease().is_recalled()
    }

    /// Waits so long for somebody to wait for it, or for it to be over; whether one of them is so.
    pub fn recalled_within(&self, wait: Duration) -> bool {
        block_on_within(self.inner.lease().recalled(), wait).is_some()
    }

    /// Waits so long for it to be over though it was not given back; whether it is.
    pub fn lost_within(&self, wait: Duration) -> bool {
        block_on_within(self.inner.lease().lost(), wait).is_some()
    }

    /// Gives it back, and says so in its blob. Dropping it gives it back without a word there.
    ///
    /// # Errors
    /// `Conflict` when somebody else got it before: this one was over. `Unavailable`.
    pub fn unlock(self) -> Result<()> {
        block_on(self.inner.unlock())
    }
}

impl Keyspace {
    /// A lease of a key: see [`crate::Keyspace::lease`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::lease`].
    pub fn lease(&self, key: impl ToKey, options: &LeaseOptions) -> Result<Lease> {
        let inner = block_on(self.clone().into_async().lease(key, options))?;
        Ok(Lease { inner })
    }

    /// A lease of a whole group: see [`crate::Keyspace::lease_group`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::lease_group`].
    pub fn lease_group(&self, group: impl ToKey, options: &LeaseOptions) -> Result<Lease> {
        let inner = block_on(self.clone().into_async().lease_group(group, options))?;
        Ok(Lease { inner })
    }

    /// A lock: see [`crate::Keyspace::lock`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::lock`].
    pub fn lock(&self, key: impl ToKey, options: &LeaseOptions) -> Result<Lock> {
        let inner = block_on(self.clone().into_async().lock(key, options))?;
        Ok(Lock { inner })
    }

    /// What is known of a lock without having it: see [`crate::Keyspace::inspect_lock`].
    ///
    /// # Errors
    /// As [`crate::Keyspace::inspect_lock`].
    pub fn inspect_lock(&self, key: impl ToKey) -> Result<LockInfo> {
        block_on(self.clone().into_async().inspect_lock(key))
    }
}

impl Transaction {
    /// Adds the condition that nobody has got the lock since (K4): the commit fails with `Conflict`
    /// if somebody has, whatever this process thinks that it holds.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits.
    pub fn fence(&mut self, lock: &Lock) -> Result<OperationId> {
        lock.inner.fence(self)
    }
}
