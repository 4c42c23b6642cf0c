//! Registers: cells that are written, read, and swapped if they are still as last seen.

use std::collections::BTreeMap;

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, Bytes, Operation};

use super::{CELL, Space, Unique, Work, Workload, cell, numbers, on};
use crate::checker::{Entry, Replayed};
use crate::random::Random;

/// Registers in a blob; they lie half a chunk apart.
const IN_BLOB: usize = 5;

/// The workload.
#[derive(Clone, Debug)]
pub struct Registers {
    space: Space,
    registers: usize,
    unique: Unique,
    /// What each client saw last in a register.
    seen: BTreeMap<(u16, usize), u64>,
}

impl Registers {
    /// So many registers.
    pub fn new(space: Space, registers: usize) -> Self {
        let unique = Unique::new(b'r');
        Self { space, registers: registers.max(1), unique, seen: BTreeMap::new() }
    }

    fn place(&self, register: usize) -> (BlobName, u64) {
        let offset = (register % IN_BLOB) as u64 * (self.space.chunk_size / 2);
        (self.space.blob("register", register / IN_BLOB), offset)
    }

    fn want(&self, register: usize) -> Want {
        let (blob, start) = self.place(register);
        Want::bytes(blob, ByteRange { start, end: start + CELL })
    }

    fn write(&mut self, register: usize) -> BlobOperations {
        let (blob, offset) = self.place(register);
        on(&blob, [Operation::Write { offset, payload: cell(self.unique.draw()) }])
    }
}

impl Workload for Registers {
    fn name(&self) -> &'static str {
        "registers"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        (0..self.registers).map(|register| vec![self.write(register)]).collect()
    }

    fn next(&mut self, client: u16, random: &mut Random) -> Work {
        let register = random.below(self.registers as u64) as usize;
        let other = random.below(self.registers as u64) as usize;
        match random.below(100) {
            0..40 => Work::Read(self.want(register)),
            40..65 => Work::Commit(vec![self.write(register)]),
            65..80 => {
                let write = self.write(other);
                let reads = vec![self.want(register)];
                Work::Transact { reads, then: Box::new(move |_| vec![write]) }
            }
            _ => {
                let (blob, offset) = self.place(register);
                let seen = self.seen.get(&(client, register)).copied().unwrap_or(0);
                let expected = Bytes::copy_from_slice(&seen.to_le_bytes()).into();
                let payload = cell(self.unique.draw());
                Work::Commit(vec![on(
                    &blob,
                    [Operation::Compare { offset, expected }, Operation::Write { offset, payload }],
                )])
            }
        }
    }

    fn answered(&mut self, client: u16, entry: &Entry) {
        for seen in entry.seen() {
            let place = |register: &usize| self.want(*register) == seen.want;
            if let (Some(register), Some(number)) =
                ((0..self.registers).find(place), numbers(seen).next())
            {
                self.seen.insert((client, register), number);
            }
        }
    }

    fn check(&self, deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        let reads = deeds.iter().flat_map(|entry| entry.seen());
        for seen in reads.filter(|seen| seen.is_answered()) {
            let is_own = |number: &u64| number >> 32 == u64::from(b'r');
            if !numbers(seen).next().as_ref().is_some_and(is_own) {
                return Err(format!("\"{}\" had something nobody wrote", seen.want.blob.key));
            }
        }
        Ok(())
    }
}
