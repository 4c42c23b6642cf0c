//! How a file system is made, and what time it is there.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use tyr::{KeyspaceConfig, PlacedBy};

use crate::error::{Error, Result};
use crate::layout::key::GROUP_LEN;
use crate::layout::record::{Access, Kind, Time};
use crate::layout::superblock::{SEGMENT_BITS_DEFAULT, SEGMENT_BITS_MAX, SEGMENT_BITS_MIN};

/// How a file system is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// How both keyspaces are made: replication, durability, compression. What says where blobs lie
    /// is the file system's, and so are chunk sizes: 64 MiB for names and small files, 4 MiB for
    /// content.
    pub keyspace_config: KeyspaceConfig,
    /// How long the segments of large files are, as a power of two: 16 (64 KiB) to 40 (1 TiB);
    /// 30 (1 GiB) unless set.
    pub segment_bits: u8,
    /// Rights, owner and group of the root: 0755, 0 and 0 unless set.
    pub root: Access,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keyspace_config: KeyspaceConfig::default(),
            segment_bits: SEGMENT_BITS_DEFAULT,
            root: Access { mode: 0o755, owner: 0, group: 0 },
        }
    }
}

impl Options {
    /// Refuses what is out of range.
    pub(crate) fn validate(&self) -> Result<()> {
        match self.segment_bits {
            SEGMENT_BITS_MIN..=SEGMENT_BITS_MAX => Ok(()),
            bits => Err(Error::new(
                Errno::INVAL,
                format!(
                    "segments have 2^{SEGMENT_BITS_MIN} to 2^{SEGMENT_BITS_MAX} bytes, not 2^{bits}"
                ),
            )),
        }
    }

    /// The configuration of a keyspace with chunks of this size.
    pub(crate) fn keyspace(&self, chunk_size: u64) -> KeyspaceConfig {
        let placed_by = PlacedBy::First(GROUP_LEN);
        KeyspaceConfig { chunk_size, placed_by, ..self.keyspace_config.clone() }
    }
}

/// What is said of a file that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its kind; directories and symlinks have calls of their own.
    pub kind: Kind,
    /// Rights, owner and group.
    pub access: Access,
    /// Of a device, which; else 0.
    pub device: u32,
}

impl NewFile {
    /// A regular file.
    pub fn regular(access: Access) -> Self {
        Self { kind: Kind::Regular, access, device: 0 }
    }
}

/// Whether it is noted when bytes of an open file are read: its atime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessTimes {
    /// When it was not read since it was changed, or for a day: `relatime`.
    #[default]
    Relative,
    /// Never: `noatime`.
    Never,
}

/// What a file system asks for the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Time + Send + Sync>);

impl Clock {
    /// A clock of one's own, for tests.
    pub fn new(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// This machine's.
    pub fn system() -> Self {
        Self::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Time::new(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
        })
    }

    pub(crate) fn now(&self) -> Time {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
