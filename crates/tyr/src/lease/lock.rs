//! Locks: exclusive leases with a token that only grows (K4).
//!
//! ```text
//!   0        8        16 …
//!   | TYR-LOCK | token  | who has it, as text
//! ```
//!
//! Who gets the lease adds one to the token, in a transaction, before it does anything: from then
//! on, whatever those before it write under a fence is refused, however late it comes. It does so
//! on condition that the token is what it was while the lease was held: whose transaction comes so
//! late that others have got the lock by then takes nothing from them. The token is an ordinary
//! number of an ordinary blob, so it is as durable as its keyspace, moves with it, and needs no
//! rule of its own.

use tyr_types::{
    Bytes, Error, ErrorKind, Key, LeaseMode, Leased, Number, OperationId, Relation, Result,
    Transform,
};

use super::{Lease, LeaseOptions};
use crate::{Keyspace, Transaction, blocking};

/// What a lock's blob begins with.
const MAGIC: &[u8; 8] = b"TYR-LOCK";

/// Where its number is, little-endian.
const TOKEN_AT: u64 = MAGIC.len() as u64;

/// Where the text begins.
const HOLDER_AT: u64 = TOKEN_AT + 8;

/// Bytes of the text.
const HOLDER_LEN_MAX: usize = 256;

/// Others of before may still write to it: so often the token is taken anew.
const TRIES: u32 = 8;

/// What a lock's blob says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// How often it was got so far.
    pub token: u64,
    /// Who has it, or had it last and did not say that it gave it back; `None` where that was said,
    /// or nobody said who it is.
    pub holder: Option<String>,
}

/// A lock that is held. Dropping it gives it back.
#[derive(Debug)]
pub struct Lock {
    lease: Lease,
    keyspace: Keyspace,
    token: u64,
}

impl Lock {
    /// Its lease: whether it is held, wanted by others, or lost.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Its number: higher than that of all who held it before.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Gives it back, and says so in its blob. Dropping it gives it back without a word there.
    ///
    /// # Errors
    /// `Conflict` when somebody else got it before: this one was over. `Unavailable`.
    pub async fn unlock(self) -> Result<()> {
        let mut transaction = self.begin();
        self.fence(&mut transaction)?;
        transaction.truncate(self.keyspace.as_blocking(), self.lease.key(), HOLDER_AT)?;
        let (commit, _) = transaction.begin_commit();
        commit.await.map(drop)
    }

    /// Adds the condition that nobody has got the lock since.
    pub(crate) fn fence(&self, transaction: &mut blocking::Transaction) -> Result<OperationId> {
        let (keyspace, key) = (self.keyspace.as_blocking(), self.lease.key());
        let token = Number::U64(self.token);
        transaction.compare_number(keyspace, key, TOKEN_AT, Relation::Equal, token)
    }

    fn begin(&self) -> blocking::Transaction {
        begin(&self.keyspace)
    }
}

/// What the lock's blob says now.
pub(crate) async fn inspect(keyspace: &Keyspace, key: Key) -> Result<LockInfo> {
    let bytes = keyspace.read(&key, 0, HOLDER_AT + HOLDER_LEN_MAX as u64).await?;
    let (magic, rest) = bytes.split_at(bytes.len().min(MAGIC.len()));
    let (Some((token, holder)), true) = (rest.split_first_chunk(), magic == MAGIC) else {
        return Err(no_lock(keyspace, &key));
    };
    let holder = String::from_utf8_lossy(holder).into_owned();
    let (token, holder) = (u64::from_le_bytes(*token), Some(holder));
    Ok(LockInfo { token, holder: holder.filter(|holder| !holder.is_empty()) })
}

fn no_lock(keyspace: &Keyspace, key: &Key) -> Error {
    Error::invalid(format!(
        "{}/{key} has a blob that is no lock; choose another key for the lock",
        keyspace.name()
    ))
}

fn begin(keyspace: &Keyspace) -> blocking::Transaction {
    blocking::Transaction::new(keyspace.as_blocking().space.backend(), None)
}

