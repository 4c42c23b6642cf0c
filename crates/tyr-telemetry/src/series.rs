//! What is measured: a series of values, and one value of it.
//!
//! A generator is whatever produces one series: (site, cluster, host, parameter, job). Names are
//! any UTF-8; only their length is bound, because they become part of blob keys.

use serde::Serialize;
use tyr::{Error, Result};

use crate::calendar;
use crate::layout;

/// The largest magnitude of a value. Below it no sum of 2^63 values can overflow an `f64`, so a
/// sum in place is always a number, and its rounding error always has a bound.
pub const VALUE_MAX: f64 = 1e288;

const _: () = assert!(VALUE_MAX * (i64::MAX as f64) < f64::MAX);

/// The names of one generator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Series {
    /// The institute, data centre, or whatever else has a place.
    pub site: String,
    /// The group of hosts at that site.
    pub cluster: String,
    /// The machine, sensor or process in that cluster.
    pub host: String,
    /// What is measured there.
    pub parameter: String,
    /// The activity it is measured for; it may span sites.
    pub job: String,
}

impl Series {
    /// The measurement of `value` at `time_us`.
    pub fn at(&self, time_us: i64, value: f64) -> Measurement<'_> {
        Measurement {
            site: &self.site,
            cluster: &self.cluster,
            host: &self.host,
            parameter: &self.parameter,
            job: &self.job,
            time_us,
            value,
        }
    }
}

/// One value of one series at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement<'a> {
    /// The institute, data centre, or whatever else has a place.
    pub site: &'a str,
    /// The group of hosts at that site.
    pub cluster: &'a str,
    /// The machine, sensor or process in that cluster.
    pub host: &'a str,
    /// What is measured there.
    pub parameter: &'a str,
    /// The activity it is measured for.
    pub job: &'a str,
    /// When, in microseconds since 1970-01-01 UTC; negative before.
    pub time_us: i64,
    /// How much: finite, at most [`VALUE_MAX`] in magnitude.
    pub value: f64,
}

impl Measurement<'_> {
    /// The names of its generator.
    pub fn series(&self) -> Series {
        Series {
            site: self.site.to_owned(),
            cluster: self.cluster.to_owned(),
            host: self.host.to_owned(),
            parameter: self.parameter.to_owned(),
            job: self.job.to_owned(),
        }
    }

    /// Checks value and time; the names are checked where they become keys.
    ///
    /// # Errors
    /// `InvalidArgument` with the allowed range.
    pub fn validate(&self) -> Result<()> {
        if !self.value.is_finite() || self.value.abs() > VALUE_MAX {
            return Err(Error::invalid(format!(
                "a value is a number from -{VALUE_MAX:e} to {VALUE_MAX:e}, not {}; {} is not \
                 recorded",
                self.value, self.parameter
            )));
        }
        calendar::validate_time(self.time_us)
    }

    /// The five names in the order of [`layout`], for one loop over all.
    pub(crate) fn names(&self) -> [(&'static str, &str); layout::SERIES_NAMES] {
        [
            ("site", self.site),
            ("cluster", self.cluster),
            ("host", self.host),
            ("parameter", self.parameter),
            ("job", self.job),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(value: f64, time_us: i64) -> Measurement<'static> {
        Measurement { site: "s", cluster: "c", host: "h", parameter: "p", job: "j", time_us, value }
    }

    #[test]
    fn values_that_are_no_number_or_too_large_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2e288, -2e288] {
            let error = measurement(bad, 0).validate().unwrap_err();
            assert!(error.message().contains("1e288"), "{error}");
        }
        measurement(-1e288, 0).validate().unwrap();
    }

    #[test]
    fn times_outside_the_calendar_are_refused_with_its_range() {
        for bad in [i64::MIN, i64::MAX, 1_700_000_000_000_000_000] {
            let error = measurement(1.0, bad).validate().unwrap_err();
            assert!(error.message().contains("1900-01-01"), "{error}");
        }
    }
}
