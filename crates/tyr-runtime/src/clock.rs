//! The machine's clock, and the only source of random numbers.

#[cfg(feature = "shifted-clock")]
mod shift;

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970; 0 on a machine whose clock is set before that.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_us = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
    #[cfg(feature = "shifted-clock")]
    let now_us = now_us.saturating_add_signed(shift::shift_us());
    now_us
}

/// Microseconds on a clock that neither jumps nor goes back, and goes on while the machine sleeps:
/// a lease runs out in its sleep, too (M3).
pub fn steady_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanoseconds) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds * 1_000_000 + nanoseconds / 1000
}

/// 64 random bits, different in every process.
pub fn random_u64() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((now_us(), std::process::id()))
}
