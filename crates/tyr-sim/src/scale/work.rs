//! The transactions whose cost is counted: they only write, small blobs, each as likely as any.
//!
//! Six blobs are a monitoring store's transaction: an append to a generator's blob and five
//! aggregates added to in place. That in a real one some aggregates are in every transaction is
//! left out: what is counted here is how evenly the cluster spreads what can be spread.
//!
//! A group's is what a file system does to create a file: a blob that must not be there yet, and
//! two numbers in the header of its directory, which lies in the same group (H).

use std::fmt;

use tyr_types::{
    BlobName, BlobOperations, Bytes, KeyspaceConfig, KeyspaceId, Number, Operation, Payload,
    PlacedBy, Transaction, TransactionId, Transform,
};

use crate::random::Random;
use crate::workload::{Space, on};

/// Bytes of a file that is created.
const FILE_LEN: usize = 4096;

/// What a transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// So many blobs, anywhere.
    Blobs(usize),
    /// A new blob of a group, and the group's header.
    Group,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blobs(count) => write!(f, "{count}"),
            Self::Group => f.write_str("2 of a group"),
        }
    }
}

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// What a transaction writes.
    pub written: Written,
    /// Blobs there are, or groups.
    pub population: u64,
}

impl Work {
    /// The keyspace that suits it.
    pub fn keyspace(&self) -> KeyspaceConfig {
        let placed_by = match self.written {
            Written::Blobs(_) => PlacedBy::Key,
            Written::Group => PlacedBy::UpTo(b'/'),
        };
        KeyspaceConfig { placed_by, ..KeyspaceConfig::default() }
    }

    /// One transaction.
    pub fn draw(&self, random: &mut Random) -> Vec<BlobOperations> {
        match self.written {
            Written::Blobs(count) => self.draw_blobs(count, random),
            Written::Group => self.draw_file(random),
        }
    }

    fn draw_file(&self, random: &mut Random) -> Vec<BlobOperations> {
        let directory = format!("directory{}", random.below(self.population));
        let space = Space::new(KeyspaceId(1), 0);
        let blob = |number| space.blob(&directory, number);
        let payload = Payload::Inline(Bytes::from_static(&[7; FILE_LEN]));
        let add = |offset| Operation::Apply { offset, transform: Transform::add(Number::I64(1)) };
        let file = [Operation::Create, Operation::Write { offset: 0, payload }];
        let number = 1 + random.below(1 << 40) as usize;
        vec![on(&blob(0), [add(0), add(8)]), on(&blob(number), file)]
    }

    fn draw_blobs(&self, count: usize, random: &mut Random) -> Vec<BlobOperations> {
        let space = Space::new(KeyspaceId(1), 0);
        let mut blobs: Vec<BlobName> = Vec::with_capacity(count);
        while blobs.len() < count {
            let blob = space.blob("blob", random.below(self.population) as usize);
            if !blobs.contains(&blob) {
                blobs.push(blob);
            }
        }
        let measured = Payload::Inline(Bytes::from_static(&[7; 16]));
        let first = match count {
            1 => Operation::Write { offset: 0, payload: measured },
            _ => Operation::Append { payload: measured, expected: None },
        };
        let add = || Operation::Apply { offset: 0, transform: Transform::add(Number::I64(1)) };
        let mut first = Some(first);
        blobs.iter().map(|blob| on(blob, [first.take().unwrap_or_else(add)])).collect()
    }

    /// So many transactions, of one client.
    pub fn drawn(self, seed: u64, count: u64) -> impl Iterator<Item = Transaction> {
        let number = match self.written {
            Written::Blobs(count) => count as u64,
            Written::Group => 0,
        };
        let mut random = Random::of(seed, "paper", number);
        (0..count).map(move |number| {
            let blobs = self.draw(&mut random);
            Transaction { id: TransactionId::new(1, number), blobs, reads: Vec::new() }
        })
    }
}
