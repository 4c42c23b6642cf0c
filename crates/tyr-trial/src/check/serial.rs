//! Lists, logs and counters as lists of values with one order, for the search for circles.
//!
//! What ended unknown took effect if anybody has seen a value of it; then it may have done so at
//! any time after it began. What nobody saw by the end did not happen.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::order::checker::{check, explain};
use super::order::history::{Action, Entry, History, Object, Place, Seen, Value};
use crate::history::{Deed, Fate, Moment, Step};

/// Circles that are told at most: the others come from the same mistake.
const TOLD_MAX: usize = 10;

/// Numbers for keys.
#[derive(Default)]
struct Objects(HashMap<String, Object>);

impl Objects {
    fn number(&mut self, key: &str) -> Object {
        let next = self.0.len() as Object;
        *self.0.entry(key.to_owned()).or_insert(next)
    }
}

/// What the lists were in the end.
fn orders(deeds: &[&Deed], objects: &mut Objects) -> BTreeMap<Object, Vec<Value>> {
    let mut orders = BTreeMap::new();
    for deed in deeds.iter().filter(|deed| deed.operation == "final") {
        for step in &deed.steps {
            if let (Step::List { key, seen: Some(seen), .. }, Fate::Done) = (step, deed.fate) {
                orders.insert(objects.number(key), seen.clone());
            }
        }
    }
    orders
}

/// Whether a deed took effect: where nobody was told, by whether what it appended was seen.
fn is_committed(deed: &Deed, actions: &[Action], there: &HashSet<Value>) -> bool {
    let is_there = |action: &Action| match action {
        Action::Append { value, .. } => there.contains(value),
        _ => false,
    };
    match deed.fate {
        Fate::Done => true,
        Fate::Failed => false,
        Fate::Unknown => actions.iter().any(is_there),
    }
}

/// Checks deeds on lists, the last reads of which are called `final`.
pub fn lists(deeds: &[&Deed]) -> Vec<String> {
    let mut objects = Objects::default();
    let orders = orders(deeds, &mut objects);
    if orders.is_empty() {
        return vec!["nothing was read in the end".to_owned()];
    }
    let mut wrong = Vec::new();
    let there: HashSet<Value> = deeds.iter().flat_map(|deed| seen_values(deed)).collect();
    let mut entries = Vec::new();
    for deed in deeds {
        let mut actions = Vec::new();
        for step in &deed.steps {
            match step {
                Step::Append { key, value, at } => actions.push(Action::Append {
                    object: objects.number(key),
                    value: *value,
                    position: at.map(|at| at as usize),
                }),
                Step::List { key, from, seen: Some(seen) } => {
                    let object = objects.number(key);
                    let order = orders.get(&object).map_or(&[][..], Vec::as_slice);
                    let (action, mistake) = read(object, *from as usize, seen, order);
                    let text = mistake.filter(|_| deed.fate == Fate::Done);
                    wrong.extend(text.map(|text| format!("{} {text}", name(deed))));
                    actions.push(action);
                }
                Step::Part { key, from, count, seen: Some(seen) } => {
                    let order = orders.get(&objects.number(key)).map_or(&[][..], Vec::as_slice);
                    wrong.extend(misread(deed, order, (*from, *count), seen));
                }
                Step::List { seen: None, .. }
                | Step::Part { seen: None, .. }
                | Step::Write { .. }
                | Step::Read { .. }
                | Step::Swap { .. }
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
                | Step::SharedLog { .. } => {}
            }
        }
        entries.push(entry(deed, is_committed(deed, &actions, &there), actions));
    }
    wrong.extend(circles(&History { entries, orders }));
    wrong
}

/// What is wrong with so many values of a list that were read from a place on.
fn misread(
    deed: &Deed,
    order: &[Value],
    (from, count): (u64, u64),
    seen: &[Value],
) -> Option<String> {
    let places = from as usize..(from + count) as usize;
    let is_wrong = deed.fate == Fate::Done && order.get(places) != Some(seen);
    let text = format!("read {count} from {from} on that were not there in the end");
    is_wrong.then(|| format!("{} {text}", name(deed)))
}

/// A read of a list from a place on: all of it, or how many values there were. The second is what
/// is wrong with its content.
fn read(object: Object, from: usize, seen: &[Value], order: &[Value]) -> (Action, Option<String>) {
    if from == 0 {
        return (Action::Read { object, seen: Seen::List(seen.to_vec()) }, None);
    }
    let there = order.get(from..).unwrap_or_default();
    let mistake = (!there.starts_with(seen)).then(|| {
        let at = seen.iter().zip(there).position(|(seen, there)| seen != there);
        format!("read from {from} on what was not there in the end, at {at:?} of {}", seen.len())
    });
    (Action::Read { object, seen: Seen::Count(from + seen.len()) }, mistake)
}

fn seen_values(deed: &Deed) -> impl Iterator<Item = Value> + '_ {
    let done = deed.fate == Fate::Done;
    deed.steps
        .iter()
        .filter(move |_| done)
        .flat_map(|step| match step {
            Step::List { seen: Some(seen), .. } => seen.as_slice(),
            Step::List { seen: None, .. }
            | Step::Part { .. }
            | Step::Append { .. }
            | Step::Write { .. }
            | Step::Read { .. }
            | Step::Swap { .. }
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
            | Step::SharedLog { .. } => &[],
        })
        .copied()
}

