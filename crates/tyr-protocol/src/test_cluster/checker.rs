//! What a run must have shown (the promises of the store), looked at from outside.
//!
//! - Replicas are equal, and hold exactly what committed.
//! - Transactions without reads and conditions did not abort; everything was answered.
//! - Done again one after the other in the order of their timestamps, the committed transactions
//!   find their reads and conditions as they were, and lead to the same state.
//! - Transactions and single reads are strictly serializable, with snapshots serializable: a graph
//!   of who came before whom, by data and by real time, has no circle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tyr_types::{Existence, NodeId, Operation, Timestamp, Transaction};

use super::layout::{Layout, Object, blob_name, blob_number};
use super::state::{State, Written};
use crate::commit::Decision;
use crate::view::View;

/// A transaction as its client saw it.
#[derive(Clone, Debug)]
pub struct Attempted {
    pub transaction: Arc<Transaction>,
    /// What was read before, with the version that the transaction relies on.
    pub reads: BTreeMap<Object, Vec<Written>>,
    pub start: u64,
    pub end: Option<(u64, Decision)>,
}

/// A read as its client saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub start: u64,
    pub end: Option<u64>,
    pub got: BTreeMap<Object, Vec<Written>>,
    pub objects: Vec<Object>,
}

/// All that clients saw.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub transactions: BTreeMap<u64, Attempted>,
    pub reads: Vec<Seen>,
    pub snapshots: Vec<Seen>,
    /// Which of the snapshots are `read_many`: no older than when they began.
    pub fresh: BTreeSet<usize>,
}

/// Checks all of it; real time only if `is_strict`.
///
/// # Errors
/// What is wrong.
pub fn check(
    layout: &Layout,
    states: &[State],
    history: &History,
    is_strict: bool,
) -> Result<(), String> {
    everything_is_answered(history)?;
    let lists = replicas_are_equal(layout, states)?;
    what_committed_is_there(&lists, history)?;
    timestamp_order_explains_it(layout, &lists, history)?;
    read_many_is_fresh(layout, history)?;
    if is_strict {
        no_circle(&lists, history, true)?;
    }
    no_circle(&lists, history, false)
}

type Lists = BTreeMap<Object, Vec<Written>>;

fn everything_is_answered(history: &History) -> Result<(), String> {
    for (id, attempted) in &history.transactions {
        let Some((_, decision)) = &attempted.end else {
            return Err(format!("transaction {id} was never answered"));
        };
        if let Decision::Abort(abort) = decision
            && !attempted.transaction.is_conditional()
        {
            return Err(format!("transaction {id} only writes, and aborted: {abort:?}"));
        }
    }
    let open = history.reads.iter().chain(&history.snapshots).find(|seen| seen.end.is_none());
    open.map_or(Ok(()), |seen| Err(format!("a read was never answered: {seen:?}")))
}

fn replicas_are_equal(layout: &Layout, states: &[State]) -> Result<Lists, String> {
    let mut lists = Lists::new();
    for object in layout.objects() {
        let of = |node: &NodeId| states[usize::from(node.0)].list(object).to_vec();
        let all: Vec<_> = layout.replicas(object).iter().map(of).collect();
        if all.iter().any(|list| *list != all[0]) {
            return Err(format!("replicas of {object:?} differ: {all:?}"));
        }
        lists.insert(object, all[0].clone());
    }
    Ok(lists)
}

fn committed(history: &History) -> BTreeMap<u64, (Timestamp, &Attempted)> {
    let all = history.transactions.iter();
    all.filter_map(|(id, attempted)| match &attempted.end {
        Some((_, Decision::Commit(at))) => Some((*id, (*at, attempted))),
        Some((_, Decision::Abort(_))) | None => None,
    })
    .collect()
}

fn what_committed_is_there(lists: &Lists, history: &History) -> Result<(), String> {
    let committed = committed(history);
    for (object, list) in lists {
        for (at, id) in list {
            if committed.get(id).map(|(committed_at, _)| committed_at) != Some(at) {
                return Err(format!("{object:?} has {id} at {at}, which did not commit there"));
            }
        }
    }
    Ok(())
}

fn timestamp_order_explains_it(
    layout: &Layout,
    lists: &Lists,
    history: &History,
) -> Result<(), String> {
    let committed = committed(history);
    let mut order: Vec<_> =
        committed.iter().map(|(id, (at, attempted))| (at, id, attempted)).collect();
    order.sort_unstable_by_key(|(at, id, _)| (*at, *id));
    let mut state = State::new(layout.clone(), None);
    for (at, id, attempted) in order {
        for (object, seen) in &attempted.reads {
            if state.list(*object) != seen {
                let now = state.list(*object);
                return Err(format!("{id} at {at} relies on {object:?} {seen:?}, it is {now:?}"));
            }
        }
        for entry in &attempted.transaction.blobs {
            let mut size = state.stat(&entry.blob);
            for operation in &entry.operations {
                let holds = match operation {
                    Operation::Create => size.is_none(),
                    Operation::Expect { existence } => Existence::of(size) == *existence,
                    Operation::Append { expected: Some(end), .. } => size.unwrap_or(0) == *end,
                    Operation::Compare { offset, expected } => {
                        state.is_as_expected(&entry.blob, *offset, expected)
                    }
                    Operation::Append { expected: None, .. }
                    | Operation::Write { .. }
                    | Operation::Truncate { .. }
                    | Operation::Clear { .. }
                    | Operation::Delete
                    | Operation::Apply { .. }
                    | Operation::Replace { .. } => true,
                };
                if !holds {
                    return Err(format!("{id} at {at} committed though {operation:?} fails"));
                }
                size = operation.size_after(size);
            }
        }
        state.apply(&attempted.transaction, *at)?;
    }
    let differs = |(object, list): &(&Object, &Vec<Written>)| state.list(**object) != **list;
    match lists.iter().find(differs) {
        None => Ok(()),
        Some((object, list)) => {
            let again = state.list(*object);
            Err(format!("{object:?} is {list:?}, done again in timestamp order {again:?}"))
        }
    }
}

