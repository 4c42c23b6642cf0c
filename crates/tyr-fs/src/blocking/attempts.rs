//! A transaction until it is known what became of it, and how often another is tried.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr::{Committed, ErrorKind};

/// How often an operation is tried anew that meets changes by others.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// How long the outcome of a transaction is asked for, in a cluster that does not tell.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(60);

/// Lets others go first: nothing at first, then 20 µs to 5 ms, differing from thread to thread.
pub fn back_off(attempts: u32) {
    match attempts {
        0..=2 => std::thread::yield_now(),
        _ => {
            let ceiling_us = (10_u64 << attempts.min(9)).min(5_000);
            let moment = Instant::now();
            let chance = std::ptr::from_ref(&moment).addr() as u64 ^ u64::from(attempts);
            sleep(Duration::from_micros(ceiling_us / 2 + chance % (ceiling_us / 2)));
        }
    }
}

/// What became of a transaction: asks again for a minute where nobody said in time.
pub fn settled(store: &Tyr, mut outcome: tyr::Result<Committed>) -> tyr::Result<Committed> {
    let begun = Instant::now();
    loop {
        match outcome {
            Err(error)
                if error.kind() == ErrorKind::TimedOut && begun.elapsed() <= OUTCOME_TIMEOUT =>
            {
                sleep(Duration::from_millis(100));
                outcome = store.outcome(&error);
            }
            outcome => return outcome,
        }
    }
}
