//! One term of a leader: what it decides, and what it commits before anybody hears of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use openraft::Vote;
use openraft::error::{CheckIsLeaderError, RaftError};
use tokio::sync::{mpsc, oneshot};
use tyr_protocol::lease::{Effect, Event, Grants};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_protocol::wire::{self, Outgoing};
use tyr_types::{Epoch, Error, ErrorKind, NodeId};

use super::batch::{Batch, Collector, TICK, Told, Wanted};
use super::{Deposed, forming};
use crate::cluster_log;
use crate::consensus::types::{Command, Reply};
use crate::monitor::Shared;
use tyr_control::Fault;
use tyr_control::status::Leadership;
use tyr_metadata::{Actor, Expected, Store, Transaction, reserved};
use tyr_runtime::clock;

/// After a pause as long as this in which nothing could be confirmed, nodes were silent because
/// nobody listened: they are given the time that a new leader would give them.
const GAP_US: u64 = 1_000_000;

/// Between two questions whether this still leads, when the last had no answer.
const UNSURE_PAUSE: Duration = Duration::from_millis(50);

const _: () = {
    assert!(TICK.as_micros() * 2 < GAP_US as u128, "a leader that looks around has no gap");
    assert!(UNSURE_PAUSE.as_micros() < GAP_US as u128);
};

/// The map as bytes.
pub(crate) fn map_bytes(map: &ClusterMap) -> Bytes {
    let mut outgoing = Outgoing::new();
    wire::encode_map(map, &mut outgoing);
    outgoing.take_bytes()
}

/// Whether this still leads.
enum Confirmed {
    Yes,
    /// No quorum answers: perhaps.
    Unsure,
    No,
}

/// The right to lead that a vote gave, as long as it lasts.
pub(super) struct Lead<'a> {
    pub shared: &'a Arc<Shared>,
    vote: Vote<u64>,
}

impl Lead<'_> {
    /// Whether a quorum, asked from now on, takes this for the leader.
    async fn confirm(&self) -> Confirmed {
        let patience = self.shared.options.election / 2;
        let asked = tokio::time::timeout(patience, self.shared.raft.ensure_linearizable());
        match asked.await {
            // Raft may have lost and won since: then this is another term.
            Ok(Ok(_)) => match self.shared.raft.with_raft_state(|it| *it.vote_ref()).await {
                Ok(vote) if vote == self.vote => Confirmed::Yes,
                Ok(_) | Err(_) => Confirmed::No,
            },
            Ok(Err(RaftError::APIError(CheckIsLeaderError::QuorumNotEnough(_)))) | Err(_) => {
                Confirmed::Unsure
            }
            Ok(Err(RaftError::APIError(CheckIsLeaderError::ForwardToLeader(_))))
            | Ok(Err(RaftError::Fatal(_))) => Confirmed::No,
        }
    }

    /// Returns when a quorum has confirmed that this leads.
    pub async fn confirm_patiently(&self) -> Result<(), Deposed> {
        loop {
            match self.confirm().await {
                Confirmed::Yes => return Ok(()),
                Confirmed::No => return Err(Deposed),
                Confirmed::Unsure => tokio::time::sleep(UNSURE_PAUSE).await,
            }
        }
    }

    /// Commits what only a leader writes; answers the revision. Waits as long as it takes: without
    /// a quorum there is nothing else to do.
    pub async fn commit(&self, transaction: Transaction) -> Result<u64, Deposed> {
        let command = Command { actor: Actor::System, transaction };
        let written = self.shared.raft.client_write(command).await.map_err(|_| Deposed)?;
        let is_own = written.log_id.leader_id == self.vote.leader_id;
        match written.data {
            Reply::Done(revision) if is_own => Ok(revision),
            Reply::Done(_) | Reply::Nothing | Reply::Refused(_) => Err(Deposed),
        }
    }
}

/// Who waits for what becomes of a proposal.
struct Waiting {
    /// The user who wants it, if it is one.
    by: Option<String>,
    answer: oneshot::Sender<Result<Epoch, Fault>>,
}

/// One term of a leader.
pub(super) struct Term<'a> {
    lead: Lead<'a>,
    grants: Grants,
    /// The revision of `cluster/map`.
    map_revision: u64,
    /// What is committed of `cluster/epoch_max`, and its revision; none before the first.
    reserved: (Epoch, Option<u64>),
    /// Who waits for what became of a proposal; bounded by those that wait in the machine.
    answers: BTreeMap<u64, Waiting>,
    proposals: u64,
    /// When it last decided something.
    stepped_us: u64,
}

