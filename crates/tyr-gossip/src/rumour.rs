//! What nodes tell of themselves by gossip, besides that they live.
//!
//! A node's rumour goes out in items that fit a datagram: each has the newest of everything, and
//! one page of the totals by keyspace; pages take turns. Items travel as `foca`'s custom
//! broadcasts, from node to node, for as long as they are news; of those of one node the newest
//! win, by incarnation and number.
//!
//! | bytes of an item, little-endian | what |
//! |---|---|
//! | 2, 8, 8 | node, incarnation, number of the item |
//! | 4 | epoch |
//! | 4, 8, 2 | snapshot floor: epoch, clock, node |
//! | 2 | 1 if memory is full, else 0 |
//! | 2, 2, 1 | pages in all, this page, entries |
//! | 20 each | keyspace (4), blobs (8), bytes (8) |
//!
//! Must not know: what is done with a rumour.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, TryGetError};
use foca::{BroadcastHandler, Invalidates};
use tyr_types::{Epoch, Error, KeyspaceId, KeyspaceUsage, NodeId, Result, Timestamp};

use super::identity::Identity;

/// Keyspaces in an item: two items and what is said of members fit a datagram.
const PAGE_LEN: usize = 24;

/// Keyspaces in a rumour: as many as a map has.
pub(super) const TOTALS_MAX: usize = 16_384;

const PAGES_MAX: u16 = TOTALS_MAX.div_ceil(PAGE_LEN) as u16;

const _: () = assert!(PAGE_LEN > 0 && PAGE_LEN <= u8::MAX as usize);
const _: () = assert!(TOTALS_MAX.div_ceil(PAGE_LEN) <= u16::MAX as usize);

/// Items of one node that may wait to be passed on; the oldest goes first.
const ITEMS_WAITING_MAX: u64 = 4;

/// What a node tells of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rumour {
    /// Of the map that it has.
    pub epoch: Epoch,
    /// Nobody reads a snapshot of its blobs below this. It only grows, so that an old rumour errs
    /// to the safe side.
    pub snapshot_floor: Timestamp,
    /// Whether its memory is full of what is not written back yet, or of what is in flight.
    pub is_memory_full: bool,
    /// Whether its disk has no room for anything new. To a program that does not know of it, it is
    /// as if its memory were full.
    pub is_disk_full: bool,
    /// What of each keyspace with a quota counts with it.
    pub totals: BTreeMap<KeyspaceId, KeyspaceUsage>,
}

/// What was heard of a node, however far around.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// The node.
    pub node: NodeId,
    /// Its incarnation when it told.
    pub incarnation: u64,
    /// What it told; of its keyspaces those whose page came already.
    pub rumour: Rumour,
    /// How long ago the newest of it came here, in microseconds.
    pub age_us: u64,
}

/// What a rumour says of a node is full, as bits.
const MEMORY_FULL: u16 = 1;
const DISK_FULL: u16 = 2;

/// One item: a part of a rumour that fits a datagram.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    key: ItemKey,
    /// Without totals.
    rumour: Rumour,
    pages: u16,
    totals: Vec<(KeyspaceId, KeyspaceUsage)>,
}

/// Which item it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemKey {
    node: NodeId,
    incarnation: u64,
    number: u64,
    page: u16,
}

impl Invalidates for ItemKey {
    fn invalidates(&self, other: &Self) -> bool {
        if self.node != other.node || self.incarnation < other.incarnation {
            return false;
        }
        self.incarnation > other.incarnation
            || (self.page == other.page && self.number >= other.number)
            || self.number >= other.number + ITEMS_WAITING_MAX
    }
}

