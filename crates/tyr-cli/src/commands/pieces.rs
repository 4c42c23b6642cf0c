//! `--pieces`: a source written in many transactions, one a piece.

use std::io::Read;

use bytes::Bytes;
use clap::Args;
use tyr::{Error, Result};

use crate::commands::source::each_piece;

/// Bytes of a piece: a quarter of what a transaction of a cluster carries.
const PIECE_LEN: usize = 4 << 20;

/// Whether to write in pieces.
#[derive(Args, Debug)]
pub struct PiecesArguments {
    /// One transaction for every 4 MiB instead of one for all of it, as a cluster needs beyond
    /// 16 MiB: readers may see a part, and after an error a part is there
    #[arg(long = "pieces")]
    pub is_wanted: bool,
}

/// Writes what `source` has, a piece at a time, by `write`, which is told how much came before;
/// nothing at all is one piece, too. Answers how many bytes it was.
///
/// # Errors
/// As `write`, and when `source` fails; it says how many bytes were written before.
pub fn write_pieces(
    source: &mut impl Read,
    mut write: impl FnMut(u64, Bytes) -> Result<()>,
) -> Result<u64> {
    let mut done = 0;
    let written = each_piece(source, PIECE_LEN, |before, piece| {
        let end = before + piece.len() as u64;
        write(before, piece)?;
        done = end;
        Ok(())
    });
    written.map_err(|error| broken_off(error, done))
}

fn broken_off(error: Error, done: u64) -> Error {
    match done {
        0 => error,
        _ => error.context(format!(
            "the first {done} bytes are written, and the rest can be, by `tyr write --pieces` from \
             there on"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other_and_nothing_is_a_piece() {
        for len in [0, 1, PIECE_LEN - 1, PIECE_LEN, PIECE_LEN + 1, 3 * PIECE_LEN] {
            let content: Vec<u8> = (0..len).map(|place| (place / 1000) as u8).collect();
            let (mut got, mut pieces) = (Vec::new(), 0);
            let done = write_pieces(&mut &content[..], |before, piece| {
                assert_eq!(before, got.len() as u64);
                got.extend_from_slice(&piece);
                pieces += 1;
                Ok(())
            });
            assert_eq!((done.unwrap(), got), (len as u64, content));
            assert_eq!(pieces, len.div_ceil(PIECE_LEN).max(1));
        }
    }

    #[test]
    fn an_error_tells_how_far_it_came() {
        let content = vec![1; 2 * PIECE_LEN];
        let fails_at = |place| {
            write_pieces(&mut &content[..], |before, _| match before == place {
                true => Err(Error::conflict("no")),
                false => Ok(()),
            })
            .unwrap_err()
        };
        assert_eq!(fails_at(0).message(), "no");
        let error = fails_at(PIECE_LEN as u64);
        assert_eq!(error.kind(), tyr::ErrorKind::Conflict);
        assert!(error.message().contains("the first 4194304 bytes"), "{error}");
    }
}
