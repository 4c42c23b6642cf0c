//! Where measurements come from. Each source feeds an [`Intake`](crate::Intake).
//!
//! Sources parse and name; they never decide how a measurement is kept. What they cannot use they
//! count, and go on.

pub mod apmon;
pub mod csv;
pub mod influx;
pub mod live;

use crate::series::Series;

/// A value that a source or the load generator took now.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What was measured.
    pub series: Series,
    /// How much.
    pub value: f64,
}

/// Microseconds since 1970 by the system's clock.
pub fn now_us() -> i64 {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