impl Item {
    fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u16_le(self.key.node.0);
        bytes.put_u64_le(self.key.incarnation);
        bytes.put_u64_le(self.key.number);
        bytes.put_u32_le(self.rumour.epoch.0);
        bytes.put_u32_le(self.rumour.snapshot_floor.epoch.0);
        bytes.put_u64_le(self.rumour.snapshot_floor.clock);
        bytes.put_u16_le(self.rumour.snapshot_floor.node);
        let flags =
            [(self.rumour.is_memory_full, MEMORY_FULL), (self.rumour.is_disk_full, DISK_FULL)];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag);
        bytes.put_u16_le(flags.fold(0, |flags, flag| flags | flag));
        bytes.put_u16_le(self.pages);
        bytes.put_u16_le(self.key.page);
        debug_assert!(self.totals.len() <= PAGE_LEN, "a page fits a datagram");
        debug_assert!(self.pages <= PAGES_MAX && self.key.page < self.pages.max(1), "it is one");
        bytes.put_u8(self.totals.len() as u8);
        for (keyspace, totals) in &self.totals {
            bytes.put_u32_le(keyspace.0);
            bytes.put_u64_le(totals.blobs);
            bytes.put_u64_le(totals.bytes);
            bytes.put_u32_le(totals.operations);
        }
        bytes
    }

    /// # Errors
    /// `Corrupt`.
    fn read(mut bytes: &[u8]) -> Result<Self> {
        let item = Self::read_from(&mut bytes)
            .map_err(|_: TryGetError| Error::corrupt("a rumour ends too early"))?;
        let Self { key, pages, .. } = &item;
        if *pages > PAGES_MAX || key.page >= (*pages).max(1) {
            return Err(Error::corrupt("a rumour has a page that cannot be"));
        }
        if !bytes.is_empty() {
            return Err(Error::corrupt("a rumour goes on behind its end"));
        }
        Ok(item)
    }

    fn read_from(bytes: &mut &[u8]) -> Result<Self, TryGetError> {
        let node = NodeId(bytes.try_get_u16_le()?);
        let incarnation = bytes.try_get_u64_le()?;
        let number = bytes.try_get_u64_le()?;
        let epoch = Epoch(bytes.try_get_u32_le()?);
        let snapshot_floor = Timestamp {
            epoch: Epoch(bytes.try_get_u32_le()?),
            clock: bytes.try_get_u64_le()?,
            node: bytes.try_get_u16_le()?,
        };
        let flags = bytes.try_get_u16_le()?;
        let rumour = Rumour {
            epoch,
            snapshot_floor,
            is_memory_full: flags & MEMORY_FULL != 0,
            is_disk_full: flags & DISK_FULL != 0,
            totals: BTreeMap::new(),
        };
        let pages = bytes.try_get_u16_le()?;
        let page = bytes.try_get_u16_le()?;
        let totals = (0..bytes.try_get_u8()?)
            .map(|_| {
                let keyspace = KeyspaceId(bytes.try_get_u32_le()?);
                let totals = KeyspaceUsage {
                    blobs: bytes.try_get_u64_le()?,
                    bytes: bytes.try_get_u64_le()?,
                    operations: bytes.try_get_u32_le()?,
                };
                Ok((keyspace, totals))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { key: ItemKey { node, incarnation, number, page }, rumour, pages, totals })
    }
}

/// Passes on what it is given: only news get so far.
pub(super) struct Relay;

impl BroadcastHandler<Identity> for Relay {
    type Key = ItemKey;
    type Error = Error;

    fn receive_item(&mut self, data: &[u8], _: Option<&Identity>) -> Result<Option<ItemKey>> {
        Item::read(data).map(|item| Some(item.key))
    }
}

/// Everything that was heard, and what this node has to tell.
#[derive(Debug)]
pub(super) struct Board {
    node: NodeId,
    incarnation: u64,
    mine: Option<Rumour>,
    number: u64,
    next_page: u16,
    /// The highest epoch heard or told.
    epoch: Epoch,
    heard: BTreeMap<NodeId, Record>,
}

/// A page: the number of the item that it came with, and its totals.
type Page = (u64, Vec<(KeyspaceId, KeyspaceUsage)>);

/// What was heard of one node.
#[derive(Debug)]
struct Record {
    incarnation: u64,
    number: u64,
    /// Without totals.
    rumour: Rumour,
    pages: BTreeMap<u16, Page>,
    heard_at: u64,
}

/// What an item was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nothing new.
    Old,
    /// News, to be passed on.
    New,
    /// News, with an epoch above all that were known; and whose.
    NewEpoch(Epoch, NodeId),
}

impl Board {
    pub fn new(node: NodeId, incarnation: u64) -> Self {
        Self {
            node,
            incarnation,
            mine: None,
            number: 0,
            next_page: 0,
            epoch: Epoch(0),
            heard: BTreeMap::new(),
        }
    }

