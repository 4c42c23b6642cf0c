//! Any value of any type that travels, for property tests here and in other crates.
//!
//! Values are valid: what a constructor or [`Transaction::validate`] would refuse is never made.
//! Numbers are small, large or anything; lists are short; some payloads are long enough to be
//! shared instead of copied.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use smallvec::SmallVec;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Durability, Epoch, ErrorKind, ExtentRef, Key,
    KeyspaceConfig, KeyspaceId, KeyspaceName, NodeId, Number, NumberType, Operation, Outcome,
    Payload, ReadCheck, Timestamp, Transaction, TransactionId, Transform, TransformKind, limits,
};

use super::output::SHARED_LEN_MIN;
use crate::abort::Abort;
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::commit::{self, Answered, Attempt, Decision, Placed, Placements};
use crate::map::{Change, ClusterMap, Domain, Newcomer, Share};
use crate::member::{ChunkName, Record};
use crate::message::{Address, Asked, Body, Envelope, ReadPart, ReadRequest};
use crate::movement::{self, ChunkCopy, ChunkVersion};
use crate::read::Kind;
use crate::recovery::{self, Known};
use crate::versions::{InUse, Usage};

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

/// A transform.
pub fn transform() -> BoxedStrategy<Transform> {
    (select(&TransformKind::ALL), number())
        .prop_filter_map("never accepted", |(kind, operand)| Transform::new(kind, operand).ok())
        .boxed()
}

/// A payload, by value or by reference.
pub fn payload() -> BoxedStrategy<Payload> {
    let extent = (number_u32(), number_u64(), 0..=limits::EXTENT_LEN_MAX, number_u32()).prop_map(
        |(file, position, len, compressed_len)| ExtentRef { file, position, len, compressed_len },
    );
    prop_oneof![
        4 => bytes().prop_map(Payload::Inline),
        1 => vec(extent, 0..4).prop_map(Payload::Extents),
    ]
    .boxed()
}

/// An operation.
pub fn operation() -> BoxedStrategy<Operation> {
    // Far enough below the largest blob for any payload made here.
    let offset = || number_u64().prop_map(|offset| offset >> 2);
    prop_oneof![
        Just(Operation::Create),
        (offset(), payload()).prop_map(|(offset, payload)| Operation::Write { offset, payload }),
        (payload(), option::of(offset()))
            .prop_map(|(payload, expected)| Operation::Append { payload, expected }),
        offset().prop_map(|len| Operation::Truncate { len }),
        Just(Operation::Delete),
        (offset(), transform())
            .prop_map(|(offset, transform)| Operation::Apply { offset, transform }),
        (offset(), bytes()).prop_map(|(offset, expected)| Operation::Compare { offset, expected }),
        payload().prop_map(|payload| Operation::Replace { payload }),
    ]
    .boxed()
}

/// A transaction.
pub fn transaction() -> BoxedStrategy<Transaction> {
    let blobs = btree_map(blob_name(), vec(operation(), 1..4), 0..5).prop_map(|blobs| {
        let entries = blobs.into_iter();
        entries.map(|(blob, operations)| BlobOperations { blob, operations }).collect()
    });
    let read = (blob_name(), byte_range(), any::<bool>(), timestamp())
        .prop_map(|(blob, range, is_attributes, at)| ReadCheck { blob, range, is_attributes, at });
    (transaction_id(), blobs, vec(read, 0..4))
        .prop_map(|(id, blobs, reads)| Transaction { id, blobs, reads })
        .boxed()
}

/// Guesses of where blobs end.
pub fn ends() -> BoxedStrategy<Ends> {
    vec((number_u32(), number_u64()), 0..3).prop_map(SmallVec::from_vec).boxed()
}

