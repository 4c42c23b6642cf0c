//! Keys: 256 bits that a machine drew, shown as hexadecimal digits, kept as their hash.

use std::fmt;

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use tyr_types::{Error, Result};

/// Random bytes of a key.
const KEY_LEN: usize = 32;

/// A key as its user has it. Not printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// What is kept of a key: its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHash([u8; KEY_LEN]);

impl Key {
    /// A new key.
    ///
    /// # Errors
    /// `Unavailable` when the system has no random numbers.
    pub fn draw() -> Result<Self> {
        let mut bytes = [0; KEY_LEN];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| Error::unavailable("the system gives no random numbers for a key"))?;
        assert_ne!(bytes, [0; KEY_LEN], "the system drew what it said it drew");
        Ok(Self(hex(&bytes)))
    }

    /// The key that somebody shows.
    pub fn of(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// For its user's eyes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn hash(&self) -> KeyHash {
        let digest = digest::digest(&digest::SHA256, self.0.as_bytes());
        KeyHash(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl KeyHash {
    /// As hexadecimal digits.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// From hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 2 * KEY_LEN {
            return None;
        }
        let mut hash = [0; KEY_LEN];
        for (byte, digits) in hash.iter_mut().zip(bytes.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHash({}..)", &self.to_hex()[..8])
    }
}

fn hex(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    debug_assert_eq!(text.len(), 2 * bytes.len(), "two digits a byte");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_hashes_read_back() {
        let [one, other] = [Key::draw().unwrap(), Key::draw().unwrap()];
        assert_ne!(one, other);
        assert_eq!(one.hash(), Key::of(&format!(" {}\n", one.as_str())).hash());
        assert_eq!(KeyHash::from_hex(&one.hash().to_hex()), Some(one.hash()));
        assert_eq!(KeyHash::from_hex("12"), None);
        assert!(!format!("{one:?}").contains(one.as_str()));
    }
}
