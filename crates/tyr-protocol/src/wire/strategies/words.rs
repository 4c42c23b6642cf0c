//! Any value of the types of `tyr-types`, those of keyspaces apart.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Epoch, Existence, Expected, ExtentRef, Key,
    KeyRange, KeyspaceId, Listed, NodeId, Number, NumberType, Operation, Payload, PieceContent,
    PieceId, PieceRef, ReadCheck, Relation, Stamped, Timestamp, Transaction, TransactionId,
    Transform, TransformKind, Uploaded, limits,
};

use crate::level::{LEVEL, level_of_transform};
use crate::wire::output::SHARED_LEN_MIN;

/// A number of any length.
pub fn number_u64() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![4 => 0..300_u64, 2 => any::<u64>(), 1 => (0..64_u32).prop_map(|bit| 1 << bit)]
}

/// A number of any length that fits 32 bits.
pub fn number_u32() -> impl Strategy<Value = u32> + Clone {
    number_u64().prop_map(|number| number as u32)
}

/// An epoch.
pub fn epoch() -> BoxedStrategy<Epoch> {
    number_u32().prop_map(Epoch).boxed()
}

/// A node.
pub fn node() -> BoxedStrategy<NodeId> {
    prop_oneof![3 => 0..9_u16, 1 => any::<u16>()].prop_map(NodeId).boxed()
}

/// A timestamp.
pub fn timestamp() -> BoxedStrategy<Timestamp> {
    (epoch(), number_u64(), node())
        .prop_map(|(epoch, clock, node)| Timestamp { epoch, clock, node: node.0 })
        .boxed()
}

/// A transaction's id.
pub fn transaction_id() -> BoxedStrategy<TransactionId> {
    (any::<u64>(), number_u64())
        .prop_map(|(client, sequence)| TransactionId::new(client, sequence))
        .boxed()
}

/// A key; often one of a few, so that blobs are named twice.
pub fn key() -> BoxedStrategy<Key> {
    let bytes = prop_oneof![
        6 => select(vec!["a", "b", "c", "d", "e"]).prop_map(|text| text.as_bytes().to_vec()),
        3 => vec(any::<u8>(), 1..20),
        1 => Just(vec![7; limits::KEY_LEN_MAX]),
    ];
    bytes.prop_map(|bytes| Key::new(bytes).expect("its length is in range")).boxed()
}

/// A blob's name.
pub fn blob_name() -> BoxedStrategy<BlobName> {
    let keyspace = prop_oneof![4 => 1..3_u32, 1 => number_u32()].prop_map(KeyspaceId);
    (keyspace, key()).prop_map(|(keyspace, key)| BlobName { keyspace, key }).boxed()
}

/// A range of bytes.
pub fn byte_range() -> BoxedStrategy<ByteRange> {
    (number_u64(), number_u64())
        .prop_map(|(one, other)| ByteRange { start: one.min(other), end: one.max(other) })
        .boxed()
}

/// Bytes of a payload.
pub fn bytes() -> BoxedStrategy<Bytes> {
    let long = (any::<u8>(), SHARED_LEN_MIN - 1..SHARED_LEN_MIN + 2);
    prop_oneof![
        9 => vec(any::<u8>(), 0..40).prop_map(Bytes::from),
        1 => long.prop_map(|(byte, len)| Bytes::from(vec![byte; len])),
    ]
    .boxed()
}

/// A number of any type, no NaN: those are equal to nothing.
pub fn number() -> BoxedStrategy<Number> {
    (select(&NumberType::ALL), any::<[u8; 8]>())
        .prop_map(|(number_type, bytes)| Number::load(number_type, &bytes))
        .prop_filter("not a number", |number| match number {
            Number::F32(x) => !x.is_nan(),
            Number::F64(x) => !x.is_nan(),
            Number::I8(_) | Number::I16(_) | Number::I32(_) | Number::I64(_) => true,
            Number::U8(_) | Number::U16(_) | Number::U32(_) | Number::U64(_) => true,
        })
        .boxed()
}

/// A transform that this program speaks.
pub fn transform() -> BoxedStrategy<Transform> {
    let mut kinds = TransformKind::ALL.to_vec();
    kinds.retain(|kind| level_of_transform(*kind) <= LEVEL);
    (select(kinds), number())
        .prop_filter_map("never accepted", |(kind, operand)| Transform::new(kind, operand).ok())
        .boxed()
}

/// Bytes with stamps at some distance from each other.
fn stamped() -> BoxedStrategy<Stamped> {
    let gaps = vec(0..40_usize, 1..=limits::STAMPS_MAX);
    (gaps, 0..40_usize)
        .prop_map(|(gaps, tail)| {
            let mut end = 0;
            let mut place = |gap: usize| {
                end += gap + limits::STAMP_LEN;
                end - limits::STAMP_LEN
            };
            let places: Vec<usize> = gaps.into_iter().map(&mut place).collect();
            Stamped::new(std::vec![1; end + tail], places).expect("they are apart and within")
        })
        .boxed()
}

