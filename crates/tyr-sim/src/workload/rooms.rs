//! Rooms with room for few: who enters lists who is in it, and takes a seat if one is left.
//!
//! A room is a group, a seat a blob of it. Two that list a room side by side, and take different
//! seats, write nothing that the other has read: only what was listed keeps them apart (Q3). So
//! there are never more in a room than it holds, though nothing counts them.

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, Key, Operation, Scan};

use super::{CELL, Space, Unique, Work, Workload, cell, on, views};
use crate::checker::{Entry, Found, Replayed, Seen};
use crate::random::Random;

/// Seats of a room; many more than it holds, so that those who enter rarely choose the same.
const SEATS: usize = 8;

/// How many a room holds.
const HOLDS: usize = 3;

/// Rooms at most: a digit tells them apart.
const ROOMS_MAX: usize = 10;

/// The workload.
#[derive(Clone, Debug)]
pub struct Rooms {
    space: Space,
    rooms: usize,
    /// So many bytes of a key say which group it is of.
    placed: usize,
    unique: Unique,
}

impl Rooms {
    /// So many rooms, in a keyspace that is placed by so many bytes of the key: six tell all rooms
    /// apart.
    pub fn new(space: Space, rooms: usize, placed: usize) -> Self {
        Self { space, rooms: rooms.clamp(1, ROOMS_MAX), placed, unique: Unique::new(b'r') }
    }

    fn seat(&self, room: usize, seat: usize) -> BlobName {
        self.space.blob(&format!("rooms{room}"), seat)
    }

    fn seats(&self, room: usize) -> Vec<BlobName> {
        (0..SEATS).map(|seat| self.seat(room, seat)).collect()
    }

    /// Lists a room in a transaction, whose first read is of the group's name: that says when.
    fn list(&self, room: usize, random: &mut Random, then: super::Then) -> Work {
        let among = self.seats(room);
        let key = among[0].key.as_bytes();
        let group = Key::new(&key[..self.placed.min(key.len())]).expect("part of a key is one");
        let first = Want::stat(BlobName { key: group, ..among[0].clone() });
        let end = key.iter().rposition(|byte| *byte == b'/').map_or(key.len(), |at| at + 1);
        let scan = Scan::new().prefix(&key[..end]).limit(random.between(1, 6) as usize);
        let scan = if random.percent(50) { scan.keys_only() } else { scan };
        Work::TransactListing { first, scans: vec![scan], among, then }
    }

    /// Takes a seat if there is room.
    fn enter(&mut self, room: usize, random: &mut Random) -> Work {
        let number = self.unique.draw();
        let start = random.below(SEATS as u64) as usize;
        let then = Box::new(move |seen: &[Seen]| {
            let seats = &seen[1..];
            if taken(seats) >= HOLDS {
                return Vec::new();
            }
            let free: Vec<&Seen> = seats.iter().filter(|seat| !is_taken(seat)).collect();
            let Some(seat) = free.get(start % free.len().max(1)) else { return Vec::new() };
            vec![on(&seat.want.blob, [Operation::Replace { payload: cell(number) }])]
        });
        self.list(room, random, then)
    }

    /// Writes to all that are in the room, as their sizes say.
    fn mark(&mut self, room: usize, random: &mut Random) -> Work {
        let number = self.unique.draw();
        let then = Box::new(move |seen: &[Seen]| {
            let there = seen[1..].iter().filter(|seat| is_taken(seat));
            let write = Operation::Write { offset: CELL, payload: cell(number) };
            there.map(|seat| on(&seat.want.blob, [write.clone()])).collect()
        });
        self.list(room, random, then)
    }
}

fn is_taken(seat: &Seen) -> bool {
    matches!(seat.found, Found::Bytes { .. })
}

/// How many of these seats are taken, each counted once.
fn taken(seats: &[Seen]) -> usize {
    let mut taken: Vec<&BlobName> =
        seats.iter().filter(|seat| is_taken(seat)).map(|seat| &seat.want.blob).collect();
    taken.sort_unstable();
    taken.dedup();
    taken.len()
}

impl Workload for Rooms {
    fn name(&self) -> &'static str {
        "rooms"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        Vec::new()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let room = random.below(self.rooms as u64) as usize;
        let stats = || self.seats(room).into_iter().map(Want::stat);
        match random.below(100) {
            0..55 => self.enter(room, random),
            55..65 => self.mark(room, random),
            65..88 => {
                let seat = self.seat(room, random.below(SEATS as u64) as usize);
                Work::Commit(vec![on(&seat, [Operation::Delete])])
            }
            88..96 => Work::ReadMany(stats().collect()),
            _ => Work::Snapshot { reads: stats().collect(), pause_us: 1_000 },
        }
    }

    fn check(&self, deeds: &[&Entry], end: &Replayed<'_>) -> Result<(), String> {
        for (entry, seen) in views(deeds) {
            let count = taken(seen);
            if count > HOLDS {
                return Err(format!("{} shows {count} in a room that holds {HOLDS}", entry.name()));
            }
        }
        for room in 0..self.rooms {
            let seats = self.seats(room);
            let count = seats.iter().filter(|seat| end.blob(seat).is_some()).count();
            if count > HOLDS {
                return Err(format!("{count} are left in a room that holds {HOLDS}"));
            }
        }
        Ok(())
    }
}
