//! Pieces that are filled here, with what a blob had at a moment (U5).
//!
//! ```text
//!   Copy ──► Read at S ──► a holder of the source ──Part──► staged as if uploaded ──► Copied
//! ```
//!
//! What a chunk had at S never changes. So it does not matter which node reads it, of whom, and how
//! often: the piece has the same in it, under the same sum. Nothing of a copy under way is on disk;
//! its client asks again.

use std::collections::BTreeMap;

use tyr_types::{BlobName, ByteRange, Bytes, ErrorKind, NodeId, PieceId, PieceRef, limits};

use super::{Store, Turn};
use crate::abort::Abort;
use crate::level::LEVEL_COPYING;
use crate::map::{ClusterMap, DROPPED};
use crate::message::{Address, Asked, Body, ReadPart, ReadRequest};
use crate::read::Kind;
use crate::rule::Rule;
use crate::upload::{Message, PieceSource, StagedPiece, sum_of};

/// Who was asked for the bytes and is silent is asked again, or another, after so long, in
/// microseconds.
const ASK_AGAIN_US: u64 = 500_000;

/// A piece that has not come to anything after so long is given up, in microseconds: its client has
/// asked another node.
const COPY_LATE_US: u64 = 10_000_000;

/// Where the numbers of its reads begin, among those of an incarnation: apart from a recipient's,
/// which begin at 0, and the scrubber's, which begin at 1 << 31.
const READS: u64 = 1 << 30;

/// A piece that is filled.
#[derive(Clone, Debug)]
struct Copying {
    /// The client, and the number that its answer names.
    asker: (u64, u64),
    id: PieceId,
    blob: BlobName,
    chunk: u64,
    source: PieceSource,
    /// How often somebody was asked.
    tries: usize,
    /// When last; `None` when all have refused, until it is time to ask again.
    asked_us: Option<u64>,
    since_us: u64,
}

/// The pieces that are filled here; bounded with those on their way.
#[derive(Debug, Default)]
pub(super) struct Copies {
    by_read: BTreeMap<u64, Copying>,
    by_piece: BTreeMap<PieceId, u64>,
    bytes: u64,
    /// Reads so far.
    reads: u64,
}

impl Copies {
    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.by_read.len()
    }

    /// Bytes that they will have.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn insert(&mut self, incarnation: u64, copying: Copying) -> u64 {
        self.reads += 1;
        let read = incarnation << 32 | (READS + self.reads % READS);
        self.remove(read); // That was a billion reads ago.
        self.bytes += copying.source.range.len();
        self.by_piece.insert(copying.id, read);
        self.by_read.insert(read, copying);
        read
    }

    fn remove(&mut self, read: u64) -> Option<Copying> {
        let copying = self.by_read.remove(&read)?;
        self.by_piece.remove(&copying.id);
        self.bytes -= copying.source.range.len();
        Some(copying)
    }

    /// These are not wanted any more.
    pub fn forget(&mut self, ids: &[PieceId]) {
        let reads: Vec<u64> = ids.iter().filter_map(|id| self.by_piece.get(id).copied()).collect();
        reads.into_iter().for_each(|read| drop(self.remove(read)));
    }

    /// Checks what must hold between steps.
    pub fn invariants(&self) {
        let bytes: u64 = self.by_read.values().map(|it| it.source.range.len()).sum();
        assert_eq!(self.bytes, bytes, "bytes that are to come are counted");
        let named = self.by_read.iter().map(|(read, it)| (it.id, *read));
        assert_eq!(self.by_piece, named.collect(), "a piece is filled once at a time");
    }
}