fn read_many_is_fresh(layout: &Layout, history: &History) -> Result<(), String> {
    for (id, (_, attempted)) in committed(history) {
        let Some((end, _)) = attempted.end else { continue };
        for entry in &attempted.transaction.blobs {
            let log = Object::Log(blob_number(&entry.blob));
            let is_writing = entry.operations.iter().any(Operation::is_write);
            if !layout.is_log(log.blob()) || !is_writing {
                continue;
            }
            for snapshot in history.fresh.iter().map(|index| &history.snapshots[*index]) {
                let has_it = |list: &Vec<Written>| list.iter().any(|(_, by)| *by == id);
                if end < snapshot.start && snapshot.got.get(&log).is_some_and(|list| !has_it(list))
                {
                    return Err(format!("a read_many misses {id} in {log:?}: {snapshot:?}"));
                }
            }
        }
    }
    Ok(())
}

/// A place in the graph.
type Node = (&'static str, u64);

/// When a place began and ended, and what it saw.
type Observer<'a> = (Node, u64, u64, &'a BTreeMap<Object, Vec<Written>>);

fn no_circle(lists: &Lists, history: &History, is_strict: bool) -> Result<(), String> {
    let mut edges: BTreeMap<Node, BTreeSet<Node>> = BTreeMap::new();
    let mut add = |from: Node, to: Node| {
        if from != to {
            edges.entry(from).or_default().insert(to);
        }
    };
    let writer = |(_, id): &Written| ("transaction", *id);
    for list in lists.values() {
        list.windows(2).for_each(|pair| add(writer(&pair[0]), writer(&pair[1])));
    }
    let mut observers: Vec<Observer> = Vec::new();
    for (id, (_, attempted)) in committed(history) {
        let end = attempted.end.as_ref().map_or(u64::MAX, |(end, _)| *end);
        observers.push((("transaction", id), attempted.start, end, &attempted.reads));
    }
    let snapshots = if is_strict { [].iter() } else { history.snapshots.iter() };
    let named = [("read", history.reads.iter()), ("snapshot", snapshots)];
    for (name, seen) in named {
        for (seen, number) in seen.zip(0..) {
            let end = seen.end.unwrap_or(u64::MAX);
            observers.push(((name, number), seen.start, end, &seen.got));
        }
    }
    for (node, _, _, got) in &observers {
        for (object, seen) in *got {
            let list = &lists[object];
            if !list.starts_with(seen) {
                return Err(format!("{node:?} saw {seen:?} of {object:?}, which is {list:?}"));
            }
            if let Some(last) = seen.last() {
                add(writer(last), *node);
            }
            let next = list[seen.len()..].iter().map(writer).find(|writer| writer != node);
            if let Some(next) = next {
                add(*node, next);
            }
        }
    }
    if is_strict {
        for (before, _, end, _) in &observers {
            for (after, start, _, _) in &observers {
                if end < start {
                    add(*before, *after);
                }
            }
        }
    }
    match circle(&edges) {
        None => Ok(()),
        Some(circle) if is_strict => Err(format!("not strictly serializable: {circle:?}")),
        Some(circle) => Err(format!("not serializable: {circle:?}")),
    }
}

/// A circle of the graph, if there is one: what remains when those nobody comes before are taken
/// away, again and again.
fn circle(edges: &BTreeMap<Node, BTreeSet<Node>>) -> Option<Vec<Node>> {
    let mut before: BTreeMap<Node, usize> = BTreeMap::new();
    for to in edges.values().flatten() {
        *before.entry(*to).or_default() += 1;
    }
    let mut free: Vec<Node> =
        edges.keys().filter(|node| !before.contains_key(node)).copied().collect();
    while let Some(node) = free.pop() {
        for to in edges.get(&node).into_iter().flatten() {
            let count = before.get_mut(to).unwrap();
            *count -= 1;
            if *count == 0 {
                before.remove(to);
                free.push(*to);
            }
        }
    }
    let mut node = *before.keys().next()?;
    let mut path = vec![node];
    loop {
        // Whoever is left has one left before it.
        let is_before = |from: &&Node| edges.get(from).is_some_and(|to| to.contains(&node));
        node = *before.keys().find(is_before).unwrap();
        if let Some(place) = path.iter().position(|passed| *passed == node) {
            return Some(path.split_off(place));
        }
        path.push(node);
    }
}

/// The version that a client relies on that saw this list.
pub fn version(list: &[Written]) -> Timestamp {
    list.last().map_or(Timestamp::ZERO, |(at, _)| *at)
}

/// A check of what was read of `object` at `at`.
pub fn read_check(object: Object, at: Timestamp) -> tyr_types::ReadCheck {
    let footprint = object.footprint();
    tyr_types::ReadCheck {
        blob: blob_name(object.blob()),
        range: footprint.range,
        is_attributes: footprint.is_attributes,
        at,
        listed: None,
    }
}
