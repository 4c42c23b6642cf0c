//! What a larger cluster costs: how roles, messages and bytes fall on the nodes.
//!
//! Twice, so that each checks the other. *On paper* ([`paper`]): chains of many transactions over a
//! real map, their messages counted by the rules. *In a run* ([`cluster`]): nodes and clients, the
//! machines themselves, on a network that loses nothing and takes one delay for each message; every
//! message is counted and encoded ([`tally`]).
//!
//! ```text
//!   work ──► transactions ──┬─► map.chain ─► passage (order, telling) ─► paper ─┐
//!                           └─► sessions ─► members ─► cluster ─► tally ────────┴─► print
//! ```
//!
//! What could be otherwise is counted on paper only: [`order`] has the order in which chains pass
//! the nodes, by node number as it is, or by lanes; [`telling`] says who tells a decision to whom,
//! through relays as it is, or in other ways.
//!
//! This module must not judge: whether a run was right is the affair of the checkers.

pub mod cluster;
pub mod order;
pub mod paper;
pub mod passage;
pub mod print;
pub mod tally;
pub mod telling;
#[cfg(test)]
mod tests;
pub mod work;

use tyr_protocol::map::ClusterMap;
use tyr_types::{Error, Result};

use self::cluster::{Outcome, Plan};
use self::order::Order;
use self::paper::{Paper, ring_shares};
use self::tally::{Kind, Spread};
use self::telling::Telling;
use self::work::{Work, Written};

/// Transactions counted on paper for each row: a head's share of them strays by a few per cent.
const PAPER_TRANSACTIONS: u64 = 30_000;
/// Simulated time in which clients begin transactions, in microseconds.
const RUN_US: u64 = 4_000_000;
/// Fewest and most nodes: more than replicas, so that chunks have different authorities, and as
/// many as simulations have at most.
pub const NODES: (u16, u16) = (4, 256);

/// The counts of one way to order chains and to tell decisions.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Lanes; 1 is the order by node number.
    pub lanes: usize,
    /// Who tells decisions.
    pub telling: Telling,
    /// What was counted.
    pub paper: Paper,
}

/// Everything about one size of cluster and one size of transaction.
#[derive(Clone, Debug)]
pub struct Row {
    /// Nodes.
    pub nodes: u16,
    /// What a transaction writes.
    pub written: Written,
    /// The share of the ring that each node holds.
    pub ring: Spread,
    /// On paper: as it is first, then what could be otherwise.
    pub variants: Vec<Variant>,
    /// In a run.
    pub run: Outcome,
}

/// Measures clusters of these sizes.
///
/// # Errors
/// `InvalidArgument` for a size outside of [`NODES`].
pub fn measure(sizes: &[u16], seed: u64) -> Result<Vec<Row>> {
    let (least, most) = NODES;
    if let Some(size) = sizes.iter().find(|size| !(least..=most).contains(*size)) {
        return Err(Error::invalid(format!("{size} nodes; there may be {least} to {most}")));
    }
    let all = [Written::Blobs(1), Written::Group, Written::Blobs(6)];
    let rows = sizes.iter().flat_map(|nodes| all.map(|written| row(*nodes, written, seed)));
    Ok(rows.collect())
}

fn row(nodes: u16, written: Written, seed: u64) -> Row {
    let work = Work { written, population: 1024 * u64::from(nodes) };
    let map = ClusterMap::of(nodes, &[work.keyspace()]);
    let run = cluster::run(Plan { nodes, seed, duration_us: RUN_US }, work);
    let sizes = Kind::ALL.map(|kind| run.tally.bytes_each(kind));
    let drawn = || work.drawn(seed, PAPER_TRANSACTIONS);
    let variant =
        |lanes| move |(telling, paper): (Telling, Paper)| Variant { lanes, telling, paper };
    let papers = paper::count(&map, &Order::by_number(&map), Telling::ALL, &sizes, drawn());
    let mut variants: Vec<Variant> = Telling::ALL.into_iter().zip(papers).map(variant(1)).collect();
    let lanes = Order::lanes_for(nodes);
    if lanes > 1 {
        let tellings = [Telling::Relays, Telling::Tail];
        let order = Order::by_lanes(&map, lanes, seed);
        let papers = paper::count(&map, &order, tellings, &sizes, drawn());
        variants.extend(tellings.into_iter().zip(papers).map(variant(lanes)));
    }
    Row { nodes, written, ring: ring_shares(&map), variants, run }
}