impl<S: Store> Turn<'_, S> {
    /// U5: a client wants a piece to be filled here, and passed on to all others that its chunk is
    /// placed on.
    pub(super) fn copy_piece(
        &mut self,
        (client, number): (u64, u64),
        id: PieceId,
        (blob, chunk): (BlobName, u64),
        source: PieceSource,
    ) {
        let Some(map) = self.member.map.clone() else { return };
        if id.client() != client {
            return; // Somebody else's.
        }
        if let Err(abort) = check(&map, &source) {
            return self.send(Address::Client(client), Body::Refused { read: number, abort });
        }
        let is_full = self.member.uploads.is_full(source.range.len());
        if is_full || self.is_ahead(Kind::At(source.at)) || !self.may_stage(&map, &blob, chunk) {
            return self.not_here(client, Asked::Read(number));
        }
        let staged = self.member.commit.pieces.get(id).map(|kept| kept.staged.clone());
        if let Some(staged) = staged.filter(|staged| staged.blob == blob && staged.chunk == chunk)
            && let Some(bytes) = self.store.staged_bytes(id)
        {
            // It was filled, and its client has not heard so.
            let answer = Message::Copied { number, piece: staged.piece };
            return self.stage_everywhere((client, number), staged, bytes, answer);
        }
        if self.member.uploads.copies.by_piece.contains_key(&id) {
            return; // It is under way.
        }
        let (asker, since_us) = ((client, number), self.member.now.monotonic_us);
        let (tries, asked_us) = (0, None);
        let copying = Copying { asker, id, blob, chunk, source, tries, asked_us, since_us };
        let read = self.member.uploads.copies.insert(self.member.incarnation, copying);
        self.ask_source(read, &map);
    }

    /// Asks the next holder of the source for the bytes; itself first, if it is one.
    fn ask_source(&mut self, read: u64, map: &ClusterMap) {
        let own = self.member.node;
        let is_exact = self.member.commit.rules.hold(Rule::U5);
        let Some(copying) = self.member.uploads.copies.by_read.get_mut(&read) else { return };
        let holders = holders(map, &copying.source, own);
        copying.asked_us = Some(self.member.now.monotonic_us);
        let Some(to) = holders.get(copying.tries % holders.len().max(1)).copied() else { return };
        copying.tries += 1;
        let PieceSource { blob, range, at } = copying.source.clone();
        let kind = if is_exact { Kind::At(at) } else { Kind::Direct };
        let (asker, is_attributes, is_copy) = (Address::Node(own), false, false);
        let request = ReadRequest { read, asker, blob, range, is_attributes, kind, is_copy };
        match to == own {
            true => self.read(asker, request),
            false => self.send(Address::Node(to), Body::Read(request)),
        }
    }

    /// A holder has read what it was asked for: then that is the piece. Gives back what is of no
    /// piece.
    pub(super) fn filled(&mut self, part: ReadPart) -> Option<ReadPart> {
        let copies = &mut self.member.uploads.copies;
        let is_answer = |copying: &Copying| {
            let PieceSource { range, .. } = copying.source;
            part.range == range && part.bytes.len() as u64 <= range.len()
        };
        if !copies.by_read.get(&part.read).is_some_and(is_answer) {
            return Some(part);
        }
        let Copying { asker, id, blob, chunk, source, .. } = copies.remove(part.read)?;
        let map = self.member.map.clone()?;
        if !self.may_stage(&map, &blob, chunk) {
            self.not_here(asker.0, Asked::Read(asker.1));
            return None;
        }
        let bytes = padded(part.bytes, source.range);
        let piece = PieceRef { id, len: bytes.len() as u32, sum: sum_of(&bytes) };
        let answer = Message::Copied { number: asker.1, piece };
        self.stage_everywhere(asker, StagedPiece { piece, blob, chunk }, bytes, answer);
        None
    }

    /// Who was asked does not answer, perhaps for this reason: another is asked, unless that does
    /// not help.
    pub(super) fn not_filled(&mut self, read: u64, abort: Option<Abort>) {
        let Some(map) = self.member.map.clone() else { return };
        let own = self.member.node;
        let Some(copying) = self.member.uploads.copies.by_read.get_mut(&read) else { return };
        let many = holders(&map, &copying.source, own).len().max(1);
        let is_round = copying.tries.is_multiple_of(many);
        let is_final = abort.as_ref().is_some_and(|abort| match abort.kind {
            // Another may have it, or whole.
            ErrorKind::SnapshotTooOld | ErrorKind::Corrupt => is_round,
            ErrorKind::Unavailable | ErrorKind::TimedOut => false,
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Conflict
            | ErrorKind::InvalidArgument
            | ErrorKind::PermissionDenied
            | ErrorKind::QuotaExceeded => true,
        });
        match abort {
            Some(abort) if is_final => {
                let Some(copying) = self.member.uploads.copies.remove(read) else { return };
                let (client, read) = copying.asker;
                self.send(Address::Client(client), Body::Refused { read, abort });
            }
            Some(_) | None if is_round => {} // All were asked: it is time to wait.
            Some(_) | None => self.ask_source(read, &map),
        }
    }

    /// Some time has passed: who is silent is asked again, or another.
    pub(super) fn tick_copies(&mut self, now_us: u64) {
        let Some(map) = self.member.map.clone() else { return };
        let copies = &mut self.member.uploads.copies;
        let is_since = |since_us: u64, so_long_us| now_us.saturating_sub(since_us) >= so_long_us;
        let late = copies.by_read.iter().filter(|(_, it)| is_since(it.since_us, COPY_LATE_US));
        let late: Vec<u64> = late.map(|(read, _)| *read).collect();
        late.into_iter().for_each(|read| drop(copies.remove(read)));
        let is_silent = |it: &Copying| it.asked_us.is_none_or(|at| is_since(at, ASK_AGAIN_US));
        let silent = copies.by_read.iter().filter(|(_, it)| is_silent(it));
        let silent: Vec<u64> = silent.map(|(read, _)| *read).collect();
        silent.into_iter().for_each(|read| self.ask_source(read, &map));
    }
}

/// Whether a piece can be filled with this at all.
fn check(map: &ClusterMap, source: &PieceSource) -> Result<(), Abort> {
    if let Err(error) = map.check_level(LEVEL_COPYING) {
        return Err(Abort::new(error.kind(), error.message().to_owned()));
    }
    let PieceSource { blob, range, .. } = source;
    let refuse = |kind, reason| Err(Abort::at(blob, kind, reason));
    let size = map.chunk_size(blob.keyspace).filter(|_| !map.is_dropped(blob.keyspace));
    let Some(size) = size else { return refuse(ErrorKind::NotFound, DROPPED) };
    let is_piece = range.start < range.end && range.len() <= u64::from(limits::PIECE_LEN_MAX);
    if !is_piece || range.start / size != (range.end - 1) / size {
        let reason = "a piece is filled with 1 byte to 4 MiB of one chunk";
        return refuse(ErrorKind::InvalidArgument, reason);
    }
    map.check_readable(blob, range.start / size)
}

/// Who may be asked for the bytes, this node first if it may.
fn holders(map: &ClusterMap, source: &PieceSource, own: NodeId) -> Vec<NodeId> {
    let Some(size) = map.chunk_size(source.blob.keyspace) else { return Vec::new() };
    let mut holders = map.holders(&source.blob, source.range.start / size).to_vec();
    holders.sort_by_key(|node| *node != own);
    holders
}

/// The bytes of a range that a chunk holds some of, from its start: the rest are a hole (R7).
fn padded(bytes: Bytes, range: ByteRange) -> Bytes {
    let len = range.len() as usize;
    if bytes.len() == len {
        return bytes;
    }
    let mut padded = bytes.to_vec();
    padded.resize(len, 0);
    Bytes::from(padded)
}
