//! Makes a client's calls from what its workloads want, and writes down what came of them.
//!
//! A client does one thing after the other: reads, waits for the answer, reads on, commits, asks
//! what became of it if nobody told. Between two things it rests for a moment. All of this is
//! decided here and nothing of it is known to the session below, nor to the checkers. [`locked`] is
//! what is done under locks.

mod answers;
mod locked;
mod notifying;
mod taking_up;
mod watching;

use std::collections::VecDeque;
use std::sync::Arc;

use tyr_protocol::session::{Answer, Began, Call, Place, Want};
use tyr_types::{BlobOperations, ErrorKind, KeyspaceId, ReadCheck, Timestamp, Transaction};

use self::answers::{aborted, committed, failed, listed, read, saw, seen_of, stretched};
use self::notifying::Notifying;
use self::watching::Watching;
use super::calling::Run;
use super::copying::Copying;
use super::locking::Locking;
use super::paging::Paging;
use super::stretching::Stretching;
use super::uploading::{Afterwards, Uploading};
use super::{Then, Work, Workload, probe};
use crate::checker::{Deed, Entry, History, Replayed, Seen};
use crate::random::Random;
use crate::setup::Setup;

/// How often a client asks what became of a transaction before it gives up.
const ASKS_MAX: u32 = 3;

/// How long a client waits before it looks again whether everything is set up.
const SET_UP_US: u64 = 5_000;

/// How long a client that probes rests between two things, from and to.
const PROBE_PAUSE_US: (u64, u64) = (0, 20_000);

/// Snapshots that a client forgets to end, of a hundred: those end by time-out (V1).
const FORGOTTEN: u64 = 2;

/// What a client does next.
#[derive(Debug)]
pub enum Next {
    /// This call.
    Call(Call),
    /// Nothing before this time.
    Wait(u64),
    /// Nothing any more.
    Nothing,
}

/// What a client is in the middle of.
#[derive(Default)]
struct Doing {
    /// Its entry in the history.
    entry: usize,
    /// What it still has to read.
    reads: VecDeque<Want>,
    /// What a transaction does when it has read.
    then: Option<Then>,
    /// The methods that it runs.
    calling: Option<Run>,
    /// What it still has to list, and of which blobs.
    listing: Paging,
    /// Of what it still has to ask which bytes are written.
    stretching: Stretching,
    /// The moment of everything that was taken for it, or the kept one that it reads at.
    moment: Option<Timestamp>,
    /// Whether that is a kept one.
    is_kept: bool,
    /// The pause before each call but the first.
    pause_us: u64,
    /// What it will hand in to be validated.
    checks: Vec<ReadCheck>,
    /// What has to be ended when it is done.
    began: Vec<Began>,
    /// A transaction of unknown outcome, to ask for.
    asked: Option<Arc<Transaction>>,
    asks: u32,
    /// What it copies, until that was read.
    copying: Option<Copying>,
    /// What is uploaded ahead of its transaction.
    uploading: Option<Uploading>,
    /// What becomes of that.
    afterwards: Afterwards,
    /// Whether it is a part of the setting up.
    is_set_up: bool,
}

struct Client {
    random: Random,
    doing: Option<Doing>,
    /// The lock that it wants, or has, and the workload that wants it to.
    locking: Option<(usize, Locking)>,
    /// What it watches.
    watching: Option<Watching>,
    /// The notice that it sends.
    notifying: Option<Notifying>,
    /// What has to be ended before anything else.
    began: Vec<Began>,
    /// Whether an answer is due that belongs to no deed.
    is_ending: bool,
    /// Whether an answer is due about a lock.
    is_locking: bool,
    /// No sooner than this it does something.
    next_us: u64,
    /// Its stream for each workload.
    streams: Vec<Random>,
}

impl Client {
    fn is_idle(&self) -> bool {
        let is_watching = self.watching.is_some() || self.notifying.is_some();
        self.doing.is_none() && self.locking.is_none() && !is_watching
    }
}

/// All clients of a run.
pub struct Runner {
    workloads: Vec<Box<dyn Workload>>,
    clients: Vec<Client>,
    set_up: VecDeque<(usize, Vec<BlobOperations>)>,
    /// How long a client rests between two things, from and to, in microseconds.
    pause_us: (u64, u64),
    history: History,
    is_stopped: bool,
    /// Those from this one on only probe, one on each keyspace.
    probing_from: u16,
    /// What each of these has still to ask.
    probes: Vec<VecDeque<Work>>,
    /// Where the probe begins in the history; `None` before it.
    probed_from: Option<usize>,
    /// The kept moments, as those know who decide on them.
    kept: Vec<Timestamp>,
}

