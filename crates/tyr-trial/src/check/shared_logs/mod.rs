//! Whether shared logs are what they promise: one order, in which each entry that was acknowledged
//! is once, and which all who read see, without gaps; and entries that go to one of many.
//!
//! ```text
//!   all that anybody was told of entries ─► order: one place, one stamp, one number for each
//!        ├─► readings: each shows just what is between its begin and its end; trims, seals
//!        ├─► consumers: at most once, at least once, exactly once
//!        └─► together: batches of one transaction and its ledger, all or nothing
//! ```
//!
//! Who trims has read what goes. So all entries that there ever were are known.

mod consumers;
mod order;
mod readings;
mod together;

use std::collections::BTreeMap;

use self::order::Order;
use crate::history::{Deed, Did, Entry, Fate, Place, Step, Stretch, Taking};

/// Entries that were appended together.
struct Batch<'a> {
    deed: &'a Deed,
    values: &'a [u64],
    /// The first of them, as it was answered.
    at: Option<&'a Entry>,
}

/// Entries that were given to a consumer.
struct Given<'a> {
    deed: &'a Deed,
    how: Taking,
    delivery: u64,
    max: u64,
    seen: &'a [Entry],
}

/// All that was done to a log.
#[derive(Default)]
struct Log<'a> {
    batches: Vec<Batch<'a>>,
    stretches: Vec<(&'a Deed, &'a Stretch)>,
    /// Single entries that were read: which, and what was there.
    ones: Vec<(&'a Deed, Place, Option<&'a [Entry]>)>,
    given: Vec<Given<'a>>,
    /// Which delivery was acknowledged, and whether in time.
    acks: Vec<(&'a Deed, u64, Option<bool>)>,
    trims: Vec<(&'a Deed, &'a [Place])>,
    seals: Vec<&'a Deed>,
}

/// Checks all logs; that each was read in the end, too.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut logs = BTreeMap::<&str, Log<'_>>::new();
    for deed in deeds {
        for step in &deed.steps {
            if let Step::SharedLog { log, did } = step {
                logs.entry(log).or_default().note(deed, did);
            }
        }
    }
    let mut wrong = Vec::new();
    let mut orders = BTreeMap::new();
    for (name, log) in &logs {
        let mut found = Vec::new();
        let order = Order::of(log, &mut found);
        order.check(log, &mut found);
        readings::check(log, &order, &mut found);
        consumers::check(log, &order, &mut found);
        wrong.extend(found.into_iter().map(|text| format!("{name}: {text}")));
        orders.insert(*name, order);
    }
    let begun = |log: &str| logs[log].seals.iter().map(|seal| seal.invoked).min();
    together::check(deeds, &orders, &begun, &mut wrong);
    wrong
}

impl<'a> Log<'a> {
    fn note(&mut self, deed: &'a Deed, did: &'a Did) {
        match did {
            Did::Batch { values, at } => {
                let at = at.as_ref().filter(|_| deed.fate == Fate::Done);
                self.batches.push(Batch { deed, values, at });
            }
            Did::Stretch(stretch) => self.stretches.push((deed, stretch)),
            Did::At { at, seen } => self.ones.push((deed, *at, seen.as_deref())),
            Did::Taken { how, delivery, max, seen } => {
                let (how, delivery, max) = (*how, *delivery, *max);
                let seen = seen.as_deref().unwrap_or_default();
                self.given.push(Given { deed, how, delivery, max, seen });
            }
            Did::Ack { delivery, seen } => self.acks.push((deed, *delivery, *seen)),
            Did::Trim { before } => self.trims.push((deed, before)),
            Did::Seal => self.seals.push(deed),
        }
    }

    /// All entries that somebody has seen, with who has.
    fn seen(&self) -> impl Iterator<Item = (&'a Deed, &'a Entry)> {
        let stretches = self.stretches.iter().map(|(deed, it)| (*deed, it.seen.as_deref()));
        let ones = self.ones.iter().map(|(deed, _, seen)| (*deed, *seen));
        let given = self.given.iter().map(|given| (given.deed, Some(given.seen)));
        let all = stretches.chain(ones).chain(given);
        all.flat_map(|(deed, seen)| seen.unwrap_or_default().iter().map(move |it| (deed, it)))
    }
}

/// Whether it is behind the place of its partition among these, or there.
fn is_behind(at: Place, cut: &[Place]) -> bool {
    cut.get(at[0] as usize).is_some_and(|place| at >= *place)
}

/// Of what follows each other in a log: who was answered before one began that comes before it.
fn answered_before_earlier<'a>(in_order: &[&'a Deed]) -> Option<(&'a Deed, &'a Deed)> {
    let mut first: Option<&Deed> = None;
    for deed in in_order.iter().rev() {
        if let Some(later) = first.filter(|later| later.returned < deed.invoked) {
            return Some((later, deed));
        }
        if first.is_none_or(|first| deed.returned < first.returned) {
            first = Some(deed);
        }
    }
    None
}
