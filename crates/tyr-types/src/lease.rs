//! Leases of keys: how one is held, and for how long (K1).
//!
//! A lease of a key is a promise for some seconds that nobody else gets one that excludes it. It
//! says nothing of the blob, which need not be there.

use crate::error::{Error, Result};
use crate::limits::{GUARDED_LEASE_DURATION_MAX, LEASE_DURATION_MAX, LEASE_DURATION_MIN};
use std::time::Duration;

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

    #[test]
    fn only_shared_leases_are_held_beside_each_other() {
        use LeaseMode::{Exclusive, Shared};
        assert!(Shared.is_beside(Shared));
        assert!(!Shared.is_beside(Exclusive) && !Exclusive.is_beside(Shared));
        assert!(!Exclusive.is_beside(Exclusive));
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
