//! One of each message and record, always the same: what the golden bytes are of.

mod keys;
mod maps;
mod uploads;

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::smallvec;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Changes, Durability, Epoch, ErrorKind, Existence,
    Expected, ExtentRef, KeptName, Key, KeyRange, KeyspaceConfig, KeyspaceId, KeyspaceName,
    LeaseMode, Listed, NodeId, NoticeId, Number, Operation, OperationId, Outcome, Payload,
    PieceContent, PieceId, PieceRef, PlacedBy, ReadCheck, Relation, Scan, ScanEntry, ScanPage,
    Stamped, Stat, Timestamp, Transaction, TransactionId, Transform, TransformKind, Uploaded,
    WatchTarget, Watcher,
};

use self::keys::{lease_messages, notice_messages, watch_messages};
use self::maps::map;
pub use self::maps::{cluster_map, map_with_kept, map_with_loss};
pub use self::uploads::uploading;
use self::uploads::{PIECE, in_extents, staged, uploads};
use crate::abort::Abort;
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::commit::OutcomeRetention;
use crate::commit::recovery::{self, Known};
use crate::commit::{self, Answered, Attempt, Decision, Kept, Marked, Placed, Remembered, Singles};
use crate::key_lease::{self, Wish};
use crate::key_watch;
use crate::map::{Change, ClusterMap, Domain, MapKept, MapKeyspace, Newcomer, Share};
use crate::member::Record;
use crate::message::{
    Address, Asked, Body, Envelope, ListRequest, ListedBlob, ReadPart, ReadRequest, ScanRequest,
};
use crate::movement::{self, ChunkCopy, ChunkVersion};
use crate::read::Kind;
use crate::upload::{self, PieceSource, StagedPiece};
use crate::versions::Usage;

const ID: TransactionId = TransactionId(0x0123_4567_89AB_CDEF_0000_0000_0000_002A);
const ATTEMPT: Attempt = Attempt { epoch: Epoch(7), number: 1, coordinator: NodeId(2) };

fn at(clock: u64) -> Timestamp {
    Timestamp { epoch: Epoch(7), clock: 1_700_000_000_000_000 + clock, node: 3 }
}

fn blob(key: &str) -> BlobName {
    BlobName { keyspace: KeyspaceId(300), key: Key::new(key).unwrap() }
}

fn inline(text: &'static str) -> Payload {
    Payload::Inline(Bytes::from_static(text.as_bytes()))
}

/// An abort because of a condition.
fn refused() -> Abort {
    abort().of_operation(OperationId { blob: 1, operation: 300 })
}

fn abort() -> Abort {
    Abort::at(&blob("acht"), ErrorKind::Conflict, "it changed; run the transaction again")
}

/// Of level 1; what later levels brought has samples of its own, so that these stay as they are.
fn every_operation() -> Vec<Operation> {
    let extent = ExtentRef { file: 1, position: 4096, len: 40_000, compressed_len: 0 };
    let add = Transform::new(TransformKind::Add, Number::F64(1.5)).unwrap();
    let xor = Transform::new(TransformKind::Xor, Number::I16(-2)).unwrap();
    vec![
        Operation::Create,
        Operation::Write { offset: 5, payload: inline("five") },
        Operation::Write { offset: 1 << 40, payload: Payload::Extents(vec![extent, extent]) },
        Operation::Append { payload: inline("end"), expected: None },
        Operation::Append { payload: inline("end"), expected: Some(1000) },
        Operation::Truncate { len: 12 },
        Operation::Delete,
        Operation::Apply { offset: 128, transform: add },
        Operation::Apply { offset: 128, transform: xor },
        Operation::Compare { offset: 0, expected: Bytes::from_static(b"is").into() },
        Operation::Replace { payload: inline("") },
    ]
}

