//! Where requests are answered: by the leader here, or by handing them on to it.
//!
//! ```text
//!   request ─► leads here? ─yes─► execute ─► answer
//!                  │ no                ▲
//!                  └─► leader known? ──┘ handed on once, by the control plane
//!                        │ no
//!                        └─► wait, until the deadline ─► Unavailable, with what is known
//! ```

use std::time::Duration;

use openraft::ChangeMembers;
use openraft::error::{ClientWriteError, RaftError};
use openraft::impls::BasicNode;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tyr_protocol::map::Change;
use tyr_protocol::wire;
use tyr_types::{Epoch, Error, ErrorKind, NodeId, Result};

use super::audit;
use super::cluster_log;
use super::consensus::types::{Command, Reply};
use super::leadership::batch::{Told, Wanted};
use super::monitor::Monitor;
use tyr_control::record::{self, NodeRecord};
use tyr_control::status::{Bootstrap, Leadership, Status};
use tyr_control::{Answer, CallError, Fault, Proposal, Question, Request};
use tyr_metadata::access::{self, Wish};
use tyr_metadata::limits::LIST_MAX;
use tyr_metadata::{Actor, Expected, Transaction, reserved};

/// How long a monitor that has no vote any more is given to hear so.
const DISMISSAL_MAX: Duration = Duration::from_secs(2);

/// Between two looks for a leader.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How often it is tried to note something of a node while it tells something new of itself.
const NOTES_MAX: usize = 8;

/// Most numbers of nodes; the rest have a meaning elsewhere or none.
const NODES_MAX: u16 = u16::MAX - 1;

const _: () =
    assert!(LOOK_AGAIN.as_millis() < DISMISSAL_MAX.as_millis(), "it is looked at more than once");

fn refused(error: Error) -> Fault {
    Fault::Refused(error.into())
}

/// A request that came to nothing yet.
enum Attempt {
    /// Nobody did anything: it may be tried again.
    Nothing(String),
    /// It may have been done.
    Unknown(String),
}

impl Monitor {
    /// Answers a question, or has it answered. One that was handed on is answered here or not at
    /// all.
    pub(super) async fn answer(&self, actor: Actor, question: Question) -> Result<Answer, Fault> {
        let Question { actor: _, is_handed_on, patience_ms, request } = question;
        match &request {
            Request::Raft(call) => {
                let answered = self.shared.answer_raft(call).await;
                return answered.map(Answer::Raft).map_err(refused);
            }
            Request::Bootstrap => return Ok(Answer::Bootstrap(self.bootstrap())),
            Request::Leader => return Ok(Answer::Leader(self.leader().map(|node| node.0))),
            Request::Watch { .. } => {
                return Err(refused(Error::invalid("a watch is not a question but many")));
            }
            Request::Report | Request::Usage => {
                return Err(refused(Error::invalid("a node reports itself, no monitor for it")));
            }
            Request::Call(_) | Request::Seat(_) => {
                return Err(refused(Error::invalid("the node of an object runs its methods")));
            }
            Request::Get(_)
            | Request::List { .. }
            | Request::Transact(_)
            | Request::Propose(_)
            | Request::Status
            | Request::Admit { .. }
            | Request::Appoint { .. }
            | Request::Remark(_)
            | Request::Presence(_) => {}
        }
        // A little less than the asker waits, so that it hears why.
        let patience = Duration::from_millis(u64::from(patience_ms) * 9 / 10);
        let deadline = Instant::now() + patience.min(self.shared.options.patience);
        if !is_handed_on {
            return self.answer_by_leader(actor, request, deadline).await;
        }
        if self.leader() != Some(self.shared.options.node) || self.shared.is_handing_over() {
            return Err(Fault::NotLeader);
        }
        let is_repeatable = request.is_repeatable();
        match tokio::time::timeout_at(deadline, self.execute(&actor, request)).await {
            Ok(answer) => answer,
            Err(_) if is_repeatable => Err(Fault::NotLeader),
            Err(_) => Err(refused(unknown("no majority of the monitors answers"))),
        }
    }

