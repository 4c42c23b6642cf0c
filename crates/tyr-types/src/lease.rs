//! Leases of keys and of groups: what one is of, how it is held, and for how long (K1, K7).
//!
//! A lease of a key is a promise for some seconds that nobody else gets one that excludes it. It
//! says nothing of the blob, which need not be there. One of a group is one of each of its keys.

use crate::error::{Error, Result};
use crate::id::{BlobName, KeyspaceId};
use crate::limits::{GUARDED_LEASE_DURATION_MAX, LEASE_DURATION_MAX, LEASE_DURATION_MIN};
use std::fmt;
use std::time::Duration;

/// What a lease is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leased {
    /// A key, whether it has a blob or not.
    Key(BlobName),
    /// All keys of a group (H), by what they begin with: see [`crate::PlacedBy::prefix_of`]. That
    /// is a key of the group itself, and lies where the others do.
    Group(BlobName),
}

impl Leased {
    /// The key, or what the keys begin with: whoever is the authority of its first chunk gives the
    /// lease.
    pub fn name(&self) -> &BlobName {
        match self {
            Self::Key(name) | Self::Group(name) => name,
        }
    }

    /// The keyspace that it is in.
    pub fn keyspace(&self) -> KeyspaceId {
        self.name().keyspace
    }

    /// Whether the key is this, or one of these.
    pub fn contains(&self, blob: &BlobName) -> bool {
        match self {
            Self::Key(name) => name == blob,
            Self::Group(name) => {
                name.keyspace == blob.keyspace
                    && blob.key.as_bytes().starts_with(name.key.as_bytes())
            }
        }
    }

    /// Whether some key is of both. Two groups of a keyspace have none in common.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Group(left), Self::Group(right)) => left == right,
            (Self::Key(name), of) | (of, Self::Key(name)) => of.contains(name),
        }
    }
}

impl fmt::Display for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(name) => write!(f, "{name}"),
            Self::Group(name) => write!(f, "the group {name}"),
        }
    }
}

/// How a lease is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseMode {
    /// Beside others that are shared.
    Shared,
    /// By one alone.
    Exclusive,
}

impl LeaseMode {
    /// Whether two may hold the same key so.
    pub fn is_beside(self, other: Self) -> bool {
        match (self, other) {
            (Self::Shared, Self::Shared) => true,
            (Self::Exclusive, _) | (_, Self::Exclusive) => false,
        }
    }
}

/// How long a lease may last in a keyspace, at most.
pub const fn duration_max(is_guarded: bool) -> Duration {
    if is_guarded { GUARDED_LEASE_DURATION_MAX } else { LEASE_DURATION_MAX }
}

/// Whether a lease may last so long.
///
/// # Errors
/// `InvalidArgument` with the range.
pub fn check_duration(duration: Duration) -> Result<()> {
    if (LEASE_DURATION_MIN..=LEASE_DURATION_MAX).contains(&duration) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a lease lasts {} to {} s between two renewals, not {duration:?}",
        LEASE_DURATION_MIN.as_secs(),
        LEASE_DURATION_MAX.as_secs()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Key;

    #[test]
    fn only_shared_leases_are_held_beside_each_other() {
        use LeaseMode::{Exclusive, Shared};
        assert!(Shared.is_beside(Shared));
        assert!(!Shared.is_beside(Exclusive) && !Exclusive.is_beside(Shared));
        assert!(!Exclusive.is_beside(Exclusive));
    }

    #[test]
    fn a_group_meets_its_keys_and_no_others() {
        let name = |keyspace: u32, key: &str| BlobName {
            keyspace: KeyspaceId(keyspace),
            key: Key::new(key).unwrap(),
        };
        let group = Leased::Group(name(1, "a/"));
        assert!(group.contains(&name(1, "a/x")) && group.contains(&name(1, "a/")));
        for other in [name(1, "a"), name(1, "ab/"), name(2, "a/x")] {
            assert!(!group.contains(&other), "{other}");
        }
        let key = Leased::Key(name(1, "a/x"));
        assert!(group.meets(&key) && key.meets(&group) && group.meets(&group));
        assert!(!key.meets(&Leased::Key(name(1, "a/"))), "another key is another lease");
        assert!(!group.meets(&Leased::Group(name(1, "b/"))));
    }

    #[test]
    fn a_duration_out_of_range_is_refused_with_the_range() {
        assert!(check_duration(LEASE_DURATION_MIN).is_ok());
        assert!(check_duration(LEASE_DURATION_MAX).is_ok());
        for wrong in [Duration::ZERO, LEASE_DURATION_MAX + Duration::from_micros(1)] {
            let text = check_duration(wrong).unwrap_err().to_string();
            assert!(text.contains("1 to 10 s"), "{text}");
        }
    }
}
