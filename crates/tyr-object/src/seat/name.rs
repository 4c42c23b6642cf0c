//! What a seat is called: its keyspace and its key, in characters that the service metadata takes.

use std::fmt;
use std::str::FromStr;

use tyr::{Error, Key, Result};

/// A seat: `KEYSPACE/KEY`, where bytes of the key that are no letter, digit or one of `_.-/` are
/// written as `%` and two hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeatName(String);

impl SeatName {
    /// The seat of this key in the keyspace of this name.
    pub fn new(keyspace: &str, key: &Key) -> Self {
        let mut text = format!("{keyspace}/");
        for byte in key.as_bytes() {
            match is_plain(*byte) {
                true => text.push(char::from(*byte)),
                false => text.push_str(&format!("%{byte:02x}")),
            }
        }
        Self(text)
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of its keyspace.
    pub fn keyspace(&self) -> &str {
        self.0.split_once('/').map_or("", |(keyspace, _)| keyspace)
    }

    /// Its key.
    ///
    /// # Errors
    /// `InvalidArgument` when it is too long.
    pub fn key(&self) -> Result<Key> {
        let text = self.0.split_once('/').map_or("", |(_, key)| key);
        let bytes = decode(text.as_bytes());
        Key::new(bytes.ok_or_else(|| unreadable(&self.0))?)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte)
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Some(bytes),
            [b'%', high, low, rest @ ..] => {
                let digit = |it: &u8| char::from(*it).to_digit(16);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                rest
            }
            [byte, rest @ ..] if is_plain(*byte) => {
                bytes.push(*byte);
                rest
            }
            _ => return None,
        };
    }
}

fn unreadable(text: &str) -> Error {
    Error::invalid(format!(
        "a seat is KEYSPACE/KEY, with bytes of the key that are no letter, digit or one of _.-/ as \
         %00 to %ff, as `tyr seat list` prints it; \"{}\" is none",
        text.escape_debug()
    ))
}

/// Fails with `InvalidArgument` for what is no name of a seat.
impl FromStr for SeatName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let key = text.split_once('/').filter(|(keyspace, _)| !keyspace.is_empty());
        let key = key.and_then(|(_, key)| decode(key.as_bytes()));
        match key.filter(|key| !key.is_empty()) {
            // Written in the one way in which it is written here.
            Some(key) => {
                let keyspace = text.split_once('/').map_or("", |(keyspace, _)| keyspace);
                Ok(Self::new(keyspace, &Key::new(key)?))
            }
            None => Err(unreadable(text)),
        }
    }
}

impl fmt::Display for SeatName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_keyspace_and_its_key_whatever_bytes_it_has() {
        for key in [&b"orders\0lock"[..], b"a/b", b"%", b"\xff\x00", "stra\u{df}e".as_bytes()] {
            let name = SeatName::new("zlogs", &Key::new(key).unwrap());
            assert_eq!(name.as_str().parse::<SeatName>().unwrap(), name);
            assert_eq!(name.keyspace(), "zlogs");
            assert_eq!(name.key().unwrap().as_bytes(), key);
            assert!(!name.as_str().chars().any(char::is_control));
        }
        assert_eq!(SeatName::new("z", &Key::new("a\0b").unwrap()).as_str(), "z/a%00b");
    }

    #[test]
    fn what_is_no_name_is_refused_and_another_spelling_is_the_same_seat() {
        for text in ["", "orders", "/orders", "zlogs/", "zlogs/a%0", "zlogs/a%zz", "zlogs/a b"] {
            assert!(text.parse::<SeatName>().is_err(), "{text}");
        }
        let name: SeatName = "zlogs/%6frders%00lock".parse().unwrap();
        assert_eq!(name.as_str(), "zlogs/orders%00lock");
    }
}