/// A chain, of one or more.
pub fn chain() -> BoxedStrategy<Chain> {
    let piece = (blob_name(), byte_range(), any::<[bool; 2]>(), node()).prop_map(
        |(blob, range, [is_attributes, is_written], authority)| Piece {
            blob,
            range,
            is_attributes,
            is_written,
            authority,
        },
    );
    let several = (btree_map(node(), vec(piece, 0..5), 1..5), ends()).prop_map(|(hops, ends)| {
        let hops = hops.into_iter();
        let hops = hops.map(|(node, pieces)| Hop { node, part: Part::Pieces(pieces) });
        Chain::new(hops.collect(), ends).expect("in order, none whole")
    });
    prop_oneof![4 => several, 1 => node().prop_map(Chain::alone)].boxed()
}

/// Why something was refused.
pub fn abort() -> BoxedStrategy<Abort> {
    let kind = select(vec![
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::Conflict,
        ErrorKind::Unavailable,
        ErrorKind::TimedOut,
        ErrorKind::SnapshotTooOld,
        ErrorKind::InvalidArgument,
        ErrorKind::PermissionDenied,
        ErrorKind::QuotaExceeded,
        ErrorKind::Corrupt,
    ]);
    let reason = vec(any::<char>(), 0..20)
        .prop_map(|letters| Cow::Owned(letters.into_iter().collect::<String>()));
    (kind, reason, option::of(blob_name()))
        .prop_map(|(kind, reason, blob)| Abort { kind, reason, blob })
        .boxed()
}

/// A run of a transaction.
pub fn attempt() -> BoxedStrategy<Attempt> {
    (epoch(), number_u32(), node())
        .prop_map(|(epoch, number, coordinator)| Attempt { epoch, number, coordinator })
        .boxed()
}

/// What became of a transaction.
pub fn decision() -> BoxedStrategy<Decision> {
    prop_oneof![timestamp().prop_map(Decision::Commit), abort().prop_map(Decision::Abort)].boxed()
}

/// What operations answer.
pub fn outcomes() -> BoxedStrategy<commit::Outcomes> {
    let outcome = prop_oneof![
        Just(Outcome::Done),
        number_u64().prop_map(Outcome::Offset),
        number().prop_map(Outcome::Value),
        any::<bool>().prop_map(Outcome::Existed),
    ];
    let answered = (number_u32(), number_u32(), outcome)
        .prop_map(|(blob, operation, outcome)| Answered { blob, operation, outcome });
    vec(answered, 0..4).boxed()
}

/// Appends whose offset is settled.
pub fn placements() -> BoxedStrategy<Placements> {
    let placed = (number_u32(), number_u64()).prop_map(|(index, offset)| Placed { index, offset });
    vec(placed, 0..3).prop_map(SmallVec::from_vec).boxed()
}

/// What is in use: a short list, or so much that it is a filter.
pub fn usage() -> BoxedStrategy<Usage> {
    let in_use = (number_u64(), timestamp()).prop_map(|(chunk, version)| InUse { chunk, version });
    let list = prop_oneof![4 => vec(in_use.clone(), 0..4), 1 => vec(in_use, 65..90)];
    (timestamp(), list).prop_map(|(as_of, list)| Usage::new(as_of, list)).boxed()
}

/// What is in use of several blobs.
pub fn usages() -> BoxedStrategy<commit::Usages> {
    vec((blob_name(), usage()), 0..3).boxed()
}

