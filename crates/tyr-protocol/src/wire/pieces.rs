//! How pieces are written that are uploaded ahead of their transaction, and what is said of them.

use tyr_types::{PieceContent, PieceId, PieceRef, Uploaded};

use super::encoded::{Encoded, encoded_enum, encoded_struct};
use super::input::{Input, Malformed};
use super::output::Output;
use crate::upload::{self, PieceSource, StagedPiece};

impl Encoded for PieceId {
    const LEN_MIN: usize = 16;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.raw(&self.0.to_le_bytes());
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.array().map(|bytes| Self(u128::from_le_bytes(bytes)))
    }
}

/// Its sum in eight bytes: a number drawn at random takes more otherwise.
impl Encoded for PieceRef {
    const LEN_MIN: usize = 25;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self { id, len, sum } = self;
        id.encode(output);
        len.encode(output);
        output.raw(&sum.to_le_bytes());
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let (id, len) = (Encoded::decode(input)?, Encoded::decode(input)?);
        Ok(Self { id, len, sum: u64::from_le_bytes(input.array()?) })
    }
}

/// By names: what a node has of the pieces is its own affair.
impl Encoded for Uploaded {
    const LEN_MIN: usize = 1 + PieceRef::LEN_MIN;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(self.pieces().len() as u64);
        for uploaded in self.pieces() {
            uploaded.piece.encode(output);
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let pieces = Vec::<PieceRef>::decode(input)?;
        Self::of(pieces).map_err(|_| input.malformed("the pieces before are none, or too long"))
    }
}

/// Of a piece in a node's own records.
impl Encoded for PieceContent {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        match self {
            Self::Elsewhere => output.byte(0),
            Self::Bytes(bytes) => {
                output.byte(1);
                bytes.encode(output);
            }
            Self::Extents(extents) => {
                output.byte(2);
                extents.encode(output);
            }
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(match input.byte()? {
            0 => Self::Elsewhere,
            1 => Self::Bytes(Encoded::decode(input)?),
            2 => Self::Extents(Encoded::decode(input)?),
            _ => return Err(input.unknown_last("an unknown content of a piece")),
        })
    }
}

encoded_struct!(StagedPiece, 27, { piece, blob, chunk });

encoded_struct!(PieceSource, 7, { blob, range, at });

encoded_enum!(upload::Message, "message about pieces", {
    0 => Stage { number, staged, bytes },
    1 => Staged { number },
    2 => Pass { staged, bytes },
    3 => Passed { id },
    4 => Fetch { id, transaction },
    5 => Lacking { id, transaction },
    6 => Drop { blob, chunk, ids },
    7 @ 16 => Copy { number, id, blob, chunk, source },
    8 @ 16 => Copied { number, piece },
});
