//! Of consumers, and of transactions that do something beside.

use super::*;

#[test]
fn entries_that_are_popped_twice_never_or_out_of_order_are_noticed() {
    let mut history = History::new();
    let again = taken("pop", 46, Taking::Pop, &history.seen(&[2]));
    assert!(history.with(&[again]).contains("2 was popped twice"));
    let turned = [3, 1].map(|value: usize| history.seen(&[value]));
    let turned = turned.iter().zip([40, 44]).map(|(it, at)| taken("pop", at, Taking::Pop, it));
    history.pops = turned.chain([history.pops[1].clone()]).collect();
    assert!(history.with(&[]).contains("line 40 popped what comes behind what line 44 got"));
    history.pops.remove(1);
    assert!(history.with(&[]).contains("0 entries may be popped and lost, and these are: [1]"));
    let lost = || unknown(taken("pop", 36, Taking::Pop, &[]));
    assert_eq!(history.with(&[lost()]), "", "with one whose outcome is unknown");
    history.pops.clear();
    assert!(history.with(&[lost()]).contains("2 entries may be popped and lost"));
    let gap = taken("pop", 40, Taking::Pop, &history.seen(&[1, 2]));
    assert!(history.with(&[gap]).contains("gives what does not follow each other"));
}

#[test]
fn who_is_given_nothing_though_there_is_something_is_noticed() {
    let history = History::new();
    let nothing = |at| taken("pop", at, Taking::Pop, &[]);
    assert_eq!(history.with(&[nothing(5), nothing(41), nothing(44)]), "");
    let text = history.with(&[nothing(30)]);
    assert!(text.contains("pop (line 30) gives nothing, and 1 is there"), "{text}");
    let idle = taken("work", 30, Taking::Work, &[]);
    assert!(history.with(&[idle]).contains("work (line 30) gives nothing, and 1 is there"));
}

#[test]
fn what_is_acknowledged_twice_never_or_given_again_after_it_is_noticed() {
    let mut history = History::new();
    let again = take(80, &history.seen(&[2]));
    let text = history.with(from_ref(&again));
    assert!(text.contains("2 was given again after it was acknowledged"), "{text}");
    assert!(history.with(&[again, ack(82, 80, true)]).contains("2 was acknowledged twice"));
    assert!(history.with(&[ack(82, 81, true)]).contains("nobody was given what line 82"));
    let given = take(54, &history.seen(&[2]));
    history.takes.truncate(2);
    assert!(history.with(from_ref(&given)).contains("2 was never acknowledged"));
    assert_eq!(history.with(&[given.clone(), unknown(ack(56, 54, true))]), "");
    let late = ack(56, 54, false);
    assert!(history.with(&[given.clone(), late.clone()]).contains("nobody else has it"));
    let other = [take(55, &history.seen(&[2])), ack(58, 55, true)];
    assert_eq!(history.with(&[&[given, late][..], &other].concat()), "");
}

#[test]
fn what_is_given_to_another_before_its_time_is_over_is_noticed() {
    let history = History::new();
    let lent = |at_us| {
        let mut lent = taken("take", 45, Taking::Take(1_000), &history.seen(&[2]));
        (lent.invoked_us, lent.returned_us) = (at_us, at_us + 1);
        lent
    };
    // The one who takes it then does so at 52 µs.
    assert!(history.with(&[lent(45)]).contains("too early by 52"));
    let mut long_after = lent(0);
    if let Step::SharedLog { did: Did::Taken { how, .. }, .. } = &mut long_after.steps[0] {
        *how = Taking::Take(0);
    }
    assert_eq!(history.with(&[long_after]), "");
}

