//! How much a file system may have, and has.
//!
//! ```text
//!   counted   what the store says that both keyspaces have, asked again after seconds
//!   since     what this program may have added after that
//!             ── more than the quota together? ──► counted anew; still more: EDQUOT
//! ```
//!
//! Nobody keeps a counter: no call writes a blob more for it, and what others have added is known
//! within seconds. So a quota may be exceeded by what others add in that time, and by what is under
//! way.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::store::FileSystem;
use crate::error::{Error, Result};
use crate::layout::key::Blob;
use crate::layout::record::RECORD_LEN;
use crate::layout::superblock::{QUOTA_AT, QUOTA_LEN, Quota};
use crate::plan::node::Node;

/// How long a quota is gone by, and what was counted, at least.
const LIFETIME: Duration = Duration::from_secs(2);

/// The part of the time, one in so many, that counting may take.
const SHARE: u32 = 20;

/// How far behind a count is taken to be that does not say, and at most.
const LAG_MAX: Duration = Duration::from_secs(4);

/// Blobs of names that an empty file system has: superblock, two counters, the root, a session.
const BLOBS_OF_NONE: u64 = 5;

/// How much there is in a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Bytes of all files, holes included, and 512 for each record.
    pub bytes: u64,
    /// Names, and directories once more.
    pub files: u64,
}

impl Used {
    fn plus(self, more: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(more.bytes),
            files: self.files.saturating_add(more.files),
        }
    }
}

/// What is known of the quota.
#[derive(Debug, Default)]
pub struct QuotaState {
    quota: Quota,
    /// Until when that is gone by.
    quota_until: Option<Instant>,
    counted: Used,
    /// Until when that is gone by.
    counted_until: Option<Instant>,
    /// What was added here since, and, where a count lags behind, in the time before; and when the
    /// one became the other. Both times are longer than counts lag.
    since: Used,
    before: Used,
    turned: Option<Instant>,
}

impl QuotaState {
    fn has_room(&self, more: Used) -> bool {
        let used = self.counted.plus(self.since).plus(self.before).plus(more);
        let fits = |used: u64, more: u64, limit: Option<u64>| {
            more == 0 || limit.is_none_or(|limit| used <= limit)
        };
        fits(used.bytes, more.bytes, self.quota.bytes)
            && fits(used.files, more.files, self.quota.files)
    }
}

impl FileSystem {
    /// Sets what the file system may have at most. Every program that uses it goes by that within
    /// two seconds; programs of before there were quotas do not.
    ///
    /// # Errors
    /// `EIO` when the store does not answer.
    pub fn set_quota(&self, quota: Quota) -> Result<()> {
        let superblock = Blob::superblock();
        self.shared.meta.write(&superblock.key, QUOTA_AT, quota.encode().to_vec())?;
        self.shared.quota.lock().quota_until = None;
        Ok(())
    }

    /// What it may have at most, and has now.
    ///
    /// # Errors
    /// `EIO` when the store does not answer.
    pub fn quota(&self) -> Result<(Quota, Used)> {
        let mut state = self.shared.quota.lock();
        state.quota_until = None;
        self.learn_quota(&mut state)?;
        self.count(&mut state)?;
        Ok((state.quota, state.counted))
    }

    /// The bytes that it may have at most, and those that it has, as of some seconds ago; `None`
    /// without such a bound.
    #[cfg(all(feature = "mount", target_os = "linux"))]
    pub(crate) fn bytes_of_quota(&self) -> Result<Option<(u64, u64)>> {
        let mut state = self.shared.quota.lock();
        self.learn_quota(&mut state)?;
        let Some(limit) = state.quota.bytes else { return Ok(None) };
        if state.counted_until.is_none_or(|until| until < Instant::now()) {
            self.count(&mut state)?;
        }
        let QuotaState { counted, since, before, .. } = *state;
        Ok(Some((limit, counted.plus(since).plus(before).bytes)))
    }

    /// A name is to be made, with so many bytes.
    pub(super) fn charge_name(&self, bytes: u64) -> Result<()> {
        let bytes = bytes + RECORD_LEN as u64;
        self.charge(Used { bytes, files: 1 }, || Ok(Used { bytes, files: 1 }))
    }

    /// A file is to become as long as this, or so many bytes longer.
    pub(super) fn charge_bytes(&self, node: &Node, len: u64, end: Option<u64>) -> Result<()> {
        self.charge(Used { bytes: len, files: 0 }, || {
            let bytes = match end {
                Some(end) => end.saturating_sub(self.attributes(node)?.size),
                None => len,
            };
            Ok(Used { bytes, files: 0 })
        })
    }

    /// Refuses what there is no room for: `most` may be added, and `exactly` so much is.
    fn charge(&self, most: Used, exactly: impl FnOnce() -> Result<Used>) -> Result<()> {
        let mut state = self.shared.quota.lock();
        self.learn_quota(&mut state)?;
        if state.quota == Quota::default() {
            return Ok(());
        }
        if state.counted_until.is_none_or(|until| until < Instant::now()) {
            self.count(&mut state)?;
        }
        let mut more = most;
        if !state.has_room(more) {
            drop(state);
            more = exactly()?;
            state = self.shared.quota.lock();
            if !state.has_room(more) {
                self.count(&mut state)?;
            }
            if !state.has_room(more) {
                let Quota { bytes, files } = state.quota;
                let text = |limit: Option<u64>| {
                    limit.map_or_else(|| "any number of".to_owned(), |limit| limit.to_string())
                };
                let (bytes, files) = (text(bytes), text(files));
                let text = format!("the file system may have {bytes} bytes and {files} names");
                return Err(Error::new(Errno::DQUOT, text));
            }
        }
        state.since = state.since.plus(more);
        Ok(())
    }

    fn learn_quota(&self, state: &mut QuotaState) -> Result<()> {
        let now = Instant::now();
        if state.quota_until.is_some_and(|until| now < until) {
            return Ok(());
        }
        let superblock = Blob::superblock();
        let bytes = self.shared.meta.read(&superblock.key, QUOTA_AT, QUOTA_LEN)?;
        state.quota = Quota::decode(&bytes);
        state.quota_until = Some(now + LIFETIME);
        Ok(())
    }

    fn count(&self, state: &mut QuotaState) -> Result<()> {
        let begun = Instant::now();
        let (mut counted, mut lag) = (Used::default(), Duration::ZERO);
        for keyspace in self.shared.tyr.usage()?.keyspaces {
            let is_names = keyspace.info.id == self.shared.meta.id();
            if is_names || keyspace.info.id == self.shared.data.id() {
                counted.bytes += keyspace.bytes;
                lag = lag.max(keyspace.counted_ago.map_or(LAG_MAX, |ago| ago.min(LAG_MAX)));
            }
            if is_names {
                counted.files = keyspace.blobs.saturating_sub(BLOBS_OF_NONE);
            }
        }
        state.counted = counted;
        let is_turn = state.turned.is_none_or(|turned| turned.elapsed() > LIFETIME + lag);
        if lag.is_zero() {
            (state.before, state.since) = (Used::default(), Used::default());
        } else if is_turn {
            (state.before, state.since) = (state.since, Used::default());
            state.turned = Some(Instant::now());
        }
        let lifetime = LIFETIME.max(begun.elapsed() * SHARE);
        state.counted_until = Some(Instant::now() + lifetime);
        Ok(())
    }
}
