//! What format a file system has: `"TYR-FS\0\0" · format u32 · segment bits u8 · 3 bytes of zeros`,
//! what it may have at most: `bytes u64 · names u64`, zero or not there for any number, and what
//! comes behind that, which is of later releases of the same format.

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

/// Where the quota is, and how long.
pub const QUOTA_AT: u64 = 16;
pub const QUOTA_LEN: u64 = 16;

/// What a file system may have at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of all files, holes included, and 512 for each record; `None` for any number.
    pub bytes: Option<u64>,
    /// Names, and directories once more; `None` for any number.
    pub files: Option<u64>,
}

impl Quota {
    /// Its bytes. A bound of nothing is one of 1.
    pub fn encode(self) -> [u8; QUOTA_LEN as usize] {
        let [bytes, files] = [self.bytes, self.files]
            .map(|limit| limit.map_or(0, |limit| limit.max(1)).to_le_bytes());
        let mut encoded = [0; QUOTA_LEN as usize];
        encoded[..8].copy_from_slice(&bytes);
        encoded[8..].copy_from_slice(&files);
        encoded
    }

    /// Of what is there; file systems that never had one have fewer bytes.
    pub fn decode(from: &[u8]) -> Self {
        let limit = |at: usize| {
            let bytes = from.get(at..at + 8)?.try_into().expect("eight bytes");
            Some(u64::from_le_bytes(bytes)).filter(|limit| *limit > 0)
        };
        Self { bytes: limit(0), files: limit(8) }
    }
}

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
