//! Whether who watches hears of each change: after it, and soon once nothing is troubled any more,
//! the watcher has looked and found it, or a later one; and what it was told of it found.

use std::collections::BTreeMap;

use crate::history::{Deed, Event, Fate, Kind, Step, TROUBLE_BEGINS, TROUBLE_ENDS};

/// A change is heard of when the cluster has been whole for so long since, in microseconds: a node
/// that was lost is found to be so within 3 s, and the next fault may come a moment before.
const HEARD_US: u64 = 20_000_000;

/// What a watcher saw of a key.
struct Look<'a> {
    deed: &'a Deed,
    value: u64,
    version: &'a str,
}

/// All that a watch was told, and what it looked at.
#[derive(Default)]
struct Watch<'a> {
    target: Option<(&'a Deed, &'a str, bool)>,
    told: Vec<(&'a Deed, &'a [String], bool, &'a str)>,
    looks: BTreeMap<&'a str, Vec<Look<'a>>>,
    /// When it was ended, in microseconds.
    end_us: Option<u64>,
}

/// A write of a key.
struct Write<'a> {
    deed: &'a Deed,
    value: u64,
}

/// When the cluster was troubled: from a fault's beginning until all was whole.
pub fn troubles(events: &[Event]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for event in events.iter().filter(|event| event.kind == Kind::Note) {
        if event.operation.starts_with(TROUBLE_BEGINS) {
            all.push((event.at_us, u64::MAX));
        } else if event.operation == TROUBLE_ENDS
            && let Some(last) = all.last_mut()
        {
            last.1 = event.at_us;
        }
    }
    all
}

/// Checks all watches, by when the cluster was troubled.
pub fn check(deeds: &[&Deed], troubles: &[(u64, u64)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut watches = BTreeMap::<u64, Watch<'_>>::new();
    let mut writes = BTreeMap::<&str, Vec<Write<'_>>>::new();
    for deed in deeds {
        for step in &deed.steps {
            note(&mut watches, &mut writes, deed, step);
        }
        if deed.operation == "news" && deed.fate != Fate::Done {
            let (line, error) = (deed.invoked, deed.error.as_deref().unwrap_or("?"));
            wrong.push(format!("a watch ended by itself (line {line}): {error}"));
        }
    }
    let over_us = deeds.iter().map(|deed| deed.invoked_us).max().unwrap_or(0);
    for (number, watch) in &watches {
        let Some((begun, target, is_exact)) = watch.target else { continue };
        watch.check_news(*number, (target, is_exact), &mut wrong);
        let end_us = watch.end_us.unwrap_or(over_us);
        for (key, of_key) in writes.iter().filter(|(key, _)| covers(target, is_exact, key)) {
            let looks = watch.looks.get(key).map_or(&[][..], Vec::as_slice);
            check_looks(*number, key, of_key, looks, &mut wrong);
            for write in of_key.iter().filter(|it| it.deed.invoked > begun.returned) {
                let until_us = heard_by(write.deed.returned_us, troubles);
                let is_due = write.deed.fate == Fate::Done && until_us <= end_us;
                let has_seen = |look: &Look<'_>| {
                    let is_it = look.value == write.value;
                    (is_it || look.deed.invoked > write.deed.returned)
                        && look.deed.returned_us <= until_us
                };
                if is_due && !looks.iter().any(has_seen) {
                    wrong.push(format!(
                        "watch {number} had not heard by {:.1} s that {} was written into {key} at \
                         {:.1} s (line {})",
                        until_us as f64 / 1e6,
                        write.value,
                        write.deed.returned_us as f64 / 1e6,
                        write.deed.invoked
                    ));
                }
            }
        }
    }
    wrong
}

