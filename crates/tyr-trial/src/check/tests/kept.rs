//! Histories of kept snapshots that cannot be.

use super::{deed, unknown};
use crate::check::kept::{check, is_disk_filled};
use crate::check::listings::keys_of;
use crate::history::{Deed, Event, Fate, Kind, Moment, Step, TROUBLE_BEGINS, TROUBLE_ENDS};

fn put(at: u64, pair: u64, size: Option<u64>) -> Deed {
    // All of one client.
    Deed { process: 1, ..deed("put", at, at + 1, vec![Step::Pair { pair, size }]) }
}

fn keep(at: u64) -> Deed {
    deed("keep", at, at + 4, vec![Step::Keep { snapshot: 7 }])
}

fn unkeep(at: u64) -> Deed {
    deed("drop", at, at + 1, vec![Step::Unkeep { snapshot: 7 }])
}

fn listed(pairs: &[(u64, u64)]) -> Vec<(String, u64)> {
    pairs.iter().flat_map(|(pair, size)| keys_of(*pair).map(|key| (key, *size))).collect()
}

/// A reading that shows these pairs, and one blob of this size.
fn look_of(at: u64, seen: Vec<(String, u64)>, key: &str, size: u64) -> Deed {
    // Sizes of the tests are below what a listing asks for: all bytes come.
    let head = |(key, size): &(String, u64)| (key.clone(), *size, *size, Some(*size as u8));
    let heads = seen.iter().map(head).collect();
    let mut steps = vec![Step::Kept { snapshot: 7 }, Step::Scan { seen: Some(seen) }];
    steps.push(Step::Heads { seen: Some(heads) });
    steps.push(Step::Read { key: key.to_owned(), seen: Some(size) });
    deed("look", at, at + 1, steps)
}

fn look(at: u64, pairs: &[(u64, u64)]) -> Deed {
    look_of(at, listed(pairs), "other", 0)
}

fn refused(at: u64, error: &str) -> Deed {
    let error = Some(error.to_owned());
    Deed { fate: Fate::Failed, error, ..deed("look", at, at + 1, vec![Step::Kept { snapshot: 7 }]) }
}

fn last(at: u64) -> Deed {
    deed("final", at, at + 1, vec![Step::Scan { seen: Some(Vec::new()) }])
}

fn found_where(is_disk_filled: bool, deeds: &[Deed]) -> String {
    let all: Vec<Deed> = deeds.iter().cloned().chain([last(990)]).collect();
    check(&all.iter().collect::<Vec<_>>(), is_disk_filled).join("\n")
}

fn found(deeds: &[Deed]) -> String {
    found_where(false, deeds)
}

#[test]
fn a_snapshot_that_stays_as_it_was_until_it_is_dropped_is_fine() {
    let deeds = [
        put(1, 1, Some(5)),
        put(3, 2, Some(6)),
        keep(10),
        put(11, 2, None),
        put(20, 1, Some(7)),
        look(30, &[(1, 5), (2, 6)]),
        put(32, 1, None),
        look_of(40, listed(&[(1, 5), (2, 6)]), &keys_of(1)[1], 5),
        unkeep(50),
        refused(52, "NotFound: dropped"),
    ];
    assert_eq!(found(&deeds), "");
    let deleted_meanwhile = [&deeds[..5], &[look(30, &[(1, 5)])]].concat();
    assert_eq!(found(&deleted_meanwhile), "", "while it was kept");
    let unknown_may_be = [unknown(put(1, 1, Some(5))), keep(10), look(30, &[(1, 5)])];
    assert_eq!(found(&unknown_may_be), "");
    assert!(check(&deeds.iter().collect::<Vec<_>>(), false)[0].contains("end"));
}

