//! Whether a history can be: are transactions strictly serializable, and snapshots serializable?
//!
//! Every object's values have one order; from it follows which entry must come before which:
//!
//! ```text
//!   ww   it wrote the value before        rw   it did not see the value yet
//!   wr   it wrote the last value seen     rt   it had returned before the other began
//! ```
//!
//! If these edges run in a circle, no order of the entries explains the history. There are two
//! such graphs. One has the strict entries alone, and real time between them. The other has all
//! entries, and of real time only what a fresh one must contain: a snapshot places itself by its
//! timestamp, and those of two unrelated transactions may lie against real time.
//!
//! Real time is a chain of nodes, one for each return, so that it takes two edges an entry and not
//! one a pair.
//!
//! This knows nothing of the store, and how the history came about.

mod graph;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use super::history::{Action, Entry, History, Object, Place, Seen, Value};
use graph::Graph;

/// Why one entry comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It wrote the value before, of this object.
    Ww(Object),
    /// The other saw its value.
    Wr(Object),
    /// It did not see the other's value.
    Rw(Object),
    /// It had returned before the other began.
    RealTime,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// A value that nobody wrote, or somebody whose transaction aborted.
    Dirty { object: Object, value: Value },
    /// A value that is there more than once.
    Double { object: Object, value: Value },
    /// A value that was acknowledged and is not there.
    Lost { object: Object, value: Value },
    /// A value that is not where its append said.
    Misplaced { object: Object, value: Value },
    /// Two reads saw values in different orders.
    Forked { object: Object, entry: usize },
    /// A transaction saw two versions of an object, or not its own write.
    Unrepeatable { object: Object, entry: usize },
    /// Entries that each must come before the next, and the last before the first.
    Cycle(Vec<(usize, Reason)>),
}

impl Anomaly {
    /// What such an anomaly is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dirty { .. } => "dirty read",
            Self::Double { .. } => "double write",
            Self::Lost { .. } => "lost write",
            Self::Misplaced { .. } => "wrong answer",
            Self::Forked { .. } => "forked order",
            Self::Unrepeatable { .. } => "unrepeatable read",
            Self::Cycle(cycle) => cycle_name(cycle),
        }
    }
}

fn cycle_name(cycle: &[(usize, Reason)]) -> &'static str {
    let reasons = || cycle.iter().map(|(_, reason)| *reason);
    let unseen = reasons().filter(|reason| matches!(reason, Reason::Rw(_))).count();
    let has_real_time = reasons().any(|reason| reason == Reason::RealTime);
    let writes = reasons().any(|reason| matches!(reason, Reason::Ww(_)));
    let reads = reasons().any(|reason| matches!(reason, Reason::Wr(_)));
    match (unseen, has_real_time, writes, reads) {
        (0, true, ..) => "order against real time",
        (_, true, ..) => "stale read",
        (0, false, _, false) => "circle of writes",
        (0, false, _, true) => "circle of reads",
        (1, false, true, false) => "lost update",
        (1, false, _, _) => "fractured read",
        (_, false, _, _) => "write skew",
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self:?}", self.name())
    }
}

/// An anomaly with what those in it did, for whoever has to find out why.
pub fn explain(anomaly: &Anomaly, history: &History) -> String {
    let Anomaly::Cycle(cycle) = anomaly else { return anomaly.to_string() };
    let steps = cycle.iter().map(|(index, reason)| {
        let Entry { place, invoked, returned, actions, .. } = &history.entries[*index];
        let actions: Vec<String> = actions.iter().map(brief).collect();
        let did = actions.join(", ");
        format!("  {index} {place:?} {invoked}..{returned}: {did}\n    before the next: {reason:?}")
    });
    format!("{}\n{}", anomaly.name(), steps.collect::<Vec<_>>().join("\n"))
}

fn brief(action: &Action) -> String {
    match action {
        Action::Append { object, value, position } => {
            format!("append {value} to {object} at {position:?}")
        }
        Action::Read { object, seen: Seen::List(list) } => {
            format!("read {object}: {} values, the last {:?}", list.len(), list.last())
        }
        Action::Read { object, seen } => format!("read {object}: {seen:?}"),
    }
}

