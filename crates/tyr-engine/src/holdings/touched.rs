//! Which chunks of a blob a node has to change for a transaction.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use smallvec::{SmallVec, smallvec};
use tyr_protocol::Part;
use tyr_types::{BlobName, BlobOperations, KeyspaceId, Operation};

/// Numbers of chunks.
pub type Chunks = SmallVec<[u64; 4]>;

/// Of more blobs in a transaction their pieces are found by name.
pub(super) const FEW_BLOBS: usize = 16;

/// The chunks that the transaction writes and this node holds, by blob: where it writes many, each
/// would look at the pieces of all.
pub(super) fn by_blob(
    part: &Part,
    chunk_size: impl Fn(KeyspaceId) -> u64,
) -> HashMap<&BlobName, Chunks, FixedState> {
    let mut by_blob: HashMap<&BlobName, Chunks, FixedState> = HashMap::default();
    let pieces = match part {
        Part::Pieces(pieces) => &pieces[..],
        Part::Whole => &[],
    };
    for piece in pieces.iter().filter(|piece| piece.is_written) {
        let chunk = piece.range.start / chunk_size(piece.blob.keyspace);
        by_blob.entry(&piece.blob).or_default().push(chunk);
    }
    for chunks in by_blob.values_mut() {
        chunks.sort_unstable();
        chunks.dedup();
    }
    by_blob
}

/// The chunks of the blob that the transaction writes and this node holds, ascending. `size` tells
/// how long the blob is, where the node holds all of it.
pub(super) fn chunks(
    entry: &BlobOperations,
    part: &Part,
    chunk_size: u64,
    size: impl FnOnce() -> u64,
) -> Chunks {
    let mut chunks: Chunks = match part {
        Part::Pieces(pieces) => pieces
            .iter()
            .filter(|piece| piece.is_written && piece.blob == entry.blob)
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
    use tyr_types::{BlobName, ByteRange, Bytes, Key, KeyspaceId, NodeId, Payload};

    fn touched(operations: Vec<Operation>, size: u64) -> Chunks {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("k").unwrap() };
        chunks(&BlobOperations { blob, operations }, &Part::Whole, 10, || size)
    }

    #[test]
    fn of_many_blobs_each_has_the_chunks_that_it_has_alone() {
        let blob = |key: String| BlobName { keyspace: KeyspaceId(1), key: Key::new(key).unwrap() };
        let piece = |number: u64| Piece {
            blob: blob(format!("k{}", number % 7)),
            range: ByteRange { start: number * 10, end: number * 10 + 10 },
            is_attributes: false,
            is_written: !number.is_multiple_of(3),
            authority: NodeId(0),
        };
        let part = Part::Pieces((0..50).rev().chain(20..30).map(piece).collect());
        let all = by_blob(&part, |_| 10);
        assert_eq!(all.len(), 7);
        for (name, found) in all {
            let alone = BlobOperations { blob: name.clone(), operations: vec![] };
            assert_eq!(found, chunks(&alone, &part, 10, || 0), "{name}");
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