    /// From now on this node tells this. Answers whether its epoch is higher than it was.
    ///
    /// # Errors
    /// `InvalidArgument` when it has too many keyspaces.
    pub fn tell(&mut self, rumour: Rumour) -> Result<bool> {
        if rumour.totals.len() > TOTALS_MAX {
            return Err(Error::invalid(format!(
                "a rumour has totals of at most {TOTALS_MAX} keyspaces, not of {}",
                rumour.totals.len()
            )));
        }
        let is_newer = self.mine.as_ref().is_none_or(|mine| mine.epoch < rumour.epoch);
        self.epoch = self.epoch.max(rumour.epoch);
        self.mine = Some(rumour);
        Ok(is_newer)
    }

    /// The next item of what this node tells.
    pub fn next_item(&mut self) -> Option<Vec<u8>> {
        let mine = self.mine.as_ref()?;
        debug_assert!(mine.totals.len() <= TOTALS_MAX, "what is told was checked");
        debug_assert!(mine.epoch <= self.epoch, "what is told is known");
        let pages = mine.totals.len().div_ceil(PAGE_LEN) as u16;
        let page = if self.next_page < pages { self.next_page } else { 0 };
        let from = usize::from(page) * PAGE_LEN;
        let totals = mine.totals.iter().skip(from).take(PAGE_LEN).map(|(k, t)| (*k, *t)).collect();
        self.number += 1;
        self.next_page = page + 1;
        let Self { node, incarnation, number, .. } = *self;
        let rumour = Rumour { totals: BTreeMap::new(), ..mine.clone() };
        let key = ItemKey { node, incarnation, number, page };
        Some(Item { key, rumour, pages, totals }.write())
    }

    /// Takes an item that came. Its node is one of those that `is_known`.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn take(
        &mut self,
        bytes: &[u8],
        now: u64,
        is_known: impl Fn(NodeId) -> bool,
    ) -> Result<Taken> {
        let Item { key, rumour, pages, totals } = Item::read(bytes)?;
        if key.node == self.node || !is_known(key.node) {
            return Ok(Taken::Old);
        }
        let record = self.heard.entry(key.node).or_insert_with(|| Record::new(key.incarnation));
        if key.incarnation > record.incarnation {
            *record = Record::new(key.incarnation);
        }
        let is_old_page = record.pages.get(&key.page).is_some_and(|(at, _)| *at >= key.number);
        if key.incarnation < record.incarnation || is_old_page {
            return Ok(Taken::Old);
        }
        debug_assert_eq!(
            key.incarnation, record.incarnation,
            "older ones are old, newer begin anew"
        );
        let epoch = rumour.epoch;
        if key.number > record.number {
            record.number = key.number;
            record.rumour = rumour;
            record.heard_at = now;
            record.pages.retain(|page, _| *page < pages.max(1));
        }
        record.pages.insert(key.page, (key.number, totals));
        debug_assert!(record.pages.len() <= usize::from(PAGES_MAX) + 1, "pages are bounded");
        debug_assert_ne!(key.node, self.node, "nobody is told of itself");
        if epoch > self.epoch {
            self.epoch = epoch;
            return Ok(Taken::NewEpoch(epoch, key.node));
        }
        Ok(Taken::New)
    }

    /// What was heard of all nodes.
    pub fn heard(&self, now: u64) -> Vec<Heard> {
        self.heard.iter().map(|(node, record)| record.heard(*node, now)).collect()
    }

    /// Forgets nodes that are not known any more.
    pub fn retain(&mut self, is_known: impl Fn(NodeId) -> bool) {
        self.heard.retain(|node, _| is_known(*node));
        debug_assert!(!self.heard.contains_key(&self.node), "nobody hears itself");
    }
}

impl Record {
    fn new(incarnation: u64) -> Self {
        let rumour = Rumour::default();
        Self { incarnation, number: 0, rumour, pages: BTreeMap::new(), heard_at: 0 }
    }