fn transaction() -> Arc<Transaction> {
    let range = ByteRange { start: 10, end: 20 };
    let read =
        ReadCheck { blob: blob("gelesen"), range, is_attributes: false, at: at(1), listed: None };
    let again = ReadCheck { blob: blob("zwei"), is_attributes: true, ..read.clone() };
    Arc::new(Transaction {
        id: ID,
        blobs: vec![
            BlobOperations { blob: blob("eins"), operations: every_operation() },
            BlobOperations { blob: blob("zwei"), operations: vec![Operation::Create] },
        ],
        reads: vec![read, again],
    })
}

/// A transaction of level 4.
pub fn expecting() -> Arc<Transaction> {
    let expect = |existence: Existence| Operation::Expect { existence };
    let compare = |relation: Relation| {
        let expected = Expected::Number { relation, value: Number::U16(500) };
        Operation::Compare { offset: 64, expected }
    };
    let on = |key: &str, operations: Vec<Operation>| BlobOperations { blob: blob(key), operations };
    let blobs = vec![
        on("eins", vec![expect(Existence::Absent)]),
        on("zwei", vec![expect(Existence::Present)]),
        on("drei", Relation::ALL.map(compare).to_vec()),
    ];
    Arc::new(Transaction { id: ID, blobs, reads: vec![] })
}

/// A transaction of level 6.
pub fn stamping() -> Arc<Transaction> {
    let stamped = |bytes: &'static [u8], places: &[usize]| {
        Payload::Stamped(Arc::new(Stamped::new(bytes, places.iter().copied()).unwrap()))
    };
    let operations = vec![
        Operation::Write { offset: 5, payload: stamped(b"0123456789abcdef!", &[0]) },
        Operation::Append { payload: stamped(&[b'-'; 40], &[3, 20]), expected: None },
        Operation::Replace { payload: stamped(&[b'-'; 16], &[0]) },
    ];
    let blobs = vec![BlobOperations { blob: blob("eins"), operations }];
    Arc::new(Transaction { id: ID, blobs, reads: vec![] })
}

/// A transaction of level 7.
pub fn clearing() -> Arc<Transaction> {
    let operations = vec![Operation::Clear { range: ByteRange { start: 500, end: 1 << 40 } }];
    let blobs = vec![BlobOperations { blob: blob("eins"), operations }];
    Arc::new(Transaction { id: ID, blobs, reads: vec![] })
}

/// A transaction of level 15.
pub fn listing() -> Arc<Transaction> {
    let read = |keys: KeyRange, is_keys_only: bool| {
        ReadCheck::of_listing(blob("eins/"), Listed { keys, is_keys_only }, at(3))
    };
    let blobs =
        vec![BlobOperations { blob: blob("eins/neu"), operations: vec![Operation::Create] }];
    let last = KeyRange { start: Bytes::from_static(b"eins/z"), end: None };
    let reads = vec![read(KeyRange::of(b"eins/", Some(b"eins/a")), false), read(last, true)];
    Arc::new(Transaction { id: ID, blobs, reads })
}

fn chain() -> Chain {
    let piece = |key: &str, start: u64, is_written: bool| Piece {
        blob: blob(key),
        range: ByteRange { start, end: start + 64 },
        is_attributes: start == 0,
        is_written,
        authority: NodeId(1),
    };
    let all = vec![piece("eins", 0, true), piece("zwei", 64, true), piece("gelesen", 0, false)];
    let hop = |node: u16, pieces: &[Piece]| Hop {
        node: NodeId(node),
        part: Part::Pieces(pieces.to_vec()),
    };
    Chain::new(vec![hop(1, &all), hop(2, &all[..2]), hop(200, &[])], Ends::from_slice(&[(0, 77)]))
        .unwrap()
}

fn outcomes() -> commit::Outcomes {
    let answered = |operation: u32, outcome: Outcome| Answered { blob: 0, operation, outcome };
    [
        answered(3, Outcome::Offset(99)),
        answered(6, Outcome::Existed(true)),
        answered(7, Outcome::Value(Number::F32(0.25))),
        answered(8, Outcome::Done),
    ]
    .into_iter()
    .collect()
}