#[test]
fn what_was_there_and_is_not_and_what_came_later_is_noticed() {
    let with = |look: Deed| {
        found(&[put(1, 1, Some(5)), put(3, 1, Some(6)), keep(10), put(20, 2, Some(7)), look])
    };
    assert!(with(look(30, &[])).contains("pair 1 was not None then"));
    assert!(with(look(30, &[(1, 5)])).contains("pair 1 was not Some(5) then"));
    assert!(with(look(30, &[(1, 6), (2, 7)])).contains("pair 2 was not Some(7) then"));
    let torn = look_of(30, vec![(keys_of(1)[0].clone(), 6)], "other", 0);
    assert!(with(torn).contains("torn pair 1"));
    assert!(with(look(30, &[(1, 6), (9, 1)])).contains("nobody has put"));
}

#[test]
fn a_cut_through_what_one_client_did_is_noticed() {
    // Both while it was kept, one after the other.
    let with = |seen: &[(u64, u64)]| {
        found(&[keep(10), put(11, 1, Some(5)), put(13, 2, Some(6)), look(30, seen)])
    };
    assert_eq!(with(&[]), "");
    assert_eq!(with(&[(1, 5)]), "");
    assert_eq!(with(&[(1, 5), (2, 6)]), "");
    assert!(with(&[(2, 6)]).contains("pair 1 lacks line 11"), "{}", with(&[(2, 6)]));
}

#[test]
fn readings_that_differ_are_noticed() {
    let with = |other: Deed| {
        let first = look(30, &[(1, 5), (2, 6)]);
        found(&[put(1, 1, Some(5)), put(3, 2, Some(6)), keep(10), first, other])
    };
    assert!(with(look(40, &[(1, 5)])).contains("unrepeatable listing"));
    let all = || listed(&[(1, 5), (2, 6)]);
    assert_eq!(with(look_of(40, all(), &keys_of(1)[0], 5)), "");
    let other = with(look_of(40, all(), &keys_of(1)[0], 0));
    assert!(other.contains("was read with 0 bytes and listed with 5"), "{other}");
    let mut heads = look(40, &[(1, 5), (2, 6)]);
    heads.steps[2] = Step::Heads { seen: Some(Vec::new()) };
    assert!(with(heads).contains("unrepeatable listing"));
}

#[test]
fn a_snapshot_that_goes_by_itself_or_does_not_go_is_noticed() {
    let begun = || vec![put(1, 1, Some(5)), keep(10)];
    let with = |rest: &[Deed]| [begun(), rest.to_vec()].concat();
    let late = with(&[unkeep(20), look(30, &[(1, 5)])]);
    assert!(found(&late).contains("read after it had been dropped"));
    let gone = with(&[refused(30, "NotFound: there is no kept snapshot"), unkeep(40)]);
    assert!(found(&gone).contains("nobody dropped it"));
    assert_eq!(found_where(true, &gone), "");
    let strange = with(&[refused(30, "SnapshotTooOld: gone")]);
    assert!(found(&strange).contains("SnapshotTooOld"));
    let cut = "Unavailable: this part of the kept snapshot cannot be read: gone";
    let text = found(&with(&[refused(30, cut), refused(32, cut)]));
    assert!(text.contains("cannot be read") && text.contains("and 1 times more"), "{text}");
    assert_eq!(found(&with(&[unkeep(29), refused(30, cut)])), "", "it may be dropped by then");
    assert_eq!(found(&with(&[refused(30, "Unavailable: no node answers")])), "");
    let never = [Deed { fate: Fate::Failed, ..keep(10) }, look(30, &[])];
    assert!(found(&never).contains("never kept"));
}

#[test]
fn notes_say_whether_a_disk_was_full() {
    let note = |at_us, text: String| Event {
        order: at_us,
        at_us,
        process: 0,
        kind: Kind::Note,
        workload: String::new(),
        operation: text,
        moment: Moment::Strict,
        steps: Vec::new(),
        error: None,
    };
    let of = |fault: &str| {
        let begins = note(3, format!("{TROUBLE_BEGINS}1.5 s quiet, {fault} for 2.0 s"));
        is_disk_filled(&[begins, note(9, TROUBLE_ENDS.to_owned())])
    };
    assert!(!of("kill") && of("disk"));
}
