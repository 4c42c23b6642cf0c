//! What must be so when all is done: the promises, looked at from outside.
//!
//! - All were answered, and every live node that heard of it agrees with what clients were told.
//!   One of which nobody could tell any more (F11) may have committed or not, as a whole.
//! - Live replicas are equal, and have exactly what committed.
//! - Done again in the order of their timestamps, the committed transactions find their reads and
//!   conditions as they were, and lead to the same contents.
//! - Some order of them that real time allows does so too (strict serializability): real time is
//!   that a transaction which was submitted when another was answered comes after it.

use tyr_types::{BlobName, NodeId, Timestamp, Transaction};

use super::applied::{AppliedContent, Content};
use super::case::{self, Case, Number};
use super::node::{Ending, Node};

/// A transaction that took effect, and when.
type Committed = (Timestamp, Number);

/// Checks a state in which nothing more happens; `answered` is what clients were told, by number.
///
/// # Errors
/// What is wrong.
pub fn check(
    case: &Case,
    names: &[BlobName; 2],
    live: &[&Node],
    answered: &[(Transaction, Ending)],
) -> Result<(), String> {
    let mut endings = Vec::new();
    for (number, (_, answer)) in answered.iter().enumerate() {
        let known = live.iter().filter_map(|node| node.ending(number));
        let agree = |one: Ending, other: Ending| {
            let wrong = || format!("{number} was answered {answer:?}, a node has {other:?}");
            one.and(other).ok_or_else(wrong)
        };
        endings.push(known.into_iter().try_fold(*answer, agree)?);
    }
    let contents = replicas_are_equal(names, live)?;
    let mut committed: Vec<Committed> = Vec::new();
    for (number, ending) in endings.iter().enumerate() {
        let at = match ending {
            // Nobody could tell, and nobody has to; but it is there as a whole, or not at all.
            Ending::GivenUp => written_at(number, &contents),
            Ending::Committed(_) | Ending::Aborted(_) => ending.committed_at(),
        };
        committed.extend(at.map(|at| (at, number)));
    }
    committed.sort_unstable();
    is_explained(names, &committed, answered, &contents)
        .map_err(|wrong| format!("in timestamp order {committed:?}: {wrong}"))?;
    let is_some_order_good = permutations(&committed).into_iter().any(|order| {
        let place = |number: Number| order.iter().position(|(_, other)| *other == number);
        // Whose client was told that nobody can tell may have ended at any time.
        let is_told = |before: &Number| answered[*before].1 != Ending::GivenUp;
        let is_timely = |(_, number): &Committed| {
            let after = case.plans[*number].after.filter(is_told).and_then(place);
            after.is_none_or(|before| Some(before) < place(*number))
        };
        order.iter().all(is_timely) && is_explained(names, &order, answered, &contents).is_ok()
    });
    match is_some_order_good {
        true => Ok(()),
        false => Err(format!("not strictly serializable: {committed:?} led to {contents:?}")),
    }
}

/// When this transaction wrote what is there; `None` where it wrote nothing.
fn written_at(number: Number, contents: &[Content; 2]) -> Option<Timestamp> {
    let mut writes = contents.iter().flat_map(|content| &content.writes);
    writes.find(|written| written.by == number).map(|written| written.at)
}

fn replicas_are_equal(names: &[BlobName; 2], live: &[&Node]) -> Result<[Content; 2], String> {
    let mut contents: [Content; 2] = Default::default();
    for (blob, name) in names.iter().enumerate() {
        let holders = case::replicas(live[0].map(), name);
        let holds = |node: &&&Node| holders.contains(&node.id());
        let replicas: Vec<(NodeId, &Content)> =
            live.iter().filter(holds).map(|node| (node.id(), node.shelf().content(blob))).collect();
        if replicas.iter().any(|(_, content)| *content != replicas[0].1) {
            return Err(format!("replicas of blob {blob} differ: {replicas:?}"));
        }
        contents[blob] = replicas[0].1.clone();
    }
    Ok(contents)
}

/// Whether doing `order` one after the other finds what was found and leads to `contents`.
fn is_explained(
    names: &[BlobName; 2],
    order: &[Committed],
    answered: &[(Transaction, Ending)],
    contents: &[Content; 2],
) -> Result<(), String> {
    let mut shelf = AppliedContent::new(names.clone());
    for (at, number) in order {
        let (transaction, _) = &answered[*number];
        if !shelf.explains(transaction) {
            return Err(format!("{number} committed, but finds {shelf:?}"));
        }
        shelf.apply(transaction, *at, |_| true)?;
    }
    for (blob, content) in contents.iter().enumerate() {
        let again = shelf.content(blob);
        if again != content {
            return Err(format!("blob {blob} is {content:?}, done again {again:?}"));
        }
    }
    Ok(())
}

fn permutations(all: &[Committed]) -> Vec<Vec<Committed>> {
    if all.is_empty() {
        return vec![Vec::new()];
    }
    let mut orders = Vec::new();
    for place in 0..all.len() {
        let mut rest = all.to_vec();
        let first = rest.remove(place);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            orders.push(order);
        }
    }
    orders
}