fn usages() -> commit::Usages {
    let moments = Usage::new(at(50), [at(1), at(2)]);
    vec![(blob("eins"), moments), (blob("acht"), Usage::new(at(51), []))]
}

fn copy() -> ChunkCopy {
    let version = |clock: u64, size: Option<Option<u64>>| ChunkVersion {
        version: at(clock),
        bytes: Bytes::from_static(b"chunk"),
        size,
        size_version: at(1),
    };
    let range = ByteRange { start: 0, end: 4096 };
    ChunkCopy::new(at(9), range, true, vec![version(2, Some(None)), version(5, Some(Some(5)))])
}

fn commit_messages() -> Vec<(&'static str, commit::Message)> {
    use commit::Message;
    let forward = Message::Forward {
        transaction: transaction(),
        chain: chain(),
        attempt: ATTEMPT,
        begun: at(10),
        highest: at(11),
        known: Some(at(12)),
        usages: usages(),
    };
    let backward = Message::Backward {
        id: ID,
        attempt: ATTEMPT,
        decision: Decision::Commit(at(13)),
        outcomes: outcomes(),
        usages: usages(),
    };
    let aborted = Message::Backward {
        id: ID,
        attempt: ATTEMPT,
        decision: Decision::Abort(abort()),
        outcomes: commit::Outcomes::new(),
        usages: vec![],
    };
    vec![
        ("forward", forward),
        ("backward", backward),
        ("backward-abort", aborted),
        ("misplaced", Message::Misplaced { id: ID, attempt: ATTEMPT, blob: 1, end: 8192 }),
        ("withdrawn", Message::Withdrawn { id: ID, attempt: ATTEMPT }),
        ("again", Message::Again { id: ID, attempt: ATTEMPT }),
        ("decided", Message::Decided { id: ID, attempt: ATTEMPT, at: at(14) }),
        ("anchored", Message::Anchored { id: ID, attempt: ATTEMPT, by: NodeId(2) }),
        ("stable", Message::Stable { id: ID, by: NodeId(1), outcomes: outcomes() }),
        ("ask-stable", Message::AskStable { id: ID, by: NodeId(1), from: NodeId(2) }),
    ]
}

fn recovery_messages() -> Vec<(&'static str, recovery::Message)> {
    use recovery::Message;
    let report =
        |known: Known| Message::Report { id: ID, attempt: ATTEMPT, from: NodeId(2), known };
    let alone = Chain::alone(NodeId(4));
    let validated = Known::Validated { attempt: ATTEMPT, proposal: at(15), chain: alone };
    vec![
        ("ask", Message::Ask { transaction: transaction(), chain: chain(), begun: at(14) }),
        ("query", Message::Query { id: ID, attempt: ATTEMPT, begun: at(14) }),
        ("report-nothing", report(Known::Nothing)),
        ("report-validated", report(validated)),
        ("report-committed", report(Known::Committed { at: at(16), ends: smallvec![(1, 77)] })),
        ("report-aborted", report(Known::Aborted(abort()))),
        ("report-forgotten", report(Known::Forgotten)),
        ("clear", Message::Clear { id: ID, attempt: ATTEMPT }),
        ("behind", Message::Behind { id: ID, attempt: ATTEMPT, promised: ATTEMPT }),
        ("abort", Message::Abort { id: ID, attempt: ATTEMPT, abort: refused() }),
        ("aborted", Message::Aborted { id: ID, attempt: ATTEMPT, from: NodeId(2) }),
    ]
}

fn read(asker: Address, kind: Kind) -> Body {
    let range = ByteRange { start: 100, end: 1 << 20 };
    let is_copy = asker != Address::Client(1);
    let blob = blob("eins");
    Body::Read(ReadRequest { read: 5, asker, blob, range, is_attributes: true, kind, is_copy })
}

