//! What a version manager tells about the versions in use (V2).
//!
//! It rides on every forward and backward message of a transaction that writes the blob, so it is
//! small: a list while it is short, a Bloom filter when it is long. Either says yes for every
//! version in use; the filter sometimes for one that is not.

use tyr_types::Timestamp;

use super::bloom::Bloom;

/// The most entries that travel as a list; beyond, a filter is smaller (64 * 24 bytes against 116)
/// and as quick to ask.
pub const LIST_MAX: usize = 64;

/// A version that a snapshot in use sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InUse {
    /// The chunk.
    pub chunk: u64,
    /// Its version.
    pub version: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    /// Ascending, at most [`LIST_MAX`].
    List(Vec<InUse>),
    Filter(Bloom),
}

/// The versions of a blob in use, as of a timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    pub(crate) as_of: Timestamp,
    pub(crate) entries: Entries,
}

impl Usage {
    /// What is in use at the clock `as_of` of the version manager.
    pub fn new(as_of: Timestamp, mut in_use: Vec<InUse>) -> Self {
        in_use.sort_unstable();
        in_use.dedup();
        if in_use.len() <= LIST_MAX {
            return Self { as_of, entries: Entries::List(in_use) };
        }
        let mut filter = Bloom::with_capacity(in_use.len());
        for InUse { chunk, version } in in_use {
            filter.insert(chunk, version);
        }
        Self { as_of, entries: Entries::Filter(filter) }
    }

    /// When it was right.
    pub fn as_of(&self) -> Timestamp {
        self.as_of
    }

    /// Whether this version is in use, or may be.
    pub fn contains(&self, in_use: InUse) -> bool {
        match &self.entries {
            Entries::List(list) => list.binary_search(&in_use).is_ok(),
            Entries::Filter(filter) => filter.contains(in_use.chunk, in_use.version),
        }
    }

    /// Whether it is exact: a list, no filter.
    pub fn is_exact(&self) -> bool {
        matches!(self.entries, Entries::List(_))
    }

    /// Keeps the newer of the two: usage information arrives in any order.
    pub fn update(&mut self, other: Self) {
        if other.as_of > self.as_of {
            *self = other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_use(number: u64) -> InUse {
        InUse { chunk: number % 2, version: Timestamp { clock: number, ..Timestamp::ZERO } }
    }

    /// V2.
    #[test]
    fn up_to_64_entries_are_a_list_and_more_are_a_filter() {
        let at = Timestamp::ZERO;
        let list = Usage::new(at, (0..64).map(in_use).chain([in_use(3)]).collect());
        assert!(list.is_exact() && list.contains(in_use(63)) && !list.contains(in_use(64)));
        let filter = Usage::new(at, (0..65).map(in_use).collect());
        assert!(!filter.is_exact() && (0..65).all(|number| filter.contains(in_use(number))));
        let taken = (65..10_065).filter(|number| filter.contains(in_use(*number))).count();
        assert!(taken < 40, "{taken} of ten thousand");
    }

    /// V2.
    #[test]
    fn older_usage_that_arrives_late_changes_nothing() {
        let at = |clock| Timestamp { clock, ..Timestamp::ZERO };
        let mut usage = Usage::new(at(5), vec![in_use(1)]);
        usage.update(Usage::new(at(4), vec![in_use(2)]));
        assert!(usage.contains(in_use(1)));
        usage.update(Usage::new(at(6), vec![in_use(3)]));
        assert!(usage.contains(in_use(3)) && usage.as_of() == at(6));
    }
}
