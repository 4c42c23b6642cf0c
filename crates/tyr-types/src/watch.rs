//! Watches of keys: what is watched, and what is told of it.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::id::{Key, KeyspaceId};
use crate::limits;
use crate::notice::Notice;
use crate::timestamp::Timestamp;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchTarget {
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// The key, or what keys begin with: 0 to 1,024 bytes.
    pub prefix: Bytes,
    /// Whether it is that key alone.
    pub is_exact: bool,
}

impl WatchTarget {
    /// A key.
    pub fn key(keyspace: KeyspaceId, key: &Key) -> Self {
        Self { keyspace, prefix: Bytes::copy_from_slice(key.as_bytes()), is_exact: true }
    }

    /// All keys that begin so.
    ///
    /// # Errors
    /// `InvalidArgument` when that is longer than a key may be.
    pub fn prefix(keyspace: KeyspaceId, prefix: &[u8]) -> Result<Self> {
        if prefix.len() > limits::KEY_LEN_MAX {
            return Err(Error::invalid(format!(
                "what keys begin with has at most {} bytes, this has {}",
                limits::KEY_LEN_MAX,
                prefix.len()
            )));
        }
        Ok(Self { keyspace, prefix: Bytes::copy_from_slice(prefix), is_exact: false })
    }
}

/// What has changed, of what is watched: some transactions as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The highest commit timestamp among them.
    pub at: Timestamp,
    /// Keys that were changed, ascending: at most [`limits::WATCHED_KEYS_TOLD_MAX`].
    pub keys: Vec<Key>,
    /// Whether there are more than these.
    pub is_more: bool,
}

impl Changes {
    /// A key was changed, too.
    pub fn add(&mut self, at: Timestamp, key: &Key) {
        self.at = self.at.max(at);
        if let Err(place) = self.keys.binary_search(key) {
            match self.keys.len() < limits::WATCHED_KEYS_TOLD_MAX {
                true => self.keys.insert(place, key.clone()),
                false => self.is_more = true,
            }
        }
    }

    /// These have come since.
    pub fn merge(&mut self, later: &Self) {
        self.at = self.at.max(later.at);
        self.is_more |= later.is_more;
        later.keys.iter().for_each(|key| self.add(later.at, key));
    }
}

/// What a watcher is told: some changes as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchEvent {
    /// Whether something may have changed that was not told: at the beginning, and after an
    /// interruption. It is to be looked at what is there.
    pub is_anew: bool,
    /// What has changed.
    pub changes: Changes,
    /// What was sent to who watches, in the order in which it came. Who sent it waits for it to be
    /// acknowledged.
    pub notices: Vec<Notice>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock: u64) -> Timestamp {
        Timestamp { clock, ..Timestamp::ZERO }
    }

    #[test]
    fn of_many_keys_some_are_named_and_more_are_said_to_be() {
        let mut changes = Changes::default();
        for number in 0..70 {
            changes.add(at(number), &Key::new(format!("key-{number:03}")).unwrap());
        }
        assert_eq!(changes.keys.len(), limits::WATCHED_KEYS_TOLD_MAX);
        assert!(changes.is_more && changes.keys.is_sorted());
        let mut merged = Changes::default();
        merged.add(at(90), &Key::new("other").unwrap());
        merged.merge(&changes);
        assert_eq!(merged.at, at(90));
        assert_eq!(merged.keys.len(), limits::WATCHED_KEYS_TOLD_MAX);
        assert!(merged.is_more);
    }

    #[test]
    fn a_prefix_longer_than_a_key_is_refused_with_the_bound() {
        let error = WatchTarget::prefix(KeyspaceId(1), &[0; 1_025]).unwrap_err();
        assert!(error.message().contains("1024"), "{error}");
    }
}
