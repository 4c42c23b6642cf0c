//! Names of nodes, keyspaces, blobs and transactions.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;

/// A node of a cluster; chains pass through nodes in this order. An embedded store is node 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// A keyspace, by the number it got at creation. Numbers start at 1 and are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyspaceId(pub u32);

/// The name of one transaction for all time: 64 random bits of its client, then the client's count.
///
/// A retried commit carries the same id, and takes effect once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u128);

impl TransactionId {
    /// The id of the `sequence`-th transaction of the client that drew `client`.
    pub fn new(client: u64, sequence: u64) -> Self {
        Self(u128::from(client) << 64 | u128::from(sequence))
    }
}

/// The key of a blob in its keyspace: 1 to [`limits::KEY_LEN_MAX`] bytes of any value.
///
/// Cheap to clone: clones share the bytes. Keys order as byte strings.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<[u8]>);

/// Bytes behind the key in the key of a chunk: its end and the chunk's number.
const CHUNK_SUFFIX_LEN: usize = 2 + size_of::<u64>();

impl Key {
    /// A key of these bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when it is empty or longer than [`limits::KEY_LEN_MAX`].
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self> {
        let bytes = bytes.as_ref();
        if bytes.is_empty() || bytes.len() > limits::KEY_LEN_MAX {
            return Err(Error::invalid(format!(
                "a key is 1 to {} bytes long, this one has {}",
                limits::KEY_LEN_MAX,
                bytes.len()
            )));
        }
        Ok(Self(bytes.into()))
    }

    /// The key under which a node keeps a chunk of the blob of this key: the key with 00 as 00 FF,
    /// then 00 01, then the chunk's number in 8 bytes, so that the keys of chunks order as key and
    /// number do. It may be longer than keys of users are.
    #[must_use]
    pub fn of_chunk(&self, chunk: u64) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + CHUNK_SUFFIX_LEN);
        for byte in &*self.0 {
            bytes.push(*byte);
            if *byte == 0 {
                bytes.push(0xFF);
            }
        }
        bytes.extend_from_slice(&[0, 1]);
        bytes.extend_from_slice(&chunk.to_be_bytes());
        Self(bytes.into())
    }

    /// Key and number of a key that [`Key::of_chunk`] made; `None` when it is none.
    pub fn split_chunk(&self) -> Option<(Self, u64)> {
        let (escaped, chunk) = self.0.split_last_chunk()?;
        let mut escaped = escaped.strip_suffix(&[0, 1])?.iter();
        let mut key = Vec::with_capacity(escaped.len());
        while let Some(byte) = escaped.next() {
            key.push(*byte);
            if *byte == 0 && escaped.next() != Some(&0xFF) {
                return None;
            }
        }
        Some((Self::new(key).ok()?, u64::from_be_bytes(*chunk)))
    }

    /// A key as a store keeps it: a user's, or one of a chunk.
    ///
    /// # Errors
    /// `InvalidArgument` when it is neither.
    pub fn stored(bytes: impl AsRef<[u8]>) -> Result<Self> {
        let bytes = bytes.as_ref();
        if bytes.len() <= limits::KEY_LEN_MAX {
            return Self::new(bytes);
        }
        let key = Self(bytes.into());
        match key.split_chunk() {
            Some(_) => Ok(key),
            None => Self::new(bytes),
        }
    }

    /// The lowest key of all: a single zero byte.
    pub fn lowest() -> Self {
        Self([0].into())
    }

    /// A place among keys, where a range begins or ends: any bytes, also more than a key has. No
    /// bytes are before all keys.
    #[must_use]
    pub fn bound(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// The bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Printed as text where it is printable ASCII, else with `\xNN`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// A blob: its keyspace and its key there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName {
    /// The keyspace that holds it.
    pub keyspace: KeyspaceId,
    /// Its key there.
    pub key: Key,
}

impl BlobName {
    /// As it is printed, with the keyspace's name in the place of its number.
    pub fn in_keyspace(&self, name: impl fmt::Display) -> String {
        format!("keyspace {name} blob \"{}\"", self.key)
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_keyspace(self.keyspace.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_no_bytes_or_too_many_are_refused() {
        assert!(Key::new("").is_err());
        assert!(Key::new(vec![0; limits::KEY_LEN_MAX]).is_ok());
        assert!(Key::new(vec![0; limits::KEY_LEN_MAX + 1]).is_err());
    }

    #[test]
    fn keys_of_chunks_split_again_and_order_as_key_and_number() {
        let long = Key::new(vec![7; limits::KEY_LEN_MAX]).unwrap();
        let stored = long.of_chunk(3);
        assert_eq!(Key::stored(stored.as_bytes()).unwrap().split_chunk(), Some((long, 3)));
        let [a, ab] = [Key::new("a").unwrap(), Key::new("a\0").unwrap()];
        assert!(a.of_chunk(1) < a.of_chunk(256));
        assert!(a.of_chunk(1) < ab.of_chunk(0));
        let zeros = Key::new(vec![0; limits::KEY_LEN_MAX]).unwrap();
        let stored = Key::stored(zeros.of_chunk(9).as_bytes()).unwrap();
        assert_eq!(stored.split_chunk(), Some((zeros, 9)));
        assert_eq!(Key::lowest().split_chunk(), None);
    }

    #[test]
    fn keys_order_as_byte_strings() {
        let [a, b] = [Key::new([1, 255]).unwrap(), Key::new([2]).unwrap()];
        assert!(a < b);
    }
}
