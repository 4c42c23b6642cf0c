//! Whether a sheet is what its writer made of it: each reading shows it as it was at a moment
//! between its beginning and its end, cell for cell.

use std::collections::BTreeMap;

use crate::history::{Deed, Fate, Step};
use crate::workload::holes::CELLS;

/// What a sheet became, one after the other: by whom, and what was in its cells then.
type Past<'a> = Vec<(&'a Deed, Vec<Option<u64>>)>;

/// Checks the readings of sheets; that there is a last one, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut pasts = BTreeMap::<&str, Past<'_>>::new();
    for deed in deeds.iter().filter(|deed| deed.fate != Fate::Failed) {
        for step in &deed.steps {
            let Step::Cells { key, from, count, value } = step else { continue };
            let past = pasts.entry(key).or_default();
            let empty = || vec![Some(0); CELLS as usize];
            let mut cells = past.last().map_or_else(empty, |(_, cells)| cells.clone());
            let changed = *from as usize..(from + count) as usize;
            if let Some(changed) = cells.get_mut(changed) {
                changed.fill(Some(value.unwrap_or(0)));
            }
            past.push((deed, cells));
        }
    }
    let (mut wrong, mut is_read_last) = (Vec::new(), false);
    for deed in deeds.iter().filter(|deed| deed.fate == Fate::Done) {
        for step in &deed.steps {
            let Step::Sheet { key, seen: Some(seen) } = step else { continue };
            is_read_last |= deed.operation == "final";
            let past = pasts.get(key.as_str()).map_or(&[][..], Vec::as_slice);
            if !possible(past, deed).any(|cells| cells == *seen) {
                let line = deed.invoked;
                wrong
                    .push(format!("{key} was not {seen:?} then: {} (line {line})", deed.operation));
            }
        }
    }
    if !is_read_last {
        wrong.push("no sheet was read in the end".to_owned());
    }
    wrong
}

/// What a sheet may be while `deed` reads it: what was acknowledged last before it began, and what
/// may have taken effect before its end.
fn possible<'a>(
    past: &'a [(&Deed, Vec<Option<u64>>)],
    deed: &Deed,
) -> impl Iterator<Item = Vec<Option<u64>>> + 'a {
    let before = past.iter().take_while(|(write, _)| write.returned < deed.invoked).count();
    let until = past.iter().take_while(|(write, _)| write.invoked < deed.returned).count();
    let absent = (before == 0).then(Vec::new);
    let last = before.checked_sub(1).map(|last| past[last].1.clone());
    let since = past[before..until.max(before)].iter().map(|(_, cells)| cells.clone());
    absent.into_iter().chain(last).chain(since)
}
