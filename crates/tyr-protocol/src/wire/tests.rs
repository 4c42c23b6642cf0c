//! What the wire promises: the same value comes back, the format stays, and any bytes are met.

mod levels;
mod samples;

use bytes::{Buf, BytesMut};
use proptest::prelude::*;
use tyr_types::{Bytes, Epoch, Error, ErrorKind, NodeId, Result, TransactionId};

use super::encoded::Encoded;
use super::frame::PREFIX_LEN;
use super::input::Input;
use super::output::Output;
use super::*;
use crate::commit::{self, recovery};
use crate::map::ClusterMap;
use crate::member::Record;
use crate::message::{Address, Body, Envelope};
use crate::movement;
use crate::upload;

/// Name and bytes in hexadecimal, a line each. The test that compares prints what differs.
const GOLDEN: &str = include_str!("tests/golden.txt");

fn frame_of(envelope: &Envelope) -> Bytes {
    let mut outgoing = Outgoing::new();
    encode(envelope, &mut outgoing).unwrap();
    outgoing.take_bytes()
}

fn record_bytes(record: &Record) -> Bytes {
    let mut outgoing = Outgoing::new();
    encode_record(record, &mut outgoing);
    outgoing.take_bytes()
}

fn map_bytes(map: &ClusterMap) -> Bytes {
    let mut outgoing = Outgoing::new();
    encode_map(map, &mut outgoing);
    outgoing.take_bytes()
}

fn alone<T: Encoded>(value: &T) -> Bytes {
    let mut outgoing = Outgoing::new();
    Output::put(value, &mut outgoing);
    outgoing.take_bytes()
}

/// The frame of these bytes, with the length and checksum that they should have.
fn sealed(content: &[u8]) -> Bytes {
    let len = (content.len() as u32).to_le_bytes();
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&len), content);
    [&len[..], &checksum.to_le_bytes(), content].concat().into()
}

/// Every sample: its name, its bytes, and what reading them gives, written again.
type Again = fn(&Bytes) -> Result<Bytes>;

fn frame_again(frame: &Bytes) -> Result<Bytes> {
    message_of(frame).map(|envelope| frame_of(&envelope))
}

/// The message in a frame, which is one that is understood.
fn message_of(frame: &Bytes) -> Result<Envelope> {
    match decode(frame)? {
        Frame::Message(envelope) => Ok(envelope),
        Frame::Unread(unread) => Err(Error::corrupt(format!("byte ?: {unread:?}"))),
    }
}

fn record_again(bytes: &Bytes) -> Result<Bytes> {
    decode_record(bytes).map(|record| record_bytes(&record))
}

fn map_again(bytes: &Bytes) -> Result<Bytes> {
    decode_map(bytes).map(|map| map_bytes(&map))
}

