//! What is done in one operation of a client, with what was answered, as it stands in a history.
//!
//! Steps know no workload: one kind may be several workloads'.

use serde::{Deserialize, Serialize};

use super::shared_log::{self, Did};

/// A blob that was listed with its first bytes: its key and size, how many bytes came, and the
/// number that each of them is, if it is one.
pub type Head = (String, u64, u64, Option<u8>);

/// One thing done to one blob, with what was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Step {
    /// A value was added to a list; `at` is its place there.
    Append {
        /// The list.
        key: String,
        /// The value, which nobody else adds.
        value: u64,
        /// How many values are before it.
        at: Option<u64>,
    },
    /// A list was read from a place to its end.
    List {
        /// The list.
        key: String,
        /// Values before the first that was read.
        from: u64,
        /// What was read.
        seen: Option<Vec<u64>>,
    },
    /// Values in the middle of a list were read, all of which had been there before.
    Part {
        /// The list.
        key: String,
        /// Values before the first that was read.
        from: u64,
        /// How many were asked for.
        count: u64,
        /// What was read.
        seen: Option<Vec<u64>>,
    },
    /// A register was written.
    Write {
        /// The register.
        key: String,
        /// The value, which nobody else writes; never 0.
        value: u64,
    },
    /// A register was read; 0 is none.
    Read {
        /// The register.
        key: String,
        /// What was read.
        seen: Option<u64>,
    },
    /// A register was written if it held a value.
    Swap {
        /// The register.
        key: String,
        /// What it must hold.
        from: u64,
        /// What it holds then; nobody else writes it.
        to: u64,
    },
    /// One was added to a counter.
    Add {
        /// The counter.
        key: String,
        /// What it came to.
        sum: Option<u64>,
    },
    /// Two blobs were put together, or deleted.
    Pair {
        /// The pair, which nobody else writes.
        pair: u64,
        /// The size of each; none when they were deleted.
        size: Option<u64>,
    },
    /// All blobs were listed.
    Scan {
        /// Keys in order, with sizes.
        seen: Option<Vec<(String, u64)>>,
    },
    /// All blobs were listed with their first bytes.
    Heads {
        /// In order of keys.
        seen: Option<Vec<Head>>,
    },
    /// What keys begin with was listed, up to a delimiter.
    Groups {
        /// In order.
        seen: Option<Vec<String>>,
    },
    /// A record was appended to a journal, behind a place that the commit timestamp fills.
    Stamp {
        /// The journal.
        key: String,
        /// The record, which nobody else appends.
        value: u64,
    },
    /// A journal was read from a place to its end.
    Journal {
        /// The journal.
        key: String,
        /// Records before the first that was read.
        from: u64,
        /// Stamps, as digits that sort as they do, and records.
        seen: Option<Vec<(String, u64)>>,
    },
    /// Some cells of a sheet were written, or cleared.
    Cells {
        /// The sheet, which nobody else writes.
        key: String,
        /// The first of them.
        from: u64,
        /// How many.
        count: u64,
        /// What is in each of them then; none when they were cleared.
        value: Option<u64>,
    },
    /// A sheet was read.
    Sheet {
        /// The sheet.
        key: String,
        /// What is in each of its cells, 0 where there is nothing; none where a cell has two
        /// things in it. Empty when there is no such sheet.
        seen: Option<Vec<Option<u64>>>,
    },
    /// A lock was taken (K4).
    Lock {
        /// The lock.
        key: String,
        /// Its token then.
        token: Option<u64>,
    },
    /// A client was asked whether it holds a lock, as far as it knows.
    Held {
        /// The lock.
        key: String,
        /// Its token when the client took it.
        token: u64,
        /// Whether it does.
        seen: Option<bool>,
    },
    /// A record was appended to what a lock guards, if nobody had got the lock since.
    Fenced {
        /// The lock.
        key: String,
        /// Its token when the client took it.
        token: u64,
        /// The record, which nobody else appends.
        value: u64,
        /// How many records are before it.
        at: Option<u64>,
    },
    /// A lock was given back, if nobody had got it since.
    Unlock {
        /// The lock.
        key: String,
        /// Its token when the client took it.
        token: u64,
    },
    /// What a lock guards was read.
    Guarded {
        /// The lock.
        key: String,
        /// Tokens and records, in order.
        seen: Option<Vec<(u64, u64)>>,
    },
    /// A long payload was put, written or appended. Lengths and places are in words of 8 bytes.
    Upload {
        /// The blob.
        key: String,
        /// By which its words are known; nobody else writes it.
        value: u64,
        /// How many words.
        len: u64,
        /// What becomes of the blob.
        how: How,
        /// Where it was written; where it was to be appended, or was.
        at: Option<u64>,
    },
    /// The whole of such a blob was read.
    Runs {
        /// The blob.
        key: String,
        /// What is in it. Empty when there is no such blob.
        seen: Option<Vec<Run>>,
    },
    /// An entry was made in a group, and counted in its header.
    Enter {
        /// The group.
        key: String,
        /// The entry.
        entry: u64,
    },
    /// An entry was removed from a group, and counted in its header.
    Leave {
        /// The group.
        key: String,
        /// The entry.
        entry: u64,
    },
    /// The header of a group was read, with the entries or alone.
    Members {
        /// The group.
        key: String,
        /// How many entries its header says there are.
        count: Option<u64>,
        /// The sum of their numbers, as the header has it.
        sum: Option<u64>,
        /// The entries that are there, if they were looked for.
        seen: Option<Vec<u64>>,
    },
    /// A client began to watch (K5).
    Watch {
        /// The watch; nobody else's has this number.
        watch: u64,
        /// The key, or what keys begin with.
        key: String,
        /// Whether it is that key alone.
        is_exact: bool,
    },
    /// A watch had news.
    Told {
        /// The watch.
        watch: u64,
        /// Whether it was to be looked at everything.
        anew: bool,
        /// The keys that were named.
        keys: Vec<String>,
        /// Whether there were more than these.
        more: bool,
        /// The last transaction that changed one of them, as digits that sort as they do.
        version: Option<String>,
    },
    /// Who watches looked at a register.
    Look {
        /// The watch.
        watch: u64,
        /// The register.
        key: String,
        /// What was read; 0 is none.
        seen: Option<u64>,
        /// The transaction that wrote it, as digits that sort as they do.
        version: Option<String>,
    },
    /// A client ended a watch.
    Unwatch {
        /// The watch.
        watch: u64,
    },
    /// A snapshot was kept (V7).
    Keep {
        /// The snapshot; nobody else's has this number.
        snapshot: u64,
    },
    /// What follows was read at a kept snapshot.
    Kept {
        /// The snapshot.
        snapshot: u64,
    },
    /// A kept snapshot was dropped.
    Unkeep {
        /// The snapshot.
        snapshot: u64,
    },
    /// An entry was appended to a log that has positions.
    Placed {
        /// The log.
        key: String,
        /// The entry, which nobody else appends.
        value: u64,
        /// Its position.
        at: Option<u64>,
    },
    /// Such a log was read from a position to its end.
    Positions {
        /// The log.
        key: String,
        /// The position.
        from: u64,
        /// Positions and entries, in order.
        seen: Option<Vec<(u64, u64)>>,
    },
    /// Something was done to a shared log.
    SharedLog {
        /// The log.
        log: String,
        /// What.
        did: Did,
    },
}

