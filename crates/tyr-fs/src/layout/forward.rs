//! Where a file that lies in an entry has gone to: `directory u64 · name`, in the group of its
//! number. Who has the file open finds it again by this.

use super::name::Name;
use crate::error::{Error, Result};

/// A directory and a name in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The directory's number.
    pub directory: u64,
    /// The name there.
    pub name: Name,
}

impl Place {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        [&self.directory.to_le_bytes()[..], self.name.as_bytes()].concat()
    }

    /// Decodes a forward.
    ///
    /// # Errors
    /// `EIO` for what is none.
    pub fn decode(from: &[u8]) -> Result<Self> {
        let (directory, name) = from
            .split_first_chunk()
            .ok_or_else(|| Error::damaged("a forward ends within its directory"))?;
        let name = Name::new(name).map_err(|error| Error::damaged(error.text()))?;
        Ok(Self { directory: u64::from_le_bytes(*directory), name })
    }
}
