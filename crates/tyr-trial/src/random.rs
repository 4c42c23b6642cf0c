//! The random source of a run: one seed, and from it a stream for each component.
//!
//! Faults, workloads and relays draw from streams of their own, so that the same seed gives the
//! same schedule of faults however long a client had to wait.

/// A stream of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a component of the run with this seed: `name` says which kind, `number` which
    /// of them.
    pub fn of(seed: u64, name: &str, number: u64) -> Self {
        let fold = |state, byte: u8| mix(state ^ u64::from(byte)).wrapping_add(1);
        let named = name.bytes().fold(mix(seed.wrapping_add(1)), fold);
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

    /// One of these.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// These in another order.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for at in (1..values.len()).rev() {
            values.swap(at, self.below(at as u64 + 1) as usize);
        }
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
        assert_eq!(draw("faults", 1), draw("faults", 1));
        assert_ne!(draw("faults", 1), draw("faults", 2));
        assert_ne!(draw("faults", 1), draw("lists", 1));
    }
}