/// Everything that is wrong with a history; of circles the shortest found in each knot.
pub fn check(history: &History) -> Vec<Anomaly> {
    let mut check = Check { history, anomalies: Vec::new(), writers: HashMap::new() };
    check.note_writers();
    let orders = check.orders();
    let positions = check.positions(&orders);
    let mut edges = Edges::new();
    check.writes(&orders, &positions, &mut edges);
    for (index, entry) in history.entries.iter().enumerate() {
        if entry.is_committed {
            check.reads(index, entry, &orders, &positions, &mut edges);
        }
    }
    let is_strict = |index: &usize| history.entries[*index].place == Place::Strict;
    let mut cycles = Vec::new();
    for later in [Place::Strict, Place::Fresh] {
        let mut graph = Graph::new(history.entries.len());
        for (from, to, reason) in &edges {
            if later == Place::Fresh || is_strict(from) && is_strict(to) {
                graph.add(*from, *to, *reason);
            }
        }
        real_time(history, later, &mut graph);
        for cycle in graph.cycles() {
            // Circles without real time and snapshots are in both graphs.
            if !cycles.contains(&cycle) {
                cycles.push(cycle);
            }
        }
    }
    check.anomalies.extend(cycles.into_iter().map(Anomaly::Cycle));
    check.anomalies
}

/// Who comes before whom, and why.
type Edges = Vec<(usize, usize, Reason)>;

type Orders<'a> = HashMap<Object, &'a [Value]>;
type Positions = HashMap<(Object, Value), usize>;

struct Check<'a> {
    history: &'a History,
    anomalies: Vec<Anomaly>,
    /// Who wrote a value.
    writers: HashMap<(Object, Value), usize>,
}

impl<'a> Check<'a> {
    fn note_writers(&mut self) {
        for (index, entry) in self.history.entries.iter().enumerate() {
            for action in &entry.actions {
                if let Action::Append { object, value, .. } = action {
                    let earlier = self.writers.insert((*object, *value), index);
                    assert!(earlier.is_none(), "a workload writes each value once");
                }
            }
        }
    }

