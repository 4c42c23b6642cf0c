//! What is done to the blobs of a keyspace, each in one transaction, and where the others are in
//! the way again.
//!
//! Whatever changes a blob expects it to be there: what others have deleted is not made anew by who
//! has it open.

use rustix::io::Errno;
use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{BlobCopy, Bytes, Committed, ErrorKind, Key, Scan, ScanPage, Stat, Timestamp};

use super::path::{Directory, SEPARATOR};
use crate::blocking::attempts::{ATTEMPTS_MAX, back_off, settled};
use crate::error::{Error, Result};
use crate::plan::allocate::Allocation;
use crate::plan::rename::RenameMode;

/// How often a rename is tried: each time all bytes of the blob are copied.
const RENAMES_MAX: u32 = 8;

/// The blobs of a keyspace.
pub struct Blobs {
    store: Tyr,
    keyspace: Keyspace,
}

impl Blobs {
    pub fn new(store: Tyr, keyspace: Keyspace) -> Self {
        Self { store, keyspace }
    }

    pub fn store(&self) -> &Tyr {
        &self.store
    }

    /// Size and version of a blob, if there is one.
    pub fn find(&self, key: &Key) -> Result<Option<Stat>> {
        match self.keyspace.stat(key) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Size and version of a blob that the kernel knows.
    ///
    /// # Errors
    /// `ESTALE` where it was deleted.
    pub fn stat(&self, key: &Key) -> Result<Stat> {
        self.keyspace.stat(key).map_err(stale)
    }

    /// Whether keys begin as those in a directory do.
    pub fn has_any(&self, directory: &Directory) -> Result<bool> {
        let scan = Scan::new().prefix(directory.prefix()).keys_only().limit(1);
        Ok(!self.keyspace.scan_page(&scan)?.entries.is_empty())
    }

    /// A page of what is in a directory, from a place among the keys on.
    pub fn list(&self, directory: &Directory, from: &[u8]) -> Result<ScanPage> {
        let scan = Scan::new().prefix(directory.prefix()).delimiter([SEPARATOR]);
        let scan = if from.is_empty() { scan } else { scan.from(from) };
        Ok(self.keyspace.scan_page(&scan)?)
    }

    /// Reads up to `len` bytes, at one moment.
    pub fn read(&self, key: &Key, offset: u64, len: u64) -> Result<Bytes> {
        self.keyspace.read(key, offset, len).map_err(stale)
    }

    /// Makes an empty blob; answers its version.
    ///
    /// # Errors
    /// `EEXIST`.
    pub fn create(&self, key: &Key) -> Result<Timestamp> {
        let made = self.commit(ATTEMPTS_MAX, |it| it.create(&self.keyspace, key).map(drop));
        Ok(made.map_err(of_commit)?.version())
    }

    pub fn write(&self, key: &Key, offset: u64, data: &Bytes) -> Result<()> {
        self.change(key, |it| it.write(&self.keyspace, key, offset, data.clone()).map(drop))
    }

    /// Writes behind the end, wherever that is then.
    pub fn append(&self, key: &Key, data: &Bytes) -> Result<()> {
        self.change(key, |it| it.append(&self.keyspace, key, data.clone()).map(drop))
    }

    pub fn truncate(&self, key: &Key, len: u64) -> Result<()> {
        self.change(key, |it| it.truncate(&self.keyspace, key, len).map(drop))
    }

    /// What `fallocate` does to a range.
    pub fn allocate(&self, key: &Key, to: Allocation, offset: u64, len: u64) -> Result<()> {
        let end = offset.checked_add(len).ok_or_else(|| {
            Error::new(Errno::FBIG, format!("a blob has no bytes up to {offset} + {len}"))
        })?;
        self.change(key, |transaction| {
            match to {
                Allocation::Extend => {}
                Allocation::Zero | Allocation::Punch => {
                    transaction.clear(&self.keyspace, key, offset, len)?;
                }
            }
            match to {
                Allocation::Punch => Ok(()),
                Allocation::Extend | Allocation::Zero => self.extend(transaction, key, end),
            }
        })
    }

    /// Has a blob end there at least.
    fn extend(&self, transaction: &mut Transaction, key: &Key, end: u64) -> tyr::Result<()> {
        if transaction.stat(&self.keyspace, key)?.size < end {
            transaction.truncate(&self.keyspace, key, end)?;
        }
        Ok(())
    }

    /// Deletes a blob.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn remove(&self, key: &Key) -> Result<()> {
        let removed = self.commit(ATTEMPTS_MAX, |transaction| {
            transaction.expect_present(&self.keyspace, key)?;
            transaction.delete(&self.keyspace, key).map(drop)
        });
        removed.map(drop).map_err(of_commit)
    }

