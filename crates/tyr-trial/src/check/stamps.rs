//! Whether stamps are commit timestamps: in a journal they ascend, records that came together have
//! one, who came after another has a higher one, and each is always the same.

use std::collections::BTreeMap;

use crate::history::{Deed, Fate, Step};

/// Stamps and records, in order.
type Records = [(String, u64)];

/// What a record is stamped with, by journal and record.
type Stamps<'a> = BTreeMap<(&'a str, u64), &'a str>;

/// Checks the journals; that each was read in the end, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut last: BTreeMap<&str, &Records> = BTreeMap::new();
    for deed in deeds.iter().filter(|deed| deed.fate == Fate::Done && deed.operation == "final") {
        for (key, _, seen) in deed.steps.iter().filter_map(journal) {
            last.insert(key, seen);
        }
    }
    let mut stamps = Stamps::new();
    for (key, records) in &last {
        let is_ascending = records.is_sorted_by(|one, next| one.0 < next.0);
        if !is_ascending || records.iter().any(|(stamp, _)| stamp.bytes().all(|it| it == b'0')) {
            wrong.push(format!("{key} has stamps out of order, or that were not filled"));
        }
        for (stamp, value) in *records {
            if stamps.insert((*key, *value), stamp.as_str()).is_some() {
                wrong.push(format!("{key} has record {value} twice"));
            }
        }
    }
    for deed in deeds.iter().filter(|deed| deed.fate == Fate::Done) {
        for (key, from, seen) in deed.steps.iter().filter_map(journal) {
            let there = last.get(key).and_then(|all| all.get(from as usize..));
            if !there.unwrap_or_default().starts_with(seen) {
                let line = deed.invoked;
                wrong.push(format!("{key} from {from} on is not what it was (line {line})"));
            }
        }
    }
    wrong.extend(of_records(deeds, &stamps, &last));
    wrong
}

/// Each record that was acknowledged is there, with the others of its transaction, behind those
/// that were acknowledged before it began.
fn of_records(
    deeds: &[&Deed],
    stamps: &Stamps<'_>,
    last: &BTreeMap<&str, &Records>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut told = BTreeMap::<&str, Told<'_>>::new();
    for deed in deeds.iter().filter(|deed| deed.fate != Fate::Failed) {
        let own: Vec<_> = deed.steps.iter().filter_map(appended).collect();
        let found: Vec<Option<&str>> = own.iter().map(|it| stamps.get(it).copied()).collect();
        if found.iter().any(|stamp| *stamp != found[0]) {
            wrong.push(format!("line {}: one transaction, stamps {found:?}", deed.invoked));
        }
        for ((key, value), stamp) in own.into_iter().zip(found) {
            if !last.contains_key(key) {
                wrong.push(format!("{key} was not read in the end"));
            }
            match stamp {
                None if deed.fate == Fate::Done => {
                    wrong.push(format!("{key} lost record {value} (line {})", deed.invoked));
                }
                None => {}
                Some(stamp) => {
                    let told = told.entry(key).or_default();
                    told.begun.push((deed.invoked, stamp));
                    if deed.fate == Fate::Done {
                        told.acknowledged.push((deed.returned, stamp));
                    }
                }
            }
        }
    }
    for (key, Told { mut begun, mut acknowledged }) in told {
        acknowledged.sort_unstable();
        begun.sort_unstable();
        let (mut next, mut highest) = (0, "");
        for (invoked, stamp) in begun {
            let is_before = |it: &&(u64, &str)| it.0 < invoked;
            while let Some((_, before)) = acknowledged.get(next).filter(is_before) {
                highest = highest.max(before);
                next += 1;
            }
            if stamp <= highest {
                wrong
                    .push(format!("{key}, line {invoked}: stamped below what was there before it"));
            }
        }
    }
    wrong
}

/// When records of a journal began and were acknowledged, with their stamps.
#[derive(Default)]
struct Told<'a> {
    begun: Vec<(u64, &'a str)>,
    acknowledged: Vec<(u64, &'a str)>,
}

/// The journal of a reading, from where it was read, and what was there.
fn journal(step: &Step) -> Option<(&str, u64, &Records)> {
    let Step::Journal { key, from, seen: Some(seen) } = step else { return None };
    Some((key, *from, seen))
}

/// The journal and the record of an append.
fn appended(step: &Step) -> Option<(&str, u64)> {
    let Step::Stamp { key, value } = step else { return None };
    Some((key, *value))
}
