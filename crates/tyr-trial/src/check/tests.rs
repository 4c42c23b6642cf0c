//! Histories that cannot be, each made by hand, and some that can: what the checks notice.

mod groups;
mod kept;
mod locks;
mod shared_logs;
mod uploads;
mod watches;
mod zlogs;

use crate::check::{bank, check, holes, listings, refusals, registers, serial, stamps};
use crate::history::{Deed, Event, Fate, Kind, Moment, Step};

fn deed(operation: &str, invoked: u64, returned: u64, steps: Vec<Step>) -> Deed {
    Deed {
        process: invoked as u32,
        workload: "lists".to_owned(),
        operation: operation.to_owned(),
        moment: Moment::Strict,
        invoked,
        returned,
        invoked_us: invoked,
        returned_us: returned,
        fate: Fate::Done,
        steps,
        error: None,
    }
}

fn unknown(mut deed: Deed) -> Deed {
    (deed.fate, deed.returned) = (Fate::Unknown, u64::MAX);
    deed
}

fn append(value: u64, at: Option<u64>) -> Step {
    Step::Append { key: "a".to_owned(), value, at }
}

fn list(seen: &[u64]) -> Step {
    Step::List { key: "a".to_owned(), from: 0, seen: Some(seen.to_vec()) }
}

fn tail(from: u64, seen: &[u64]) -> Step {
    Step::List { key: "a".to_owned(), from, seen: Some(seen.to_vec()) }
}

fn write(value: u64) -> Step {
    Step::Write { key: "r".to_owned(), value }
}

fn read(seen: u64) -> Step {
    Step::Read { key: "r".to_owned(), seen: Some(seen) }
}

fn add(sum: u64) -> Step {
    Step::Add { key: "r".to_owned(), sum: Some(sum) }
}

fn found(check: fn(&[&Deed]) -> Vec<String>, deeds: &[Deed]) -> String {
    check(&deeds.iter().collect::<Vec<_>>()).join("\n")
}

#[test]
fn lists_in_order_are_fine_and_unknown_appends_may_come_at_any_time() {
    let deeds = [
        deed("append", 1, 2, vec![append(1, Some(0))]),
        unknown(deed("append", 3, 4, vec![append(2, None)])),
        deed("append", 5, 6, vec![append(3, Some(1))]),
        unknown(deed("append", 7, 8, vec![append(4, None)])),
        deed("tail", 9, 10, vec![tail(1, &[3])]),
        deed("final", 20, 21, vec![list(&[1, 3, 2])]),
    ];
    assert_eq!(found(serial::lists, &deeds), "");
}

#[test]
fn a_lost_update_is_noticed() {
    let deeds = [
        deed("transaction", 1, 10, vec![list(&[]), append(1, None)]),
        deed("transaction", 2, 11, vec![list(&[]), append(2, None)]),
        deed("final", 12, 13, vec![list(&[1, 2])]),
    ];
    assert!(found(serial::lists, &deeds).contains("lost update"));
}

#[test]
fn a_lost_append_is_noticed() {
    let deeds = [
        deed("append", 1, 2, vec![append(1, Some(0))]),
        deed("append", 3, 4, vec![append(2, Some(1))]),
        deed("final", 5, 6, vec![list(&[1])]),
    ];
    assert!(found(serial::lists, &deeds).contains("lost write"));
}

#[test]
fn half_of_an_unknown_transaction_is_noticed() {
    let other = |value| Step::Append { key: "b".to_owned(), value, at: None };
    let other_list = Step::List { key: "b".to_owned(), from: 0, seen: Some(Vec::new()) };
    let deeds = [
        unknown(deed("transaction", 1, 2, vec![append(1, None), other(2)])),
        deed("final", 5, 6, vec![list(&[1])]),
        deed("final", 7, 8, vec![other_list]),
    ];
    assert!(found(serial::lists, &deeds).contains("lost write"));
}

