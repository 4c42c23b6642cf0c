//! How sure one may be that a silent node is gone: a phi-accrual estimate.
//!
//! After Hayashibara, Défago, Yared and Katayama, *The φ Accrual Failure Detector* (SRDS 2004): phi
//! is minus the decimal logarithm of the chance that somebody who lives is silent for this long.
//! Their nodes send heartbeats; ours are asked, so silence begins with the first question that was
//! not answered. A sign of life may come late because the node or the network is slow, and because
//! questions and answers were lost; [`Waits`] keeps how long it took lately, whatever the reason,
//! and takes that for normally distributed, as the paper does. Whoever judges takes the smaller phi
//! of two: of the node alone, which may be slower than others, and of all together, since a slow
//! network is slow for those too that were rarely asked.
//!
//! Must not know: nodes, time of day, what is done with phi.

/// Waits that are kept: one node in a cluster of 32 is asked that often in four minutes.
const WAITS: usize = 32;

/// Waits that are assumed before any was seen, and roll out as others come.
const WAITS_ASSUMED: usize = 4;

/// No wait is taken for more exact than this: a busy system keeps a process waiting for as long.
const DEVIATION_MIN_US: f64 = 50_000.0;

const _: () = assert!(0 < WAITS_ASSUMED && WAITS_ASSUMED < WAITS);

/// How long signs of life took to come after a question, lately.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    us: [f64; WAITS],
    len: usize,
    next: usize,
}

impl Waits {
    /// Nothing is known: a wait is assumed to be anything up to this long.
    pub fn new(assumed_max_us: u64) -> Self {
        let mut waits = Self { us: [0.0; WAITS], len: 0, next: 0 };
        for turn in 0..WAITS_ASSUMED {
            waits.record(if turn % 2 == 0 { 0 } else { assumed_max_us });
        }
        waits
    }

    /// A sign of life came this long after the question.
    pub fn record(&mut self, us: u64) {
        debug_assert!(self.next < WAITS && self.len <= WAITS, "waits are kept in a ring");
        self.us[self.next] = us as f64;
        self.next = (self.next + 1) % WAITS;
        self.len = (self.len + 1).min(WAITS);
    }

    /// Phi after this much silence.
    pub fn phi(&self, silence_us: u64) -> f64 {
        debug_assert!(self.len >= WAITS_ASSUMED, "some are assumed");
        let seen = &self.us[..self.len];
        let mean = seen.iter().sum::<f64>() / self.len as f64;
        let variance = seen.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / self.len as f64;
        let deviation = variance.sqrt().max(DEVIATION_MIN_US);
        debug_assert!(deviation >= DEVIATION_MIN_US, "waits differ");
        let phi = phi_of_normal((silence_us as f64 - mean) / deviation);
        debug_assert!(phi.is_finite() && phi >= 0.0, "phi of a chance is a number");
        phi
    }
}

/// Minus the decimal logarithm of the chance that a normal variable is this many deviations above
/// its mean or more, good to a hundredth of itself.
fn phi_of_normal(deviations: f64) -> f64 {
    let y = deviations.max(-8.0);
    let logarithm = if y < 2.0 {
        // A logistic approximation.
        (y * (1.5976 + 0.070_566 * y * y)).exp().ln_1p()
    } else {
        // The tail by its continued fraction, in logarithms, since the chance itself underflows.
        let fraction = (1..=16).rev().fold(y, |below, n| y + f64::from(n) / below);
        y * y / 2.0 + (std::f64::consts::TAU.sqrt() * fraction).ln()
    };
    logarithm / std::f64::consts::LN_10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phi_is_near_that_of_the_normal_distribution() {
        // From tables: -log10 of the upper tail at 0 to 6 deviations.
        let exact = [0.301, 0.7995, 1.643, 2.8697, 4.4993, 6.5426, 9.0059];
        for (deviations, expected) in exact.into_iter().enumerate() {
            let phi = phi_of_normal(deviations as f64);
            assert!((phi - expected).abs() < 0.01 * expected, "{deviations}: {phi}, {expected}");
        }
        assert!(phi_of_normal(-100.0) < 1e-6 && phi_of_normal(1e6).is_finite());
    }

    #[test]
    fn the_same_silence_says_more_of_a_quick_node_than_of_a_slow_one() {
        let [mut quick, mut slow] = [Waits::new(250_000), Waits::new(250_000)];
        for turn in 0..WAITS as u64 {
            quick.record(500);
            slow.record(turn % 4 * 200_000);
        }
        assert!(quick.phi(300_000) > 8.0, "{}", quick.phi(300_000));
        assert!(slow.phi(300_000) < 1.0, "{}", slow.phi(300_000));
        assert!(slow.phi(600_000) < 8.0 && slow.phi(2_000_000) > 8.0);
    }

    #[test]
    fn what_is_assumed_is_forgotten_as_waits_are_seen() {
        let mut waits = Waits::new(250_000);
        let before = waits.phi(500_000);
        (0..WAITS).for_each(|_| waits.record(1_000));
        assert!(before < 8.0 && waits.phi(500_000) > 8.0, "{before}");
    }
}
