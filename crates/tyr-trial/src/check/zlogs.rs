//! Whether each entry has one position, for ever, and positions are in the order of
//! acknowledgements.

use std::collections::BTreeMap;

use crate::history::{Deed, Fate, Step};

/// What was seen from which position on.
type Reading<'a> = (&'a Deed, u64, &'a [(u64, u64)]);

/// All that was done with one log.
#[derive(Default)]
struct Log<'a> {
    /// What was appended, and where.
    placed: Vec<(&'a Deed, u64, Option<u64>)>,
    /// What was read.
    seen: Vec<Reading<'a>>,
}

/// Checks all logs; that each was read in the end, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut logs = BTreeMap::<&str, Log<'_>>::new();
    for deed in deeds {
        for step in &deed.steps {
            if let Step::Placed { key, value, at } = step {
                logs.entry(key).or_default().placed.push((deed, *value, *at));
            } else if let Step::Positions { key, from, seen: Some(seen) } = step {
                logs.entry(key).or_default().seen.push((deed, *from, seen));
            }
        }
    }
    let told = |(key, log): (&&str, &Log<'_>)| {
        let found = log.check();
        found.into_iter().map(|text| format!("{key}: {text}")).collect::<Vec<_>>()
    };
    logs.iter().flat_map(told).collect()
}

impl Log<'_> {
    fn check(&self) -> Vec<String> {
        let is_last = |(deed, from, _): &&Reading<'_>| deed.operation == "final" && *from == 0;
        let Some((_, _, last)) = self.seen.iter().rfind(is_last) else {
            return vec!["it was not read in the end".to_owned()];
        };
        let mut wrong = Vec::new();
        if !last.is_sorted_by(|one, two| one.0 < two.0) {
            wrong.push("positions do not ascend".to_owned());
        }
        let last: BTreeMap<u64, u64> = last.iter().copied().collect();
        self.check_entries(&last, &mut wrong);
        self.check_order(&mut wrong);
        for (deed, from, seen) in &self.seen {
            self.check_reading((deed, *from, seen), &last, &mut wrong);
        }
        wrong
    }

    /// Each that was acknowledged is where it was put, and none that was refused is anywhere.
    fn check_entries(&self, last: &BTreeMap<u64, u64>, wrong: &mut Vec<String>) {
        let mut places = BTreeMap::<u64, Vec<u64>>::new();
        for (position, value) in last {
            places.entry(*value).or_default().push(*position);
        }
        for (value, places) in places.iter().filter(|(_, places)| places.len() > 1) {
            wrong.push(format!("entry {value} is there twice, at {places:?}"));
        }
        for (deed, value, at) in &self.placed {
            let found = places.remove(value).unwrap_or_default();
            let line = deed.invoked;
            match deed.fate {
                Fate::Done if found.first() != at.as_ref() => wrong.push(format!(
                    "entry {value} was put at {at:?} and is at {found:?} (line {line})"
                )),
                Fate::Failed if !found.is_empty() => wrong
                    .push(format!("entry {value} was refused and is at {found:?} (line {line})")),
                Fate::Done | Fate::Failed | Fate::Unknown => {}
            }
        }
        if !places.is_empty() {
            wrong.push(format!("entries of nobody: {places:?}"));
        }
    }

    /// Of two appends of which one was acknowledged before the other began, it has the lower
    /// position.
    fn check_order(&self, wrong: &mut Vec<String>) {
        let done = self.placed.iter().filter(|(deed, ..)| deed.fate == Fate::Done);
        let mut begun: Vec<(&Deed, u64)> =
            done.filter_map(|(deed, _, at)| Some((*deed, (*at)?))).collect();
        let mut ended = begun.clone();
        begun.sort_by_key(|(deed, _)| deed.invoked);
        ended.sort_by_key(|(deed, _)| deed.returned);
        let mut before = ended.into_iter().peekable();
        let mut highest = None;
        for (deed, at) in begun {
            while let Some((_, ended)) = before.next_if(|(it, _)| it.returned < deed.invoked) {
                highest = highest.max(Some(ended));
            }
            if let Some(highest) = highest.filter(|highest| *highest >= at) {
                let line = deed.invoked;
                wrong.push(format!("{at} was given after {highest} was there (line {line})"));
            }
        }
    }

    /// A reading shows what is there for ever, with all that was acknowledged before it.
    fn check_reading(
        &self,
        (deed, from, seen): Reading<'_>,
        last: &BTreeMap<u64, u64>,
        wrong: &mut Vec<String>,
    ) {
        let line = deed.invoked;
        let end = seen.last().map_or(from, |(position, _)| position + 1);
        let there = last.range(from..end.max(from)).map(|(position, value)| (*position, *value));
        if !there.eq(seen.iter().copied()) {
            wrong.push(format!("what was read from {from} to {end} changed (line {line})"));
        }
        let before = self.placed.iter().filter(|(it, ..)| it.returned < deed.invoked);
        let missed = before.filter(|(it, _, at)| it.fate == Fate::Done && *at >= Some(end));
        if let Some((_, value, at)) = missed.max_by_key(|(_, _, at)| *at) {
            wrong.push(format!("a reading to {end} missed entry {value} at {at:?} (line {line})"));
        }
    }
}
