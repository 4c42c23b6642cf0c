//! Histories of long payloads that cannot be.

use super::{deed, found, unknown};
use crate::check::uploads::check;
use crate::history::{Deed, Fate, How, Run, Step};

fn upload(when: (u64, u64), value: u64, len: u64, how: How, at: Option<u64>) -> Deed {
    let step = Step::Upload { key: "u".to_owned(), value, len, how, at };
    deed("upload", when.0, when.1, vec![step])
}

fn put(when: (u64, u64), value: u64, len: u64) -> Deed {
    upload(when, value, len, How::Whole, None)
}

fn read(when: (u64, u64), seen: &[Run]) -> Deed {
    let step = Step::Runs { key: "u".to_owned(), seen: Some(seen.to_vec()) };
    deed("final", when.0, when.1, vec![step])
}

/// Ten words are put, three written over them, two appended; then `others`, and a reading.
fn of_a_blob(others: &[Deed], seen: &[Run]) -> String {
    let mut deeds = vec![
        put((1, 2), 1, 10),
        upload((3, 4), 2, 3, How::Over, Some(4)),
        upload((5, 6), 3, 2, How::End, Some(10)),
    ];
    deeds.extend_from_slice(others);
    deeds.push(read((90, 91), seen));
    found(check, &deeds)
}

const WHOLE: [Run; 4] = [(1, 0, 4), (2, 0, 3), (1, 7, 3), (3, 0, 2)];

#[test]
fn what_is_whole_is_fine() {
    assert_eq!(of_a_blob(&[], &WHOLE), "");
    assert_eq!(of_a_blob(&[put((7, 8), 4, 5)], &[(4, 0, 5)]), "");
    assert_eq!(of_a_blob(&[put((7, 8), 4, 0)], &[]), "", "it was deleted");
    let far = upload((9, 10), 5, 1, How::Over, Some(8));
    assert_eq!(of_a_blob(&[put((7, 8), 4, 5), far], &[(4, 0, 5), (0, 0, 3), (5, 0, 1)]), "");
    for seen in [&WHOLE[..], &[(4, 0, 5)]] {
        assert_eq!(of_a_blob(&[unknown(put((7, 8), 4, 5))], seen), "", "it may have come, or not");
    }
    let appended = unknown(upload((7, 8), 4, 1, How::End, None));
    assert_eq!(of_a_blob(&[appended], &[&WHOLE[..], &[(4, 0, 1)]].concat()), "");
    assert_eq!(found(check, &[put((5, 9), 1, 3), read((6, 7), &[])]), "", "not yet");
}

#[test]
fn a_mix_of_two_versions_is_noticed() {
    let [one, other] = [put((7, 30), 4, 6), put((7, 30), 5, 6)];
    let both = [one, other];
    assert_eq!(of_a_blob(&both, &[(4, 0, 6)]), "");
    assert!(of_a_blob(&both, &[(4, 0, 3), (5, 3, 3)]).contains("a mix"));
    assert!(of_a_blob(&both[..1], &[(4, 0, 6), (1, 6, 4), (3, 0, 2)]).contains("missing"));
    let meanwhile = unknown(put((7, 30), 4, 6));
    let torn = [(4, 0, 6), (2, 2, 1), (1, 7, 3), (3, 0, 2)];
    assert!(of_a_blob(&[meanwhile], &torn).contains("4 is missing at word 6"), "half of it");
    let short = [(1, 0, 4), (2, 0, 3), (1, 7, 3)];
    assert!(of_a_blob(&[], &short).contains("3 is missing"), "an end that is not there");
    assert!(of_a_blob(&[], &WHOLE[..2]).contains("missing"));
}

#[test]
fn what_is_stale_or_at_another_place_is_noticed() {
    assert!(of_a_blob(&[], &[(1, 0, 10), (3, 0, 2)]).contains("2 is missing at word 4"));
    assert!(of_a_blob(&[put((7, 8), 4, 5)], &WHOLE).contains("4 is missing"));
    let moved = [(1, 0, 3), (2, 0, 3), (1, 6, 4), (3, 0, 2)];
    assert!(of_a_blob(&[], &moved).contains("2 is not where it was written"));
    let zeros = [(1, 0, 4), (0, 0, 3), (1, 7, 3), (3, 0, 2)];
    assert!(of_a_blob(&[], &zeros).contains("missing at word 4"));
    assert!(of_a_blob(&[], &[&WHOLE[..], &[(0, 0, 1)]].concat()).contains("ends with zeros"));
}

#[test]
fn what_was_never_committed_is_noticed() {
    let mut killed = put((7, 8), 4, 12);
    killed.fate = Fate::Failed;
    assert_eq!(of_a_blob(std::slice::from_ref(&killed), &WHOLE), "");
    assert!(of_a_blob(&[killed], &[(4, 0, 12)]).contains("4 was not written, or failed"));
    let early = found(check, &[read((1, 2), &[(1, 0, 3)]), put((3, 4), 1, 3)]);
    assert!(early.contains("before it was written"));
    assert!(found(check, &[put((1, 2), 1, 3)]).contains("no blob was read in the end"));
    assert!(of_a_blob(&[], &[(1, 0, 4), (2, 0, 3), (1, 7, 4)]).contains("more words"));
}
