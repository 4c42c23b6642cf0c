//! Every bound of a class, a call and a map that a user can meet, with where it comes from.

use std::time::Duration;

use tyr_types::limits::{METHOD_ANSWER_MAX, METHOD_INPUT_MAX};

/// Characters of the name of a class or a method: with a version they stand in a key.
pub const NAME_LEN_MAX: usize = 64;

/// Methods of a class: far above what classes have, and a list of them is still short.
pub const METHODS_MAX: usize = 1_024;

/// Bytes of the source of a class: compiling them takes some 50 ms.
pub const SOURCE_LEN_MAX: usize = 1 << 20;

/// Bytes of what a failure, a line of the log or an error says; what is longer is cut.
pub const TEXT_LEN_MAX: usize = 4_096;

/// Lines that one call can log, so that a loop does not fill the log.
pub const LOG_LINES_MAX: usize = 100;

/// Bytes that one read of a blob answers: what a call may write, too.
pub const CALL_READ_LEN_MAX: u64 = 4 << 20;

/// Bytes that a draft has read and keeps for the next read; above, they are read again.
pub const DRAFT_READ_BYTES_MAX: usize = 8 << 20;

/// What a single change of a blob counts for in a call's effect besides its bytes: so that one
/// call makes no more operations than a transaction has.
pub const CHANGE_COST: usize = 64;

/// Safepoints between two looks at the clock. A look costs about as much as a safepoint; between
/// two safepoints a function of the library runs for up to some tens of milliseconds, within the
/// memory that it has.
pub const SAFEPOINTS_PER_LOOK: u64 = 16;

/// Virtual machines that a thread keeps for its next calls; each has half a megabyte.
pub const MACHINES_MAX: usize = 32;

/// Bytes of the machines that all threads of a process keep: 512 of them as they are when they are
/// new, and a part of what a node has for its cache. Above it calls make their machines anew.
pub const MACHINE_BYTES_MAX: usize = 256 << 20;

/// Bytes of a key of a map: a key of a blob fits, but for a few bytes, and four records of a leaf
/// fit a page whatever their keys are.
pub const MAP_KEY_LEN_MAX: usize = 1_000;

/// Bytes of a value of a map: what is longer belongs into a blob.
pub const MAP_VALUE_LEN_MAX: usize = 64 << 10;

/// Bytes of the header of a map: it lies in the first page.
pub const MAP_HEADER_LEN_MAX: usize = 4_000;

/// Pages of a map, of 4096 bytes: 64 MiB, a chunk of the default size, so that all of it lies
/// where its blob does.
pub const MAP_PAGES_MAX: u32 = 16_384;

/// Entries that one listing of a map answers; who wants more goes on after the last key.
pub const MAP_LISTED_MAX: usize = 10_000;

/// What one call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Safepoints: calls, returns and turns of loops. A million take about 30 ms.
    pub fuel: u64,
    /// How long it may run. What a call writes stands still for others meanwhile.
    pub time: Duration,
    /// Bytes of its virtual machine, with the half megabyte that one has to begin with.
    pub memory: usize,
    /// Bytes of its input.
    pub input: usize,
    /// Bytes that it writes, with [`CHANGE_COST`] for each change: they travel along a chain.
    pub effect: usize,
    /// Bytes of its answer: it is kept with the outcome of its transaction.
    pub answer: usize,
}

impl Limits {
    /// For a call that runs in place.
    pub const IN_PLACE: Self = Self {
        fuel: 1_000_000,
        time: Duration::from_millis(100),
        memory: 16 << 20,
        input: METHOD_INPUT_MAX,
        effect: 4 << 20,
        answer: METHOD_ANSWER_MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::IN_PLACE
    }
}
