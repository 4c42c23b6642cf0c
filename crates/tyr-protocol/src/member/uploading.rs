//! Pieces that are uploaded ahead of their transaction: who stages them, and when they go (U1, U2).
//! Who lacks some asks for them in [`super::fetching`]; what is in those that are filled here is
//! read in [`super::copying`].
//!
//! ```text
//!   Stage ──► staged, logged ──durable──► Passed, Staged     Drop, late ──► gone
//! ```
//!
//! What a piece has in it never changes, so it does not matter in which order nodes hear of it.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{
    BlobName, Bytes, ErrorKind, KeyspaceId, NodeId, PieceContent, PieceId, Transaction,
    TransactionId, limits,
};

use super::copying::Copies;
use super::execution::Promise;
use super::fetching::{FETCHING_MAX, Fetching};
use super::{Member, Record, Store, Turn};
use crate::abort::Abort;
use crate::level::LEVEL_STAGING;
use crate::map::ClusterMap;
use crate::message::{Address, Asked, Body};
use crate::upload::wanted::pieces_of;
use crate::upload::{Message, Pieces, StagedPiece, is_uploaded, sum_of};

/// Pieces on their way to other holders at a time; clients ask again for what is beyond.
pub const PASSING_MAX: usize = 4096;

/// Bytes of pieces on their way to other holders, above which clients wait: a quarter of a second
/// of a disk.
pub const PASSING_LEN_MAX: u64 = 64 << 20;

const _: () = assert!(limits::PIECE_LEN_MAX as u64 <= PASSING_LEN_MAX, "any piece finds room");

/// A client is not answered about a piece that others have not got after so long, in microseconds:
/// it has asked again.
const PASS_LATE_US: u64 = 10_000_000;

/// Pieces are looked at for late ones so often, in microseconds.
const LATE_LOOK_US: u64 = 1_000_000;

/// A piece whose client waits for all that hold its chunk.
#[derive(Clone, Debug)]
struct Passing {
    client: u64,
    /// What it is told then.
    answer: Message,
    len: u64,
    /// Who has not got it durably, this node among them.
    lacking: BTreeSet<NodeId>,
    since_us: u64,
}

/// What is on its way.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    /// Bounded by [`PASSING_MAX`].
    passing: BTreeMap<PieceId, Passing>,
    /// Bytes of these; bounded by [`PASSING_LEN_MAX`], together with those that are to come.
    passing_len: u64,
    /// Those that are filled here, and will be on their way.
    pub copies: Copies,
    /// Bounded by [`FETCHING_MAX`].
    pub fetching: BTreeMap<TransactionId, Fetching>,
    looked_us: u64,
}

impl Uploads {
    /// Whether a piece of so many bytes has to wait.
    pub fn is_full(&self, len: u64) -> bool {
        let (count, bytes) = (self.passing.len() + self.copies.len(), self.passing_len);
        count >= PASSING_MAX || bytes + self.copies.bytes() + len > PASSING_LEN_MAX
    }

    /// A piece is on its way, perhaps anew.
    fn pass(&mut self, id: PieceId, passing: Passing) {
        self.remove(id);
        self.passing_len += passing.len;
        self.passing.insert(id, passing);
    }

    /// Nobody waits for a piece any more.
    fn remove(&mut self, id: PieceId) {
        self.passing_len -= self.passing.remove(&id).map_or(0, |it| it.len);
    }

    /// Nobody waits any more for those that were too long on their way.
    fn forget_late(&mut self, now_us: u64) {
        let is_late = |it: &Passing| now_us.saturating_sub(it.since_us) >= PASS_LATE_US;
        let late = self.passing.iter().filter(|(_, it)| is_late(it)).map(|(id, _)| *id);
        late.collect::<Vec<_>>().into_iter().for_each(|id| self.remove(id));
    }

    /// Checks what must hold between steps.
    pub fn invariants(&self) {
        assert!(self.passing.len() <= PASSING_MAX, "pieces on their way are bounded");
        let len: u64 = self.passing.values().map(|it| it.len).sum();
        assert_eq!(self.passing_len, len, "bytes on their way are counted");
        let copied = self.copies.bytes();
        assert!(len + copied <= PASSING_LEN_MAX, "bytes on their way are bounded");
        self.copies.invariants();
        assert!(self.fetching.len() <= FETCHING_MAX, "who waits for pieces is bounded");
        let is_waiting = self.passing.values().all(|it| !it.lacking.is_empty());
        assert!(is_waiting, "who has waited for all is answered");
    }
}

impl Member {
    /// The number of pieces that are staged here, and their bytes.
    pub fn staged(&self) -> (usize, u64) {
        (self.commit.pieces.len(), self.commit.pieces.bytes())
    }

