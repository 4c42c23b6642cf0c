//! Which pieces of a transaction a node has to have: those that lie in the chunks it writes there.

use tyr_types::{BlobName, ByteRange, KeyspaceId, Operation, PieceRef, Transaction};

use crate::chain::{Hop, Part};

/// A piece that a node of the chain has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The piece.
    pub piece: PieceRef,
    /// The blob.
    pub blob: &'a BlobName,
    /// The chunk in which it begins.
    pub chunk: u64,
    /// Whether it ends there too.
    pub is_in_one_chunk: bool,
}

/// Whether anything of the transaction was uploaded ahead.
pub fn is_uploaded(transaction: &Transaction) -> bool {
    let mut operations = transaction.blobs.iter().flat_map(|entry| &entry.operations);
    operations.any(|operation| operation.uploaded().is_some())
}

/// All pieces that a transaction refers to.
pub fn pieces_of(transaction: &Transaction) -> impl Iterator<Item = PieceRef> {
    let operations = transaction.blobs.iter().flat_map(|entry| &entry.operations);
    let uploaded = operations.filter_map(Operation::uploaded);
    uploaded.flat_map(|(_, uploaded)| uploaded.pieces().iter().map(|it| it.piece))
}

/// The pieces of a transaction that lie in chunks which it writes at this hop.
pub fn wanted<'a>(
    transaction: &'a Transaction,
    hop: &Hop,
    chunk_size: impl Fn(KeyspaceId) -> u64,
) -> Vec<Wanted<'a>> {
    let mut all = Vec::new();
    if !is_uploaded(transaction) {
        return all;
    }
    for entry in &transaction.blobs {
        let mut uploads = entry.operations.iter().filter_map(Operation::uploaded).peekable();
        if uploads.peek().is_none() {
            continue;
        }
        let blob = &entry.blob;
        let of_blob = hop.pieces().iter().filter(|it| it.is_written && it.blob == *blob);
        let mut here: Vec<ByteRange> = of_blob.map(|it| it.range).collect();
        here.sort_unstable_by_key(|range| range.start);
        let is_here = |span: ByteRange| match &hop.part {
            Part::Whole => true,
            Part::Pieces(_) => {
                let next = here.partition_point(|range| range.end <= span.start);
                here.get(next).is_some_and(|range| range.overlaps(span))
            }
        };
        let size = chunk_size(blob.keyspace);
        for (offset, uploaded) in uploads {
            for (start, it) in uploaded.placed() {
                let start = offset + start;
                let span = ByteRange { start, end: start + u64::from(it.piece.len) };
                if is_here(span) {
                    let chunk = start / size;
                    let is_in_one_chunk = (span.end - 1) / size == chunk;
                    all.push(Wanted { piece: it.piece, blob, chunk, is_in_one_chunk });
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tyr_types::{BlobOperations, Key, NodeId, Payload, PieceId, TransactionId, Uploaded};

    use super::*;
    use crate::chain::Piece;

    #[test]
    fn a_node_has_to_have_what_lies_in_the_chunks_that_it_holds() {
        let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() };
        let piece = |number, len| PieceRef { id: PieceId::new(1, number), len, sum: 0 };
        let uploaded = Uploaded::of([piece(1, 60), piece(2, 64), piece(3, 20), piece(4, 70)]);
        let payload = Payload::Uploaded(Arc::new(uploaded.unwrap()));
        let operations = vec![Operation::Write { offset: 4, payload }];
        let blobs = vec![BlobOperations { blob: blob.clone(), operations }];
        let transaction = Transaction { id: TransactionId(1), blobs, reads: Vec::new() };
        let held = |chunk: u64| Piece {
            blob: blob.clone(),
            range: ByteRange { start: chunk * 64, end: (chunk + 1) * 64 },
            is_attributes: chunk == 0,
            is_written: true,
            authority: NodeId(1),
        };
        let found = |chunks: &[u64]| -> Vec<(u64, u64, bool)> {
            let part = Part::Pieces(chunks.iter().map(|chunk| held(*chunk)).collect());
            let hop = Hop { node: NodeId(1), part };
            let all = wanted(&transaction, &hop, |_| 64);
            let number = |it: &Wanted<'_>| it.piece.id.0 as u64;
            all.iter().map(|it| (number(it), it.chunk, it.is_in_one_chunk)).collect()
        };
        assert_eq!(found(&[0]), [(1, 0, true)]);
        assert_eq!(found(&[1]), [(2, 1, true)]);
        assert_eq!(found(&[2]), [(3, 2, true), (4, 2, false)]);
        assert_eq!(found(&[3]), [(4, 2, false)]);
        assert_eq!(found(&[4]), []);
    }
}
