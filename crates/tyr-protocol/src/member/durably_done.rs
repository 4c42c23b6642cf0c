//! How far this node is done with transactions, as far as its log has it (F10).
//!
//! Whoever hears that it is done forgets what it would need to know if it were not. So it says so
//! only of what its log has durably: a crash must not bring back what was finished with.

use super::execution::Promise;
use super::{Record, Store, Turn};

/// How far the node is done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DurablyDone {
    /// Up to here by the cluster's clock, durably.
    told_us: u64,
    /// Up to here, once so many records of the log are durable.
    coming: Option<(u64, u64)>,
    /// So many records of the log are durable.
    durable: u64,
}

impl DurablyDone {
    /// Up to here, durably; the monitors may know.
    pub fn told_us(&self) -> u64 {
        self.told_us
    }

    /// So many records of the log are durable.
    pub fn persisted(&mut self, number: u64) {
        self.durable = self.durable.max(number);
        if let Some((done_to_us, _)) = self.coming.take_if(|(_, records)| *records <= self.durable)
        {
            self.told_us = self.told_us.max(done_to_us);
        }
    }

    /// Checks what must hold between steps; so many records were given to the log.
    pub fn invariants(&self, records: u64) {
        assert!(self.durable <= records, "only what was written is durable");
        if let Some((done_to_us, until)) = self.coming {
            assert!(until > self.durable, "F10: what is durable is told");
            assert!(until <= records, "F10: it comes with a record that was written");
            assert!(done_to_us > self.told_us, "F10: what is coming is further than what was told");
        }
    }
}

impl<S: Store> Turn<'_, S> {
    /// Notes how far the node is, after a tick. What the log is asked to sync anyway says when that
    /// is durable; where nothing is, a record is written for it.
    pub(super) fn note_done(&mut self) {
        let done_to_us = self.member.commit.done_to_us();
        let records = self.member.records;
        let done = &mut self.member.done;
        if done.coming.is_some() || done_to_us <= done.told_us {
            return;
        }
        done.coming = Some((done_to_us, records));
        done.persisted(done.durable);
        let is_waited_for =
            self.member.promises.keys().next_back().is_some_and(|it| *it >= records);
        if self.member.done.coming.is_some() && !is_waited_for && !self.member.is_broken {
            let but = self.member.commit.unfinished().collect();
            self.persist(Record::Finished { but }, Some(Promise::Done));
        }
    }
}
