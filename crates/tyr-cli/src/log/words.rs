//! Places, times and entries, as people type and read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tyr::Error;
use tyr_log::{Entry, Start};
use tyr_telemetry::calendar::parse_time;

use crate::data::{time_text, to_base64};

/// Where to begin: `oldest`, `newest`, `number:N`, `time:TIME`, or a place.
pub fn parse_start(text: &str) -> Result<Start, String> {
    let explain = |error: Error| error.message().to_owned();
    if let Some(number) = text.strip_prefix("number:") {
        let number = number.parse().map_err(|_| format!("\"{number}\" is no number of an entry"));
        return number.map(Start::Number);
    }
    if let Some(time) = text.strip_prefix("time:") {
        let time_us = parse_time(time, now_us()).map_err(explain)?;
        return Ok(Start::Time(u64::try_from(time_us).unwrap_or(0)));
    }
    match text {
        "oldest" => Ok(Start::Oldest),
        "newest" => Ok(Start::Newest),
        place => place.parse().map(Start::At).map_err(|error: Error| {
            format!("{}; or oldest, newest, number:N, time:TIME", error.message())
        }),
    }
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A duration: a number of seconds, or one with s, m, h or d.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|it: char| !it.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        _ => None,
    };
    let number = number.parse::<u64>().ok().filter(|number| *number > 0);
    let total = number.zip(seconds).and_then(|(number, unit)| number.checked_mul(unit));
    total.map(Duration::from_secs).ok_or_else(|| {
        format!("\"{}\" is no duration: give one like 90s, 15m, 6h or 7d", text.escape_debug())
    })
}

/// A duration in the largest unit that it is whole in.
pub fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let unit = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let whole = unit.iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
}

/// An entry in JSON: text where it is UTF-8, and else base64.
pub fn entry_json(entry: &Entry) -> Value {
    let mut fields = json!({
        "position": entry.position.to_string(),
        "time": time_text(entry.stamp.clock),
        "stamp": entry.stamp.to_string(),
    });
    if let Some(number) = entry.number {
        fields["number"] = json!(number);
    }
    match std::str::from_utf8(&entry.data) {
        Ok(text) => fields["text"] = json!(text),
        Err(_) => fields["base64"] = json!(to_base64(&entry.data)),
    }
    fields
}

/// What stands before an entry that is shown with its place.
pub fn entry_head(entry: &Entry) -> String {
    let number = entry.number.map_or_else(String::new, |number| format!("{number}  "));
    format!("{}  {}  {number}", time_text(entry.stamp.clock), entry.position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_words_numbers_times_and_places() {
        assert_eq!(parse_start("oldest"), Ok(Start::Oldest));
        assert_eq!(parse_start("newest"), Ok(Start::Newest));
        assert_eq!(parse_start("number:7"), Ok(Start::Number(7)));
        assert_eq!(parse_start("time:1700000000"), Ok(Start::Time(1_700_000_000_000_000)));
        assert_eq!(parse_start("0:1:64"), Ok(Start::At("0:1:64".parse().unwrap())));
        for bad in ["first", "number:x", "time:soon", "0:1"] {
            assert!(parse_start(bad).is_err(), "{bad}");
        }
        assert!(parse_start("first").unwrap_err().contains("or oldest, newest"));
    }

    #[test]
    fn durations_are_read_as_they_are_shown() {
        for text in ["90s", "15m", "6h", "7d"] {
            assert_eq!(duration_text(parse_duration(text).unwrap()), text);
        }
        assert_eq!(parse_duration("60"), Ok(Duration::from_secs(60)));
        for bad in ["", "0", "5w", "m", "-1s", "99999999999999999999d", "213503982334602d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