fn entry(deed: &Deed, is_committed: bool, actions: Vec<Action>) -> Entry {
    let place = match deed.moment {
        Moment::Strict => Place::Strict,
        Moment::Fresh => Place::Fresh,
        Moment::Snapshot => Place::Snapshot,
    };
    Entry { place, invoked: deed.invoked, returned: deed.returned, is_committed, actions }
}

fn circles(history: &History) -> Vec<String> {
    let found = check(history);
    let told = found.iter().take(TOLD_MAX).map(|anomaly| explain(anomaly, history));
    let mut told: Vec<String> = told.collect();
    if found.len() > TOLD_MAX {
        told.push(format!("and {} more", found.len() - TOLD_MAX));
    }
    told
}

fn name(deed: &Deed) -> String {
    format!("{} of process {} (line {})", deed.operation, deed.process, deed.invoked)
}

/// Checks counters to which ones are added: each addition is a value, its place is what it came to.
#[expect(clippy::too_many_lines, reason = "many are the steps that are of other workloads")]
pub fn counters(deeds: &[&Deed]) -> Vec<String> {
    let mut objects = Objects::default();
    let mut wrong = Vec::new();
    // By counter and by what it came to: who.
    let mut counted: BTreeMap<(Object, u64), Value> = BTreeMap::new();
    let mut unknown: BTreeMap<Object, Vec<u64>> = BTreeMap::new();
    let mut last: BTreeMap<Object, u64> = BTreeMap::new();
    let (mut entries, mut values) = (Vec::new(), 0);
    for deed in deeds {
        let mut actions = Vec::new();
        for step in &deed.steps {
            match (step, deed.fate) {
                (Step::Add { key, sum: Some(sum) }, Fate::Done) => {
                    let object = objects.number(key);
                    values += 1;
                    let position = sum.checked_sub(1).map(|at| at as usize);
                    actions.push(Action::Append { object, value: values, position });
                    if counted.insert((object, *sum), values).is_some() {
                        wrong.push(format!("{key} came to {sum} twice, once by {}", name(deed)));
                    }
                }
                (Step::Add { key, .. }, Fate::Done) => {
                    wrong.push(format!("{} did not say what {key} came to", name(deed)));
                }
                (Step::Add { key, .. }, Fate::Unknown) => {
                    unknown.entry(objects.number(key)).or_default().push(deed.invoked);
                }
                (Step::Read { key, seen: Some(seen) }, Fate::Done) => {
                    let object = objects.number(key);
                    let count = *seen as usize;
                    actions.push(Action::Read { object, seen: Seen::Count(count) });
                    if deed.operation == "final" {
                        last.insert(object, *seen);
                    }
                }
                (
                    Step::Add { .. }
                    | Step::Read { .. }
                    | Step::Append { .. }
                    | Step::List { .. }
                    | Step::Part { .. }
                    | Step::Write { .. }
                    | Step::Swap { .. }
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
        entries.push(entry(deed, deed.fate == Fate::Done, actions));
    }
    let mut orders = BTreeMap::new();
    for (key, object) in &objects.0 {
        let Some(&end) = last.get(object) else {
            wrong.push(format!("{key} was not read in the end"));
            continue;
        };
        let mut spare = unknown.remove(object).unwrap_or_default();
        spare.sort_unstable();
        let (order, missing) = fill(*object, end, &counted, &mut values);
        if missing.len() > spare.len() {
            let (gaps, spare) = (missing.len(), spare.len());
            wrong.push(format!(
                "{key} is {end} in the end: {gaps} of that by nobody, and {spare} are unknown"
            ));
        }
        // Whichever of the unknown it was, it did not begin before the first of them.
        let first = spare.first().copied().unwrap_or(0);
        entries.extend(missing.iter().map(|place| unheard(*object, *place, first)));
        orders.insert(*object, order);
    }
    wrong.extend(circles(&History { entries, orders }));
    wrong
}

/// An addition that took place, though nobody was told so, some time after `invoked`.
fn unheard(object: Object, (value, position): (Value, usize), invoked: u64) -> Entry {
    Entry {
        place: Place::Strict,
        invoked,
        returned: u64::MAX,
        is_committed: true,
        actions: vec![Action::Append { object, value, position: Some(position) }],
    }
}

/// The additions to a counter in the order of what it came to; what nobody was answered gets new
/// values, with their places.
fn fill(
    object: Object,
    end: u64,
    counted: &BTreeMap<(Object, u64), Value>,
    values: &mut Value,
) -> (Vec<Value>, Vec<(Value, usize)>) {
    let (mut order, mut missing) = (Vec::new(), Vec::new());
    for sum in 1..=end {
        let value = counted.get(&(object, sum)).copied().unwrap_or_else(|| {
            *values += 1;
            missing.push((*values, sum as usize - 1));
            *values
        });
        order.push(value);
    }
    (order, missing)
}