    /// Their names, each with the clock until which it is promised (U2).
    pub fn staged_until(&self) -> impl Iterator<Item = (PieceId, u64)> + '_ {
        self.commit.pieces.iter().map(|(id, kept)| (*id, kept.until_us))
    }

    /// The pieces of a checkpoint (L1, U2), without what is in them: the store has that.
    pub(super) fn staged_records(&self) -> impl Iterator<Item = Record> + '_ {
        self.commit.pieces.iter().map(|(_, kept)| Record::Staged {
            staged: kept.staged.clone(),
            until_us: kept.until_us,
            content: PieceContent::Elsewhere,
        })
    }
}

impl<S: Store> Turn<'_, S> {
    /// A client says something about a piece.
    pub(super) fn hear_uploader(&mut self, client: u64, message: Message) {
        match message {
            Message::Stage { number, staged, bytes } => self.stage(client, number, staged, bytes),
            Message::Copy { number, id, blob, chunk, source } => {
                self.copy_piece((client, number), id, (blob, chunk), source);
            }
            Message::Drop { blob, chunk, ids } => {
                let ids: Vec<_> = ids.into_iter().filter(|id| id.client() == client).collect();
                for node in self.others_of(&blob, chunk) {
                    let (blob, ids) = (blob.clone(), ids.clone());
                    self.send_upload(node, Message::Drop { blob, chunk, ids });
                }
                self.member.uploads.copies.forget(&ids);
                self.drop_pieces(&ids);
            }
            Message::Staged { .. }
            | Message::Copied { .. }
            | Message::Pass { .. }
            | Message::Passed { .. }
            | Message::Fetch { .. }
            | Message::Lacking { .. } => {} // Not for a client to say.
        }
    }

    /// A node says something about a piece.
    pub(super) fn hear_passed(&mut self, from: NodeId, message: Message) {
        match message {
            Message::Pass { staged, bytes } => self.take_passed(from, staged, bytes),
            Message::Passed { id } => self.is_durable_at(id, from),
            Message::Fetch { id, transaction } => self.give_piece(from, id, transaction),
            Message::Lacking { id, transaction } => {
                if let Some(fetching) = self.member.uploads.fetching.get_mut(&transaction)
                    && let Some(sought) = fetching.sought.get_mut(&id)
                    && sought.asked.is_some_and(|(node, _)| node == from)
                {
                    sought.asked = None;
                    self.seek(transaction);
                }
            }
            Message::Drop { ids, .. } => {
                self.member.uploads.copies.forget(&ids);
                self.drop_pieces(&ids);
            }
            Message::Stage { .. }
            | Message::Staged { .. }
            | Message::Copy { .. }
            | Message::Copied { .. } => {} // Not for a node to say.
        }
    }

    /// U1: a client uploads a piece: it is staged here, and passed on to all others that its chunk
    /// is placed on.
    fn stage(&mut self, client: u64, number: u64, staged: StagedPiece, bytes: Bytes) {
        let Some(map) = self.member.map.clone() else { return };
        let refuse = |abort| Body::Refused { read: number, abort };
        if let Err(error) = map.check_level(LEVEL_STAGING) {
            let abort = Abort::new(error.kind(), error.message().to_owned());
            return self.send(Address::Client(client), refuse(abort));
        }
        if staged.piece.id.client() != client {
            return; // Somebody else's.
        }
        let is_full = self.member.uploads.is_full(u64::from(staged.piece.len));
        if is_full || !self.may_stage(&map, &staged.blob, staged.chunk) {
            return self.not_here(client, Asked::Read(number));
        }
        self.stage_everywhere((client, number), staged, bytes, Message::Staged { number });
    }

    /// Whether a client may have a piece of this chunk staged here, to be passed on to the others.
    pub(super) fn may_stage(&self, map: &ClusterMap, blob: &BlobName, chunk: u64) -> bool {
        let node = self.member.node;
        let is_going =
            self.is_planned_away(|planned| !planned.holders(blob, chunk).contains(&node));
        map.holders(blob, chunk).contains(&node) && !is_going && !map.is_dropped(blob.keyspace)
    }

    /// Stages a piece here, and passes it on; its client, who asked under this number, is given the
    /// answer when it is durable at all.
    pub(super) fn stage_everywhere(
        &mut self,
        (client, number): (u64, u64),
        staged: StagedPiece,
        bytes: Bytes,
        answer: Message,
    ) {
        let id = staged.piece.id;
        let mut lacking: BTreeSet<NodeId> = self.others_of(&staged.blob, staged.chunk).collect();
        if let Err(abort) = self.take_piece(&staged, &bytes, None) {
            return self.send(Address::Client(client), Body::Refused { read: number, abort });
        }
        for node in &lacking {
            let (staged, bytes) = (staged.clone(), bytes.clone());
            self.send_upload(*node, Message::Pass { staged, bytes });
        }
        lacking.insert(self.member.node);
        let (len, since_us) = (u64::from(staged.piece.len), self.member.now.monotonic_us);
        let passing = Passing { client, answer, len, lacking, since_us };
        self.member.uploads.pass(id, passing);
    }

    /// Another node passes on a piece, or gives one that was asked for.
    fn take_passed(&mut self, from: NodeId, staged: StagedPiece, bytes: Bytes) {
        let Some(map) = self.member.map.clone() else { return };
        let is_here =
            map.placement(&staged.blob, staged.chunk).is_some_and(|it| it.has(self.member.node));
        // What is not taken is not answered: who passed it on asks no more, its client does.
        if is_here && self.take_piece(&staged, &bytes, Some(from)).is_ok() {
            self.has_come(staged.piece.id);
        }
    }

    /// Stages a piece, or begins its time anew; `passed_by` is told when that is durable.
    fn take_piece(
        &mut self,
        staged: &StagedPiece,
        bytes: &Bytes,
        passed_by: Option<NodeId>,
    ) -> Result<(), Abort> {
        let refused = |kind, reason| Err(Abort::at(&staged.blob, kind, reason));
        let piece = staged.piece;
        let is_sound = bytes.len() as u64 == u64::from(piece.len) && sum_of(bytes) == piece.sum;
        if !is_sound || piece.len == 0 || piece.len > limits::PIECE_LEN_MAX {
            return refused(ErrorKind::InvalidArgument, "the bytes of a piece are not as it says");
        }
        let known = self.member.commit.pieces.get(piece.id);
        if known.is_some_and(|known| known.staged != *staged) {
            let reason = "other bytes, or for another place, were uploaded under the same name";
            return refused(ErrorKind::InvalidArgument, reason);
        }
        let is_new = known.is_none();
        if is_new {
            let content = PieceContent::Bytes(bytes.clone());
            self.store.keep_piece(staged, &content).map_err(|error| Abort {
                blob: Some(staged.blob.clone()),
                ..Abort::new(error.kind(), error.message().to_owned())
            })?;
        }
        let until_us = self.member.commit.clock().clock.saturating_add(limits::PIECE_KEPT_US);
        self.member.commit.pieces.stage(staged.clone(), until_us);
        let content = self.store.staged_content(piece.id);
        let record = Record::Staged { staged: staged.clone(), until_us, content };
        self.persist(record, Some(Promise::Staged { id: piece.id, passed_by, is_new }));
        Ok(())
    }

    /// A piece is durable here.
    pub(super) fn staged_durably(&mut self, id: PieceId, passed_by: Option<NodeId>) {
        match passed_by {
            Some(node) => self.send_upload(node, Message::Passed { id }),
            None => self.is_durable_at(id, self.member.node),
        }
    }

    /// The log did not take a piece: it is not here, and whoever waits for it asks again.
    pub(super) fn not_staged(&mut self, id: PieceId, is_new: bool) {
        self.member.uploads.remove(id);
        if is_new && self.member.commit.pieces.remove(id).is_some() {
            self.store.unstage(&[id]);
        }
    }

    /// A piece is durable at a node: when it is at all, its client hears so (U1).
    fn is_durable_at(&mut self, id: PieceId, node: NodeId) {
        let Some(passing) = self.member.uploads.passing.get_mut(&id) else { return };
        passing.lacking.remove(&node);
        if passing.lacking.is_empty() {
            let (client, answer) = (passing.client, passing.answer.clone());
            self.member.uploads.remove(id);
            self.send(Address::Client(client), Body::Upload(answer));
        }
    }

    /// U4: another node lacks a piece.
    fn give_piece(&mut self, to: NodeId, id: PieceId, transaction: TransactionId) {
        let commit = &self.member.commit;
        let is_free = |by: TransactionId| by == transaction || commit.records.slot(by).is_none();
        let kept = commit.pieces.get(id).filter(|kept| kept.claimed_by.is_none_or(is_free));
        let staged = kept.map(|kept| kept.staged.clone());
        let found = staged.and_then(|staged| Some((staged, self.store.staged_bytes(id)?)));
        self.send_upload(
            to,
            match found {
                Some((staged, bytes)) => Message::Pass { staged, bytes },
                None => Message::Lacking { id, transaction },
            },
        );
    }

    /// A transaction was applied here: its pieces are the chunks' now, or are to become so when a
    /// base is here.
    pub(super) fn use_pieces(&mut self, transaction: &Transaction, is_laid_aside: bool) {
        if self.member.commit.pieces.is_empty() || !is_uploaded(transaction) {
            return;
        }
        if is_laid_aside {
            return self.member.commit.pieces.lay_aside(transaction);
        }
        let ids: Vec<PieceId> = pieces_of(transaction).map(|it| it.id).collect();
        self.remove_pieces(ids);
    }

    /// The base of a chunk is here, or the chunk is gone: pieces that waited for that are not
    /// needed any more.
    pub(super) fn use_laid_aside(&mut self) {
        if self.member.commit.pieces.is_empty() {
            return;
        }
        let waiting: BTreeSet<TransactionId> =
            self.member.aside.transactions().map(|it| it.id).collect();
        let gone = self.member.commit.pieces.retain(|kept| {
            !kept.is_laid_aside || kept.claimed_by.is_some_and(|by| waiting.contains(&by))
        });
        if !gone.is_empty() {
            self.store.unstage(&gone);
        }
    }

    fn remove_pieces(&mut self, mut ids: Vec<PieceId>) {
        ids.retain(|id| self.member.commit.pieces.remove(*id).is_some());
        if !ids.is_empty() {
            self.store.unstage(&ids);
        }
    }

    /// U2: pieces that no transaction in flight has go, when their client drops them.
    fn drop_pieces(&mut self, ids: &[PieceId]) {
        let commit = &self.member.commit;
        let is_free = |id: &&PieceId| {
            commit.pieces.get(**id).is_some_and(|kept| {
                let is_over = |by| commit.records.slot(by).is_none();
                !kept.is_laid_aside && kept.claimed_by.is_none_or(is_over)
            })
        };
        let ids: Vec<PieceId> = ids.iter().filter(is_free).copied().collect();
        if !ids.is_empty() {
            self.persist(Record::Unstaged { ids: ids.clone() }, None);
            self.remove_pieces(ids);
        }
    }

    /// Some time has passed, and there is a lease.
    pub(super) fn tick_uploads(&mut self) {
        let now_us = self.member.now.monotonic_us;
        self.member.uploads.forget_late(now_us);
        self.give_up_silent(now_us);
        self.tick_copies(now_us);
        if now_us.saturating_sub(self.member.uploads.looked_us) >= LATE_LOOK_US {
            self.member.uploads.looked_us = now_us;
            let clock_us = self.member.commit.clock().clock;
            let map = self.member.map.as_ref();
            let is_gone = |id| map.is_some_and(|map| map.is_dropped(id));
            let late = self.member.commit.pieces.late(clock_us, is_gone);
            self.drop_pieces(&late);
        }
    }

    /// A piece comes back from the log.
    pub(super) fn restage(&mut self, staged: StagedPiece, until_us: u64, content: &PieceContent) {
        if self.member.commit.pieces.get(staged.piece.id).is_none() {
            // A disk that fails here fails again, and is noted then.
            if self.store.keep_piece(&staged, content).is_err() {
                return;
            }
        }
        self.member.commit.pieces.stage(staged, until_us);
    }

    /// The log says that these are gone.
    pub(super) fn unstaged(&mut self, ids: Vec<PieceId>) {
        self.remove_pieces(ids);
    }

    /// Of a node that begins anew, but for what it alone has (F7): so it is with pieces.
    pub(super) fn keep_pieces(&mut self, mut pieces: Pieces, map: &ClusterMap) {
        let singles: BTreeSet<KeyspaceId> =
            map.held_alone(self.member.node).map(|(id, _)| id).collect();
        let node = self.member.node;
        let gone = pieces.retain(|kept| {
            let StagedPiece { blob, chunk, .. } = &kept.staged;
            let is_here = map.placement(blob, *chunk).is_some_and(|placed| placed.has(node));
            singles.contains(&blob.keyspace) && is_here
        });
        self.store.unstage(&gone);
        self.member.commit.pieces = pieces;
    }

    fn others_of(&self, blob: &BlobName, chunk: u64) -> impl Iterator<Item = NodeId> + use<S> {
        let placed = self.member.map.as_ref().and_then(|map| map.placement(blob, chunk));
        let placed = placed.unwrap_or_default();
        let node = self.member.node;
        placed.holders.into_iter().chain(placed.recipients).filter(move |it| *it != node)
    }

    pub(super) fn send_upload(&mut self, to: NodeId, message: Message) {
        self.send(Address::Node(to), Body::Upload(message));
    }
}
