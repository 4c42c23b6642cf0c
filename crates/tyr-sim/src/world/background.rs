//! What a node over the real store does at times of its own: syncs, segments made ahead, folds,
//! reads that take the disk.
//!
//! A node does these on threads beside the engine; here each step is an event, with time and
//! perhaps a crash before the next.

use tyr_engine::fold::Progress;
use tyr_engine::lists::Listing;
use tyr_engine::reads::Fetch;
use tyr_protocol::member::Event;
use tyr_protocol::message::{Address, Body as Content, Envelope};
use tyr_protocol::movement;
use tyr_types::{NodeId, Timestamp};

use super::node::Body;
use super::real::{Asked, Real};
use super::trace::Place;
use super::{Happening, World};

/// Shortest and longest time of a read that takes the disk, in microseconds.
const FETCH_US: (u64, u64) = (50, 2_000);

/// The shortest time between two steps of a fold when all has ended, in microseconds.
const SETTLED_US: u64 = 500_000;

impl World {
    /// When something comes to the process of this start: now, or when its machine goes on after
    /// a pause; never when that process is no more.
    fn comes_us(&self, node: NodeId, start: u64) -> Option<u64> {
        let machine = &self.nodes[usize::from(node.0)];
        self.runs(node, start).then(|| machine.paused_until_us.max(self.now_us))
    }

    /// The store of the process of this start, when it is a real one and not paused; when it is
    /// paused, what happens is put off.
    fn real(
        &mut self,
        node: NodeId,
        start: u64,
        again: impl FnOnce() -> Happening,
    ) -> Option<&mut Real> {
        let at_us = self.comes_us(node, start)?;
        if at_us > self.now_us {
            self.queue.push(at_us, again());
            return None;
        }
        match &mut self.nodes[usize::from(node.0)].body {
            Body::Real(real) => Some(real),
            Body::Model(_) => None,
        }
    }

    /// Does what steps of an engine asked for.
    pub(super) fn carry_out(&mut self, node: NodeId, asked: Vec<Asked>) {
        let start = self.nodes[usize::from(node.0)].starts;
        for asked in asked {
            match asked {
                Asked::Send(to, envelope) => {
                    if let Content::Movement(movement::Message::Copied { chunk, copy, .. }) =
                        &envelope.body
                    {
                        self.note_copy(node, chunk.clone(), copy.at);
                    }
                    self.send(to, envelope);
                }
                Asked::Logged(record, log_len) => self.logged(node, &record, log_len),
                Asked::Fetch(fetch) => {
                    let request = fetch.request();
                    if let (true, Some(at)) = (request.is_copy, fetch.at()) {
                        let chunk = (request.blob.clone(), self.chunk_of(request));
                        self.note_copy(node, chunk, at);
                    }
                    self.counters.fetches += 1;
                    let at_us = self.now_us + self.sampling.between(FETCH_US.0, FETCH_US.1);
                    self.queue.push(at_us, Happening::Fetch { node, start, fetch });
                }
                Asked::List(listing) => {
                    let at_us = self.now_us + self.sampling.between(FETCH_US.0, FETCH_US.1);
                    self.queue.push(at_us, Happening::List { node, start, listing });
                }
                Asked::Found(finding) => self.found(node, &finding),
                Asked::GoOn => self.go_on_later(node),
            }
        }
    }

    /// After some steps: whether something of the log is to go to the disk.
    pub(super) fn round(&mut self, node: NodeId, is_due: bool) {
        let machine = &mut self.nodes[usize::from(node.0)];
        let start = machine.starts;
        let Body::Real(real) = &mut machine.body else { return };
        let due = real.round(is_due);
        if let Some(after_us) = due.sync_us {
            self.queue.push(self.now_us + after_us, Happening::Synced { node, start });
        }
        if let Some(after_us) = due.prepare_us {
            self.queue.push(self.now_us + after_us, Happening::Prepare { node, start });
        }
        if let Some(after_us) = due.mark_us {
            self.queue.push(self.now_us + after_us, Happening::Mark { node, start });
        }
    }