impl Runner {
    /// The clients of a run, before anything happened; takes the workloads out of it.
    pub fn new(setup: &mut Setup) -> Self {
        let (seed, clients, pause_us) = (setup.seed, setup.clients, setup.pause_us);
        let mut workloads = std::mem::take(&mut setup.workloads);
        let mut set_up = VecDeque::new();
        for (number, workload) in workloads.iter_mut().enumerate() {
            set_up.extend(workload.set_up().into_iter().map(|blobs| (number, blobs)));
        }
        let names: Vec<&str> = workloads.iter().map(|workload| workload.name()).collect();
        let client = |number: u64| Client {
            random: Random::of(seed, "client", number),
            doing: None,
            locking: None,
            watching: None,
            notifying: None,
            began: Vec::new(),
            is_ending: false,
            is_locking: false,
            next_us: 0,
            streams: names.iter().map(|name| Random::of(seed, name, number)).collect(),
        };
        let probing_from = clients;
        let clients = u64::from(clients) + setup.keyspaces.len() as u64;
        let clients = (0..clients).map(client).collect();
        let history = History::default();
        Self {
            workloads,
            clients,
            set_up,
            pause_us,
            history,
            is_stopped: false,
            probing_from,
            probes: Vec::new(),
            probed_from: None,
            kept: Vec::new(),
        }
    }

    /// These moments are kept now.
    pub fn know_kept(&mut self, moments: Vec<Timestamp>) {
        self.kept = moments;
    }

    /// From now on nothing new is begun.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// From now on each keyspace is asked to serve, of these chunk sizes.
    pub fn probe(&mut self, chunk_sizes: &[u64]) {
        self.probed_from = Some(self.history.entries.len());
        let keyspaces = (1..).map(KeyspaceId).zip(chunk_sizes);
        let history = &self.history;
        self.probes = keyspaces.map(|(id, size)| probe::probe(id, *size, history)).collect();
    }

    /// What the probe still waits for, in words.
    pub fn unprobed(&self) -> Option<String> {
        let is_over = self.probed_from.is_some() && self.probes.iter().all(VecDeque::is_empty);
        (!is_over).then(|| "not all was asked whether it serves".to_owned())
    }

    /// Where the probe begins in the history.
    pub fn probed_from(&self) -> usize {
        self.probed_from.unwrap_or(self.history.entries.len())
    }

    /// Whether everything that was begun has ended.
    pub fn is_idle(&self) -> bool {
        self.clients.iter().all(Client::is_idle)
    }

    /// What was done so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Checks each workload, after the history was found right.
    pub fn check(&self, end: &Replayed<'_>) -> Vec<String> {
        super::check(&self.workloads, &self.history, end)
    }

    /// The history, at the end of the run.
    pub fn into_history(self) -> History {
        self.history
    }

    /// What `client` does now. It must not be waiting for an answer.
    pub fn next(&mut self, client: u16, now_us: u64) -> Next {
        let number = client;
        let client = &mut self.clients[usize::from(number)];
        if !client.began.is_empty() {
            client.is_ending = true;
            return Next::Call(Call::End { began: std::mem::take(&mut client.began) });
        }
        if now_us < client.next_us {
            return Next::Wait(client.next_us);
        }
        if client.doing.is_none()
            && let Some(call) = self.go_on_locked(number, now_us)
        {
            return Next::Call(call);
        }
        if let Some(next) = self.go_on_watching(number, now_us) {
            return next;
        }
        let client = &self.clients[usize::from(number)];
        let is_busy = client.doing.is_some();
        if !is_busy && client.watching.is_some() {
            return Next::Wait(now_us + 1);
        }
        if !is_busy && client.locking.is_some() {
            return Next::Wait(client.next_us.max(now_us + 1)); // It goes by what it has read.
        }
        if !is_busy && !self.begin(number, now_us) {
            return match self.is_stopped {
                true => Next::Nothing,
                false => Next::Wait(now_us + SET_UP_US),
            };
        }
        let client = &self.clients[usize::from(number)];
        if client.watching.is_some() && client.doing.is_none() {
            return Next::Wait(now_us + 1);
        }
        if let Some(call) = self.go_on_notifying(number, now_us) {
            return Next::Call(call);
        }
        if self.clients[usize::from(number)].doing.is_none() {
            // It wants a lock.
            return match self.go_on_locked(number, now_us) {
                Some(call) => Next::Call(call),
                None => Next::Wait(now_us + SET_UP_US),
            };
        }
        Next::Call(self.go_on(number, now_us))
    }

