//! Paper and run agree; orders and tellings keep what they must.

use std::collections::BTreeSet;

use tyr_protocol::Ends;
use tyr_protocol::map::{Balance, ClusterMap};

use super::cluster::{self, Plan};
use super::order::Order;
use super::paper;
use super::passage::Passage;
use super::tally::Kind;
use super::telling::Telling;
use super::work::{Work, Written};

/// So many blobs that no two transactions meet on one.
const WORK: Work = Work { written: Written::Blobs(6), population: 100_000_000 };

/// So many groups.
const FILES: Work = Work { written: Written::Group, population: 100_000_000 };

/// Bytes do not matter here.
const SIZES: [f64; Kind::ALL.len()] = [0.0; Kind::ALL.len()];

fn map(nodes: u16) -> ClusterMap {
    ClusterMap::of(nodes, &[WORK.keyspace()])
}

fn passages(map: &ClusterMap, order: &Order, count: u64) -> Vec<Passage> {
    let drawn = WORK.drawn(5, count);
    let chain = |transaction| map.chain(&transaction, &Ends::new()).unwrap();
    drawn.map(|transaction| Passage::new(map, order, &chain(transaction))).collect()
}

/// By kind and by node: the rules as counted are what the machines do.
#[test]
fn a_run_sends_what_is_counted_on_paper() {
    for (nodes, work) in [(4, WORK), (16, WORK), (4, FILES), (16, FILES)] {
        let outcome = cluster::run(Plan { nodes, seed: 3, duration_us: 500_000 }, work);
        let map = ClusterMap::of(nodes, &[work.keyspace()]);
        let transactions = outcome.committed.iter().map(|committed| (**committed).clone());
        let order = Order::by_number(&map);
        let [paper] = paper::count(&map, &order, [Telling::Relays], &SIZES, transactions);
        assert!(outcome.committed.len() > 100 && outcome.aborted == 0);
        for (node, load) in &paper.nodes {
            let mut counted = outcome.tally.at_node[node];
            counted[Kind::Lease as usize] = 0;
            assert_eq!(counted, load.messages, "{nodes} nodes, {node:?}");
        }
    }
}

/// H: all of a group is at the same nodes, so a transaction in it costs what one blob does.
#[test]
fn a_transaction_in_a_group_costs_ten_messages_and_six_delays() {
    let outcome = cluster::run(Plan { nodes: 64, seed: 6, duration_us: 500_000 }, FILES);
    let committed = outcome.committed.len() as u64;
    assert!(committed > 100 && outcome.aborted == 0);
    assert_eq!(outcome.tally.about_transactions(), 10 * committed);
    let delays = [outcome.percentile(0), outcome.percentile(99)];
    assert_eq!(delays.map(|delays| delays.to_string()), ["6", "6"]);
}

/// What nothing is in the way of takes as long as counted; so on average it takes little longer.
#[test]
fn a_run_takes_as_many_delays_as_counted_on_paper() {
    let outcome = cluster::run(Plan { nodes: 16, seed: 4, duration_us: 500_000 }, WORK);
    let map = map(16);
    let transactions = outcome.committed.iter().map(|committed| (**committed).clone());
    let order = Order::by_number(&map);
    let [paper] = paper::count(&map, &order, [Telling::Relays], &SIZES, transactions);
    let (run, counted) = (outcome.mean_delays(), paper.each(paper.delays));
    assert!((counted..counted * 1.05).contains(&run), "{run} and {counted}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = || cluster::run(Plan { nodes: 5, seed: 9, duration_us: 200_000 }, WORK);
    let (one, other) = (run(), run());
    assert_eq!(one.tally.at_node, other.tally.at_node);
    assert_eq!(one.latencies_us, other.latencies_us);
}

#[test]
fn by_number_the_counts_are_those_of_the_map() {
    let map = map(20);
    let mut balance = Balance::new(&map);
    for transaction in WORK.drawn(7, 500) {
        balance.count(&map.chain(&transaction, &Ends::new()).unwrap());
    }
    let order = Order::by_number(&map);
    let [paper] = paper::count(&map, &order, [Telling::Relays], &SIZES, WORK.drawn(7, 500));
    for (node, load) in balance.loads() {
        let counted = &paper.nodes[node];
        let messages: u64 = counted.messages.iter().sum();
        assert_eq!(
            (load.chains, load.heads, load.tails, load.authorities, load.messages),
            (counted.chains, counted.heads, counted.tails, counted.authorities, messages),
        );
    }
}

/// Two chains that share nodes within lanes pass them in the same order: so waiting ends.
#[test]
fn chains_in_lanes_pass_what_they_share_in_one_order() {
    let map = map(64);
    let order = Order::by_lanes(&map, Order::lanes_for(64), 1);
    assert_eq!(order.lanes(), 16);
    let members: Vec<_> = map.ring.members().keys().copied().collect();
    let all = (0..16).flat_map(|lane| members.iter().map(move |node| (lane, *node)));
    let ranks: BTreeSet<(usize, u32)> = all.map(|(lane, node)| order.rank(lane, node)).collect();
    assert_eq!(ranks.len(), 16 * 64, "every node has a rank of its own in every lane");
    for passage in passages(&map, &order, 200) {
        assert!(passage.authorities.contains(&0), "who comes first is first of its chunks too");
        assert_eq!(passage.chunk_authorities.len(), 6);
    }
}

#[test]
fn every_node_but_the_tail_is_told_once_by_one_who_knows() {
    let map = map(64);
    for passage in passages(&map, &Order::by_number(&map), 200) {
        let last = passage.visits.len() - 1;
        for telling in Telling::ALL {
            let mut knows = BTreeSet::from([last]);
            for (from, to) in telling.tellers(&passage) {
                assert!(knows.contains(&from), "{telling:?}: {from} tells {to}");
                assert!(knows.insert(to), "{telling:?}: {to} is told twice");
            }
            assert_eq!(knows.len(), passage.visits.len(), "{telling:?}");
        }
    }
}

#[test]
fn authorities_that_tell_the_others_cost_no_delay() {
    let map = map(64);
    for passage in passages(&map, &Order::by_number(&map), 500) {
        assert_eq!(passage.delays(Telling::Authorities), passage.delays(Telling::Tail));
        assert!(passage.delays(Telling::Relays) >= passage.delays(Telling::Tail));
    }
}
