//! The pieces that a node has staged: which they are, until when, and which transaction has them.
//!
//! ```text
//!   staged ──claimed by a transaction in flight──► applied ──► gone: its bytes are the blob's
//!      └──── late, or dropped by its client ────────────────► gone: its space is given back
//! ```
//!
//! A piece is of one transaction. The first that comes in has it for as long as it is in flight
//! here; another finds that out when it is validated.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{KeyspaceId, PieceId, PieceRef, Transaction, TransactionId};

use super::message::StagedPiece;
use super::wanted::Wanted;

/// A piece that is staged here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The piece and its chunk.
    pub staged: StagedPiece,
    /// Until which clock it is promised, in microseconds (U2).
    pub until_us: u64,
    /// The transaction that refers to it. It counts while that is in flight here.
    pub claimed_by: Option<TransactionId>,
    /// Whether that transaction was applied here, to a chunk whose base is still to come.
    pub is_laid_aside: bool,
}

/// What stands in a transaction's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The piece is not here.
    Missing,
    /// It is another one than the transaction means, or of another chunk.
    Other,
    /// Another transaction in flight has it.
    Taken,
}

/// The pieces of a node; bounded by quota and disk.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    by_id: BTreeMap<PieceId, Kept>,
    /// The same by the clock until which they are promised.
    by_end: BTreeSet<(u64, PieceId)>,
    /// How many there are of each keyspace that has some.
    by_keyspace: BTreeMap<KeyspaceId, usize>,
    /// Bytes of all of them.
    bytes: u64,
}

impl Pieces {
    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether none is staged.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The piece of this name.
    pub fn get(&self, id: PieceId) -> Option<&Kept> {
        self.by_id.get(&id)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&PieceId, &Kept)> {
        self.by_id.iter()
    }

    /// A piece is staged, or its time begins anew.
    pub fn stage(&mut self, staged: StagedPiece, until_us: u64) {
        let (id, len) = (staged.piece.id, u64::from(staged.piece.len));
        match self.by_id.get_mut(&id) {
            Some(kept) => {
                debug_assert_eq!(kept.staged, staged, "what is in a piece never changes");
                self.by_end.remove(&(kept.until_us, id));
                kept.until_us = kept.until_us.max(until_us);
                self.by_end.insert((kept.until_us, id));
            }
            None => {
                self.bytes += len;
                self.by_end.insert((until_us, id));
                *self.by_keyspace.entry(staged.blob.keyspace).or_default() += 1;
                let (claimed_by, is_laid_aside) = (None, false);
                self.by_id.insert(id, Kept { staged, until_us, claimed_by, is_laid_aside });
            }
        }
    }

    /// A piece is gone.
    pub fn remove(&mut self, id: PieceId) -> Option<Kept> {
        let kept = self.by_id.remove(&id)?;
        self.bytes -= u64::from(kept.staged.piece.len);
        self.by_end.remove(&(kept.until_us, id));
        let keyspace = kept.staged.blob.keyspace;
        let left = self.by_keyspace.get_mut(&keyspace).expect("its pieces are counted");
        *left -= 1;
        if *left == 0 {
            self.by_keyspace.remove(&keyspace);
        }
        Some(kept)
    }

    /// Those that are promised no longer at this clock, or are of a keyspace of which `is_gone`
    /// says that it is. Takes as long as they are many, and keyspaces.
    pub fn late(&self, clock_us: u64, is_gone: impl Fn(KeyspaceId) -> bool) -> Vec<PieceId> {
        let late = self.by_end.iter().take_while(|(until_us, _)| *until_us < clock_us);
        let mut late: Vec<PieceId> = late.map(|(_, id)| *id).collect();
        if self.by_keyspace.keys().any(|keyspace| is_gone(*keyspace)) {
            let is_too =
                |kept: &Kept| kept.until_us >= clock_us && is_gone(kept.staged.blob.keyspace);
            late.extend(self.by_id.iter().filter(|(_, kept)| is_too(kept)).map(|(id, _)| *id));
        }
        late
    }

