//! Pairs of blobs of which one at most is ever there: who makes one expects the other to be absent.
//!
//! Each transaction writes one side and looks at the other, so two that are validated side by side
//! would leave both there: what is expected of a blob's existence has to keep off who makes it, and
//! the other way round. A side that is there may be written only by who expects it to be there.

use std::collections::BTreeSet;

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, Existence, Operation};

use super::{Space, Unique, Work, Workload, cell, on, views};
use crate::checker::{Entry, Found, Replayed};
use crate::random::Random;

/// The workload.
#[derive(Clone, Debug)]
pub struct Sides {
    space: Space,
    pairs: usize,
    unique: Unique,
}

impl Sides {
    /// So many pairs; few, so that they race.
    pub fn new(space: Space, pairs: usize) -> Self {
        Self { space, pairs: pairs.max(1), unique: Unique::new(b'i') }
    }

    /// The two sides of a pair.
    fn sides(&self, pair: usize) -> [BlobName; 2] {
        [2 * pair, 2 * pair + 1].map(|number| self.space.blob("side", number))
    }

    fn wants(&self) -> Vec<Want> {
        (0..self.pairs).flat_map(|pair| self.sides(pair)).map(Want::stat).collect()
    }

    fn commit(&mut self, [own, other]: &[BlobName; 2], random: &mut Random) -> Vec<BlobOperations> {
        let payload = cell(self.unique.draw());
        let make = Operation::Replace { payload: payload.clone() };
        let [absent, present] = [Existence::Absent, Existence::Present]
            .map(|existence| Operation::Expect { existence });
        match random.below(100) {
            0..25 => vec![on(own, [make]), on(other, [absent])],
            25..40 => vec![on(other, [absent.clone()]), on(own, [absent, make, present])],
            40..60 => vec![on(own, [present.clone(), Operation::Delete, absent])],
            // From one side to the other.
            60..75 => {
                let leave = [present, Operation::Delete];
                vec![on(own, leave), on(other, [absent, make])]
            }
            75..85 => vec![on(own, [present, Operation::Append { payload, expected: None }])],
            85..93 => vec![on(own, [present, Operation::Write { offset: 0, payload }])],
            _ => vec![on(own, [present]), on(other, [absent])],
        }
    }
}

impl Workload for Sides {
    fn name(&self) -> &'static str {
        "sides"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let mut sides = self.sides(random.below(self.pairs as u64) as usize);
        if random.percent(50) {
            sides.reverse();
        }
        match random.below(100) {
            0..70 => Work::Commit(self.commit(&sides, random)),
            70..75 => Work::Read(Want::stat(sides[0].clone())),
            75..82 => Work::Read(Want::bytes(sides[0].clone(), self.space.whole())),
            82..92 => Work::ReadMany(self.wants()),
            _ => Work::Snapshot { reads: self.wants(), pause_us: 1_000 },
        }
    }

    fn check(&self, deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        for (entry, seen) in views(deeds) {
            let there = seen.iter().filter(|seen| matches!(seen.found, Found::Bytes { .. }));
            let there: BTreeSet<&BlobName> = there.map(|seen| &seen.want.blob).collect();
            let both = |pair: &usize| self.sides(*pair).iter().all(|it| there.contains(it));
            if let Some(pair) = (0..self.pairs).find(both) {
                return Err(format!("{} shows both sides of pair {pair}", entry.name()));
            }
        }
        Ok(())
    }
}