fn all_samples() -> Vec<(String, Bytes, Again)> {
    let frames = samples::envelopes().into_iter().map(|(name, envelope)| {
        (format!("message/{name}"), frame_of(&envelope), frame_again as Again)
    });
    let records = samples::records().into_iter().map(|(name, record)| {
        (format!("record/{name}"), record_bytes(&record), record_again as Again)
    });
    let map = ("map/map".to_owned(), map_bytes(&samples::cluster_map()), map_again as Again);
    frames.chain(records).chain([map]).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A change of the format is a change of [`VERSION`] or of the record's format, of
/// `docs/internals/wire.md` and of this file, never an accident.
#[test]
fn the_bytes_of_each_kind_of_message_record_and_map_stay_as_they_are() {
    let now: String = all_samples()
        .into_iter()
        .map(|(name, bytes, _)| format!("{name} {}\n", hex(&bytes)))
        .collect();
    if now != GOLDEN {
        let changed = now.lines().filter(|line| !GOLDEN.lines().any(|golden| golden == *line));
        let changed: Vec<&str> = changed.collect();
        panic!("these differ from tests/golden.txt:\n{}", changed.join("\n"));
    }
}

#[test]
fn golden_bytes_are_read_as_what_they_were() {
    for (name, envelope) in samples::envelopes() {
        assert_eq!(message_of(&frame_of(&envelope)).unwrap(), envelope, "{name}");
    }
    for (name, record) in samples::records() {
        assert_eq!(decode_record(&record_bytes(&record)).unwrap(), record, "{name}");
    }
    let map = samples::cluster_map();
    assert_eq!(decode_map(&map_bytes(&map)).unwrap(), map);
}

/// The tags of an enum are dense from 0, the first byte of each value.
fn has_all_tags<T: Encoded>(values: impl Iterator<Item = T>) -> bool {
    let mut seen: Vec<u8> = values.map(|value| alone(&value)[0]).collect();
    seen.sort_unstable();
    seen.dedup();
    let next = [seen.len() as u8];
    let is_dense = seen.iter().enumerate().all(|(place, tag)| place == usize::from(*tag));
    let unknown = Input::new(&next, None, 0, LEVEL).all::<T>(LEVEL).err();
    let text = unknown.map(|malformed| malformed.error("it", 1).to_string());
    is_dense && text.is_some_and(|text| text.contains("unknown"))
}

#[test]
fn there_is_a_sample_of_every_kind() {
    let bodies = || samples::envelopes().into_iter().map(|(_, envelope)| envelope.body);
    assert!(has_all_tags(bodies()));
    assert!(has_all_tags(samples::envelopes().into_iter().map(|(_, envelope)| envelope.from)));
    assert!(has_all_tags(samples::records().into_iter().map(|(_, record)| record)));
    let commits = bodies().filter_map(|body| match body {
        Body::Commit(message) => Some(message),
        _ => None,
    });
    assert!(has_all_tags::<commit::Message>(commits));
    let recoveries = bodies().filter_map(|body| match body {
        Body::Recovery(message) => Some(message),
        _ => None,
    });
    assert!(has_all_tags::<recovery::Message>(recoveries));
    let movements = bodies().filter_map(|body| match body {
        Body::Movement(message) => Some(message),
        _ => None,
    });
    assert!(has_all_tags::<movement::Message>(movements));
    let uploads = bodies().filter_map(|body| match body {
        Body::Upload(message) => Some(message),
        _ => None,
    });
    assert!(has_all_tags::<upload::Message>(uploads));
    let transactions = bodies().filter_map(|body| match body {
        Body::Submit { transaction, .. } => Some(transaction),
        _ => None,
    });
    let entries = transactions.flat_map(|transaction| transaction.blobs.clone());
    assert!(has_all_tags(entries.flat_map(|entry| entry.operations)));
}

#[test]
fn every_truncation_of_every_sample_is_an_error() {
    for (name, bytes, again) in all_samples() {
        for len in 0..bytes.len() {
            let error = again(&bytes.slice(..len)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name} cut to {len}: {error}");
        }
    }
    for (name, envelope) in samples::envelopes() {
        let content = frame_of(&envelope).slice(PREFIX_LEN..);
        for len in 0..content.len() {
            let error = message_of(&sealed(&content[..len])).unwrap_err();
            assert!(error.message().contains("byte "), "{name} cut to {len}: {error}");
        }
    }
}

#[test]
fn every_flipped_bit_of_every_frame_is_an_error() {
    for (name, envelope) in samples::envelopes() {
        let frame = frame_of(&envelope);
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped.into()).is_err(), "{name}, bit {bit}");
        }
    }
}

/// Without the checksum's help: what is read then is written as the same bytes again.
#[test]
fn every_flipped_bit_of_a_content_is_an_error_or_another_message() {
    for (name, bytes, again) in all_samples() {
        let is_frame = name.starts_with("message/");
        let skipped = if is_frame { PREFIX_LEN } else { 0 };
        let content = &bytes[skipped..];
        for bit in 0..content.len() * 8 {
            let mut flipped = content.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let flipped = if is_frame { sealed(&flipped) } else { flipped.into() };
            match again(&flipped) {
                Ok(written) => assert_settled(again, &flipped, &written),
                // A format that is not known yet.
                Err(error) if !is_frame && bit < 8 => {
                    let is_refused = [ErrorKind::Corrupt, ErrorKind::Unavailable];
                    assert!(is_refused.contains(&error.kind()), "{name}, bit {bit}");
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}, bit {bit}"),
            }
        }
    }
}

/// A decoded value has the bytes that it was read from; where a blob's name could have been
/// referred to and was spelt out again, those of a shorter way to say the same.
fn assert_settled(again: Again, bytes: &Bytes, written: &Bytes) {
    if bytes != written {
        // What was written before there were levels is written with one.
        let is_first = bytes[0] == 1 && written[0] == 2;
        assert!(written.len() <= bytes.len() || is_first, "{} {}", hex(bytes), hex(written));
        assert_eq!(again(written).unwrap(), written);
    }
}

