//! The random source of a run: one seed, and from it a stream for each component.
//!
//! Streams are independent: a component that draws more numbers, or is left out when a failing run
//! is made smaller, changes nothing for the others.

/// A stream of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1)))
    }

    /// The stream of a component of the run with this seed: `name` says which kind, `number` which
    /// of them.
    pub fn of(seed: u64, name: &str, number: u64) -> Self {
        let fold = |state, byte: u8| mix(state ^ u64::from(byte)).wrapping_add(1);
        let named = name.bytes().fold(Self::new(seed).0, fold);
        Self(mix(named ^ mix(number.wrapping_add(1))))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `bound`; 0 for 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.any()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both possible.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Yes, this often in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Yes, this often in a million.
    pub fn per_million(&mut self, share: u32) -> bool {
        share > 0 && self.below(1_000_000) < u64::from(share)
    }

    /// One of these.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// `count` different ones of these; all of them if there are fewer.
    pub fn sample<T: Copy>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut rest = from.to_vec();
        let mut draw = |_| rest.swap_remove(self.below(rest.len() as u64) as usize);
        (0..count.min(from.len())).map(&mut draw).collect()
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_come_again() {
        let draw = |name, number| Random::of(7, name, number).any();
        assert_eq!(draw("network", 1), draw("network", 1));
        assert_ne!(draw("network", 1), draw("network", 2));
        assert_ne!(draw("network", 1), draw("disk", 1));
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut random = Random::new(3);
        for _ in 0..1_000 {
            assert!(random.below(7) < 7);
            assert!((3..=5).contains(&random.between(3, 5)));
        }
        assert_eq!(random.below(0), 0);
        assert_eq!(random.between(4, 4), 4);
        assert_eq!(random.sample(&[1, 2, 3], 9).len(), 3);
    }
}