#[test]
fn a_stale_read_of_a_list_is_noticed() {
    let deeds = [
        deed("append", 1, 2, vec![append(1, Some(0))]),
        deed("read", 3, 4, vec![list(&[])]),
        deed("final", 5, 6, vec![list(&[1])]),
    ];
    assert!(found(serial::lists, &deeds).contains("stale read"));
}

#[test]
fn a_stale_read_of_the_end_of_a_log_is_noticed() {
    let deeds = [
        deed("append", 1, 2, vec![append(1, Some(0))]),
        deed("append", 3, 4, vec![append(2, Some(1))]),
        deed("append", 5, 6, vec![append(3, Some(2))]),
        deed("tail", 7, 8, vec![tail(1, &[2])]),
        deed("final", 9, 10, vec![list(&[1, 2, 3])]),
    ];
    assert!(found(serial::lists, &deeds).contains("stale read"));
}

#[test]
fn a_log_whose_end_changed_is_noticed() {
    let deeds = [
        deed("append", 1, 2, vec![append(1, Some(0))]),
        unknown(deed("append", 3, 4, vec![append(2, None)])),
        unknown(deed("append", 3, 4, vec![append(3, None)])),
        deed("tail", 5, 6, vec![tail(1, &[2])]),
        deed("final", 9, 10, vec![list(&[1, 3, 2])]),
    ];
    assert!(found(serial::lists, &deeds).contains("was not there in the end"));
}

#[test]
fn a_log_that_lost_its_middle_is_noticed() {
    let part = |seen: &[u64]| Step::Part {
        key: "a".to_owned(),
        from: 1,
        count: 2,
        seen: Some(seen.to_vec()),
    };
    let with = |seen: &[u64]| {
        let deeds = [
            deed("append", 1, 2, vec![append(1, Some(0)), append(2, Some(1))]),
            deed("append", 3, 4, vec![append(3, Some(2))]),
            deed("look-back", 5, 6, vec![part(seen)]),
            deed("final", 7, 8, vec![list(&[1, 2, 3])]),
        ];
        found(serial::lists, &deeds)
    };
    assert_eq!(with(&[2, 3]), "");
    assert!(with(&[2, 0]).contains("not there in the end"));
    assert!(with(&[2]).contains("not there in the end"));
}

#[test]
fn appends_against_real_time_are_noticed() {
    let deeds = [
        deed("append", 1, 2, vec![append(1, Some(1))]),
        deed("append", 3, 4, vec![append(2, Some(0))]),
        deed("final", 5, 6, vec![list(&[2, 1])]),
    ];
    assert!(found(serial::lists, &deeds).contains("order against real time"));
}

#[test]
fn counters_count_once_each_and_unknown_ones_once_or_not() {
    let fine = [
        deed("add", 1, 2, vec![add(1)]),
        unknown(deed("add", 3, 4, vec![add(0)])),
        unknown(deed("add", 5, 6, vec![add(0)])),
        deed("add", 7, 8, vec![add(3)]),
        deed("read", 9, 10, vec![read(3)]),
        deed("final", 20, 21, vec![read(3)]),
    ];
    assert_eq!(found(serial::counters, &fine), "");
    let twice = [
        deed("add", 1, 2, vec![add(1)]),
        deed("add", 3, 4, vec![add(3)]),
        deed("final", 20, 21, vec![read(3)]),
    ];
    assert!(found(serial::counters, &twice).contains("1 of that by nobody"));
    let lost = [
        deed("add", 1, 2, vec![add(1)]),
        deed("add", 3, 4, vec![add(1)]),
        deed("final", 20, 21, vec![read(1)]),
    ];
    assert!(found(serial::counters, &lost).contains("came to 1 twice"));
    let stale = [
        deed("add", 1, 2, vec![add(1)]),
        deed("read", 3, 4, vec![read(0)]),
        deed("final", 20, 21, vec![read(1)]),
    ];
    assert!(found(serial::counters, &stale).contains("stale read"));
}