/// A message of the commit protocol.
pub fn commit_message() -> BoxedStrategy<commit::Message> {
    use commit::Message;
    let forward = (
        (transaction(), chain(), attempt()),
        (timestamp(), timestamp(), option::of(timestamp()), usages()),
    );
    let forward = forward.prop_map(|((transaction, chain, attempt), times)| {
        let (begun, highest, known, usages) = times;
        let transaction = Arc::new(transaction);
        Message::Forward { transaction, chain, attempt, begun, highest, known, usages }
    });
    let backward = (transaction_id(), attempt(), decision(), outcomes(), usages()).prop_map(
        |(id, attempt, decision, outcomes, usages)| Message::Backward {
            id,
            attempt,
            decision,
            outcomes,
            usages,
        },
    );
    prop_oneof![
        4 => forward,
        2 => backward,
        1 => (transaction_id(), attempt(), number_u32(), number_u64())
            .prop_map(|(id, attempt, blob, end)| Message::Misplaced { id, attempt, blob, end }),
        1 => (transaction_id(), attempt(), timestamp())
            .prop_map(|(id, attempt, at)| Message::Decided { id, attempt, at }),
        1 => (transaction_id(), attempt(), node())
            .prop_map(|(id, attempt, by)| Message::Anchored { id, attempt, by }),
        1 => (transaction_id(), attempt()).prop_map(|(id, attempt)| Message::Withdrawn { id, attempt }),
        1 => (transaction_id(), attempt()).prop_map(|(id, attempt)| Message::Again { id, attempt }),
        1 => (transaction_id(), node()).prop_map(|(id, by)| Message::Stable { id, by }),
        1 => (transaction_id(), node(), node())
            .prop_map(|(id, by, from)| Message::AskStable { id, by, from }),
    ]
    .boxed()
}

/// A message of recovery.
pub fn recovery_message() -> BoxedStrategy<recovery::Message> {
    use recovery::Message;
    let known = prop_oneof![
        Just(Known::Nothing),
        (attempt(), timestamp(), chain()).prop_map(|(attempt, proposal, chain)| {
            Known::Validated { attempt, proposal, chain }
        }),
        timestamp().prop_map(|at| Known::Committed { at }),
        abort().prop_map(Known::Aborted),
    ];
    prop_oneof![
        (transaction(), chain()).prop_map(|(transaction, chain)| {
            Message::Ask { transaction: Arc::new(transaction), chain }
        }),
        (transaction_id(), attempt()).prop_map(|(id, attempt)| Message::Query { id, attempt }),
        (transaction_id(), attempt(), node(), known)
            .prop_map(|(id, attempt, from, known)| Message::Report { id, attempt, from, known }),
        (transaction_id(), attempt()).prop_map(|(id, attempt)| Message::Clear { id, attempt }),
        (transaction_id(), attempt(), abort()).prop_map(|(id, attempt, abort)| Message::Abort {
            id,
            attempt,
            abort
        }),
    ]
    .boxed()
}

/// Who sends or gets a message.
pub fn address() -> BoxedStrategy<Address> {
    prop_oneof![
        node().prop_map(Address::Node),
        any::<u64>().prop_map(Address::Client),
        Just(Address::Monitors),
    ]
    .boxed()
}

/// A read that is asked for.
pub fn read_request() -> BoxedStrategy<ReadRequest> {
    let kind = prop_oneof![
        Just(Kind::Direct),
        Just(Kind::Whole),
        Just(Kind::First),
        timestamp().prop_map(Kind::At),
        Just(Kind::Clock),
    ];
    (number_u64(), address(), blob_name(), byte_range(), any::<[bool; 2]>(), kind)
        .prop_map(|(read, asker, blob, range, [is_attributes, is_copy], kind)| ReadRequest {
            read,
            asker,
            blob,
            range,
            is_attributes,
            kind,
            is_copy,
        })
        .boxed()
}

/// A size as a version manager tells it, or none.
pub fn size() -> BoxedStrategy<Option<Option<u64>>> {
    option::of(option::of(number_u64())).boxed()
}

/// The answer to a read.
pub fn read_part() -> BoxedStrategy<ReadPart> {
    let times = (option::of(timestamp()), timestamp(), timestamp());
    (number_u64(), byte_range(), times, bytes(), size())
        .prop_map(|(read, range, (at, version, clock), bytes, size)| ReadPart {
            read,
            range,
            at,
            version,
            bytes,
            size,
            clock,
        })
        .boxed()
}

/// A chunk.
pub fn chunk_name() -> BoxedStrategy<ChunkName> {
    (blob_name(), number_u64()).boxed()
}