fn bodies_of_reads() -> Vec<(&'static str, Body)> {
    let part = ReadPart {
        read: 5,
        range: ByteRange { start: 100, end: 104 },
        at: Some(at(17)),
        version: at(16),
        bytes: Bytes::from_static(b"four"),
        size: Some(Some(4)),
        clock: at(18),
    };
    let reason = Cow::Borrowed("the version is gone; begin a new snapshot");
    let too_old = Abort::new(ErrorKind::SnapshotTooOld, reason);
    vec![
        ("read-direct", read(Address::Client(1), Kind::Direct)),
        ("read-whole", read(Address::Node(NodeId(3)), Kind::Whole)),
        ("read-first", read(Address::Client(1), Kind::First)),
        ("read-at", read(Address::Client(1), Kind::At(at(19)))),
        ("read-clock", read(Address::Client(1), Kind::Clock)),
        ("cancel-read", Body::CancelRead { read: u64::MAX }),
        ("snapshot-ended", Body::SnapshotEnded { read: 127 }),
        ("part", Body::Part(part.clone())),
        ("part-absent", Body::Part(ReadPart { at: None, size: Some(None), ..part })),
        ("refused", Body::Refused { read: 5, abort: too_old }),
        ("not-here-transaction", Body::NotHere(Asked::Transaction(ID))),
        ("not-here-read", Body::NotHere(Asked::Read(128))),
    ]
}

fn remembered() -> Vec<Remembered> {
    let ends = smallvec![(1, 1 << 33)];
    let (committed, aborted) = (Decision::Commit(at(40)), Decision::Abort(abort()));
    vec![
        Remembered { id: ID, attempt: ATTEMPT, ends, decision: committed, outcomes: outcomes() },
        Remembered {
            id: ID,
            attempt: ATTEMPT,
            ends: smallvec![],
            decision: aborted,
            outcomes: commit::Outcomes::new(),
        },
    ]
}

fn movement_messages() -> Vec<(&'static str, movement::Message)> {
    use movement::Message;
    let chunk = |number: u64| (blob("eins"), number);
    let listed = Message::Listed {
        after: Some(chunk(1)),
        chunks: vec![chunk(2), chunk(1 << 20)],
        next: Some(chunk(1 << 20)),
    };
    let listed_since = Message::ListedSince {
        since: at(7),
        after: None,
        unchanged: vec![(chunk(2), at(5)), (chunk(3), at(7))],
        changed: vec![chunk(4)],
        next: None,
    };
    let summarized = Message::Summarized {
        since: at(7),
        after: Some(chunk(1)),
        unchanged: movement::Summary { chunks: 4_096, sum: 1 << 127 | 5 },
        changed: vec![chunk(4)],
        next: Some(chunk(1 << 20)),
    };
    vec![
        ("list", Message::List { after: None }),
        ("listed", listed),
        ("copied", Message::Copied { read: 9, chunk: chunk(0), copy: copy() }),
        ("recall", Message::Recall { after: 1_700_000_000_000_000 }),
        ("recalled", Message::Recalled { after: 0, outcomes: remembered(), next: Some(41) }),
        ("list-since", Message::ListSince { since: at(7), after: Some(chunk(1)) }),
        ("listed-since", listed_since),
        ("summarize", Message::Summarize { since: at(7), after: None }),
        ("summarized", summarized),
    ]
}

