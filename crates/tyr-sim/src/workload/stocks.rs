//! Numbers that never leave their bounds, though nobody reads them: who takes from a stock expects
//! that there is as much in it, who adds to one that there is room.
//!
//! Two that are validated side by side would take the same twice, so what a number is compared with
//! has to keep off who changes it. A stock that is cut off or deleted is empty, not unknown.

use tyr_protocol::session::Want;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Expected, Number, Operation, Relation, Transform,
    TransformKind,
};

use super::{CELL, Space, Work, Workload, numbers, on, views};
use crate::checker::{Entry, Replayed};
use crate::random::Random;

/// What a stock holds at most; little, so that takers and givers are refused.
const ROOM: u64 = 12;

/// The workload.
#[derive(Clone, Debug)]
pub struct Stocks {
    space: Space,
    stocks: usize,
}

impl Stocks {
    /// So many stocks, at least two.
    pub fn new(space: Space, stocks: usize) -> Self {
        Self { space, stocks: stocks.max(2) }
    }

    fn place(&self, stock: usize) -> (BlobName, u64) {
        self.space.sparse_cell("stock", stock)
    }

    fn want(&self, stock: usize) -> Want {
        let (blob, start) = self.place(stock);
        Want::bytes(blob, ByteRange { start, end: start + CELL })
    }

    fn compare(&self, stock: usize, relation: Relation, value: u64) -> Operation {
        let expected = Expected::Number { relation, value: Number::U64(value) };
        Operation::Compare { offset: self.place(stock).1, expected }
    }

    fn apply(&self, stock: usize, kind: TransformKind, amount: u64) -> Operation {
        let transform = Transform::new(kind, Number::U64(amount)).expect("it divides nothing");
        Operation::Apply { offset: self.place(stock).1, transform }
    }

    fn take(&self, stock: usize, amount: u64) -> [Operation; 2] {
        let is_there = match amount {
            1 => self.compare(stock, Relation::NotEqual, 0),
            _ => self.compare(stock, Relation::GreaterOrEqual, amount),
        };
        [is_there, self.apply(stock, TransformKind::Sub, amount)]
    }

    fn give(&self, stock: usize, amount: u64) -> [Operation; 2] {
        let has_room = match amount {
            1 => self.compare(stock, Relation::Less, ROOM),
            ROOM => self.compare(stock, Relation::Equal, 0),
            _ => self.compare(stock, Relation::LessOrEqual, ROOM - amount),
        };
        [has_room, self.apply(stock, TransformKind::Add, amount)]
    }

    /// From one to the other.
    fn pass(&self, [from, to]: [usize; 2], amount: u64) -> Vec<BlobOperations> {
        let ((giver, _), (taker, _)) = (self.place(from), self.place(to));
        let (take, give) = (self.take(from, amount), self.give(to, amount));
        match giver == taker {
            true => vec![on(&giver, [take, give].concat())],
            false => vec![on(&giver, take), on(&taker, give)],
        }
    }

    fn commit(&self, two: [usize; 2], random: &mut Random) -> Vec<BlobOperations> {
        let (blob, _) = self.place(two[0]);
        let amount = random.between(1, 5);
        let amount = if random.percent(5) { ROOM } else { amount };
        match random.below(100) {
            0..40 => vec![on(&blob, self.take(two[0], amount))],
            40..75 => vec![on(&blob, self.give(two[0], amount))],
            75..94 => self.pass(two, amount),
            94..97 => vec![on(&blob, [Operation::Truncate { len: CELL }])],
            97..99 => vec![on(&blob, [Operation::Delete])],
            _ => vec![on(&blob, [self.compare(two[0], Relation::Greater, ROOM)])],
        }
    }
}

impl Workload for Stocks {
    fn name(&self) -> &'static str {
        "stocks"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let all: Vec<usize> = (0..self.stocks).collect();
        let two = random.sample(&all, 2);
        let wants = || all.iter().map(|stock| self.want(*stock)).collect();
        match random.below(100) {
            0..80 => Work::Commit(self.commit([two[0], two[1]], random)),
            80..85 => Work::Read(self.want(two[0])),
            85..95 => Work::ReadMany(wants()),
            _ => Work::Snapshot { reads: wants(), pause_us: 1_000 },
        }
    }

    fn check(&self, deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        for (entry, seen) in views(deeds) {
            if let Some(held) = seen.iter().flat_map(numbers).find(|held| *held > ROOM) {
                let name = entry.name();
                return Err(format!("{name} shows {held} in a stock that holds 0 to {ROOM}"));
            }
        }
        Ok(())
    }
}
