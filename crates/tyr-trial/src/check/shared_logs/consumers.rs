//! Whether consumers who share a log get each entry: at most once, at least once, exactly once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::order::{Known, Order};
use super::{Given, Log, answered_before_earlier};
use crate::history::{Deed, Fate, Place, Taking};

/// Clocks may differ so much, in microseconds.
const SLACK_US: u64 = 100_000;

/// Checks the three groups of a log.
pub fn check(log: &Log<'_>, order: &Order<'_>, wrong: &mut Vec<String>) {
    let partitions = order.partitions();
    let rank: HashMap<Place, usize> = partitions
        .values()
        .flat_map(|partition| partition.iter().map(|it| it.at).zip(0..))
        .collect();
    for given in &log.given {
        let ranks: Vec<usize> =
            given.seen.iter().filter_map(|it| rank.get(&it.at)).copied().collect();
        let is_one = given.seen.windows(2).all(|pair| pair[0].at[0] == pair[1].at[0]);
        if !is_one || ranks.windows(2).any(|pair| pair[1] != pair[0] + 1) {
            let (name, line) = (&given.deed.operation, given.deed.invoked);
            wrong.push(format!("{name} (line {line}) gives what does not follow each other"));
        }
    }
    check_pops(log, order, &partitions, wrong);
    let works = log.given.iter().filter(|given| given.how == Taking::Work);
    if works.clone().all(|work| work.deed.fate != Fate::Unknown) {
        let done = works.filter(|work| work.deed.fate == Fate::Done);
        let done = done.flat_map(|work| work.seen.iter().map(move |entry| (entry.at, work.deed)));
        let done: BTreeMap<Place, &Deed> = done.collect();
        check_nothing(log, order, (Taking::Work, &done), wrong);
    }
    check_deliveries(log, order, wrong);
    check_acks(log, order, wrong);
}

fn is_pop(given: &&Given<'_>) -> bool {
    given.how == Taking::Pop
}

fn is_take(given: &&Given<'_>) -> bool {
    match given.how {
        Taking::Take(_) => true,
        Taking::Pop | Taking::Work => false,
    }
}

/// Each entry was popped once; where it is not known what became of a pop, it may be gone with it.
fn check_pops(
    log: &Log<'_>,
    order: &Order<'_>,
    partitions: &BTreeMap<u64, Vec<&Known<'_>>>,
    wrong: &mut Vec<String>,
) {
    let mut popped = BTreeMap::<Place, &Deed>::new();
    let mut lost_max = 0;
    for given in log.given.iter().filter(is_pop) {
        match given.deed.fate {
            Fate::Done => {}
            Fate::Failed => continue,
            Fate::Unknown => {
                lost_max += given.max;
                continue;
            }
        }
        for entry in given.seen {
            if let Some(other) = popped.insert(entry.at, given.deed) {
                let (value, lines) = (entry.value, (other.invoked, given.deed.invoked));
                wrong.push(format!("{value} was popped twice, by the lines {lines:?}"));
            }
        }
    }
    for partition in partitions.values() {
        let deeds: Vec<&Deed> =
            partition.iter().filter_map(|it| popped.get(&it.at)).copied().collect();
        if let Some((later, earlier)) = answered_before_earlier(&deeds) {
            let (later, earlier) = (later.invoked, earlier.invoked);
            wrong.push(format!("line {later} popped what comes behind what line {earlier} got"));
        }
    }
    if lost_max == 0 {
        check_nothing(log, order, (Taking::Pop, &popped), wrong);
    }
    let all = partitions.values().flatten();
    let left: Vec<u64> = all.filter(|it| !popped.contains_key(&it.at)).map(|it| it.value).collect();
    if left.len() as u64 > lost_max {
        wrong.push(format!("{lost_max} entries may be popped and lost, and these are: {left:?}"));
    }
}

