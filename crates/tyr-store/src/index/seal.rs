//! The checksum behind every value of the index.
//!
//! The library below checks its blocks, but a block that is whole and in the wrong place, or the
//! library's own mistake, would pass. So each value ends in a crc32c over table, key and value,
//! made when it is put into a batch and checked whenever it is read.

use bytes::Bytes;
use tyr_types::{Error, Result};

use super::Table;

/// Bytes of the checksum at the end of every stored value.
const SEAL_LEN: usize = 4;

const _: () = assert!(SEAL_LEN == size_of::<u32>(), "a checksum is a crc32c");

fn checksum(table: Table, key: &[u8], value: &[u8]) -> u32 {
    let start = crc32c::crc32c_append(table as u32 + 1, key);
    // The key's length keeps apart what only differs in where the key ends.
    let start = crc32c::crc32c_append(start, &(key.len() as u32).to_le_bytes());
    crc32c::crc32c_append(start, value)
}

/// Appends the checksum to a value.
pub(super) fn close(table: Table, key: &[u8], value: &mut Vec<u8>) {
    let checksum = checksum(table, key, value);
    value.extend_from_slice(&checksum.to_le_bytes());
}

/// Checks a stored value and takes the checksum off.
pub(super) fn open(table: Table, key: &[u8], stored: Bytes) -> Result<Bytes> {
    let len = stored.len().checked_sub(SEAL_LEN);
    let is_whole =
        len.is_some_and(|len| checksum(table, key, &stored[..len]).to_le_bytes() == stored[len..]);
    match len {
        Some(len) if is_whole => Ok(stored.slice(..len)),
        Some(_) | None => Err(Error::corrupt(format!(
            "index table {}, key \"{}\": the value's checksum does not match",
            table.name(),
            key.escape_ascii()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_under_another_key_or_table_or_with_any_bit_flipped_is_refused() {
        let mut value = b"value".to_vec();
        close(Table::Blobs, b"key", &mut value);
        let stored = Bytes::from(value);
        assert_eq!(open(Table::Blobs, b"key", stored.clone()).unwrap(), "value");
        assert!(open(Table::Blobs, b"kez", stored.clone()).is_err());
        assert!(open(Table::Segments, b"key", stored.clone()).is_err());
        assert!(open(Table::Blobs, b"keyv", stored.slice(1..)).is_err());
        for bit in 0..stored.len() * 8 {
            let mut flipped = stored.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(Table::Blobs, b"key", flipped.into()).is_err(), "bit {bit}");
        }
        for len in 0..stored.len() {
            assert!(open(Table::Blobs, b"key", stored.slice(..len)).is_err(), "cut to {len}");
        }
    }
}