    /// All are gone, but those that `is_kept` says.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&Kept) -> bool) -> Vec<PieceId> {
        let gone = self.by_id.iter().filter(|(_, kept)| !is_kept(kept));
        let gone: Vec<PieceId> = gone.map(|(id, _)| *id).collect();
        gone.iter().for_each(|id| drop(self.remove(*id)));
        gone
    }

    /// A transaction has come in that refers to these pieces: it has those that no other has of
    /// which `is_in_flight` says that it is.
    pub fn claim(
        &mut self,
        id: TransactionId,
        wanted: &[Wanted<'_>],
        is_in_flight: impl Fn(TransactionId) -> bool,
    ) {
        for want in wanted {
            let Some(kept) = self.by_id.get_mut(&want.piece.id) else { continue };
            let is_free = kept.claimed_by.is_none_or(|by| by == id || !is_in_flight(by));
            if is_free && !kept.is_laid_aside {
                kept.claimed_by = Some(id);
            }
        }
    }

    /// What stands in the way of this transaction, which has claimed what it could.
    pub fn lack(&self, id: TransactionId, want: &Wanted<'_>) -> Option<Lack> {
        let Some(kept) = self.by_id.get(&want.piece.id) else { return Some(Lack::Missing) };
        let StagedPiece { piece, blob, chunk } = &kept.staged;
        let is_meant = *piece == want.piece && *blob == *want.blob && *chunk == want.chunk;
        match kept.claimed_by {
            _ if !is_meant || !want.is_in_one_chunk => Some(Lack::Other),
            Some(by) if by != id => Some(Lack::Taken),
            Some(_) | None => None,
        }
    }

    /// The transaction was applied to a chunk that waits for its base: its pieces are needed until
    /// that is here, and are its own, also where the log says so.
    pub fn lay_aside(&mut self, transaction: &Transaction) {
        for PieceRef { id, .. } in super::wanted::pieces_of(transaction) {
            if let Some(kept) = self.by_id.get_mut(&id) {
                (kept.claimed_by, kept.is_laid_aside) = (Some(transaction.id), true);
            }
        }
    }

    /// Checks what must hold between steps.
    pub fn invariants(&self) {
        let bytes: u64 = self.by_id.values().map(|it| u64::from(it.staged.piece.len)).sum();
        assert_eq!(self.bytes, bytes, "what is staged is counted");
        let is_named = self.by_id.iter().all(|(id, kept)| *id == kept.staged.piece.id);
        assert!(is_named, "a piece is kept under its name");
        let ends = self.by_id.iter().map(|(id, kept)| (kept.until_us, *id));
        assert_eq!(self.by_end, ends.collect(), "each piece has its end");
        let mut counted = BTreeMap::<KeyspaceId, usize>::new();
        for kept in self.by_id.values() {
            *counted.entry(kept.staged.blob.keyspace).or_default() += 1;
        }
        assert_eq!(self.by_keyspace, counted, "pieces are counted by keyspace");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tyr_types::{BlobName, BlobOperations, Key, Operation, Payload, Uploaded};

    use super::*;

    fn piece(number: u64, keyspace: u32) -> StagedPiece {
        let blob = BlobName { keyspace: KeyspaceId(keyspace), key: Key::new("a").unwrap() };
        StagedPiece {
            piece: PieceRef { id: PieceId::new(1, number), len: 10, sum: 0 },
            blob,
            chunk: 0,
        }
    }

    #[test]
    fn what_is_late_or_of_a_keyspace_that_is_gone_is_told_once() {
        let mut pieces = Pieces::default();
        for (number, keyspace, until_us) in [(1, 1, 50), (2, 1, 90), (3, 2, 50), (4, 2, 99)] {
            pieces.stage(piece(number, keyspace), until_us);
            pieces.invariants();
        }
        let late = |pieces: &Pieces, clock_us, gone: Option<u32>| {
            let mut late = pieces.late(clock_us, |keyspace| gone == Some(keyspace.0));
            late.sort_unstable();
            late.into_iter().map(|id| id.0 as u64).collect::<Vec<_>>()
        };
        assert_eq!(late(&pieces, 50, None), [0; 0], "promised until then");
        assert_eq!(late(&pieces, 51, None), [1, 3]);
        assert_eq!(late(&pieces, 51, Some(2)), [1, 3, 4]);
        assert_eq!(late(&pieces, 51, Some(3)), [1, 3]);
        pieces.stage(piece(1, 1), 95);
        pieces.stage(piece(2, 1), 60);
        pieces.invariants();
        assert_eq!(late(&pieces, 91, None), [2, 3], "renewed, and never for less time");
        assert!(pieces.remove(PieceId::new(1, 3)).is_some());
        assert!(pieces.remove(PieceId::new(1, 4)).is_some());
        assert!(pieces.remove(PieceId::new(1, 4)).is_none());
        pieces.invariants();
        assert_eq!(late(&pieces, 96, Some(2)), [1, 2]);
    }

    /// Also when the log says so, before it has the transaction.
    #[test]
    fn what_was_laid_aside_is_its_transactions() {
        let mut pieces = Pieces::default();
        let StagedPiece { piece: of, blob, .. } = piece(1, 1);
        pieces.stage(piece(1, 1), 50);
        let payload = Payload::Uploaded(Arc::new(Uploaded::of([of]).unwrap()));
        let operations = vec![Operation::Write { offset: 0, payload }];
        let (blobs, reads) = (vec![BlobOperations { blob, operations }], Vec::new());
        pieces.lay_aside(&Transaction { id: TransactionId(7), blobs, reads });
        let kept = pieces.get(PieceId::new(1, 1)).unwrap();
        assert_eq!((kept.claimed_by, kept.is_laid_aside), (Some(TransactionId(7)), true));
    }
}
