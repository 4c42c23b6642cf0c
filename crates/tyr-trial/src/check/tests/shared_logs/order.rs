//! Of entries, readings, trims and seals.

use super::*;

#[test]
fn what_a_log_promises_is_fine_and_what_nobody_knows_of_may_be_or_not() {
    let history = History::new();
    let tail = changed(stretch("last", 70, [0, 0], [300, 200], &history.seen(&[2, 3])), |it| {
        (it.from, it.asked, it.is_end) = (None, Some(2), true);
    });
    let lost = unknown(failed(append(30, &entry(9, 0, 9, None)), "TimedOut"));
    let read = stretch("read", 20, [64, 64], [300, 100], &history.seen(&[1, 3]));
    assert_eq!(history.with(&[tail, lost, read]), "");
}

#[test]
fn entries_that_are_lost_doubled_moved_or_nobodys_are_noticed() {
    let mut history = History::new();
    let late = |at| append(30, &at);
    assert!(history.with(&[late(entry(4, 0, 3, None))]).contains("4 is lost"));
    let doubled = taken("pop", 44, Taking::Pop, &[entry(2, 1, 3, None)]);
    assert!(history.with(&[doubled]).contains("2 is at [1, 0, 100, 0] and at [1, 0, 300, 0]"));
    assert!(history.with(&[late(entry(4, 1, 1, None))]).contains("2 and 4 are both at"));
    let nobodys = stretch("read", 20, [300, 64], [400, 64], &[entry(9, 0, 3, None)]);
    assert!(history.with(&[nobodys]).contains("9 is there, which nobody has appended"));
    let refused = failed(append(30, &entry(3, 0, 2, None)), "Unavailable: no");
    assert!(history.with(&[refused]).contains("3 is there, which nobody has appended"));
    let early = stretch("read", 5, [64, 64], [200, 64], &history.seen(&[1]));
    assert!(history.with(&[early]).contains("1 was there before it was appended"));
    history.last.operation = "read".to_owned();
    assert!(history.with(&[]).contains("it was not read in the end"));
}

#[test]
fn an_order_that_is_not_that_of_acknowledgements_is_noticed() {
    let mut history = History::new();
    history.entries[2].at[2] = 80;
    let text = history.with(&[]);
    assert!(text.contains("line 10 appended was acknowledged before line 14"), "{text}");
    assert!(text.contains("1 is behind 3, and has a lower stamp"), "{text}");
    history = History::new();
    history.entries[1].stamp = "0001".to_owned();
    assert!(history.with(&[]).contains("1 and 2 are of two appends, and have one stamp"));
}

#[test]
fn partitions_of_a_strict_log_are_in_one_order_with_numbers() {
    let numbered = |stamps: [&str; 3], numbers: [u64; 3]| {
        let mut history = History::new();
        for (n, it) in history.entries.iter_mut().enumerate() {
            (it.stamp, it.number) = (stamps[n].to_owned(), Some(numbers[n]));
        }
        history.with(&[])
    };
    let stamps = ["0001", "0002", "0003"];
    assert!(!numbered(stamps, [0, 1, 2]).contains("number"));
    assert!(numbered(stamps, [0, 2, 3]).contains("2 has the number 2, and 1 come before it"));
    let text = numbered(["0002", "0001", "0003"], [1, 0, 2]);
    assert!(text.contains("line 10 appended was acknowledged before line 12"), "{text}");
    let history = History::new();
    let mut others = history.seen(&[1, 2]);
    (others[0].number, others[1].number) = (Some(0), Some(7));
    let first = stretch("read", 20, [64, 64], [200, 200], &others);
    others[1].number = Some(1);
    let second = stretch("read", 22, [64, 64], [200, 200], &others);
    assert!(history.with(&[first, second]).contains("2 has the numbers 7 and 1"));
}

#[test]
fn readers_that_pass_by_repeat_or_go_back_are_noticed() {
    let history = History::new();
    let read = |to, seen: &[usize]| {
        history.with(&[stretch("read", 20, [64, 64], to, &history.seen(seen))])
    };
    assert_eq!(read([300, 200], &[1, 2, 3]), "");
    assert!(read([300, 200], &[1, 3]).contains("shows 3 where 2 comes next"));
    assert!(read([300, 200], &[2, 1, 3]).contains("shows 2 where 1 comes next"));
    assert!(read([300, 200], &[1, 2]).contains("passes by 3"));
    assert!(read([200, 200], &[1, 2, 3]).contains("shows 3, which is not before its end"));
    let first = stretch("follow", 20, [64, 64], [200, 200], &history.seen(&[1, 2]));
    let second = |from| {
        let is_behind = from >= [200, 200];
        let seen = if is_behind { history.seen(&[3]) } else { history.seen(&[2, 3]) };
        changed(stretch("follow", 30, from, [300, 200], &seen), |it| it.reader = 20)
    };
    assert_eq!(history.with(&[first.clone(), second([200, 200])]), "");
    assert_eq!(history.with(&[first.clone(), second([200, 260])]), "", "of another segment");
    let passed = history.with(&[first.clone(), second([260, 200])]);
    assert!(passed.contains("who reads on does not where it was"), "{passed}");
    let again = history.with(&[first, second([200, 64])]);
    assert!(again.contains("2 comes after what it is before"), "{again}");
    assert!(again.contains("who reads on does not where it was"), "{again}");
}

