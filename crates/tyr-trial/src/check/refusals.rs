//! Whether what failed may fail so: a kind of error says what a caller can do, and some operations
//! must not meet some kinds (promise 4: what neither reads nor sets conditions never conflicts).

use std::collections::BTreeMap;

use crate::history::{Deed, Fate, Step};

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

fn is_allowed(deed: &Deed, kind: &str) -> bool {
    let has_conditions = deed.steps.iter().any(|step| match step {
        Step::Swap { .. } | Step::List { .. } | Step::Part { .. } | Step::Read { .. } => true,
        Step::Append { .. }
        | Step::Write { .. }
        | Step::Add { .. }
        | Step::Pair { .. }
        | Step::Scan { .. }
        | Step::Heads { .. }
        | Step::Groups { .. }
        | Step::Stamp { .. }
        | Step::Journal { .. }
        | Step::Cells { .. }
        | Step::Sheet { .. } => false,
    });
    let is_listing = deed.steps.iter().any(|step| matches!(step, Step::Scan { .. }));
    // They are read at a moment.
    let is_listing = is_listing || deed.operation == "snapshot";
    match kind {
        kind if TROUBLE.contains(&kind) => true,
        "Conflict" => has_conditions,
        // Also a transaction reads at a moment, whose versions may be gone when nodes fail.
        "SnapshotTooOld" => has_conditions || is_listing,
        _ => false,
    }
}
