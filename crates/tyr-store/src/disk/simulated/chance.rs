//! Chance from a seed: the same seed, the same crash.
//!
//! SplitMix64 (Steele, Lea and Flood, 2014): ten lines are less than a dependency, and its numbers
//! stay the same in every release, so that a seed that failed keeps failing.

/// A stream of numbers that its seed fixes.
pub struct Chance(u64);

impl Chance {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0. Small bounds only: it leans to low numbers by
    /// `bound` in 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}
