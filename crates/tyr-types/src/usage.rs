//! How much of a keyspace there is: what quotas are compared with, and what nodes tell each other.

/// What of a keyspace counts with a node: blobs whose first chunk it is the authority over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceUsage {
    /// How many.
    pub blobs: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Operations on it that clients ask this node for in a second, where they are limited.
    pub operations: u32,
}

impl KeyspaceUsage {
    /// The same when a blob that had the one size has the other; `None` is a blob that is not.
    #[must_use]
    pub fn changed(self, before: Option<u64>, after: Option<u64>) -> Self {
        let step =
            |total: u64, minus: u64, plus: u64| total.saturating_sub(minus).saturating_add(plus);
        let size = |of: Option<u64>| of.unwrap_or(0);
        let one = |of: Option<u64>| u64::from(of.is_some());
        Self {
            blobs: step(self.blobs, one(before), one(after)),
            bytes: step(self.bytes, size(before), size(after)),
            ..self
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            blobs: self.blobs.saturating_add(other.blobs),
            bytes: self.bytes.saturating_add(other.bytes),
            operations: self.operations.saturating_add(other.operations),
        }
    }
}
