//! Whether who reads sees the one order: all of it between begin and end, and nothing else. And
//! whether what was trimmed, and nothing more, is gone, and a sealed log takes nothing.

use std::collections::BTreeMap;

use super::order::{Known, Order};
use super::{Log, is_behind};
use crate::history::{Deed, Fate, Place, Stretch};

/// Where a partition begins that was never trimmed.
const BEGIN: (u64, u64, u64) = (0, 64, 0);

/// Checks all readings of a log, its trims, and its end.
pub fn check(log: &Log<'_>, order: &Order<'_>, wrong: &mut Vec<String>) {
    let is_final = |(deed, stretch): &&(&Deed, &Stretch)| {
        deed.operation == "final" && stretch.seen.is_some() && stretch.is_end
    };
    let Some((_, last)) = log.stretches.iter().rfind(is_final) else {
        wrong.push("it was not read in the end".to_owned());
        return;
    };
    check_last(log, order, last, wrong);
    for (deed, stretch) in &log.stretches {
        let found = match stretch.seen {
            Some(_) => check_stretch(log, order, (deed, stretch), last),
            None => check_gone(log, deed, None),
        };
        wrong.extend(found.map(|text| {
            let (name, line) = (&deed.operation, deed.invoked);
            format!("{name} (line {line}) {text}")
        }));
    }
    check_going_on(log, order, wrong);
    for (deed, at, seen) in &log.ones {
        let found = match seen {
            Some([]) => is_known_before(log, order, deed, *at)
                .then(|| format!("finds nothing at {at:?}, where an entry was before")),
            Some([one]) if one.at == *at => None,
            Some(_) => Some(format!("finds what is not at {at:?}")),
            None => check_gone(log, deed, Some(*at)).or_else(|| {
                let is_refused = deed.error.as_ref()?.starts_with("InvalidArgument");
                let is_entry = is_refused && order.at(*at).is_some();
                is_entry.then(|| format!("is told that no entry begins at {at:?}"))
            }),
        };
        let (name, line) = (&deed.operation, deed.invoked);
        wrong.extend(found.map(|text| format!("{name} (line {line}) {text}")));
    }
    let sealed = log.seals.iter().filter(|it| it.fate == Fate::Done).map(|it| it.returned).min();
    for batch in log.batches.iter().filter(|batch| batch.deed.fate == Fate::Done) {
        if sealed.is_some_and(|sealed| batch.deed.invoked > sealed) {
            wrong.push(format!("line {} was appended to a sealed log", batch.deed.invoked));
        }
    }
}

/// What there is in the end: from what was trimmed on, all.
fn check_last(log: &Log<'_>, order: &Order<'_>, last: &Stretch, wrong: &mut Vec<String>) {
    for it in order.all.iter().filter(|it| is_behind(it.at, &last.to)) {
        wrong.push(format!("{} is lost: it was at {:?}, behind the end", it.value, it.at));
    }
    for from in last.from.iter().flatten() {
        let marks = |is_sure: bool| {
            let trims = log.trims.iter().filter(move |(trim, _)| match trim.fate {
                Fate::Done => true,
                Fate::Unknown => !is_sure,
                Fate::Failed => false,
            });
            trims.filter_map(|(_, before)| before.get(from[0] as usize)).max()
        };
        let (low, high) = (marks(true), marks(false));
        if low.is_some_and(|low| from < low) {
            wrong.push(format!("it begins at {from:?} in the end, and was trimmed to {low:?}"));
        }
        let is_begin = (from[1], from[2], from[3]) == BEGIN;
        if !is_begin && high.is_none_or(|high| from > high) {
            wrong.push(format!("it begins at {from:?} in the end, and was trimmed to {high:?}"));
        }
    }
}

