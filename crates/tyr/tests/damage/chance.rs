//! Chance from a seed (SplitMix64: Steele, Lea and Flood, 2014).

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

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound
    }
}

/// The seed of this run: `TYR_SEED` if it is set.
pub fn seed() -> u64 {
    match std::env::var("TYR_SEED") {
        Ok(text) => text.parse().expect("TYR_SEED is a number"),
        Err(_) => 20_261_121,
    }
}
