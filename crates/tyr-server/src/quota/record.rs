//! A quota: what a keyspace may have at most, as it lies in the service metadata.

use std::fmt;

use serde::{Deserialize, Serialize};
use tyr_types::{Error, KeyspaceId, Result};

use tyr_metadata::{Path, reserved};

/// What a keyspace may have at most. What is not limited is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// The sizes of its blobs together, in bytes; holes count.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// How many blobs it has.
    #[serde(default)]
    pub blobs: Option<u64>,
    /// Operations a second: reads, and transactions by the blobs that they name.
    #[serde(default)]
    pub operations: Option<u64>,
}

/// How a keyspace stands towards its quota, as one node sees the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaReport {
    /// The keyspace's name.
    pub keyspace: String,
    /// What it may have.
    pub quota: Quota,
    /// Bytes that it has.
    pub bytes: u64,
    /// Blobs that it has.
    pub blobs: u64,
}

impl Quota {
    /// Whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Where the quota of a keyspace lies. By number: a keyspace of the same name that is made
    /// later is another.
    ///
    /// # Errors
    /// None: the path is short and plain.
    pub fn path(keyspace: KeyspaceId) -> Result<Path> {
        let path = format!("{}{}", reserved::QUOTAS, keyspace.0);
        debug_assert_eq!(Self::keyspace(&path), Some(keyspace), "it is found again");
        Path::new(path)
    }

    /// The keyspace whose quota lies there.
    pub fn keyspace(path: &str) -> Option<KeyspaceId> {
        path.strip_prefix(reserved::QUOTAS)?.parse().ok().map(KeyspaceId)
    }

    /// Its bytes in the service metadata: JSON.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = serde_json::to_vec(self).expect("numbers are JSON");
        debug_assert_eq!(Self::from_bytes(&bytes).ok(), Some(*self), "a quota reads back");
        bytes
    }

    /// The quota of these bytes.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes)
            .map_err(|error| Error::corrupt("a quota in the service metadata").with_source(error))
    }
}

/// As people read it: what is limited, to what.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, blobs, operations } = self;
        let limits = [(bytes, "bytes"), (blobs, "blobs"), (operations, "operations a second")];
        let limited = limits.iter().filter_map(|(limit, what)| limit.map(|it| (it, what)));
        for (place, (limit, what)) in limited.enumerate() {
            write!(f, "{}{limit} {what}", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl QuotaReport {
    /// The most used of bytes and blobs, in hundredths of its limit; `None` when neither is
    /// limited.
    pub fn used_percent(&self) -> Option<u64> {
        let of = |used: u64, limit: Option<u64>| {
            limit.map(|limit| used.saturating_mul(100).checked_div(limit).unwrap_or(100))
        };
        of(self.bytes, self.quota.bytes).max(of(self.blobs, self.quota.blobs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_reads_back_and_what_is_left_out_is_not_limited() {
        let quota = Quota { bytes: Some(7), blobs: None, operations: Some(9) };
        assert_eq!(Quota::from_bytes(&quota.to_bytes()).unwrap(), quota);
        assert!(Quota::from_bytes(b"{}").unwrap().is_unlimited());
        assert!(Quota::from_bytes(b"seven").is_err());
        let path = Quota::path(KeyspaceId(12)).unwrap();
        assert_eq!(Quota::keyspace(path.as_str()), Some(KeyspaceId(12)));
        assert_eq!(Quota::keyspace("quotas/x"), None);
    }

    #[test]
    fn the_fuller_of_two_limits_is_told() {
        let report = |bytes, blobs| QuotaReport {
            keyspace: "a".to_owned(),
            quota: Quota { bytes, blobs, operations: Some(1) },
            bytes: 50,
            blobs: 9,
        };
        assert_eq!(report(Some(100), Some(10)).used_percent(), Some(90));
        assert_eq!(report(Some(100), None).used_percent(), Some(50));
        assert_eq!(report(Some(0), None).used_percent(), Some(100));
        assert_eq!(report(None, None).used_percent(), None);
    }
}
