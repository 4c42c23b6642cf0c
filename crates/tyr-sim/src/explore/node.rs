//! A node of the explored cluster: the commit machine, what it has applied, and a driver that does
//! in one step all that a real one does before it looks at its next event.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tyr_protocol::chain::Ends;
use tyr_protocol::commit::{self, Commit, Decision, Effect, OutcomeRetention};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::Body;
use tyr_protocol::{Part, Rule};
use tyr_types::{BlobName, Epoch, ErrorKind, NodeId, Timestamp, Transaction};

use super::applied::AppliedContent;
use super::case::{BEGIN_US, Number, number};

/// Longer than anyone waits before it first asks about what is held up (F6); and all of a run is
/// shorter than outcomes are remembered (F4).
const TICK_US: u64 = 5_000_000;

/// What became of a transaction, as far as it can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It took effect then.
    Committed(Timestamp),
    /// It did not.
    Aborted(ErrorKind),
    /// It was too late to tell (F11).
    GivenUp,
}

impl From<&Decision> for Ending {
    fn from(decision: &Decision) -> Self {
        match decision {
            Decision::Commit(at) => Self::Committed(*at),
            given_up if given_up.is_given_up() => Self::GivenUp,
            Decision::Abort(abort) => Self::Aborted(abort.kind),
        }
    }
}

impl Ending {
    /// When it took effect, if it did.
    pub fn committed_at(self) -> Option<Timestamp> {
        match self {
            Self::Committed(at) => Some(at),
            Self::Aborted(_) | Self::GivenUp => None,
        }
    }

    /// What is known to whom both were said; `None` when only one of them can be so.
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::GivenUp, known) | (known, Self::GivenUp) => Some(known),
            (Self::Committed(at), Self::Committed(other)) => (at == other).then_some(self),
            (Self::Aborted(_), Self::Aborted(_)) => Some(self),
            (Self::Committed(_), Self::Aborted(_)) | (Self::Aborted(_), Self::Committed(_)) => None,
        }
    }
}

/// What can happen to a node.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A client submits a transaction, at this clock.
    Submit(Arc<Transaction>, u64),
    /// A client asks again about what it submitted then (F4).
    Retry(Arc<Transaction>, u64),
    /// A message of another node.
    Message(Body),
    /// What the machine asked to be made durable is, or `Resume`.
    Done(commit::Event),
    /// The monitors' new map (F1).
    Install(Arc<ClusterMap>),
    /// So much time passes that everything held up is asked about (F6).
    Tick,
    /// Much more time passes: the clock is this now.
    Age(u64),
    /// It tells the monitors how far it is done, its clock having been this then (F10).
    Renew(u64),
    /// The monitors tell it how far all are done (F10).
    Retain(u64),
}

/// What comes of a step.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Messages to other nodes, from the epoch that the node is in then.
    pub sent: Vec<(NodeId, Body)>,
    /// What will be done for the machine here.
    pub own: Vec<commit::Event>,
    /// Answers to clients.
    pub answers: Vec<(Number, Ending)>,
    /// How far it is done, for the monitors.
    pub done_to_us: Option<u64>,
}

/// A node that is up.
#[derive(Clone, Debug)]
pub struct Node {
    id: NodeId,
    commit: Commit,
    shelf: AppliedContent,
    map: Arc<ClusterMap>,
    elapsed_us: u64,
    /// What this node has heard or said of each transaction.
    endings: Vec<Option<Ending>>,
    broken: Option<Rule>,
}

