//! Chunks that come and go: what the recipient asks for, and what is given to others.

use std::sync::Arc;

use tyr_types::{Epoch, NodeId, Timestamp, Transaction};

use super::catching_up::{ASIDE_LEN_MAX, LaidAside};
use super::comparing::Page;
use super::{ChunkName, LateAnswers, LocalChunk, Promise, Record, Store, Turn};
use crate::chain::{Chain, Hop, Piece};
use crate::commit::{Answered, Decision, Outcomes, Remembered};
use crate::map::ClusterMap;
use crate::message::{Address, Body, ReadRequest};
use crate::movement::{self, ChunkCopy};

/// Transactions on a page of what is remembered: a message of some ten kilobytes.
const REMEMBERED_MAX: usize = 256;

impl<S: Store> Turn<'_, S> {
    /// Tells the recipient of an event, and does what it asks for.
    pub(super) fn supply(&mut self, event: movement::Event) {
        let Some(map) = self.member.map.clone() else { return };
        let mut effects = Vec::new();
        let now_us = self.member.now.monotonic_us;
        self.member.recipient.press(self.member.aside.len() > ASIDE_LEN_MAX);
        self.member.recipient.step(now_us, event, &map, &mut effects);
        for effect in effects {
            match effect {
                movement::Effect::List { to, after } => {
                    let message = self.question(to, after, &map);
                    self.send(Address::Node(to), Body::Movement(message));
                }
                movement::Effect::Recall { to, after } => {
                    let message = movement::Message::Recall { after };
                    self.send(Address::Node(to), Body::Movement(message));
                }
                movement::Effect::Ask { to, read, chunk: (blob, chunk), range, kind } => {
                    let asker = Address::Node(self.member.node);
                    let (is_attributes, is_copy) = (chunk == 0, true);
                    let request =
                        ReadRequest { read, asker, blob, range, is_attributes, kind, is_copy };
                    self.send(Address::Node(to), Body::Read(request));
                }
                movement::Effect::Install { chunk, copy } => self.install_copy(chunk, copy),
                movement::Effect::CaughtUp => {
                    // What was applied here without a base answered nothing; what it answered
                    // elsewhere comes with the notice of stability. Before that this node must not
                    // be counted on (F4).
                    let records = &self.member.commit.records;
                    self.member.unanswered.retain(|id| records.slot(*id).is_some());
                    if self.member.unanswered.is_empty() {
                        let epoch = map.epoch;
                        self.send(Address::Monitors, Body::CaughtUp { epoch });
                    }
                }
            }
        }
    }

    fn install_copy(&mut self, chunk: ChunkName, copy: ChunkCopy) {
        // Nothing proposed here from now on is at or below what the copy holds.
        self.member.commit.observe(copy.at);
        self.await_copy(&chunk);
        self.install_base(&chunk, &copy);
        // The copy has what was decided below it, and does not say so.
        let heard = self.member.commit.take_all_heard();
        if !heard.is_empty() {
            self.persist(Record::Recalled { outcomes: heard }, None);
        }
        let promise = copy.is_last.then(|| Promise::Stored(chunk.clone()));
        let (blob, chunk) = chunk;
        self.persist(Record::Installed { blob, chunk, copy }, promise);
    }

    /// Gives a chunk its base, or a piece of it, and what was laid aside its answers.
    pub(super) fn install_base(&mut self, chunk: &ChunkName, copy: &ChunkCopy) {
        let late = self.store.install(chunk, copy);
        late.into_iter().for_each(|it| self.answer_late(chunk, it));
        if copy.is_last {
            self.nothing_waits_for(chunk);
            debug_assert!(!self.store.is_awaited(chunk), "D2: its base is here: {chunk:?}");
        }
    }

    /// What was applied to a chunk before its base came is on top of it now, and has its answers:
    /// who asks again may have nobody else to ask (F4).
    pub(super) fn answer_late(&mut self, chunk: &ChunkName, (at, answers): LateAnswers) {
        let Some(laid) = self.member.aside.get(chunk, at) else { return };
        let transaction = Arc::clone(&laid.transaction);
        let mut entries = (0..).zip(&transaction.blobs).filter(|(_, it)| it.blob == chunk.0);
        let Some((blob, _)) = entries.next() else { return };
        let answered = |(operation, outcome)| Answered::at_chunk(blob, chunk.1, operation, outcome);
        let answers: Outcomes = answers.into_iter().filter_map(answered).collect();
        if answers.is_empty() {
            return;
        }
        let id = transaction.id;
        let mut outcomes = self.member.commit.answers(id).cloned().unwrap_or_default();
        outcomes.put(&answers);
        self.member.commit.answered(id, outcomes.clone());
        self.persist(Record::Answered { id, outcomes }, None);
    }

    /// A transaction passes that writes chunks of which this node is a recipient: they are to be
    /// copied, and until then what it writes waits for the base.
    pub(super) fn hear_of_chunks(&mut self, chain: &Chain) {
        if !self.member.recipient.progress().is_moving {
            return;
        }
        let Some(map) = self.member.map.clone() else { return };
        let node = self.member.node;
        for chunk in written_at(node, chain, &map) {
            let is_recipient = map.recipients(&chunk.0, chunk.1).contains(&node);
            if is_recipient && !self.member.recipient.has(&chunk) && !self.stands(&chunk, &map) {
                self.store.await_base(&chunk);
                self.supply(movement::Event::Heard(chunk));
            }
        }
    }

    /// Lets go of what was written, over a chain that is out of date, to chunks that this node
    /// neither holds nor gets any more.
    pub(super) fn release_strays(&mut self, chain: &Chain) {
        let Some(map) = self.member.map.clone().filter(|_| !chain.is_alone()) else { return };
        let node = self.member.node;
        for chunk in written_at(node, chain, &map) {
            let placed = map.placement(&chunk.0, chunk.1);
            if !placed.is_some_and(|placed| placed.has(node)) {
                self.release(&chunk);
            }
        }
    }

    /// Lets go of a chunk.
    pub(super) fn release(&mut self, chunk: &ChunkName) {
        self.store.release(chunk);
        self.nothing_waits_for(chunk);
    }

    /// The chunk's base is here, or the chunk is gone: what waited for it is done.
    pub(super) fn nothing_waits_for(&mut self, chunk: &ChunkName) {
        self.member.difference.forget(chunk);
        self.member.aside.forget(chunk);
        self.use_laid_aside();
    }

    /// Keeps in mind what is about to be applied to chunks whose base is awaited; answers whether
    /// there are such.
    pub(super) fn lay_aside(
        &mut self,
        transaction: &Arc<Transaction>,
        chain: &Chain,
        at: Timestamp,
    ) -> bool {
        let mut is_any = false;
        if !self.member.recipient.progress().is_moving {
            return is_any;
        }
        let Some(map) = self.member.map.clone() else { return is_any };
        for chunk in written_at(self.member.node, chain, &map) {
            if self.store.is_awaited(&chunk) {
                is_any = true;
                let (transaction, chain) = (Arc::clone(transaction), chain.clone());
                self.member.aside.lay(chunk, at, LaidAside { transaction, chain });
            }
        }
        is_any
    }

    /// Whether this node is in the chain only because chunks are on their way to it (D1).
    pub(super) fn is_only_recipient(&self, chain: &Chain) -> bool {
        let node = self.member.node;
        let Some(map) = &self.member.map else { return false };
        let Some(position) = chain.position(node).filter(|_| !chain.is_alone()) else {
            return false;
        };
        chain.hops()[position].pieces().iter().all(|Piece { blob, range, .. }| {
            let size = map.chunk_size(blob.keyspace);
            size.is_some_and(|size| map.recipients(blob, range.start / size).contains(&node))
        })
    }

    /// A message about chunks that move.
    pub(super) fn hear_movement(&mut self, from: NodeId, epoch: Epoch, message: movement::Message) {
        match message {
            movement::Message::List { after } => self.list(from, after),
            movement::Message::Listed { after, chunks, next } => {
                let is_asked = false;
                self.supply(movement::Event::Listed { from, epoch, after, chunks, next, is_asked });
            }
            movement::Message::ListSince { since, after } => self.list_since(from, since, after),
            movement::Message::ListedSince { since, after, unchanged, changed, next } => {
                self.compare(from, epoch, Page { since, after, unchanged, changed, next });
            }
            movement::Message::Summarize { since, after } => self.summarize(from, since, after),
            movement::Message::Summarized { since, after, unchanged, changed, next } => {
                let page = Page { since, after, unchanged, changed, next };
                self.receive_summary(from, epoch, page);
            }
            movement::Message::Recall { after } => self.tell_remembered(from, after),
            movement::Message::Recalled { after, outcomes, next } => {
                self.recalled(from, epoch, after, outcomes, next);
            }
            movement::Message::Copied { read, chunk, copy } => {
                self.supply(movement::Event::Copied { read, chunk, copy });
            }
        }
    }

    /// A copy is not to be had there now.
    pub(super) fn no_copy(&mut self, read: u64) {
        if self.member.recipient.is_asking(read) {
            self.supply(movement::Event::Refused { read });
        }
    }

    /// Lists the chunks that `to` is a recipient of and this node the authority of.
    fn list(&mut self, to: NodeId, after: Option<ChunkName>) {
        let Some(map) = self.listed_map() else { return };
        let (held, next) = self.held_for(to, after.as_ref(), &map);
        let chunks = held.into_iter().map(|held| held.name).collect();
        let message = movement::Message::Listed { after, chunks, next };
        self.send(Address::Node(to), Body::Movement(message));
    }

    /// The map by which chunks are listed, or outcomes told.
    ///
    /// Not while something is in flight here that was proposed before the move: it may create a
    /// chunk without the recipient in its chain. Who asks will ask again.
    pub(super) fn listed_map(&self) -> Option<Arc<ClusterMap>> {
        self.member.map.clone().filter(|map| !self.is_behind_move(map))
    }

    /// A page of the chunks that `to` is a recipient of and this node the authority of, and where
    /// the next one begins.
    pub(super) fn held_for(
        &self,
        to: NodeId,
        after: Option<&ChunkName>,
        map: &ClusterMap,
    ) -> (Vec<LocalChunk>, Option<ChunkName>) {
        if !self.member.is_authority() {
            return (Vec::new(), None);
        }
        let scanned_max = self.member.config.list_page;
        let mut held = self.store.held_or_kept(after, scanned_max);
        debug_assert!(held.len() <= scanned_max, "a page is bounded, or a step takes long");
        let last = held.last().map(|held| held.name.clone());
        let next = last.filter(|_| held.len() == scanned_max);
        held.retain(|held| is_supplied(map, &held.name, (self.member.node, to)));
        (held, next)
    }

    /// Whether something is in flight here that was proposed before the move: it may have gone
    /// without the recipients in its chain.
    fn is_behind_move(&self, map: &ClusterMap) -> bool {
        let moved = Timestamp { epoch: map.moved, ..Timestamp::ZERO };
        self.member.commit.is_in_flight_below(moved)
    }

    /// Tells a recipient what this node remembers of transactions (F4).
    fn tell_remembered(&mut self, to: NodeId, after: u64) {
        if self.listed_map().is_none() {
            return;
        }
        let (mut outcomes, next) = self.member.commit.remembered(after, REMEMBERED_MAX);
        debug_assert!(next.is_none_or(|next| next > after), "F4: pages go on, or never end");
        for remembered in &mut outcomes {
            if let Decision::Commit(_) = remembered.decision {
                self.member.commit.complete(remembered.id, &mut remembered.outcomes);
            }
        }
        let message = movement::Message::Recalled { after, outcomes, next };
        self.send(Address::Node(to), Body::Movement(message));
    }

    /// A page of what another node remembers; the next is asked for when this one is durable.
    fn recalled(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        after: u64,
        outcomes: Vec<Remembered>,
        next: Option<u64>,
    ) {
        let is_due = self.member.recipient.is_recalling(from, after);
        if !is_due || epoch != self.member.epoch() {
            return;
        }
        for remembered in &outcomes {
            self.member.commit.recall(remembered.clone());
        }
        match outcomes.is_empty() {
            true => self.supply(movement::Event::Recalled { from, epoch, after, next }),
            false => {
                let promise = Promise::Recalled { from, epoch, after, next };
                self.persist(Record::Recalled { outcomes }, Some(promise));
            }
        }
    }
}

/// Whether the first node is the authority of the chunk, and the second gets it.
pub(super) fn is_supplied(
    map: &ClusterMap,
    (blob, chunk): &ChunkName,
    (from, to): (NodeId, NodeId),
) -> bool {
    let placed = map.placement(blob, *chunk).unwrap_or_default();
    placed.holders.first() == Some(&from) && placed.recipients.contains(&to)
}

/// The chunks that a transaction writes at a node of its chain.
pub(super) fn written_at<'a>(
    node: NodeId,
    chain: &'a Chain,
    map: &'a ClusterMap,
) -> impl Iterator<Item = ChunkName> + 'a {
    let hop = chain.position(node).map(|position| &chain.hops()[position]);
    let pieces = hop.into_iter().flat_map(Hop::pieces).filter(|piece| piece.is_written);
    pieces.filter_map(|piece| chunk_of_piece(piece, map))
}

/// The chunk that a piece of a chain is of.
pub(super) fn chunk_of_piece(piece: &Piece, map: &ClusterMap) -> Option<ChunkName> {
    let Piece { blob, range, .. } = piece;
    Some((blob.clone(), range.start / map.chunk_size(blob.keyspace)?))
}
