//! What a client begins: its entry in the history, and what it still has to read, list or ask.

use tyr_protocol::session::{Call, Want};
use tyr_types::{BlobOperations, Timestamp};

use super::super::Work;
use super::super::calling::Ran;
use super::super::copying::Copying;
use super::super::locking::{Locked, Locking};
use super::super::paging::Paging;
use super::super::stretching::Stretching;
use super::super::uploading::{Afterwards, Uploading};
use super::{Doing, Runner};
use crate::checker::{Attempted, Deed, Entry, Fate, Seen};

impl Doing {
    /// What a transaction reads next: what it was to read, or what its methods ask for.
    pub(super) fn next_read(&mut self, attempted: &mut Attempted, now_us: u64) -> Option<Want> {
        if let Some(want) = self.reads.pop_front() {
            return Some(want);
        }
        match self.calling.as_mut()?(&attempted.reads, now_us) {
            Ran::Wants(want) => Some(want),
            Ran::Through { blobs, calls } => {
                (attempted.blobs, attempted.calls, self.calling) = (blobs, calls, None);
                None
            }
        }
    }

    /// What goes into the history of some work, and what a client is in the middle of then.
    fn of(work: Work, now_us: u64) -> (Deed, Self) {
        let transaction = |blobs| Deed::Transaction(attempted(blobs));
        let mut doing = Self::default();
        let deed = match work {
            Work::Commit(blobs) => transaction(blobs),
            Work::Upload { blobs, afterwards, pause_us } => {
                (doing.afterwards, doing.pause_us) = (afterwards, pause_us);
                transaction(blobs)
            }
            Work::Copy { copied, pause_us } => {
                (doing.reads, doing.pause_us) = ([copied.from.clone()].into(), pause_us);
                let is_validated = copied.is_validated;
                doing.copying = Some(Copying::new(copied));
                match is_validated {
                    true => transaction(Vec::new()),
                    false => Deed::Snapshot(Vec::new()),
                }
            }
            Work::Transact { reads, then } => {
                (doing.reads, doing.then) = (reads.into(), Some(then));
                transaction(Vec::new())
            }
            Work::Call(run) => {
                doing.calling = Some(run);
                transaction(Vec::new())
            }
            Work::TransactListing { first, scans, among, then } => {
                (doing.reads, doing.then) = ([first].into(), Some(then));
                doing.listing = Paging::new(scans, among);
                transaction(Vec::new())
            }
            Work::Read(want) => {
                doing.reads = [want.clone()].into();
                Deed::Read(Seen::asked(want, now_us))
            }
            Work::Snapshot { reads, pause_us } => {
                (doing.reads, doing.pause_us) = (reads.into(), pause_us);
                Deed::Snapshot(Vec::new())
            }
            Work::Moment { reads, pause_us } => {
                (doing.reads, doing.pause_us) = (reads.into(), pause_us);
                Deed::Moment(Vec::new())
            }
            Work::List { first, scans, among, pause_us } => {
                (doing.reads, doing.pause_us) = ([first].into(), pause_us);
                doing.listing = Paging::new(scans, among);
                Deed::Snapshot(Vec::new())
            }
            Work::Stretches { first, range, chunk_size, pause_us } => {
                doing.stretching = Stretching::new(&first.blob, range, chunk_size);
                (doing.reads, doing.pause_us) = ([first].into(), pause_us);
                Deed::Snapshot(Vec::new())
            }
            Work::ReadMany(reads) => {
                doing.reads = reads.into();
                Deed::ReadMany(Vec::new())
            }
            Work::AtKept(_) | Work::Watch(_) | Work::Notify { .. } | Work::Locked(_) => {
                unreachable!("it was looked into before")
            }
        };
        (deed, doing)
    }

    /// A transaction has read all: what it uploads, or drops of that, and then what it commits.
    pub(super) fn commit(&mut self, attempted: &mut Attempted) -> Call {
        if let Some(then) = self.then.take() {
            attempted.blobs = then(&attempted.reads);
        }
        if let Some(copying) = self.copying.take() {
            let (blobs, uploading) = copying.transaction();
            (attempted.blobs, self.uploading) = (blobs, Some(uploading));
        }
        let uploading = self.uploading.get_or_insert_with(|| Uploading::of(&attempted.blobs));
        if let Some(upload) = uploading.next() {
            return upload;
        }
        if self.afterwards == Afterwards::Drop
            && let Some(drop) = uploading.next_drop()
        {
            return drop;
        }
        attempted.fate = Fate::Pending;
        let reads = std::mem::take(&mut self.checks);
        Call::Commit { blobs: uploading.named(&attempted.blobs), reads }
    }

    /// Whether what it has read in a snapshot is copied now.
    pub(super) fn is_copied_next(&self, deed: &Deed) -> bool {
        let is_read = matches!(deed, Deed::Snapshot(seen) if seen.iter().all(Seen::is_answered));
        is_read && self.copying.as_ref().is_some_and(Copying::has_seen)
    }
}

/// A transaction that was not submitted yet.
fn attempted(blobs: Vec<BlobOperations>) -> Attempted {
    let (reads, answers, calls) = Default::default();
    Attempted { id: None, reads, blobs, fate: Fate::NotSubmitted, answers, calls }
}

impl Runner {
    /// A client has read in a snapshot what it copies: that is a deed of its own, and so is the
    /// transaction, which begins now. What the snapshot keeps is kept on.
    pub(super) fn begin_copy(&mut self, client: u16, now_us: u64) {
        let Some(doing) = &mut self.clients[usize::from(client)].doing else { return };
        let read = &mut self.history.entries[doing.entry];
        read.end_us = Some(now_us);
        let deed = Deed::Transaction(attempted(Vec::new()));
        let (workload, pages) = (read.workload, Vec::new());
        let entry = Entry { client, workload, start_us: now_us, end_us: None, deed, pages };
        self.history.entries.push(entry);
        doing.entry = self.history.entries.len() - 1;
        doing.checks.clear(); // It does not depend on what was read.
    }

    /// What is to be done, and the kept moment to do it at, if it is to be and there is one.
    fn at_kept(&mut self, client: u16, work: Work) -> (Option<Timestamp>, Work) {
        match work {
            Work::AtKept(work) if self.kept.is_empty() => (None, *work),
            Work::AtKept(work) => {
                let random = &mut self.clients[usize::from(client)].random;
                (Some(random.pick(&self.kept)), *work)
            }
            work => (None, work),
        }
    }

    fn begin_locking(&mut self, client: u16, workload: usize, locked: Locked) {
        self.clients[usize::from(client)].locking = Some((workload, Locking::new(locked)));
    }

    /// A client takes up something, as its own workload wants it.
    pub(super) fn take_up(
        &mut self,
        client: u16,
        workload: usize,
        work: Work,
        now_us: u64,
        is_set_up: bool,
    ) {
        let (moment, work) = self.at_kept(client, work);
        let work = match work {
            Work::Watch(what) => return self.begin_watching(client, workload, what),
            Work::Notify { blob, timeout_us } => {
                return self.begin_notifying(client, blob, timeout_us);
            }
            Work::Locked(locked) => return self.begin_locking(client, workload, locked),
            work => work,
        };
        let (deed, doing) = Doing::of(work, now_us);
        let (entry, pages) = (self.history.entries.len(), Vec::new());
        let begun = Entry { client, workload, start_us: now_us, end_us: None, deed, pages };
        self.history.entries.push(begun);
        let is_kept = moment.is_some();
        let doing = Doing { entry, moment, is_kept, is_set_up, ..doing };
        self.clients[usize::from(client)].doing = Some(doing);
    }
}