impl Node {
    /// A node at the beginning.
    pub fn new(
        id: NodeId,
        map: &Arc<ClusterMap>,
        names: &[BlobName; 2],
        ahead_us: u64,
        broken: Option<Rule>,
    ) -> Self {
        let mut commit = Commit::clustered(id);
        let shelf = AppliedContent::new(names.clone());
        let install = commit::Event::Install { map: Arc::clone(map) };
        commit.step(0, install, &shelf, &mut Vec::new());
        commit.observe(Timestamp { epoch: map.epoch, clock: BEGIN_US + ahead_us, node: id.0 });
        // A node hears the monitors before it does anything; nobody is done with anything yet.
        commit.step(0, retain(0), &shelf, &mut Vec::new());
        if let Some(rule) = broken {
            commit.break_rule(rule);
        }
        let (map, endings) = (Arc::clone(map), Vec::new());
        Self { id, commit, shelf, map, elapsed_us: 0, endings, broken }
    }

    /// Its number.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The epoch that it is in.
    pub fn epoch(&self) -> Epoch {
        self.map.epoch
    }

    /// Its map.
    pub fn map(&self) -> &Arc<ClusterMap> {
        &self.map
    }

    /// What it has applied.
    pub fn shelf(&self) -> &AppliedContent {
        &self.shelf
    }

    /// What it has heard or said of a transaction.
    pub fn ending(&self, number: Number) -> Option<Ending> {
        self.endings.get(number).copied().flatten()
    }

    /// Whether nothing is in flight here, nor asked about.
    pub fn is_idle(&self) -> bool {
        self.commit.is_at_rest()
    }

    /// Whether something is in flight here.
    pub fn is_busy(&self) -> bool {
        !self.commit.is_empty()
    }

    /// What is in flight here, in words.
    pub fn brief(&self) -> String {
        self.commit.brief()
    }

    /// Feeds all that its future depends on to `hasher`; `floors` are all that there may be.
    pub fn fingerprint(&self, floors: &[u64], hasher: &mut impl Hasher) {
        self.commit.fingerprint(floors, hasher);
        self.shelf.fingerprint(hasher);
        // Which map an epoch has depends on who went down.
        self.map.live().for_each(|node| node.hash(hasher));
        (self.map.epoch, &self.endings).hash(hasher);
    }