impl<'a> Term<'a> {
    /// Begins where the former leader ended.
    pub async fn begin(shared: &'a Arc<Shared>, vote: Vote<u64>) -> Result<Term<'a>, Deposed> {
        let lead = Lead { shared, vote };
        forming::form(&lead).await?;
        // Confirmed, so everything is applied here that a former leader committed.
        lead.confirm_patiently().await?;
        let (map, map_revision, reserved) = {
            let store = shared.committed.read();
            let entry = store.get(reserved::MAP).ok_or(Deposed)?;
            let map = wire::decode_map(&entry.value).map_err(|_| Deposed)?;
            (Arc::new(map), entry.changed, reserved_in(&store))
        };
        let now_us = shared.now_us();
        let mut effects = Vec::new();
        let config = shared.options.lease;
        let grants = Grants::take_over(config, map, reserved.0, now_us, &mut effects);
        let (answers, proposals, stepped_us) = (BTreeMap::new(), 0, now_us);
        let mut term =
            Self { lead, grants, map_revision, reserved, answers, proposals, stepped_us };
        term.carry_out(effects).await?;
        Ok(term)
    }

    /// Leads until it cannot any more.
    pub async fn lead(&mut self, inbox: &mut mpsc::Receiver<Told>) -> Deposed {
        let mut collector = Collector::new();
        loop {
            let batch = collector.collect(inbox).await;
            if self.lead.shared.is_handing_over() {
                batch.told.into_iter().for_each(Told::refuse);
                return Deposed;
            }
            match self.lead.confirm().await {
                Confirmed::Yes => {}
                Confirmed::Unsure => {
                    batch.told.into_iter().for_each(Told::refuse);
                    tokio::time::sleep(UNSURE_PAUSE).await;
                    continue;
                }
                Confirmed::No => {
                    batch.told.into_iter().for_each(Told::refuse);
                    return Deposed;
                }
            }
            if let Err(deposed) = self.heed(batch).await {
                return deposed;
            }
        }
    }

    /// Tells those who wait that it is not known what became of what they proposed.
    pub fn end(self) {
        let text = "the leader of the monitors changed before the map did; look at the map whether \
                    it happened, and propose it again if not";
        for waiting in self.answers.into_values() {
            let error = Error::new(ErrorKind::TimedOut, text);
            _ = waiting.answer.send(Err(Fault::Refused(error.into())));
        }
    }

    /// Looks at what was said before a quorum confirmed that this leads.
    async fn heed(&mut self, batch: Batch) -> Result<(), Deposed> {
        let mut events = Vec::new();
        // Who has just been heard is not silent: before anything else is looked at.
        let (renewals, others): (Vec<Told>, Vec<Told>) = batch.told.into_iter().partition(
            |told| matches!(told, Told::Heard(it) if matches!(it.body, Body::Renew { .. })),
        );
        for told in renewals.into_iter().chain(others) {
            match told {
                Told::Heard(envelope) => events.extend(self.event(envelope)),
                Told::Propose(Wanted { change, by, answer }) => {
                    self.proposals += 1;
                    let other = self.answers.insert(self.proposals, Waiting { by, answer });
                    debug_assert!(other.is_none(), "each proposal has a number of its own");
                    events.push(Event::Propose { proposal: self.proposals, change });
                }
                Told::Look(answer) => {
                    let now_us = self.lead.shared.now_us();
                    _ = answer.send(Leadership::of(&self.grants, now_us));
                }
            }
        }
        if batch.is_tick {
            events.push(Event::Tick);
        }
        for event in events {
            self.step(event).await?;
        }
        Ok(())
    }

    async fn step(&mut self, event: Event) -> Result<(), Deposed> {
        let now_us = self.lead.shared.now_us();
        let mut effects = Vec::new();
        debug_assert!(self.stepped_us <= now_us, "the clock of a monitor never goes back");
        if now_us - self.stepped_us > GAP_US {
            self.grants.step(now_us, Event::Lead, &mut effects);
        }
        self.stepped_us = now_us;
        self.grants.step(now_us, event, &mut effects);
        self.carry_out(effects).await
    }

    /// What a node's message means; `FetchMap` is answered at once.
    fn event(&self, envelope: Envelope) -> Option<Event> {
        let Address::Node(node) = envelope.from else { return None };
        let (incarnation, epoch) = (envelope.incarnation, envelope.epoch);
        match envelope.body {
            Body::Renew { incarnation, epoch, sent_us, retention } => {
                Some(Event::Renew { node, incarnation, epoch, sent_us, retention })
            }
            Body::Prepared { epoch } => Some(Event::Prepared { node, incarnation, epoch }),
            Body::CaughtUp { epoch } => Some(Event::CaughtUp { node, incarnation, epoch }),
            Body::Return { incarnation, has_disk, level } => {
                Some(Event::Return { node, incarnation, epoch, has_disk, level })
            }
            Body::FetchMap => {
                if let Some(map) = self.grants.newer_than(epoch) {
                    self.send(node, Body::NewerMap(map));
                }
                None
            }
            Body::Commit(_)
            | Body::Recovery(_)
            | Body::Movement(_)
            | Body::Upload(_)
            | Body::Submit { .. }
            | Body::Read(_)
            | Body::CancelRead { .. }
            | Body::SnapshotEnded { .. }
            | Body::ListKeys { .. }
            | Body::Scan(_)
            | Body::KeyLease(_)
            | Body::KeyWatch(_)
            | Body::Moment { .. }
            | Body::Reply { .. }
            | Body::Keys { .. }
            | Body::Scanned { .. }
            | Body::Part(_)
            | Body::Refused { .. }
            | Body::NewerMap(_)
            | Body::NotHere(_)
            | Body::NotUnderstood { .. }
            | Body::Granted { .. }
            | Body::Prepare(_)
            | Body::Effective(_) => None,
        }
    }

    /// Commits what must be, then tells the nodes.
    async fn carry_out(&mut self, effects: Vec<Effect>) -> Result<(), Deposed> {
        // Whose wishes come true with the map.
        let fulfilled = effects.iter().filter_map(|effect| match effect {
            Effect::Answer { proposal, result: Ok(_) } => self.answers.get(proposal)?.by.clone(),
            Effect::Answer { result: Err(_), .. }
            | Effect::Publish(_)
            | Effect::Prepare { .. }
            | Effect::Grant { .. }
            | Effect::Inform { .. } => None,
        });
        let by: Vec<String> = fulfilled.collect();
        for effect in &effects {
            match effect {
                Effect::Publish(map) => self.publish(map, &by).await?,
                Effect::Prepare { map, .. } => self.reserve(map.epoch).await?,
                Effect::Grant { .. } | Effect::Inform { .. } | Effect::Answer { .. } => {}
            }
        }
        for effect in effects {
            match effect {
                Effect::Grant { to, incarnation, sent_us, duration_us, epoch, retention } => {
                    self.send(
                        to,
                        Body::Granted { incarnation, sent_us, duration_us, epoch, retention },
                    );
                }
                Effect::Prepare { to, map } => self.send(to, Body::Prepare(map)),
                Effect::Inform { to, map } => self.send(to, Body::Effective(map)),
                Effect::Publish(map) => {
                    for node in map.nodes.keys() {
                        self.send(*node, Body::Effective(Arc::clone(&map)));
                    }
                }
                Effect::Answer { proposal, result } => {
                    if let Some(waiting) = self.answers.remove(&proposal) {
                        _ = waiting
                            .answer
                            .send(result.map_err(|error| Fault::Refused(error.into())));
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a map the one in effect: in the place of the one that this leader knows, or not.
    async fn publish(&mut self, map: &ClusterMap, by: &[String]) -> Result<(), Deposed> {
        let path = reserved::path(reserved::MAP);
        let put = Transaction::new()
            .when(path.clone(), Expected::Revision(self.map_revision))
            .put(path, map_bytes(map));
        let put = {
            let store = self.lead.shared.committed.read();
            cluster_log::note(put, &store, map, by, clock::now_us())
        };
        let revision = self.lead.commit(put).await?;
        assert!(self.map_revision < revision, "a map that replaces another is a later change");
        self.map_revision = revision;
        Ok(())
    }

    /// Makes sure that no other leader asks anybody to prepare another map of this epoch.
    async fn reserve(&mut self, epoch: Epoch) -> Result<(), Deposed> {
        let (highest, revision) = self.reserved;
        if epoch <= highest {
            return Ok(());
        }
        let path = reserved::path(reserved::EPOCH_MAX);
        let expected = revision.map_or(Expected::Absent, Expected::Revision);
        let put = Transaction::new()
            .when(path.clone(), expected)
            .put(path, epoch.0.to_le_bytes().to_vec());
        let written = self.lead.commit(put).await?;
        debug_assert!(revision.is_none_or(|before| before < written), "it is a later change");
        self.reserved = (epoch, Some(written));
        Ok(())
    }

    fn send(&self, to: NodeId, body: Body) {
        let epoch = self.grants.map().epoch;
        let envelope = Envelope { epoch, incarnation: 0, from: Address::Monitors, body };
        (self.lead.shared.send)(to, envelope);
    }
}

/// The highest epoch that anybody was asked to prepare for, and the revision that says so.
fn reserved_in(store: &Store) -> (Epoch, Option<u64>) {
    match store.get(reserved::EPOCH_MAX) {
        Some(entry) => {
            let bytes = entry.value.first_chunk().copied().unwrap_or_default();
            (Epoch(u32::from_le_bytes(bytes)), Some(entry.changed))
        }
        None => (Epoch(0), None),
    }
}
