//! Whether kept snapshots are what was there when they were kept: each reading the same, pairs
//! whole, all in it that was acknowledged before, nothing that began after; and there until they
//! are dropped, but not longer.

use std::collections::{BTreeMap, BTreeSet};

use super::listings::{self, Writes, difference, listing, of_one_moment};
use crate::fault::Fault;
use crate::history::{Deed, Event, Fate, Kind, Step, TROUBLE_BEGINS};

/// How a reading is refused of which something is not known any more.
const REFUSED: &str = "this part of the kept snapshot cannot be read";

/// Whether a disk was filled, as the notes of a history say: then a node drops the oldest.
pub fn is_disk_filled(events: &[Event]) -> bool {
    let mut notes = events.iter().filter(|event| event.kind == Kind::Note);
    notes.any(|event| {
        let text = event.operation.strip_prefix(TROUBLE_BEGINS);
        text.is_some_and(|text| text.contains(Fault::Disk.name()))
    })
}

/// All that was done with a snapshot.
#[derive(Default)]
struct Snapshot<'a> {
    keep: Option<&'a Deed>,
    looks: Vec<&'a Deed>,
    drops: Vec<&'a Deed>,
}

/// Checks all kept snapshots; that what there is was listed in the end, too.
pub fn check(deeds: &[&Deed], is_disk_filled: bool) -> Vec<String> {
    let writes = listings::writes_of(deeds);
    let mut snapshots = BTreeMap::<u64, Snapshot<'_>>::new();
    let mut wrong = Vec::new();
    let mut is_read_last = false;
    for deed in deeds {
        is_read_last |= deed.operation == "final" && deed.fate == Fate::Done;
        for step in &deed.steps {
            if let Step::Keep { snapshot } = step {
                snapshots.entry(*snapshot).or_default().keep = Some(deed);
            } else if let Step::Kept { snapshot } = step {
                snapshots.entry(*snapshot).or_default().looks.push(deed);
            } else if let Step::Unkeep { snapshot } = step {
                snapshots.entry(*snapshot).or_default().drops.push(deed);
            }
        }
    }
    for (number, snapshot) in &snapshots {
        let found = snapshot.check(&writes, is_disk_filled);
        wrong.extend(found.into_iter().map(|text| format!("snapshot {number}: {text}")));
    }
    if !is_read_last {
        wrong.push("nothing was listed in the end".to_owned());
    }
    wrong
}

impl Snapshot<'_> {
    fn check(&self, writes: &Writes<'_>, is_disk_filled: bool) -> Vec<String> {
        let Some(keep) = self.keep.filter(|keep| keep.fate == Fate::Done) else {
            let look = self.looks.first();
            return look.map(|look| at(look, "it was read and never kept")).into_iter().collect();
        };
        let (mut wrong, mut refusals) = (BTreeSet::new(), Vec::new());
        let mut first: Option<&Vec<(String, u64)>> = None;
        for look in &self.looks {
            let Some(seen) = look.steps.iter().find_map(listing) else {
                refusals.extend(self.refusal(look, is_disk_filled).map(|text| at(look, &text)));
                continue;
            };
            let mut found: Vec<String> =
                look.steps.iter().filter_map(|step| unlike(step, seen)).collect();
            if self.drops.iter().any(|it| it.fate == Fate::Done && it.returned < look.invoked) {
                found.push("it was read after it had been dropped".to_owned());
            }
            match first {
                None => {
                    found.extend(of_one_moment(writes, (keep.invoked, keep.returned), seen));
                    found.extend(missing(writes, seen));
                }
                Some(first) if first != seen => found.push(difference(first, seen)),
                Some(_) => {}
            }
            first = first.or(Some(seen));
            wrong.extend(found.iter().map(|text| at(look, text)));
        }
        // One refusal is followed by others of the same.
        let more = refusals.len().saturating_sub(1);
        let refused = refusals.first().map(|text| format!("{text}, and {more} times more"));
        wrong.into_iter().chain(refused).collect()
    }

    /// What is wrong with a reading that was refused.
    fn refusal(&self, look: &Deed, is_disk_filled: bool) -> Option<String> {
        let error = look.error.as_deref().unwrap_or("?");
        let may_be_dropped =
            is_disk_filled || self.drops.iter().any(|drop| drop.invoked < look.returned);
        match error.split(':').next().unwrap_or_default() {
            "NotFound" if !may_be_dropped => Some(format!("nobody dropped it: {error}")),
            "Unavailable" if error.contains(REFUSED) && !may_be_dropped => Some(error.to_owned()),
            "NotFound" | "Unavailable" | "TimedOut" => None,
            _ => Some(error.to_owned()),
        }
    }
}

/// What a step read that is not what was listed.
fn unlike(step: &Step, listed: &[(String, u64)]) -> Option<String> {
    let Step::Read { key, seen: Some(seen) } = step else {
        return listings::of_the_same(step, listed);
    };
    let size = listed.iter().find(|(other, _)| other == key).map_or(0, |(_, size)| *size);
    (*seen != size).then(|| format!("{key} was read with {seen} bytes and listed with {size}"))
}

/// What a client had done, of all that it had, before something that is in the listing, and that is
/// not in it.
fn missing(writes: &Writes<'_>, listed: &[(String, u64)]) -> Option<String> {
    let sizes: BTreeMap<&str, u64> = listed.iter().map(|(key, size)| (&**key, *size)).collect();
    let size_of = |pair: u64| sizes.get(&*listings::keys_of(pair)[0]).copied();
    // The last that each client did of what is there.
    let mut last = BTreeMap::<u32, u64>::new();
    for (pair, writes) in writes {
        let Some(size) = size_of(*pair) else { continue };
        let mut there = writes.iter().filter(|(_, other)| *other == Some(size));
        // Sizes come again: with two of one size it is not known which it is.
        let (Some((deed, _)), None) = (there.next(), there.next()) else { continue };
        let at = last.entry(deed.process).or_default();
        *at = (*at).max(deed.invoked);
    }
    for (pair, writes) in writes {
        let is_before = |(deed, _): &(&Deed, Option<u64>)| {
            let of_its_client = last.get(&deed.process);
            deed.fate == Fate::Done && of_its_client.is_some_and(|last| deed.invoked < *last)
        };
        let Some(place) = writes.iter().rposition(is_before) else { continue };
        let seen = size_of(*pair);
        if !writes[place..].iter().any(|(_, size)| *size == seen) {
            let line = writes[place].0.invoked;
            return Some(format!("pair {pair} lacks line {line}, and what came later is there"));
        }
    }
    None
}

fn at(look: &Deed, text: &str) -> String {
    format!("{text} (line {})", look.invoked)
}
