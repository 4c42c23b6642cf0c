//! How a transaction is applied to the chunks of a blob that are here.
//!
//! Must not know: where the transaction comes from, and who else applies it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tyr_protocol::commit::Answered;
use tyr_protocol::upload::with_content;
use tyr_protocol::{Part, View};
use tyr_store::recent::{Attributes, BlobState};
use tyr_store::store::chunks::stored_name;
use tyr_types::PieceContent::Elsewhere;
use tyr_types::chunk::Start;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, ExtentRef, Operation, PieceContent, Timestamp,
    TransactionId, UploadedPiece,
};

use super::Holdings;
use super::staging::{self, Written};

/// The operations of a transaction on a blob as they are applied.
struct Applied<'e> {
    operations: Cow<'e, [Operation]>,
    /// Where the extents among them lie.
    spans: Vec<(ExtentRef, ByteRange)>,
    /// What answers for the extents until the store does.
    written: Option<Written>,
}

/// How long the blob is whose first chunk this is, if it exists.
pub(super) fn size_of(first: &BlobState) -> Option<u64> {
    let Attributes { exists, size, .. } = first.attributes();
    exists.then_some(size)
}

impl Holdings {
    /// The operations as they are applied: large payloads by reference, if each piece lies in one
    /// chunk.
    fn operations<'e>(
        &mut self,
        id: TransactionId,
        number: usize,
        entry: &'e BlobOperations,
        append_at: u64,
    ) -> Applied<'e> {
        let chunk_size = self.chunk_size(entry.blob.keyspace);
        let whole = |operations: &[Operation]| staging::spans(operations, append_at, chunk_size);
        let (mut spans, mut written) = (Vec::new(), None);
        let operations = match self.staging.take(id, number, entry) {
            Some((staged, leases)) => match whole(&staged) {
                Some(of) => {
                    (spans, written) = (of, Some(leases));
                    Cow::Owned(staged)
                }
                None => Cow::Borrowed(&entry.operations[..]),
            },
            None => match whole(&entry.operations) {
                Some(of) => {
                    spans = of;
                    Cow::Borrowed(&entry.operations[..])
                }
                None => {
                    let inlined = staging::inline(&self.store, &entry.operations);
                    Cow::Owned(self.note(inlined).unwrap_or_default())
                }
            },
        };
        let operations = match operations.iter().any(|it| it.uploaded().is_some()) {
            true => Cow::Owned(self.with_pieces(&operations)),
            false => operations,
        };
        Applied { operations, spans, written }
    }

    /// The operations with what is here of pieces that were uploaded ahead: by reference, or where
    /// something is computed over them, by value.
    fn with_pieces(&mut self, operations: &[Operation]) -> Vec<Operation> {
        let is_computed = operations.iter().any(|it| matches!(it, Operation::Apply { .. }));
        let mut failure = None;
        let mut read = BTreeMap::new();
        if is_computed {
            let uploads = operations.iter().filter_map(Operation::uploaded);
            for it in uploads.flat_map(|(_, uploaded)| uploaded.pieces()) {
                match self.pieces.bytes(&self.store, it.piece.id) {
                    Ok(bytes) => drop(read.insert(it.piece.id, bytes)),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
        if let Some(error) = failure {
            self.note::<()>(Err(error));
        }
        with_content(operations, |piece| match is_computed {
            true => read.get(&piece.id).cloned().flatten().map_or(Elsewhere, PieceContent::Bytes),
            false => self.pieces.content(piece.id),
        })
    }

    /// The pieces that lie in these chunks are the chunks' now.
    fn adopt_pieces(&self, operations: &[Operation], chunk_size: u64, chunks: &BTreeSet<u64>) {
        for (offset, uploaded) in operations.iter().filter_map(Operation::uploaded) {
            for (start, UploadedPiece { piece, content }) in uploaded.placed() {
                let is_here = chunks.contains(&((offset + start) / chunk_size));
                if is_here && matches!(content, PieceContent::Extents(_)) {
                    self.pieces.adopt(piece.id);
                }
            }
        }
    }

    /// Applies what the transaction does to its blob number `place_in`, and adds what that
    /// answers, in the order of the operations.
    pub(super) fn apply_blob(
        &mut self,
        (id, at): (TransactionId, Timestamp),
        (place_in, entry): (u32, &BlobOperations),
        chunks: &[u64],
        start: Start,
        answers: &mut Vec<Answered>,
    ) {
        let blob = &entry.blob;
        let append_at = match start {
            Start::Known(size) => size,
            Start::Guessed(guess) => guess,
        };
        let Applied { operations, spans, written } =
            self.operations(id, place_in as usize, entry, append_at);
        let (first, mut here) = (answers.len(), BTreeSet::new());
        for number in chunks {
            if self.is_expected(blob, *number) {
                self.lay_aside(blob, *number, at, entry, start);
                continue;
            }
            let (place, readers) = (self.place(blob.keyspace, *number), self.readers(blob, at));
            let applied = self.store.chunk(&stored_name(blob, *number)).and_then(|cell| {
                let size = || (*number == 0).then(|| size_of(&cell.lock()));
                let before = size();
                let answered =
                    self.store.apply_chunk(&cell, place, &operations, start, at, readers)?;
                if let (Some(before), Some(after)) = (before, size()) {
                    self.count(blob, before, after);
                }
                Ok(answered)
            });
            here.insert(*number);
            let all = self.note(applied).unwrap_or_default().into_iter();
            answers.extend(all.filter_map(|(operation, outcome)| {
                Answered::at_chunk(place_in, *number, operation, outcome)
            }));
        }
        let chunk_size = self.chunk_size(blob.keyspace);
        self.adopt_pieces(&operations, chunk_size, &here);
        if let Some(written) = written {
            let is_here = |(_, span): &&(_, ByteRange)| here.contains(&(span.start / chunk_size));
            written.adopt(&spans.iter().filter(is_here).map(|(extent, _)| *extent).collect());
        }
        answers[first..].sort_unstable_by_key(|answered| answered.operation);
    }

    /// What an append goes by in later chunks: the guess of its chain, which the version managers
    /// have checked. What the first chunk says here may be of another moment: it may be a copy; its
    /// base may be from after where the log begins; it may have gone to others since, and what the
    /// log has of it from before be applied to nothing.
    ///
    /// Only the chain of a node that holds everything has no guess: clusters of one had such before
    /// they had chains like any, and their logs have them.
    pub(super) fn start(&self, part: &Part, blob: &BlobName, guess: u64, at: Timestamp) -> Start {
        match part {
            Part::Pieces(_) => Start::Guessed(guess),
            Part::Whole => self.size_before(blob, at).map_or(Start::Guessed(guess), Start::Known),
        }
    }

    /// Where the blob ends before a transaction at `at`, if the first chunk has not got it yet.
    fn size_before(&self, blob: &BlobName, at: Timestamp) -> Option<u64> {
        if self.is_expected(blob, 0) {
            return None;
        }
        let before =
            |state: &BlobState| (state.included_to() < at).then_some(size_of(state).unwrap_or(0));
        self.look(blob, 0, before).flatten()
    }

    /// Keeps what is applied to a chunk whose base is still to come, by value.
    fn lay_aside(
        &mut self,
        blob: &BlobName,
        chunk: u64,
        at: Timestamp,
        entry: &BlobOperations,
        start: Start,
    ) {
        let inlined = staging::inline(&self.store, &entry.operations);
        let Some(operations) = self.note(inlined) else { return };
        let place = self.place(blob.keyspace, chunk).range;
        let operations = match operations.iter().any(|it| it.uploaded().is_some()) {
            true => self.with_bytes_in(&operations, place),
            false => operations,
        };
        if let Some(expected) = self.expected.get_mut(&(blob.clone(), chunk)) {
            expected.lay_aside(at, operations, start);
        }
    }

    /// The operations with the bytes of pieces that lie in `place` of the blob. What is not here is
    /// in the base that is to come (U3).
    fn with_bytes_in(&mut self, operations: &[Operation], place: ByteRange) -> Vec<Operation> {
        let mut read = BTreeMap::new();
        for (offset, uploaded) in operations.iter().filter_map(Operation::uploaded) {
            for (start, it) in uploaded.placed() {
                let start = offset + start;
                let span = ByteRange { start, end: start + u64::from(it.piece.len) };
                if span.overlaps(place) {
                    let bytes = self.pieces.bytes(&self.store, it.piece.id);
                    read.insert(it.piece.id, self.note(bytes).flatten());
                }
            }
        }
        with_content(operations, |piece| {
            read.get(&piece.id).cloned().flatten().map_or(Elsewhere, PieceContent::Bytes)
        })
    }
}
