//! Copies that come in pieces: what the authority waits for before it says what is there (D2).

use tyr_types::{BlobOperations, ByteRange, Bytes, NodeId, Operation, Payload, TransactionId};
use tyr_types::{Timestamp, Transaction};

use super::checkpoints::{NODE, back};
use super::shelf::CHUNK;
use super::stand::{CLIENT, Stand, map};
use super::world::blob;
use crate::chain::Ends;
use crate::member::Effect;
use crate::message::{Address, Body, ReadRequest};
use crate::read::Kind;

const AUTHORITY: NodeId = NodeId(0);
/// Of a chunk that has no say in how long its blob is. What is written lies behind it.
const PIECE: ByteRange = ByteRange { start: CHUNK, end: CHUNK + 8 };

/// Whether a piece is served at once that is asked for while bytes behind it are being written.
fn served_beside_a_write_behind_it(kind: impl Fn(Timestamp) -> Kind) -> bool {
    let map = back(&map(3), 2);
    let mut stand = Stand::new(AUTHORITY.0, &map);
    stand.lease();
    let is_its = |number: &u8| {
        let is_of = |chunk| map.holders(&blob(*number), chunk).first() == Some(&AUTHORITY);
        is_of(0) && is_of(1)
    };
    let blob = (0..50).find(is_its).map(blob).expect("it has a ninth of them");
    let payload = Payload::Inline(Bytes::copy_from_slice(&7_u64.to_le_bytes()));
    let operations = vec![Operation::Write { offset: PIECE.end + 16, payload }];
    let id = TransactionId(u128::from(CLIENT) << 64 | 1);
    let blobs = vec![BlobOperations { blob: blob.clone(), operations }];
    let transaction = Transaction { id, blobs, reads: Vec::new() }.into();
    let (ends, begun_us) = (Ends::new(), stand.now_us);
    let body = Body::Submit { transaction, ends, begun_us, is_retry: false, settled: 0 };
    stand.receive(&map, Address::Client(CLIENT), body);
    assert_eq!(stand.member.in_flight(), 1, "it is on its way along its chain");

    let (asker, range) = (Address::Node(NODE), PIECE);
    let kind = kind(stand.member.clock());
    let (read, is_attributes, is_copy) = (1, false, true);
    let request = ReadRequest { read, asker, blob, range, is_attributes, kind, is_copy };
    let effects = stand.receive(&map, asker, Body::Read(request));
    let is_refused = effects.iter().any(|it| matches!(it, Effect::Send { .. }));
    assert!(!is_refused, "{effects:?}");
    effects.iter().any(|it| matches!(it, Effect::Serve { .. }))
}

#[test]
fn a_piece_waits_for_what_is_written_behind_it_and_may_make_the_chunk_longer() {
    assert!(!served_beside_a_write_behind_it(|_| Kind::Whole), "the first piece");
    assert!(!served_beside_a_write_behind_it(Kind::At), "one of those behind it");
}
