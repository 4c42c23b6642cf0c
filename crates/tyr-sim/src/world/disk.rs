//! A node's disk: a log of records that keeps their order and loses what was not synced.
//!
//! Syncs are shared: one runs at a time, and covers everything written before it began. After a
//! record could not be written the log takes no more until the process starts again, for a log
//! with a hole in it would tell a wrong story.
//!
//! What was applied may be folded into a base, and the log be cut: then a checkpoint stands for
//! what is gone of it. Places in the log are counted from its beginning, whatever is gone.

use std::collections::VecDeque;

use tyr_protocol::member::Record;

use super::lineage::Contents;
use crate::random::Random;
use crate::setup::Disks;
use crate::store::{Done, SimStore};

/// A disk with the log of its node.
#[derive(Debug)]
pub struct Disk {
    config: Disks,
    random: Random,
    base: Option<Base>,
    /// What stands for the log below `gone`.
    checkpoint: Vec<Record>,
    gone: usize,
    /// The log from `gone` on.
    log: Vec<Record>,
    /// So many records at the beginning of the log are synced.
    synced: usize,
    /// Records whose writer waits for them, by their numbers, each with the length of the log that
    /// has it; `None` when it could not be written.
    waiting: VecDeque<(u64, Option<usize>)>,
    /// The length of the log when the sync that runs began.
    syncing: Option<usize>,
    is_full: bool,
    /// Whether a record could not be written since the process started.
    is_broken: bool,
    /// A sync takes so many times longer.
    slowness: u32,
}

/// What a process finds when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'d> {
    /// What was applied before the log was cut.
    pub base: Option<&'d Base>,
    /// What stands for the log before that.
    pub checkpoint: &'d [Record],
    /// The log since.
    pub log: &'d [Record],
}

/// What was applied, folded up to some timestamp, and durable.
#[derive(Debug)]
pub struct Base {
    /// What it holds.
    pub store: SimStore,
    /// Which transactions are in it, for the checker.
    pub content: Contents,
}

impl Base {
    /// Lets go of what was let go of.
    pub fn lose(&mut self, done: &[Done]) {
        for done in done {
            match done {
                Done::Released(chunk) => {
                    self.store.lose(chunk);
                    self.content.remove(chunk);
                }
                Done::Cleared => {
                    self.store.lose_all();
                    self.content.clear();
                }
                // What was above it came to no base: it waited.
                Done::Applied(..) | Done::Installed(..) | Done::Withdrawn(..) => {}
            }
        }
    }
}

/// What a sync came to.
#[derive(Debug, Default)]
pub struct Synced {
    /// The numbers of the records that are durable now.
    pub durable: Vec<u64>,
    /// The numbers of the records that could not be written.
    pub failed: Vec<u64>,
    /// When another sync began: how long it takes.
    pub next_us: Option<u64>,
}

impl Disk {
    /// An empty disk.
    pub fn new(config: Disks, random: Random) -> Self {
        Self {
            config,
            random,
            base: None,
            checkpoint: Vec::new(),
            gone: 0,
            log: Vec::new(),
            synced: 0,
            waiting: VecDeque::new(),
            syncing: None,
            is_full: false,
            is_broken: false,
            slowness: 1,
        }
    }

    /// Writes a record; when `is_synced`, its `number` is named once it is durable. Answers how
    /// long the sync takes, when one begins.
    pub fn write(&mut self, number: u64, record: Record, is_synced: bool) -> Option<u64> {
        self.is_broken |= self.is_full;
        if !self.is_broken {
            self.log.push(record);
        }
        if !is_synced {
            return None;
        }
        let len = (!self.is_broken).then_some(self.len());
        self.waiting.push_back((number, len));
        match self.syncing {
            Some(_) => None,
            None => Some(self.begin_sync()),
        }
    }

    /// Begins to sync what nobody waits for; answers how long that takes, when there is anything.
    pub fn flush(&mut self) -> Option<u64> {
        let is_due = self.syncing.is_none() && self.synced < self.len();
        is_due.then(|| self.begin_sync())
    }

    fn begin_sync(&mut self) -> u64 {
        self.syncing = Some(self.len());
        let (low, high) = self.config.sync_us;
        self.random.between(low, high) * u64::from(self.slowness)
    }

    /// The sync that ran has ended.
    pub fn end_sync(&mut self) -> Synced {
        let mut synced = Synced::default();
        let Some(len) = self.syncing.take() else { return synced };
        self.synced = self.synced.max(len);
        while let Some((number, written)) = self.waiting.front().copied() {
            match written {
                Some(written) if written > len => break,
                Some(_) => synced.durable.push(number),
                None => synced.failed.push(number),
            }
            self.waiting.pop_front();
        }
        if !self.waiting.is_empty() {
            synced.next_us = Some(self.begin_sync());
        }
        synced
    }

    /// The process stops in order, and waits until its log is durable as it is. What could not be
    /// written is not waited for.
    pub fn settle(&mut self) {
        if !self.is_broken {
            self.synced = self.len();
        }
    }

    /// The process or the machine stops: what was not synced is there up to a random record.
    pub fn crash(&mut self) {
        let unsynced = self.len() - self.synced;
        let kept = self.random.between(0, unsynced as u64);
        let len = self.synced + usize::try_from(kept).expect("below a length");
        self.log.truncate(len - self.gone);
        self.waiting.clear();
        self.syncing = None;
    }

