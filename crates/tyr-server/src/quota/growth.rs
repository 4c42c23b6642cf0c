//! By how much a transaction makes a keyspace larger.

use tyr_types::{BlobName, KeyspaceId, Operation, Transaction};

/// What is known of a blob before a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It has this size; `None`: there is no such blob.
    Size(Option<u64>),
    /// Another node knows.
    Elsewhere,
}

/// Blobs and bytes that a keyspace gets, or loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Growth {
    pub blobs: i128,
    pub bytes: i128,
}

impl Growth {
    /// Of this keyspace, by this transaction, with what `known` says of each of its blobs.
    pub fn of(
        transaction: &Transaction,
        keyspace: KeyspaceId,
        mut known: impl FnMut(&BlobName) -> Known,
    ) -> Self {
        let mut growth = Self::default();
        for entry in transaction.blobs.iter().filter(|it| it.blob.keyspace == keyspace) {
            if !entry.operations.iter().any(Operation::is_write) {
                continue;
            }
            let (blobs, bytes) = match known(&entry.blob) {
                Known::Size(before) => {
                    let operations = entry.operations.iter();
                    let after = operations.fold(before, |size, it| it.size_after(size));
                    let count = |size: Option<u64>| i128::from(size.is_some());
                    let size = |size: Option<u64>| i128::from(size.unwrap_or(0));
                    (count(after) - count(before), size(after) - size(before))
                }
                Known::Elsewhere => carried(&entry.operations),
            };
            debug_assert!((-1..=1).contains(&blobs), "an entry is of one blob");
            growth.blobs += blobs;
            // What was uploaded ahead counts already.
            let uploaded = entry.operations.iter().filter_map(Operation::uploaded);
            let uploaded: u64 = uploaded.map(|(_, uploaded)| uploaded.len()).sum();
            growth.bytes += bytes - i128::from(uploaded);
        }
        growth
    }
}

/// Of a blob of which nothing is known here: a blob more, unless it is only cut or removed, and the
/// bytes that the operations carry.
fn carried(operations: &[Operation]) -> (i128, i128) {
    if operations.iter().all(|operation| operation.makes_room() || !operation.is_write()) {
        return (0, 0);
    }
    let payloads = operations.iter().filter_map(Operation::payload);
    (1, payloads.map(|payload| i128::from(payload.len())).sum())
}

#[cfg(test)]
mod tests {
    use tyr_types::{BlobOperations, Bytes, Key, Payload, TransactionId};

    use super::*;

    const ONE: KeyspaceId = KeyspaceId(1);

    fn payload(len: usize) -> Payload {
        Payload::Inline(Bytes::from(vec![0; len]))
    }

    fn growth(operations: Vec<Operation>, known: Known) -> (i128, i128) {
        let blob = BlobName { keyspace: ONE, key: Key::new("a").unwrap() };
        let blobs = vec![BlobOperations { blob, operations }];
        let id = TransactionId::new(1, 1);
        let transaction = Transaction { id, blobs, reads: Vec::new() };
        let Growth { blobs, bytes } = Growth::of(&transaction, ONE, |_| known);
        assert_eq!(
            Growth::of(&transaction, KeyspaceId(2), |_| known),
            Growth::default(),
            "another keyspace is not touched"
        );
        (blobs, bytes)
    }

    fn append(len: usize) -> Operation {
        Operation::Append { payload: payload(len), expected: None }
    }

    fn write(offset: u64, len: usize) -> Operation {
        Operation::Write { offset, payload: payload(len) }
    }

    #[test]
    fn what_is_known_grows_by_what_its_end_moves() {
        let ten = Known::Size(Some(10));
        assert_eq!(growth(vec![append(5)], ten), (0, 5));
        assert_eq!(growth(vec![write(2, 5)], ten), (0, 0), "in place");
        assert_eq!(growth(vec![write(1000, 5)], ten), (0, 995), "a hole counts");
        assert_eq!(growth(vec![Operation::Truncate { len: 4 }], ten), (0, -6));
        assert_eq!(growth(vec![Operation::Delete], ten), (-1, -10));
        assert_eq!(growth(vec![Operation::Delete, append(3)], ten), (0, -7));
        assert_eq!(growth(vec![Operation::Replace { payload: payload(12) }], ten), (0, 2));
    }

    #[test]
    fn what_is_not_there_is_a_blob_more() {
        let none = Known::Size(None);
        assert_eq!(growth(vec![Operation::Create], none), (1, 0));
        assert_eq!(growth(vec![append(5), append(6)], none), (1, 11));
        assert_eq!(growth(vec![Operation::Delete], none), (0, 0));
        assert_eq!(growth(vec![write(u64::MAX, 5)], none).0, 1, "no overflow");
        let compare = Operation::Compare { offset: 0, expected: Bytes::new().into() };
        assert_eq!(growth(vec![compare], none), (0, 0));
    }

    #[test]
    fn of_what_others_know_the_bytes_carried_count() {
        assert_eq!(growth(vec![write(1 << 40, 5)], Known::Elsewhere), (1, 5));
        assert_eq!(growth(vec![Operation::Truncate { len: 4 }], Known::Elsewhere), (0, 0));
        assert_eq!(growth(vec![Operation::Delete], Known::Elsewhere), (0, 0));
    }
}
