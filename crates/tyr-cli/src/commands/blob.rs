//! How blobs are named on the command line: KEYSPACE KEY, everywhere.

use clap::Args;
use tyr::{ByteRange, Key, Result};

use crate::data::{self, parse_size};

/// One blob.
#[derive(Args, Debug)]
pub struct BlobArguments {
    /// The keyspace
    pub keyspace: String,

    /// The blob's key, as UTF-8 text
    key: String,

    /// KEY is given as hexadecimal digits, two a byte
    #[arg(long = "hex-key")]
    is_hex: bool,
}

impl BlobArguments {
    /// The key.
    pub fn key(&self) -> Result<Key> {
        parse_key(&self.key, self.is_hex)
    }
}

/// A range of one blob's bytes.
#[derive(Args, Debug)]
pub struct RangeArguments {
    /// The first byte
    #[arg(long, value_parser = parse_size, default_value = "0", value_name = "SIZE")]
    offset: u64,
    /// How many bytes; without, up to the blob's end
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    len: Option<u64>,
}

impl RangeArguments {
    /// The range; perhaps beyond the blob's end.
    pub fn range(&self) -> Result<ByteRange> {
        match self.len {
            Some(len) => ByteRange::at(self.offset, len),
            None => Ok(ByteRange::from(self.offset)),
        }
    }
}

/// Several blobs of one keyspace.
#[derive(Args, Debug)]
pub struct BlobsArguments {
    /// The keyspace
    pub keyspace: String,

    /// The blobs' keys, as UTF-8 text
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,

    /// The keys are given as hexadecimal digits, two a byte
    #[arg(long = "hex-key")]
    is_hex: bool,
}

impl BlobsArguments {
    /// The keys, in the order given.
    pub fn keys(&self) -> Result<Vec<Key>> {
        self.keys.iter().map(|key| parse_key(key, self.is_hex)).collect()
    }
}

/// The bytes of a key or a prefix of keys.
pub fn parse_key_bytes(text: &str, is_hex: bool) -> Result<Vec<u8>> {
    if is_hex { data::parse_hex(text) } else { Ok(text.as_bytes().to_vec()) }
}

/// A key.
pub fn parse_key(text: &str, is_hex: bool) -> Result<Key> {
    Key::new(parse_key_bytes(text, is_hex)?)
}
