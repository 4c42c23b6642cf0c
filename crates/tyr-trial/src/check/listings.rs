//! Whether listings are each of one moment: twice the same, pairs whole, nothing missing that was
//! acknowledged before, nothing there that nobody put.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Deed, Fate, Head, Step};
use crate::workload::listings::HEAD;
pub(super) use crate::workload::listings::keys_of;

/// What a pair's writer did to it, in order.
pub(super) type Writes<'a> = BTreeMap<u64, Vec<(&'a Deed, Option<u64>)>>;

/// From the beginning of something to its end.
pub(super) type Span = (u64, u64);

/// Checks the listings of pairs; that there is a last one, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let writes = writes_of(deeds);
    let mut wrong = Vec::new();
    let mut is_read_last = false;
    for deed in deeds.iter().filter(|deed| deed.fate == Fate::Done) {
        let listed: Vec<&Vec<(String, u64)>> = deed.steps.iter().filter_map(listing).collect();
        let Some(first) = listed.first() else { continue };
        is_read_last |= deed.operation == "final";
        let mut found = BTreeSet::new();
        for listing in &listed {
            if listing != first {
                found.insert(difference(first, listing));
            }
            found.extend(of_one_moment(&writes, (deed.invoked, deed.returned), listing));
        }
        found.extend(deed.steps.iter().filter_map(|step| of_the_same(step, first)));
        let told = |text| format!("{text}: {} (line {})", deed.operation, deed.invoked);
        wrong.extend(found.into_iter().map(told));
    }
    if !is_read_last {
        wrong.push("nothing was listed in the end".to_owned());
    }
    wrong
}

/// What was done to each pair, or may have been.
pub(super) fn writes_of<'a>(deeds: &[&'a Deed]) -> Writes<'a> {
    let mut writes = Writes::new();
    for deed in deeds.iter().filter(|deed| deed.fate != Fate::Failed) {
        for step in &deed.steps {
            if let Step::Pair { pair, size } = step {
                writes.entry(*pair).or_default().push((deed, *size));
            }
        }
    }
    writes
}

/// What a step listed.
pub(super) fn listing(step: &Step) -> Option<&Vec<(String, u64)>> {
    match step {
        Step::Scan { seen } => seen.as_ref(),
        Step::Pair { .. }
        | Step::Append { .. }
        | Step::List { .. }
        | Step::Part { .. }
        | Step::Read { .. }
        | Step::Write { .. }
        | Step::Swap { .. }
        | Step::Add { .. }
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

/// What is wrong with other listings of the same moment, with first bytes or of groups.
pub(super) fn of_the_same(step: &Step, listing: &[(String, u64)]) -> Option<String> {
    match step {
        Step::Heads { seen: Some(seen) } => {
            let sizes: Vec<_> = seen.iter().map(|(key, size, ..)| (key.clone(), *size)).collect();
            if sizes != listing {
                return Some(difference(listing, &sizes));
            }
            let is_its = |(_, size, count, byte): &&Head| {
                *count == HEAD.min(*size) && *byte == Some(*size as u8)
            };
            let other = seen.iter().find(|it| !is_its(it));
            other.map(|it| format!("first bytes that are not of that version: {it:?}"))
        }
        Step::Groups { seen: Some(seen) } => {
            let group =
                |(key, _): &(String, u64)| key.split_inclusive('-').next().map(str::to_owned);
            let groups: BTreeSet<String> = listing.iter().filter_map(group).collect();
            let is_right = seen.iter().eq(&groups);
            (!is_right).then(|| format!("groups {seen:?} of keys in groups {groups:?}"))
        }
        Step::Heads { seen: None }
        | Step::Groups { seen: None }
        | Step::Scan { .. }
        | Step::Pair { .. }
        | Step::Append { .. }
        | Step::List { .. }
        | Step::Part { .. }
        | Step::Read { .. }
        | Step::Write { .. }
        | Step::Swap { .. }
        | Step::Add { .. }
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

/// How two listings differ that should not.
pub(super) fn difference(first: &[(String, u64)], second: &[(String, u64)]) -> String {
    let only = |these: &[(String, u64)], others: &[(String, u64)]| {
        these.iter().filter(|it| !others.contains(it)).cloned().collect::<Vec<_>>()
    };
    let (first, second) = (only(first, second), only(second, first));
    format!("unrepeatable listing, only first {first:?}, only then {second:?}")
}

/// What is wrong with one listing of a moment in this span.
pub(super) fn of_one_moment(
    writes: &Writes<'_>,
    span: Span,
    listing: &[(String, u64)],
) -> Vec<String> {
    let mut wrong = Vec::new();
    if !listing.is_sorted_by(|left, right| left.0 < right.0) {
        wrong.push("a listing out of order".to_owned());
    }
    let sizes: BTreeMap<&str, u64> =
        listing.iter().map(|(key, size)| (key.as_str(), *size)).collect();
    let mut known = 0;
    for (pair, writes) in writes {
        let keys = keys_of(*pair);
        let [left, right] = [&keys[0], &keys[1]].map(|key| sizes.get(key.as_str()).copied());
        known += usize::from(left.is_some()) + usize::from(right.is_some());
        if left != right {
            wrong.push(format!("torn pair {pair}: {left:?} and {right:?}"));
        } else if !possible(writes, span).contains(&left) {
            wrong.push(format!("pair {pair} was not {left:?} then"));
        }
    }
    if known < sizes.len() {
        wrong.push("listed what nobody has put".to_owned());
    }
    wrong
}

/// What a pair may be at a moment of this span: what was acknowledged last before it began, and
/// whatever may have taken effect between that and its end.
fn possible(writes: &[(&Deed, Option<u64>)], span: Span) -> BTreeSet<Option<u64>> {
    let (begin, end) = span;
    let acknowledged = writes.iter().filter(|(write, _)| write.returned < begin);
    let last = acknowledged.max_by_key(|(write, _)| write.invoked);
    let since = writes.iter().filter(|(write, _)| write.returned > begin && write.invoked < end);
    since.map(|(_, size)| *size).chain([last.and_then(|(_, size)| *size)]).collect()
}