/// A copy of a chunk, with its checksum. It need not make sense: whoever installs one looks.
pub fn chunk_copy() -> BoxedStrategy<ChunkCopy> {
    let version = (timestamp(), bytes(), size(), timestamp()).prop_map(
        |(version, bytes, size, size_version)| ChunkVersion { version, bytes, size, size_version },
    );
    (timestamp(), byte_range(), any::<bool>(), vec(version, 1..4))
        .prop_map(|(at, range, is_last, versions)| ChunkCopy::new(at, range, is_last, versions))
        .boxed()
}

/// A message of data movement.
pub fn movement_message() -> BoxedStrategy<movement::Message> {
    use movement::Message;
    prop_oneof![
        option::of(chunk_name()).prop_map(|after| Message::List { after }),
        (option::of(chunk_name()), vec(chunk_name(), 0..4), option::of(chunk_name()))
            .prop_map(|(after, chunks, next)| Message::Listed { after, chunks, next }),
        (number_u64(), chunk_name(), chunk_copy())
            .prop_map(|(read, chunk, copy)| Message::Copied { read, chunk, copy }),
    ]
    .boxed()
}

/// A keyspace's configuration.
pub fn keyspace_config() -> BoxedStrategy<KeyspaceConfig> {
    let durability = select(vec![Durability::Memory, Durability::Buffered, Durability::Sync]);
    (12..29_u32, 1..=limits::REPLICATION_MAX, any::<u8>(), any::<[bool; 2]>(), durability)
        .prop_map(|(bits, replication, live, [is_multi_versioned, is_compressed], durability)| {
            KeyspaceConfig {
                chunk_size: 1 << bits,
                replication,
                live_replicas_min: live % replication + 1,
                is_multi_versioned,
                durability,
                is_compressed,
            }
        })
        .boxed()
}

/// A change of a cluster map of a few nodes; often one that is refused.
pub fn change() -> BoxedStrategy<Change> {
    let few = || (0..7_u16).prop_map(NodeId);
    let keyspace =
        (any::<u16>(), keyspace_config(), any::<u64>()).prop_map(|(name, config, seed)| {
            let name =
                KeyspaceName::new(&format!("{name}-raw_1.x")).expect("allowed letters, and few");
            Change::CreateKeyspace { name, config, seed }
        });
    prop_oneof![
        2 => vec(newcomer(), 1..3).prop_map(Change::Join),
        1 => few().prop_map(Change::Drain),
        1 => few().prop_map(Change::Remove),
        1 => (few(), 1..300_u32).prop_map(|(node, weight)| Change::SetWeight { node, weight }),
        2 => few().prop_map(Change::Down),
        2 => (few(), number_u64(), any::<bool>())
            .prop_map(|(node, incarnation, has_disk)| Change::Return { node, incarnation, has_disk }),
        1 => btree_set(few(), 0..7).prop_map(Change::Settle),
        2 => keyspace,
        1 => (1..4_u32).prop_map(|number| Change::DropKeyspace(KeyspaceId(number))),
    ].boxed()
}

fn newcomer() -> BoxedStrategy<Newcomer> {
    let share = (1..300_u32, option::of(number_u32().prop_map(Domain)))
        .prop_map(|(weight, domain)| Share { weight, domain });
    ((0..7_u16).prop_map(NodeId), number_u64(), share)
        .prop_map(|(node, incarnation, share)| Newcomer { node, incarnation, share })
        .boxed()
}

/// A cluster map as changes make it.
pub fn cluster_map() -> BoxedStrategy<ClusterMap> {
    let members = vec(newcomer(), 1..5).prop_map(|members| {
        let distinct: BTreeMap<_, _> = members.into_iter().map(|it| (it.node, it)).collect();
        distinct.into_values().collect::<Vec<_>>()
    });
    (members, vec(change(), 0..8))
        .prop_map(|(members, changes)| {
            let first =
                ClusterMap::form(&members).expect("a few distinct nodes of allowed weights");
            changes.iter().fold(first, |map, change| map.changed(change).unwrap_or(map))
        })
        .boxed()
}

