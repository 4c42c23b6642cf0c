//! What a client has still to ask in a snapshot of the stretches of a blob, and what is told.
//!
//! What is told to be a hole reads as zeros at that moment; more may be told to be written than is.
//! So each hole is taken down as a read at the snapshot's moment that found zeros, which the
//! checkers hold against the history as they do all others.

use std::collections::VecDeque;

use tyr_protocol::read::layout;
use tyr_protocol::session::{Call, Place, Want};
use tyr_types::{BlobName, ByteRange, Bytes, Stretches, Timestamp};

use crate::checker::{Found, Seen};

/// The pieces of a blob that a client still has to ask about.
#[derive(Debug, Default)]
pub struct Stretching {
    pieces: VecDeque<Want>,
    is_asking: bool,
}

impl Stretching {
    /// This range of a blob, chunk by chunk.
    pub fn new(blob: &BlobName, range: ByteRange, chunk_size: u64) -> Self {
        let pieces = Stretches::pieces(range.start, range.end, chunk_size);
        let wants = pieces.into_iter().map(|piece| Want::bytes(blob.clone(), piece));
        Self { pieces: wants.collect(), is_asking: false }
    }

    /// Whether nothing is to be asked any more.
    pub fn is_over(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether the answer that is waited for is about stretches.
    pub fn is_asking(&self) -> bool {
        self.is_asking
    }

    /// Asks about the next piece: the call, and the read that stands for it until it is answered.
    pub fn call(&mut self, at: Timestamp, now_us: u64) -> (Call, Seen) {
        self.is_asking = true;
        let want = self.pieces.front().expect("it is not over").clone();
        let seen = Seen::asked(want.clone(), now_us);
        (Call::Read { want, place: Place::Layout(at) }, seen)
    }

    /// It was told what is written of the piece that `asked` stands for, in a blob that has so many
    /// bytes then: a read of zeros for each hole.
    pub fn told(
        &mut self,
        asked: &Seen,
        bytes: &[u8],
        (at, size): (Timestamp, u64),
        now_us: u64,
    ) -> Vec<Seen> {
        self.is_asking = false;
        self.pieces.pop_front();
        let Want { blob, range, .. } = &asked.want;
        let written = layout::decode(*range, bytes).expect("the session has looked");
        let end = range.end.min(size);
        let ends = written.iter().map(|it| it.end);
        let begins = written.iter().map(|it| it.start).chain([end]);
        let between = [range.start].into_iter().chain(ends).zip(begins);
        let holes = between.map(|(start, next)| ByteRange { start, end: next.min(end) });
        let seen = |hole: ByteRange| Seen {
            want: Want::bytes(blob.clone(), hole),
            start_us: asked.start_us,
            end_us: Some(now_us),
            at: Some(at),
            found: Found::Bytes { bytes: Bytes::from(vec![0; hole.len() as usize]), size: None },
        };
        holes.filter(|hole| hole.start < hole.end).map(seen).collect()
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::{Key, KeyspaceId};

    use super::*;

    #[test]
    fn holes_are_what_is_not_written_up_to_the_end_of_the_blob() {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() };
        let range = |start, end| ByteRange { start, end };
        let found = |written: &[ByteRange], size| {
            let mut stretching = Stretching::new(&blob, range(0, 200), 100);
            let (_, asked) = stretching.call(Timestamp::ZERO, 5);
            let bytes = layout::encode(range(0, 100), written);
            let seen = stretching.told(&asked, &bytes, (Timestamp::ZERO, size), 9);
            assert!(!stretching.is_over() && !stretching.is_asking());
            seen.iter().map(|seen| (seen.want.range.start, seen.want.range.end)).collect::<Vec<_>>()
        };
        assert_eq!(found(&[range(10, 20), range(30, 100)], 150), [(0, 10), (20, 30)]);
        assert_eq!(found(&[range(0, 10)], 60), [(10, 60)]);
        assert_eq!(found(&[range(0, 10), range(70, 80)], 60), [(10, 60)]);
        assert_eq!(found(&[], 150), [(0, 100)]);
        assert_eq!(found(&[], 0), []);
        assert_eq!(found(&[range(0, 100)], 150), []);
    }
}
