//! Histories of logs of positions that cannot be: each rule has one that breaks it.

use super::{deed, found, unknown};
use crate::check::zlogs::check;
use crate::history::{Deed, Fate, Step};

fn append(invoked: u64, value: u64, at: u64) -> Deed {
    let step = Step::Placed { key: "z".to_owned(), value, at: Some(at) };
    deed("append", invoked, invoked + 1, vec![step])
}

fn read(operation: &str, invoked: u64, from: u64, seen: &[(u64, u64)]) -> Deed {
    let step = Step::Positions { key: "z".to_owned(), from, seen: Some(seen.to_vec()) };
    deed(operation, invoked, invoked + 1, vec![step])
}

/// Two entries with a hole in between, and one of which nobody knows.
fn sound() -> Vec<Deed> {
    vec![
        append(1, 10, 0),
        append(3, 11, 2),
        read("read", 5, 1, &[(2, 11)]),
        unknown(append(7, 12, 3)),
        read("final", 20, 0, &[(0, 10), (2, 11), (3, 12)]),
    ]
}

fn changed(change: impl FnOnce(&mut Vec<Deed>)) -> String {
    let mut deeds = sound();
    change(&mut deeds);
    found(check, &deeds)
}

#[test]
fn what_holds_is_not_found_wrong() {
    assert_eq!(changed(|_| {}), "");
    let without = changed(|deeds| deeds[4] = read("final", 20, 0, &[(0, 10), (2, 11)]));
    assert_eq!(without, "", "what is unknown need not be there");
}

#[test]
fn entries_that_are_lost_moved_doubled_or_of_nobody_are_found() {
    let last = |seen: &[(u64, u64)]| changed(|deeds| deeds[4] = read("final", 20, 0, seen));
    assert!(last(&[(2, 11)]).contains("entry 10 was put at Some(0) and is at []"));
    assert!(last(&[(1, 10), (2, 11)]).contains("entry 10 was put at Some(0) and is at [1]"));
    assert!(last(&[(0, 10), (1, 10), (2, 11)]).contains("entry 10 is there twice"));
    assert!(last(&[(0, 10), (2, 11), (4, 99)]).contains("entries of nobody"));
    assert!(last(&[(2, 11), (0, 10)]).contains("do not ascend"));
    assert!(changed(|deeds| deeds[3].fate = Fate::Failed).contains("entry 12 was refused and is"));
    assert!(changed(|deeds| drop(deeds.pop())).contains("not read in the end"));
}

#[test]
fn positions_against_the_order_of_acknowledgements_are_found() {
    let wrong = changed(|deeds| {
        deeds.insert(2, append(4, 13, 1));
        deeds[5] = read("final", 20, 0, &[(0, 10), (1, 13), (2, 11)]);
    });
    // It began before the one at 2 was acknowledged, so that may be.
    assert!(!wrong.contains("was given after"), "{wrong}");
    let wrong = changed(|deeds| {
        deeds.insert(3, append(8, 13, 1));
        deeds[5] = read("final", 20, 0, &[(0, 10), (1, 13), (2, 11)]);
    });
    assert!(wrong.contains("1 was given after 2 was there"), "{wrong}");
}

#[test]
fn readings_that_miss_or_change_something_are_found() {
    let reading = |from, seen: &[_]| changed(|deeds| deeds[2] = read("read", 5, from, seen));
    assert!(reading(0, &[(0, 10)]).contains("a reading to 1 missed entry 11"));
    assert!(reading(0, &[(2, 11)]).contains("what was read from 0 to 3 changed"));
    assert!(reading(1, &[(1, 12), (2, 11)]).contains("what was read from 1 to 3 changed"));
}
