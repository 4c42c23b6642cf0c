//! How much the service metadata may be: it lies in the memory of every monitor, twice while a
//! snapshot of it is made, and passes through their log.

/// Bytes of a key. Long enough for the path of a service's own choosing, short enough that a page
/// of keys fits a frame.
pub const PATH_LEN_MAX: usize = 512;

/// Bytes of a value. The largest is the cluster map: 16,384 keyspaces at 120 bytes and 1,024 nodes
/// at 30 are two million bytes; twice that.
pub const VALUE_LEN_MAX: usize = 4 << 20;

/// Bytes of all keys and values together, and the most that a snapshot has, but for a few dozen
/// bytes an entry.
pub const STORE_BYTES_MAX: usize = 64 << 20;

/// Entries of the store: with the smallest of them, memory is taken by the tree and not its values.
pub const ENTRIES_MAX: usize = 1 << 18;

/// Conditions and alterations of one transaction together.
pub const TRANSACTION_STEPS_MAX: usize = 256;

/// Bytes of the keys and values of one transaction: a map and something beside it. It is one entry
/// of the monitors' log, and travels in one frame.
pub const TRANSACTION_BYTES_MAX: usize = VALUE_LEN_MAX + (1 << 20);

/// Entries of one answer to a listing.
pub const LIST_MAX: usize = 1024;

/// Bytes of keys and values of one answer to a listing; at least one entry is answered.
pub const LIST_BYTES_MAX: usize = 4 << 20;

/// Changes that are remembered for watches: at ten a second some minutes.
pub const HISTORY_MAX: usize = 4096;

/// Bytes of what is remembered for watches.
pub const HISTORY_BYTES_MAX: usize = 16 << 20;

const _: () = assert!(VALUE_LEN_MAX + PATH_LEN_MAX <= TRANSACTION_BYTES_MAX);
const _: () = assert!(TRANSACTION_BYTES_MAX <= HISTORY_BYTES_MAX, "one change fits the history");
