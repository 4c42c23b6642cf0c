//! What is encoded decodes to the same; any other bytes are refused.

use proptest::prelude::*;

use super::*;

const KEYSPACE: KeyspaceId = KeyspaceId(1);

fn blob(key: &str, operations: Vec<Operation>) -> BlobOperations {
    let key = Key::new(key).unwrap();
    BlobOperations { blob: BlobName { keyspace: KEYSPACE, key }, operations }
}

fn transaction(blobs: Vec<BlobOperations>) -> Transaction {
    Transaction { id: TransactionId::new(7, 8), blobs, reads: Vec::new() }
}

fn encoded(transaction: &Transaction) -> Vec<u8> {
    let mut body = Vec::new();
    encode(transaction, |_| true, &mut body);
    body
}

fn stamped<const N: usize>(bytes: Vec<u8>, places: [usize; N]) -> Payload {
    Payload::Stamped(Arc::new(Stamped::new(bytes, places).unwrap()))
}

fn any_payload() -> impl Strategy<Value = Payload> {
    let extent = (any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(
        |(file, position, len, compressed_len)| ExtentRef { file, position, len, compressed_len },
    );
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300)
            .prop_map(|bytes| Payload::Inline(Bytes::from(bytes))),
        prop::collection::vec(extent, 0..5).prop_map(Payload::Extents),
        (0..300_usize, 0..16_usize, 0..300_usize).prop_map(|(start, gap, tail)| {
            stamped(vec![3; start + 32 + gap + tail], [start, start + 16 + gap])
        }),
    ]
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let offset = || prop_oneof![0..100_u64, 0..(1_u64 << 40), (1_u64 << 62)..(1_u64 << 62) + 9];
    let transform = (0..TransformKind::ALL.len(), 0..NumberType::ALL.len(), any::<u64>())
        .prop_filter_map("never accepted", |(kind, number_type, bits)| {
            let operand = Number::load(NumberType::ALL[number_type], &bits.to_le_bytes());
            let transform = Transform::new(TransformKind::ALL[kind], operand).ok()?;
            // A NaN comes back, but is not equal to itself.
            let is_nan = match operand {
                Number::F32(x) => x.is_nan(),
                Number::F64(x) => x.is_nan(),
                _ => false,
            };
            (!is_nan).then_some(transform)
        });
    prop_oneof![
        Just(Operation::Create),
        Just(Operation::Delete),
        offset().prop_map(|len| Operation::Truncate { len }),
        (offset(), 0..(1_u64 << 40)).prop_map(|(start, len)| {
            Operation::Clear { range: ByteRange { start, end: start + len } }
        }),
        (offset(), any_payload())
            .prop_map(|(offset, payload)| Operation::Write { offset, payload }),
        any_payload().prop_map(|payload| Operation::Append { payload, expected: None }),
        any_payload().prop_map(|payload| Operation::Replace { payload }),
        (offset(), transform)
            .prop_map(|(offset, transform)| Operation::Apply { offset, transform }),
    ]
}

fn any_transaction() -> impl Strategy<Value = Transaction> {
    let key = prop::collection::vec(any::<u8>(), 1..40);
    let operations = prop::collection::vec(any_operation(), 1..5);
    let blobs = prop::collection::vec((any::<u32>(), key, operations), 1..5);
    (any::<u128>(), blobs).prop_map(|(id, blobs)| Transaction {
        id: TransactionId(id),
        blobs: blobs
            .into_iter()
            .map(|(keyspace, key, operations)| BlobOperations {
                blob: BlobName { keyspace: KeyspaceId(keyspace), key: Key::new(key).unwrap() },
                operations,
            })
            .collect(),
        reads: Vec::new(),
    })
}

