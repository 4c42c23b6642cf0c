//! C6 behind the first chunk: its writes are applied in order whether they share a byte or not.

use super::*;

/// Bytes of a chunk.
const CHUNK: u64 = 64;

/// Nodes 0, 1 and 2 hold so many chunks of "a" behind the first, which lies elsewhere; node 0 is
/// their authority.
pub(super) fn chain_of_chunks(chunks: u64, chunk: u64) -> Chain {
    let piece = |number: u64| Piece {
        blob: blob("a"),
        range: ByteRange { start: number * chunk, end: (number + 1) * chunk },
        is_attributes: false,
        is_written: true,
        authority: NodeId(0),
    };
    let pieces: Vec<Piece> = (0..chunks).map(piece).collect();
    let hop = |node| Hop { node: NodeId(node), part: Part::Pieces(pieces.clone()) };
    Chain::new((0..3).map(hop).collect(), Ends::new()).unwrap()
}

/// Two transactions are decided, the second first: what is applied then, and what with the first.
fn applied(first: Operation, second: Operation) -> [Vec<String>; 2] {
    let mut node = Node::of_three(1);
    node.chain = chain_of_chunks(3, CHUNK);
    node.forward(transaction(1, vec![first]), time(1, 0));
    node.forward(transaction(2, vec![second]), time(2, 0));
    for id in [1, 2] {
        node.persisted(id);
    }
    [(2, 30), (1, 29)].map(|(id, at)| {
        let told = node.backward(id, Decision::Commit(time(at, 2)));
        told.into_iter().filter(|told| told.starts_with("apply")).collect()
    })
}

/// C6. A direct read of both would show the second without the first, which another node may have
/// shown by then.
#[test]
fn writes_of_different_bytes_of_a_chunk_are_applied_in_order() {
    let both = ["apply 1 at 0.29.2", "apply 2 at 0.30.2"];
    assert_eq!(applied(write(0, 8), write(40, 8)), [vec![], both.to_vec()]);
    let across = write(CHUNK - 8, 16);
    assert_eq!(applied(across.clone(), write(CHUNK + 40, 8)), [vec![], both.to_vec()]);
    assert_eq!(applied(write(0, 8), across), [vec![], both.to_vec()]);
}

/// C6.
#[test]
fn writes_of_different_chunks_are_applied_as_they_are_decided() {
    let apart = applied(write(0, 8), write(CHUNK, 8));
    assert_eq!(apart, [["apply 2 at 0.30.2"], ["apply 1 at 0.29.2"]]);
}
