//! The way of one transaction over the nodes, and the messages that it takes when all goes well.

use std::collections::{BTreeMap, BTreeSet};

use tyr_protocol::map::ClusterMap;
use tyr_protocol::{Chain, Part};
use tyr_types::{BlobName, NodeId};

use super::order::Order;
use super::tally::Kind;
use super::telling::Telling;

/// The way of a transaction that only writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Whom it visits, in order; with lanes a node may come several times.
    pub visits: Vec<NodeId>,
    /// The visits that are the authority of something, ascending.
    pub authorities: Vec<usize>,
    /// The authority of each chunk.
    pub chunk_authorities: Vec<usize>,
    /// Who has to hear from which authority that a chunk is stable (R2).
    pub followers: BTreeSet<(usize, usize)>,
}

/// A message between two visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What it is.
    pub kind: Kind,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
}

impl Passage {
    /// The way over what this chain holds, in this order.
    pub fn new(map: &ClusterMap, order: &Order, chain: &Chain) -> Self {
        let mut chunks: BTreeMap<(&BlobName, u64), Vec<NodeId>> = BTreeMap::new();
        for hop in chain.hops() {
            let Part::Pieces(pieces) = &hop.part else { unreachable!("there are several nodes") };
            for piece in pieces {
                assert!(piece.is_written, "these transactions read nothing");
                chunks.entry((&piece.blob, piece.range.start)).or_default().push(hop.node);
            }
        }
        let mut ranked: BTreeMap<(usize, u32), NodeId> = BTreeMap::new();
        let mut held = Vec::with_capacity(chunks.len());
        for ((blob, start), nodes) in chunks {
            let keyspace = &map.keyspaces[&blob.keyspace];
            let chunk = start / keyspace.config.chunk_size;
            let lane = order.lane(keyspace.hash(&blob.key).place(chunk));
            let mut ranks: Vec<(usize, u32)> = Vec::with_capacity(nodes.len());
            for node in nodes {
                ranks.push(order.rank(lane, node));
                ranked.insert(order.rank(lane, node), node);
            }
            ranks.sort_unstable();
            held.push(ranks);
        }
        let ranks: Vec<(usize, u32)> = ranked.keys().copied().collect();
        let place = |rank: &(usize, u32)| -> usize {
            ranks.binary_search(rank).expect("each of them was put in")
        };
        let chunk_authorities: Vec<usize> = held.iter().map(|ranks| place(&ranks[0])).collect();
        let authorities: BTreeSet<usize> = chunk_authorities.iter().copied().collect();
        let of_chunk = |ranks: &Vec<(usize, u32)>| {
            let authority = place(&ranks[0]);
            ranks[1..].iter().map(|rank| (authority, place(rank))).collect::<Vec<_>>()
        };
        let followers = held.iter().flat_map(of_chunk).collect();
        let (visits, authorities) = (ranked.into_values().collect(), authorities.into_iter());
        Self { visits, authorities: authorities.collect(), chunk_authorities, followers }
    }

    /// Delays from one visit to another: none where it is the same node.
    pub fn delay(&self, from: usize, to: usize) -> u32 {
        u32::from(self.visits[from] != self.visits[to])
    }

    /// Every message between its nodes, in no order, and none of a node to itself.
    pub fn messages(&self, telling: Telling) -> Vec<Sent> {
        let mut sent = Vec::with_capacity(5 * self.visits.len());
        let mut send = |kind, from: usize, to: usize| {
            let (from, to) = (self.visits[from], self.visits[to]);
            if from != to {
                sent.push(Sent { kind, from, to });
            }
        };
        for place in 1..self.visits.len() {
            send(Kind::Forward, place - 1, place);
            send(Kind::Backward, place, place - 1);
        }
        for (from, to) in telling.tellers(self) {
            send(Kind::Decided, from, to);
        }
        for (count, to) in self.authorities.iter().enumerate() {
            for from in &self.authorities[..count] {
                send(Kind::Anchored, *from, *to);
            }
        }
        for (from, to) in &self.followers {
            send(Kind::Stable, *from, *to);
        }
        sent
    }

    /// Message delays from the client's request to its answer, when nothing is in the way.
    ///
    /// An authority applies when it has the message back from behind it and when all authorities
    /// before it are clear, which here they are as soon as they know the decision (C9).
    pub fn delays(&self, telling: Telling) -> u32 {
        let last = self.visits.len() - 1;
        let mut told = vec![u32::MAX; last + 1];
        told[last] = 0;
        for (from, to) in telling.tellers(self) {
            told[to] = told[to].min(told[from] + self.delay(from, to));
        }
        // Whoever has it back knows the decision too, but later than by being told, or together.
        let mut applied = 0;
        for place in (0..=last).rev() {
            if place < last {
                applied += self.delay(place + 1, place);
            }
            if self.authorities.contains(&place) {
                let before = self.authorities.iter().filter(|other| **other < place);
                let clear = before.map(|other| told[*other] + self.delay(*other, place));
                applied = clear.fold(applied, u32::max);
            }
        }
        let forward: u32 = (1..=last).map(|place| self.delay(place - 1, place)).sum();
        1 + forward + applied + 1
    }
}
