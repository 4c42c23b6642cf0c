//! The pieces of a client's transaction that are uploaded ahead of it (U1).
//!
//! A workload says what is in each piece, and in place of its name the chunk that it is for; names
//! come with the answers.

use std::collections::VecDeque;
use std::sync::Arc;

use tyr_protocol::session::Call;
use tyr_protocol::upload::PieceSource;
use tyr_types::{
    BlobName, BlobOperations, Bytes, Operation, Payload, PieceContent, PieceId, PieceRef, Uploaded,
    UploadedPiece,
};

/// A payload of these bytes at `offset` of its blob, in pieces that end where chunks do, and are
/// `len_max` bytes long at most.
pub fn in_pieces(bytes: &Bytes, offset: u64, chunk_size: u64, len_max: u64) -> Payload {
    let end = offset + bytes.len() as u64;
    cut(bytes, offset, chunk_size, |at| (chunk_size - at % chunk_size).min(len_max).min(end - at))
}

/// The same in pieces that are as long as `len_at` says of where each begins.
pub fn cut(
    bytes: &Bytes,
    offset: u64,
    chunk_size: u64,
    mut len_at: impl FnMut(u64) -> u64,
) -> Payload {
    let (mut at, mut rest, mut pieces) = (offset, bytes.clone(), Vec::new());
    while !rest.is_empty() {
        let len = len_at(at);
        let piece = PieceRef { id: PieceId((at / chunk_size).into()), len: len as u32, sum: 0 };
        let content = PieceContent::Bytes(rest.split_to(len as usize));
        pieces.push(UploadedPiece { piece, content });
        at += len;
    }
    let uploaded = Uploaded::new(pieces).expect("there are bytes, and pieces are short");
    Payload::Uploaded(Arc::new(uploaded))
}

/// What a client does when all is uploaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Afterwards {
    /// It commits the transaction.
    #[default]
    Commit,
    /// It says that it does not need the pieces (U2).
    Drop,
    /// It does nothing about them: they are late some day.
    Leave,
}

/// What is uploaded for a transaction.
#[derive(Debug)]
pub struct Uploading {
    todo: VecDeque<Call>,
    /// The names that the session gave, in order.
    done: Vec<PieceRef>,
    /// The chunk of each that was asked for, in order.
    places: Vec<(BlobName, u64)>,
    /// How many of these were dropped.
    dropped: usize,
}

impl Uploading {
    /// What these operations need.
    pub fn of(blobs: &[BlobOperations]) -> Self {
        let mut todo = VecDeque::new();
        for entry in blobs {
            for (_, uploaded) in entry.operations.iter().filter_map(Operation::uploaded) {
                for UploadedPiece { piece, content } in uploaded.pieces() {
                    let PieceContent::Bytes(bytes) = content else {
                        panic!("a workload says what is in a piece")
                    };
                    let (blob, chunk) = (entry.blob.clone(), piece.id.0 as u64);
                    todo.push_back(Call::Stage { blob, chunk, bytes: bytes.clone() });
                }
            }
        }
        Self { todo, done: Vec::new(), places: Vec::new(), dropped: 0 }
    }

    /// The same, filled by nodes with what is there, one piece after the other.
    pub fn copied(self, sources: VecDeque<PieceSource>) -> Self {
        assert_eq!(self.todo.len(), sources.len(), "each piece is filled");
        let filled = |(call, source): (Call, PieceSource)| match call {
            Call::Stage { blob, chunk, bytes } => {
                assert_eq!(bytes.len() as u64, source.range.len(), "with as much");
                Call::Copy { blob, chunk, source }
            }
            other => panic!("nothing else goes ahead: {other:?}"),
        };
        Self { todo: self.todo.into_iter().zip(sources).map(filled).collect(), ..self }
    }

    /// The next piece to upload.
    pub fn next(&mut self) -> Option<Call> {
        let call = self.todo.pop_front()?;
        if let Call::Stage { blob, chunk, .. } | Call::Copy { blob, chunk, .. } = &call {
            self.places.push((blob.clone(), *chunk));
        }
        Some(call)
    }

    /// A piece is uploaded, and has this name.
    pub fn uploaded(&mut self, piece: PieceRef) {
        self.done.push(piece);
    }

    /// Whether all is uploaded.
    pub fn is_uploaded(&self) -> bool {
        self.todo.is_empty() && self.done.len() == self.places.len()
    }

    /// Drops what was uploaded next to what was dropped, as far as it is for the same chunk.
    pub fn next_drop(&mut self) -> Option<Call> {
        let (blob, chunk) = self.places.get(self.dropped)?.clone();
        let rest = self.places[self.dropped..].iter();
        let count = rest.take_while(|place| **place == (blob.clone(), chunk)).count();
        let ids = self.done[self.dropped..self.dropped + count].iter().map(|piece| piece.id);
        let ids = ids.collect();
        self.dropped += count;
        Some(Call::Unstage { blob, chunk, ids })
    }

    /// Whether all was dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped == self.places.len()
    }

    /// The operations as they are submitted: with the pieces' names, and nothing else of them.
    pub fn named(&self, blobs: &[BlobOperations]) -> Vec<BlobOperations> {
        let mut names = self.done.iter();
        let mut named = |operation: &Operation| {
            let uploaded = operation.uploaded();
            let count = uploaded.map_or(0, |(_, uploaded)| uploaded.pieces().len());
            let pieces: Vec<PieceRef> = names.by_ref().take(count).copied().collect();
            rename(operation, pieces)
        };
        let entry = |entry: &BlobOperations| BlobOperations {
            blob: entry.blob.clone(),
            operations: entry.operations.iter().map(&mut named).collect(),
        };
        blobs.iter().map(entry).collect()
    }
}

/// The operation with these pieces in place of its own.
fn rename(operation: &Operation, pieces: Vec<PieceRef>) -> Operation {
    if pieces.is_empty() {
        return operation.clone();
    }
    let uploaded = Uploaded::of(pieces).expect("they are as long as what was uploaded");
    let payload = Payload::Uploaded(Arc::new(uploaded));
    match operation {
        Operation::Write { offset, .. } => Operation::Write { offset: *offset, payload },
        Operation::Append { expected, .. } => Operation::Append { payload, expected: *expected },
        Operation::Replace { .. }
        | Operation::Create
        | Operation::Truncate { .. }
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Apply { .. }
        | Operation::Compare { .. }
        | Operation::Expect { .. } => Operation::Replace { payload },
    }
}
