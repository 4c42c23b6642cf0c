//! Running a transaction again after a conflict, with a pause that grows.
//!
//! [`Tyr::transact`](tyr::Tyr::transact) does the same for a closure; a future with such a closure
//! in it is bound to its thread today, and consumers are to run on any.

use std::time::{Duration, Instant};

use tyr::{Error, ErrorKind, Result};

use crate::log::now_us;

/// For so long a transaction is run again, or goes on elsewhere, however often that is: while nodes
/// are cut off from each other all runs may meet the same conflict, one after the other.
const TRIED_FOR: Duration = Duration::from_secs(10);

/// The runs of one transaction so far.
#[derive(Debug)]
pub struct Tries {
    count: u32,
    begun: Instant,
}

impl Default for Tries {
    fn default() -> Self {
        Self { count: 0, begun: Instant::now() }
    }
}

/// Runs it again for as long as it ends as `Conflict`, within reason.
///
/// # Errors
/// That of the last run.
pub async fn again<T, F: Future<Output = Result<T>>>(run: impl Fn() -> F) -> Result<T> {
    let mut tries = Tries::default();
    loop {
        match run().await {
            Err(error) if tries.again(&error).await => {}
            done => return done,
        }
    }
}

impl Tries {
    /// Whether it is to be run again after it ended so; then a pause is over.
    pub async fn again(&mut self, error: &Error) -> bool {
        self.count += 1;
        let is_again = error.kind() == ErrorKind::Conflict && self.begun.elapsed() < TRIED_FOR;
        if is_again {
            let pause = self.pause(now_us());
            blocking::unblock(move || std::thread::sleep(pause)).await;
        }
        is_again
    }

    /// Doubling from 20 µs to 10 ms, and less by up to a half, so that two do not meet again.
    fn pause(&self, chance: u64) -> Duration {
        let ceiling_us = (20_u64 << self.count.min(9)).min(10_000);
        Duration::from_micros(ceiling_us / 2 + chance % (ceiling_us / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let tries = |count| Tries { count, ..Tries::default() };
        let pauses = |chance| (1..64).map(move |n| tries(n).pause(chance));
        assert!(pauses(0).is_sorted());
        assert!(pauses(u64::MAX).all(|pause| pause <= Duration::from_millis(10)));
        assert_eq!(tries(1).pause(0), Duration::from_micros(20));
    }
}
