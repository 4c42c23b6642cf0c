//! What format a file system has: `"TYR-FS\0\0" · format u32 · segment bits u8 · 3 bytes of zeros`,
//! and what comes behind that, which is of later releases of the same format.

use rustix::io::Errno;

use crate::error::{Error, Result};

/// The format that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// How long segments are unless said otherwise, as a power of two: 1 GiB.
pub const SEGMENT_BITS_DEFAULT: u8 = 30;

/// The shortest segments there are, as a power of two: 64 KiB.
pub const SEGMENT_BITS_MIN: u8 = 16;

/// The longest.
pub const SEGMENT_BITS_MAX: u8 = 40;

const MAGIC: &[u8; 8] = b"TYR-FS\0\0";

/// What holds for all of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// How long the segments of new files are, as a power of two.
    pub segment_bits: u8,
}

impl Superblock {
    /// Its bytes.
    pub fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12] = self.segment_bits;
        bytes
    }

    /// Decodes a superblock.
    ///
    /// # Errors
    /// `EIO` for what is none; `EOPNOTSUPP` for one of a format that this program does not know.
    pub fn decode(from: &[u8]) -> Result<Self> {
        let Some(bytes) = from.first_chunk::<16>().filter(|bytes| bytes.starts_with(MAGIC)) else {
            return Err(Error::damaged("the superblock does not begin as one"));
        };
        let format = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        if format != FORMAT {
            return Err(Error::new(
                Errno::OPNOTSUPP,
                format!(
                    "the file system has format {format}, this program knows format {FORMAT}: use \
                     the release that made it, or a later one"
                ),
            ));
        }
        let segment_bits = bytes[12];
        match segment_bits {
            SEGMENT_BITS_MIN..=SEGMENT_BITS_MAX => Ok(Self { segment_bits }),
            _ => Err(Error::damaged(format!("the superblock has segments of 2^{segment_bits}"))),
        }
    }
}
