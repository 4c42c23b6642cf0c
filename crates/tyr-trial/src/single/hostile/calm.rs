//! Whether others are held up: stretches without hostile calls and with them, by turns, and how
//! long plain transactions take in each.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tyr_types::{Error, Result};

use crate::single::times::{Times, millis};

/// So many times as long as else the 99th of a hundred transactions may take beside hostile calls.
/// Both are medians over stretches by turns, so what else the machine does weighs on both alike.
const SLOWER_MAX: f64 = 2.0;

/// No stretch.
const NONE: usize = usize::MAX;

/// The stretches: two of each number, first the one without calls.
pub(super) struct Stretches {
    times: Vec<Mutex<Times>>,
    now: AtomicUsize,
}

impl Stretches {
    /// So many of each kind.
    pub fn new(each: u64) -> Self {
        let times = (0..2 * each).map(|_| Mutex::default()).collect();
        Self { times, now: AtomicUsize::new(NONE) }
    }

    /// Begins one, with calls or without.
    pub fn begin(&self, number: u64, has_calls: bool) {
        let place = 2 * number as usize + usize::from(has_calls);
        self.now.store(place, Ordering::Release);
    }

    /// What is done now counts for none.
    pub fn pause(&self) {
        self.now.store(NONE, Ordering::Release);
    }

    /// Where a transaction is that begins now.
    pub fn now(&self) -> usize {
        self.now.load(Ordering::Acquire)
    }

    /// How long one took that began in this stretch; one that ends in another counts for none.
    pub fn note(&self, begun: usize, took: Duration) {
        if let Some(times) = self.times.get(begun).filter(|_| begun == self.now()) {
            times.lock().extend([took]);
        }
    }

    /// The 99th of a hundred in each stretch of a kind.
    fn most(&self, has_calls: bool) -> Times {
        let of_kind = self.times.iter().skip(usize::from(has_calls)).step_by(2);
        of_kind.filter_map(|times| times.lock().at(0.99)).collect()
    }

    /// All transactions of a kind of stretch.
    fn all(&self, has_calls: bool) -> Times {
        let of_kind = self.times.iter().skip(usize::from(has_calls)).step_by(2);
        let mut all = Times::default();
        of_kind.for_each(|times| all.extend(times.lock().clone()));
        all
    }

    /// Whether others are held up by hostile calls no more than they may be.
    pub fn judge(&self, text: String) -> Result<String> {
        let (Some(without), Some(with)) = (self.most(false).at(0.5), self.most(true).at(0.5))
        else {
            return Err(Error::unavailable(format!("{text}\n{self}: too few to compare")));
        };
        let slower = with.as_secs_f64() / without.as_secs_f64();
        let text = format!(
            "{text}\n{self}\np99, median of {} stretches each: {} ms beside hostile calls, {} ms \
             else, {slower:.1} times",
            self.times.len() / 2,
            millis(with),
            millis(without)
        );
        match slower <= SLOWER_MAX {
            true => Ok(text),
            false => Err(Error::corrupt(format!(
                "{text}: hostile calls hold others up, for {SLOWER_MAX} times as long may be"
            ))),
        }
    }
}

impl fmt::Display for Stretches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (without, with) = (self.all(false), self.all(true));
        write!(f, "other transactions: {without} without hostile calls, {with} beside them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(with: [u64; 3]) -> Result<String> {
        let stretches = Stretches::new(3);
        for (number, with) in (0..).zip(with) {
            for (has_calls, ms) in [(false, 4), (true, with)] {
                stretches.begin(number, has_calls);
                stretches.note(stretches.now(), Duration::from_millis(ms));
            }
        }
        stretches.pause();
        stretches.judge(String::new())
    }

    #[test]
    fn one_slow_stretch_decides_nothing_and_most_of_them_do() {
        assert!(judged([7, 8, 90]).unwrap().contains("8.0 ms beside hostile calls, 4.0 ms else"));
        let text = judged([7, 9, 90]).unwrap_err().to_string();
        assert!(text.contains("hold others up"), "{text}");
    }

    #[test]
    fn what_ends_in_another_stretch_counts_for_none() {
        let stretches = Stretches::new(1);
        stretches.begin(0, false);
        let begun = stretches.now();
        stretches.begin(0, true);
        stretches.note(begun, Duration::from_millis(1));
        stretches.pause();
        stretches.note(stretches.now(), Duration::from_millis(1));
        assert!(stretches.judge(String::new()).is_err());
    }
}