#[test]
fn a_broken_sum_is_noticed() {
    let audit = |sums: [u64; 8]| {
        let steps = sums
            .iter()
            .zip(0..)
            .map(|(seen, n)| Step::Read { key: format!("account-{n}"), seen: Some(*seen) });
        deed("final", 1, 2, steps.collect())
    };
    assert_eq!(found(bank::check, &[audit([1000; 8])]), "");
    assert!(
        found(bank::check, &[audit([999, 1000, 1000, 1000, 1000, 1000, 1000, 1000])])
            .contains("broken sum")
    );
    assert!(found(bank::check, &[]).contains("nothing was read"));
}

#[test]
fn registers_are_linearizable_or_that_is_noticed() {
    let fine = [
        deed("write", 1, 4, vec![write(1)]),
        deed("read", 2, 3, vec![read(1)]),
        unknown(deed("write", 5, 6, vec![write(2)])),
        deed("read", 7, 8, vec![read(1)]),
        deed("read", 9, 10, vec![read(2)]),
        unknown(deed("write", 11, 12, vec![write(3)])),
    ];
    assert_eq!(found(registers::check, &fine), "");
    let stale = [
        deed("write", 1, 2, vec![write(1)]),
        deed("write", 3, 4, vec![write(2)]),
        deed("read", 5, 6, vec![read(1)]),
    ];
    assert!(found(registers::check, &stale).contains("stale read"));
    let back = [
        deed("write", 1, 20, vec![write(1)]),
        deed("read", 2, 3, vec![read(1)]),
        deed("read", 4, 5, vec![read(0)]),
    ];
    assert!(found(registers::check, &back).contains("stale read"));
    let dirty = [deed("read", 1, 2, vec![read(9)])];
    assert!(found(registers::check, &dirty).contains("dirty read"));
    let early = [deed("read", 1, 2, vec![read(9)]), deed("write", 3, 4, vec![write(9)])];
    assert!(found(registers::check, &early).contains("before it was written"));
    let flipping = [
        deed("write", 1, 2, vec![write(1)]),
        deed("write", 3, 20, vec![write(2)]),
        deed("read", 4, 5, vec![read(2)]),
        deed("read", 6, 7, vec![read(1)]),
        deed("read", 8, 9, vec![read(2)]),
    ];
    assert!(found(registers::check, &flipping).contains("stale read"));
}

#[test]
fn a_swap_from_a_value_that_was_over_is_noticed() {
    let swap = Step::Swap { key: "r".to_owned(), from: 1, to: 3 };
    let deeds = [
        deed("write", 1, 2, vec![write(1)]),
        deed("write", 3, 4, vec![write(2)]),
        deed("swap", 5, 6, vec![swap]),
    ];
    assert!(found(registers::check, &deeds).contains("stale read"));
}

#[test]
fn blind_writes_must_not_conflict() {
    let failed = |operation: &str, steps, error: &str| {
        let mut failed = deed(operation, 1, 2, steps);
        (failed.fate, failed.error) = (Fate::Failed, Some(error.to_owned()));
        failed
    };
    let fine = [
        failed("add", vec![add(1)], "Unavailable: x"),
        failed("swap", vec![Step::Swap { key: "r".to_owned(), from: 1, to: 2 }], "Conflict: x"),
    ];
    assert!(refusals::check(&fine).is_empty());
    assert_eq!(refusals::check(&[failed("add", vec![add(1)], "Conflict: x")]).len(), 1);
    assert_eq!(refusals::check(&[failed("read", vec![read(1)], "Corrupt: x")]).len(), 1);
}

/// What only memory had of older versions is gone when all nodes are killed at once.
#[test]
fn a_journal_may_be_too_old_to_read_and_never_to_append_to() {
    let too_old = |operation: &str, step| {
        let mut failed = deed(operation, 1, 2, vec![step]);
        (failed.fate, failed.error) = (Fate::Failed, Some("SnapshotTooOld: gone".to_owned()));
        failed
    };
    let tail = Step::Journal { key: "j".to_owned(), from: 0, seen: None };
    let append = Step::Stamp { key: "j".to_owned(), value: 1 };
    assert!(refusals::check(&[too_old("tail", tail)]).is_empty());
    assert_eq!(refusals::check(&[too_old("append", append)]).len(), 1);
}

