//! Whether registers are linearizable, each by itself.
//!
//! Every value is written once. So each value has a *zone*: from the first end to the last
//! beginning among its write and its reads. If the first lies before the second, the register must
//! have held the value all that time (a forward zone); else it may have been held at any one
//! moment between the second and the first (a backward zone). A history is linearizable if and only
//! if no two forward zones overlap, no backward zone lies within a forward one, and nothing is read
//! before it is written (Gibbons and Korach, *Testing shared memories*, 1997).
//!
//! A swap that took effect counts as a read of the old value and a write of the new one. That both
//! happened at one moment is not seen here, but by [`super::porcupine`].

use std::collections::BTreeMap;

use crate::history::{Deed, Fate, Step};

/// When something began and ended; by whom.
#[derive(Clone, Copy, Debug)]
struct Span {
    invoked: u64,
    returned: u64,
    process: u32,
}

/// All that was done with one value.
#[derive(Clone, Debug, Default)]
struct Value {
    write: Option<Span>,
    /// Whether the write may not have happened.
    is_unsure: bool,
    reads: Vec<Span>,
}

/// The zone of a value.
#[derive(Clone, Copy, Debug)]
struct Zone {
    value: u64,
    /// Of all ends the first.
    end: u64,
    /// Of all beginnings the last.
    begin: u64,
}

impl Zone {
    fn is_forward(&self) -> bool {
        self.end < self.begin
    }
}

/// Checks all registers.
pub fn check(deeds: &[&Deed]) -> Vec<String> {
    let mut registers: BTreeMap<&str, BTreeMap<u64, Value>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for deed in deeds {
        let (invoked, returned) = (deed.invoked, deed.returned);
        let span = Span { invoked, returned, process: deed.process };
        for step in &deed.steps {
            note(&mut registers, step, span, deed.fate);
        }
        if deed.operation == "final" && deed.fate != Fate::Done {
            wrong.push("not everything was read in the end".to_owned());
        }
    }
    for (key, values) in &registers {
        wrong.extend(check_register(values).into_iter().map(|text| format!("{key}: {text}")));
    }
    wrong
}

fn note<'a>(
    registers: &mut BTreeMap<&'a str, BTreeMap<u64, Value>>,
    step: &'a Step,
    span: Span,
    fate: Fate,
) {
    let mut write = |key: &'a str, value: u64| {
        let entry = registers.entry(key).or_default().entry(value).or_default();
        (entry.write, entry.is_unsure) = (Some(span), fate == Fate::Unknown);
    };
    match (step, fate) {
        (Step::Write { key, value }, Fate::Done | Fate::Unknown) => write(key, *value),
        (Step::Swap { key, from, to }, Fate::Done | Fate::Unknown) => {
            write(key, *to);
            if fate == Fate::Done {
                registers.entry(key).or_default().entry(*from).or_default().reads.push(span);
            }
        }
        (Step::Read { key, seen: Some(seen) }, Fate::Done) => {
            registers.entry(key).or_default().entry(*seen).or_default().reads.push(span);
        }
        (
            Step::Write { .. }
            | Step::Swap { .. }
            | Step::Read { .. }
            | Step::Append { .. }
            | Step::List { .. }
            | Step::Part { .. }
            | Step::Add { .. }
            | Step::Pair { .. }
            | Step::Scan { .. }
            | Step::Heads { .. }
            | Step::Groups { .. }
            | Step::Stamp { .. }
            | Step::Journal { .. }
            | Step::Cells { .. }
            | Step::Sheet { .. }
            | Step::Lock { .. }
            | Step::Held { .. }
            | Step::Fenced { .. }
            | Step::Unlock { .. }
            | Step::Guarded { .. }
            | Step::Upload { .. }
            | Step::Runs { .. }
            | Step::Enter { .. }
            | Step::Leave { .. }
            | Step::Members { .. }
            | Step::Watch { .. }
            | Step::Told { .. }
            | Step::Look { .. }
            | Step::Unwatch { .. }
            | Step::Keep { .. }
            | Step::Kept { .. }
            | Step::Unkeep { .. }
            | Step::Placed { .. }
            | Step::Positions { .. }
            | Step::SharedLog { .. },
            _,
        ) => {}
    }
}

fn check_register(values: &BTreeMap<u64, Value>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut zones = Vec::new();
    for (&number, value) in values {
        // Nothing was written before everything.
        let first = Span { invoked: 0, returned: 0, process: 0 };
        let write = if number == 0 { Some(first) } else { value.write };
        let Some(write) = write else {
            wrong.push(format!("dirty read: {number} was read and not written"));
            continue;
        };
        if value.is_unsure && value.reads.is_empty() {
            continue;
        }
        if let Some(read) = value.reads.iter().find(|read| read.returned < write.invoked) {
            let by = read.process;
            wrong.push(format!("process {by} read {number} before it was written"));
        }
        let all = || std::iter::once(&write).chain(&value.reads);
        let end = all().map(|span| span.returned).min().unwrap_or(u64::MAX);
        let begin = all().map(|span| span.invoked).max().unwrap_or(0);
        zones.push(Zone { value: number, end, begin });
    }
    wrong.extend(conflicts(&zones));
    wrong
}

fn conflicts(zones: &[Zone]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut forward: Vec<&Zone> = zones.iter().filter(|zone| zone.is_forward()).collect();
    forward.sort_unstable_by_key(|zone| zone.end);
    for pair in forward.windows(2) {
        if pair[1].end < pair[0].begin {
            wrong.push(format!(
                "stale read: {} and {} were each held for good in lines {} to {}",
                pair[0].value,
                pair[1].value,
                pair[1].end,
                pair[0].begin.min(pair[1].begin)
            ));
        }
    }
    for zone in zones.iter().filter(|zone| !zone.is_forward()) {
        // Forward zones do not overlap, so only the last to begin before it can hold it.
        let before = forward.partition_point(|other| other.end < zone.begin);
        if let Some(other) = before.checked_sub(1).map(|at| forward[at])
            && zone.end < other.begin
        {
            wrong.push(format!(
                "stale read: {} came and went in lines {} to {}, while {} was held from {} to {}",
                zone.value, zone.begin, zone.end, other.value, other.end, other.begin
            ));
        }
    }
    wrong
}
