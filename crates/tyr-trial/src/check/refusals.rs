//! Whether what failed may fail so: a kind of error says what a caller can do, and some operations
//! must not meet some kinds (promise 4: what neither reads nor sets conditions never conflicts).

use std::collections::BTreeMap;

use crate::history::{Deed, Did, Fate, How, Step};

/// Kinds that any operation may meet while nodes and lines fail.
const TROUBLE: [&str; 2] = ["Unavailable", "TimedOut"];

/// Checks why deeds failed.
pub fn check(deeds: &[Deed]) -> Vec<String> {
    let mut wrong = BTreeMap::<String, (u64, String)>::new();
    for deed in deeds.iter().filter(|deed| deed.fate != Fate::Done) {
        let Some(error) = &deed.error else { continue };
        let kind = error.split(':').next().unwrap_or_default();
        if is_allowed(deed, kind) {
            continue;
        }
        let name = format!("{} {} failed with {kind}", deed.workload, deed.operation);
        let first = format!("line {}: {error}", deed.invoked);
        wrong.entry(name).or_insert((0, first)).0 += 1;
    }
    let told = wrong.into_iter();
    told.map(|(name, (count, first))| format!("{name}, {count} times; {first}")).collect()
}

/// What a deed of several steps may meet, by each of them.
#[derive(Clone, Copy, Default)]
struct May {
    /// It reads, or has a condition on what is in a blob.
    conflict: bool,
    /// It has a condition on whether there is a blob.
    existence: bool,
    /// It reads at a moment.
    too_old: bool,
    /// It needs a log that is not sealed, or a place where an entry begins.
    argument: bool,
}

fn may(step: &Step) -> May {
    let (conflict, existence, too_old, argument) = match step {
        // Also a transaction reads at a moment, whose versions may be gone when nodes fail.
        Step::Swap { .. }
        | Step::List { .. }
        | Step::Part { .. }
        | Step::Read { .. }
        | Step::Placed { .. }
        | Step::Positions { .. }
        | Step::Members { .. } => (true, false, true, false),
        Step::Lock { .. }
        | Step::Fenced { .. }
        | Step::Unlock { .. }
        | Step::Upload { how: How::Expected, .. } => (true, false, false, false),
        Step::Enter { .. }
        | Step::Leave { .. }
        | Step::Keep { .. }
        | Step::Kept { .. }
        | Step::Unkeep { .. } => (false, true, false, false),
        Step::Scan { .. } | Step::Look { .. } | Step::Journal { .. } => (false, false, true, false),
        Step::Append { .. }
        | Step::Write { .. }
        | Step::Add { .. }
        | Step::Pair { .. }
        | Step::Heads { .. }
        | Step::Groups { .. }
        | Step::Stamp { .. }
        | Step::Cells { .. }
        | Step::Sheet { .. }
        | Step::Held { .. }
        | Step::Guarded { .. }
        | Step::Upload { .. }
        | Step::Runs { .. }
        | Step::Watch { .. }
        | Step::Told { .. }
        | Step::Unwatch { .. } => (false, false, false, false),
        Step::SharedLog { did, .. } => match did {
            Did::Batch { .. } => (false, false, false, true),
            // What was trimmed is not there; whether it was, the check of logs looks.
            Did::Stretch(_) => (false, true, true, false),
            Did::At { .. } => (false, true, true, true),
            // Consumers meet at the place where their group is.
            Did::Taken { .. } => (true, false, true, false),
            Did::Ack { .. } | Did::Trim { .. } | Did::Seal => (false, false, false, false),
        },
    };
    May { conflict, existence, too_old, argument }
}

fn is_allowed(deed: &Deed, kind: &str) -> bool {
    let any = |of: fn(May) -> bool| deed.steps.iter().any(|step| of(may(step)));
    match kind {
        kind if TROUBLE.contains(&kind) => true,
        "Conflict" => any(|may| may.conflict),
        "AlreadyExists" | "NotFound" => any(|may| may.existence),
        "InvalidArgument" => any(|may| may.argument),
        "SnapshotTooOld" => any(|may| may.too_old) || deed.operation == "snapshot",
        _ => false,
    }
}
