//! Every bound that a user can meet, in one place, with where it comes from.

use std::time::Duration;

/// A blob's largest size: 2^63-1 bytes, so that offsets fit the signed 64-bit ones of POSIX.
pub const BLOB_SIZE_MAX: u64 = i64::MAX as u64;

/// Bytes of a key. S3 and RADOS users rely on about a thousand; index keys stay small.
pub const KEY_LEN_MAX: usize = 1024;

/// Characters of a keyspace's name.
pub const KEYSPACE_NAME_LEN_MAX: usize = 64;

/// First bytes of a key that may place a blob: a hash in hexadecimal digits fits.
pub const PLACED_BY_LEN_MAX: u8 = 64;

/// Smallest chunk: one page, below which placement costs more than the data.
pub const CHUNK_SIZE_MIN: u64 = 4 << 10;
/// Largest chunk: what one node copies in a second when it heals.
pub const CHUNK_SIZE_MAX: u64 = 256 << 20;
/// The chunk size of a keyspace that does not say.
pub const CHUNK_SIZE_DEFAULT: u64 = 64 << 20;

/// Most replicas of a chunk.
pub const REPLICATION_MAX: u8 = 9;

/// Operations in one transaction, so that a chain's node handles it within milliseconds.
pub const TRANSACTION_OPERATIONS_MAX: usize = 65_536;

/// Chunks whose places are told at once: four terabytes in chunks of the default size, and some ten
/// megabytes of answer.
pub const LOCATIONS_MAX: u64 = 65_536;

/// Bytes of the input of a method that is called: what is longer is written to a blob first.
pub const METHOD_INPUT_MAX: usize = 1 << 20;

/// Bytes that a method answers: an answer waits in memory for the transaction of its call.
pub const METHOD_ANSWER_MAX: usize = 64 << 10;

/// Bytes of payload a transaction carries by value; larger payloads go to extents first and the
/// transaction refers to them, so that a log segment always holds a whole record.
pub const TRANSACTION_INLINE_MAX: usize = 16 << 20;

/// A single payload of at least this size is written to extents, not to the log: above it a second
/// copy through the log costs more than the extra write.
pub const EXTENT_PAYLOAD_MIN: usize = 32 << 10;

/// The largest piece of an extent payload: one write, one checksum pass, one reference.
pub const EXTENT_LEN_MAX: u32 = 4 << 20;

/// The largest piece that is uploaded ahead of its transaction: it becomes one extent.
pub const PIECE_LEN_MAX: u32 = EXTENT_LEN_MAX;

/// A payload of a cluster of at least this size is uploaded ahead of its transaction: below it the
/// trip ahead costs more than carrying the bytes through the chain.
pub const UPLOAD_MIN: usize = 1 << 20;

/// How long a piece that was uploaded ahead is kept without its transaction, in microseconds: a
/// day, so that a slow source can be uploaded; uploading it again begins it anew.
pub const PIECE_KEPT_US: u64 = 24 * 3_600 * 1_000_000;

/// Places of a payload that the commit timestamp fills: a batch of log entries has one each, or a
/// header has a few.
pub const STAMPS_MAX: usize = 16;

/// Bytes that a commit timestamp takes in a payload.
pub const STAMP_LEN: usize = 16;

/// The most bytes that one `read` answers; longer reads stream.
pub const READ_LEN_MAX: u64 = 64 << 20;

/// The most keys that one page of a scan answers.
pub const SCAN_LIMIT_MAX: usize = 10_000;

/// Ranges of keys that one transaction lists: each is looked at again when it is validated, and by
/// whoever writes in its group meanwhile.
pub const TRANSACTION_LISTINGS_MAX: usize = 64;

/// Keys that one transaction lists: they are gone over again when it is validated, and the node
/// does nothing else meanwhile. That is some 10 ms.
pub const TRANSACTION_LISTED_MAX: usize = 10_000;

/// Keys that one page of a scan answers where nothing else is said.
pub const SCAN_LIMIT_DEFAULT: usize = 1_000;

/// Bytes after which a page of a scan ends, whatever its limit, so that a node and its client hold
/// little for each: some milliseconds of a network.
pub const SCAN_BYTES_MAX: usize = 4 << 20;

/// The most bytes of each blob that a scan answers: headers, not contents.
pub const SCAN_RANGE_LEN_MAX: u64 = 1 << 20;

/// Stretches of a chunk that are told at most, of more those close together as one: 20 KB of an
/// answer.
pub const STRETCHES_MAX: usize = 1024;