#[test]
fn lines_become_deeds_and_each_workload_has_its_check() {
    let line = |order, process, kind, workload: &str, operation: &str, steps| Event {
        order,
        at_us: order,
        process,
        kind,
        workload: workload.to_owned(),
        operation: operation.to_owned(),
        moment: Moment::Strict,
        steps,
        error: None,
    };
    let mut lines = vec![
        line(1, 1, Kind::Invoke, "registers", "write", vec![write(1)]),
        line(2, 1, Kind::Ok, "registers", "write", vec![write(1)]),
        line(3, 2, Kind::Invoke, "registers", "write", vec![write(2)]),
        line(4, 1, Kind::Invoke, "registers", "read", vec![read(0)]),
        line(5, 1, Kind::Ok, "registers", "read", vec![read(1)]),
    ];
    assert!(check(&lines).anomalies.is_empty());
    lines.push(line(6, 1, Kind::Invoke, "registers", "read", vec![read(0)]));
    lines.push(line(7, 1, Kind::Ok, "registers", "read", vec![read(0)]));
    let verdict = check(&lines);
    assert!(verdict.anomalies[0].contains("stale read"), "{verdict:?}");
    assert_eq!(verdict.tally["registers write"].unknown, 1);
}

fn pair(pair: u64, size: Option<u64>) -> Vec<Step> {
    vec![Step::Pair { pair, size }]
}

/// Two listings, each of what is said of left and right of pairs.
fn scans(seen: [&[(&str, u64)]; 2]) -> Vec<Step> {
    let named = |listed: &[(&str, u64)]| {
        listed.iter().map(|(key, size)| ((*key).to_owned(), *size)).collect::<Vec<_>>()
    };
    seen.into_iter().map(|listed| Step::Scan { seen: Some(named(listed)) }).collect()
}

const PAIR_OF_10: &[(&str, u64)] = &[("000001-left", 10), ("000001-right", 10)];
const PAIR_OF_20: &[(&str, u64)] = &[("000001-left", 20), ("000001-right", 20)];

/// A pair is put, listed twice between `begun` and `ended`, and deleted; in the end nothing is
/// there.
fn of_a_pair(begun: u64, ended: u64, seen: [&[(&str, u64)]; 2]) -> String {
    let deeds = [
        deed("put", 1, 2, pair(1, Some(10))),
        deed("put", 5, 8, pair(1, Some(20))),
        deed("snapshot", begun, ended, scans(seen)),
        deed("delete", 11, 14, pair(1, None)),
        deed("final", 30, 31, scans([&[], &[]])),
    ];
    found(listings::check, &deeds)
}

#[test]
fn listings_of_what_was_there_are_fine_also_while_it_changes() {
    assert_eq!(of_a_pair(3, 4, [PAIR_OF_10; 2]), "");
    assert_eq!(of_a_pair(6, 7, [PAIR_OF_10; 2]), "");
    assert_eq!(of_a_pair(6, 7, [PAIR_OF_20; 2]), "");
    assert_eq!(of_a_pair(9, 10, [PAIR_OF_20; 2]), "");
    assert_eq!(of_a_pair(9, 20, [PAIR_OF_20; 2]), "", "placed when it began");
    assert_eq!(of_a_pair(9, 20, [&[]; 2]), "", "or later");
    assert_eq!(of_a_pair(15, 20, [&[]; 2]), "");
}

#[test]
fn a_listing_that_does_not_repeat_is_noticed() {
    let text = of_a_pair(6, 7, [PAIR_OF_10, PAIR_OF_20]);
    assert!(text.contains("unrepeatable listing"), "{text}");
    assert!(of_a_pair(9, 20, [PAIR_OF_20, &[]]).contains("unrepeatable listing"));
}