/// What a long payload does to its blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// It is all that is there then.
    Whole,
    /// It is written at a place.
    Over,
    /// It is appended where the blob ends, which is expected to be at a place.
    Expected,
    /// It is appended wherever the blob ends.
    End,
}

/// Words that follow each other in one payload: its value, 0 for zeros; the first of them; how
/// many.
pub type Run = (u64, u64, u64);

/// Whether any of the steps changes something.
pub fn changes(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Append { .. }
        | Step::Write { .. }
        | Step::Swap { .. }
        | Step::Add { .. }
        | Step::Pair { .. }
        | Step::Stamp { .. }
        | Step::Cells { .. }
        | Step::Lock { .. }
        | Step::Fenced { .. }
        | Step::Unlock { .. }
        | Step::Upload { .. }
        | Step::Enter { .. }
        | Step::Leave { .. }
        | Step::Keep { .. }
        | Step::Unkeep { .. }
        | Step::Placed { .. } => true,
        Step::SharedLog { did, .. } => shared_log::changes(did),
        Step::List { .. }
        | Step::Part { .. }
        | Step::Read { .. }
        | Step::Scan { .. }
        | Step::Heads { .. }
        | Step::Groups { .. }
        | Step::Journal { .. }
        | Step::Sheet { .. }
        | Step::Held { .. }
        | Step::Guarded { .. }
        | Step::Runs { .. }
        | Step::Members { .. }
        | Step::Watch { .. }
        | Step::Told { .. }
        | Step::Look { .. }
        | Step::Unwatch { .. }
        | Step::Kept { .. }
        | Step::Positions { .. } => false,
    })
}
