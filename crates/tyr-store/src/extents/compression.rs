//! How a payload is compressed: in pieces, so that a part of it can be read alone.
//!
//! ```text
//! | length of piece 0 (u32) | length of piece 1 | ... | piece 0 | piece 1 | ...
//! ```
//!
//! Each piece is 64 KiB of payload (the last one what is left) as one lz4 block. A piece that lz4
//! does not make smaller is stored as it is, and bit 31 of its length says so.

use lz4_flex::block;
use tyr_types::limits;

/// Bytes of payload in a piece.
pub const PIECE_LEN: usize = 64 << 10;
/// Bytes of the longest table.
pub const TABLE_LEN_MAX: usize = limits::EXTENT_LEN_MAX as usize / PIECE_LEN * 4;

const STORED_AS_IS: u32 = 1 << 31;

const _: () = {
    assert!((limits::EXTENT_LEN_MAX as usize).is_multiple_of(PIECE_LEN), "no table is longer");
    assert!(PIECE_LEN < STORED_AS_IS as usize, "a length leaves that bit alone");
};

/// Bytes of the table of a payload of `len` bytes.
pub fn table_len(len: usize) -> usize {
    len.div_ceil(PIECE_LEN) * 4
}

/// Compresses `data` into `out`, which is emptied first. Answers whether that saves at least an
/// eighth; below it reading would pay for nothing.
pub fn compress(data: &[u8], out: &mut Vec<u8>) -> bool {
    debug_assert!(table_len(data.len()) <= TABLE_LEN_MAX, "a reader has no room for that table");
    let mut table = block::CompressTable::large();
    out.clear();
    out.resize(table_len(data.len()), 0);
    for (number, piece) in data.chunks(PIECE_LEN).enumerate() {
        let start = out.len();
        out.resize(start + block::get_maximum_output_size(piece.len()), 0);
        let compressed = block::compress_into_with_table(piece, &mut out[start..], &mut table)
            .ok()
            .filter(|len| *len < piece.len());
        let length = match compressed {
            Some(len) => len as u32,
            None => {
                out[start..start + piece.len()].copy_from_slice(piece);
                piece.len() as u32 | STORED_AS_IS
            }
        };
        out.truncate(start + (length & !STORED_AS_IS) as usize);
        out[number * 4..number * 4 + 4].copy_from_slice(&length.to_le_bytes());
    }
    debug_assert!(
        Pieces::new(&out[..table_len(data.len())], data.len(), out.len()).is_some(),
        "the table does not tell where the pieces are"
    );
    out.len() <= data.len() - data.len() / 8
}

/// Where the pieces of a compressed payload lie.
pub struct Pieces<'a> {
    table: &'a [u8],
    payload_len: usize,
}

/// One piece of a compressed payload.
pub struct Piece {
    /// Where its stored bytes begin, counted from the table's first byte.
    pub stored_at: usize,
    /// How many there are.
    pub stored_len: usize,
    /// Bytes of payload it holds.
    pub payload_len: usize,
    is_as_is: bool,
}

impl<'a> Pieces<'a> {
    /// The pieces of a payload of `payload_len` bytes, stored in `stored_len` bytes that begin with
    /// `table`. None when the table does not fit these lengths.
    pub fn new(table: &'a [u8], payload_len: usize, stored_len: usize) -> Option<Self> {
        if table.len() != table_len(payload_len) {
            return None;
        }
        let pieces = Self { table, payload_len };
        let mut end = table.len();
        for piece in pieces.iter() {
            if piece.stored_len == 0 || piece.stored_len > piece.payload_len {
                return None;
            }
            end += piece.stored_len;
        }
        (end == stored_len).then_some(pieces)
    }

    /// All pieces, in order.
    pub fn iter(&self) -> impl Iterator<Item = Piece> {
        let mut stored_at = self.table.len();
        self.table.chunks_exact(4).enumerate().map(move |(number, entry)| {
            let entry = u32::from_le_bytes(entry.try_into().expect("chunks of 4 have 4 bytes"));
            let stored_len = (entry & !STORED_AS_IS) as usize;
            let piece = Piece {
                stored_at,
                stored_len,
                payload_len: (self.payload_len - number * PIECE_LEN).min(PIECE_LEN),
                is_as_is: entry & STORED_AS_IS != 0,
            };
            stored_at += stored_len;
            piece
        })
    }
}

impl Piece {
    /// Writes the payload of the piece to `out`, which has its length. False when the stored bytes
    /// are none that [`compress`] makes.
    #[must_use]
    pub fn restore(&self, stored: &[u8], out: &mut [u8]) -> bool {
        debug_assert_eq!(out.len(), self.payload_len);
        if self.is_as_is {
            let is_whole = stored.len() == out.len();
            if is_whole {
                out.copy_from_slice(stored);
            }
            return is_whole;
        }
        block::decompress_into(stored, out).is_ok_and(|len| len == out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_does_not_compress_is_refused_and_one_that_does_comes_back() {
        let mut out = Vec::new();
        let mut chance = crate::disk::simulated::chance::Chance::new(1);
        let noise: Vec<u8> = (0..200_000).map(|_| chance.any() as u8).collect();
        assert!(!compress(&noise, &mut out));
        let mut mixed = noise;
        mixed.resize(400_000, 7);
        assert!(compress(&mixed, &mut out));
        let (table, _) = out.split_at(table_len(mixed.len()));
        let mut back = Vec::new();
        for piece in Pieces::new(table, mixed.len(), out.len()).unwrap().iter() {
            let start = back.len();
            back.resize(start + piece.payload_len, 0);
            let stored = &out[piece.stored_at..piece.stored_at + piece.stored_len];
            assert!(piece.restore(stored, &mut back[start..]));
        }
        assert_eq!(back, mixed);
    }

    #[test]
    fn tables_that_do_not_add_up_are_refused() {
        let mut out = Vec::new();
        assert!(compress(&[1; 100_000], &mut out));
        let table = &out[..table_len(100_000)];
        assert!(Pieces::new(table, 100_000, out.len()).is_some());
        assert!(Pieces::new(table, 100_000, out.len() - 1).is_none());
        assert!(Pieces::new(table, 200_000, out.len()).is_none());
        assert!(Pieces::new(&[0; 8], 100_000, 8).is_none());
        assert!(Pieces::new(&[0xFF; 8], 100_000, out.len()).is_none());
    }
}