/// Waits for the lease, then takes the next token.
pub(crate) async fn acquire(keyspace: &Keyspace, key: Key, with: &LeaseOptions) -> Result<Lock> {
    if with.mode != LeaseMode::Exclusive {
        return Err(Error::invalid("a lock is held by one alone: ask for an exclusive lease"));
    }
    if with.holder.len() > HOLDER_LEN_MAX {
        return Err(Error::invalid(format!(
            "who holds a lock is said in at most {HOLDER_LEN_MAX} bytes, not {}",
            with.holder.len()
        )));
    }
    let lease = Lease::take(keyspace, key, Leased::Key, with).await?;
    let mut tries = 0;
    let token = loop {
        tries += 1;
        let before = token_now(keyspace, lease.key()).await?;
        check_held(&lease, "could be raised")?;
        match take_token(keyspace, lease.key(), before, &with.holder).await {
            Err(error) if is_crossed(&error) && tries < TRIES => {}
            token => break token?,
        }
    };
    check_held(&lease, "was known to be raised, and it is by now")?;
    Ok(Lock { lease, keyspace: keyspace.clone(), token })
}

/// Fails when the lease was over before the number was taken: by now another may have the lock.
/// `before` says what came of the number.
fn check_held(lease: &Lease, before: &str) -> Result<()> {
    match lease.is_held() {
        true => Ok(()),
        false => Err(Error::unavailable(format!(
            "the lock's lease was over before its number {before}, as the cluster was slow; try \
             again",
        ))),
    }
}

/// Whether somebody else made the blob, or removed it, or took the next number, meanwhile.
fn is_crossed(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Conflict | ErrorKind::AlreadyExists => true,
        ErrorKind::NotFound
        | ErrorKind::Unavailable
        | ErrorKind::TimedOut
        | ErrorKind::SnapshotTooOld
        | ErrorKind::InvalidArgument
        | ErrorKind::PermissionDenied
        | ErrorKind::QuotaExceeded
        | ErrorKind::Corrupt => false,
    }
}

/// The number of the lock; `None` when there is no blob yet.
async fn token_now(keyspace: &Keyspace, key: &Key) -> Result<Option<u64>> {
    match inspect(keyspace, key.clone()).await {
        Ok(LockInfo { token, .. }) => Ok(Some(token)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds one to the number of the lock, if it is still what it was; makes the blob if there was
/// none.
async fn take_token(
    keyspace: &Keyspace,
    key: &Key,
    before: Option<u64>,
    holder: &str,
) -> Result<u64> {
    let space = keyspace.as_blocking();
    let mut transaction = begin(keyspace);
    let token = match before {
        None => {
            transaction.expect_absent(space, key)?;
            let first = [&MAGIC[..], &1_u64.to_le_bytes(), holder.as_bytes()].concat();
            transaction.put(space, key, first)?;
            1
        }
        Some(before) => {
            let is_same = Relation::Equal;
            transaction.compare(space, key, 0, Bytes::from_static(MAGIC))?;
            transaction.compare_number(space, key, TOKEN_AT, is_same, Number::U64(before))?;
            transaction.apply(space, key, TOKEN_AT, Transform::add(Number::U64(1)))?;
            transaction.truncate(space, key, HOLDER_AT)?;
            transaction.write(space, key, HOLDER_AT, Bytes::copy_from_slice(holder.as_bytes()))?;
            before.wrapping_add(1)
        }
    };
    Transaction::from_blocking(transaction).commit().await?;
    Ok(token)
}

#[cfg(all(test, feature = "embedded"))]
mod tests {
    use super::*;
    use crate::{KeyspaceConfig, Tyr};

    /// Another gets the lock after this one's lease is over, and before what takes this one's
    /// number commits.
    #[tokio::test]
    async fn who_takes_the_number_too_late_takes_nothing_from_who_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let tyr = Tyr::open(folder.path()).await.unwrap();
        let jobs = tyr.create_keyspace("jobs", KeyspaceConfig::default()).await.unwrap();
        let key = Key::new("nightly").unwrap();
        for before in [None, Some(1)] {
            assert_eq!(token_now(&jobs, &key).await.unwrap(), before);
            let lock = jobs.lock("nightly", &LeaseOptions::exclusive()).await.unwrap();
            let late = take_token(&jobs, &key, before, "late").await.unwrap_err();
            assert!(is_crossed(&late), "{late}");
            let mut fenced = tyr.begin();
            fenced.fence(&lock).unwrap();
            fenced.put(&jobs, "report", "all is well").unwrap();
            fenced.commit().await.unwrap();
            lock.unlock().await.unwrap();
        }
        assert_eq!(token_now(&jobs, &key).await.unwrap(), Some(2));
    }
}
