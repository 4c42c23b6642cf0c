//! What somebody has, in a few bytes: for who has the same, as a rule.

use tyr_types::{BlobName, Timestamp};
use xxhash_rust::xxh3::Xxh3;

use super::ChunkName;

/// Of chunks, ascending, with their versions: how many they are, and a checksum of all of it. Two
/// lists with the same summary are the same, but for a chance of one in 2^128 (XXH3, 128 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many.
    pub chunks: u64,
    /// The checksum of names and versions, in their order.
    pub sum: u128,
}

/// A summary in the making.
#[derive(Clone, Default)]
pub struct Summing {
    chunks: u64,
    sum: Xxh3,
}

impl Summing {
    /// One more chunk, behind those before, and its version.
    pub fn add(&mut self, (BlobName { keyspace, key }, number): &ChunkName, version: Timestamp) {
        let Timestamp { epoch, clock, node } = version;
        let key = key.as_bytes();
        self.sum.update(&keyspace.0.to_le_bytes());
        self.sum.update(&(key.len() as u64).to_le_bytes());
        self.sum.update(key);
        self.sum.update(&number.to_le_bytes());
        self.sum.update(&epoch.0.to_le_bytes());
        self.sum.update(&clock.to_le_bytes());
        self.sum.update(&node.to_le_bytes());
        self.chunks += 1;
    }

    /// What is said of all of them.
    pub fn summary(&self) -> Summary {
        Summary { chunks: self.chunks, sum: self.sum.digest128() }
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::{Epoch, Key, KeyspaceId};

    use super::*;

    fn chunk(keyspace: u32, key: &str, number: u64) -> ChunkName {
        (BlobName { keyspace: KeyspaceId(keyspace), key: Key::new(key).unwrap() }, number)
    }

    fn at(clock: u64) -> Timestamp {
        Timestamp { epoch: Epoch(1), clock, node: 2 }
    }

    fn summary(chunks: &[(ChunkName, Timestamp)]) -> Summary {
        let mut summing = Summing::default();
        chunks.iter().for_each(|(name, version)| summing.add(name, *version));
        summing.summary()
    }

    #[test]
    fn whatever_differs_shows() {
        let lists = [
            vec![],
            vec![(chunk(1, "a", 0), at(5))],
            vec![(chunk(1, "a", 0), at(6))],
            vec![(chunk(1, "a", 0), Timestamp { node: 3, ..at(5) })],
            vec![(chunk(1, "a", 0), Timestamp { epoch: Epoch(2), ..at(5) })],
            vec![(chunk(1, "a", 1), at(5))],
            vec![(chunk(2, "a", 0), at(5))],
            vec![(chunk(1, "b", 0), at(5))],
            vec![(chunk(1, "a", 0), at(5)), (chunk(1, "b", 0), at(5))],
            vec![(chunk(1, "ab", 0), at(5)), (chunk(1, "b", 0), at(5))],
            vec![(chunk(1, "a", 0), at(5)), (chunk(1, "bb", 0), at(5))],
            vec![(chunk(1, "a", 0), at(5)), (chunk(1, "b", 0), at(6))],
            vec![(chunk(1, "a", 0), at(6)), (chunk(1, "b", 0), at(5))],
        ];
        for (place, list) in lists.iter().enumerate() {
            assert_eq!(summary(list), summary(&list.clone()));
            for other in &lists[place + 1..] {
                assert_ne!(summary(list), summary(other), "{list:?} and {other:?}");
            }
        }
    }

    /// Nodes of other releases sum up in the same way.
    #[test]
    fn a_summary_is_the_same_for_ever() {
        let Summary { chunks, sum } =
            summary(&[(chunk(1, "a", 0), at(5)), (chunk(1, "b", 7), at(6))]);
        assert_eq!(
            (chunks, format!("{sum:032x}")),
            (2, "762a23af8441b19e6fbcdec6f034caaf".to_owned())
        );
    }
}
