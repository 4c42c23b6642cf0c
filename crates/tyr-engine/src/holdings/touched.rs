//! Which chunks of a blob a node has to change for a transaction.

use smallvec::{SmallVec, smallvec};
use tyr_protocol::{Chain, Part};
use tyr_types::{BlobOperations, NodeId, Operation};

/// Numbers of chunks.
pub type Chunks = SmallVec<[u64; 4]>;

/// The chunks of the blob that the transaction writes and this node holds, ascending. `size` tells
/// how long the blob is, where the node holds all of it.
pub(super) fn chunks(
    entry: &BlobOperations,
    (chain, node): (&Chain, NodeId),
    chunk_size: u64,
    size: impl FnOnce() -> u64,
) -> Chunks {
    let position = chain.position(node).expect("a node applies what it is in the chain of");
    let mut chunks: Chunks = match chain.hops()[position].part {
        Part::Pieces(_) => chain
            .pieces_at(position, &entry.blob)
            .filter(|piece| piece.is_written)
            .map(|piece| piece.range.start / chunk_size)
            .collect(),
        Part::Whole => whole(&entry.operations, chunk_size, size()),
    };
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}

/// The same for a node that holds everything; the blob has `size` bytes.
fn whole(operations: &[Operation], chunk_size: u64, mut size: u64) -> Chunks {
    // Size and existence are with chunk 0.
    let mut chunks: Chunks = smallvec![0];
    for operation in operations {
        let after = operation.size_after(Some(size)).unwrap_or(0);
        let (from, to) = match operation {
            Operation::Create | Operation::Compare { .. } | Operation::Expect { .. } => continue,
            Operation::Clear { range } if size <= range.start => continue,
            Operation::Clear { range } => (range.start, size.min(range.end)),
            Operation::Write { offset, payload } => (*offset, offset + payload.len()),
            Operation::Append { payload, expected } => {
                let offset = expected.unwrap_or(size);
                (offset, offset + payload.len())
            }
            Operation::Apply { offset, transform } => (*offset, offset + transform.width() as u64),
            Operation::Truncate { len } => (*len, size.max(*len)),
            Operation::Delete | Operation::Replace { .. } => (0, size.max(after)),
        };
        size = after;
        chunks.extend(spanned(from, to, chunk_size));
    }
    chunks
}

/// The chunks in which bytes of `from..to` lie, and the one of `from`.
fn spanned(from: u64, to: u64, chunk_size: u64) -> std::ops::RangeInclusive<u64> {
    debug_assert!(from <= to, "{from}..{to} is no range of bytes");
    from / chunk_size..=to.saturating_sub(1).max(from) / chunk_size
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_protocol::Piece;
    use tyr_protocol::chain::{Ends, Hop};
    use tyr_types::{BlobName, ByteRange, Bytes, Key, KeyspaceId, Payload};

    fn touched(operations: Vec<Operation>, size: u64) -> Chunks {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("k").unwrap() };
        chunks(
            &BlobOperations { blob, operations },
            (&Chain::alone(NodeId(0)), NodeId(0)),
            10,
            || size,
        )
    }

    #[test]
    fn of_few_blobs_and_of_many_each_has_the_chunks_of_its_written_pieces() {
        let blob = |key: u64| BlobName {
            keyspace: KeyspaceId(1),
            key: Key::new(format!("k{key}")).unwrap(),
        };
        let piece = |number: u64| Piece {
            blob: blob(number % 7),
            range: ByteRange { start: number * 10, end: number * 10 + 10 },
            is_attributes: false,
            is_written: !number.is_multiple_of(3),
            authority: NodeId(0),
        };
        for count in [6, 100] {
            let part = || Part::Pieces((0..count).rev().chain(2..4).map(piece).collect());
            let hops = [0, 1].map(|node| Hop { node: NodeId(node), part: part() });
            let chain = Chain::new(hops.into(), Ends::new()).unwrap();
            for key in 0..7 {
                let entry = BlobOperations { blob: blob(key), operations: vec![] };
                let found = chunks(&entry, (&chain, NodeId(1)), 10, || 0);
                let written = (0..count).filter(|it| it % 7 == key && it % 3 != 0);
                assert_eq!(found[..], written.collect::<Vec<u64>>()[..], "{count}, {key}");
            }
        }
    }

    #[test]
    fn a_node_that_holds_everything_changes_what_is_written_and_the_first_chunk() {
        let payload = Payload::Inline(Bytes::from_static(b"abcde"));
        let write = Operation::Write { offset: 38, payload: payload.clone() };
        assert_eq!(touched(vec![write.clone()], 100)[..], [0, 3, 4]);
        let append = Operation::Append { payload, expected: None };
        assert_eq!(touched(vec![write, append], 0)[..], [0, 3, 4]);
        assert_eq!(touched(vec![Operation::Truncate { len: 15 }], 35)[..], [0, 1, 2, 3]);
        assert_eq!(touched(vec![Operation::Delete], 21)[..], [0, 1, 2]);
    }
}