#[test]
fn a_count_larger_than_what_follows_is_refused_before_anything_is_reserved() {
    let mut content = vec![6, 1, 7, 1, 2, 2, 2, 0, 0];
    content.extend_from_slice(&[0; 16]);
    // 2^60 blobs.
    content.extend_from_slice(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]);
    let error = decode(&sealed(&content)).unwrap_err();
    assert!(error.message().contains("announces more than follows"), "{error}");
}

#[test]
fn more_operations_than_a_transaction_may_have_are_refused() {
    let mut content = vec![6, 1, 7, 1, 2, 2, 2, 0, 0];
    content.extend_from_slice(&[0; 16]);
    content.extend_from_slice(&[1, 1, 1, b'k']); // One blob: keyspace 1, key "k".
    content.extend_from_slice(&[0x81, 0x80, 0x04]); // 65537 operations.
    content.resize(content.len() + 65_537, 0);
    let error = decode(&sealed(&content)).unwrap_err();
    assert!(error.message().contains("more operations"), "{error}");
}

#[test]
fn a_number_in_more_bytes_than_it_takes_is_refused() {
    // Epoch 0 in two bytes.
    let error = decode(&sealed(&[6, 1, 0x80, 0x00, 1, 2, 0, 6])).unwrap_err();
    let expected = "not a message: byte 11 of 16: a number in more bytes than it takes";
    assert_eq!(error.message(), expected);
    assert!(message_of(&sealed(&[5, 1, 0, 1, 2, 0, 6])).is_ok());
}

#[test]
fn a_frame_too_long_is_refused_when_its_length_is_known() {
    let mut decoder = Decoder::new();
    decoder.feed(&(FRAME_LEN_MAX as u32 + 1).to_le_bytes());
    decoder.feed(&[0; 4]);
    let error = decoder.frame().unwrap_err();
    assert!(error.message().contains("another protocol"), "{error}");
}

