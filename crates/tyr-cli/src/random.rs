//! Random numbers for benchmarks and the demo: fast, and the same for the same seed.

/// A small fast generator of random numbers (xorshift64*), the same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From any seed.
    pub fn new(seed: u64) -> Self {
        let mut random =
            Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x0123_4567) | 1);
        random.next();
        random.next();
        random
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_stay_below_their_bound_and_repeat_with_their_seed() {
        let (mut one, mut same) = (Random::new(7), Random::new(7));
        for _ in 0..1000 {
            let number = one.below(10);
            assert!(number < 10);
            assert_eq!(number, same.below(10));
        }
        assert!((0.0..1.0).contains(&one.unit()));
    }
}
