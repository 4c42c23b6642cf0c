//! What must be so when all is done: the promises, looked at from outside.
//!
//! - All were answered, and every live node that heard of it agrees with what clients were told.
//! - Live replicas are equal, and have exactly what committed.
//! - Done again in the order of their timestamps, the committed transactions find their reads and
//!   conditions as they were, and lead to the same contents.
//! - Some order of them that real time allows does so too (strict serializability): real time is
//!   that a transaction which was submitted when another was answered comes after it.

use tyr_types::{BlobName, NodeId, Timestamp, Transaction};

use super::case::{Case, Number};
use super::node::{Ending, Node};
use super::shelf::{Content, Shelf};

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
    for (number, (_, ending)) in answered.iter().enumerate() {
        for known in live.iter().filter_map(|node| node.ending(number)) {
            if known.committed_at() != ending.committed_at() {
                return Err(format!("{number} was answered {ending:?}, a node has {known:?}"));
            }
        }
    }
    let contents = replicas_are_equal(names, live)?;
    let mut committed: Vec<(Timestamp, Number)> = Vec::new();
    for (number, (_, ending)) in answered.iter().enumerate() {
        committed.extend(ending.committed_at().map(|at| (at, number)));
    }
    committed.sort_unstable();
    let by_time: Vec<Number> = committed.iter().map(|(_, number)| *number).collect();
    is_explained(names, &by_time, answered, &contents)
        .map_err(|wrong| format!("in timestamp order {committed:?}: {wrong}"))?;
    let is_some_order_good = permutations(&by_time).into_iter().any(|order| {
        let place = |number: Number| order.iter().position(|other| *other == number);
        let is_timely = |number: &Number| {
            let after = case.plans[*number].after.and_then(place);
            after.is_none_or(|before| Some(before) < place(*number))
        };
        order.iter().all(is_timely) && is_explained(names, &order, answered, &contents).is_ok()
    });
    match is_some_order_good {
        true => Ok(()),
        false => Err(format!("not strictly serializable: {committed:?} led to {contents:?}")),
    }
}

fn replicas_are_equal(names: &[BlobName; 2], live: &[&Node]) -> Result<[Content; 2], String> {
    let mut contents: [Content; 2] = Default::default();
    for (blob, name) in names.iter().enumerate() {
        let holders = live[0].map().holders(name, 0);
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
    order: &[Number],
    answered: &[(Transaction, Ending)],
    contents: &[Content; 2],
) -> Result<(), String> {
    let mut shelf = Shelf::new(names.clone());
    for number in order {
        let (transaction, ending) = &answered[*number];
        if !shelf.explains(transaction) {
            return Err(format!("{number} committed, but finds {shelf:?}"));
        }
        let at = ending.committed_at().expect("only those that committed are done again");
        shelf.apply(transaction, at, |_| true)?;
    }
    for (blob, content) in contents.iter().enumerate() {
        let again = shelf.content(blob);
        if again != content {
            return Err(format!("blob {blob} is {content:?}, done again {again:?}"));
        }
    }
    Ok(())
}

fn permutations(numbers: &[Number]) -> Vec<Vec<Number>> {
    if numbers.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for place in 0..numbers.len() {
        let mut rest = numbers.to_vec();
        let first = rest.remove(place);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}