#[test]
fn half_of_a_pair_in_a_listing_is_noticed() {
    assert!(of_a_pair(6, 7, [&PAIR_OF_10[..1]; 2]).contains("torn pair"));
    let mixed: &[(&str, u64)] = &[("000001-left", 10), ("000001-right", 20)];
    assert!(of_a_pair(6, 7, [mixed; 2]).contains("torn pair"));
}

#[test]
fn a_listing_without_what_was_acknowledged_or_with_what_was_before_is_noticed() {
    assert!(of_a_pair(3, 4, [&[]; 2]).contains("pair 1 was not None then"));
    assert!(of_a_pair(9, 10, [PAIR_OF_10; 2]).contains("pair 1 was not Some(10) then"));
    assert!(of_a_pair(15, 20, [PAIR_OF_20; 2]).contains("pair 1 was not Some(20) then"));
    assert!(of_a_pair(3, 4, [PAIR_OF_20; 2]).contains("was not Some(20) then"), "not begun yet");
}

#[test]
fn a_listing_of_what_nobody_put_or_out_of_order_is_noticed() {
    let other: &[(&str, u64)] = &[PAIR_OF_10[0], PAIR_OF_10[1], ("000007-left", 3)];
    assert!(of_a_pair(3, 4, [other; 2]).contains("what nobody has put"));
    let turned: &[(&str, u64)] = &[PAIR_OF_10[1], PAIR_OF_10[0]];
    assert!(of_a_pair(3, 4, [turned; 2]).contains("out of order"));
}

#[test]
fn what_is_unknown_may_come_late_and_what_failed_never() {
    let with = |fate: fn(Deed) -> Deed, listed: &[(&str, u64)]| {
        let deeds = [
            deed("put", 1, 2, pair(1, Some(10))),
            fate(deed("delete", 3, 4, pair(1, None))),
            deed("final", 30, 31, scans([listed, listed])),
        ];
        found(listings::check, &deeds)
    };
    let failed = |mut deed: Deed| {
        deed.fate = Fate::Failed;
        deed
    };
    assert_eq!(with(unknown, &[]) + &with(unknown, PAIR_OF_10), "");
    assert_eq!(with(failed, PAIR_OF_10), "");
    assert!(with(failed, &[]).contains("pair 1 was not None then"));
}

#[test]
fn pairs_that_nobody_listed_in_the_end_are_noticed() {
    let deeds = [deed("put", 1, 2, pair(1, Some(10)))];
    assert!(found(listings::check, &deeds).contains("nothing was listed in the end"));
}

#[test]
fn first_bytes_and_groups_of_another_moment_are_noticed() {
    let with = |heads: &[(&str, u64, u64, Option<u8>)], groups: &[&str]| {
        let heads =
            heads.iter().map(|(key, size, count, byte)| ((*key).to_owned(), *size, *count, *byte));
        let groups = groups.iter().map(|it| (*it).to_owned()).collect();
        let mut steps = scans([PAIR_OF_10, PAIR_OF_10]);
        steps.push(Step::Heads { seen: Some(heads.collect()) });
        steps.push(Step::Groups { seen: Some(groups) });
        let deeds = [
            deed("put", 1, 2, pair(1, Some(10))),
            deed("snapshot", 3, 4, steps),
            deed("final", 30, 31, scans([PAIR_OF_10, PAIR_OF_10])),
        ];
        found(listings::check, &deeds)
    };
    let right = [("000001-left", 10, 10, Some(10)), ("000001-right", 10, 10, Some(10))];
    assert_eq!(with(&right, &["000001-"]), "");
    let [left, right] = right;
    assert!(with(&[left], &["000001-"]).contains("unrepeatable listing"));
    assert!(with(&[left, ("000001-right", 10, 10, Some(9))], &["000001-"]).contains("first bytes"));
    assert!(with(&[left, ("000001-right", 10, 9, Some(10))], &["000001-"]).contains("first bytes"));
    assert!(with(&[left, right], &[]).contains("groups"));
    assert!(with(&[left, right], &["000001-", "000002-"]).contains("groups"));
}

