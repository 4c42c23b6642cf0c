//! Extended attributes: a list in the order of names, in a file's record while it fits there, else
//! in a blob of its own; a directory's always there.
//!
//! ```text
//! bytes u32 · [ length of the name u8 · length of the value u32 · name · value ]*
//! ```

use std::collections::BTreeMap;

use rustix::io::Errno;

use super::record::{BODY_AT, RECORD_LEN};
use crate::error::{Error, Result};

/// Bytes of the name of an attribute.
pub const XATTR_NAME_LEN_MAX: usize = 255;
/// Bytes of a value.
pub const XATTR_VALUE_LEN_MAX: usize = 64 << 10;
/// Bytes of all attributes of a file, as they are stored.
pub const XATTRS_LEN_MAX: usize = 1 << 20;

/// Bytes that fit a record.
const INLINE_LEN: usize = RECORD_LEN - BODY_AT;

const COUNT_LEN: usize = 4;
const LENGTHS_LEN: usize = 5;

/// The attributes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xattrs(pub BTreeMap<Vec<u8>, Vec<u8>>);

impl Xattrs {
    /// Their bytes; of none, too.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; COUNT_LEN];
        for (name, value) in &self.0 {
            bytes.push(u8::try_from(name.len()).expect("names are checked"));
            let len = u32::try_from(value.len()).expect("values are checked");
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(value);
        }
        let len = u32::try_from(bytes.len() - COUNT_LEN).expect("all together are checked");
        bytes[..COUNT_LEN].copy_from_slice(&len.to_le_bytes());
        bytes
    }

    /// Their bytes in a record, if they fit.
    pub fn encode_inline(&self) -> Option<Box<[u8; INLINE_LEN]>> {
        let bytes = self.encode();
        let mut body = Box::new([0; INLINE_LEN]);
        body.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(body)
    }

    /// Decodes them.
    ///
    /// # Errors
    /// `EIO` for what is no such list.
    pub fn decode(from: &[u8]) -> Result<Self> {
        Self::parse(from).ok_or_else(|| Error::damaged("its extended attributes are no list"))
    }

    fn parse(from: &[u8]) -> Option<Self> {
        let (len, rest) = from.split_first_chunk()?;
        let mut rest = rest.get(..u32::from_le_bytes(*len) as usize)?;
        let mut all: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        while let Some((lengths, behind)) = rest.split_first_chunk::<LENGTHS_LEN>() {
            let value_len = u32::from_le_bytes(lengths[1..].try_into().ok()?) as usize;
            let (name, behind) = behind.split_at_checked(usize::from(lengths[0]))?;
            let (value, behind) = behind.split_at_checked(value_len)?;
            if name.is_empty() || all.last_key_value().is_some_and(|(last, _)| name <= &last[..]) {
                return None;
            }
            all.insert(name.to_vec(), value.to_vec());
            rest = behind;
        }
        rest.is_empty().then_some(Self(all))
    }

    /// Refuses what is out of range.
    ///
    /// # Errors
    /// `ERANGE` for a name, `E2BIG` for a value that is too long; `ENOSPC` for too many.
    pub fn check(&self) -> Result<()> {
        for (name, value) in &self.0 {
            if !(1..=XATTR_NAME_LEN_MAX).contains(&name.len()) {
                let text = format!("the name of an attribute has 1 to {XATTR_NAME_LEN_MAX} bytes");
                return Err(Error::new(Errno::RANGE, text));
            }
            if value.len() > XATTR_VALUE_LEN_MAX {
                let text = format!(
                    "a value has at most {XATTR_VALUE_LEN_MAX} bytes, this has {}",
                    value.len()
                );
                return Err(Error::new(Errno::TOOBIG, text));
            }
        }
        match self.encode().len() {
            0..=XATTRS_LEN_MAX => Ok(()),
            len => {
                let text = format!(
                    "all attributes of a file have at most {XATTRS_LEN_MAX} bytes, these {len}"
                );
                Err(Error::new(Errno::NOSPC, text))
            }
        }
    }
}
