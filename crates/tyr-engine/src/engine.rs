//! A step of the member, and what it asks for, in the order it was asked for.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tyr_protocol::member::{Effect, Event, Member, Record};
use tyr_protocol::message::{Address, Asked, Body, Envelope, ReadRequest};
use tyr_store::store::{OpenedNode, Reread, Store, Visit};
use tyr_types::{Error, ExtentRef, Result, Timestamp};

use crate::holdings::{Held, Holdings, staging};
use crate::host::{Host, Trouble};
use crate::journal::{Journal, Piece};
use crate::lists::{Listed, Listing};
use crate::reads::{self, Fetch, Found};

/// What there is one of: the member, what it holds and its log.
pub struct Engine<H = Holdings> {
    member: Member,
    held: H,
    journal: Journal,
    /// Whether the member may hold transactions that refer to extents: the log told of such.
    may_refer: bool,
    /// Kept for its memory.
    effects: Vec<Effect>,
    /// Why nothing is done any more.
    failure: Option<Error>,
    /// The last record that the log did not take; the member may have given up for it.
    refusal: Option<Error>,
}

impl<H: std::fmt::Debug> std::fmt::Debug for Engine<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({:?})", self.held)
    }
}

impl<H: Held> Engine<H> {
    /// Opens the store with `open`, which shows each record of the log to what it is given, and
    /// tells the member what the log holds. What is kept in the store is `hold`'s.
    ///
    /// # Errors
    /// What `open` says; `Corrupt` when a record is none.
    pub fn open<L>(
        mut member: Member,
        hold: impl Fn(Arc<Store>) -> H,
        open: impl FnOnce(Visit<'_>) -> Result<OpenedNode<L>>,
    ) -> Result<(Self, L)> {
        let mut held: Option<H> = None;
        let mut may_refer = false;
        let mut visit = |store: &Arc<Store>, reread: Reread, extents: &mut Vec<ExtentRef>| {
            let held = held.get_or_insert_with(|| hold(Arc::clone(store)));
            let (Reread::Checkpoint(body) | Reread::Log(body)) = &reread;
            let record = tyr_protocol::wire::decode_record(body)?;
            held.holdings_mut().meet(&record, extents);
            may_refer |= !extents.is_empty();
            match reread {
                Reread::Checkpoint(_) => member.replay_checkpoint(record, held),
                Reread::Log(_) => member.replay(record, held),
            }
            held.holdings().check()
        };
        let OpenedNode { store, log, lock, torn_tail: _ } = open(&mut visit)?;
        let held = held.unwrap_or_else(|| hold(store));
        let engine = Self {
            member,
            held,
            journal: Journal::new(log),
            may_refer,
            effects: Vec::new(),
            failure: None,
            refusal: None,
        };
        Ok((engine, lock))
    }

    /// The member.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Whether clients may begin something new.
    pub fn set_room(&mut self, has_room: bool) {
        self.member.set_room(has_room);
    }

    /// What it holds, as it was given.
    pub fn held(&mut self) -> &mut H {
        &mut self.held
    }

    /// What it holds.
    pub fn holdings(&mut self) -> &mut Holdings {
        self.held.holdings_mut()
    }

    /// The store of what it holds.
    pub fn store(&self) -> &Arc<Store> {
        self.held.holdings().store()
    }

    /// Its log.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// What the log's end so far stands for, after the pages up to the clock `after`.
    pub fn checkpoint(&mut self, after: u64) -> Vec<Record> {
        let records = self.member.checkpoint(after).into_iter();
        let held = &self.held;
        records.map(|record| record.with_content(|id| held.staged_content(id))).collect()
    }

    /// The extents that the member's transactions refer to: those that the log told of. What is
    /// sent of them, and what stands for the log, is read from there, also when all that was
    /// written to blobs has been overwritten.
    pub fn referred(&mut self) -> BTreeSet<ExtentRef> {
        if !self.may_refer {
            debug_assert!(
                self.member.transactions().flat_map(staging::extents).next().is_none(),
                "an extent that a transaction refers to would be given back"
            );
            return BTreeSet::new();
        }
        let extents: BTreeSet<_> =
            self.member.transactions().flat_map(staging::extents).copied().collect();
        self.may_refer = !extents.is_empty(); // Others than these never come.
        extents
    }

    /// Why the node does nothing any more: it lets its lease run out, and has to be started again.
    pub fn failure(&self) -> Option<&Error> {
        let refusal = self.refusal.as_ref().filter(|_| self.member.is_broken());
        self.failure.as_ref().or_else(|| self.journal.failure()).or(refusal)
    }

    /// The last record that the log did not take.
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    /// A piece of the log came back: it is durable, or failed to become so.
    pub fn synced(&mut self, host: &mut impl Host, piece: Piece, result: &Result<()>) {
        if let Err(error) = result {
            host.trouble(Trouble::Log, error);
        }
        for number in self.journal.settle(piece, result) {
            let event = match result {
                Ok(()) => Event::Persisted { number },
                Err(_) => Event::PersistFailed { number },
            };
            self.step(host, event);
        }
    }

    /// What a listing found came back: where it goes to, and how. Chunks may have gone to others
    /// meanwhile: then it counts for nothing.
    pub fn listed(&self, listed: Listed) -> (Address, Envelope) {
        let Listed { client, number, map, body } = listed;
        let body = match self.member.has_listed_by(&map) {
            true => body,
            false => Body::NotHere(Asked::Read(number)),
        };
        (Address::Client(client), self.envelope(body))
    }

    /// A step of the member. What is refused by the log at once is the next step.
    pub fn step(&mut self, host: &mut impl Host, event: Event) {
        let mut next = VecDeque::from([event]);
        while let Some(event) = next.pop_front() {
            if self.failure.is_some() {
                return;
            }
            let now = host.now();
            if let Event::Receive(envelope) = &event {
                self.held.holdings_mut().hear(&envelope.body);
            }
            host.hears(&event, now);
            let mut effects = std::mem::take(&mut self.effects);
            debug_assert!(effects.is_empty(), "what the step before asked for was done");
            self.member.step(now, event, &mut self.held, &mut effects);
            if let Err(error) = self.held.holdings().check() {
                host.trouble(Trouble::Store, &error);
                self.failure = Some(error);
                return;
            }
            for effect in effects.drain(..) {
                next.extend(self.execute(host, effect));
            }
            self.effects = effects;
        }
    }

    fn execute(&mut self, host: &mut impl Host, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Send { to, envelope } => {
                if to == Address::Node(self.member.node()) {
                    return Some(Event::Receive(envelope));
                }
                if let Some(envelope) = self.sent(host, envelope) {
                    host.send(to, envelope);
                }
                None
            }
            Effect::Persist { number, record, is_synced } => {
                self.persist(host, &record, is_synced.then_some(number), number)
            }
            Effect::Serve { request, at } => self.serve(host, request, at),
            Effect::List { client, request, form, bytes_at, map } => {
                let store = Arc::clone(self.held.holdings().store());
                let node = self.member.node();
                host.list(Listing { store, node, client, request, form, bytes_at, map });
                None
            }
            Effect::Found(finding) => {
                host.found(finding);
                None
            }
            Effect::Resume => Some(Event::Resume),
            Effect::Yield => {
                host.go_on_later();
                None
            }
        }
    }

