//! Whether every audit that counts found the same sum.

use crate::history::{Deed, Fate, Step};
use crate::workload::bank::{ACCOUNTS, SUM};

/// Checks the audits of a bank; that there is a last one, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut wrong = Vec::new();
    let is_audit = |deed: &&&Deed| deed.fate == Fate::Done && deed.operation != "transfer";
    for deed in deeds.iter().filter(is_audit) {
        let balances: Vec<u64> = deed.steps.iter().filter_map(balance).collect();
        let sum: u64 = balances.iter().sum();
        if sum != SUM || balances.len() as u64 != ACCOUNTS {
            wrong.push(format!(
                "broken sum: {} of process {} (line {}) found {sum} and not {SUM}: {balances:?}",
                deed.operation, deed.process, deed.invoked
            ));
        }
    }
    let is_last = |deed: &&&Deed| deed.fate == Fate::Done && deed.operation == "final";
    if !deeds.iter().any(|deed| is_last(&deed)) {
        wrong.push("nothing was read in the end".to_owned());
    }
    wrong
}

fn balance(step: &Step) -> Option<u64> {
    match step {
        Step::Read { seen, .. } => *seen,
        Step::Append { .. }
        | Step::List { .. }
        | Step::Part { .. }
        | Step::Write { .. }
        | Step::Swap { .. }
        | Step::Add { .. }
        | Step::Pair { .. }
        | Step::Scan { .. }
        | Step::Heads { .. }
        | Step::Groups { .. }
        | Step::Stamp { .. }
        | Step::Journal { .. }
        | Step::Cells { .. }
        | Step::Sheet { .. }
        | Step::Lock { .. }
        | Step::Held { .. }
        | Step::Fenced { .. }
        | Step::Unlock { .. }
        | Step::Guarded { .. }
        | Step::Upload { .. }
        | Step::Runs { .. }
        | Step::Enter { .. }
        | Step::Leave { .. }
        | Step::Members { .. }
        | Step::Watch { .. }
        | Step::Told { .. }
        | Step::Look { .. }
        | Step::Unwatch { .. }
        | Step::Keep { .. }
        | Step::Kept { .. }
        | Step::Unkeep { .. }
        | Step::Placed { .. }
        | Step::Positions { .. }
        | Step::SharedLog { .. } => None,
    }
}