    /// Gives a blob another key, in place of the blob that has it: a copy inside the store, and a
    /// deletion with it.
    ///
    /// # Errors
    /// `ENOENT`; `EEXIST` where nothing is to be replaced; `EXDEV` for what is too large to be
    /// copied in one transaction; `EINVAL` for an exchange.
    pub fn rename(&self, from: &Key, to: &Key, mode: RenameMode) -> Result<()> {
        let is_kept = match mode {
            RenameMode::Replace => false,
            RenameMode::NoReplace => true,
            RenameMode::Exchange => {
                let text = "blobs do not change places in one transaction";
                return Err(Error::new(Errno::INVAL, text));
            }
        };
        let copy = BlobCopy::new(&self.keyspace, from, &self.keyspace, to)?;
        let renamed = self.commit(RENAMES_MAX, |transaction| {
            if is_kept {
                transaction.expect_absent(&self.keyspace, to)?;
            }
            transaction.copy(&copy)?;
            transaction.delete(&self.keyspace, from).map(drop)
        });
        // More chunks than a transaction can have, or more time than its moment lasts.
        let is_too_large = |error: &tyr::Error| {
            [ErrorKind::InvalidArgument, ErrorKind::SnapshotTooOld].contains(&error.kind())
        };
        match renamed {
            Ok(_) => Ok(()),
            Err(error) if is_too_large(&error) => Err(Error::new(Errno::XDEV, error.message())),
            Err(error) => Err(of_commit(error)),
        }
    }

    /// Everything that was done is on disk when it returns, also where the keyspace is `buffered`.
    pub fn sync(&self) -> Result<()> {
        Ok(self.store.sync()?)
    }

    /// Changes a blob that the kernel knows.
    ///
    /// # Errors
    /// `ESTALE` where it was deleted.
    fn change(
        &self,
        key: &Key,
        change: impl Fn(&mut Transaction) -> tyr::Result<()>,
    ) -> Result<()> {
        let changed = self.commit(ATTEMPTS_MAX, |transaction| {
            transaction.expect_present(&self.keyspace, key)?;
            change(transaction)
        });
        changed.map(drop).map_err(|error| match error.kind() == ErrorKind::NotFound {
            true => stale(error),
            false => of_commit(error),
        })
    }

    /// Commits what `fill` puts into a transaction, again where others are in the way.
    fn commit(
        &self,
        attempts_max: u32,
        fill: impl Fn(&mut Transaction) -> tyr::Result<()>,
    ) -> tyr::Result<Committed> {
        let mut attempts = 0;
        loop {
            let mut transaction = self.store.begin();
            let filled = fill(&mut transaction);
            let done = filled.and_then(|()| settled(&self.store, transaction.commit()));
            attempts += 1;
            match done {
                Err(error) if error.kind().is_retryable() && attempts < attempts_max => {
                    back_off(attempts);
                }
                done => return done,
            }
        }
    }
}

/// An error of what the kernel knows by number: where the blob is not there, it was deleted.
fn stale(error: tyr::Error) -> Error {
    match error.kind() == ErrorKind::NotFound {
        true => Error::new(Errno::STALE, error.message()),
        false => error.into(),
    }
}

/// An error of a transaction that was tried again: where others were in the way, it is not to be
/// tried at once.
fn of_commit(error: tyr::Error) -> Error {
    match error.kind() == ErrorKind::Conflict {
        true => Error::new(Errno::BUSY, error.message()),
        false => error.into(),
    }
}
