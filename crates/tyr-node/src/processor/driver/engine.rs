//! A step of the member, and what it asks for, in the order it was asked for.

use std::collections::VecDeque;
use std::sync::Arc;

use tyr_protocol::map::ClusterMap;
use tyr_protocol::member::{Effect, Event, Member, Record};
use tyr_protocol::message::{Address, Asked, Body, Envelope, ListRequest, Now, ReadRequest};
use tyr_types::{Error, Result, Timestamp};

use super::lists;
use super::pace::{Amount, Load, Pace};
use super::reads::{self, Found};
use super::stopwatch::Stopwatch;
use super::{Driver, Work};
use crate::agent::holdings::{Holdings, staging};
use crate::agent::journal::Journal;
use crate::clock;
use crate::trace::Watch;

/// What there is one of: the member, what it holds and its log.
pub(crate) struct Engine {
    member: Member,
    holdings: Holdings,
    journal: Journal,
    stopwatch: Stopwatch,
    pace: Pace,
    /// Sees what passes, if transactions are traced.
    watch: Option<Watch>,
    /// Kept for their memory.
    effects: Vec<Effect>,
    room: VecDeque<Work>,
    /// Why nothing is done any more.
    failure: Option<Error>,
    /// The last record that the log did not take; the member may have given up for it.
    refusal: Option<Error>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({:?})", self.holdings)
    }
}

impl Engine {
    /// A member that has been told what its log holds.
    pub fn new(member: Member, holdings: Holdings, journal: Journal) -> Self {
        Self {
            member,
            holdings,
            journal,
            stopwatch: Stopwatch::default(),
            pace: Pace::default(),
            watch: None,
            effects: Vec::new(),
            room: VecDeque::new(),
            failure: None,
            refusal: None,
        }
    }

    /// The member.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// What it holds.
    pub fn holdings(&mut self) -> &mut Holdings {
        &mut self.holdings
    }

    /// Its log.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Traces transactions from now on.
    pub fn watch_by(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Traces no more; what is open ends as it is.
    pub fn end_watch(&mut self) {
        if let Some(mut watch) = self.watch.take() {
            watch.close(clock::steady_us());
        }
    }

    /// What the log's end so far stands for, after the pages up to the clock `after`.
    pub fn checkpoint(&mut self, after: u64) -> Vec<Record> {
        self.member.checkpoint(after)
    }

    /// Why the node does nothing any more: it lets its lease run out, and has to be started again.
    pub fn failure(&self) -> Option<&Error> {
        let refusal = self.refusal.as_ref().filter(|_| self.member.is_broken());
        self.failure.as_ref().or_else(|| self.journal.failure()).or(refusal)
    }

    pub(super) fn take_room(&mut self) -> VecDeque<Work> {
        std::mem::take(&mut self.room)
    }

    pub(super) fn give_room(&mut self, room: VecDeque<Work>) {
        self.room = room;
    }

    /// What is in flight now, and how much may be.
    pub(super) fn load(&mut self) -> Load {
        let (count, len) = self.member.finished();
        let in_flight =
            Amount { count: self.member.in_flight() as u64, len: self.member.in_flight_len() };
        let load = self.pace.note(clock::steady_us(), Amount { count, len }, in_flight);
        self.member.set_room(load.has_room(Amount::default()));
        load
    }

    /// The time, for the member.
    pub fn now(&self) -> Now {
        Now { wall_us: clock::now_us(), monotonic_us: clock::steady_us() }
    }

    /// Works one thing off.
    pub(super) fn work(&mut self, driver: &Arc<Driver>, work: Work) {
        match work {
            Work::Event(event) => self.step(driver, event),
            Work::Synced(pending, result) => {
                let is_synced = result.is_ok();
                if let Err(error) = &result {
                    tracing::error!(%error, "the log takes no more until the node starts again");
                }
                for number in self.journal.settle(pending, &result) {
                    let event = match is_synced {
                        true => Event::Persisted { number },
                        false => Event::PersistFailed { number },
                    };
                    self.step(driver, event);
                }
            }
        }
    }

    /// A step of the member. What is refused by the log at once is the next step.
    fn step(&mut self, driver: &Arc<Driver>, event: Event) {
        let mut next = VecDeque::from([event]);
        while let Some(event) = next.pop_front() {
            if self.failure.is_some() {
                return;
            }
            let now = self.now();
            if let Event::Receive(envelope) = &event {
                self.learn(&envelope.body);
                self.stopwatch.asked(envelope, now.monotonic_us);
            }
            if let Some(watch) = &mut self.watch {
                watch.happened(&event, now);
            }
            let mut effects = std::mem::take(&mut self.effects);
            self.member.step(now, event, &mut self.holdings, &mut effects);
            if let Some(error) = self.holdings.failure() {
                tracing::error!(%error, "the store fails: the node takes no part any more");
                self.failure = Some(error.duplicate());
                return;
            }
            for effect in effects.drain(..) {
                next.extend(self.execute(driver, effect));
            }
            self.effects = effects;
        }
    }

    /// The store has to know of keyspaces before the member asks it about them.
    fn learn(&mut self, body: &Body) {
        if let Body::NewerMap(map) | Body::Effective(map) | Body::Prepare(map) = body {
            self.holdings.learn(map);
        }
    }

    fn execute(&mut self, driver: &Arc<Driver>, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Send { to, envelope } => {
                if to == Address::Node(self.member.node()) {
                    return Some(Event::Receive(envelope));
                }
                if let Some(envelope) = self.sent(envelope) {
                    if let Some(watch) = &mut self.watch {
                        watch.sent(to, &envelope.body, clock::steady_us);
                    }
                    self.note_answer(driver, to, &envelope.body);
                    driver.outlet.send(to, envelope);
                }
                None
            }
            Effect::Persist { number, record, is_synced } => {
                if let Some(watch) = &mut self.watch {
                    watch.logged(number, &record, clock::steady_us);
                }
                self.persist(&record, is_synced.then_some(number), number)
            }
            Effect::Serve { request, at } => self.serve(driver, request, at),
            Effect::List { client, request, map } => {
                self.list(driver, client, request, map);
                None
            }
            Effect::Found(finding) => {
                match finding.what.is_well() {
                    true => tracing::info!("scrubbing: {finding}"),
                    false => tracing::warn!("scrubbing: {finding}"),
                }
                None
            }
            Effect::Resume => Some(Event::Resume),
        }
    }