fn note<'a>(
    watches: &mut BTreeMap<u64, Watch<'a>>,
    writes: &mut BTreeMap<&'a str, Vec<Write<'a>>>,
    deed: &'a Deed,
    step: &'a Step,
) {
    let is_done = deed.fate == Fate::Done;
    if let Step::Write { key, value } = step
        && deed.fate != Fate::Failed
    {
        writes.entry(key).or_default().push(Write { deed, value: *value });
    } else if let Step::Watch { watch, key, is_exact } = step
        && is_done
    {
        watches.entry(*watch).or_default().target = Some((deed, key, *is_exact));
    } else if let Step::Told { watch, keys, more, version: Some(at), .. } = step
        && is_done
    {
        watches.entry(*watch).or_default().told.push((deed, keys, *more, at));
    } else if let Step::Look { watch, key, seen: Some(value), version: Some(version) } = step {
        let look = Look { deed, value: *value, version };
        watches.entry(*watch).or_default().looks.entry(key).or_default().push(look);
    } else if let Step::Unwatch { watch } = step {
        watches.entry(*watch).or_default().end_us = Some(deed.invoked_us);
    }
}

impl Watch<'_> {
    /// What is told of is watched, and who looks then finds a change as new as it was told of, in
    /// one of the keys that were named.
    fn check_news(&self, number: u64, (target, is_exact): (&str, bool), wrong: &mut Vec<String>) {
        for (deed, keys, is_more, at) in &self.told {
            let line = deed.invoked;
            if let Some(key) = keys.iter().find(|key| !covers(target, is_exact, key)) {
                wrong.push(format!("watch {number} of {target} was told of {key} (line {line})"));
            }
            let next = |key: &String| {
                let looks = self.looks.get(key.as_str())?;
                looks.iter().find(|look| look.deed.invoked > deed.returned)
            };
            let found: Option<Vec<&str>> =
                keys.iter().map(|key| next(key).map(|look| look.version)).collect();
            // Not all were looked at: those may have it.
            let Some(found) = found.filter(|_| !is_more) else { continue };
            if !found.iter().any(|version| version >= at) {
                wrong.push(format!(
                    "watch {number} was told of a change at {at}, and found {found:?} (line {line})"
                ));
            }
        }
    }
}

/// No look shows what something else had replaced before it began, and versions never fall.
fn check_looks(
    number: u64,
    key: &str,
    writes: &[Write<'_>],
    looks: &[Look<'_>],
    wrong: &mut Vec<String>,
) {
    for look in looks {
        let line = look.deed.invoked;
        let seen = writes.iter().find(|write| write.value == look.value);
        let written = seen.map(|write| write.deed.returned);
        let Some(written) = written.or((look.value == 0).then_some(0)) else {
            wrong.push(format!("{key} had {} in it, which nobody wrote (line {line})", look.value));
            continue;
        };
        let is_between = |write: &&Write<'_>| {
            let Deed { invoked, returned, fate, .. } = write.deed;
            *fate == Fate::Done && *invoked > written && *returned < look.deed.invoked
        };
        if let Some(write) = writes.iter().find(is_between) {
            wrong.push(format!(
                "watch {number} saw {} in {key} after {} had been written (line {line})",
                look.value, write.value
            ));
        }
    }
    if !looks.is_sorted_by_key(|look| look.version) {
        wrong.push(format!("watch {number} saw {key} go back"));
    }
}

fn covers(target: &str, is_exact: bool, key: &str) -> bool {
    if is_exact { key == target } else { key.starts_with(target) }
}

/// When the cluster has been whole for [`HEARD_US`] since this moment.
fn heard_by(at_us: u64, troubles: &[(u64, u64)]) -> u64 {
    let (mut at_us, mut left_us) = (at_us, HEARD_US);
    for (begin_us, end_us) in troubles {
        if *end_us <= at_us {
            continue;
        }
        let quiet_us = begin_us.saturating_sub(at_us);
        if quiet_us >= left_us {
            break;
        }
        left_us -= quiet_us;
        at_us = at_us.max(*end_us);
    }
    at_us.saturating_add(left_us)
}
