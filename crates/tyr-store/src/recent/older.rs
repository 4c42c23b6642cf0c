//! What is not the newest any more, as long as a reader needs it.
//!
//! In the order in which it was replaced, so that what nobody needs any more is, with readers of
//! late only, at the front; and what a reader sees begins where its timestamp says.

use std::collections::VecDeque;

use smallvec::SmallVec;
use tyr_types::Timestamp;

use super::blob::Attributes;
use super::piece::Unheld;
use super::readers::Readers;

/// Something that was current for a while.
pub(super) trait Old {
    /// Since this timestamp.
    fn from(&self) -> Timestamp;
    /// Up to this one, from which on something else is.
    fn until(&self) -> Timestamp;
}

/// Attributes that were current from their version up to `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldAttributes {
    pub attributes: Attributes,
    pub until: Timestamp,
}

/// A stretch of bytes that was current from `from` up to `until`.
#[derive(Clone, Debug)]
pub(super) struct OldPiece {
    pub start: u64,
    pub end: u64,
    pub from: Timestamp,
    pub until: Timestamp,
    pub content: OldContent,
}

/// Where the bytes of a piece are.
#[derive(Clone, Debug)]
pub(super) enum OldContent {
    /// Here.
    Bytes(SmallVec<[u8; 16]>),
    /// Elsewhere, or nowhere.
    Unheld(Unheld),
}

/// What was current, in the order in which it was replaced.
#[derive(Debug)]
pub(super) struct Older<T> {
    items: VecDeque<T>,
    /// When the last was replaced that was ever here. At hand, unlike the last itself.
    last: Timestamp,
}

impl Old for OldAttributes {
    fn from(&self) -> Timestamp {
        self.attributes.version
    }

    fn until(&self) -> Timestamp {
        self.until
    }
}

impl Old for OldPiece {
    fn from(&self) -> Timestamp {
        self.from
    }

    fn until(&self) -> Timestamp {
        self.until
    }
}

impl OldPiece {
    /// Bytes of memory it takes.
    pub fn memory(&self) -> usize {
        let bytes = match &self.content {
            OldContent::Bytes(bytes) => bytes.len(),
            OldContent::Unheld(_) => 0,
        };
        bytes + size_of::<Self>()
    }
}

impl<T> Default for Older<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), last: Timestamp::ZERO }
    }
}

impl<T: Old> Older<T> {
    /// How much it is.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Keeps `old`. Most comes in order; what operations replace that come late does not.
    pub fn keep(&mut self, old: T) {
        debug_assert!(old.from() < old.until(), "what was current at no moment is not kept");
        if old.until() < self.last {
            let at = self.items.partition_point(|other| other.until() <= old.until());
            self.items.insert(at, old);
        } else {
            // Readers find what they see by that.
            debug_assert!(
                self.items.back().is_none_or(|last| last.until() <= old.until()),
                "in the order in which it was replaced"
            );
            self.last = old.until();
            self.items.push_back(old);
        }
    }

    /// What was current at `at`.
    pub fn at(&self, at: Timestamp) -> impl Iterator<Item = &T> {
        let first = self.items.partition_point(|old| old.until() <= at);
        self.items.range(first..).filter(move |old| old.from() <= at)
    }

    /// All of it.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// All of it, to be changed; but not from when and until when it was current.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut()
    }

    /// Drops what this says, and `dropped` is told of.
    pub fn drop_those(&mut self, is_it: impl Fn(&T) -> bool, mut dropped: impl FnMut(&T)) {
        self.items.retain(|old| {
            let goes = is_it(old);
            if goes {
                dropped(old);
            }
            !goes
        });
    }

    /// Drops what `readers` do not need (V3), and `dropped` is told of. There may be readers at
    /// `now` and above that are not among them.
    pub fn drop_unneeded(&mut self, readers: Readers, now: Timestamp, mut dropped: impl FnMut(&T)) {
        let first = readers.first().min(now);
        while self.items.front().is_some_and(|old| old.until() <= first) {
            if let Some(old) = self.items.pop_front() {
                dropped(&old);
            }
        }
        if readers.have_gaps() {
            // What was replaced after that is needed, and most of it may be of then.
            let every_from = readers.every_from().min(now);
            let count = self.items.partition_point(|old| old.until() <= every_from);
            let mut needed: SmallVec<[T; 2]> = SmallVec::new();
            for old in self.items.drain(..count) {
                match readers.need(old.from(), old.until()) {
                    true => needed.push(old),
                    false => dropped(&old),
                }
            }
            needed.into_iter().rev().for_each(|old| self.items.push_front(old));
        }
    }
}

impl Older<OldAttributes> {
    /// Parts the time at `at` in two, of attributes that were current then; answers whether there
    /// were any.
    pub fn split(&mut self, at: Timestamp) -> bool {
        let first = self.items.partition_point(|old| old.until <= at);
        let Some(old) = self.items.get_mut(first).filter(|old| old.attributes.version < at) else {
            return false;
        };
        let mut later = *old;
        old.until = at;
        later.attributes.version = at;
        self.items.insert(first + 1, later);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::fixtures::at;

    fn older(spans: &[(u64, u64)]) -> Older<OldAttributes> {
        let mut older = Older::default();
        for (from, until) in spans {
            let attributes = Attributes { version: at(*from), ..Attributes::default() };
            older.keep(OldAttributes { attributes, until: at(*until) });
        }
        older
    }

    fn spans<'a>(older: impl Iterator<Item = &'a OldAttributes>) -> Vec<(u64, u64)> {
        older.map(|old| (old.attributes.version.clock, old.until.clock)).collect()
    }

    #[test]
    fn what_was_replaced_late_comes_in_its_place_and_is_found_by_its_time() {
        let older = older(&[(1, 3), (3, 9), (2, 5), (9, 12)]);
        assert_eq!(spans(older.iter()), [(1, 3), (2, 5), (3, 9), (9, 12)]);
        assert_eq!(spans(older.at(at(4))), [(2, 5), (3, 9)]);
        assert_eq!(spans(older.at(at(9))), [(9, 12)]);
        assert_eq!(spans(older.at(at(0))), []);
    }

    #[test]
    fn readers_of_late_need_no_look_at_what_they_still_need() {
        let mut older = older(&[(1, 3), (3, 9), (9, 12)]);
        let mut dropped = 0;
        older.drop_unneeded(Readers::from(at(9)), Timestamp::MAX, |_| dropped += 1);
        assert_eq!((spans(older.iter()), dropped), (vec![(9, 12)], 2));
    }

    #[test]
    fn between_readers_goes_what_none_of_them_needs_but_for_what_was_current_now() {
        let mut older = older(&[(1, 3), (3, 5), (5, 9), (9, 12)]);
        let in_use = [at(1), at(7)];
        older.drop_unneeded(Readers::new(&in_use), at(10), |_| ());
        assert_eq!(spans(older.iter()), [(1, 3), (5, 9), (9, 12)]);
    }

    #[test]
    fn attributes_are_parted_where_something_late_comes_in() {
        let mut older = older(&[(1, 3), (3, 9)]);
        assert!(older.split(at(5)));
        assert_eq!(spans(older.iter()), [(1, 3), (3, 5), (5, 9)]);
        assert!(!older.split(at(9)), "then the newest is current");
        assert!(!older.split(at(3)), "then something is replaced in any case");
    }
}
