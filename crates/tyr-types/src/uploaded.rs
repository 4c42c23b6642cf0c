//! Payloads that are uploaded ahead of their transaction, in pieces (U1).
//!
//! A transaction names its pieces, and does not carry them: each was sent to the nodes that will
//! have its bytes, and lies in their extents before the transaction is submitted.
//!
//! ```text
//!   payload   |── piece ──|── piece ──|─ piece ─|       a piece lies in one chunk of its blob
//!   chunks  ──────────────────────────|────────────
//! ```

use std::fmt;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::limits;
use crate::payload::ExtentRef;

/// Names a piece: the client that uploaded it, and a number that it never uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId(pub u128);

impl PieceId {
    /// The piece of this number of the client that drew `client`.
    pub fn new(client: u64, number: u64) -> Self {
        Self(u128::from(client) << 64 | u128::from(number))
    }

    /// Whose piece it is.
    pub fn client(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

/// A piece as a transaction refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceRef {
    /// Its name.
    pub id: PieceId,
    /// Bytes of it: 1 to [`limits::PIECE_LEN_MAX`].
    pub len: u32,
    /// XXH3 over them: who stages other bytes under the same name is found out.
    pub sum: u64,
}

/// What this process has of a piece.
#[derive(Clone, PartialEq, Eq)]
pub enum PieceContent {
    /// Nothing, or it is to be looked up by its name. So pieces travel and are logged.
    Elsewhere,
    /// Its bytes.
    Bytes(Bytes),
    /// Where its bytes lie in this node's extents.
    Extents(Vec<ExtentRef>),
}

/// Printed without the bytes.
impl fmt::Debug for PieceContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elsewhere => f.write_str("Elsewhere"),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Extents(extents) => f.debug_tuple("Extents").field(extents).finish(),
        }
    }
}

/// A piece of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedPiece {
    /// Which.
    pub piece: PieceRef,
    /// What is here of it.
    pub content: PieceContent,
}

/// A payload in pieces that were uploaded ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uploaded {
    pieces: Vec<UploadedPiece>,
    len: u64,
}

impl Uploaded {
    /// The payload of these pieces, one after the other.
    ///
    /// # Errors
    /// `InvalidArgument` when there is none, one is empty or longer than
    /// [`limits::PIECE_LEN_MAX`], or together they are longer than a blob.
    pub fn new(pieces: Vec<UploadedPiece>) -> Result<Self> {
        let mut len = 0u64;
        for UploadedPiece { piece, .. } in &pieces {
            if piece.len == 0 || piece.len > limits::PIECE_LEN_MAX {
                return Err(Error::invalid(format!(
                    "a piece has 1 to {} bytes (4 MiB), this one has {}",
                    limits::PIECE_LEN_MAX,
                    piece.len
                )));
            }
            len += u64::from(piece.len);
        }
        if len == 0 || len > limits::BLOB_SIZE_MAX {
            return Err(Error::invalid(format!(
                "an uploaded payload has 1 to {} bytes, this one has {len}",
                limits::BLOB_SIZE_MAX
            )));
        }
        Ok(Self { pieces, len })
    }

    /// The same, by names alone: as it travels.
    ///
    /// # Errors
    /// As [`Uploaded::new`].
    pub fn of(pieces: impl IntoIterator<Item = PieceRef>) -> Result<Self> {
        let named = |piece| UploadedPiece { piece, content: PieceContent::Elsewhere };
        Self::new(pieces.into_iter().map(named).collect())
    }

    /// Its pieces, in order; at least one.
    pub fn pieces(&self) -> &[UploadedPiece] {
        &self.pieces
    }

    /// Bytes of all of them.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never: it has at least a byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its pieces, each with where it begins, in bytes from the payload's start.
    pub fn placed(&self) -> impl Iterator<Item = (u64, &UploadedPiece)> {
        self.pieces.iter().scan(0, |next, uploaded| {
            let start = *next;
            *next += u64::from(uploaded.piece.len);
            Some((start, uploaded))
        })
    }

    /// The same payload with what `content` says there is of each piece.
    pub fn with_content(&self, content: impl Fn(&PieceRef) -> PieceContent) -> Self {
        let found =
            |it: &UploadedPiece| UploadedPiece { piece: it.piece, content: content(&it.piece) };
        Self { pieces: self.pieces.iter().map(found).collect(), len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: u64, len: u32) -> PieceRef {
        PieceRef { id: PieceId::new(7, number), len, sum: 0 }
    }

    #[test]
    fn pieces_follow_each_other() {
        let uploaded = Uploaded::of([piece(1, 10), piece(2, 4), piece(3, 1)]).unwrap();
        assert_eq!(uploaded.len(), 15);
        let starts: Vec<u64> = uploaded.placed().map(|(start, _)| start).collect();
        assert_eq!(starts, [0, 10, 14]);
        assert_eq!(uploaded.pieces()[1].piece.id.client(), 7);
    }

    #[test]
    fn a_payload_without_bytes_and_a_piece_too_long_are_refused() {
        assert!(Uploaded::of([]).is_err());
        assert!(Uploaded::of([piece(1, 5), piece(2, 0)]).is_err());
        let error = Uploaded::of([piece(1, limits::PIECE_LEN_MAX + 1)]).unwrap_err();
        assert!(error.message().contains("1 to 4194304 bytes"), "{error}");
    }
}
