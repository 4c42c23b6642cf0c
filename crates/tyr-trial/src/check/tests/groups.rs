//! Histories of groups that cannot be.

use super::{deed, found, unknown};
use crate::check::groups::check;
use crate::history::{Deed, Fate, Step};

fn change(invoked: u64, entry: u64, is_entering: bool) -> Deed {
    let key = "g".to_owned();
    let step = if is_entering { Step::Enter { key, entry } } else { Step::Leave { key, entry } };
    deed("change", invoked, invoked + 1, vec![step])
}

fn members(operation: &str, count: u64, sum: u64, seen: Option<&[u64]>) -> Deed {
    let (count, sum, seen) = (Some(count), Some(sum), seen.map(<[u64]>::to_vec));
    deed(operation, 50, 51, vec![Step::Members { key: "g".to_owned(), count, sum, seen }])
}

/// Entries 3 and 4 are made and 3 is removed; a reading shows what it shows; in the end there are
/// so many.
fn of_a_group(others: &[Deed], reading: Deed, count: u64) -> String {
    let mut deeds = vec![change(1, 3, true), change(3, 4, true), change(5, 3, false)];
    deeds.extend_from_slice(others);
    deeds.extend([reading, members("final", count, 0, None)]);
    found(check, &deeds)
}

#[test]
fn a_header_that_is_not_of_its_entries_is_noticed() {
    let snapshot = |count, sum, seen| members("snapshot", count, sum, Some(seen));
    assert_eq!(of_a_group(&[], snapshot(1, 4, &[4]), 1), "");
    for (count, sum, seen) in [(1, 4, &[][..]), (1, 4, &[3, 4]), (2, 7, &[4]), (1, 4, &[3])] {
        let text = of_a_group(&[], snapshot(count, sum, seen), 1);
        assert!(text.contains("its header says"), "{count} {sum} {seen:?}: {text}");
    }
}

#[test]
fn changes_that_are_lost_or_doubled_are_noticed() {
    let reading = || members("snapshot", 1, 4, Some(&[4]));
    assert!(of_a_group(&[], reading(), 2).contains("g has 2 in the end, not 1..=1"));
    assert!(of_a_group(&[], reading(), 0).contains("g has 0 in the end"));
    let open = [unknown(change(7, 5, true)), unknown(change(9, 4, false))];
    for count in 0..=2 {
        assert_eq!(of_a_group(&open, reading(), count), "");
    }
    let mut refused = change(7, 5, true);
    refused.fate = Fate::Failed;
    assert!(of_a_group(&[refused], reading(), 2).contains("in the end"));
    assert!(found(check, &[change(1, 3, true)]).contains("was not read in the end"));
}
