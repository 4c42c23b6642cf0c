//! Which transactions are in what each node holds, and so which took effect.
//!
//! A client may never learn what became of its transaction; whether it took effect is known from
//! what nodes hold in the end. What a node applied that was then declared down counts no more: it
//! comes back with copies and what others say to be as it was, and what it alone knew to be decided
//! is decided again, or not at all (F3). So this follows what is applied, copied and dropped, chunk
//! by chunk.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tyr_protocol::member::ChunkName;
use tyr_types::{NodeId, Timestamp, TransactionId};

use super::World;
use super::node::Body;
use crate::checker::Applied;
use crate::store::{Done, SimStore};

/// What is in a chunk.
type Content = Vec<(TransactionId, Timestamp)>;

/// What is in chunks.
pub type Contents = HashMap<ChunkName, Content, FixedState>;

/// What is in what nodes hold.
#[derive(Debug)]
pub struct Lineage {
    nodes: Vec<Contents>,
    /// What was in what the last process of each node held when it ended.
    ended: Vec<Contents>,
    /// What is in copies that were made, by the timestamp they were read at.
    copies: HashMap<(ChunkName, Timestamp), Content, FixedState>,
}

impl Lineage {
    /// So many nodes that hold nothing.
    pub fn new(nodes: u16) -> Self {
        let nodes = vec![HashMap::default(); nodes.into()];
        Self { ended: nodes.clone(), nodes, copies: HashMap::default() }
    }

    /// A node did this.
    pub fn take(&mut self, node: NodeId, done: Vec<Done>) {
        let chunks = &mut self.nodes[usize::from(node.0)];
        for done in done {
            match done {
                Done::Applied(id, at, chunk) => chunks.entry(chunk).or_default().push((id, at)),
                Done::Installed(chunk, at) => {
                    let copied = self.copies.get(&(chunk.clone(), at)).cloned();
                    let content = chunks.entry(chunk).or_default();
                    content.retain(|(_, its)| *its > at);
                    content.extend(copied.into_iter().flatten());
                }
                Done::Withdrawn(chunk, above) => {
                    chunks.entry(chunk).or_default().retain(|(_, at)| *at <= above);
                }
                Done::Released(chunk) => {
                    chunks.remove(&chunk);
                }
                Done::Cleared => chunks.clear(),
            }
        }
    }

    /// A node's process ended: it holds nothing any more, until its log is read again.
    pub fn lose(&mut self, node: NodeId) {
        let node = usize::from(node.0);
        self.ended[node] = std::mem::take(&mut self.nodes[node]);
    }

    /// A node's disk is another one, empty.
    pub fn replace(&mut self, node: NodeId) {
        self.nodes[usize::from(node.0)].clear();
        self.ended[usize::from(node.0)].clear();
    }

    /// A node that starts has a base that goes so far, chunk by chunk, of what there was when the
    /// process before ended.
    pub fn find_again(&mut self, node: NodeId, folded_at: impl Fn(&ChunkName) -> Timestamp) {
        let node = usize::from(node.0);
        let mut contents = std::mem::take(&mut self.ended[node]);
        for (chunk, content) in &mut contents {
            let folded_at = folded_at(chunk);
            content.retain(|(_, at)| *at <= folded_at);
        }
        self.nodes[node] = contents;
    }

    /// What is in a base that was folded from what a node holds.
    pub fn folded(&self, node: NodeId, base: &SimStore) -> Contents {
        let held = &self.nodes[usize::from(node.0)];
        let folded = base.chunks().filter_map(|(name, chunk)| {
            let content = held.get(name)?.iter().copied();
            let below = content.filter(|(_, at)| chunk.has_base_at(*at));
            Some((name.clone(), below.collect()))
        });
        folded.collect()
    }

    /// A node that starts has a base with this in it.
    pub fn find(&mut self, node: NodeId, contents: Contents) {
        self.nodes[usize::from(node.0)] = contents;
    }

    /// A node's chunk is copied as it is at `at`.
    pub fn copy(&mut self, from: NodeId, chunk: ChunkName, at: Timestamp) {
        let held = self.nodes[usize::from(from.0)].get(&chunk);
        let below = held.into_iter().flatten().filter(|(_, its)| *its <= at);
        let copied: Content = below.copied().collect();
        self.copies.insert((chunk, at), copied);
    }

    /// The transactions in the copy of a chunk that was read at `at`.
    pub fn copied(
        &self,
        chunk: ChunkName,
        at: Timestamp,
    ) -> impl Iterator<Item = TransactionId> + '_ {
        self.copies.get(&(chunk, at)).into_iter().flatten().map(|(id, _)| *id)
    }

    /// The transactions in what a node holds.
    pub fn held(&self, node: NodeId) -> impl Iterator<Item = TransactionId> + '_ {
        self.nodes[usize::from(node.0)].values().flatten().map(|(id, _)| *id)
    }

    /// The transactions that took effect.
    pub fn applied(&self) -> Applied {
        let held = self.nodes.iter().flat_map(HashMap::values).flatten();
        let mut all: Vec<_> = held.copied().collect();
        all.sort_unstable();
        all.dedup();
        let mut applied = Applied::default();
        for (id, at) in all {
            applied.note(id, at);
        }
        applied
    }
}

impl World {
    /// Looks at what a node has done. What it lets go of is gone from its base at once where that
    /// is a model's, and does not come into one that is on its way to the disk.
    pub(super) fn follow(&mut self, node: NodeId) {
        let machine = &mut self.nodes[usize::from(node.0)];
        let done = machine.take_done();
        if let Body::Model(model) = &mut machine.body {
            let coming = model.process.as_mut().and_then(|it| it.cutting.base_mut());
            for base in model.disk.base_mut().into_iter().chain(coming) {
                base.lose(&done);
            }
        }
        self.lineage.take(node, done);
    }
}
