//! Histories of watches that cannot be.

use super::{deed, unknown};
use crate::check::watches::{check, troubles};
use crate::history::{Deed, Event, Fate, Kind, Moment, Step, TROUBLE_BEGINS, TROUBLE_ENDS};

const SECOND_US: u64 = 1_000_000;

/// A deed of the second of this number, and the next.
fn at(second: u64, operation: &str, step: Step) -> Deed {
    let mut deed = deed(operation, 10 * second, 10 * second + 1, vec![step]);
    deed.invoked_us = second * SECOND_US;
    deed.returned_us = deed.invoked_us + 1;
    deed
}

fn write(second: u64, value: u64) -> Deed {
    at(second, "write", Step::Write { key: "f/c".to_owned(), value })
}

fn watch(second: u64, key: &str, is_exact: bool) -> Deed {
    at(second, "watch", Step::Watch { watch: 7, key: key.to_owned(), is_exact })
}

fn told(second: u64, key: &str, more: bool, version: &str) -> Deed {
    let (keys, version) = (vec![key.to_owned()], Some(version.to_owned()));
    at(second, "news", Step::Told { watch: 7, anew: false, keys, more, version })
}

fn look(second: u64, value: u64, version: &str) -> Deed {
    let (seen, version) = (Some(value), Some(version.to_owned()));
    at(second, "look", Step::Look { watch: 7, key: "f/c".to_owned(), seen, version })
}

fn unwatch(second: u64) -> Deed {
    at(second, "unwatch", Step::Unwatch { watch: 7 })
}

fn found(deeds: &[Deed], troubles: &[(u64, u64)]) -> String {
    let seconds = |(begin, end): &(u64, u64)| (begin * SECOND_US, end * SECOND_US);
    let troubles: Vec<_> = troubles.iter().map(seconds).collect();
    check(&deeds.iter().collect::<Vec<_>>(), &troubles).join("\n")
}

#[test]
fn a_change_that_is_not_heard_of_in_time_is_noticed() {
    let begun = || vec![watch(1, "f/", false), write(2, 1), told(3, "f/c", false, "v1")];
    let with =
        |rest: &[Deed]| [begun(), vec![look(4, 1, "v1"), write(5, 2)], rest.to_vec()].concat();
    let heard = with(&[told(6, "f/c", false, "v2"), look(7, 2, "v2"), unwatch(90)]);
    assert_eq!(found(&heard, &[]), "");
    let missed = found(&with(&[unwatch(90)]), &[]);
    assert!(missed.contains("watch 7 had not heard by 25.0 s that 2 was written"), "{missed}");
    let late = with(&[look(26, 2, "v2"), unwatch(90)]);
    assert!(found(&late, &[]).contains("had not heard"), "no sooner than it may");
    assert_eq!(found(&late, &[(10, 12)]), "", "while there is trouble nothing is due");
    assert_eq!(found(&with(&[unwatch(24)]), &[]), "", "who watches no more hears nothing");
}

#[test]
fn what_is_unknown_or_was_there_before_nobody_must_have_heard_of() {
    let deeds = [write(1, 1), watch(2, "f/c", true), unknown(write(3, 2)), unwatch(90)];
    assert_eq!(found(&deeds, &[]), "");
    let of_others = [watch(2, "g/", false), write(3, 2), unwatch(90)];
    assert_eq!(found(&of_others, &[]), "");
    let later = [watch(2, "f/c", true), write(3, 2), write(4, 3), look(5, 3, "v3"), unwatch(90)];
    assert_eq!(found(&later, &[]), "", "what came later was seen");
}

#[test]
fn news_of_what_is_not_there_is_noticed() {
    let deeds = |version, more| {
        let news = told(3, "f/c", more, "v2");
        [watch(1, "f/c", true), write(2, 1), news, look(4, 1, version), unwatch(9)]
    };
    assert_eq!(found(&deeds("v2", false), &[]), "");
    assert_eq!(found(&deeds("v3", false), &[]), "");
    let text = found(&deeds("v1", false), &[]);
    assert!(text.contains("was told of a change at v2, and found [\"v1\"]"), "{text}");
    assert_eq!(found(&deeds("v1", true), &[]), "", "it may be one of those that are not named");
    let strange = [watch(1, "f/c", true), told(3, "f/d", false, "v2"), unwatch(9)];
    assert!(found(&strange, &[]).contains("watch 7 of f/c was told of f/d"));
}

#[test]
fn looks_that_go_back_or_show_what_was_replaced_are_noticed() {
    let begun = || vec![watch(1, "f/c", true), write(2, 1), write(3, 2)];
    let with = |rest: &[Deed]| found(&[begun(), rest.to_vec()].concat(), &[]);
    let stale = with(&[look(4, 1, "v1")]);
    assert!(stale.contains("saw 1 in f/c after 2 had been written"), "{stale}");
    assert!(with(&[look(4, 0, "v0")]).contains("saw 0 in f/c"), "nor nothing at all");
    assert!(with(&[look(4, 2, "v2"), look(5, 2, "v1")]).contains("saw f/c go back"));
    assert!(with(&[look(4, 9, "v2")]).contains("which nobody wrote"));
}

#[test]
fn a_watch_that_ends_by_itself_is_noticed() {
    let mut ended = told(3, "f/c", false, "v2");
    (ended.fate, ended.error) = (Fate::Failed, Some("Unavailable: no more".to_owned()));
    let text = found(&[watch(1, "f/c", true), ended], &[]);
    assert!(text.contains("a watch ended by itself") && text.contains("no more"), "{text}");
}

#[test]
fn trouble_is_from_a_fault_until_the_cluster_is_whole() {
    let note = |at_us, text: &str| Event {
        order: at_us,
        at_us,
        process: 0,
        kind: Kind::Note,
        workload: String::new(),
        operation: text.to_owned(),
        moment: Moment::Strict,
        steps: Vec::new(),
        error: None,
    };
    let begins = format!("{TROUBLE_BEGINS}1.5 s quiet, kill");
    let mut notes = vec![note(3, &begins), note(5, "mended: kill"), note(9, TROUBLE_ENDS)];
    notes.push(note(12, &begins));
    assert_eq!(troubles(&notes), [(3, 9), (12, u64::MAX)]);
}
