//! Which transactions are in what each node holds, and so which took effect.
//!
//! A client may never learn what became of its transaction; whether it took effect is known from
//! what nodes hold in the end. What a node applied that was then declared down counts no more: it
//! comes back with copies, and what it alone knew to be decided is decided again, or not at all
//! (F3). So this follows what is applied, copied and dropped, chunk by chunk.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tyr_protocol::member::ChunkName;
use tyr_types::{NodeId, Timestamp, TransactionId};

use super::World;
use crate::checker::Applied;
use crate::store::Done;

type Chunks = HashMap<ChunkName, Vec<(TransactionId, Timestamp)>, FixedState>;

/// What is in what nodes hold.
#[derive(Debug)]
pub struct Lineage(Vec<Chunks>);

impl Lineage {
    /// So many nodes that hold nothing.
    pub fn new(nodes: u16) -> Self {
        Self(vec![Chunks::default(); nodes.into()])
    }

    /// A node did this.
    pub fn take(&mut self, node: NodeId, done: Vec<Done>) {
        let chunks = &mut self.0[usize::from(node.0)];
        for done in done {
            match done {
                Done::Applied(id, at, chunk) => chunks.entry(chunk).or_default().push((id, at)),
                Done::Released(chunk) => {
                    chunks.remove(&chunk);
                }
                Done::Cleared => chunks.clear(),
            }
        }
    }

    /// A node holds nothing any more, until its log is read again.
    pub fn lose(&mut self, node: NodeId) {
        self.0[usize::from(node.0)].clear();
    }

    /// A chunk as it is at `at` goes from one node to another.
    pub fn copy(&mut self, from: NodeId, to: NodeId, chunk: &ChunkName, at: Timestamp) {
        let Some(held) = self.0[usize::from(from.0)].get(chunk) else { return };
        let copied: Vec<_> = held.iter().filter(|(_, its)| *its <= at).copied().collect();
        let there = self.0[usize::from(to.0)].entry(chunk.clone()).or_default();
        for applied in copied {
            if !there.contains(&applied) {
                there.push(applied);
            }
        }
    }

    /// The transactions that took effect.
    pub fn applied(&self) -> Applied {
        let held = self.0.iter().flat_map(HashMap::values).flatten();
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
    /// Looks at what a node has done.
    pub(super) fn follow(&mut self, node: NodeId) {
        if let Some(process) = &mut self.nodes[usize::from(node.0)].process {
            let done = process.store.take_done();
            self.lineage.take(node, done);
        }
    }
}