#[test]
fn readers_that_end_too_early_begin_elsewhere_or_miss_the_last_are_noticed() {
    let history = History::new();
    let with = |deed: Deed, change: fn(&mut Stretch)| history.with(&[changed(deed, change)]);
    let short = || stretch("read", 20, [64, 64], [200, 200], &history.seen(&[1, 2]));
    assert!(with(short(), |it| it.is_end = true).contains("ends before 3"));
    let shown = stretch("read", 17, [64, 64], [300, 200], &history.seen(&[1, 2, 3]));
    let mut open = History::new();
    let late = append(14, &open.entries.remove(2));
    let deeds = [unknown(late), shown, changed(short(), |it| it.is_end = true)];
    assert_eq!(open.with(&deeds[..2]), "", "one whose outcome is unknown");
    assert!(open.with(&deeds).contains("ends before 3, which was there before"));
    let half = stretch("read", 20, [64, 64], [300, 200], &history.seen(&[1, 2, 3]));
    let half = with(half, |it| (it.is_end, it.to[0][3]) = (true, 1));
    assert!(half.contains("ends in the middle of a batch"), "{half}");
    let deaf = with(stretch("follow", 910, [300, 64], [300, 64], &[]), |it| it.is_sealed = true);
    assert!(deaf.contains("told that there is no more"), "{deaf}");
    let all = || stretch("follow", 20, [64, 64], [300, 200], &history.seen(&[1, 2, 3]));
    assert!(with(all(), |it| it.is_sealed = true).contains("told that there is no more"));
    let mut seen = history.seen(&[1, 2]);
    (seen[0].number, seen[1].number) = (Some(0), Some(1));
    let number = stretch("read", 20, [64, 64], [200, 200], &seen);
    assert!(with(number, |it| it.asked = Some(1)).contains("begins at Some(0), not 1"));
    let last = |seen: &[usize]| stretch("last", 20, [0, 0], [300, 200], &history.seen(seen));
    let asked = |it: &mut Stretch| (it.from, it.asked) = (None, Some(2));
    assert!(with(last(&[1, 3]), asked).contains("shows 1 where 2 comes next"));
    assert!(with(last(&[3]), asked).contains("passes by 2"));
}

#[test]
fn single_entries_that_are_missing_or_refused_are_noticed() {
    let history = History::new();
    let one = |at: Place, seen: &[usize]| {
        let did = Did::At { at, seen: Some(history.seen(seen)) };
        deed("at", 20, 21, vec![shared(did)])
    };
    assert_eq!(history.with(&[one([0, 0, 100, 0], &[1]), one([0, 0, 400, 0], &[])]), "");
    assert!(history.with(&[one([0, 0, 100, 0], &[])]).contains("finds nothing at"));
    assert!(history.with(&[one([0, 0, 100, 0], &[3])]).contains("finds what is not at"));
    let refused = |error| history.with(&[failed(one([0, 0, 100, 0], &[]), error)]);
    assert!(refused("InvalidArgument: no").contains("told that no entry begins"));
    assert!(refused("NotFound: trimmed").contains("does not find what was not trimmed"));
}

#[test]
fn trims_that_take_too_much_or_too_little_are_noticed() {
    let mut history = History::new();
    let late = || stretch("read", 90, [64, 64], [200, 200], &history.seen(&[1, 2]));
    assert!(history.with(&[late(), trim(80, [200, 64])]).contains("shows 1, which was trimmed"));
    let text = history.with(&[trim(80, [200, 64])]);
    assert!(text.contains("it begins at [0, 0, 64, 0] in the end, and was trimmed to"), "{text}");
    assert_eq!(history.with(&[unknown(trim(80, [200, 64]))]), "");
    let gone = failed(late(), "NotFound: trimmed");
    assert!(history.with(from_ref(&gone)).contains("does not find what was not trimmed"));
    history.last = stretch("final", 960, [200, 64], [300, 200], &history.seen(&[2, 3]));
    assert_eq!(history.with(&[trim(80, [200, 64]), gone]), "");
    assert_eq!(history.with(&[unknown(trim(80, [200, 64]))]), "");
    let text = history.with(&[]);
    assert!(text.contains("it begins at [0, 0, 200, 0] in the end, and was trimmed to None"));
}

#[test]
fn appends_to_a_sealed_log_and_refusals_by_an_open_one_are_noticed() {
    let history = History::new();
    let refused = |at| failed(append(at, &entry(4, 0, 3, None)), "InvalidArgument: sealed");
    assert_eq!(history.with(&[refused(920)]), "");
    assert!(history.with(&[refused(30)]).contains("refused by a log that is open"));
    assert!(history.with(&[seal(5)]).contains("line 10 was appended to a sealed log"));
}
