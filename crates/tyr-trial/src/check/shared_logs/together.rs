//! Whether what one transaction does to logs and to other data is there as a whole: batches with a
//! value in a ledger; and what is worked on, with the place where the workers are.

use std::collections::{BTreeMap, BTreeSet};

use super::order::Order;
use crate::history::{Deed, Did, Fate, Step};

/// Checks transactions of several things, of all logs; `sealing` says when somebody began to seal
/// a log.
pub fn check(
    deeds: &[&Deed],
    orders: &BTreeMap<&str, Order<'_>>,
    sealing: &dyn Fn(&str) -> Option<u64>,
    wrong: &mut Vec<String>,
) {
    let mut lists = BTreeMap::<&str, &[u64]>::new();
    for deed in deeds.iter().filter(|deed| deed.operation == "final") {
        for step in &deed.steps {
            if let Step::List { key, seen: Some(seen), .. } = step {
                lists.insert(key, seen);
            }
        }
    }
    for deed in deeds {
        check_deed(deed, orders, &lists, wrong);
        check_sealed(deed, sealing, wrong);
    }
    for (log, order) in orders {
        let (ledger, worked) = (format!("ledger-{log}"), format!("worked-{log}"));
        let (Some(ledger), Some(worked)) = (lists.get(&*ledger), lists.get(&*worked)) else {
            wrong.push(format!("{log}: what was written with it was not read in the end"));
            continue;
        };
        check_ledger(log, order, ledger, wrong);
        check_worked(log, order, worked, wrong);
    }
}

/// All that a deed does is there, or nothing of it.
fn check_deed(
    deed: &Deed,
    orders: &BTreeMap<&str, Order<'_>>,
    lists: &BTreeMap<&str, &[u64]>,
    wrong: &mut Vec<String>,
) {
    // What is worked on is nobody's: of all who try one does it, and the list has the rest.
    let is_work = |step: &Step| matches!(step, Step::SharedLog { did: Did::Taken { .. }, .. });
    if deed.fate != Fate::Done && deed.steps.iter().any(is_work) {
        return;
    }
    let (mut parts, mut stamps) = (BTreeMap::<bool, String>::new(), BTreeSet::new());
    for step in &deed.steps {
        let (name, is_there) = if let Step::Append { key, value, at } = step {
            let list = lists.get(&**key).copied().unwrap_or_default();
            let place = list.iter().position(|it| it == value);
            if deed.fate == Fate::Done && at.is_some() && *at != place.map(|it| it as u64) {
                let line = deed.invoked;
                wrong.push(format!("{value} is at {place:?} of {key}, not at {at:?}: line {line}"));
            }
            (key, place.is_some())
        } else if let Step::SharedLog { log, did: Did::Batch { values, .. } } = step {
            let order = &orders[&**log];
            let places = values.iter().filter_map(|value| order.place(*value));
            stamps.extend(places.filter_map(|at| Some(order.at(at)?.stamp)));
            (log, order.place(values[0]).is_some())
        } else {
            continue;
        };
        parts.insert(is_there, name.clone());
    }
    let line = deed.invoked;
    if let (Some(there), Some(gone)) = (parts.get(&true), parts.get(&false)) {
        wrong.push(format!("half of a transaction: it is in {there}, not in {gone}: line {line}"));
    }
    match deed.fate {
        Fate::Done => {
            let gone = parts.get(&false);
            wrong.extend(gone.map(|it| format!("what was acknowledged is lost in {it}: {line}")));
        }
        Fate::Failed => {
            let there = parts.get(&true);
            wrong.extend(there.map(|it| format!("what was refused is in {it}: {line}")));
        }
        Fate::Unknown => {}
    }
    if stamps.len() > 1 {
        wrong.push(format!("one transaction with the stamps {stamps:?}: line {line}"));
    }
}

/// Who is told that a log is sealed is told so when somebody seals it.
fn check_sealed(deed: &Deed, sealing: &dyn Fn(&str) -> Option<u64>, wrong: &mut Vec<String>) {
    if !deed.error.as_ref().is_some_and(|error| error.starts_with("InvalidArgument")) {
        return;
    }
    let is_sealing = |step: &Step| {
        let Step::SharedLog { log, did } = step else { return false };
        // A place where no entry begins is refused in the same way.
        let is_one = matches!(did, Did::At { .. });
        is_one || sealing(log).is_some_and(|begun| begun < deed.returned)
    };
    if !deed.steps.iter().any(is_sealing) {
        let error = deed.error.as_deref().unwrap_or_default();
        wrong.push(format!("line {} was refused by a log that is open: {error}", deed.invoked));
    }
}

/// A ledger has values in the order of their entries' stamps, each once.
fn check_ledger(log: &str, order: &Order<'_>, ledger: &[u64], wrong: &mut Vec<String>) {
    let mut newest = "";
    let mut seen = BTreeSet::new();
    for value in ledger {
        if !seen.insert(value) {
            wrong.push(format!("{log}: {value} is in the ledger twice"));
        }
        match order.place(*value).and_then(|at| order.at(at)) {
            Some(it) if it.stamp < newest => {
                wrong.push(format!("{log}: {value} is out of order in the ledger"));
            }
            Some(it) => newest = it.stamp,
            None => wrong.push(format!("{log}: {value} is in the ledger, and not in the log")),
        }
    }
}

/// Each entry was worked on exactly once, in each partition in the order of entries.
fn check_worked(log: &str, order: &Order<'_>, worked: &[u64], wrong: &mut Vec<String>) {
    for (partition, entries) in order.partitions() {
        let of = |value: &&u64| order.place(**value).is_some_and(|at| at[0] == partition);
        let done: Vec<u64> = worked.iter().filter(of).copied().collect();
        let all: Vec<u64> = entries.iter().map(|it| it.value).collect();
        if done != all {
            let at = done.iter().zip(&all).position(|(one, other)| one != other);
            let at = at.unwrap_or(done.len().min(all.len()));
            let (was, comes) = (done.get(at), all.get(at));
            wrong.push(format!(
                "{log}: of partition {partition} {was:?} was worked on where {comes:?} comes next"
            ));
        }
    }
    for value in worked.iter().filter(|value| order.place(**value).is_none()) {
        wrong.push(format!("{log}: {value} was worked on, and is not in the log"));
    }
}