    /// Takes in what happens.
    ///
    /// # Errors
    /// What is wrong with what the machine made of it.
    pub fn step(&mut self, happening: &Happening) -> Result<Outcome, String> {
        let mut outcome = Outcome::default();
        let event = match happening {
            Happening::Submit(transaction, begun_us) | Happening::Retry(transaction, begun_us) => {
                let begun = Timestamp { clock: *begun_us, ..Timestamp::ZERO };
                // A head answers so by itself; the machine alone does not look (F11).
                if !self.commit.remembers(transaction.id) && self.commit.is_forgotten(begun) {
                    outcome.answers.push((number(transaction.id), Ending::GivenUp));
                    return Ok(outcome);
                }
                self.observe(*begun_us);
                // Blobs are guessed to be empty.
                let chain = self.map.chain(transaction, &Ends::new());
                let chain = chain.map_err(|abort| format!("there is no chain: {abort:?}"))?;
                let transaction = Arc::clone(transaction);
                match matches!(happening, Happening::Retry(..)) {
                    false => commit::Event::Submit { transaction, chain, begun },
                    true => commit::Event::Retry { transaction, chain, begun },
                }
            }
            Happening::Message(Body::Commit(message)) => commit::Event::Receive(message.clone()),
            Happening::Message(Body::Recovery(message)) => commit::Event::Recover(message.clone()),
            Happening::Message(other) => {
                return Err(format!("not for a commit machine: {other:?}"));
            }
            Happening::Done(event) => event.clone(),
            Happening::Install(map) => {
                self.map = Arc::clone(map);
                commit::Event::Install { map: Arc::clone(map) }
            }
            Happening::Tick => {
                self.elapsed_us += TICK_US;
                commit::Event::Tick { elapsed_us: self.elapsed_us }
            }
            Happening::Age(clock_us) => {
                self.observe(*clock_us);
                return Ok(outcome);
            }
            Happening::Renew(horizon_us) => {
                outcome.done_to_us = Some(self.commit.done_since(*horizon_us));
                return Ok(outcome);
            }
            Happening::Retain(floor_us) => {
                self.commit.step(0, retain(*floor_us), &self.shelf, &mut Vec::new());
                // The next tick forgets.
                self.commit.done_since(0);
                return Ok(outcome);
            }
        };
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut effects = Vec::new();
            self.commit.step(0, event, &self.shelf, &mut effects);
            for effect in effects {
                self.execute(effect, &mut events, &mut outcome)?;
            }
            // Without a rule what it was for need not hold; what clients see is what matters then.
            if self.broken.is_none() {
                self.commit.invariants();
            }
        }
        Ok(outcome)
    }

    fn execute(
        &mut self,
        effect: Effect,
        events: &mut VecDeque<commit::Event>,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        match effect {
            Effect::Send { to, message } if to == self.id => {
                events.push_back(commit::Event::Receive(message));
            }
            Effect::Recover { to, message } if to == self.id => {
                events.push_back(commit::Event::Recover(message));
            }
            Effect::Send { to, message } => outcome.sent.push((to, Body::Commit(message))),
            Effect::Recover { to, message } => outcome.sent.push((to, Body::Recovery(message))),
            Effect::Persist { transaction, attempt, .. } => {
                outcome.own.push(commit::Event::Persisted { id: transaction.id, attempt });
            }
            Effect::Fence { id, attempt, is_cleared } => {
                outcome.own.push(commit::Event::Fenced { id, attempt, is_cleared });
            }
            Effect::Note { id, decision, is_synced } => {
                self.ends(number(id), Ending::from(&decision))?;
                if is_synced {
                    outcome.own.push(commit::Event::Noted { id });
                }
            }
            // It need not become durable.
            Effect::NoteHeard { .. } => {}
            Effect::Apply { transaction, chain, at } => {
                self.ends(number(transaction.id), Ending::Committed(at))?;
                let hop = chain.hops().iter().find(|hop| hop.node == self.id);
                let part = hop.map(|hop| &hop.part);
                self.shelf.apply(&transaction, at, |blob| match part {
                    Some(Part::Whole) => true,
                    Some(Part::Pieces(pieces)) => {
                        pieces.iter().any(|piece| piece.is_written && piece.blob == *blob)
                    }
                    None => false,
                })?;
            }
            Effect::Reply { id, decision, .. } => {
                let ending = Ending::from(&decision);
                self.ends(number(id), ending)?;
                outcome.answers.push((number(id), ending));
            }
            Effect::Misplaced { transaction, chain, blob, end } => {
                let mut ends = chain.ends().clone();
                ends.retain(|(of, _)| *of != blob);
                ends.push((blob, end));
                if let Ok(chain) = self.map.chain(&transaction, &ends) {
                    events.push_back(commit::Event::Reroute { id: transaction.id, chain });
                }
            }
            Effect::Resume => outcome.own.push(commit::Event::Resume),
            Effect::Moved { .. } => {} // Nobody reads.
            Effect::Recall { .. } => unreachable!("nobody has leases here"),
        }
        Ok(())
    }

    fn observe(&mut self, clock_us: u64) {
        let clock = self.commit.clock();
        self.commit.observe(Timestamp { clock: clock.clock.max(clock_us), ..clock });
    }

    /// Notes what became of a transaction: always the same.
    fn ends(&mut self, number: Number, ending: Ending) -> Result<(), String> {
        if self.endings.len() <= number {
            self.endings.resize(number + 1, None);
        }
        let known = self.endings[number].unwrap_or(ending);
        let Some(both) = known.and(ending) else {
            return Err(format!("transaction {number} ended {known:?} here, and now {ending:?}"));
        };
        self.endings[number] = Some(both);
        Ok(())
    }
}

/// The monitors say how far all are done.
fn retain(done_to_us: u64) -> commit::Event {
    commit::Event::Retain(OutcomeRetention { done_to_us, ..OutcomeRetention::UNKNOWN })
}