/// A message of any kind.
pub fn body() -> BoxedStrategy<Body> {
    let map = || cluster_map().prop_map(Arc::new);
    let read = number_u64;
    let submit = (transaction(), ends(), number_u64(), any::<bool>(), number_u64()).prop_map(
        |(transaction, ends, begun_us, is_retry, settled)| Body::Submit {
            transaction: Arc::new(transaction),
            ends,
            begun_us,
            is_retry,
            settled,
        },
    );
    let of_transactions = prop_oneof![
        commit_message().prop_map(Body::Commit),
        recovery_message().prop_map(Body::Recovery),
        submit,
        (transaction_id(), decision(), outcomes(), timestamp()).prop_map(
            |(id, decision, outcomes, clock)| Body::Reply { id, decision, outcomes, clock }
        ),
    ];
    let of_reads = prop_oneof![
        read_request().prop_map(Body::Read),
        read().prop_map(|read| Body::CancelRead { read }),
        read().prop_map(|read| Body::SnapshotEnded { read }),
        read_part().prop_map(Body::Part),
        (read(), abort()).prop_map(|(read, abort)| Body::Refused { read, abort }),
        transaction_id().prop_map(|id| Body::NotHere(Asked::Transaction(id))),
        read().prop_map(|read| Body::NotHere(Asked::Read(read))),
        movement_message().prop_map(Body::Movement),
    ];
    let of_membership = prop_oneof![
        Just(Body::FetchMap),
        map().prop_map(Body::NewerMap),
        (number_u64(), epoch(), number_u64())
            .prop_map(|(incarnation, epoch, sent_us)| Body::Renew { incarnation, epoch, sent_us }),
        (number_u64(), number_u64(), number_u64(), epoch()).prop_map(
            |(incarnation, sent_us, duration_us, epoch)| Body::Granted {
                incarnation,
                sent_us,
                duration_us,
                epoch
            }
        ),
        map().prop_map(Body::Prepare),
        epoch().prop_map(|epoch| Body::Prepared { epoch }),
        map().prop_map(Body::Effective),
        epoch().prop_map(|epoch| Body::CaughtUp { epoch }),
        (number_u64(), any::<bool>())
            .prop_map(|(incarnation, has_disk)| Body::Return { incarnation, has_disk }),
    ];
    prop_oneof![of_transactions, of_reads, of_membership].boxed()
}

/// A message with its envelope.
pub fn envelope() -> BoxedStrategy<Envelope> {
    (epoch(), number_u64(), address(), body())
        .prop_map(|(epoch, incarnation, from, body)| Envelope { epoch, incarnation, from, body })
        .boxed()
}

/// A record of a node's log.
pub fn record() -> BoxedStrategy<Record> {
    let validated = (transaction(), chain(), attempt(), timestamp(), timestamp(), placements());
    let validated = validated.prop_map(|(transaction, chain, attempt, begun, proposal, placed)| {
        Record::Validated {
            transaction: Arc::new(transaction),
            chain,
            attempt,
            begun,
            proposal,
            placed,
        }
    });
    prop_oneof![
        validated,
        cluster_map().prop_map(|map| Record::Map(Arc::new(map))),
        (transaction_id(), attempt(), any::<bool>())
            .prop_map(|(id, attempt, is_cleared)| Record::Fenced { id, attempt, is_cleared }),
        (transaction_id(), timestamp()).prop_map(|(id, at)| Record::Decided { id, at }),
        (transaction_id(), abort()).prop_map(|(id, abort)| Record::Aborted { id, abort }),
        (blob_name(), number_u64(), chunk_copy())
            .prop_map(|(blob, chunk, copy)| Record::Installed { blob, chunk, copy }),
    ]
    .boxed()
}
