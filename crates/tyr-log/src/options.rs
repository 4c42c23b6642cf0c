//! What a log is created with. It stays so for the log's life, but for its retention.

use std::time::Duration;

use tyr::{Error, KeyspaceConfig, PlacedBy, Result};

use crate::frame::FRAME_LEN_MAX;

/// The keyspace of logs that do not say.
pub const KEYSPACE_DEFAULT: &str = "logs";

/// Partitions of a log: each reader asks for all of them at once.
pub const PARTITIONS_MAX: u16 = 1024;

/// The smallest segment: below it a log would roll more often than it appends.
pub const SEGMENT_BYTES_MIN: u64 = 1 << 10;

/// The segment of a log that does not say: half a chunk, so that what comes while it is being
/// closed stays in the chunk.
pub const SEGMENT_BYTES_DEFAULT: u64 = 32 << 20;

/// The byte of a key behind which nothing places a blob: what is behind it lies together.
pub const PLACING_BYTE: u8 = 0;

/// What a log is created with; see [`Log::create`](crate::Log::create).
#[derive(Clone, Debug)]
pub struct Options {
    /// The keyspace that holds it, made if it is missing. Default `logs`.
    pub keyspace: String,
    /// What the keyspace is created with, if it is. Default: chunks of 64 MiB, `sync`, three
    /// replicas, placed by what comes before the first byte 0.
    pub keyspace_config: KeyspaceConfig,
    /// How many rows of segments take entries side by side, 1 to 1,024. Default 1, which has one
    /// strict order.
    pub partitions: u16,
    /// Bytes after which a partition goes on in another segment, from 1 KiB to a chunk less 8 MiB.
    /// Default 32 MiB, or what fits the keyspace's chunks. What is trimmed goes in whole segments.
    pub segment_bytes: Option<u64>,
    /// What may go by itself. Default nothing.
    pub retention: Retention,
    /// Whether all partitions have one strict order, and each entry a number. Default false.
    pub is_strict: bool,
}

/// What of a log may go by itself, whenever it goes on in another segment: what is too old *or* too
/// much. Whole segments go, and never the last of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Entries older than this; `None`: no entry is too old.
    pub age: Option<Duration>,
    /// All but the newest so many bytes, of all partitions together; `None`: there is no bound.
    pub bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keyspace: KEYSPACE_DEFAULT.to_owned(),
            keyspace_config: KeyspaceConfig {
                placed_by: PlacedBy::UpTo(PLACING_BYTE),
                ..KeyspaceConfig::default()
            },
            partitions: 1,
            segment_bytes: None,
            retention: Retention::default(),
            is_strict: false,
        }
    }
}

impl Options {
    /// Bytes of a segment in a keyspace with chunks of this size.
    pub(crate) fn segment_bytes_in(&self, chunk_size: u64) -> u64 {
        let fitting = segment_bytes_max(chunk_size).max(SEGMENT_BYTES_MIN);
        self.segment_bytes.unwrap_or(SEGMENT_BYTES_DEFAULT.min(fitting))
    }

    /// Refuses what is out of range, for a keyspace as it is.
    pub(crate) fn validate_in(&self, config: &KeyspaceConfig) -> Result<()> {
        if !(1..=PARTITIONS_MAX).contains(&self.partitions) {
            return Err(Error::invalid(format!(
                "a log has 1 to {PARTITIONS_MAX} partitions, not {}",
                self.partitions
            )));
        }
        if !config.is_multi_versioned {
            return Err(Error::invalid(format!(
                "keyspace {} keeps no older versions, and readers of a log look at one moment of \
                 it: choose a multi-versioned keyspace",
                self.keyspace
            )));
        }
        let (bytes, max) =
            (self.segment_bytes_in(config.chunk_size), segment_bytes_max(config.chunk_size));
        if !(SEGMENT_BYTES_MIN..=max).contains(&bytes) {
            return Err(Error::invalid(format!(
                "a segment has {SEGMENT_BYTES_MIN} to {max} bytes in keyspace {}, so that it lies \
                 in one chunk of {}, not {bytes}: choose a smaller segment or larger chunks",
                self.keyspace, config.chunk_size
            )));
        }
        Ok(())
    }
}

/// The largest segment that lies in a chunk with the longest frame that may come behind its end.
fn segment_bytes_max(chunk_size: u64) -> u64 {
    chunk_size.saturating_sub(FRAME_LEN_MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(options: &Options, config: &KeyspaceConfig) -> String {
        options.validate_in(config).unwrap_err().message().to_owned()
    }

    #[test]
    fn a_segment_fits_its_chunk_with_the_longest_frame() {
        let config = KeyspaceConfig::default();
        let with = |segment_bytes| Options { segment_bytes, ..Options::default() };
        for fit in [None, Some(1 << 10), Some(56 << 20)] {
            with(fit).validate_in(&config).unwrap();
        }
        assert!(refusal(&with(Some(1 << 26)), &config).contains("1024 to 58720256"));
        assert!(refusal(&with(Some(1_000)), &config).contains("not 1000"));
        let small = KeyspaceConfig { chunk_size: 16 << 20, ..KeyspaceConfig::default() };
        assert_eq!(with(None).segment_bytes_in(small.chunk_size), 8 << 20);
        with(None).validate_in(&small).unwrap();
        let tiny = KeyspaceConfig { chunk_size: 4 << 10, ..KeyspaceConfig::default() };
        assert!(refusal(&with(None), &tiny).contains("larger chunks"));
    }

    #[test]
    fn partitions_have_a_bound() {
        for partitions in [0, PARTITIONS_MAX + 1] {
            let options = Options { partitions, ..Options::default() };
            assert!(refusal(&options, &KeyspaceConfig::default()).contains("1 to 1024"));
        }
    }
}
