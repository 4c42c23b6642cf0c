//! The node's side.

use tyr_types::Epoch;

use crate::lease::config::RENEW_EVERY_US;
use crate::lease::{Holder, Renewal};

/// M3.
#[test]
fn a_lease_counts_from_when_it_was_asked_for() {
    let mut holder = Holder::new(3);
    assert!(!holder.is_held(100));
    let asked = holder.renewal(100, Epoch(1));
    assert_eq!(asked, Some(Renewal { incarnation: 3, epoch: Epoch(1), sent_us: 100 }));
    holder.granted(3, 100, 50);
    assert!(holder.is_held(149) && !holder.is_held(150));
}

#[test]
fn it_is_asked_for_again_long_before_it_ends() {
    let mut holder = Holder::new(1);
    assert!(holder.renewal(0, Epoch(1)).is_some());
    assert!(holder.renewal(RENEW_EVERY_US - 1, Epoch(1)).is_none());
    assert!(holder.renewal(RENEW_EVERY_US, Epoch(1)).is_some());
    holder.hurry();
    assert!(holder.renewal(RENEW_EVERY_US + 1, Epoch(2)).is_some());
}

#[test]
fn answers_that_overtake_each_other_shorten_nothing() {
    let mut holder = Holder::new(1);
    holder.renewal(0, Epoch(1));
    holder.renewal(RENEW_EVERY_US, Epoch(1));
    holder.granted(1, RENEW_EVERY_US, 1_000_000);
    holder.granted(1, 0, 1_000_000);
    assert_eq!(holder.until_us(), RENEW_EVERY_US + 1_000_000);
}

/// M4.
#[test]
fn an_answer_to_another_incarnation_or_to_nothing_gives_nothing() {
    let mut holder = Holder::new(2);
    holder.renewal(100, Epoch(1));
    holder.granted(1, 100, 1_000);
    holder.granted(2, 999_999, 1_000);
    assert!(!holder.is_held(101));
}

#[test]
fn open_questions_are_bounded() {
    let mut holder = Holder::new(1);
    for count in 0..100 {
        holder.renewal(count * RENEW_EVERY_US, Epoch(1));
        holder.invariants();
    }
    holder.granted(1, 0, u64::MAX);
    assert!(!holder.is_held(0), "asked so long ago that it would be over");
}

#[test]
fn a_lease_given_up_is_over() {
    let mut holder = Holder::new(1);
    holder.renewal(0, Epoch(1));
    holder.granted(1, 0, 1_000);
    holder.give_up();
    assert!(!holder.is_held(1));
}