/// What is wrong with what was read.
fn check_stretch(
    log: &Log<'_>,
    order: &Order<'_>,
    (deed, stretch): (&Deed, &Stretch),
    last: &Stretch,
) -> Option<String> {
    let seen = stretch.seen.as_deref().unwrap_or_default();
    let before_end = order.all.iter().filter(|it| !is_behind(it.at, &stretch.to));
    let expected: Vec<&Known<'_>> = match &stretch.from {
        Some(from) => before_end.filter(|it| is_behind(it.at, from)).collect(),
        None => before_end.collect(),
    };
    let (left, expected) = match stretch.from {
        Some(_) => (&[][..], &expected[..]),
        None => expected.split_at(expected.len().saturating_sub(seen.len())),
    };
    if let Some((it, entry)) = expected.iter().zip(seen).find(|(it, entry)| it.at != entry.at) {
        return Some(format!("shows {} where {} comes next", entry.value, it.value));
    }
    if let Some(it) = expected.get(seen.len()) {
        return Some(format!("passes by {}", it.value));
    }
    if let Some(entry) = seen.get(expected.len()) {
        return Some(format!("shows {}, which is not before its end", entry.value));
    }
    let trimmed = |at: Place, is_sure: bool| is_trimmed(log, deed, at, is_sure);
    if let Some(entry) = seen.iter().find(|entry| trimmed(entry.at, true)) {
        return Some(format!("shows {}, which was trimmed", entry.value));
    }
    if let Some(it) = left.last()
        && (seen.len() as u64) < stretch.asked.unwrap_or_default()
        && !trimmed(it.at, false)
    {
        return Some(format!("passes by {}", it.value));
    }
    if let (Some(_), Some(asked), Some(entry)) = (&stretch.from, stretch.asked, seen.first())
        && entry.number.is_some_and(|number| number != asked)
    {
        return Some(format!("begins at {:?}, not {asked}", entry.number));
    }
    if stretch.is_end {
        if stretch.to.iter().any(|[_, _, _, index]| *index > 0) {
            return Some("ends in the middle of a batch".to_owned());
        }
        let is_late = |it: &&Known<'_>| it.shown < deed.invoked && is_behind(it.at, &stretch.to);
        if let Some(it) = order.all.iter().find(is_late) {
            return Some(format!("ends before {}, which was there before", it.value));
        }
    }
    let is_over = stretch.is_sealed;
    let is_begun = log.seals.iter().any(|seal| seal.invoked < deed.returned);
    if is_over && (stretch.to != last.to || !is_begun) {
        return Some("was told that there is no more, and there is".to_owned());
    }
    None
}

/// Whether what was at this place was trimmed when something was read: surely, or maybe.
fn is_trimmed(log: &Log<'_>, deed: &Deed, at: Place, is_sure: bool) -> bool {
    let mut trims = log.trims.iter().filter(|(trim, _)| match (is_sure, trim.fate) {
        (true, Fate::Done) => trim.returned < deed.invoked,
        (false, Fate::Done | Fate::Unknown) => trim.invoked < deed.returned,
        (true, Fate::Unknown) | (_, Fate::Failed) => false,
    });
    trims.any(|(_, before)| !is_behind(at, before))
}

/// What is wrong with somebody not finding what is there.
fn check_gone(log: &Log<'_>, deed: &Deed, at: Option<Place>) -> Option<String> {
    if !deed.error.as_ref().is_some_and(|error| error.starts_with("NotFound")) {
        return None;
    }
    let is_trimmed = match at {
        Some(at) => is_trimmed(log, deed, at, false),
        None => log
            .trims
            .iter()
            .any(|(trim, _)| trim.fate != Fate::Failed && trim.invoked < deed.returned),
    };
    (!is_trimmed).then(|| format!("does not find what was not trimmed: {:?}", deed.error))
}

/// Whether somebody had been told of an entry there before this began.
fn is_known_before(log: &Log<'_>, order: &Order<'_>, deed: &Deed, at: Place) -> bool {
    let is_shown = order.at(at).is_some_and(|it| it.shown < deed.invoked);
    is_shown && !is_trimmed(log, deed, at, false)
}

/// Whether no entry lies between the one and the other: who was answered by an error may have gone
/// on to the next segments.
fn is_same_place(order: &Order<'_>, to: &[Place], from: &[Place]) -> bool {
    let is_empty = |(to, from): (&Place, &Place)| {
        to <= from && (to == from || !order.all.iter().any(|it| (*to..*from).contains(&it.at)))
    };
    to.len() == from.len() && to.iter().zip(from).all(is_empty)
}

/// Who reads on begins where it ended, and never sees what comes before what it has seen.
fn check_going_on(log: &Log<'_>, order: &Order<'_>, wrong: &mut Vec<String>) {
    let mut readers = BTreeMap::<u64, Vec<(&Deed, &Stretch)>>::new();
    let read = log.stretches.iter().filter(|(_, it)| it.seen.is_some() && it.from.is_some());
    read.for_each(|(deed, stretch)| {
        readers.entry(stretch.reader).or_default().push((deed, stretch));
    });
    let rank: BTreeMap<Place, usize> = order.all.iter().map(|it| it.at).zip(0..).collect();
    for stretches in readers.values() {
        let mut newest = None;
        for (deed, stretch) in stretches {
            for entry in stretch.seen.iter().flatten() {
                let at = rank.get(&entry.at);
                if at <= newest {
                    let (value, line) = (entry.value, deed.invoked);
                    wrong.push(format!("{value} comes after what it is before (line {line})"));
                }
                newest = newest.max(at);
            }
        }
        for pair in stretches.windows(2) {
            let goes_on = |from: &Vec<Place>| is_same_place(order, &pair[0].1.to, from);
            if !pair[1].1.from.as_ref().is_some_and(goes_on) {
                let line = pair[1].0.invoked;
                wrong.push(format!("who reads on does not where it was (line {line})"));
            }
        }
    }
}
