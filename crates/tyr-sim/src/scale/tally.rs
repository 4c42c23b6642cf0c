//! Messages counted by kind and by node.

use std::collections::BTreeMap;

use tyr_protocol::commit;
use tyr_protocol::message::{Address, Body};
use tyr_types::NodeId;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumCount)]
pub enum Kind {
    /// A client's transaction.
    Submit,
    /// Over the chain (C3).
    Forward,
    /// The decision, to all (C9).
    Decided,
    /// What comes before is clear (C9).
    Anchored,
    /// Back over the chain (C7).
    Backward,
    /// What may be shown by replicas (R2).
    Stable,
    /// The answer to the client.
    Reply,
    /// Between nodes and monitors: leases and maps.
    Lease,
    /// Everything else: retries, recovery, reads, movement.
    Other,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Submit,
        Self::Forward,
        Self::Decided,
        Self::Anchored,
        Self::Backward,
        Self::Stable,
        Self::Reply,
        Self::Lease,
        Self::Other,
    ];

    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Forward => "forward",
            Self::Decided => "decided",
            Self::Anchored => "anchored",
            Self::Backward => "backward",
            Self::Stable => "stable",
            Self::Reply => "reply",
            Self::Lease => "lease",
            Self::Other => "other",
        }
    }

    /// What this message is for.
    pub fn of(body: &Body) -> Self {
        match body {
            Body::Commit(message) => match message {
                commit::Message::Forward { .. } => Self::Forward,
                commit::Message::Backward { .. } => Self::Backward,
                commit::Message::Decided { .. } => Self::Decided,
                commit::Message::Anchored { .. } => Self::Anchored,
                commit::Message::Stable { .. } => Self::Stable,
                commit::Message::Misplaced { .. }
                | commit::Message::Withdrawn { .. }
                | commit::Message::Again { .. }
                | commit::Message::AskStable { .. } => Self::Other,
            },
            Body::Submit { is_retry: false, .. } => Self::Submit,
            Body::Reply { .. } => Self::Reply,
            Body::Renew { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Prepared { .. }
            | Body::Effective(_)
            | Body::CaughtUp { .. }
            | Body::Return { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Keys { .. }
            | Body::Scanned { .. }
            | Body::FetchMap
            | Body::NewerMap(_) => Self::Lease,
            Body::Submit { is_retry: true, .. }
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::Read(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::Moment { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NotHere(_)
            | Body::NotUnderstood { .. } => Self::Other,
        }
    }
}

/// A count for each kind.
pub type Counts = [u64; Kind::ALL.len()];

/// How something is spread over the nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Of the node that has most, over the mean: 1 when all have the same.
    pub most: f64,
    /// Of the node that has least, over the mean.
    pub least: f64,
}

impl Spread {
    /// Of what each node has.
    pub fn of(all: impl Iterator<Item = f64>) -> Self {
        let all: Vec<f64> = all.collect();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        if mean == 0.0 {
            return Self { most: 1.0, least: 1.0 };
        }
        let (most, least) = (all.iter().copied().fold(0.0, f64::max), all.iter().copied());
        Self { most: most / mean, least: least.fold(f64::INFINITY, f64::min) / mean }
    }
}

/// The messages of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Messages by kind.
    pub messages: Counts,
    /// Their bytes as frames, by kind.
    pub bytes: Counts,
    /// Sent and received by each node, by kind.
    pub at_node: BTreeMap<NodeId, Counts>,
    /// Bytes sent and received by each node.
    pub bytes_at_node: BTreeMap<NodeId, u64>,
    /// Records that each node wrote and waited for.
    pub records: BTreeMap<NodeId, u64>,
}

impl Tally {
    /// Counts a message of so many bytes.
    pub fn count(&mut self, from: Address, to: Address, body: &Body, bytes: u64) {
        let kind = Kind::of(body);
        self.messages[kind as usize] += 1;
        self.bytes[kind as usize] += bytes;
        for address in [from, to] {
            if let Address::Node(node) = address {
                self.at_node.entry(node).or_default()[kind as usize] += 1;
                if kind != Kind::Lease {
                    *self.bytes_at_node.entry(node).or_default() += bytes;
                }
            }
        }
    }

    /// Mean bytes of a message of this kind.
    pub fn bytes_each(&self, kind: Kind) -> f64 {
        self.bytes[kind as usize] as f64 / self.messages[kind as usize].max(1) as f64
    }

    /// Messages about transactions, of all kinds.
    pub fn about_transactions(&self) -> u64 {
        self.messages.iter().sum::<u64>() - self.messages[Kind::Lease as usize]
    }

    /// Messages about transactions, sent and received by each node.
    pub fn messages_at_node(&self) -> BTreeMap<NodeId, u64> {
        let about = |counts: &Counts| counts.iter().sum::<u64>() - counts[Kind::Lease as usize];
        self.at_node.iter().map(|(node, counts)| (*node, about(counts))).collect()
    }

    /// What each of so many nodes counted, those too that counted nothing.
    pub fn each_node(nodes: u16, counted: &BTreeMap<NodeId, u64>) -> Vec<f64> {
        let of = |node| counted.get(&NodeId(node)).copied().unwrap_or(0) as f64;
        (0..nodes).map(of).collect()
    }
}
