//! Any value of any type that travels, for property tests here and in other crates.
//!
//! Values are valid: what a constructor would refuse is never made. Some payloads are long enough
//! to be shared. [`words`] has the words of `tyr-types`, other modules what they are named for.

use std::borrow::Cow;
use std::sync::Arc;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use smallvec::SmallVec;
use tyr_types::{ErrorKind, KeyspaceId, OperationId, Outcome};

pub use self::map::{change, cluster_map, keyspace_config};
pub use self::movement::movement_message;
pub use self::upload::{staged, upload_message, upload_record};
pub use self::words::{
    blob_name, byte_range, bytes, epoch, key, node, number, number_u32, number_u64, operation,
    payload, timestamp, transaction, transaction_id, transform,
};
use crate::abort::Abort;
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::commit::OutcomeRetention;
use crate::commit::recovery::{self, Known};
use crate::commit::{
    self, Answered, Attempt, Decision, Kept, Marked, Placed, Placements, Remembered,
};
use crate::member::Record;
use crate::message::{Address, Asked, Body, Envelope, ReadPart, ReadRequest};
use crate::movement::{ChunkCopy, ChunkName, ChunkVersion};
use crate::read::Kind;
use crate::versions::Usage;

pub mod key_lease;
pub mod key_watch;
mod later_levels;
pub mod map;
mod movement;
pub mod scan;
pub mod upload;
pub mod words;

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
    let operation = (number_u32(), number_u32());
    let operation = operation.prop_map(|(blob, operation)| OperationId { blob, operation });
    (kind, reason, option::of((blob_name(), option::of(operation))))
        .prop_map(|(kind, reason, at)| {
            let (blob, operation) = at.map_or((None, None), |(blob, it)| (Some(blob), it));
            Abort { kind, reason, blob, operation }
        })
        .boxed()
}

/// The same as a log has it, where the operation is left out.
fn written_abort() -> BoxedStrategy<Abort> {
    abort().prop_map(|abort| Abort { operation: None, ..abort }).boxed()
}

/// A run of a transaction.
pub fn attempt() -> BoxedStrategy<Attempt> {
    (epoch(), number_u32(), node())
        .prop_map(|(epoch, number, coordinator)| Attempt { epoch, number, coordinator })
        .boxed()
}

/// What became of a transaction.
pub fn decision() -> BoxedStrategy<Decision> {
    decision_of(abort())
}

fn decision_of(abort: BoxedStrategy<Abort>) -> BoxedStrategy<Decision> {
    prop_oneof![timestamp().prop_map(Decision::Commit), abort.prop_map(Decision::Abort)].boxed()
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
    vec(answered, 0..4).prop_map(commit::Outcomes::from).boxed()
}

/// Appends whose offset is settled.
pub fn placements() -> BoxedStrategy<Placements> {
    let placed = (number_u32(), number_u64()).prop_map(|(index, offset)| Placed { index, offset });
    vec(placed, 0..3).prop_map(SmallVec::from_vec).boxed()
}

/// What is in use: few moments, or as many as are told.
pub fn usage() -> BoxedStrategy<Usage> {
    let moments =
        prop_oneof![4 => btree_set(timestamp(), 0..4), 1 => btree_set(timestamp(), 65..90)];
    (timestamp(), moments).prop_map(|(as_of, moments)| Usage::new(as_of, moments)).boxed()
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
        1 => (transaction_id(), attempt())
            .prop_map(|(id, attempt)| Message::Withdrawn { id, attempt }),
        1 => (transaction_id(), attempt()).prop_map(|(id, attempt)| Message::Again { id, attempt }),
        1 => (transaction_id(), node(), outcomes())
            .prop_map(|(id, by, outcomes)| Message::Stable { id, by, outcomes }),
        1 => (transaction_id(), node(), node())
            .prop_map(|(id, by, from)| Message::AskStable { id, by, from }),
    ]
    .boxed()
}

fn retention() -> impl Strategy<Value = OutcomeRetention> {
    (number_u64(), number_u64(), number_u64(), option::of(node())).prop_map(
        |(clock_us, done_to_us, window_us, slowest)| OutcomeRetention {
            clock_us,
            done_to_us,
            window_us,
            slowest,
        },
    )
}

