//! Kept snapshots: moments with a name, which can be read until they are dropped.

use std::fmt;

use crate::error::{Error, Result};
use crate::limits;
use crate::timestamp::Timestamp;

/// The name of a kept snapshot: 1 to 64 of `A-Z a-z 0-9 _ . : -`, starting with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeptName(String);

impl KeptName {
    /// A name of this text.
    ///
    /// # Errors
    /// `InvalidArgument` with the allowed characters and length.
    pub fn new(text: &str) -> Result<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
        let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        let is_short = text.len() <= limits::KEPT_NAME_LEN_MAX;
        if !is_short || !starts_well || !text.bytes().all(is_allowed) {
            return Err(Error::invalid(format!(
                "the name of a kept snapshot is 1 to {} of A-Z a-z 0-9 _ . : - and starts with a \
                 letter or digit; \"{}\" is not",
                limits::KEPT_NAME_LEN_MAX,
                text.escape_debug()
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A kept snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// Its name.
    pub name: KeptName,
    /// Its moment. The clock is in microseconds since 1970, about. Of a cluster it is to be shown
    /// only: its moment is where the epoch begins.
    pub at: Timestamp,
    /// Bytes that are held for it, and for older ones, since they were replaced after its moment
    /// and before that of the next one. Of a cluster at all nodes that answer together.
    pub bytes: u64,
    /// Why it, or part of it, cannot be read any more, if that is known. What is held for it stays
    /// until it is dropped.
    pub unreadable: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["a", "2026-01-31T12:00", "Before.upgrade_3"] {
            assert_eq!(KeptName::new(name).unwrap().as_str(), name);
        }
        for name in ["", "-a", "a b", "a/b", "ä", &"x".repeat(65)] {
            KeptName::new(name).unwrap_err();
        }
    }
}
