//! Bytes, sizes and keys as people type and read them.
//!
//! On the command line and in scripts a value is text, or `hex:00ff`, or `base64:AP8=`. A size is
//! a number with an optional unit. Nothing here knows of stores.

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use serde_json::{Value, json};
use tyr::{Error, Key, Result, Timestamp};
use tyr_telemetry::calendar::format_time;

/// The bytes that `text` stands for: those after `hex:` or `base64:` decoded, else its own.
///
/// # Errors
/// `InvalidArgument` when what follows the prefix does not decode.
pub fn parse_bytes(text: &str) -> Result<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("hex:") {
        return parse_hex(digits);
    }
    match text.strip_prefix("base64:") {
        Some(letters) => BASE64.decode(letters.as_bytes()).map_err(|error| {
            Error::invalid(format!("\"{}\" is not base64: {error}", letters.escape_debug()))
        }),
        None => Ok(text.as_bytes().to_vec()),
    }
}

/// The bytes of `digits`, two hexadecimal digits a byte.
///
/// # Errors
/// `InvalidArgument` when they are not such digits, or an odd number of them.
pub fn parse_hex(digits: &str) -> Result<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map_err(|error| {
        Error::invalid(format!(
            "\"{}\" is not hexadecimal, two digits a byte: {error}",
            digits.escape_debug()
        ))
    })
}

/// Base64 with padding, as `base64:` takes it.
pub fn to_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Lower-case hexadecimal, as `hex:` takes it.
pub fn to_hex(bytes: &[u8]) -> String {
    HEXLOWER_PERMISSIVE.encode(bytes)
}

/// The key in JSON: text where it is UTF-8 (else escaped), and always the exact bytes in hex.
pub fn key_json(key: &Key) -> Value {
    let bytes = key.as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"key": text, "key_hex": to_hex(bytes)}),
        Err(_) => json!({"key": key.to_string(), "key_hex": to_hex(bytes)}),
    }
}

/// `fields` with those of [`key_json`] added.
pub fn with_key(key: &Key, mut fields: Value) -> Value {
    if let (Value::Object(fields), Value::Object(named)) = (&mut fields, key_json(key)) {
        fields.extend(named);
    }
    fields
}

/// The key as people read it: UTF-8 without control characters as it is, else escaped.
pub fn key_text(key: &Key) -> String {
    bytes_text(key.as_bytes())
}

/// The same of bytes that are no key, as those of a group.
pub fn bytes_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) && !text.contains('\\') => text.to_owned(),
        Ok(_) | Err(_) => bytes.escape_ascii().to_string(),
    }
}

const UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
];

/// Bytes from text like `4096`, `64MiB`, `1.5 GB`; for clap.
///
/// # Errors
/// A text that names the units.
pub fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let complaint = || {
        format!(
            "\"{}\" is not a size; give a number of bytes, or one with KiB, MiB, GiB, TiB (powers \
             of 1024) or KB, MB, GB, TB (powers of 1000)",
            text.escape_debug()
        )
    };
    let lower = text.trim().to_ascii_lowercase();
    let split = |(name, factor): &(&str, u64)| Some((lower.strip_suffix(name)?, *factor));
    let Some((number, factor)) = UNITS.iter().find_map(split) else {
        return lower.parse().map_err(|_| complaint());
    };
    let number = number.trim();
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(complaint);
    }
    let bytes = number.parse::<f64>().map_err(|_| complaint())? * factor as f64;
    if !bytes.is_finite() || !(0.0..=(1_u64 << 53) as f64).contains(&bytes) {
        return Err(complaint());
    }
    Ok(bytes.round() as u64)
}

/// Bytes as people read them: `4.0 KiB`.
pub fn size_text(bytes: u64) -> String {
    let mut value = bytes as f64;
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    for unit in ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} EiB")
}

/// The time of a version as people read it, to the second, in UTC. The clock of versions runs ahead
/// of the day by microseconds at most, unless that of a machine was wrong.
pub fn version_time(version: Timestamp) -> String {
    time_text(version.clock)
}

/// A time in microseconds since 1970 as people read it, to the second, in UTC.
pub fn time_text(time_us: u64) -> String {
    let seconds = i64::try_from(time_us / 1_000_000).unwrap_or(i64::MAX);
    format_time(seconds.saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_text_unless_a_prefix_says_otherwise() {
        assert_eq!(parse_bytes("hällo").unwrap(), "hällo".as_bytes());
        assert_eq!(parse_bytes("hex:00fF10").unwrap(), [0, 255, 16]);
        assert_eq!(parse_bytes("base64:AP8=").unwrap(), [0, 255]);
        assert_eq!(parse_bytes("hex:").unwrap(), [0; 0]);
        assert!(parse_bytes("hex:0").unwrap_err().message().contains("two digits"));
        assert!(parse_bytes("hex:zz").is_err());
        assert!(parse_bytes("base64:?").is_err());
    }

    #[test]
    fn sizes_take_units_of_both_kinds() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4KiB", 4096),
            ("64 mib", 64 << 20),
            ("1.5GB", 1_500_000_000),
            ("7B", 7),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "KiB", "-1", "7BB", "3 apples", "1e400GB", "99999999999999999999", "nanMB"]
        {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn versions_have_the_time_of_their_clock() {
        let version = Timestamp { clock: 1_700_000_000_999_999, ..Timestamp::ZERO };
        assert_eq!(version_time(version), "2023-11-14T22:13:20Z");
        assert!(!version_time(Timestamp::MAX).is_empty());
    }

    #[test]
    fn sizes_print_with_the_unit_that_fits() {
        assert_eq!(size_text(0), "0 B");
        assert_eq!(size_text(1023), "1023 B");
        assert_eq!(size_text(1536), "1.5 KiB");
        assert_eq!(size_text(4 << 30), "4.0 GiB");
    }

    #[test]
    fn keys_that_are_not_plain_text_are_escaped_and_kept_in_hex() {
        let plain = Key::new("näme/1").unwrap();
        assert_eq!(key_text(&plain), "näme/1");
        let binary = Key::new([0, 255, b'a']).unwrap();
        assert_eq!(key_text(&binary), "\\x00\\xffa");
        assert_eq!(with_key(&binary, json!({"size": 1}))["key_hex"], "00ff61");
        assert_eq!(with_key(&plain, json!({}))["key"], "näme/1");
    }
}
