//! Time: days, windows, ranges, and times as text.
//!
//! Times are microseconds since 1970-01-01 UTC. All windows are aligned to UTC, so that a minute
//! belongs to one hour and an hour to one day, without leap seconds (as in Unix time).

use std::fmt;

use jiff::civil;
use serde::Serialize;
use tyr::{Error, Result};

/// Microseconds of a second.
pub const SECOND_US: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MINUTE_US: i64 = 60 * SECOND_US;
/// Microseconds of an hour.
pub const HOUR_US: i64 = 60 * MINUTE_US;
/// Microseconds of a day.
pub const DAY_US: i64 = 24 * HOUR_US;

/// The first day that can hold measurements: 1900-01-01.
pub const DAY_MIN: Day = Day(-25_567);
/// The last day that can hold measurements: 2199-12-31.
pub const DAY_MAX: Day = Day(84_005);

/// A day in UTC, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

impl Day {
    /// The day of this time. The time must be valid ([`validate_time`]).
    pub fn of(time_us: i64) -> Self {
        let day = time_us.div_euclid(DAY_US);
        Self(i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX }))
    }

    /// Its first microsecond.
    pub fn start_us(self) -> i64 {
        i64::from(self.0) * DAY_US
    }

    /// All of it.
    pub fn range(self) -> TimeRange {
        TimeRange { from_us: self.start_us(), to_us: self.start_us() + DAY_US }
    }

    /// The day written like `2026-11-21`; none for anything else and outside the calendar.
    pub fn parse(text: &str) -> Option<Self> {
        let date: civil::Date = (text.len() == 10).then(|| text.parse().ok())??;
        let day = Self(days_since_epoch(date));
        (DAY_MIN..=DAY_MAX).contains(&day).then_some(day)
    }
}

/// Written like `2026-11-21`.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = i64::from(self.0.clamp(DAY_MIN.0, DAY_MAX.0));
        let date = civil::date(1970, 1, 1) + jiff::Span::new().days(days);
        write!(f, "{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
    }
}

fn days_since_epoch(date: civil::Date) -> i32 {
    date.duration_since(civil::date(1970, 1, 1))
        .as_hours()
        .checked_div(24)
        .and_then(|days| i32::try_from(days).ok())
        .expect("a civil date is within ten thousand years of 1970")
}

/// Checks that a time can be recorded.
///
/// # Errors
/// `InvalidArgument` with the allowed range, and the likely reason: a wrong unit.
pub fn validate_time(time_us: i64) -> Result<()> {
    if (DAY_MIN..=DAY_MAX).contains(&Day::of(time_us)) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a measurement's time lies from {DAY_MIN} to {DAY_MAX}, {time_us} microseconds since 1970 \
         does not; check the unit (precision) of the timestamps"
    )))
}

/// The width of an aggregate's windows.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::EnumCount,
)]
#[serde(rename_all = "lowercase")]
pub enum Window {
    /// One minute.
    #[default]
    Minute,
    /// One hour.
    Hour,
    /// One day.
    Day,
}

impl Window {
    /// All of them, from narrow to wide.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Minute, Self::Hour, Self::Day];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// The window of this name.
    ///
    /// # Errors
    /// `InvalidArgument` with the names.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|window| window.name() == text).ok_or_else(|| {
            Error::invalid(format!(
                "a window is minute, hour or day, not \"{}\"",
                text.escape_debug()
            ))
        })
    }

    /// Its width in microseconds.
    pub fn len_us(self) -> i64 {
        match self {
            Self::Minute => MINUTE_US,
            Self::Hour => HOUR_US,
            Self::Day => DAY_US,
        }
    }
}

/// Times from `from_us` on, below `to_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeRange {
    /// The first microsecond.
    pub from_us: i64,
    /// One past the last microsecond.
    pub to_us: i64,
}

impl TimeRange {
    /// Every time that can be recorded.
    pub const ALL: Self =
        Self { from_us: DAY_MIN.0 as i64 * DAY_US, to_us: (DAY_MAX.0 as i64 + 1) * DAY_US };

    /// The times from `from_us` on, below `to_us`.
    ///
    /// # Errors
    /// `InvalidArgument` when it ends before it begins.
    pub fn new(from_us: i64, to_us: i64) -> Result<Self> {
        if from_us > to_us {
            return Err(Error::invalid(format!(
                "a range of time begins before it ends; {} is after {}",
                format_time(from_us),
                format_time(to_us)
            )));
        }
        Ok(Self { from_us, to_us })
    }

    /// Whether it holds this time.
    pub fn contains(self, time_us: i64) -> bool {
        self.from_us <= time_us && time_us < self.to_us
    }

    /// The times in both; empty when there are none.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        let from_us = self.from_us.max(other.from_us);
        Self { from_us, to_us: self.to_us.min(other.to_us).max(from_us) }
    }

    /// Whether it holds no time.
    pub fn is_empty(self) -> bool {
        self.from_us >= self.to_us
    }

    /// The range widened to whole windows.
    #[must_use]
    pub fn widened(self, window: Window) -> Self {
        let within = self.intersection(Self::ALL);
        let len = window.len_us();
        Self {
            from_us: within.from_us.div_euclid(len) * len,
            to_us: (within.to_us + len - 1).div_euclid(len) * len,
        }
    }

    /// Its first and last day; none when it is empty or outside the calendar.
    pub fn days(self) -> Option<(Day, Day)> {
        let within = self.intersection(Self::ALL);
        (!within.is_empty()).then(|| (Day::of(within.from_us), Day::of(within.to_us - 1)))
    }
}