/// A payload, by value, by reference or with stamps.
pub fn payload() -> BoxedStrategy<Payload> {
    let extent = (number_u32(), number_u64(), 0..=limits::EXTENT_LEN_MAX, number_u32()).prop_map(
        |(file, position, len, compressed_len)| ExtentRef { file, position, len, compressed_len },
    );
    prop_oneof![
        4 => bytes().prop_map(Payload::Inline),
        1 => vec(extent, 0..4).prop_map(Payload::Extents),
        1 => stamped().prop_map(|stamped| Payload::Stamped(Arc::new(stamped))),
        1 => vec(piece_ref(), 1..4).prop_map(|pieces| {
            Payload::Uploaded(Arc::new(Uploaded::of(pieces).expect("they have bytes")))
        }),
    ]
    .boxed()
}

/// The name of a piece.
pub fn piece_id() -> BoxedStrategy<PieceId> {
    any::<u128>().prop_map(PieceId).boxed()
}

/// A piece of a payload.
pub fn piece_ref() -> BoxedStrategy<PieceRef> {
    (piece_id(), 1..=limits::PIECE_LEN_MAX, any::<u64>())
        .prop_map(|(id, len, sum)| PieceRef { id, len, sum })
        .boxed()
}

/// What there is of a piece.
pub fn piece_content() -> BoxedStrategy<PieceContent> {
    let extent = (number_u32(), number_u64(), 0..=limits::EXTENT_LEN_MAX)
        .prop_map(|(file, position, len)| ExtentRef { file, position, len, compressed_len: 0 });
    prop_oneof![
        Just(PieceContent::Elsewhere),
        bytes().prop_map(PieceContent::Bytes),
        vec(extent, 0..3).prop_map(PieceContent::Extents),
    ]
    .boxed()
}

/// What a compare expects.
fn expected() -> BoxedStrategy<Expected> {
    let of_number = (select(Relation::ALL.to_vec()), number())
        .prop_map(|(relation, value)| Expected::Number { relation, value });
    prop_oneof![bytes().prop_map(Expected::Bytes), of_number].boxed()
}

/// An operation.
pub fn operation() -> BoxedStrategy<Operation> {
    // Far enough below the largest blob for any payload made here.
    let offset = || number_u64().prop_map(|offset| offset >> 2);
    prop_oneof![
        Just(Operation::Create),
        (offset(), payload()).prop_map(|(offset, payload)| Operation::Write { offset, payload }),
        (payload(), option::of(offset())).prop_map(|(payload, expected)| {
            // What was uploaded ahead goes where it was uploaded for.
            let is_uploaded = matches!(payload, Payload::Uploaded(_));
            let expected = if is_uploaded { expected.or(Some(7)) } else { expected };
            Operation::Append { payload, expected }
        }),
        offset().prop_map(|len| Operation::Truncate { len }),
        (offset(), offset()).prop_map(|(start, len)| {
            Operation::Clear { range: ByteRange { start, end: start + len } }
        }),
        Just(Operation::Delete),
        (offset(), transform())
            .prop_map(|(offset, transform)| Operation::Apply { offset, transform }),
        (offset(), expected())
            .prop_map(|(offset, expected)| Operation::Compare { offset, expected }),
        payload().prop_map(|payload| Operation::Replace { payload }),
        select(vec![Existence::Absent, Existence::Present])
            .prop_map(|existence| Operation::Expect { existence }),
    ]
    .boxed()
}

/// Keys that were listed.
fn listed() -> BoxedStrategy<Listed> {
    let bytes = || vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    (bytes(), option::of(bytes()), any::<bool>())
        .prop_map(|(start, end, is_keys_only)| Listed {
            keys: KeyRange { start, end },
            is_keys_only,
        })
        .boxed()
}

/// A transaction.
pub fn transaction() -> BoxedStrategy<Transaction> {
    let blobs = btree_map(blob_name(), vec(operation(), 1..4), 0..5).prop_map(|blobs| {
        let entries = blobs.into_iter();
        entries.map(|(blob, operations)| BlobOperations { blob, operations }).collect()
    });
    let read = (blob_name(), byte_range(), any::<bool>(), timestamp(), option::of(listed()))
        .prop_map(|(blob, range, is_attributes, at, listed)| {
            let is_attributes = is_attributes || listed.is_some();
            ReadCheck { blob, range, is_attributes, at, listed: listed.map(Box::new) }
        });
    (transaction_id(), blobs, vec(read, 0..4))
        .prop_map(|(id, blobs, reads)| Transaction { id, blobs, reads })
        .boxed()
}
