//! The transactions whose cost is counted: they only write, small blobs, each as likely as any.
//!
//! Six blobs are a monitoring store's transaction: an append to a generator's blob and five
//! aggregates added to in place. That in a real one some aggregates are in every transaction is
//! left out: what is counted here is how evenly the cluster spreads what can be spread.

use tyr_types::{
    BlobName, BlobOperations, Bytes, KeyspaceId, Number, Operation, Payload, Transaction,
    TransactionId, Transform,
};

use crate::random::Random;
use crate::workload::{Space, on};

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Blobs that a transaction writes.
    pub blobs: usize,
    /// Blobs there are.
    pub population: u64,
}

impl Work {
    /// One transaction.
    pub fn draw(&self, random: &mut Random) -> Vec<BlobOperations> {
        let space = Space::new(KeyspaceId(1), 0);
        let mut blobs: Vec<BlobName> = Vec::with_capacity(self.blobs);
        while blobs.len() < self.blobs {
            let blob = space.blob("blob", random.below(self.population) as usize);
            if !blobs.contains(&blob) {
                blobs.push(blob);
            }
        }
        let measured = Payload::Inline(Bytes::from_static(&[7; 16]));
        let first = match self.blobs {
            1 => Operation::Write { offset: 0, payload: measured },
            _ => Operation::Append { payload: measured, expected: None },
        };
        let add = || Operation::Apply { offset: 0, transform: Transform::add(Number::I64(1)) };
        let mut first = Some(first);
        blobs.iter().map(|blob| on(blob, [first.take().unwrap_or_else(add)])).collect()
    }

    /// So many transactions, of one client.
    pub fn drawn(self, seed: u64, count: u64) -> impl Iterator<Item = Transaction> {
        let mut random = Random::of(seed, "paper", self.blobs as u64);
        (0..count).map(move |number| {
            let blobs = self.draw(&mut random);
            Transaction { id: TransactionId::new(1, number), blobs, reads: Vec::new() }
        })
    }
}
