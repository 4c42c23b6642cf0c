//! What a key of the service metadata may be: a short UTF-8 path.

use std::borrow::Borrow;
use std::fmt;

use tyr_types::{Error, Result};

use super::limits::PATH_LEN_MAX;

/// A key: `cluster/map`, `service/log/epoch`. Parts are divided by `/`, which means nothing more
/// than that people agree on it; a prefix may end anywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct Path(String);

impl Path {
    /// The key of this text.
    ///
    /// # Errors
    /// `InvalidArgument` when it is empty, longer than [`PATH_LEN_MAX`], begins with `/`, or has a
    /// control character.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        let is_bad = |c: char| c.is_control();
        if text.is_empty() || text.starts_with('/') || text.chars().any(is_bad) {
            return Err(Error::invalid(format!(
                "a key is a path such as service/name: not empty, no / in front, no control \
                 characters; this one is {text:?}"
            )));
        }
        check_len(&text)?;
        Ok(Self(text))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Refuses a prefix that is longer than any key.
///
/// # Errors
/// `InvalidArgument`.
pub fn check_len(text: &str) -> Result<()> {
    match text.len() <= PATH_LEN_MAX {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "a key has at most {PATH_LEN_MAX} bytes, this one has {}",
            text.len()
        ))),
    }
}

impl TryFrom<String> for Path {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.0
    }
}

impl Borrow<str> for Path {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