    async fn answer_by_leader(
        &self,
        actor: Actor,
        request: Request,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        let is_status = matches!(request, Request::Status);
        let is_repeatable = request.is_repeatable();
        let mut last = "no monitor leads".to_owned();
        loop {
            let attempt = self.attempt(&actor, request.clone(), deadline);
            match tokio::time::timeout_at(deadline, attempt).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(Attempt::Nothing(text))) => last = text,
                Ok(Err(Attempt::Unknown(text))) if is_repeatable => last = text,
                Ok(Err(Attempt::Unknown(text))) => return Err(refused(unknown(&text))),
                Err(_) if is_repeatable => {}
                Err(_) => return Err(refused(unknown("no answer in time"))),
            }
            if is_status {
                // Who asks how the monitors are is told that there is no leader.
                return Ok(Answer::Status(self.status(None)));
            }
            if Instant::now() + LOOK_AGAIN >= deadline {
                let error = Error::unavailable(self.explain(&last));
                return Err(Fault::Leaderless(error.into()));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Has a request answered by whoever leads, if anybody does.
    async fn attempt(
        &self,
        actor: &Actor,
        request: Request,
        deadline: Instant,
    ) -> Result<Result<Answer, Fault>, Attempt> {
        let Some(leader) = self.leader() else {
            return Err(Attempt::Nothing("no monitor leads".to_owned()));
        };
        if leader == self.shared.options.node {
            if self.shared.is_handing_over() {
                return Err(Attempt::Nothing("this node stops, and hands over".to_owned()));
            }
            return match self.execute(actor, request).await {
                Err(Fault::NotLeader) => {
                    Err(Attempt::Nothing("this node leads no more, or has no majority".to_owned()))
                }
                answer => Ok(answer),
            };
        }
        let Some(address) = self.shared.address(u64::from(leader.0)) else {
            return Err(Attempt::Nothing(format!("nobody knows where node {} is", leader.0)));
        };
        let patience_ms = deadline.duration_since(Instant::now()).as_millis() as u32;
        let actor = Some(actor.clone());
        let question = Question { actor, is_handed_on: true, patience_ms, request };
        match self.shared.peers.call(&address, question).await {
            Ok(answer) => Ok(Ok(answer)),
            Err(CallError::Fault(Fault::NotLeader)) => {
                Err(Attempt::Nothing(format!("node {} leads no more", leader.0)))
            }
            Err(CallError::Fault(fault)) => Ok(Err(fault)),
            Err(CallError::NotSent(text) | CallError::Denied(text)) => Err(Attempt::Nothing(text)),
            Err(CallError::Lost(text)) => Err(Attempt::Unknown(text)),
        }
    }

    fn explain(&self, last: &str) -> String {
        let Status { node, leader, term, voters, .. } = self.status(None);
        let leader = leader.map_or("nobody".to_owned(), |leader| format!("node {leader}"));
        format!(
            "the monitors do not answer: {last} (asked at node {node}; in term {term} of the \
             monitors {voters:?} the leader is {leader}); a majority of them must be up and reach \
             each other"
        )
    }

    /// Answers a request, as the leader.
    async fn execute(&self, actor: &Actor, request: Request) -> Result<Answer, Fault> {
        match request {
            Request::Get(path) => {
                self.be_current().await?;
                let store = self.shared.committed.read();
                access::check(&store, actor, path.as_str(), Wish::Read).map_err(refused)?;
                Ok(Answer::Entry(store.get(path.as_str()).cloned()))
            }
            Request::List { prefix, after, limit } => {
                self.be_current().await?;
                let store = self.shared.committed.read();
                let limit = (limit as usize).min(LIST_MAX);
                let entries = store.list(actor, &prefix, after.as_deref(), limit);
                if entries.is_empty() && after.is_none() {
                    // Nothing that the actor may see is no nothing, unless it might see the whole.
                    access::check(&store, actor, &prefix, Wish::Read).map_err(refused)?;
                }
                Ok(Answer::Entries { entries, revision: store.revision() })
            }
            Request::Transact(transaction) => {
                self.write_guarded(actor, transaction).await.map(Answer::Revision)
            }
            Request::Presence(asked) => {
                let is_binding = !asked.is_repeatable();
                let revision = self.presence(actor, asked).await?;
                Ok(if is_binding { Answer::Revision(revision) } else { Answer::Done })
            }
            Request::Remark(remarks) => {
                self.note_remarks(actor, remarks).await.map(|()| Answer::Done)
            }
            Request::Propose(proposal) => {
                self.propose_here(actor, proposal).await.map(|epoch| Answer::Epoch(epoch.0))
            }
            Request::Status => {
                let leadership = self.look().await?;
                Ok(Answer::Status(self.status(Some(leadership))))
            }
            Request::Admit { wanted, record } => {
                self.admit(actor, wanted, record).await.map(|node| Answer::Admitted(node.0))
            }
            Request::Appoint { node, is_monitor } => {
                self.appoint(actor, NodeId(node), is_monitor).await.map(|()| Answer::Done)
            }
            Request::Raft(_)
            | Request::Watch { .. }
            | Request::Bootstrap
            | Request::Leader
            | Request::Report
            | Request::Usage
            | Request::Call(_)
            | Request::Seat(_) => {
                unreachable!("answered before anybody looks for a leader")
            }
        }
    }

    /// Returns when everything is applied here that anybody was told of.
    pub(super) async fn be_current(&self) -> Result<(), Fault> {
        let current = self.shared.raft.ensure_linearizable().await;
        current.map(|_| ()).map_err(|_| Fault::NotLeader)
    }

    pub(super) async fn write(
        &self,
        actor: &Actor,
        transaction: Transaction,
    ) -> Result<u64, Fault> {
        // Refused before it is in anybody's log; it is looked at again where it is applied.
        transaction.check().map_err(refused)?;
        let command = Command { actor: actor.clone(), transaction };
        match self.shared.raft.client_write(command).await {
            Ok(written) => match written.data {
                Reply::Done(revision) => Ok(revision),
                Reply::Refused(refusal) => Err(Fault::Refused(refusal)),
                Reply::Nothing => unreachable!("a command is no entry of Raft's own"),
            },
            // Raft says so of what never comes to be: it was cut off the log, or never in it.
            Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_))) => Err(Fault::NotLeader),
            Err(error) => Err(refused(unknown(&error.to_string()))),
        }
    }

    async fn propose_here(&self, actor: &Actor, proposal: Proposal) -> Result<Epoch, Fault> {
        check_administrator(actor, "change the cluster").map_err(refused)?;
        let change = Change::try_from(proposal).map_err(refused)?;
        let noted = self.note_before(actor, &change).await?;
        let (answer, answered) = oneshot::channel();
        let wanted = Wanted { change, by: cluster_log::user(actor).map(str::to_owned), answer };
        let result = match self.shared.inbox.try_send(Told::Propose(wanted)) {
            Ok(()) => {
                answered.await.unwrap_or_else(|_| Err(refused(unknown("the monitor was closed"))))
            }
            Err(_) => Err(Fault::NotLeader),
        };
        self.note_after(noted, &result).await;
        result
    }

    async fn look(&self) -> Result<Leadership, Fault> {
        let (answer, answered) = oneshot::channel();
        match self.shared.inbox.try_send(Told::Look(answer)) {
            Ok(()) => answered.await.map_err(|_| Fault::NotLeader),
            Err(_) => Err(Fault::NotLeader),
        }
    }

    /// Gives a node a number. One that asks again is known by its identity.
    async fn admit(
        &self,
        actor: &Actor,
        wanted: Option<u16>,
        record: NodeRecord,
    ) -> Result<NodeId, Fault> {
        check_administrator(actor, "let nodes join").map_err(refused)?;
        record.check().map_err(refused)?;
        self.be_current().await?;
        self.check_program(&record).await?;
        let (number, transaction) = {
            let store = self.shared.committed.read();
            let map = store.get(reserved::MAP).map(|entry| wire::decode_map(&entry.value));
            let map = map.transpose().map_err(refused)?;
            let known = record::records(&store);
            let again = known.iter().find(|(_, it)| it.identity == record.identity);
            // The map remembers nodes that were forgotten here.
            let ever = map.iter().flat_map(|map| map.nodes.keys()).chain(known.keys());
            let free = ever.max().map_or(0, |last| last.0 + 1);
            let number = again.map_or(wanted.unwrap_or(free), |(node, _)| node.0);
            let is_taken = again.is_none() && known.contains_key(&NodeId(number));
            if is_taken || number > NODES_MAX || wanted.is_some_and(|wanted| wanted != number) {
                let text = format!(
                    "node {number}: the number is not free, or the node has another one already; \
                     ask without a number"
                );
                return Err(refused(Error::new(ErrorKind::AlreadyExists, text)));
            }
            let path = reserved::node(NodeId(number));
            let expected = match store.get(path.as_str()) {
                Some(entry) if again.is_some() => Expected::Revision(entry.changed),
                Some(_) | None => Expected::Absent,
            };
            // Whether it is a monitor is decided by whoever appoints it.
            let is_monitor = again.map_or(record.is_monitor, |(_, known)| known.is_monitor);
            // What was told before and comes late takes nothing back.
            let generation = again
                .map_or(record.generation, |(_, known)| known.generation.max(record.generation));
            let value = NodeRecord { is_monitor, generation, ..record }.encode();
            let put = Transaction::new().when(path.clone(), expected).put(path, value);
            (NodeId(number), put)
        };
        self.write(&Actor::System, transaction).await.map(|_| number)
    }

    /// Makes a node a monitor that votes, or one no more. The node must run one that follows.
    async fn appoint(&self, actor: &Actor, node: NodeId, is_monitor: bool) -> Result<(), Fault> {
        check_administrator(actor, "appoint monitors").map_err(refused)?;
        self.be_current().await?;
        let id = u64::from(node.0);
        let known = record::record(&self.shared.committed.read(), node);
        let Some(record) = known else {
            let text = format!("node {} is not known; let it join first", node.0);
            return Err(refused(Error::not_found(text)));
        };
        let failed = |error: RaftError<u64, ClientWriteError<u64, BasicNode>>| match error {
            RaftError::APIError(ClientWriteError::ForwardToLeader(_)) => Fault::NotLeader,
            other => {
                refused(Error::unavailable("the monitors stay as they are").with_source(other))
            }
        };
        let raft = &self.shared.raft;
        let ids = std::collections::BTreeSet::from([id]);
        if is_monitor {
            let address = record.addresses.first().cloned().unwrap_or_default();
            raft.add_learner(id, BasicNode::new(address), true).await.map_err(failed)?;
            let changed = raft.change_membership(ChangeMembers::AddVoterIds(ids), true);
            changed.await.map_err(failed)?;
        } else {
            let removed = ChangeMembers::RemoveVoters(ids.clone());
            let dismissed = raft.change_membership(removed, true).await.map_err(failed)?;
            // If it runs it hears so, before nobody tells it anything any more: or it would take
            // itself for a monitor, and answer by what it knew.
            self.wait_until_told(id, dismissed.log_id.index).await;
            let forgotten = raft.change_membership(ChangeMembers::RemoveNodes(ids), false);
            forgotten.await.map_err(failed)?;
        }
        self.note_monitor(actor, node, is_monitor).await
    }

    /// Waits a moment for a follower to have this entry of the log.
    async fn wait_until_told(&self, node: u64, index: u64) {
        let deadline = Instant::now() + DISMISSAL_MAX;
        let has_it = || {
            let metrics = self.shared.raft.metrics();
            let metrics = metrics.borrow();
            let matched = metrics.replication.as_ref().and_then(|it| it.get(&node).copied());
            matched.flatten().is_some_and(|matched| matched.index >= index)
        };
        while !has_it() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Notes in what the node told of itself whether it is a monitor, and leaves the rest as it is.
    async fn note_monitor(
        &self,
        actor: &Actor,
        node: NodeId,
        is_monitor: bool,
    ) -> Result<(), Fault> {
        let path = reserved::node(node);
        for _ in 0..NOTES_MAX {
            let put = {
                let store = self.shared.committed.read();
                let entry = store.get(path.as_str()).map(|entry| entry.changed);
                let (Some(revision), Some(known)) = (entry, record::record(&store, node)) else {
                    return Ok(()); // It was forgotten meanwhile.
                };
                let value = NodeRecord { is_monitor, ..known }.encode();
                let expected = Expected::Revision(revision);
                let put = Transaction::new().when(path.clone(), expected).put(path.clone(), value);
                match known.is_monitor == is_monitor {
                    true => put,
                    false => self.with_act(actor, put, &store, audit::appointed(node, is_monitor)),
                }
            };
            let written = self.write(&Actor::System, put).await;
            // Where the node told something of itself in between, it is noted in that.
            if !matches!(&written, Err(Fault::Refused(refusal)) if refusal.is_conflict()) {
                return written.map(|_| ());
            }
        }
        Err(refused(Error::unavailable("the node tells new things of itself all the time; again")))
    }

    fn status(&self, leadership: Option<Leadership>) -> Status {
        let metrics = self.shared.raft.metrics().borrow().clone();
        let membership = metrics.membership_config.membership();
        let small = |node: u64| u16::try_from(node).ok();
        let (revision, epoch) = {
            let store = self.shared.committed.read();
            let map = store.get(reserved::MAP).map(|it| it.value.clone());
            let map = map.and_then(|bytes| wire::decode_map(&bytes).ok());
            (store.revision(), map.map(|map| map.epoch.0))
        };
        Status {
            node: self.shared.options.node.0,
            leader: metrics.current_leader.and_then(small),
            term: metrics.current_term,
            voters: membership.voter_ids().filter_map(small).collect(),
            learners: membership.learner_ids().filter_map(small).collect(),
            last_index: metrics.last_log_index,
            applied_index: metrics.last_applied.map(|it| it.index),
            revision,
            epoch,
            leadership,
        }
    }

    /// What a client needs to begin, as this monitor knows it.
    pub fn bootstrap(&self) -> Bootstrap {
        let cluster = self.cluster();
        let leader = self.leader().map(|node| node.0);
        let store = self.shared.committed.read();
        let map = store.get(reserved::MAP).map(|entry| entry.value.clone());
        let nodes = record::records(&store).into_iter().map(|(node, it)| (node.0, it)).collect();
        Bootstrap { cluster, map, nodes, leader, revision: store.revision() }
    }
}

fn unknown(text: &str) -> Error {
    let text = format!("{text}; whether it was done is not known, look before asking again");
    Error::new(ErrorKind::TimedOut, text)
}

fn check_administrator(actor: &Actor, what: &str) -> Result<()> {
    match actor {
        Actor::System | Actor::User { is_administrator: true, .. } => Ok(()),
        Actor::User { name, .. } => Err(Error::new(
            ErrorKind::PermissionDenied,
            format!("{name} may not {what}; an administrator may"),
        )),
    }
}