    fn persist(
        &mut self,
        host: &mut impl Host,
        record: &Record,
        waited: Option<u64>,
        number: u64,
    ) -> Option<Event> {
        let staged = self.staged(record);
        let appended = staged
            .and_then(|staged| self.journal.append(staged.as_ref().unwrap_or(record), waited));
        host.logs(number, record, appended.as_ref().ok().copied());
        match appended {
            Ok(_) => None,
            Err(error) => {
                host.trouble(Trouble::Record, &error);
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
                let staged = self.held.holdings_mut().stage(transaction)?;
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
                self.held.holdings_mut().forget_staged(*id);
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
            | Record::Staged { .. }
            | Record::Unstaged { .. }
            | Record::CompleteTo { .. }
            | Record::Installed { .. } => Ok(None),
        }
    }

    /// A message as it goes to others: what the log told of a transaction refers to this node's
    /// extents.
    fn sent(&mut self, host: &mut impl Host, envelope: Envelope) -> Option<Envelope> {
        use tyr_protocol::commit::{self, recovery};
        let mut envelope = envelope;
        let transaction = match &mut envelope.body {
            Body::Commit(commit::Message::Forward { transaction, .. }) => transaction,
            Body::Recovery(recovery::Message::Ask { transaction, .. }) => transaction,
            _ => return Some(envelope),
        };
        if staging::has_extents(transaction) {
            match self.held.holdings().inlined(transaction) {
                Ok(inlined) => {
                    debug_assert!(
                        !staging::has_extents(&inlined),
                        "others have no extents of ours"
                    );
                    *transaction = Arc::new(inlined);
                }
                Err(error) => {
                    host.trouble(Trouble::Payload, &error);
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
        host: &mut impl Host,
        request: ReadRequest,
        at: Option<Timestamp>,
    ) -> Option<Event> {
        let (clock, known_from) = (self.member.clock(), self.member.known_from());
        let holdings = self.held.holdings_mut();
        holdings.know_from(known_from);
        let asker = request.asker;
        let is_own = asker == Address::Node(self.member.node());
        match reads::begin(holdings, request, at, clock) {
            Found::Now(body) if is_own => return Some(Event::Receive(self.envelope(body))),
            Found::Now(body) => host.send(asker, self.envelope(body)),
            Found::Later(later) => {
                let template = self.envelope(Body::FetchMap);
                host.fetch(Fetch { later, template, is_own });
            }
        }
        None
    }

    fn envelope(&self, body: Body) -> Envelope {
        self.member.envelope(body)
    }
}
