//! Sums of `f64` without rounding, and how far a rounded one may be off.
//!
//! A sum is kept as an expansion: numbers that do not overlap and add up to it exactly (Shewchuk,
//! "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates", 1997).
//!
//! The bound is Higham's ("The accuracy of floating point summation", 1993): whatever the order in
//! which n numbers are added, the error is at most γ(n-1) Σ|x|, with γ(k) = k u / (1 - k u) and
//! u = 2^-53.

/// The exact sum of any number of finite values, as long as no part of it overflows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExactSum {
    /// By growing magnitude, none overlapping the next, no zeros.
    parts: Vec<f64>,
}

impl ExactSum {
    /// Adds one value.
    pub fn add(&mut self, value: f64) {
        let mut carry = value;
        let mut kept = 0;
        for at in 0..self.parts.len() {
            let (sum, error) = two_sum(carry, self.parts[at]);
            if error != 0.0 {
                self.parts[kept] = error;
                kept += 1;
            }
            carry = sum;
        }
        self.parts.truncate(kept);
        if carry != 0.0 {
            self.parts.push(carry);
        }
    }

    /// Adds all that was added to `other`.
    pub fn merge(&mut self, other: &Self) {
        other.parts.iter().for_each(|part| self.add(*part));
    }

    /// The sum, rounded once, to nearest.
    pub fn round(&self) -> f64 {
        let mut parts = self.parts.iter().rev();
        let mut high = parts.next().copied().unwrap_or(0.0);
        let mut low = 0.0;
        for part in parts.by_ref() {
            (high, low) = two_sum(high, *part);
            if low != 0.0 {
                break;
            }
        }
        // A tie was broken to even as if nothing came below; something of low's sign breaks it.
        if let Some(next) = parts.next()
            && (low < 0.0) == (*next < 0.0)
        {
            let doubled = low * 2.0;
            let other = high + doubled;
            if doubled == other - high {
                high = other;
            }
        }
        high
    }

    /// How far `rounded` is off.
    pub fn error_of(&self, rounded: f64) -> f64 {
        let mut difference = self.clone();
        difference.add(-rounded);
        difference.round().abs()
    }
}

/// The rounded sum, and exactly what the rounding lost (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// The largest error of a sum of `count` values in any order. `magnitude` is the sum of their
/// magnitudes, itself rounded in any order.
pub fn error_max(count: u64, magnitude: f64) -> f64 {
    if count <= 1 {
        return 0.0;
    }
    let steps = (count - 1) as f64 * (f64::EPSILON / 2.0);
    if steps >= 0.5 {
        return f64::INFINITY;
    }
    let gamma = steps / (1.0 - steps);
    // The magnitude may be rounded down by as much, and this arithmetic rounds as well.
    gamma * (magnitude / (1.0 - gamma)) * (1.0 + 1e-12) + 4.0 * f64::from_bits(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of pseudo-random numbers (SplitMix64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        }

        /// A number of any sign with an exponent from -60 to 60.
        fn number(&mut self) -> f64 {
            let mantissa = (self.next() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
            mantissa * 2_f64.powi((self.next() % 121) as i32 - 60)
        }
    }

    fn exact(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|value| sum.add(*value));
        sum
    }

    #[test]
    fn nothing_is_lost_where_rounding_would_lose_everything() {
        assert_eq!(exact(&[1e100, 1.0, -1e100]).round(), 1.0);
        assert_eq!(exact(&[1e16, 1.0, 1e-16, -1e16, -1.0]).round(), 1e-16);
        assert_eq!(exact(&[0.1; 10]).round(), 1.0);
        assert_eq!(exact(&[]).round(), 0.0);
        assert_eq!(exact(&[0.1, 0.2]).error_of(0.1 + 0.2), 2.775_557_561_562_891_4e-17);
    }

    #[test]
    fn ties_are_broken_by_what_lies_below() {
        let half = f64::EPSILON / 2.0;
        assert_eq!(exact(&[1.0, half]).round(), 1.0);
        assert_eq!(exact(&[1.0, half, 1e-30]).round(), 1.0 + f64::EPSILON);
        assert_eq!(exact(&[1.0, half, -1e-30]).round(), 1.0);
    }

    #[test]
    fn the_sum_is_the_same_in_every_order_and_grouping() {
        for seed in 0..50 {
            let mut random = Random(seed);
            let values: Vec<f64> = (0..200).map(|_| random.number()).collect();
            let forward = exact(&values);
            let backward = exact(&values.iter().rev().copied().collect::<Vec<_>>());
            let mut merged = exact(&values[..77]);
            merged.merge(&exact(&values[77..]));
            for other in [&backward, &merged] {
                assert_eq!(forward.round(), other.round(), "seed {seed}");
                assert_eq!(other.error_of(forward.round()), forward.error_of(forward.round()));
            }
        }
    }

    #[test]
    fn sums_in_any_order_stay_within_the_bound_and_wrong_ones_do_not() {
        for seed in 0..200 {
            let mut random = Random(seed);
            let count = 2 + random.next() % 300;
            let mut values: Vec<f64> = (0..count).map(|_| random.number()).collect();
            match seed % 3 {
                0 => values.sort_by(f64::total_cmp),
                1 => values.sort_by(|a, b| b.abs().total_cmp(&a.abs())),
                _ => {}
            }
            let magnitude: f64 = values.iter().map(|value| value.abs()).sum();
            let rounded: f64 = values.iter().sum();
            let bound = error_max(count, magnitude);
            let error = exact(&values).error_of(rounded);
            assert!(error <= bound, "seed {seed}: {error} > {bound}");
            let wrong = rounded + bound * 2.5;
            assert!(exact(&values).error_of(wrong) > bound, "seed {seed}");
        }
    }

    #[test]
    fn one_value_has_no_error() {
        assert_eq!(error_max(1, 1e300), 0.0);
        assert_eq!(error_max(0, 0.0), 0.0);
        assert!(error_max(2, 1.0) < 3e-16);
    }
}
