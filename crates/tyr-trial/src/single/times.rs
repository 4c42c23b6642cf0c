//! How long something took, over many times.

use std::fmt;
use std::time::Duration;

/// Times, in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Extend<Duration> for Times {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        self.0.extend(times);
    }
}

impl IntoIterator for Times {
    type Item = Duration;
    type IntoIter = std::vec::IntoIter<Duration>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let Some(last) = sorted.len().checked_sub(1) else { return f.write_str("never") };
        let at = |share: f64| sorted[(last as f64 * share).round() as usize].as_secs_f64() * 1e3;
        let (half, most, longest) = (at(0.5), at(0.99), at(1.0));
        write!(f, "{half:.1} ms (p99 {most:.1}, longest {longest:.1}, of {})", sorted.len())
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
        assert_eq!(times.to_string(), "51.0 ms (p99 100.0, longest 101.0, of 101)");
    }
}
