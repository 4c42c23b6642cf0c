//! What a client begins: its entry in the history, and what it still has to read, list or ask.

use tyr_protocol::session::Call;
use tyr_types::{BlobOperations, Timestamp};

use super::super::Work;
use super::super::copying::Copying;
use super::super::locking::{Locked, Locking};
use super::super::paging::Paging;
use super::super::stretching::Stretching;
use super::super::uploading::{Afterwards, Uploading};
use super::{Doing, Runner};
use crate::checker::{Attempted, Deed, Entry, Fate, Seen};

impl Doing {
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
    let (reads, answers) = (Vec::new(), Vec::new());
    Attempted { id: None, reads, blobs, fate: Fate::NotSubmitted, answers }
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
        let (mut listing, mut stretching, mut copying, mut afterwards) = Default::default();
        let (moment, work) = self.at_kept(client, work);
        let (deed, reads, then, pause_us) = match work {
            Work::Commit(blobs) => (Deed::Transaction(attempted(blobs)), Vec::new(), None, 0),
            Work::Upload { blobs, afterwards: its, pause_us } => {
                afterwards = its;
                (Deed::Transaction(attempted(blobs)), Vec::new(), None, pause_us)
            }
            Work::Copy { copied, pause_us } => {
                let deed = match copied.is_validated {
                    true => Deed::Transaction(attempted(Vec::new())),
                    false => Deed::Snapshot(Vec::new()),
                };
                let reads = vec![copied.from.clone()];
                copying = Some(Copying::new(copied));
                (deed, reads, None, pause_us)
            }
            Work::Transact { reads, then } => {
                (Deed::Transaction(attempted(Vec::new())), reads, Some(then), 0)
            }
            Work::TransactListing { first, scans, among, then } => {
                listing = Paging::new(scans, among);
                (Deed::Transaction(attempted(Vec::new())), vec![first], Some(then), 0)
            }
            Work::Read(want) => {
                (Deed::Read(Seen::asked(want.clone(), now_us)), vec![want], None, 0)
            }
            Work::Snapshot { reads, pause_us } => {
                (Deed::Snapshot(Vec::new()), reads, None, pause_us)
            }
            Work::Moment { reads, pause_us } => (Deed::Moment(Vec::new()), reads, None, pause_us),
            Work::List { first, scans, among, pause_us } => {
                listing = Paging::new(scans, among);
                (Deed::Snapshot(Vec::new()), vec![first], None, pause_us)
            }
            Work::Stretches { first, range, chunk_size, pause_us } => {
                stretching = Stretching::new(&first.blob, range, chunk_size);
                (Deed::Snapshot(Vec::new()), vec![first], None, pause_us)
            }
            Work::AtKept(_) => unreachable!("it was just looked into"),
            Work::ReadMany(reads) => (Deed::ReadMany(Vec::new()), reads, None, 0),
            Work::Watch(what) => return self.begin_watching(client, workload, what),
            Work::Notify { blob, timeout_us } => {
                return self.begin_notifying(client, blob, timeout_us);
            }
            Work::Locked(locked) => return self.begin_locking(client, workload, locked),
        };
        let pages = Vec::new();
        let entry = Entry { client, workload, start_us: now_us, end_us: None, deed, pages };
        self.history.entries.push(entry);
        self.clients[usize::from(client)].doing = Some(Doing {
            entry: self.history.entries.len() - 1,
            reads: reads.into(),
            listing,
            stretching,
            then,
            moment,
            is_kept: moment.is_some(),
            pause_us,
            checks: Vec::new(),
            began: Vec::new(),
            asked: None,
            asks: 0,
            copying,
            uploading: None,
            afterwards,
            is_set_up,
        });
    }
}