/// A message of recovery.
pub fn recovery_message() -> BoxedStrategy<recovery::Message> {
    use recovery::Message;
    let known = prop_oneof![
        Just(Known::Nothing),
        (attempt(), timestamp(), chain()).prop_map(|(attempt, proposal, chain)| {
            Known::Validated { attempt, proposal, chain }
        }),
        (timestamp(), ends()).prop_map(|(at, ends)| Known::Committed { at, ends }),
        abort().prop_map(Known::Aborted),
        Just(Known::Forgotten),
    ];
    prop_oneof![
        (transaction(), chain(), timestamp()).prop_map(|(transaction, chain, begun)| {
            Message::Ask { transaction: Arc::new(transaction), chain, begun }
        }),
        (transaction_id(), attempt(), timestamp())
            .prop_map(|(id, attempt, begun)| Message::Query { id, attempt, begun }),
        (transaction_id(), attempt(), node(), known)
            .prop_map(|(id, attempt, from, known)| Message::Report { id, attempt, from, known }),
        (transaction_id(), attempt()).prop_map(|(id, attempt)| Message::Clear { id, attempt }),
        (transaction_id(), attempt(), attempt())
            .prop_map(|(id, attempt, promised)| Message::Behind { id, attempt, promised }),
        (transaction_id(), attempt(), abort()).prop_map(|(id, attempt, abort)| Message::Abort {
            id,
            attempt,
            abort
        }),
        (transaction_id(), attempt(), node()).prop_map(|(id, attempt, from)| Message::Aborted {
            id,
            attempt,
            from
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
        timestamp().prop_map(Kind::Layout),
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

/// What a node remembers of a transaction.
fn remembered() -> BoxedStrategy<Remembered> {
    (transaction_id(), attempt(), ends(), decision_of(written_abort()), outcomes())
        .prop_map(|(id, attempt, ends, decision, outcomes)| Remembered {
            id,
            attempt,
            ends,
            decision,
            outcomes,
        })
        .boxed()
}

fn kept() -> BoxedStrategy<Kept> {
    let finished =
        (option::of(attempt()), ends(), option::of((decision_of(written_abort()), outcomes())));
    (transaction_id(), number_u64(), attempt(), finished, outcomes())
        .prop_map(|(id, noted, attempt, (finished_in, ends, outcome), answers)| Kept {
            id,
            noted,
            attempt,
            finished_in,
            ends,
            outcome,
            answers,
        })
        .boxed()
}

fn marked() -> BoxedStrategy<Marked> {
    let singles = vec((0..4_u32).prop_map(KeyspaceId), 0..3);
    (kept(), singles).prop_map(|(kept, singles)| Marked { kept, singles: singles.into() }).boxed()
}

fn standing() -> BoxedStrategy<Record> {
    (option::of(cluster_map()), any::<bool>(), timestamp(), number_u64())
        .prop_map(|(map, has_disk, clock, floor)| Record::Standing {
            map: map.map(Arc::new),
            has_disk,
            clock,
            floor,
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
        (
            prop_oneof![
                transaction_id().prop_map(Asked::Transaction),
                read().prop_map(Asked::Read),
            ],
            any::<u8>()
        )
            .prop_map(|(asked, level)| Body::NotUnderstood { asked, level }),
        movement_message().prop_map(Body::Movement),
        upload_message().prop_map(Body::Upload),
        scan::keys(),
        later_levels::message(),
    ];
    let of_membership = prop_oneof![
        Just(Body::FetchMap),
        map().prop_map(Body::NewerMap),
        (number_u64(), epoch(), number_u64(), retention()).prop_map(
            |(incarnation, epoch, sent_us, retention)| Body::Renew {
                incarnation,
                epoch,
                sent_us,
                retention
            }
        ),
        (number_u64(), number_u64(), number_u64(), epoch(), retention()).prop_map(
            |(incarnation, sent_us, duration_us, epoch, retention)| Body::Granted {
                incarnation,
                sent_us,
                duration_us,
                epoch,
                retention
            }
        ),
        map().prop_map(Body::Prepare),
        epoch().prop_map(|epoch| Body::Prepared { epoch }),
        map().prop_map(Body::Effective),
        epoch().prop_map(|epoch| Body::CaughtUp { epoch }),
        (number_u64(), any::<bool>(), any::<u8>()).prop_map(|(incarnation, has_disk, level)| {
            Body::Return { incarnation, has_disk, level }
        }),
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
        (transaction_id(), written_abort()).prop_map(|(id, abort)| Record::Aborted { id, abort }),
        (blob_name(), number_u64(), chunk_copy())
            .prop_map(|(blob, chunk, copy)| Record::Installed { blob, chunk, copy }),
        vec(remembered(), 0..4).prop_map(|outcomes| Record::Recalled { outcomes }),
        (transaction_id(), outcomes()).prop_map(|(id, outcomes)| Record::Answered { id, outcomes }),
        vec(kept(), 0..4).prop_map(|entries| Record::Remembered { entries }),
        vec(marked(), 0..4).prop_map(|entries| Record::Marked { entries }),
        standing(),
        timestamp().prop_map(|at| Record::CompleteTo { at }),
        (transaction(), chain(), timestamp()).prop_map(|(transaction, chain, at)| {
            Record::Aside { transaction: Arc::new(transaction), chain, at }
        }),
        vec(transaction_id(), 0..4).prop_map(|but| Record::Finished { but }),
        upload_record(),
    ]
    .boxed()
}
