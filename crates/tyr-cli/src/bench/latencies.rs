//! How long single operations took, many of them in little memory.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest latency that is told from longer ones: a minute.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
/// Latencies are kept to one in a hundred: small histograms, for memory is measured too.
const LATENCY_DIGITS: u8 = 2;

/// The latencies of operations, to one in a hundred.
#[derive(Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self(
            Histogram::new_with_max(LATENCY_MAX_NS, LATENCY_DIGITS)
                .expect("the bounds are constants that fit"),
        )
    }
}

impl Latencies {
    /// Takes one.
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Takes all of `other`.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// What this part of them, from 0 to 1, did not exceed, in µs; the longest for 1.
    pub fn at_us(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_that_was_taken() {
        let (mut all, mut other) = (Latencies::default(), Latencies::default());
        for _ in 0..9 {
            all.record(Duration::from_micros(10));
        }
        other.record(Duration::from_millis(5));
        all.add(&other);
        assert!((9.9..10.2).contains(&all.at_us(0.5)), "{}", all.at_us(0.5));
        assert!((4_950.0..5_100.0).contains(&all.at_us(1.0)), "{}", all.at_us(1.0));
    }
}
