//! Accounts, transfers between them, and auditors who always find the same total.
//!
//! Accounts are cells that lie a chunk apart, four to a blob, so that a transfer often crosses
//! nodes. Some transfers read first and write what they computed, others are two transforms that
//! read nothing.

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, Number, Operation, Transform, TransformKind};

use super::{CELL, Space, Work, Workload, cell, numbers, numbers_of, on, views};
use crate::checker::{Deed, Entry, Replayed};
use crate::random::Random;

/// Accounts in a blob.
const IN_BLOB: usize = 4;

/// What each account begins with.
const BALANCE: u64 = 1_000;

/// The workload.
#[derive(Clone, Debug)]
pub struct Bank {
    space: Space,
    accounts: usize,
}

impl Bank {
    /// A bank of so many accounts, at least two.
    pub fn new(space: Space, accounts: usize) -> Self {
        Self { space, accounts: accounts.max(2) }
    }

    fn place(&self, account: usize) -> (BlobName, u64) {
        let offset = (account % IN_BLOB) as u64 * self.space.chunk_size;
        (self.space.blob("bank", account / IN_BLOB), offset)
    }

    fn want(&self, account: usize) -> Want {
        let (blob, start) = self.place(account);
        Want::bytes(blob, ByteRange { start, end: start + CELL })
    }

    /// One operation on each of these accounts, those of one blob together.
    fn operations(&self, changes: Vec<(usize, Operation)>) -> Vec<BlobOperations> {
        let mut blobs: Vec<BlobOperations> = Vec::new();
        for (account, operation) in changes {
            let (blob, _) = self.place(account);
            match blobs.iter_mut().find(|entry| entry.blob == blob) {
                Some(entry) => entry.operations.push(operation),
                None => blobs.push(on(&blob, [operation])),
            }
        }
        blobs
    }

    fn write(&self, account: usize, balance: u64) -> (usize, Operation) {
        let (_, offset) = self.place(account);
        (account, Operation::Write { offset, payload: cell(balance) })
    }

    fn apply(&self, account: usize, kind: TransformKind, amount: u64) -> (usize, Operation) {
        let (_, offset) = self.place(account);
        let transform = Transform::new(kind, Number::U64(amount)).expect("it divides nothing");
        (account, Operation::Apply { offset, transform })
    }
}

impl Workload for Bank {
    fn name(&self) -> &'static str {
        "bank"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        let all = (0..self.accounts).map(|account| self.write(account, BALANCE)).collect();
        vec![self.operations(all)]
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.accounts).collect();
        let two = random.sample(&all, 2);
        let amount = random.between(1, 50);
        let wants = || all.iter().map(|account| self.want(*account)).collect();
        match random.below(100) {
            0..45 => {
                let (bank, accounts) = (self.clone(), two.clone());
                let reads = two.iter().map(|account| self.want(*account)).collect();
                let then = Box::new(move |seen: &[crate::checker::Seen]| {
                    let of = |place: usize| numbers(&seen[place]).next().unwrap_or(0);
                    let from = bank.write(accounts[0], of(0).wrapping_sub(amount));
                    let to = bank.write(accounts[1], of(1).wrapping_add(amount));
                    bank.operations(vec![from, to])
                });
                Work::Transact { reads, then }
            }
            45..75 => Work::Commit(self.operations(vec![
                self.apply(two[0], TransformKind::Sub, amount),
                self.apply(two[1], TransformKind::Add, amount),
            ])),
            75..85 => Work::Transact { reads: wants(), then: Box::new(|_| Vec::new()) },
            85..93 => Work::ReadMany(wants()),
            _ => Work::Snapshot { reads: wants(), pause_us: 0 },
        }
    }

    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String> {
        let total = self.accounts as u64 * BALANCE;
        for (entry, seen) in views(deeds).filter(|(_, seen)| seen.len() == self.accounts) {
            let balances = seen.iter().map(|seen| numbers(seen).next().unwrap_or(0));
            let sum = balances.fold(0, u64::wrapping_add);
            if sum != total {
                return Err(format!("{} found {sum} in all accounts, not {total}", entry.name()));
            }
        }
        let balance = |account| {
            let (blob, offset) = self.place(account);
            let bytes = end.blob(&blob).unwrap_or_default();
            numbers_of(bytes.get(offset as usize..).unwrap_or(&[])).next().unwrap_or(0)
        };
        let sum = (0..self.accounts).map(balance).fold(0, u64::wrapping_add);
        // What sets it up writes all accounts: only where that came to nothing may they be empty.
        let is_written = |entry: &&Entry| match &entry.deed {
            Deed::Transaction(attempted) => attempted.is_committed(),
            Deed::Read(_) | Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => false,
        };
        match sum == total || sum == 0 && !deeds.iter().any(is_written) {
            true => Ok(()),
            false => Err(format!("in the end there is {sum} in all accounts, not {total}")),
        }
    }
}
