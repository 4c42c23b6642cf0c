//! Transactions that leases of others keep off (K2): who holds them is told, and who is kept off
//! waits without holding anyone up.

use tyr_types::{BlobName, KeyRange, LeaseMode, Operation};

use super::Commit;
use super::effect::Effect;
use super::event::client_of;
use super::record::{Record, Slot};
use super::validate::Validation;
use crate::view::View;

/// What a transaction needs, of what leases may keep it off (K2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// A key: to itself to change it, shared to look at it.
    Key(BlobName, LeaseMode),
    /// Keys of a group, shared: it has listed which there are.
    Listed {
        /// The group, by what its keys begin with.
        group: BlobName,
        /// The keys.
        keys: KeyRange,
    },
}

impl Commit {
    /// Has those told who keep a transaction off this.
    pub(super) fn recall_for(&self, slot: Slot, needed: &[Needed], effects: &mut Vec<Effect>) {
        let client = client_of(self.records[slot].transaction.id);
        let recall = |needed: &Needed| Effect::Recall { client, needed: needed.clone() };
        effects.extend(needed.iter().map(recall));
    }
}

impl<V: View> Validation<'_, V> {
    /// K2: what leases of others keep it off, of that whose first chunk this node is the authority
    /// of: to write something needs the blob to itself, to look at something shared. Who has listed
    /// keys has looked at all of them, and at what is not there.
    pub(super) fn kept_off(&self, record: &Record) -> Vec<Needed> {
        let place = record.chain.place(record.position);
        let transaction = &record.transaction;
        let written = transaction.blobs.iter().map(|entry| {
            let is_writing = entry.operations.iter().any(Operation::is_write);
            (&entry.blob, if is_writing { LeaseMode::Exclusive } else { LeaseMode::Shared })
        });
        let read = transaction.reads.iter().filter(|read| read.listed.is_none());
        let read = read.map(|read| (&read.blob, LeaseMode::Shared));
        let client = client_of(transaction.id);
        let is_kept_off = |(blob, mode): &(&BlobName, LeaseMode)| {
            self.view.keeps_off(client, blob, *mode) && place.is_end_authority(blob)
        };
        let kept_off = written.chain(read).filter(is_kept_off);
        let mut kept_off: Vec<Needed> =
            kept_off.map(|(blob, mode)| Needed::Key(blob.clone(), mode)).collect();
        let listed =
            transaction.reads.iter().filter_map(|read| Some((read, read.listed.as_ref()?)));
        let is_kept_off = |group: &BlobName, keys: &KeyRange| {
            self.view.keeps_off_listing(client, group.keyspace, keys)
                && place.is_end_authority(group)
        };
        let listed = listed.filter(|(read, listed)| is_kept_off(&read.blob, &listed.keys));
        kept_off.extend(listed.map(|(read, listed)| {
            let (group, keys) = (read.blob.clone(), listed.keys.clone());
            Needed::Listed { group, keys }
        }));
        kept_off
    }
}