    /// The order of each object's values: as given, or the longest list that was read.
    fn orders(&self) -> Orders<'a> {
        let mut orders: Orders = HashMap::new();
        for entry in self.history.entries.iter().filter(|entry| entry.is_committed) {
            let mut own: Vec<Object> = Vec::new();
            for action in &entry.actions {
                match action {
                    // What follows its own append is not where that will be in the end.
                    Action::Append { object, .. } => own.push(*object),
                    Action::Read { object, seen: Seen::List(list) } if !own.contains(object) => {
                        let longest = orders.entry(*object).or_default();
                        if longest.len() < list.len() {
                            *longest = list;
                        }
                    }
                    Action::Read { .. } => {}
                }
            }
        }
        let given = &self.history.orders;
        orders.extend(given.iter().map(|(object, order)| (*object, order.as_slice())));
        orders
    }

    /// Where each value lies in its object's order.
    fn positions(&mut self, orders: &Orders) -> Positions {
        let mut positions = Positions::new();
        for (&object, order) in orders {
            for (position, &value) in order.iter().enumerate() {
                if positions.insert((object, value), position).is_some() {
                    self.anomalies.push(Anomaly::Double { object, value });
                }
                let writer = self.writers.get(&(object, value));
                if !writer.is_some_and(|writer| self.history.entries[*writer].is_committed) {
                    self.anomalies.push(Anomaly::Dirty { object, value });
                }
            }
        }
        positions
    }

    fn writes(&mut self, orders: &Orders, positions: &Positions, edges: &mut Edges) {
        for (&object, order) in orders {
            for pair in order.windows(2) {
                if let [Some(first), Some(second)] =
                    [pair[0], pair[1]].map(|v| self.writer(object, v))
                {
                    edges.push((first, second, Reason::Ww(object)));
                }
            }
        }
        for entry in self.history.entries.iter().filter(|entry| entry.is_committed) {
            for action in &entry.actions {
                let Action::Append { object, value, position } = action else { continue };
                let (object, value) = (*object, *value);
                match (positions.get(&(object, value)), position) {
                    (None, _) => self.anomalies.push(Anomaly::Lost { object, value }),
                    (Some(at), Some(said)) if at != said => {
                        self.anomalies.push(Anomaly::Misplaced { object, value });
                    }
                    (Some(_), _) => {}
                }
            }
        }
    }

    fn reads(
        &mut self,
        index: usize,
        entry: &'a Entry,
        orders: &Orders,
        positions: &Positions,
        edges: &mut Edges,
    ) {
        let mut own: HashMap<Object, Vec<Value>> = HashMap::new();
        let mut counts: HashMap<Object, usize> = HashMap::new();
        for action in &entry.actions {
            let (object, seen) = match action {
                Action::Append { object, value, .. } => {
                    own.entry(*object).or_default().push(*value);
                    continue;
                }
                Action::Read { object, seen } => (*object, seen),
            };
            let order = orders.get(&object).copied().unwrap_or_default();
            let own = own.get(&object).map_or(&[][..], Vec::as_slice);
            let count = match self.count(object, seen, own, order, positions) {
                Ok(count) => count,
                Err(Unreadable::Own) => {
                    self.anomalies.push(Anomaly::Unrepeatable { object, entry: index });
                    continue;
                }
                Err(Unreadable::Forked) => {
                    self.anomalies.push(Anomaly::Forked { object, entry: index });
                    continue;
                }
                Err(Unreadable::Dirty(value)) => {
                    self.anomalies.push(Anomaly::Dirty { object, value });
                    continue;
                }
            };
            if counts.insert(object, count).is_some_and(|before| before != count) {
                self.anomalies.push(Anomaly::Unrepeatable { object, entry: index });
            }
            let value_at = |position: usize| order.get(position).copied();
            let last = count.checked_sub(1).and_then(value_at);
            if let Some(writer) = last.and_then(|value| self.writer(object, value)) {
                edges.push((writer, index, Reason::Wr(object)));
            }
            if let Some(writer) = value_at(count).and_then(|value| self.writer(object, value)) {
                edges.push((index, writer, Reason::Rw(object)));
            }
        }
    }

    /// How many values of the order a read saw, without those of its own transaction.
    fn count(
        &self,
        object: Object,
        seen: &Seen,
        own: &[Value],
        order: &[Value],
        positions: &Positions,
    ) -> Result<usize, Unreadable> {
        match seen {
            Seen::Count(count) => count.checked_sub(own.len()).ok_or(Unreadable::Own),
            Seen::Last(None) => Ok(0),
            Seen::Last(Some(value)) => {
                let position = positions.get(&(object, *value));
                position.map(|position| position + 1).ok_or(Unreadable::Dirty(*value))
            }
            Seen::List(list) => {
                let list = list.strip_suffix(own).ok_or(Unreadable::Own)?;
                match order.starts_with(list) {
                    true => Ok(list.len()),
                    false => {
                        let unknown = list.iter().find(|v| !positions.contains_key(&(object, **v)));
                        Err(unknown.map_or(Unreadable::Forked, |value| Unreadable::Dirty(*value)))
                    }
                }
            }
        }
    }

    fn writer(&self, object: Object, value: Value) -> Option<usize> {
        self.writers.get(&(object, value)).copied()
    }
}

/// Why a read cannot be placed in an object's order.
enum Unreadable {
    /// Its own writes are not in it.
    Own,
    Forked,
    Dirty(Value),
}

/// Adds the chain of returns of strict entries, and those entries that come `later` on it.
fn real_time(history: &History, later: Place, graph: &mut Graph) {
    let entries = history.entries.iter().enumerate().filter(|(_, entry)| entry.is_committed);
    let strict = entries.clone().filter(|(_, entry)| entry.place == Place::Strict);
    let mut returns: Vec<(u64, usize)> =
        strict.map(|(index, entry)| (entry.returned, index)).collect();
    returns.sort_unstable();
    let first = graph.add_nodes(returns.len());
    for (number, (_, index)) in returns.iter().enumerate() {
        graph.add(*index, first + number, Reason::RealTime);
        if number > 0 {
            graph.add(first + number - 1, first + number, Reason::RealTime);
        }
    }
    for (index, entry) in entries.filter(|(_, entry)| entry.place == later) {
        let before = returns.partition_point(|(returned, _)| *returned < entry.invoked);
        if before > 0 {
            graph.add(first + before - 1, index, Reason::RealTime);
        }
    }
}
