//! How long something took, over many times.

use std::fmt;
use std::time::Duration;

/// Times, in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    /// The time that this share of them did not exceed: 0.5 for the middle, 1 for the longest;
    /// `None` when there are none.
    pub fn at(&self, share: f64) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[(last as f64 * share).round() as usize])
    }
}

impl Extend<Duration> for Times {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        self.0.extend(times);
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        Self(times.into_iter().collect())
    }
}

impl IntoIterator for Times {
    type Item = Duration;
    type IntoIter = std::vec::IntoIter<Duration>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A time in milliseconds.
pub(super) fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [0.5, 0.9, 0.99, 1.0].map(|share| self.at(share).map(millis));
        let [Some(half), Some(most), Some(nearly), Some(longest)] = all else {
            return f.write_str("never");
        };
        let count = self.0.len();
        write!(f, "{half} ms (p90 {most}, p99 {nearly}, longest {longest}, of {count})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_longest_are_told() {
        let mut times = Times::default();
        assert_eq!(times.to_string(), "never");
        times.extend((1..=101).rev().map(Duration::from_millis));
        assert_eq!(times.to_string(), "51.0 ms (p90 91.0, p99 100.0, longest 101.0, of 101)");
        assert_eq!(times.at(1.0), Some(Duration::from_millis(101)));
    }
}
