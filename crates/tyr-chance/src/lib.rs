//! What tests leave to chance: seeds that can be given again, and how many are gone through.
//!
//! Only tests depend on this crate, which depends on nothing. A test prints the seed it runs with;
//! `TYR_SEED` in the environment makes it the same again. A test that goes through many seeds,
//! kills or cases goes through a [part] of them, so that all tests together take minutes;
//! `just thorough` has it go through all of them.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Div;

/// One of so many is gone through where nobody asked for all.
const PART: u8 = 4;

/// Of those that run the same each time.
const USUAL_SEED: u64 = 20_261_121;

/// A quarter of so many; with `TYR_THOROUGH=1` in the environment all of them.
///
/// What a test says that it must have seen at least goes by the same measure.
pub fn part<N: Div<Output = N> + From<u8>>(all: N) -> N {
    if is_thorough() { all } else { all / N::from(PART) }
}

/// How much there is to be: the one, or with `TYR_THOROUGH=1` in the environment the other.
pub fn size<N>(usual: N, thorough: N) -> N {
    if is_thorough() { thorough } else { usual }
}

fn is_thorough() -> bool {
    std::env::var_os("TYR_THOROUGH").is_some_and(|value| value == "1")
}

/// `TYR_SEED`, or else the same one each time; printed, so that a failure shows it.
///
/// # Panics
/// If `TYR_SEED` is not a number.
pub fn usual_seed() -> u64 {
    let seed = given().unwrap_or(USUAL_SEED);
    println!("seed {seed} (set TYR_SEED to it to repeat)");
    seed
}

/// `TYR_SEED`, or else one that nobody has run before; printed, so that a failure shows it.
///
/// # Panics
/// If `TYR_SEED` is not a number.
pub fn new_seed(test: &str) -> u64 {
    let seed = given().unwrap_or_else(|| RandomState::new().hash_one(test) >> 16);
    println!("{test}: run it again with TYR_SEED={seed}");
    seed
}

fn given() -> Option<u64> {
    let text = std::env::var("TYR_SEED").ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("TYR_SEED is a number, not {text:?}")))
}

/// A stream of numbers that its seed fixes (SplitMix64: Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
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

    /// Yes, this often in a thousand.
    pub fn permille(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_numbers_that_it_gives_everywhere() {
        // As other implementations have them.
        let mut chance = Chance::new(1_234_567);
        let first = [chance.any(), chance.any(), chance.any()];
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, known);
    }
}