proptest! {
    #[test]
    fn transactions_come_back_as_they_were(transaction in any_transaction()) {
        prop_assert_eq!(decode(&encoded(&transaction)).unwrap(), transaction);
    }

    #[test]
    fn any_bytes_decode_to_an_error_or_to_what_encodes_again(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Ok(transaction) = decode(&bytes) {
            prop_assert_eq!(decode(&encoded(&transaction)).is_ok(), !transaction.blobs.is_empty());
        }
    }

    #[test]
    fn a_changed_byte_never_panics(
        transaction in any_transaction(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut body = encoded(&transaction);
        let at = at.index(body.len());
        body[at] = byte;
        let _ = decode(&body);
    }

    #[test]
    fn a_cut_body_is_an_error(
        transaction in any_transaction(), at in any::<prop::sample::Index>(),
    ) {
        let body = encoded(&transaction);
        prop_assert!(decode(&body[..at.index(body.len())]).is_err());
    }
}

/// As `docs/internals/format.md` has it: a change here is a new version of the format.
#[test]
fn the_bytes_are_those_of_format_1() {
    let inline = || Payload::Inline(Bytes::from_static(b"xy"));
    let extent = ExtentRef { file: 3, position: 4096, len: 300, compressed_len: 5 };
    let extents = || Payload::Extents(vec![extent]);
    let swap = Transform::new(TransformKind::Swap, Number::F32(1.0)).unwrap();
    let operations = vec![
        Operation::Create,
        Operation::Write { offset: 128, payload: inline() },
        Operation::Write { offset: 1, payload: extents() },
        Operation::Append { payload: inline(), expected: Some(9) },
        Operation::Append { payload: extents(), expected: None },
        Operation::Truncate { len: 5 },
        Operation::Delete,
        Operation::Replace { payload: inline() },
        Operation::Replace { payload: extents() },
        Operation::Apply { offset: 2, transform: swap },
    ];
    let stored_extents = [1, 3, 0x80, 0x20, 0xAC, 2, 5];
    let expected = [
        &8_u64.to_le_bytes()[..],
        &7_u64.to_le_bytes(),
        &[1, 1, 2, b'k', b'1', 10],
        &[0],
        &[1, 0x80, 1, 2, b'x', b'y'],
        &[2, 1],
        &stored_extents,
        &[3, 2, b'x', b'y'],
        &[4],
        &stored_extents,
        &[5, 5],
        &[6],
        &[7, 2, b'x', b'y'],
        &[8],
        &stored_extents,
        &[128 + 98, 2, 0, 0, 0x80, 0x3F],
    ];
    assert_eq!(encoded(&transaction(vec![blob("k1", operations)])), expected.concat());
}

/// Codes that came after the first release of format 1: a program of before refuses the record as
/// one of a later release.
#[test]
fn the_bytes_of_stamps_and_holes_are_those_of_the_format() {
    let operations = vec![
        Operation::Write { offset: 128, payload: stamped(vec![0; 16], [0]) },
        Operation::Append {
            payload: stamped([&[0; 33][..], b"y"].concat(), [17, 1]),
            expected: None,
        },
        Operation::Replace { payload: stamped([b"x", &[0; 16][..]].concat(), [1]) },
        Operation::Clear { range: ByteRange { start: 3, end: 131 } },
    ];
    let expected = [
        &8_u64.to_le_bytes()[..],
        &7_u64.to_le_bytes(),
        &[1, 1, 2, b'k', b'1', 4],
        &[9, 0x80, 1, 16],
        &[0; 16],
        &[1, 0],
        &[10, 34],
        &[0; 33],
        &[b'y', 2, 1, 17],
        &[11, 17, b'x'],
        &[0; 16],
        &[1, 1],
        &[12, 3, 0x80, 1],
    ];
    let body = encoded(&transaction(vec![blob("k1", operations)]));
    assert_eq!(body, expected.concat());
    let body = &body[..body.len() - 4];
    let place = body.len() - 1;
    for wrong in [0, 2] {
        let forged = [&body[..place], &[wrong]].concat();
        assert!(decode(&forged).unwrap_err().message().contains("stamps where none can be"));
    }
}

#[test]
fn conditions_and_reads_are_left_out() {
    let compare = Operation::Compare { offset: 0, expected: Bytes::from_static(b"x").into() };
    let payload = Payload::Inline(Bytes::from_static(b"y"));
    let mut decided = transaction(vec![
        blob("a", vec![compare.clone()]),
        blob("c", vec![Operation::Expect { existence: tyr_types::Existence::Present }]),
        blob("b", vec![compare, Operation::Append { payload: payload.clone(), expected: Some(3) }]),
    ]);
    decided.reads.push(tyr_types::ReadCheck {
        blob: decided.blobs[0].blob.clone(),
        range: tyr_types::ByteRange::ALL,
        is_attributes: true,
        at: tyr_types::Timestamp::ZERO,
        listed: None,
    });
    let kept = transaction(vec![blob("b", vec![Operation::Append { payload, expected: None }])]);
    assert_eq!(decode(&encoded(&decided)).unwrap(), kept);
}

#[test]
fn keyspaces_that_are_not_logged_leave_nothing() {
    let one = transaction(vec![blob("a", vec![Operation::Create])]);
    let mut body = Vec::new();
    assert_eq!(encode(&one, |keyspace| keyspace != KEYSPACE, &mut body), Seen::default());
    assert!(body.is_empty());
}

#[test]
fn counts_that_the_bytes_do_not_justify_are_refused() {
    let mut body = vec![0; 16];
    varint(&mut body, u64::MAX);
    assert!(decode(&body).is_err());
    let body = [encoded(&transaction(vec![blob("a", vec![Operation::Create])])), vec![0]].concat();
    assert!(decode(&body).unwrap_err().message().contains("after its end"));
}

#[test]
fn a_division_by_zero_in_the_log_is_refused() {
    let three = Transform::new(TransformKind::Div, Number::U8(3)).unwrap();
    let apply = Operation::Apply { offset: 0, transform: three };
    let mut body = encoded(&transaction(vec![blob("a", vec![apply])]));
    assert_eq!(body.pop(), Some(3));
    body.push(0);
    assert!(decode(&body).unwrap_err().message().contains("never accepted"));
}

#[test]
fn the_papers_transaction_takes_about_two_hundred_bytes_in_the_log() {
    let add = |offset| Operation::Apply { offset, transform: Transform::add(Number::U64(1)) };
    let payload = Payload::Inline(Bytes::from_static(&[1; 16]));
    let mut blobs = vec![blob("generator/42", vec![Operation::Append { payload, expected: None }])];
    for key in ["count/gen/42", "count/clu/07", "count/all/00"] {
        blobs.push(blob(key, vec![add(160), add(168)]));
    }
    let len = encoded(&transaction(blobs)).len() + super::super::record::HEADER_LEN;
    assert!(len <= 210, "{len} bytes");
}
