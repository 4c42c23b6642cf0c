//! What logs can be called.
//!
//! Names stand in keys, between separators that they cannot have: so no two logs share a key.

use std::fmt;

use tyr::{Error, Result};

/// Characters of a name: with them and the rest of it a key stays short.
pub const NAME_LEN_MAX: usize = 200;

/// The name of a log: 1 to 200 characters of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(Box<str>);

impl Name {
    /// The name that `text` is.
    ///
    /// # Errors
    /// `InvalidArgument` with what is allowed.
    pub fn new(text: &str) -> Result<Self> {
        let is_fit = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
        if text.is_empty() || text.len() > NAME_LEN_MAX || !text.chars().all(is_fit) {
            return Err(Error::invalid(format!(
                "\"{}\" cannot be the name of a log: give 1 to {NAME_LEN_MAX} letters, digits, \
                 dots, hyphens and underscores",
                text.escape_debug()
            )));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