    /// Begins something; `false` when there is nothing to begin.
    fn begin(&mut self, number: u16, now_us: u64) -> bool {
        if let Some(probe) = number.checked_sub(self.probing_from) {
            let probe = self.probes.get_mut(usize::from(probe));
            let Some(work) = probe.and_then(VecDeque::pop_front) else { return false };
            self.take_up(number, self.workloads.len(), work, now_us, false);
            return true;
        }
        if self.is_stopped || self.workloads.is_empty() {
            return false;
        }
        if let Some((workload, blobs)) = self.set_up.front() {
            let (workload, blobs) = (*workload, blobs.clone());
            if number == 0 {
                self.take_up(number, workload, Work::Commit(blobs), now_us, true);
            }
            return number == 0;
        }
        if self.clients.iter().any(|client| client.doing.as_ref().is_some_and(|it| it.is_set_up)) {
            return false;
        }
        let client = &mut self.clients[usize::from(number)];
        let workload = client.random.below(self.workloads.len() as u64) as usize;
        let work = self.workloads[workload].next(number, &mut client.streams[workload]);
        self.take_up(number, workload, work, now_us, false);
        true
    }

    /// The next call of what the client is in the middle of.
    fn go_on(&mut self, number: u16, now_us: u64) -> Call {
        let client = &mut self.clients[usize::from(number)];
        let doing = client.doing.as_mut().expect("it is in the middle of something");
        let deed = &mut self.history.entries[doing.entry].deed;
        if let Some(transaction) = doing.asked.take() {
            return Call::Ask { transaction };
        }
        match deed {
            Deed::ReadMany(seen) => {
                let wants: Vec<Want> = doing.reads.drain(..).collect();
                seen.extend(wants.iter().map(|want| Seen::asked(want.clone(), now_us)));
                Call::ReadMany { wants }
            }
            Deed::Read(_) => {
                let want = doing.reads.pop_front().expect("a single read is asked once");
                Call::Read { want, place: Place::Newest }
            }
            Deed::Snapshot(seen) if doing.reads.is_empty() && !doing.stretching.is_over() => {
                let at = seen.first().and_then(|first| first.at);
                let at = at.expect("the first read of a snapshot told its moment");
                let (call, asked) = doing.stretching.call(at, now_us);
                seen.push(asked);
                call
            }
            Deed::Snapshot(seen) if doing.reads.is_empty() => {
                doing.listing.call(seen.first().and_then(|first| first.at), now_us)
            }
            Deed::Snapshot(seen) => {
                let want = doing.reads.pop_front().expect("it ends with its last read");
                let known = doing.moment.or(seen.first().and_then(|first| first.at));
                let place = match known {
                    None => Place::Snapshot,
                    Some(at) => Place::At(at),
                };
                seen.push(Seen::asked(want.clone(), now_us));
                Call::Read { want, place }
            }
            Deed::Moment(seen) => {
                let Some(at) = doing.moment else { return Call::Moment };
                let want = doing.reads.pop_front().expect("it ends with its last read");
                seen.push(Seen::asked(want.clone(), now_us));
                Call::Read { want, place: Place::At(at) }
            }
            Deed::Transaction(attempted) => match doing.next_read(attempted, now_us) {
                Some(want) => {
                    let before = attempted.reads.iter();
                    let mut same = before.filter(|seen| seen.want.blob == want.blob);
                    let place = match same.next().and_then(|seen| seen.at) {
                        None => Place::Transaction,
                        Some(at) => Place::At(at),
                    };
                    attempted.reads.push(Seen::asked(want.clone(), now_us));
                    Call::Read { want, place }
                }
                None if !doing.listing.is_over() => {
                    // At the S of the first read: what came since need not be in it (R4).
                    let first = attempted.reads.first().expect("it has read before it lists");
                    doing.listing.call(first.at, first.start_us)
                }
                None => doing.commit(attempted),
            },
        }
    }

