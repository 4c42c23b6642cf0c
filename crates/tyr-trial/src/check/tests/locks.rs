//! Histories of locks that cannot be.

use super::{deed, found, unknown};
use crate::check::locks::check;
use crate::history::{Deed, Fate, Step};

fn lock(invoked: u64, returned: u64, token: u64) -> Deed {
    let step = Step::Lock { key: "l".to_owned(), token: Some(token) };
    deed("lock", invoked, returned, vec![step])
}

fn fenced(invoked: u64, returned: u64, token: u64, value: u64, at: u64) -> Deed {
    let step = Step::Fenced { key: "l".to_owned(), token, value, at: Some(at) };
    deed("fenced", invoked, returned, vec![step])
}

fn held(invoked: u64, token: u64) -> Deed {
    let step = Step::Held { key: "l".to_owned(), token, seen: Some(true) };
    deed("held", invoked, invoked + 1, vec![step])
}

fn guarded(operation: &str, invoked: u64, seen: &[(u64, u64)]) -> Deed {
    let step = Step::Guarded { key: "l".to_owned(), seen: Some(seen.to_vec()) };
    deed(operation, invoked, invoked + 1, vec![step])
}

fn refused(mut deed: Deed) -> Deed {
    (deed.fate, deed.error) = (Fate::Failed, Some("Conflict: another has it".to_owned()));
    deed
}

const ALL: [(u64, u64); 3] = [(1, 10), (1, 11), (2, 20)];

/// Two holders; then what `others` do, and what is read in the end.
fn of_two(others: &[Deed], last: &[(u64, u64)]) -> String {
    let mut deeds = vec![
        lock(1, 2, 1),
        fenced(3, 4, 1, 10, 0),
        fenced(5, 6, 1, 11, 1),
        held(7, 1),
        lock(10, 20, 2),
        fenced(21, 22, 2, 20, 2),
    ];
    deeds.extend_from_slice(others);
    deeds.push(guarded("final", 90, last));
    found(check, &deeds)
}

#[test]
fn locks_one_after_the_other_are_fine_and_who_is_over_is_refused() {
    assert_eq!(of_two(&[], &ALL), "");
    let late = refused(fenced(30, 31, 1, 12, 2));
    assert_eq!(of_two(&[late, guarded("read", 8, &ALL[..2])], &ALL), "");
    let last = [(1, 10), (1, 11), (1, 12), (2, 20)];
    let meanwhile = [unknown(fenced(8, 9, 1, 12, 2)), fenced(40, 41, 2, 21, 4)];
    let last = [&last[..], &[(2, 21)]].concat();
    assert!(of_two(&meanwhile, &last).contains("record 20 is not where it was put"));
    assert_eq!(of_two(&[unknown(lock(5, 6, 0)), refused(fenced(7, 8, 1, 12, 2))], &ALL), "");
}

#[test]
fn who_writes_after_another_got_the_lock_is_noticed() {
    let late = fenced(30, 31, 1, 12, 3);
    let text = of_two(&[late], &[ALL[0], ALL[1], ALL[2], (1, 12)]);
    assert!(text.contains("a token fell in the order of commit"), "{text}");
    assert!(text.contains("fenced by 1 after 2 was got"), "{text}");
    let step = Step::Unlock { key: "l".to_owned(), token: 1 };
    let unlock = deed("unlock", 30, 31, vec![step]);
    assert!(of_two(&[unlock], &ALL).contains("unlock by 1 after 2 was got"));
}

#[test]
fn records_that_are_lost_doubled_refused_or_nobodys_are_noticed() {
    assert!(of_two(&[], &ALL[..2]).contains("record 20 is not where it was put"));
    assert!(of_two(&[], &[ALL[0], ALL[1], ALL[2], ALL[2]]).contains("twice"));
    let late = refused(fenced(30, 31, 2, 21, 3));
    assert!(of_two(&[late], &[ALL[0], ALL[1], ALL[2], (2, 21)]).contains("refused and is there"));
    assert!(of_two(&[], &[ALL[0], ALL[1], ALL[2], (2, 9)]).contains("records of nobody"));
    assert!(of_two(&[guarded("read", 30, &ALL[1..])], &ALL).contains("not there in the end"));
    assert!(found(check, &[lock(1, 2, 1)]).contains("was not read in the end"));
}

#[test]
fn tokens_that_are_given_twice_or_fall_and_two_holders_are_noticed() {
    assert!(of_two(&[lock(30, 31, 2)], &ALL).contains("token 2 was given twice"));
    assert!(of_two(&[lock(30, 31, 5), lock(40, 41, 4)], &ALL).contains("token 4 came after"));
    assert!(of_two(&[held(30, 1)], &ALL).contains("1 was held when 2 had been got"));
    assert_eq!(of_two(&[held(19, 1)], &ALL), "", "nobody had been told yet");
    let refused = refused(fenced(30, 31, 2, 21, 3));
    assert!(of_two(&[refused], &ALL).contains("fenced by 2 refused for nobody"));
}