#[test]
fn work_that_is_done_twice_never_out_of_order_or_on_nothing_is_noticed() {
    let mut history = History::new();
    let mut with = |worked: &[u64]| {
        history.worked = worked.to_vec();
        history.with(&[])
    };
    assert_eq!(with(&[1, 3, 2]), "", "two partitions");
    assert!(with(&[1, 2, 3, 2]).contains("Some(2) was worked on where None comes next"));
    assert!(with(&[1, 2]).contains("None was worked on where Some(3) comes next"));
    assert!(with(&[3, 2, 1]).contains("Some(3) was worked on where Some(1) comes next"));
    assert!(with(&[1, 2, 3, 9]).contains("9 was worked on, and is not in the log"));
    let list = |value| Step::Append { key: "worked-l".to_owned(), value, at: None };
    let mut work = taken("work", 48, Taking::Work, &history.seen(&[2]));
    work.steps.push(list(2));
    history.worked = vec![1, 3];
    assert!(history.with(&[work.clone()]).contains("acknowledged is lost in worked-l"));
    let lost = failed(work, "Conflict: somebody else");
    history.worked = vec![1, 2, 3];
    assert_eq!(history.with(&[lost]), "");
}

/// Two batches and a value in the ledger, as one.
fn together(history: &History, others: &[Entry]) -> Deed {
    let mut deed = append(14, &history.entries[2]);
    for other in others {
        let (values, at) = (vec![other.value], Some(other.clone()));
        deed.steps.push(shared(Did::Batch { values, at }));
    }
    deed.steps.push(Step::Append { key: "ledger-l".to_owned(), value: 3, at: Some(0) });
    deed
}

#[test]
fn halves_of_what_was_to_be_one_are_noticed() {
    let mut history = History::new();
    let one = together(&history, &[]);
    assert!(history.with(from_ref(&one)).contains("half of a transaction: it is in l, not in"));
    history.ledger = vec![3];
    assert_eq!(history.with(from_ref(&one)), "");
    let open = unknown(one.clone());
    assert_eq!(history.with(&[open]), "");
    let refused = Deed { invoked: 30, ..failed(one, "Conflict: no") };
    assert!(history.with(&[refused]).contains("what was refused is in"));
    history.ledger = vec![9, 3];
    let text = history.with(&[together(&history, &[])]);
    assert!(text.contains("9 is in the ledger, and not in the log"), "{text}");
    assert!(text.contains("3 is at Some(1) of ledger-l, not at Some(0)"), "{text}");
    history.ledger = vec![3, 3];
    assert!(history.with(&[]).contains("3 is in the ledger twice"));
    history.ledger = vec![3, 1];
    assert!(history.with(&[]).contains("1 is out of order in the ledger"));
    history.ledger = vec![3];
    let stamps = together(&history, &[entry(5, 1, 2, None)]);
    assert!(history.with(&[stamps]).contains("one transaction with the stamps"));
}

#[test]
fn half_of_a_batch_is_noticed() {
    let history = History::new();
    let did = Did::Batch { values: vec![2, 7], at: None };
    let open = unknown(deed("append-batch", 11, 12, vec![shared(did)]));
    let text = history.with(&[open]);
    assert!(text.contains("a batch is not there as a whole (line 11)"), "{text}");
}

#[test]
fn kinds_of_errors_that_a_log_may_not_answer_are_noticed() {
    let refused = |deed: Deed, error: &str| crate::check::refusals::check(&[failed(deed, error)]);
    let history = History::new();
    let seen = history.seen(&[1]);
    assert!(refused(append(1, &seen[0]), "InvalidArgument: sealed").is_empty());
    assert!(!refused(append(1, &seen[0]), "Conflict: others append").is_empty());
    assert!(refused(take(1, &seen), "Conflict: others take").is_empty());
    assert!(!refused(take(1, &seen), "NotFound: it was trimmed").is_empty());
    assert!(refused(stretch("read", 1, [0, 0], [0, 0], &[]), "NotFound: trimmed").is_empty());
    assert!(!refused(stretch("deaf", 1, [0, 0], [0, 0], &[]), "Corrupt: no end").is_empty());
}
