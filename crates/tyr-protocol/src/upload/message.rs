//! What clients and nodes say to each other about pieces.

use tyr_types::{BlobName, ByteRange, Bytes, PieceId, PieceRef, Timestamp, TransactionId};

/// A piece, and the chunk that it will lie in: it is placed as that is, and is good for no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedPiece {
    /// Its name, length and sum.
    pub piece: PieceRef,
    /// The blob.
    pub blob: BlobName,
    /// The chunk.
    pub chunk: u64,
}

/// Where nodes find what a piece is to have in it (U5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceSource {
    /// The blob.
    pub blob: BlobName,
    /// Bytes of one of its chunks: 1 to [`tyr_types::limits::PIECE_LEN_MAX`]. Where nothing was
    /// written there are zeros in the piece.
    pub range: ByteRange,
    /// When.
    pub at: Timestamp,
}

/// What is said about pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A client uploads a piece to one of the nodes that its chunk is placed on. Answered by
    /// `Staged` when it is durable at all of them, or by `Refused` or `NotHere` with the number of
    /// a read. The same again begins its time anew (U2).
    Stage {
        /// What the answer names, among the numbers of the client's reads.
        number: u64,
        /// The piece.
        staged: StagedPiece,
        /// What is in it.
        bytes: Bytes,
    },
    /// To a client: the piece is durable wherever its chunk is placed.
    Staged {
        /// The number of the question.
        number: u64,
    },
    /// A node passes a piece on to another, or gives it one that it asked for (U4).
    Pass {
        /// The piece.
        staged: StagedPiece,
        /// What is in it.
        bytes: Bytes,
    },
    /// The piece that the receiver passed on is durable at the sender.
    Passed {
        /// The piece.
        id: PieceId,
    },
    /// A node lacks a piece of a transaction that it is to validate (U4). Answered by `Pass`, or by
    /// `Lacking`.
    Fetch {
        /// The piece.
        id: PieceId,
        /// The transaction.
        transaction: TransactionId,
    },
    /// The sender has not got this piece for that transaction.
    Lacking {
        /// The piece.
        id: PieceId,
        /// The transaction.
        transaction: TransactionId,
    },
    /// A client does not need these pieces any more, all of one chunk. Answered by nobody; a node
    /// passes it on.
    Drop {
        /// The blob.
        blob: BlobName,
        /// The chunk.
        chunk: u64,
        /// The pieces.
        ids: Vec<PieceId>,
    },
    /// A client wants a piece to be filled with what a blob had at a moment (U5), by one of the
    /// nodes that the piece's chunk is placed on. Answered by `Copied` when it is durable at all of
    /// them, or by `Refused` or `NotHere` with the number of a read. The same again begins its time
    /// anew.
    Copy {
        /// What the answer names, among the numbers of the client's reads.
        number: u64,
        /// The piece.
        id: PieceId,
        /// The blob that it is for.
        blob: BlobName,
        /// The chunk.
        chunk: u64,
        /// What is to be in it.
        source: PieceSource,
    },
    /// To a client: the piece is filled, and durable wherever its chunk is placed.
    Copied {
        /// The number of the question.
        number: u64,
        /// The piece, with its length and its sum.
        piece: PieceRef,
    },
}
