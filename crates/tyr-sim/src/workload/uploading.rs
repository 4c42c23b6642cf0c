//! The pieces of a client's transaction that are uploaded ahead of it (U1).
//!
//! A workload says what is in each piece, and in place of its name the chunk that it is for; names
//! come with the answers.

use std::collections::VecDeque;
use std::sync::Arc;

use tyr_protocol::session::Call;
use tyr_types::{
    BlobName, BlobOperations, Bytes, Operation, Payload, PieceContent, PieceId, PieceRef, Uploaded,
    UploadedPiece,
};

/// A payload of these bytes at `offset` of its blob, in pieces that end where chunks do, and are
/// `len_max` bytes long at most.
pub fn in_pieces(bytes: &Bytes, offset: u64, chunk_size: u64, len_max: u64) -> Payload {
    let (mut at, mut rest, mut pieces) = (offset, bytes.clone(), Vec::new());
    while !rest.is_empty() {
        let len = (chunk_size - at % chunk_size).min(len_max).min(rest.len() as u64);
        let piece = PieceRef { id: PieceId((at / chunk_size).into()), len: len as u32, sum: 0 };
        let content = PieceContent::Bytes(rest.split_to(len as usize));
        pieces.push(UploadedPiece { piece, content });
        at += len;
    }
    let uploaded = Uploaded::new(pieces).expect("there are bytes, and pieces are short");
    Payload::Uploaded(Arc::new(uploaded))
}

/// What is uploaded for a transaction.
#[derive(Debug)]
pub struct Uploading {
    todo: VecDeque<(BlobName, u64, Bytes)>,
    /// The names that the session gave, in order.
    done: Vec<PieceRef>,
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
                    todo.push_back((entry.blob.clone(), piece.id.0 as u64, bytes.clone()));
                }
            }
        }
        Self { todo, done: Vec::new() }
    }

    /// The next piece to upload.
    pub fn next(&mut self) -> Option<Call> {
        let (blob, chunk, bytes) = self.todo.pop_front()?;
        Some(Call::Stage { blob, chunk, bytes })
    }

    /// A piece is uploaded, and has this name.
    pub fn uploaded(&mut self, piece: PieceRef) {
        self.done.push(piece);
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
