//! Transactions that leases of others keep off (K2): who holds them is told, and who is kept off
//! waits without holding anyone up.

use tyr_types::{BlobName, LeaseMode, Operation};

use super::Commit;
use super::effect::Effect;
use super::event::client_of;
use super::record::{Record, Slot};
use super::validate::Validation;
use crate::view::View;

impl Commit {
    /// Has those told who keep a transaction off these blobs.
    pub(super) fn recall_for(
        &self,
        slot: Slot,
        blobs: &[(BlobName, LeaseMode)],
        effects: &mut Vec<Effect>,
    ) {
        let client = client_of(self.records[slot].transaction.id);
        let recall = |(blob, mode): &(BlobName, LeaseMode)| {
            let (blob, mode) = (blob.clone(), *mode);
            Effect::Recall { client, blob, mode }
        };
        effects.extend(blobs.iter().map(recall));
    }
}

impl<V: View> Validation<'_, V> {
    /// K2: the blobs that leases of others keep it off, of those whose first chunk this node is the
    /// authority of: to write something needs the blob to itself, to look at something shared. Who
    /// has listed keys has looked at none of them.
    pub(super) fn kept_off(&self, record: &Record) -> Vec<(BlobName, LeaseMode)> {
        let hop = &record.chain.hops()[record.position];
        let transaction = &record.transaction;
        let written = transaction.blobs.iter().map(|entry| {
            let is_writing = entry.operations.iter().any(Operation::is_write);
            (&entry.blob, if is_writing { LeaseMode::Exclusive } else { LeaseMode::Shared })
        });
        let read = transaction.reads.iter().filter(|read| read.listed.is_none());
        let read = read.map(|read| (&read.blob, LeaseMode::Shared));
        let client = client_of(transaction.id);
        let is_kept_off = |(blob, mode): &(&BlobName, LeaseMode)| {
            self.view.keeps_off(client, blob, *mode) && hop.is_end_authority(blob)
        };
        let kept_off = written.chain(read).filter(is_kept_off);
        kept_off.map(|(blob, mode)| (blob.clone(), mode)).collect()
    }
}