#[test]
fn a_message_too_long_is_refused_and_leaves_what_waits_as_it_was() {
    let first = Envelope {
        epoch: Epoch(1),
        incarnation: 1,
        from: Address::Node(NodeId(1)),
        body: Body::FetchMap,
    };
    let mut outgoing = Outgoing::new();
    encode(&first, &mut outgoing).unwrap();
    let (_, sample) = samples::envelopes().into_iter().find(|(name, _)| *name == "part").unwrap();
    let Body::Part(part) = sample.body else { panic!("the sample is a part") };
    let bytes = Bytes::from(vec![0; FRAME_LEN_MAX]);
    let long = Envelope {
        body: Body::Part(crate::message::ReadPart { bytes, ..part.clone() }),
        ..first.clone()
    };
    let error = encode(&long, &mut outgoing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(outgoing.take_bytes(), frame_of(&first));
    assert!(!outgoing.has_remaining());
}

#[test]
fn large_payloads_are_shared_both_ways() {
    let (_, mut envelope) =
        samples::envelopes().into_iter().find(|(name, _)| *name == "part").unwrap();
    let large = Bytes::from(vec![9; 1 << 20]);
    if let Body::Part(part) = &mut envelope.body {
        part.bytes = large.clone();
    }
    let mut outgoing = Outgoing::new();
    encode(&envelope, &mut outgoing).unwrap();
    let mut slices = [std::io::IoSlice::new(&[]); 8];
    let count = outgoing.chunks_vectored(&mut slices);
    assert!(slices[..count].iter().any(|slice| slice.as_ptr() == large.as_ptr()));
    let frame = outgoing.take_bytes();
    let Body::Part(part) = message_of(&frame).unwrap().body else { panic!("it was a part") };
    assert!(frame.as_ptr_range().contains(&part.bytes.as_ptr()), "it lies in the frame");
}

fn hello() -> Hello {
    let token = Bytes::from_static(b"secret");
    let receiver = Some(Address::Node(tyr_types::NodeId(2)));
    let sender = Address::Client(77);
    Hello { level: LEVEL, cluster: Some(0x1234), sender, receiver, incarnation: 0, token }
}

#[test]
fn a_hello_comes_back_once_it_is_whole_and_leaves_what_follows() {
    let bytes = hello().to_bytes().unwrap();
    let mut stream = BytesMut::new();
    for byte in &bytes {
        assert_eq!(Hello::take(&mut stream).unwrap(), None);
        stream.extend_from_slice(&[*byte]);
    }
    stream.extend_from_slice(b"frame");
    assert_eq!(Hello::take(&mut stream).unwrap(), Some(hello()));
    assert_eq!(&stream[..], b"frame");
}

#[test]
fn the_bytes_of_a_hello_stay_as_they_are() {
    let expected = "5459522d574952450200200099e042bb\
                    00010134120000000000000000000000000000014d0100020006736563726574";
    let hello = Hello { level: 1, ..hello() };
    assert_eq!(hex(&hello.to_bytes().unwrap()), expected);
}

#[test]
fn a_refusal_is_the_same_error_at_the_peer_whose_text_may_be_cut() {
    let error = Error::new(ErrorKind::PermissionDenied, "nobody knows you; ask for a token");
    let bytes = refusal_bytes(&error);
    let expected = "5459522d574952450200240017b8ad180107216e6f626f6479206b6e6f777320796f75";
    assert!(hex(&bytes).starts_with(expected), "{}", hex(&bytes));
    let mut stream = BytesMut::new();
    for byte in &bytes[..bytes.len() - 1] {
        stream.extend_from_slice(&[*byte]);
        assert_eq!(Hello::take(&mut stream).unwrap(), None);
    }
    stream.extend_from_slice(&bytes[bytes.len() - 1..]);
    let heard = Hello::take(&mut stream).unwrap_err();
    assert_eq!((heard.kind(), heard.message()), (error.kind(), error.message()));
    let long = Error::unavailable("ý".repeat(REFUSAL_LEN_MAX));
    let heard = Hello::take(&mut BytesMut::from(&refusal_bytes(&long)[..])).unwrap_err();
    assert_eq!(heard.message(), "ý".repeat(REFUSAL_LEN_MAX / 2));
}

#[test]
fn another_version_is_refused_by_name_whatever_follows() {
    for version in [0_u16, 1, 3, 65_535] {
        let mut stream = BytesMut::from(&hello().to_bytes().unwrap()[..]);
        stream[8..10].copy_from_slice(&version.to_le_bytes());
        let error = Hello::take(&mut stream).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(
            error.message(),
            format!(
                "the peer speaks version {version} of the wire format, this program version 2; \
                 upgrade the older of the two"
            )
        );
    }
}

#[test]
fn another_protocol_is_refused_at_its_first_byte() {
    let mut stream = BytesMut::from(&b"G"[..]);
    let error = Hello::take(&mut stream).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn every_truncation_and_flipped_bit_of_a_hello_is_an_error_or_waits() {
    let bytes = hello().to_bytes().unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = BytesMut::from(&bytes[..]);
        flipped[bit / 8] ^= 1 << (bit % 8);
        // A longer length waits for more.
        assert!(matches!(Hello::take(&mut flipped), Err(_) | Ok(None)), "bit {bit}");
    }
}

#[test]
fn a_token_is_not_shown() {
    assert!(!format!("{:?}", hello()).contains("secret"));
}

#[test]
fn a_token_too_long_is_refused() {
    let token = Bytes::from(vec![0; TOKEN_LEN_MAX + 1]);
    assert!(Hello { token, ..hello() }.to_bytes().is_err());
    let token = Bytes::from(vec![0; TOKEN_LEN_MAX]);
    let longest = Hello {
        token,
        sender: Address::Client(u64::MAX),
        receiver: Some(Address::Client(u64::MAX)),
        incarnation: u64::MAX,
        cluster: Some(u128::MAX),
        level: LEVEL,
    };
    let mut stream = BytesMut::from(&longest.to_bytes().unwrap()[..]);
    assert_eq!(Hello::take(&mut stream).unwrap(), Some(longest));
}

#[test]
fn a_record_of_another_format_is_refused_by_name() {
    let record = Record::Decided { id: TransactionId(1), at: tyr_types::Timestamp::ZERO };
    let mut bytes = record_bytes(&record).to_vec();
    bytes[0] = 77;
    let error = decode_record(&bytes.into()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let expected = format!(
        "a record was written by a later release of Týr (record format 77; this program knows up \
         to {}): start it with that release or later",
        LEVEL_KNOWN + 1
    );
    assert_eq!(error.message(), expected);
    assert!(decode_record(&Bytes::new()).is_err());
}

/// `values` encode to no fewer bytes than promised, and come back.
fn assert_comes_back<T: Encoded + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = alone(value);
    assert!(bytes.len() >= T::LEN_MIN, "{value:?} takes {} bytes", bytes.len());
    let back: T = Input::new(&bytes, Some(&bytes), 0, LEVEL)
        .all(LEVEL)
        .map_err(|error| error.error("it", 0))
        .unwrap();
    assert_eq!(back, *value);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(400)))]

    #[test]
    fn every_message_comes_back(envelope in strategies::envelope()) {
        let frame = frame_of(&envelope);
        let back = message_of(&frame).unwrap();
        prop_assert_eq!(&back, &envelope);
        prop_assert_eq!(frame_of(&back), frame);
    }

    #[test]
    fn every_record_comes_back(record in strategies::record()) {
        prop_assert_eq!(decode_record(&record_bytes(&record)).unwrap(), record);
    }

    #[test]
    fn every_map_comes_back(map in strategies::cluster_map()) {
        prop_assert_eq!(decode_map(&map_bytes(&map)).unwrap(), map);
    }

    #[test]
    fn every_list_item_takes_as_many_bytes_as_its_count_is_checked_for(
        transaction in strategies::transaction(),
        chain in strategies::chain(),
        abort in strategies::abort(),
        usages in strategies::usages(),
        outcomes in strategies::outcomes(),
        copy in strategies::chunk_copy(),
        map in strategies::cluster_map(),
        request in strategies::read_request(),
        part in strategies::read_part(),
    ) {
        transaction.reads.iter().for_each(assert_comes_back);
        transaction.blobs.iter().flat_map(|entry| &entry.operations).for_each(assert_comes_back);
        assert_comes_back(&transaction);
        for hop in chain.hops() {
            assert_comes_back(hop);
            if let crate::chain::Part::Pieces(pieces) = &hop.part {
                pieces.iter().for_each(assert_comes_back);
            }
        }
        assert_comes_back(&chain);
        assert_comes_back(&abort);
        usages.iter().for_each(assert_comes_back);
        outcomes.iter().for_each(assert_comes_back);
        copy.versions.iter().for_each(assert_comes_back);
        map.nodes.values().for_each(assert_comes_back);
        map.keyspaces.values().for_each(assert_comes_back);
        map.ring.members().values().for_each(assert_comes_back);
        assert_comes_back(&request);
        assert_comes_back(&part);
    }

    #[test]
    fn a_stream_cut_anywhere_gives_the_same_messages(
        envelopes in proptest::collection::vec(strategies::envelope(), 1..6),
        cuts in proptest::collection::vec(1..5000_usize, 1..50),
    ) {
        let mut outgoing = Outgoing::new();
        for envelope in &envelopes {
            encode(envelope, &mut outgoing).unwrap();
        }
        let mut decoder = Decoder::new();
        let mut seen = Vec::new();
        let mut cuts = cuts.into_iter().cycle();
        while outgoing.has_remaining() {
            let len = cuts.next().unwrap_or(1).min(outgoing.chunk().len());
            decoder.feed(&outgoing.chunk()[..len]);
            outgoing.advance(len);
            while let Some(frame) = decoder.frame().unwrap() {
                seen.push(frame);
            }
        }
        let sent: Vec<Frame> = envelopes.into_iter().map(Frame::Message).collect();
        prop_assert_eq!(seen, sent);
        prop_assert_eq!(decoder.pending(), 0);
    }

    #[test]
    fn vectored_writing_writes_the_same(
        envelopes in proptest::collection::vec(strategies::envelope(), 1..6),
        widths in proptest::collection::vec((1..5_usize, 1..40_000_usize), 1..20),
    ) {
        let (mut one, mut other) = (Outgoing::new(), Outgoing::new());
        for envelope in &envelopes {
            encode(envelope, &mut one).unwrap();
            encode(envelope, &mut other).unwrap();
        }
        let mut written = Vec::new();
        let mut widths = widths.into_iter().cycle();
        while other.has_remaining() {
            let (slices, bytes) = widths.next().unwrap_or((1, 1));
            let mut space = vec![std::io::IoSlice::new(&[]); slices];
            let count = other.chunks_vectored(&mut space);
            prop_assert!(count > 0);
            let before = written.len();
            for slice in &space[..count] {
                let room = bytes - (written.len() - before);
                written.extend_from_slice(&slice[..slice.len().min(room)]);
            }
            other.advance(written.len() - before);
        }
        prop_assert_eq!(written, one.take_bytes().to_vec());
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(
        content in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        for (bytes, again) in [
            (sealed(&content), frame_again as Again),
            (content.clone().into(), record_again as Again),
            (content.into(), map_again as Again),
        ] {
            if let Ok(written) = again(&bytes) {
                assert_settled(again, &bytes, &written);
            }
        }
    }
}