    /// The answer to the client's call.
    pub fn answered(&mut self, client: u16, answer: Answer, now_us: u64) {
        let number = client;
        let client = &mut self.clients[usize::from(number)];
        if std::mem::take(&mut client.is_ending) {
            return;
        }
        if std::mem::take(&mut client.is_locking) {
            return self.locked(number, &answer, now_us);
        }
        if !self.notified(number, &answer, now_us) && !self.watched(number, &answer) {
            self.heard_of(number, answer, now_us);
        }
    }

    /// The answer to a call of what the client is in the middle of.
    fn heard_of(&mut self, number: u16, answer: Answer, now_us: u64) {
        let client = &mut self.clients[usize::from(number)];
        let Some(doing) = client.doing.as_mut() else { return };
        let Entry { deed, pages, .. } = &mut self.history.entries[doing.entry];
        let is_done = match answer {
            Answer::Committed { transaction, at, outcomes } => {
                committed(deed, &transaction, at, outcomes);
                true
            }
            Answer::Aborted { transaction, abort } => aborted(deed, doing, transaction, abort),
            Answer::Read(seen) => {
                doing.copying.iter_mut().for_each(|copying| copying.saw(&seen));
                match doing.stretching.is_asking() {
                    true => stretched(deed, &mut doing.stretching, &seen, now_us),
                    false => read(deed, doing, seen, now_us),
                }
                let is_told = doing.listing.is_over() && doing.stretching.is_over();
                doing.reads.is_empty() && is_told && !matches!(deed, Deed::Transaction(_))
            }
            Answer::Moment { at, began } => {
                doing.moment = at;
                doing.began.extend(began);
                at.is_none()
            }
            Answer::Many { at, .. } if matches!(deed, Deed::Moment(_)) => {
                doing.moment = Some(at);
                false
            }
            Answer::Many { at, seen } => {
                for (mine, seen) in seen_of(deed).iter_mut().zip(seen) {
                    saw(mine, &seen, now_us);
                    mine.at = Some(at);
                }
                true
            }
            Answer::Page(page) => {
                listed(deed, doing, page, pages, now_us);
                doing.listing.is_over() && matches!(deed, Deed::Snapshot(_))
            }
            Answer::Staged(piece) => {
                self.history.uploaded(piece.id, doing.entry);
                doing.has_uploaded(piece)
            }
            Answer::Ended => {
                let is_over = doing.has_dropped();
                if is_over {
                    self.history.drop_pieces(doing.entry);
                }
                is_over
            }
            Answer::Leased { .. } | Answer::Watching { .. } | Answer::Notified(_) => false,
            Answer::Failed(abort) => {
                let is_kept =
                    doing.is_kept && doing.moment.is_some_and(|at| self.kept.contains(&at));
                let is_gone = abort.kind == ErrorKind::SnapshotTooOld;
                assert!(
                    !is_kept || !is_gone,
                    "violation: client {number} cannot read what is kept (V7): {abort:?}"
                );
                failed(deed, doing, abort, now_us);
                true
            }
        };
        let deed = &self.history.entries[doing.entry].deed;
        if is_done && doing.is_copied_next(deed) {
            self.begin_copy(number, now_us);
        } else if is_done {
            self.end(number, now_us);
        } else {
            client.next_us = now_us + doing.pause_us;
        }
    }

    fn end(&mut self, number: u16, now_us: u64) {
        let client = &mut self.clients[usize::from(number)];
        let Some(doing) = client.doing.take() else { return };
        if !client.random.percent(FORGOTTEN) {
            client.began = doing.began;
        }
        // Who probes does not rest for long, or it would be at it for minutes.
        let is_probing = number >= self.probing_from;
        let (low, high) = if is_probing { PROBE_PAUSE_US } else { self.pause_us };
        client.next_us = now_us + client.random.between(low, high);
        let entry = &mut self.history.entries[doing.entry];
        entry.end_us = Some(now_us);
        if let Some((_, locking)) = &mut client.locking {
            locking.heard(entry);
            client.next_us = now_us + locking.pause_us();
        }
        let is_answered = matches!(&entry.deed, Deed::Read(seen) if seen.is_answered());
        let is_committed =
            matches!(&entry.deed, Deed::Transaction(attempted) if attempted.is_committed());
        if doing.is_set_up && is_committed {
            self.set_up.pop_front();
        }
        // Nobody's idea is behind the probe.
        let workload = self.workloads.get_mut(entry.workload);
        if let Some(workload) = workload.filter(|_| !doing.is_set_up) {
            workload.answered(number, entry);
        }
        self.has_looked(number, is_answered, now_us);
    }
}