/// Chunks that one page of stretches looks at: their nodes are asked at once.
pub const STRETCHED_CHUNKS_MAX: usize = 32;

/// Bytes of a scan's delimiter.
pub const SCAN_DELIMITER_LEN_MAX: usize = 64;

/// The most blobs of one `read_many`.
pub const READ_MANY_MAX: usize = 10_000;

/// The shortest that a lease of a key lasts without being renewed: a few times what a renewal
/// takes on a slow day.
pub const LEASE_DURATION_MIN: Duration = Duration::from_secs(1);

/// The longest, and what is taken where nothing is said. Whoever becomes the authority of keys
/// waits for as long, and a tenth longer, before it gives leases of them (K3).
pub const LEASE_DURATION_MAX: Duration = Duration::from_secs(10);

/// The longest duration of a lease in a guarded keyspace (K2): who writes waits for so long, and a
/// tenth longer, for a holder that is gone.
pub const GUARDED_LEASE_DURATION_MAX: Duration = Duration::from_secs(3);

/// Leases that one client, or one embedded store, holds or waits for: a file system's directories.
pub const LEASES_OF_CLIENT_MAX: usize = 65_536;

/// Leases that one node gives at a time, of some 200 bytes each.
pub const LEASES_OF_NODE_MAX: usize = 1 << 20;

/// Those that wait for a lease at one node.
pub const LEASES_WAITING_MAX: usize = 65_536;

/// Watches of keys at a node, at most.
pub const WATCHES_OF_NODE_MAX: usize = 65_536;

/// Keys that are named in what is told of a watch, at most.
pub const WATCHED_KEYS_TOLD_MAX: usize = 64;

/// Watches of keys of a client, at most.
pub const WATCHES_OF_CLIENT_MAX: usize = 4_096;

/// Bytes of a notice: it is repeated to who does not acknowledge it, and larger things are blobs.
pub const NOTICE_LEN_MAX: usize = 64 << 10;

/// Bytes that a notice is acknowledged with: of [`WATCHERS_OF_NOTICE_MAX`] they fit a message.
pub const NOTICE_REPLY_LEN_MAX: usize = 4 << 10;

/// Who watches has so long at least to acknowledge a notice.
pub const NOTICE_TIMEOUT_MIN: Duration = Duration::from_millis(10);

/// Who watches has so long at most to acknowledge a notice: as long as a call may take.
pub const NOTICE_TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// Those whom a notice reaches, at most.
pub const WATCHERS_OF_NOTICE_MAX: usize = 1_024;

/// Notices at a node that are not answered, or were just now, at most: 64 MiB.
pub const NOTICES_OF_NODE_MAX: usize = 1_024;

/// Notices that a watch keeps for a user who does not take them, at most; later ones are missed.
pub const NOTICES_OF_WATCH_MAX: usize = 64;

/// Characters of a kept snapshot's name.
pub const KEPT_NAME_LEN_MAX: usize = 64;

/// Kept snapshots of a store: a read at one looks at what is held for each that is younger.
pub const KEPT_MAX: usize = 256;

/// Bytes that may be held for kept snapshots, in a directory or on the disk of a node, unless it is
/// set otherwise.
pub const KEPT_BYTES_DEFAULT: u64 = 64 << 30;

const _: () = {
    assert!(LEASE_DURATION_MIN.as_micros() <= GUARDED_LEASE_DURATION_MAX.as_micros());
    assert!(GUARDED_LEASE_DURATION_MAX.as_micros() <= LEASE_DURATION_MAX.as_micros());
    assert!(LEASES_OF_CLIENT_MAX <= LEASES_OF_NODE_MAX);
    assert!(CHUNK_SIZE_MIN.is_power_of_two() && CHUNK_SIZE_MAX.is_power_of_two());
    assert!(CHUNK_SIZE_MIN <= CHUNK_SIZE_DEFAULT && CHUNK_SIZE_DEFAULT <= CHUNK_SIZE_MAX);
    assert!(SCAN_LIMIT_DEFAULT <= SCAN_LIMIT_MAX);
    assert!(SCAN_LIMIT_DEFAULT <= TRANSACTION_LISTED_MAX, "a page fits into a transaction");
    assert!(EXTENT_PAYLOAD_MIN < TRANSACTION_INLINE_MAX);
    assert!(EXTENT_PAYLOAD_MIN as u64 <= EXTENT_LEN_MAX as u64);
    assert!(UPLOAD_MIN <= TRANSACTION_INLINE_MAX);
};
