//! How evenly the roles fall on the nodes.

use tyr_types::{BlobOperations, Bytes, Operation, Payload, Transaction, TransactionId};

use super::*;
use crate::chain::{Chain, Ends};
use crate::map::Balance;

/// A transaction that writes to so many small blobs.
fn writing(blobs: u64, count: u64) -> Transaction {
    let write = Operation::Write { offset: 0, payload: Payload::Inline(Bytes::from_static(b"x")) };
    let entry = |index| BlobOperations {
        blob: blob(&format!("blob {index} of {count}")),
        operations: vec![write.clone()],
    };
    let (id, blobs) = (TransactionId::new(1, count), (0..blobs).map(entry).collect());
    Transaction { id, blobs, reads: Vec::new() }
}

fn balance(map: &ClusterMap, blobs: u64, transactions: u64) -> Balance {
    let mut balance = Balance::new(map);
    for count in 0..transactions {
        balance.count(&map.chain(&writing(blobs, count), &Ends::new()).unwrap());
    }
    balance
}

#[test]
fn each_transaction_has_one_head_one_tail_and_an_authority_for_each_chunk() {
    let balance = balance(&cluster(9), 4, 500);
    let sum = |role: fn(&crate::map::Load) -> u64| balance.loads().values().map(role).sum::<u64>();
    assert_eq!(balance.transactions(), 500);
    assert_eq!((sum(|it| it.heads), sum(|it| it.tails)), (500, 500));
    assert_eq!((sum(|it| it.authorities), sum(|it| it.replicas)), (2_000, 6_000));
    assert!(sum(|it| it.messages) % 2 == 0, "each is sent by one and received by another");
}

#[test]
fn a_blob_on_three_nodes_takes_two_messages_a_node_in_each_direction_and_its_notices() {
    let map = cluster(3);
    let mut balance = Balance::new(&map);
    balance.count(&map.chain(&writing(1, 0), &Ends::new()).unwrap());
    // Head: client 2, passes 2, decided 1, stable 2. Middle: passes 4, decided 1, stable 1.
    // Tail: passes 2, decided 2, stable 1.
    let messages: Vec<u64> = balance.loads().values().map(|load| load.messages).collect();
    assert_eq!(messages, [7, 6, 5]);
}

#[test]
fn a_cluster_of_one_only_hears_its_client() {
    let map = cluster(1);
    let mut balance = Balance::new(&map);
    balance.count(&Chain::alone(NodeId(0)));
    let load = balance.loads()[&NodeId(0)];
    assert_eq!((load.messages, load.heads, load.authorities), (2, 1, 1));
}

/// What the order of the nodes costs; the page on the map has these numbers.
#[test]
fn replicas_are_even_and_the_node_order_piles_authority_on_low_nodes() {
    for nodes in [4, 16, 64, 256] {
        let map = cluster(nodes);
        for blobs in [1, 6] {
            let balance = balance(&map, blobs, 30_000 / blobs);
            let hops = balance.spread(|it| it.chains).mean * f64::from(nodes);
            let [chains, heads, authorities, replicas, messages] = [
                balance.spread(|it| it.chains),
                balance.spread(|it| it.heads),
                balance.spread(|it| it.authorities),
                balance.spread(|it| it.replicas),
                balance.spread(|it| it.messages),
            ];
            let each = balance.transactions() as f64;
            println!(
                "{nodes} nodes, {blobs} blobs: {:.1} hops, {:.1} messages; most over mean: \
                 chains {:.2}, heads {:.1}, authorities {:.2}, replicas {:.2}, messages {:.2} \
                 (least {:.2})",
                hops / each,
                messages.mean * f64::from(nodes) / each / 2.0,
                chains.ratio(),
                heads.ratio(),
                authorities.ratio(),
                replicas.ratio(),
                messages.ratio(),
                messages.least as f64 / messages.mean,
            );
            assert!(replicas.ratio() < 1.4, "{nodes} nodes: {replicas:?}");
            assert!(messages.ratio() < 1.7, "{nodes} nodes: {messages:?}");
            assert!((2.0..4.0).contains(&authorities.ratio()), "{nodes} nodes: {authorities:?}");
        }
    }
}
