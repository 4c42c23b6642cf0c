//! Names of files, and their place in the order of a directory.

use std::fmt;

use rustix::io::Errno;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// Bytes of a name.
pub const NAME_LEN_MAX: usize = 255;

/// Places in a directory's order below this are of no name: of its beginning, `.` and `..`.
pub const HASH_MIN: u64 = 16;

/// The name of a file within its directory: 1 to 255 bytes but `/` and NUL, neither `.` nor `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl Name {
    /// A name.
    ///
    /// # Errors
    /// `ENAMETOOLONG` above 255 bytes; `ENOENT` for no bytes; `EINVAL` for bytes that no name has,
    /// and for `.` and `..`.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self> {
        let bytes = bytes.as_ref();
        Self::check(bytes)?;
        Ok(Self(bytes.into()))
    }

    /// Whether these bytes are a name.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn check(bytes: &[u8]) -> Result<()> {
        match bytes {
            b"" => Err(Error::new(Errno::NOENT, "a file has a name, this is empty")),
            b"." | b".." => {
                let text = format!("{} is in every directory already", bytes.escape_ascii());
                Err(Error::new(Errno::INVAL, text))
            }
            _ if bytes.len() > NAME_LEN_MAX => Err(Error::new(
                Errno::NAMETOOLONG,
                format!("a name has at most {NAME_LEN_MAX} bytes, this has {}", bytes.len()),
            )),
            _ if bytes.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(Error::new(
                Errno::INVAL,
                format!("a name has neither `/` nor NUL: {}", bytes.escape_ascii()),
            )),
            _ => Ok(()),
        }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its place in the order of a directory: 63 bits, so that it fits the cookies of `readdir`.
    pub(crate) fn hash(&self) -> u64 {
        (xxh3_64(&self.0) >> 1).max(HASH_MIN)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