    fn heard(&self, node: NodeId, now: u64) -> Heard {
        let mut rumour = self.rumour.clone();
        let mut pages: Vec<_> = self.pages.values().collect();
        // A keyspace that moved to another page stands where it was told last.
        pages.sort_by_key(|(number, _)| *number);
        for (_, totals) in pages {
            rumour.totals.extend(totals.iter().copied());
        }
        let age_us = now.saturating_sub(self.heard_at);
        Heard { node, incarnation: self.incarnation, rumour, age_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rumour(epoch: u32, keyspaces: u32) -> Rumour {
        let totals =
            |n| KeyspaceUsage { blobs: u64::from(n), bytes: 1000 * u64::from(n), operations: n };
        Rumour {
            epoch: Epoch(epoch),
            snapshot_floor: Timestamp { epoch: Epoch(1), clock: 9, node: 2 },
            is_memory_full: true,
            is_disk_full: epoch.is_multiple_of(2),
            totals: (1..=keyspaces).map(|n| (KeyspaceId(n), totals(n))).collect(),
        }
    }

    fn take(board: &mut Board, item: &[u8]) -> Taken {
        board.take(item, 50, |node| node.0 < 9).unwrap()
    }

    #[test]
    fn a_rumour_arrives_page_by_page_and_shrinks_again() {
        let [mut from, mut to] = [Board::new(NodeId(1), 1), Board::new(NodeId(2), 1)];
        from.tell(rumour(3, 60)).unwrap();
        let items: Vec<_> = (0..3).map(|_| from.next_item().unwrap()).collect();
        assert_eq!(take(&mut to, &items[0]), Taken::NewEpoch(Epoch(3), NodeId(1)));
        assert_eq!(to.heard(60)[0].rumour.totals.len(), 24);
        assert_eq!(take(&mut to, &items[2]), Taken::New);
        assert_eq!(take(&mut to, &items[1]), Taken::New, "late, but another page");
        assert_eq!(take(&mut to, &items[1]), Taken::Old);
        let heard = to.heard(60).remove(0);
        assert_eq!((heard.node, heard.incarnation, heard.age_us), (NodeId(1), 1, 10));
        assert_eq!(heard.rumour, rumour(3, 60));
        from.tell(rumour(3, 2)).unwrap();
        assert_eq!(take(&mut to, &from.next_item().unwrap()), Taken::New);
        assert_eq!(to.heard(60)[0].rumour, rumour(3, 2));
    }

    #[test]
    fn a_later_incarnation_replaces_what_an_earlier_one_told() {
        let mut to = Board::new(NodeId(2), 1);
        let [mut old, mut new] = [Board::new(NodeId(1), 1), Board::new(NodeId(1), 2)];
        old.tell(rumour(3, 50)).unwrap();
        new.tell(rumour(2, 0)).unwrap();
        let [old, old_page] = [old.next_item().unwrap(), old.next_item().unwrap()];
        assert_eq!(take(&mut to, &old), Taken::NewEpoch(Epoch(3), NodeId(1)));
        assert_eq!(take(&mut to, &new.next_item().unwrap()), Taken::New);
        assert_eq!(take(&mut to, &old_page), Taken::Old);
        assert_eq!(to.heard(50)[0].rumour, rumour(2, 0));
    }

    #[test]
    fn nothing_is_taken_of_oneself_or_of_strangers() {
        let mut me = Board::new(NodeId(1), 1);
        for node in [1, 9] {
            let mut other = Board::new(NodeId(node), 7);
            other.tell(rumour(1, 1)).unwrap();
            assert_eq!(take(&mut me, &other.next_item().unwrap()), Taken::Old);
        }
        assert!(me.heard(50).is_empty());
        assert!(me.tell(rumour(1, TOTALS_MAX as u32 + 1)).is_err());
    }

    #[test]
    fn items_give_way_to_newer_ones_of_the_same_node() {
        let key = |number, page| ItemKey { node: NodeId(1), incarnation: 1, number, page };
        assert!(key(2, 0).invalidates(&key(1, 0)) && !key(1, 0).invalidates(&key(2, 0)));
        assert!(!key(2, 1).invalidates(&key(1, 0)) && key(5, 1).invalidates(&key(1, 0)));
        let restarted = ItemKey { incarnation: 2, ..key(1, 3) };
        assert!(restarted.invalidates(&key(9, 0)) && !key(9, 0).invalidates(&restarted));
        assert!(!ItemKey { node: NodeId(2), ..key(9, 0) }.invalidates(&key(1, 0)));
    }

    #[test]
    fn any_bytes_give_an_item_or_an_error() {
        let mut board = Board::new(NodeId(1), 1);
        board.tell(rumour(1, 30)).unwrap();
        let item = board.next_item().unwrap();
        assert_eq!(Item::read(&item).unwrap().write(), item);
        for at in 0..item.len() {
            assert!(Item::read(&item[..at]).is_err());
            let mut damaged = item.clone();
            damaged[at] ^= 0xFF;
            let _ = Item::read(&damaged);
        }
    }
}