fn bodies() -> Vec<(&'static str, Body)> {
    let epoch = Epoch(8);
    let submit = |transaction| Body::Submit {
        transaction,
        ends: smallvec![(0, 4096), (1, 1 << 33)],
        begun_us: 1_700_000_000_000_000,
        is_retry: true,
        settled: 41,
    };
    let decision = Decision::Commit(at(20));
    let (incarnation, sent_us, duration_us) = (5, 123_456_789, 2_000_000);
    let (clock_us, done_to_us, window_us) = (1 << 50, (1 << 50) - 60_000_000, 60_000_000);
    let retention = OutcomeRetention { clock_us, done_to_us, window_us, slowest: Some(NodeId(3)) };
    let commits =
        commit_messages().into_iter().map(|(name, message)| (name, Body::Commit(message)));
    let recoveries =
        recovery_messages().into_iter().map(|(name, message)| (name, Body::Recovery(message)));
    let list_keys = Body::ListKeys(ListRequest {
        number: 7,
        keyspace: KeyspaceId(1),
        prefix: Bytes::from_static(b"e"),
        after: Some(Bytes::from_static(b"ein")),
        limit: 1_000,
        at: Some(at(20)),
    });
    let listed = ListedBlob { key: Bytes::from_static(b"eins"), size: 300, version: at(19) };
    let others = [
        ("submit", submit(transaction())),
        ("fetch-map", Body::FetchMap),
        ("reply", Body::Reply { id: ID, decision, outcomes: outcomes(), clock: at(21) }),
        ("newer-map", Body::NewerMap(map())),
        ("renew", Body::Renew { incarnation, epoch, sent_us, retention }),
        ("granted", Body::Granted { incarnation, sent_us, duration_us, epoch, retention }),
        ("prepare", Body::Prepare(map())),
        ("prepared", Body::Prepared { epoch }),
        ("effective", Body::Effective(map())),
        ("caught-up", Body::CaughtUp { epoch }),
        ("return", Body::Return { incarnation: 6, has_disk: false, level: 1 }),
        ("not-understood", Body::NotUnderstood { asked: Asked::Transaction(ID), level: 1 }),
        ("list-keys", list_keys),
        ("keys", Body::Keys { number: 7, keys: vec![listed], is_end: true }),
        ("newer-map-lost", Body::NewerMap(Arc::new(map_with_loss()))),
        ("newer-map-kept", Body::NewerMap(Arc::new(map_with_kept()))),
        ("submit-expect", submit(expecting())),
        ("submit-stamp", submit(stamping())),
        ("submit-clear", submit(clearing())),
        ("submit-uploaded", submit(uploading())),
        ("scan", scan()),
        ("scanned", scanned()),
        ("read-layout", read_layout()),
        ("submit-list", submit(listing())),
        ("moment", Body::Moment { read: 128, placed: None }),
        ("moment-placed", Body::Moment { read: 129, placed: Some((128, at(23))) }),
    ];
    let leases = lease_messages().map(|(name, message)| (name, Body::KeyLease(message)));
    let movements =
        movement_messages().into_iter().map(|(name, message)| (name, Body::Movement(message)));
    let of_nodes = commits.chain(recoveries).chain(movements);
    let watches = watch_messages().map(|(name, message)| (name, Body::KeyWatch(message)));
    let bodies = of_nodes.chain(bodies_of_reads()).chain(others).chain(leases);
    let notices = notice_messages().map(|(name, message)| (name, Body::KeyWatch(message)));
    bodies.chain(uploads()).chain(watches).chain(notices).collect()
}

fn read_layout() -> Body {
    let (asker, range) = (Address::Client(7), ByteRange { start: 4096, end: 8192 });
    let (kind, is_attributes, is_copy) = (Kind::Layout(at(24)), false, false);
    let blob = blob("eins");
    Body::Read(ReadRequest { read: 130, asker, blob, range, is_attributes, kind, is_copy })
}

fn scan() -> Body {
    let scan = Scan::new().prefix("a/").after("a/b").delimiter("/").limit(100);
    let scan = scan.range(ByteRange { start: 2, end: 6 });
    Body::Scan(Arc::new(ScanRequest::new(9, KeyspaceId(1), &scan, Some(at(22)))))
}

