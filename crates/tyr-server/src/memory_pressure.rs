//! Whether memory has room for what is to be written: here, and at the nodes that get copies of it.
//!
//! What is written stays in memory until a fold has brought it to the base. A node that folds more
//! slowly than others write must not be filled by them, so it tells by rumour that it is full, as
//! it does when too much is in flight there; a head refuses what would go there, half a second late
//! at most.

use std::sync::Arc;

use tyr_store::store::Store;
use tyr_types::{Error, NodeId, Result};

use crate::full_nodes::FullNodes;
use tyr_gossip::Heard;

/// The room in memory for what the base lacks.
pub(crate) struct MemoryPressure {
    store: Arc<Store>,
    /// Bytes that the base lacks at most, before nothing more is let in.
    dirty_max: usize,
    others: FullNodes,
}

impl MemoryPressure {
    /// The room beside what `store` has to fold.
    pub fn new(store: Arc<Store>, dirty_max: usize) -> Arc<Self> {
        Arc::new(Self { store, dirty_max, others: FullNodes::default() })
    }

    /// Whether this node takes nothing more.
    pub fn is_full(&self) -> bool {
        self.store.recent().dirty_memory() >= self.dirty_max
    }

    /// What the others told.
    pub fn hear(&self, heard: &[Heard]) {
        self.others.hear(heard, |rumour| rumour.is_memory_full);
    }

    /// Lets a transaction in that goes to these nodes, or not.
    ///
    /// # Errors
    /// `Unavailable` when one of them is full.
    pub fn check<I: IntoIterator<Item = NodeId>>(&self, nodes: impl FnOnce() -> I) -> Result<()> {
        if self.is_full() {
            return Err(Error::unavailable(
                "the node's memory is full of what is not written back yet; nothing was done, try \
                 again in a moment",
            ));
        }
        debug_assert!(self.dirty_max > 0, "something fits into memory");
        match self.others.first_of(nodes) {
            Some(node) => Err(Error::unavailable(format!(
                "the memory of node {}, which gets a copy, is full of what is in flight or not \
                 written back yet; nothing was done, try again in a moment",
                node.0
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tyr_store::recent::Readers;
    use tyr_store::store::OpenedNode;
    use tyr_store::store::chunks::stored_name;
    use tyr_types::chunk::{Place, Start};
    use tyr_types::{BlobName, ByteRange, Bytes, ErrorKind, Key, KeyspaceId};
    use tyr_types::{Operation, Payload, Timestamp};

    use super::*;
    use crate::full_nodes::HEARD_MAX_US;
    use tyr_gossip::Rumour;

    fn told(node: u16, is_memory_full: bool, age_us: u64) -> Heard {
        let rumour = Rumour { is_memory_full, ..Rumour::default() };
        Heard { node: NodeId(node), incarnation: 1, rumour, age_us }
    }

    fn over(nodes: [u16; 2]) -> [NodeId; 2] {
        nodes.map(NodeId)
    }

    #[test]
    fn what_goes_to_a_node_that_is_full_is_refused_and_what_goes_elsewhere_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let OpenedNode { store, .. } =
            Store::open_node(folder.path(), &mut |_, _, _| Ok(())).unwrap();
        let memory = MemoryPressure::new(Arc::clone(&store), 64 << 10);
        memory.hear(&[told(1, false, 0), told(2, true, 0), told(3, true, 2 * HEARD_MAX_US)]);
        let error = memory.check(|| over([1, 2])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().starts_with("the memory of node 2"), "{error}");
        memory.check(|| over([1, 3])).unwrap();
        memory.hear(&[told(2, false, 0)]);
        memory.check(|| over([1, 2])).unwrap();

        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("blob").unwrap() };
        let cell = store.chunk(&stored_name(&blob, 0)).unwrap();
        let payload = Payload::Inline(Bytes::from(vec![7; 64 << 10]));
        let operations = [Operation::Write { offset: 0, payload }];
        let (operations, start) = (&operations[..], Start::Guessed(0));
        let place = Place { range: ByteRange { start: 0, end: 1 << 20 } };
        let at = Timestamp { clock: 5, ..Timestamp::ZERO };
        store.apply_chunk(&cell, place, operations, start, at, Readers::from(at)).unwrap();
        let error = memory.check(|| over([1, 3])).unwrap_err();
        assert!(error.message().starts_with("the node's memory"), "{error}");
    }
}
