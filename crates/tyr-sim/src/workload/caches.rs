//! Caches: clients read under a lease, and go by what they have read for as long as they hold it,
//! while others write (K2, K7).
//!
//! Each look at what was read counts as a read at that moment, of no duration: so what every
//! history must show finds out who was shown something old. Holders sleep with their leases.
//!
//! With groups, leases are of keys or of whole groups, whose blobs come and go: under a lease of a
//! group its holder also goes by what was not there, and by what it has listed, where nodes can be
//! asked for that.

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, Key, LeaseMode, Leased, Operation, Scan};

use super::locking::{Locked, Under};
use super::{CELL, Space, Unique, Work, Workload, cell, on};
use crate::checker::{Entry, Found, Replayed, Seen};
use crate::random::Random;

/// Groups at most: a digit tells them apart.
const GROUPS_MAX: usize = 10;

/// What the keys of a group begin with has so many bytes.
const PREFIX_LEN: usize = "group0".len();

/// The workload.
#[derive(Clone, Debug)]
pub struct Caches {
    space: Space,
    blobs: usize,
    groups: usize,
    /// Of a hundred leases of groups, under so many they are listed.
    listings: u64,
    unique: Unique,
}

impl Caches {
    /// So many blobs, with a cell each: every other one has it in its third chunk.
    pub fn new(space: Space, blobs: usize) -> Self {
        Self { space, blobs: blobs.max(1), groups: 0, listings: 0, unique: Unique::new(b'c') }
    }

    /// The same in so many groups; none for blobs that are in no group. The keyspace is placed by
    /// the first six bytes of the key. Of a hundred leases of groups, under so many the group is
    /// listed.
    #[must_use]
    pub fn with_groups(self, groups: usize, listings: u64) -> Self {
        Self { groups: groups.min(GROUPS_MAX), listings, ..self }
    }

    fn blob(&self, number: usize) -> BlobName {
        match self.groups {
            0 => self.space.blob("cached", number),
            groups => self.space.blob(&format!("group{}", number % groups), number / groups),
        }
    }

    fn place(&self, number: usize) -> (BlobName, u64) {
        (self.blob(number), (number % 2) as u64 * 2 * self.space.chunk_size)
    }

    fn want(&self, number: usize) -> Want {
        let (blob, start) = self.place(number);
        Want::bytes(blob, ByteRange { start, end: start + CELL })
    }

    fn write(&mut self, number: usize) -> BlobOperations {
        let (blob, offset) = self.place(number);
        on(&blob, [Operation::Write { offset, payload: cell(self.unique.draw()) }])
    }

    fn cached(&self, number: usize, random: &mut Random) -> Locked {
        Locked {
            lock: Leased::Key(self.blob(number)),
            mode: if random.percent(75) { LeaseMode::Shared } else { LeaseMode::Exclusive },
            duration_us: random.between(1_000_000, 3_000_000),
            wait_us: random.percent(80).then(|| random.between(100_000, 8_000_000)),
            want: self.want(number),
            listed: None,
            under: Under::Cache { times: random.between(1, 12) as u32 },
            pause_us: random.below(300_000),
        }
    }

    /// The group of a blob, by what its keys begin with.
    fn group(&self, number: usize) -> BlobName {
        let blob = self.blob(number);
        let prefix = &blob.key.as_bytes()[..PREFIX_LEN];
        BlobName { key: Key::new(prefix).expect("part of a key is one"), ..blob }
    }

    /// What is read first where a group is listed, the scan, and the blobs that it may have.
    fn listing(&self, number: usize, random: &mut Random) -> (Want, Scan, Vec<BlobName>) {
        let group = self.group(number);
        let scan = Scan::new().prefix(group.key.as_bytes()).limit(random.between(1, 6) as usize);
        let of_group = Leased::Group(group.clone());
        let among = (0..self.blobs).map(|number| self.blob(number));
        let among = among.filter(|blob| of_group.contains(blob)).collect();
        (Want::stat(group), scan, among)
    }

    /// The same as `cached`, of the blob's group.
    fn cached_group(&self, number: usize, random: &mut Random) -> Locked {
        let (lock, cached) = (Leased::Group(self.group(number)), self.cached(number, random));
        if !random.percent(self.listings) {
            return Locked { lock, ..cached };
        }
        let (want, scan, among) = self.listing(number, random);
        Locked { lock, want, listed: Some(Box::new((scan, among))), ..cached }
    }

    /// Makes a blob if fewer than half of its group are there.
    fn enter(&mut self, number: usize, random: &mut Random) -> Work {
        let (first, scan, among) = self.listing(number, random);
        let (write, half) = (self.write(number), among.len() / 2);
        let then = Box::new(move |seen: &[Seen]| {
            let is_there = |seen: &&Seen| matches!(seen.found, Found::Bytes { .. });
            let there = seen[1..].iter().filter(is_there).count();
            if there < half { vec![write] } else { Vec::new() }
        });
        Work::TransactListing { first, scans: vec![scan], among, then }
    }

    fn next_in_groups(&mut self, number: usize, random: &mut Random) -> Option<Work> {
        match random.below(100) {
            0..25 => Some(Work::Locked(self.cached_group(number, random))),
            25..40 => Some(Work::Commit(vec![on(&self.blob(number), [Operation::Delete])])),
            40..50 if self.listings > 0 => Some(self.enter(number, random)),
            _ => None,
        }
    }
}

impl Workload for Caches {
    fn name(&self) -> &'static str {
        "caches"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        (0..self.blobs).map(|number| vec![self.write(number)]).collect()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let number = random.below(self.blobs as u64) as usize;
        let other = random.below(self.blobs as u64) as usize;
        if self.groups > 0
            && let Some(work) = self.next_in_groups(number, random)
        {
            return work;
        }
        match random.below(100) {
            0..45 => Work::Locked(self.cached(number, random)),
            45..65 => Work::Commit(vec![self.write(number)]),
            65..75 if other != number => Work::Commit(vec![self.write(number), self.write(other)]),
            65..85 => {
                let write = self.write(number);
                Work::Transact { reads: vec![self.want(other)], then: Box::new(|_| vec![write]) }
            }
            _ => Work::Read(self.want(number)),
        }
    }

    fn check(&self, _deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        Ok(()) // Every history is checked for what they see.
    }
}
