//! Random choices that can be made again: one seed, one run.
//!
//! A test prints the seed it runs with; `TYR_SEED` in the environment makes it the same again.

/// The seed of this run, printed, so that a failure shows it.
pub fn chosen(test: &str) -> u64 {
    let given = std::env::var("TYR_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| {
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(test) >> 16
    });
    println!("{test}: run it again with TYR_SEED={seed}");
    seed
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The source of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Yes, this often in a thousand.
    pub fn permille(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }
}
