//! Histories of shared logs that cannot be: each rule has one that breaks it.

use std::slice::from_ref;

use super::{deed, found, unknown};
use crate::check::shared_logs::check;
use crate::history::{Deed, Did, Entry, Fate, Place, Step, Stretch, Taking};

/// Two partitions; entry `n` of partition `p` is at byte `100 * n`, its stamp is its value.
fn entry(value: u64, partition: u64, n: u64, number: Option<u64>) -> Entry {
    let (at, stamp) = ([partition, 0, 100 * n, 0], format!("{value:04}"));
    Entry { value, at, stamp, number }
}

fn shared(did: Did) -> Step {
    Step::SharedLog { log: "l".to_owned(), did }
}

fn append(invoked: u64, first: &Entry) -> Deed {
    let did = Did::Batch { values: vec![first.value], at: Some(first.clone()) };
    deed("append", invoked, invoked + 1, vec![shared(did)])
}

fn stretch(operation: &str, invoked: u64, from: [u64; 2], to: [u64; 2], seen: &[Entry]) -> Deed {
    let cut = |[zero, one]: [u64; 2]| vec![[0, 0, zero, 0], [1, 0, one, 0]];
    let stretch = Stretch {
        reader: invoked,
        from: Some(cut(from)),
        to: cut(to),
        is_end: operation == "final",
        is_sealed: operation == "final",
        seen: Some(seen.to_vec()),
        ..Stretch::default()
    };
    deed(operation, invoked, invoked + 1, vec![shared(Did::Stretch(stretch))])
}

fn changed(mut deed: Deed, change: impl FnOnce(&mut Stretch)) -> Deed {
    if let Some(Step::SharedLog { did: Did::Stretch(stretch), .. }) = deed.steps.first_mut() {
        change(stretch);
    }
    deed
}

fn taken(operation: &str, invoked: u64, how: Taking, seen: &[Entry]) -> Deed {
    let did = Did::Taken { how, delivery: invoked, max: 2, seen: Some(seen.to_vec()) };
    deed(operation, invoked, invoked + 1, vec![shared(did)])
}

fn take(invoked: u64, seen: &[Entry]) -> Deed {
    taken("take", invoked, Taking::Take(0), seen)
}

fn ack(invoked: u64, delivery: u64, is_in_time: bool) -> Deed {
    let did = Did::Ack { delivery, seen: Some(is_in_time) };
    deed("ack", invoked, invoked + 1, vec![shared(did)])
}

fn trim(invoked: u64, before: [u64; 2]) -> Deed {
    let before: Vec<Place> = vec![[0, 0, before[0], 0], [1, 0, before[1], 0]];
    deed("trim", invoked, invoked + 1, vec![shared(Did::Trim { before })])
}

fn seal(invoked: u64) -> Deed {
    deed("seal", invoked, invoked + 1, vec![shared(Did::Seal)])
}

fn list(key: &str, seen: &[u64]) -> Deed {
    let step = Step::List { key: key.to_owned(), from: 0, seen: Some(seen.to_vec()) };
    deed("final", 970, 971, vec![step])
}

fn failed(mut deed: Deed, error: &str) -> Deed {
    (deed.fate, deed.error) = (Fate::Failed, Some(error.to_owned()));
    if let Some(Step::SharedLog { did, .. }) = deed.steps.first_mut() {
        match did {
            Did::Stretch(stretch) => stretch.seen = None,
            Did::At { seen, .. } => *seen = None,
            Did::Batch { at, .. } => *at = None,
            Did::Taken { .. } | Did::Ack { .. } | Did::Trim { .. } | Did::Seal => {}
        }
    }
    deed
}

/// What is done to a log of three entries, one after the other; and what there is in the end.
struct History {
    entries: Vec<Entry>,
    last: Deed,
    pops: Vec<Deed>,
    takes: Vec<Deed>,
    ledger: Vec<u64>,
    worked: Vec<u64>,
}

impl History {
    fn new() -> Self {
        let entries = vec![entry(1, 0, 1, None), entry(2, 1, 1, None), entry(3, 0, 2, None)];
        let [one, two, three] = [0, 1, 2].map(|n| entries[n].clone());
        let lanes = [vec![one, three], vec![two]];
        let pops = lanes.iter().zip([40, 42]);
        let takes = lanes.iter().zip([50, 52]);
        Self {
            last: stretch("final", 960, [64, 64], [300, 200], &entries),
            pops: pops.map(|(lane, at)| taken("pop", at, Taking::Pop, lane)).collect(),
            takes: takes.flat_map(|(lane, at)| [take(at, lane), ack(at + 10, at, true)]).collect(),
            entries,
            ledger: Vec::new(),
            worked: vec![1, 2, 3],
        }
    }

    /// What is wrong, with these deeds besides.
    fn with(&self, others: &[Deed]) -> String {
        let mut deeds: Vec<Deed> =
            self.entries.iter().zip([10, 12, 14]).map(|(it, at)| append(at, it)).collect();
        deeds.extend(others.iter().cloned());
        deeds.extend(self.pops.iter().chain(&self.takes).cloned());
        deeds.extend([seal(900), self.last.clone()]);
        deeds.extend([list("ledger-l", &self.ledger), list("worked-l", &self.worked)]);
        deeds.sort_by_key(|deed| deed.invoked);
        found(check, &deeds)
    }

    fn seen(&self, values: &[usize]) -> Vec<Entry> {
        values.iter().map(|value| self.entries[value - 1].clone()).collect()
    }
}

mod consumers;
mod order;
