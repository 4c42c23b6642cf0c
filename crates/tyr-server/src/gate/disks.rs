//! Whether disks have room for what is to be written: this node's, and those of the nodes that get
//! copies of it.
//!
//! What follows a head is not refused anywhere (promise 4): a node whose disk has no room would
//! take what others begin until its log takes no more, and then be of no use. So it says by rumour
//! that its disk is nearly full, and heads refuse what would go there, half a second late at most.

use std::sync::atomic::{AtomicBool, Ordering};

use tyr_types::{Error, NodeId, Operation, Result, Transaction};

use crate::full_nodes::FullNodes;
use tyr_gossip::Heard;

/// The disks that a gate knows of.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    is_full: AtomicBool,
    others: FullNodes,
}

impl Disks {
    /// Whether this node's has no room for new data: then only what makes room is let in.
    pub fn set_full(&self, is_full: bool) {
        if self.is_full.swap(is_full, Ordering::Relaxed) != is_full {
            match is_full {
                true => tracing::warn!("the disk is nearly full: writes are refused here"),
                false => tracing::info!("the disk has room again: writes are taken again"),
            }
        }
    }

    /// Whether writes are refused because this node's disk is nearly full.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// What the others told.
    pub fn hear(&self, heard: &[Heard]) {
        self.others.hear(heard, |rumour| rumour.is_disk_full);
    }

    /// Whether something can be written that goes to these nodes.
    ///
    /// # Errors
    /// `Unavailable` that says whose disk is nearly full, and what to do.
    pub fn check<I: IntoIterator<Item = NodeId>>(&self, nodes: impl FnOnce() -> I) -> Result<()> {
        if self.is_full() {
            return Err(Error::unavailable(
                "the node's disk is nearly full; nothing was written. Delete something, or add a \
                 node",
            ));
        }
        match self.others.first_of(nodes) {
            Some(node) => Err(Error::unavailable(format!(
                "the disk of node {}, which gets a copy, is nearly full; nothing was written. \
                 Delete something, or add a node",
                node.0
            ))),
            None => Ok(()),
        }
    }

    /// The same of a transaction; what only makes room is always let in.
    ///
    /// # Errors
    /// As [`Disks::check`].
    pub fn check_transaction<I: IntoIterator<Item = NodeId>>(
        &self,
        transaction: &Transaction,
        nodes: impl FnOnce() -> I,
    ) -> Result<()> {
        let mut operations = transaction.blobs.iter().flat_map(|blob| &blob.operations);
        match operations.all(Operation::makes_room) {
            true => Ok(()),
            false => self.check(nodes),
        }
    }
}

#[cfg(test)]
mod tests {
    use tyr_gossip::Rumour;
    use tyr_types::{
        BlobName, BlobOperations, Bytes, ErrorKind, Key, KeyspaceId, Payload, TransactionId,
    };

    use super::*;

    fn of(operation: Operation) -> Transaction {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("blob").unwrap() };
        let blobs = vec![BlobOperations { blob, operations: vec![operation] }];
        Transaction { id: TransactionId::new(1, 1), blobs, reads: Vec::new() }
    }

    #[test]
    fn what_needs_room_is_refused_where_a_copy_has_none_and_says_whose_disk_it_is() {
        let disks = Disks::default();
        let payload = Payload::Inline(Bytes::from_static(b"some"));
        let (write, delete) = (of(Operation::Write { offset: 0, payload }), of(Operation::Delete));
        let refused = |transaction: &Transaction, nodes: [u16; 2]| {
            let checked = disks.check_transaction(transaction, || nodes.map(NodeId));
            checked.err().map(|error| (error.kind(), error.message().to_owned()))
        };
        assert_eq!(refused(&write, [1, 2]), None);
        let rumour = Rumour { is_disk_full: true, ..Rumour::default() };
        disks.hear(&[Heard { node: NodeId(2), incarnation: 1, rumour, age_us: 0 }]);
        let (kind, text) = refused(&write, [1, 2]).unwrap();
        assert_eq!(kind, ErrorKind::Unavailable);
        assert!(text.contains("disk of node 2") && text.contains("Delete something"), "{text}");
        assert_eq!((refused(&write, [1, 3]), refused(&delete, [1, 2])), (None, None));
        disks.hear(&[]);
        assert_eq!(refused(&write, [1, 2]), None);
        disks.set_full(true);
        let (_, text) = refused(&write, [1, 3]).unwrap();
        assert!(text.starts_with("the node's disk"), "{text}");
        assert_eq!(refused(&delete, [1, 3]), None);
    }
}
