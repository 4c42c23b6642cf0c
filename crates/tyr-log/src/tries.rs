//! Running a transaction again after a conflict, with a pause that grows.
//!
//! [`Tyr::transact`](tyr::Tyr::transact) does the same for a closure; a future with such a closure
//! in it is bound to its thread today, and consumers are to run on any.

use std::time::Duration;

use tyr::{Error, ErrorKind};

use crate::log::now_us;

/// How often a transaction is run, or goes on elsewhere, before it gives up.
pub const TRIES_MAX: u32 = 64;

/// The runs of one transaction so far.
#[derive(Debug, Default)]
pub struct Tries(u32);

impl Tries {
    /// Whether it is to be run again after it ended so; then a pause is over.
    pub async fn again(&mut self, error: &Error) -> bool {
        self.0 += 1;
        let is_again = error.kind() == ErrorKind::Conflict && self.0 < TRIES_MAX;
        if is_again {
            let pause = self.pause(now_us());
            blocking::unblock(move || std::thread::sleep(pause)).await;
        }
        is_again
    }

    /// Doubling from 20 µs to 10 ms, and less by up to a half, so that two do not meet again.
    fn pause(&self, chance: u64) -> Duration {
        let ceiling_us = (20_u64 << self.0.min(9)).min(10_000);
        Duration::from_micros(ceiling_us / 2 + chance % (ceiling_us / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let pauses = |chance| (1..TRIES_MAX).map(move |n| Tries(n).pause(chance));
        assert!(pauses(0).is_sorted());
        assert!(pauses(u64::MAX).all(|pause| pause <= Duration::from_millis(10)));
        assert_eq!(Tries(1).pause(0), Duration::from_micros(20));
    }
}