fn stamp(key: &str, value: u64) -> Step {
    Step::Stamp { key: key.to_owned(), value }
}

fn journal(key: &str, from: u64, seen: &[(&str, u64)]) -> Step {
    let seen = seen.iter().map(|(stamp, value)| ((*stamp).to_owned(), *value)).collect();
    Step::Journal { key: key.to_owned(), from, seen: Some(seen) }
}

/// Records 1 and 2 come one after the other, record 2 in two journals; a tail is read between them.
fn of_journals(tail: &[(&str, u64)], first: &[(&str, u64)], second: &[(&str, u64)]) -> String {
    let deeds = [
        deed("append", 1, 2, vec![stamp("a", 1)]),
        deed("tail", 3, 4, vec![journal("a", 0, tail)]),
        deed("append", 5, 6, vec![stamp("a", 2), stamp("b", 2)]),
        deed("final", 7, 8, vec![journal("a", 0, first)]),
        deed("final", 9, 10, vec![journal("b", 0, second)]),
    ];
    found(stamps::check, &deeds)
}

#[test]
fn stamps_that_are_no_commit_timestamps_are_noticed() {
    let (one, two) = (("01", 1), ("02", 2));
    assert_eq!(of_journals(&[one], &[one, two], &[two]), "");
    assert!(of_journals(&[one], &[one, ("01", 2)], &[two]).contains("out of order"));
    assert!(of_journals(&[("00", 1)], &[("00", 1), two], &[two]).contains("not filled"));
    assert!(of_journals(&[("03", 1)], &[one, two], &[two]).contains("is not what it was"));
    assert!(of_journals(&[one], &[one, two], &[("03", 2)]).contains("one transaction"));
    assert!(of_journals(&[one], &[one], &[two]).contains("one transaction"));
    assert!(of_journals(&[one], &[one], &[]).contains("lost record 2"));
    let late = of_journals(&[], &[("01", 2), ("02", 1)], &[("01", 2)]);
    assert!(late.contains("stamped below"), "{late}");
}

/// A cell of a sheet is written, then cleared; it is read between the two or while it changes.
fn of_a_sheet(invoked: u64, returned: u64, seen: Option<u64>) -> String {
    let cells = |value| Step::Cells { key: "s".to_owned(), from: 1, count: 1, value };
    let sheet = |seen: Vec<Option<u64>>| Step::Sheet { key: "s".to_owned(), seen: Some(seen) };
    let whole = |second| {
        let mut all = vec![Some(0); crate::workload::holes::CELLS as usize];
        all[1] = second;
        all
    };
    let deeds = [
        deed("read", 1, 2, vec![sheet(Vec::new())]),
        deed("write", 3, 4, vec![cells(Some(7))]),
        deed("clear", 10, 20, vec![cells(None)]),
        deed("read", invoked, returned, vec![sheet(whole(seen))]),
        deed("final", 30, 31, vec![sheet(whole(Some(0)))]),
    ];
    found(holes::check, &deeds)
}

#[test]
fn a_sheet_that_is_not_what_its_writer_made_of_it_is_noticed() {
    assert_eq!(of_a_sheet(5, 6, Some(7)), "");
    for seen in [7, 0] {
        assert_eq!(of_a_sheet(11, 12, Some(seen)), "", "while it changes");
    }
    assert_eq!(of_a_sheet(21, 22, Some(0)), "");
    assert!(of_a_sheet(5, 6, Some(0)).contains("was not"), "a hole where something was written");
    assert!(of_a_sheet(21, 22, Some(7)).contains("was not"), "what was cleared");
    assert!(of_a_sheet(5, 6, None).contains("was not"), "half of a cell");
}