    /// How far the log is durable is noted beside it.
    pub(super) fn mark(&mut self, node: NodeId, start: u64) {
        let again = || Happening::Mark { node, start };
        if let Some(real) = self.real(node, start, again) {
            real.mark();
        }
    }

    /// The next step of a piece of the log on its way to the disk.
    pub(super) fn sync(&mut self, node: NodeId, start: u64) {
        let now = self.nodes[usize::from(node.0)].now(self.now_us);
        let again = || Happening::Synced { node, start };
        let Some(real) = self.real(node, start, again) else { return };
        let (next_us, asked) = real.sync(now);
        if let Some(next_us) = next_us {
            return self.queue.push(self.now_us + next_us, again());
        }
        self.counters.syncs += 1;
        self.carry_out(node, asked);
        self.round(node, false);
    }

    /// The next step of making a segment of the log ahead.
    pub(super) fn prepare(&mut self, node: NodeId, start: u64) {
        let again = || Happening::Prepare { node, start };
        let next_us = self.real(node, start, again).and_then(Real::prepare);
        if let Some(next_us) = next_us {
            self.queue.push(self.now_us + next_us, again());
        }
    }

    /// A read that takes the disk comes to its end.
    pub(super) fn fetch(&mut self, node: NodeId, start: u64, fetch: Box<Fetch>) {
        let Some(at_us) = self.comes_us(node, start) else { return };
        if at_us > self.now_us {
            return self.queue.push(at_us, Happening::Fetch { node, start, fetch });
        }
        let is_own = fetch.is_own();
        let (asker, envelope) = fetch.finish();
        match is_own {
            true => self.step_node(node, Event::Receive(envelope)),
            false => self.send(asker, envelope),
        }
    }

    /// A listing comes to its end.
    pub(super) fn list(&mut self, node: NodeId, start: u64, listing: Box<Listing>) {
        let Some(at_us) = self.comes_us(node, start) else { return };
        if at_us > self.now_us {
            return self.queue.push(at_us, Happening::List { node, start, listing });
        }
        let listed = listing.make();
        let answer: Option<(Address, Envelope)> = match &self.nodes[usize::from(node.0)].body {
            Body::Real(real) => real.listed(listed),
            Body::Model(_) => None,
        };
        if let Some((to, envelope)) = answer {
            self.send(to, envelope);
        }
    }

    /// Some of what keeps a real store small.
    pub(super) fn keep(&mut self, node: NodeId, start: u64) {
        let floor = self.snapshot_floor();
        let (now_us, is_settled) = (self.now_us, self.settled_us.is_some());
        let again = || Happening::Cut { node, start };
        let Some(real) = self.real(node, start, again) else { return };
        let (progress, next_us) = real.keep(now_us, floor);
        let versions = real.versions_most() as u64;
        self.counters.versions_most = self.counters.versions_most.max(versions);
        match progress {
            Some(Progress::Folded) => self.counters.folds += 1,
            Some(Progress::Ended { .. }) => self.counters.cuts += 1,
            Some(Progress::Steps | Progress::Waits(_)) | None => {}
        }
        if self.tracer.is_on()
            && let Some(progress) = progress
        {
            let place = Place(Address::Node(node));
            self.tracer.line(now_us, &place, &format_args!("folds      {progress:?}"));
        }
        // When all has ended there is little to fold any more.
        let next_us = next_us.max(if is_settled { SETTLED_US } else { 0 });
        self.queue.push(now_us + next_us, again());
    }

    /// Down to where snapshots are read anywhere, as rumours tell it.
    fn snapshot_floor(&self) -> Option<Timestamp> {
        let members = self.nodes.iter().filter_map(super::Node::member);
        members.map(tyr_protocol::member::Member::snapshot_floor).min()
    }
}