/// Who is given nothing comes when all that there was has been given to others.
fn check_nothing(
    log: &Log<'_>,
    order: &Order<'_>,
    (how, got): (Taking, &BTreeMap<Place, &Deed>),
    wrong: &mut Vec<String>,
) {
    let empty = log.given.iter().filter(|given| given.how == how && given.seen.is_empty());
    for Given { deed, .. } in empty.filter(|given| given.deed.fate == Fate::Done) {
        let is_left = |it: &&Known<'_>| {
            it.shown < deed.invoked && got.get(&it.at).is_none_or(|by| by.invoked > deed.returned)
        };
        if let Some(it) = order.all.iter().find(is_left) {
            let (name, line) = (&deed.operation, deed.invoked);
            wrong.push(format!("{name} (line {line}) gives nothing, and {} is there", it.value));
        }
    }
}

/// What somebody has taken nobody else gets before the time is over.
fn check_deliveries(log: &Log<'_>, order: &Order<'_>, wrong: &mut Vec<String>) {
    let mut taken = BTreeMap::<Place, Vec<&Given<'_>>>::new();
    for given in log.given.iter().filter(is_take).filter(|it| it.deed.fate == Fate::Done) {
        given.seen.iter().for_each(|entry| taken.entry(entry.at).or_default().push(given));
    }
    for (at, deliveries) in taken {
        for one in &deliveries {
            let Taking::Take(lasts_ms) = one.how else { continue };
            let until_us = one.deed.invoked_us + 1_000 * lasts_ms;
            let after = deliveries.iter().filter(|it| it.deed.invoked > one.deed.returned);
            if let Some(early) = after
                .min_by_key(|it| it.deed.invoked)
                .filter(|it| it.deed.returned_us + SLACK_US < until_us)
            {
                let value = order.at(at).map(|it| it.value);
                let (line, other) = (one.deed.invoked, early.deed.invoked);
                wrong.push(format!("{value:?} was taken by line {line}, and too early by {other}"));
            }
        }
    }
}

/// Each entry was acknowledged once, in time, and then never given to anybody again.
fn check_acks(log: &Log<'_>, order: &Order<'_>, wrong: &mut Vec<String>) {
    let deliveries: HashMap<u64, &Given<'_>> =
        log.given.iter().filter(is_take).map(|given| (given.delivery, given)).collect();
    let mut acked = BTreeMap::<Place, &Deed>::new();
    let mut maybe = BTreeSet::<Place>::new();
    for (deed, delivery, seen) in &log.acks {
        let Some(given) = deliveries.get(delivery) else {
            wrong.push(format!("nobody was given what line {} acknowledges", deed.invoked));
            continue;
        };
        match (deed.fate, seen) {
            (Fate::Done, Some(true)) => {
                for entry in given.seen {
                    if let Some(other) = acked.insert(entry.at, deed) {
                        let (value, lines) = (entry.value, (other.invoked, deed.invoked));
                        wrong.push(format!("{value} was acknowledged twice: lines {lines:?}"));
                    }
                }
            }
            (Fate::Done, _) => {
                if !was_given_again(log, given, deed) {
                    let line = deed.invoked;
                    wrong.push(format!("line {line} was told it is late, and nobody else has it"));
                }
            }
            (Fate::Unknown, _) => maybe.extend(given.seen.iter().map(|entry| entry.at)),
            (Fate::Failed, _) => {}
        }
    }
    for given in deliveries.values().filter(|given| given.deed.fate == Fate::Done) {
        for entry in given.seen {
            if acked.get(&entry.at).is_some_and(|ack| ack.returned < given.deed.invoked) {
                let (value, line) = (entry.value, given.deed.invoked);
                wrong.push(format!("{value} was given again after it was acknowledged: {line}"));
            }
        }
    }
    for it in &order.all {
        if !acked.contains_key(&it.at) && !maybe.contains(&it.at) {
            wrong.push(format!("{} was never acknowledged: nobody got it for good", it.value));
        }
    }
}

/// Whether somebody else may have got what was given, before this was answered.
fn was_given_again(log: &Log<'_>, given: &Given<'_>, answered: &Deed) -> bool {
    log.given.iter().filter(is_take).any(|other| {
        let is_same = other.seen.first().map(|it| it.at) == given.seen.first().map(|it| it.at);
        let may_be = match other.deed.fate {
            Fate::Done => is_same,
            Fate::Unknown => true,
            Fate::Failed => false,
        };
        may_be && other.delivery != given.delivery && other.deed.invoked < answered.returned
    })
}