/// A time as text, like `2026-11-21T08:15:00Z`, with a fraction where it has one.
pub fn format_time(time_us: i64) -> String {
    match jiff::Timestamp::from_microsecond(time_us) {
        Ok(timestamp) => timestamp.to_string(),
        Err(_) => format!("{time_us} µs"),
    }
}

/// Parses a time as text, in UTC where it does not say otherwise.
///
/// Understood are `2014-04-01`, `2014-04-01 00:00:00` (or with `T`, a fraction, `Z` or an offset),
/// a plain number (seconds since 1970, fractions allowed), `now`, and times before now like `-90s`,
/// `-15m`, `-6h`, `-7d`.
///
/// # Errors
/// `InvalidArgument` with these forms.
pub fn parse_time(text: &str, now_us: i64) -> Result<i64> {
    let text = text.trim();
    let parsed = if text == "now" {
        Some(now_us)
    } else if let Some(ago) = text.strip_prefix("now-").or_else(|| before_now(text)) {
        parse_duration_us(ago).and_then(|ago_us| now_us.checked_sub(ago_us))
    } else {
        parse_absolute(text)
    };
    parsed.ok_or_else(|| {
        Error::invalid(format!(
            "\"{}\" is not a time; write 2014-04-01, \"2014-04-01 00:00:00\", \
             2014-04-01T00:00:00Z, seconds since 1970, now, or -15m (s, m, h, d before now)",
            text.escape_debug()
        ))
    })
}

/// The part after `-`, when a unit follows the number: `-15m`, not the year or second `-15`.
fn before_now(text: &str) -> Option<&str> {
    text.strip_prefix('-').filter(|rest| rest.ends_with(['s', 'm', 'h', 'd']))
}

fn parse_duration_us(text: &str) -> Option<i64> {
    let unit = match text.as_bytes().last()? {
        b's' => SECOND_US,
        b'm' => MINUTE_US,
        b'h' => HOUR_US,
        b'd' => DAY_US,
        _ => return None,
    };
    text[..text.len() - 1].parse::<u32>().ok().and_then(|count| i64::from(count).checked_mul(unit))
}

/// Parses a time that does not depend on now: a date, a date and time, or seconds since 1970.
pub fn parse_absolute(text: &str) -> Option<i64> {
    if let Some(micros) = parse_seconds(text) {
        return Some(micros);
    }
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Some(timestamp.as_microsecond());
    }
    let moment: civil::DateTime = text.parse().ok()?;
    let time = moment.time();
    let of_day = i64::from(time.hour()) * HOUR_US
        + i64::from(time.minute()) * MINUTE_US
        + i64::from(time.second()) * SECOND_US
        + i64::from(time.subsec_nanosecond()) / 1000;
    Some(i64::from(days_since_epoch(moment.date())) * DAY_US + of_day)
}

fn parse_seconds(text: &str) -> Option<i64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte)) {
        return None;
    }
    if let Ok(seconds) = text.parse::<i64>() {
        return seconds.checked_mul(SECOND_US);
    }
    let micros = (text.parse::<f64>().ok()? * 1e6).round();
    (micros.abs() < i64::MAX as f64).then_some(micros as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_and_parsed_the_same() {
        for (day, text) in
            [(0, "1970-01-01"), (-1, "1969-12-31"), (-25_567, "1900-01-01"), (84_005, "2199-12-31")]
        {
            assert_eq!(Day(day).to_string(), text);
            assert_eq!(Day::parse(text), Some(Day(day)));
        }
        for bad in ["2200-01-01", "1899-12-31", "2014-13-01", "2014-1-1", "catalog", ""] {
            assert_eq!(Day::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_before_1970_belong_to_the_day_below() {
        assert_eq!(Day::of(-1), Day(-1));
        assert_eq!(Day::of(0), Day(0));
        assert!(Day(-1).range().contains(-1));
    }

    #[test]
    fn the_usual_forms_of_a_time_are_understood() {
        let april = 1_396_310_400_000_000;
        for text in [
            "2014-04-01",
            "2014-04-01 00:00:00",
            "2014-04-01T00:00:00",
            "2014-04-01T00:00:00Z",
            "2014-04-01T02:00:00+02:00",
            "1396310400",
            "1396310400.0",
        ] {
            assert_eq!(parse_time(text, 0).unwrap(), april, "{text}");
        }
        assert_eq!(parse_time("2014-04-01 00:00:00.25", 0).unwrap(), april + 250_000);
        assert_eq!(parse_time("now", 7).unwrap(), 7);
        assert_eq!(parse_time("-15m", april).unwrap(), april - 15 * MINUTE_US);
        assert_eq!(parse_time("now-2d", april).unwrap(), april - 2 * DAY_US);
        assert_eq!(parse_time("-15", 0).unwrap(), -15 * SECOND_US);
    }

    #[test]
    fn anything_else_is_refused_with_the_forms() {
        for bad in ["", "yesterday", "2014-02-30", "-5y", "--5m", "-9999999999999999d", "1e999"] {
            let error = parse_time(bad, 0).unwrap_err();
            assert!(error.message().contains("2014-04-01"), "{bad}: {error}");
        }
    }

    #[test]
    fn ranges_widen_to_whole_windows() {
        let range = TimeRange { from_us: 61 * SECOND_US, to_us: 121 * SECOND_US };
        let wide = range.widened(Window::Minute);
        assert_eq!((wide.from_us, wide.to_us), (MINUTE_US, 3 * MINUTE_US));
        assert_eq!(range.widened(Window::Day), Day(0).range());
        assert_eq!(TimeRange::ALL.widened(Window::Day), TimeRange::ALL);
    }
}
