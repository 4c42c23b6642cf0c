//! A set of (chunk, version) that may say yes too often, and never no too often (V2).
//!
//! It travels between nodes, so its hash is written out here and will not change with a library
//! or a machine. With 14.4 bits and 10 probes an entry, one in a thousand absent entries is taken
//! for present: the version stays a little longer than it had to.

use tyr_types::Timestamp;

/// Bits of the filter for each entry: -ln(0.001) / ln(2)^2 = 14.38.
const BITS_PER_ENTRY: f64 = 14.38;
/// Bits looked at for an entry: 14.38 * ln(2), rounded.
const PROBES: u64 = 10;

/// A Bloom filter over (chunk, version), sized for 0.1 % false positives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bloom {
    /// Never empty.
    words: Vec<u64>,
}

impl Bloom {
    /// An empty filter for this many entries; more make more false positives.
    pub fn with_capacity(entries: usize) -> Self {
        let bits = (entries.max(1) as f64 * BITS_PER_ENTRY).ceil();
        Self { words: vec![0; (bits as usize).div_ceil(64)] }
    }

    /// Adds an entry.
    pub fn insert(&mut self, chunk: u64, version: Timestamp) {
        for (word, bit) in self.places(chunk, version) {
            self.words[word] |= bit;
        }
        debug_assert!(self.contains(chunk, version), "V2: a filter never says no of what it has");
    }

    /// Whether the entry was added, or looks like it.
    pub fn contains(&self, chunk: u64, version: Timestamp) -> bool {
        self.places(chunk, version).all(|(word, bit)| self.words[word] & bit != 0)
    }

    /// The filter of these words, if there are any.
    pub(crate) fn from_words(words: Vec<u64>) -> Option<Self> {
        (!words.is_empty()).then_some(Self { words })
    }

    /// Its words, as they travel.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes that it takes.
    pub fn len_bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// The places of an entry, by double hashing (Kirsch, Mitzenmacher 2006).
    fn places(&self, chunk: u64, version: Timestamp) -> impl Iterator<Item = (usize, u64)> + use<> {
        let stamp = u64::from(version.epoch.0) << 32 | u64::from(version.node);
        let first = mix(mix(mix(chunk) ^ version.clock) ^ stamp);
        let step = mix(first) | 1;
        let bits = self.words.len() as u64 * 64;
        (0..PROBES).map(move |probe| {
            let hash = first.wrapping_add(probe.wrapping_mul(step));
            // The high half of the product is a place in proportion, without a division.
            let place = ((u128::from(hash) * u128::from(bits)) >> 64) as u64;
            ((place / 64) as usize, 1 << (place % 64))
        })
    }
}

/// The finaliser of SplitMix64: each bit of `x` changes half the bits of the answer.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_types::Epoch;

    fn entry(number: u64) -> (u64, Timestamp) {
        let clock = 1_700_000_000_000_000 + number / 3;
        (number % 3, Timestamp { epoch: Epoch(2), clock, node: (number % 5) as u16 })
    }

    /// V2.
    #[test]
    fn every_entry_is_found_again() {
        let mut filter = Bloom::with_capacity(5_000);
        (0..5_000).map(entry).for_each(|(chunk, version)| filter.insert(chunk, version));
        assert!((0..5_000).map(entry).all(|(chunk, version)| filter.contains(chunk, version)));
    }

    /// V2.
    #[test]
    fn one_absent_entry_in_a_thousand_is_taken_for_present() {
        for entries in [65, 1_000, 20_000] {
            let mut filter = Bloom::with_capacity(entries as usize);
            (0..entries).map(entry).for_each(|(chunk, version)| filter.insert(chunk, version));
            let absent = (entries..entries + 1_000_000).map(entry);
            let taken = absent.filter(|(chunk, version)| filter.contains(*chunk, *version)).count();
            assert!((300..1_500).contains(&taken), "{taken} of a million, with {entries} entries");
        }
    }

    /// V2: nodes of different builds must agree.
    #[test]
    fn the_places_of_an_entry_never_change() {
        let mut filter = Bloom::with_capacity(4);
        filter.insert(7, Timestamp { epoch: Epoch(1), clock: 123, node: 4 });
        assert_eq!(filter.words, GOLDEN);
    }

    /// Computed by another implementation of the hash.
    const GOLDEN: [u64; 1] = [92_325_029_322_162_832];
}