    fn persist(&mut self, record: &Record, waited: Option<u64>, number: u64) -> Option<Event> {
        let staged = self.staged(record);
        let appended = staged
            .and_then(|staged| self.journal.append(staged.as_ref().unwrap_or(record), waited));
        match appended {
            Ok(()) => None,
            Err(error) => {
                tracing::warn!(%error, "a record is not in the log");
                self.refusal = Some(error);
                Some(Event::PersistFailed { number })
            }
        }
    }

    /// The record as the log keeps it, if that is not as it is: large payloads are written once,
    /// where they will stay.
    fn staged(&mut self, record: &Record) -> Result<Option<Record>> {
        match record {
            Record::Validated { transaction, chain, attempt, begun, proposal, placed } => {
                let staged = self.holdings.stage(transaction)?;
                Ok(staged.map(|transaction| Record::Validated {
                    transaction: Arc::new(transaction),
                    chain: chain.clone(),
                    attempt: *attempt,
                    begun: *begun,
                    proposal: *proposal,
                    placed: placed.clone(),
                }))
            }
            Record::Aborted { id, .. } => {
                self.holdings.forget_staged(*id);
                Ok(None)
            }
            Record::Map(_)
            | Record::Fenced { .. }
            | Record::Decided { .. }
            | Record::Answered { .. }
            | Record::Recalled { .. }
            | Record::Finished { .. }
            | Record::Remembered { .. }
            | Record::Marked { .. }
            | Record::Standing { .. }
            | Record::Aside { .. }
            | Record::Installed { .. } => Ok(None),
        }
    }

    /// A message as it goes to others: what the log told of a transaction refers to this node's
    /// extents.
    fn sent(&mut self, envelope: Envelope) -> Option<Envelope> {
        use tyr_protocol::{commit, recovery};
        let mut envelope = envelope;
        let transaction = match &mut envelope.body {
            Body::Commit(commit::Message::Forward { transaction, .. }) => transaction,
            Body::Recovery(recovery::Message::Ask { transaction, .. }) => transaction,
            _ => return Some(envelope),
        };
        if staging::has_extents(transaction) {
            match self.holdings.inlined(transaction) {
                Ok(inlined) => *transaction = Arc::new(inlined),
                Err(error) => {
                    tracing::error!(%error, "a payload of the log cannot be read");
                    self.failure = Some(error);
                    return None;
                }
            }
        }
        Some(envelope)
    }

    /// Reads the store as it is now. What is not in memory is fetched elsewhere.
    fn serve(
        &mut self,
        driver: &Arc<Driver>,
        request: ReadRequest,
        at: Option<Timestamp>,
    ) -> Option<Event> {
        let clock = self.member.clock();
        self.holdings.know_from(self.member.known_from());
        let is_own = request.asker == Address::Node(self.member.node());
        let (asker, read) = (request.asker, request.read);
        match reads::begin(&mut self.holdings, request, at, clock) {
            Found::Now(body) if is_own => return Some(Event::Receive(self.envelope(body))),
            Found::Now(body) => {
                self.note_answer(driver, asker, &body);
                driver.outlet.send(asker, self.envelope(body));
            }
            Found::Later(later) => {
                let template = self.envelope(Body::FetchMap);
                let driver = Arc::clone(driver);
                let mut watch = self.stopwatch.hand_on(asker, read);
                blocking::unblock(move || {
                    let body = later.finish();
                    let answers = &driver.counts.answers;
                    watch.answered(asker, &body, answers, clock::steady_us());
                    let envelope = Envelope { body, ..template };
                    if is_own {
                        return driver.receive(std::iter::once(envelope));
                    }
                    driver.outlet.send(asker, envelope);
                    driver.outlet.flush();
                })
                .detach();
            }
        }
        None
    }

    /// Lists what there was at a moment; all of it is applied. Chunks may go to others meanwhile:
    /// then what was found counts for nothing.
    fn list(
        &mut self,
        driver: &Arc<Driver>,
        client: u64,
        request: ListRequest,
        map: Arc<ClusterMap>,
    ) {
        let (store, driver) = (Arc::clone(self.holdings.store()), Arc::clone(driver));
        blocking::unblock(move || {
            let body = lists::list(&store, driver.node, &map, &request);
            let envelope = driver.look(|engine| {
                let is_so = engine.member.has_listed_by(&map);
                engine.envelope(match is_so {
                    true => body,
                    false => Body::NotHere(Asked::Read(request.number)),
                })
            });
            driver.outlet.send(Address::Client(client), envelope);
            driver.outlet.flush();
        })
        .detach();
    }

    fn envelope(&self, body: Body) -> Envelope {
        self.member.envelope(body)
    }

    /// Counts what a client is answered.
    fn note_answer(&mut self, driver: &Driver, to: Address, body: &Body) {
        if let Address::Client(_) = to {
            self.stopwatch.answered(to, body, &driver.counts.answers, clock::steady_us());
        }
    }
}