fn scanned() -> Body {
    let stat = Some(Stat { size: 300, version: at(19) });
    let bytes = Bytes::from_static(b"ytes");
    let with_stat = ScanEntry { key: Key::new("a/c").unwrap(), stat, bytes };
    let bare = ScanEntry { key: Key::new("a/d").unwrap(), stat: None, bytes: Bytes::new() };
    let groups = vec![Bytes::from_static(b"a/e/")];
    let resume = Some(Bytes::from_static(b"a/e0"));
    Body::Scanned { number: 9, page: ScanPage { entries: vec![with_stat, bare], groups, resume } }
}

/// A message of every kind, with its name.
pub fn envelopes() -> Vec<(&'static str, Envelope)> {
    let client = Address::Client(0xFEDC_BA98_7654_3210);
    let senders = [Address::Node(NodeId(2)), client, Address::Monitors];
    let envelope = |(name, body): (&'static str, Body)| {
        // Any of them, as long as another sample more does not change it.
        let from = senders[name.len() % senders.len()];
        (name, Envelope { epoch: Epoch(7), incarnation: 1, from, body })
    };
    bodies().into_iter().map(envelope).collect()
}

/// A record of every kind, with its name.
pub fn records() -> Vec<(&'static str, Record)> {
    let validated = |transaction| Record::Validated {
        transaction,
        chain: chain(),
        attempt: ATTEMPT,
        begun: at(30),
        proposal: at(31),
        placed: smallvec![Placed { index: 1, offset: 4096 }],
    };
    vec![
        ("map", Record::Map(map())),
        ("validated", validated(transaction())),
        ("fenced", Record::Fenced { id: ID, attempt: ATTEMPT, is_cleared: true }),
        ("decided", Record::Decided { id: ID, at: at(32) }),
        ("aborted", Record::Aborted { id: ID, abort: abort() }),
        ("installed", Record::Installed { blob: blob("eins"), chunk: 1, copy: copy() }),
        ("recalled", Record::Recalled { outcomes: remembered() }),
        ("answered", Record::Answered { id: ID, outcomes: outcomes() }),
        ("remembered", Record::Remembered { entries: kept() }),
        (
            "standing",
            Record::Standing { map: Some(map()), has_disk: true, clock: at(33), floor: 9 },
        ),
        ("aside", Record::Aside { transaction: transaction(), chain: chain(), at: at(34) }),
        ("finished", Record::Finished { but: vec![ID] }),
        ("marked", Record::Marked { entries: marked() }),
        ("map-lost", Record::Map(Arc::new(map_with_loss()))),
        ("map-kept", Record::Map(Arc::new(map_with_kept()))),
        ("validated-expect", validated(expecting())),
        ("validated-stamp", validated(stamping())),
        ("validated-clear", validated(clearing())),
        ("validated-uploaded", validated(uploading())),
        ("staged", Record::Staged { staged: staged(), until_us: 1 << 40, content: in_extents() }),
        ("validated-list", validated(listing())),
        ("unstaged", Record::Unstaged { ids: vec![PIECE, PieceId(3)] }),
        ("complete-to", Record::CompleteTo { at: at(7) }),
    ]
}

fn marked() -> Vec<Marked> {
    let singles: [Singles; 2] = [smallvec![KeyspaceId(1), KeyspaceId(300)], smallvec![]];
    kept().into_iter().zip(singles).map(|(kept, singles)| Marked { kept, singles }).collect()
}

fn kept() -> Vec<Kept> {
    let outcome = Some((Decision::Commit(at(40)), outcomes()));
    let finished_in = Some(ATTEMPT);
    let (ends, answers) = (smallvec![(1, 1 << 33)], outcomes());
    let finished =
        Kept { id: ID, noted: 35, attempt: ATTEMPT, finished_in, ends, outcome, answers };
    let fence = Kept {
        id: ID,
        noted: 36,
        attempt: ATTEMPT,
        finished_in: None,
        ends: smallvec![],
        outcome: None,
        answers: commit::Outcomes::new(),
    };
    vec![finished, fence]
}