    /// The process starts again: what is in the log is what will be, in its order.
    pub fn open(&mut self) -> Opened<'_> {
        self.synced = self.len();
        self.is_broken = false;
        Opened { base: self.base.as_ref(), checkpoint: &self.checkpoint, log: &self.log }
    }

    /// The base that is on it.
    pub fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// The same, to be changed.
    pub fn base_mut(&mut self) -> Option<&mut Base> {
        self.base.as_mut()
    }

    /// A base is durable, in place of the one before.
    pub fn put_base(&mut self, base: Base) {
        self.base = Some(base);
    }

    /// The log below `end` is gone; this stands for it, in place of what did before.
    pub fn cut(&mut self, checkpoint: Vec<Record>, end: usize) {
        assert!(end <= self.synced, "what is not synced is not cut");
        self.log.drain(..end - self.gone);
        (self.checkpoint, self.gone) = (checkpoint, end);
    }

    /// So many records are durable.
    pub fn synced(&self) -> usize {
        self.synced
    }

    /// Another disk, empty, takes its place.
    pub fn replace(&mut self) {
        *self = Self::new(self.config, self.random.clone());
        self.random.any(); // Or the new disk's syncs would take what the old one's took.
    }

    /// From now on nothing can be written, or everything again.
    pub fn fill(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// A sync takes so many times longer; 1 is as always.
    pub fn slow_down(&mut self, times: u32) {
        self.slowness = times.max(1);
    }

    /// Whether the log takes no more until the process starts again.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The number of records that were written to the log and not lost.
    pub fn len(&self) -> usize {
        self.gone + self.log.len()
    }

    /// Whether nothing was written to the log.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_protocol::commit::Attempt;
    use tyr_types::TransactionId;

    fn record(n: u128) -> Record {
        Record::Fenced { id: TransactionId(n), attempt: Attempt::default(), is_cleared: false }
    }

    fn disk() -> Disk {
        Disk::new(Disks::default(), Random::new(1))
    }

    #[test]
    fn a_sync_covers_what_was_written_before_it_began() {
        let mut disk = disk();
        assert!(disk.write(1, record(1), true).is_some());
        assert!(disk.write(2, record(2), true).is_none(), "one sync runs at a time");
        let first = disk.end_sync();
        assert_eq!(first.durable, [1]);
        assert!(first.next_us.is_some());
        assert_eq!(disk.end_sync().durable, [2]);
    }

    #[test]
    fn a_crash_keeps_what_is_synced_and_the_order_of_the_rest() {
        for seed in 0..50 {
            let mut disk = Disk::new(Disks::default(), Random::new(seed));
            disk.write(1, record(1), true);
            disk.end_sync();
            for n in 2..6 {
                disk.write(n, record(n.into()), n == 3);
            }
            disk.crash();
            let log = disk.open().log;
            assert!((1..=5).contains(&log.len()));
            let id = |(n, record): (usize, &Record)| match record {
                Record::Fenced { id, .. } => id.0 == n as u128 + 1,
                _ => false,
            };
            assert!(log.iter().enumerate().all(id), "{log:?}");
        }
    }

    #[test]
    fn a_log_that_was_settled_is_all_there_unless_the_disk_was_full() {
        let mut disk = disk();
        disk.write(1, record(1), false);
        disk.write(2, record(2), true);
        disk.settle();
        disk.crash();
        assert_eq!(disk.open().log.len(), 2);
        let mut kept = [0; 3];
        for seed in 0..50 {
            let mut disk = Disk::new(Disks::default(), Random::new(seed));
            disk.write(1, record(1), false);
            disk.write(2, record(2), false);
            disk.fill(true);
            disk.write(3, record(3), false);
            disk.settle();
            disk.crash();
            kept[disk.open().log.len()] += 1;
        }
        assert!(kept.iter().all(|times| *times > 0), "{kept:?}");
    }

    #[test]
    fn a_checkpoint_comes_back_in_place_of_the_log_that_is_gone() {
        let mut disk = disk();
        for n in 1..=4 {
            disk.write(n, record(n.into()), true);
        }
        disk.end_sync();
        disk.end_sync();
        disk.cut(vec![record(100), record(101)], 3);
        disk.write(5, record(5), false);
        assert_eq!((disk.len(), disk.synced()), (5, 4));
        let id = |record: &Record| match record {
            Record::Fenced { id, .. } => id.0,
            _ => 0,
        };
        let Opened { checkpoint, log, .. } = disk.open();
        let ids = |records: &[Record]| records.iter().map(id).collect::<Vec<_>>();
        assert_eq!((ids(checkpoint), ids(log)), (vec![100, 101], vec![4, 5]));
    }

    #[test]
    fn a_full_disk_refuses_everything_until_it_is_opened_with_room() {
        let mut disk = disk();
        disk.fill(true);
        disk.write(1, record(1), true);
        assert_eq!(disk.end_sync().failed, [1]);
        disk.fill(false);
        disk.write(2, record(2), true);
        assert_eq!(disk.end_sync().failed, [2]);
        disk.crash();
        assert_eq!(disk.open().log.len(), 0);
        disk.write(3, record(3), true);
        assert_eq!(disk.end_sync().durable, [3]);
    }
}
