//! What programs of other releases wrote: what is older is read, what is newer is told from damage.

use tyr_types::{BlobName, Key, KeyspaceConfig, KeyspaceId, PlacedBy, Timestamp};

use super::*;
use crate::abort::Abort;
use crate::key_lease;
use crate::key_watch;
use crate::level::{
    BEFORE_LEVELS, LEVEL_ALONE, LEVEL_CLEARING, LEVEL_EXPECTING, LEVEL_FIRST, LEVEL_GUARDING,
    LEVEL_KEEPING, LEVEL_LISTING, LEVEL_MOMENTS, LEVEL_PLACED, LEVEL_SCANNING, LEVEL_STAGING,
    LEVEL_STAMPING, level_of,
};
use crate::map::MapKeyspace;
use crate::message::Asked;
use crate::versions::Usage;
use crate::wire::encoded::{encoded_enum, encoded_struct};

/// Records and a map as they were before there were feature levels.
const FORMAT_1: &str = include_str!("format-1.txt");

/// The sample `abort` as programs of before level 4 write it.
const ABORT_OF_LEVEL_1: &str = "\
    4b000000042b717905010701020001042a00000000000000efcdab89674523010701020225697420\
    6368616e6765643b2072756e20746865207472616e73616374696f6e20616761696e0100ac020461\
    636874";

const ID: TransactionId = TransactionId(0x0123_4567_89AB_CDEF_0000_0000_0000_002A);

fn unhex(text: &str) -> Bytes {
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The content of a sample's frame.
fn content(name: &str) -> Vec<u8> {
    let (_, envelope) = samples::envelopes().into_iter().find(|(it, _)| *it == name).unwrap();
    frame_of(&envelope)[PREFIX_LEN..].to_vec()
}

fn unread(content: &[u8]) -> Unread {
    match decode(&sealed(content)).unwrap() {
        Frame::Unread(unread) => unread,
        Frame::Message(envelope) => panic!("it was understood: {envelope:?}"),
    }
}

#[test]
fn records_and_maps_of_the_first_format_are_read() {
    let mut read = 0;
    for (name, record) in samples::records() {
        let line = FORMAT_1.lines().find_map(|line| line.strip_prefix(&format!("record/{name} ")));
        let Some(line) = line else { continue };
        let bytes = unhex(line);
        assert_eq!(bytes[0], 1, "{name}");
        assert_eq!(decode_record(&bytes).unwrap(), record, "{name}");
        read += 1;
    }
    assert_eq!(read + 1, FORMAT_1.lines().count(), "all of them");
    let map = FORMAT_1.lines().find_map(|line| line.strip_prefix("map/map ")).unwrap();
    assert_eq!(decode_map(&unhex(map)).unwrap(), samples::cluster_map());
}

/// A program that goes back before the upgrade is complete reads what has nothing new in it.
#[test]
fn what_holds_nothing_new_is_written_in_the_format_that_the_oldest_programs_read() {
    let decided = Record::Decided { id: ID, at: tyr_types::Timestamp::ZERO };
    assert_eq!(record_bytes(&decided)[0], BEFORE_LEVELS + 1);
    assert_eq!(map_bytes(&samples::cluster_map())[0], LEVEL_FIRST + 1);
    let without_loss = samples::cluster_map().speaking(LEVEL_ALONE);
    assert_eq!(map_bytes(&without_loss)[0], LEVEL_FIRST + 1, "also clients of before read it");
}

/// What level 2 brought.
#[test]
fn a_loss_and_marks_are_of_level_2_and_an_older_program_says_so() {
    assert_eq!(map_bytes(&samples::map_with_loss())[0], LEVEL_ALONE + 1);
    let find = |name: &str| samples::records().into_iter().find(|(it, _)| *it == name).unwrap().1;
    assert_eq!(record_bytes(&find("remembered"))[0], BEFORE_LEVELS + 1);
    assert_eq!(record_bytes(&find("marked"))[0], LEVEL_ALONE + 1);
    let envelopes = samples::envelopes();
    let (_, envelope) = envelopes.iter().find(|(name, _)| *name == "newer-map-lost").unwrap();
    let mut older = Outgoing::speaking(LEVEL_FIRST);
    let error = encode(envelope, &mut older).unwrap_err();
    assert!(error.message().contains("feature level 2"), "{error}");
    let mut older = Decoder::speaking(LEVEL_FIRST);
    older.feed(&frame_of(envelope));
    let Some(Frame::Unread(unread)) = older.frame().unwrap() else { panic!("it was understood") };
    assert_eq!((unread.level, unread.from), (LEVEL_ALONE, envelope.from));
}

/// What level 18 brought: a map that keeps nothing is as in level 1.
#[test]
fn a_map_with_kept_snapshots_is_of_level_16_and_an_older_program_says_so() {
    let bytes = map_bytes(&samples::map_with_kept());
    assert_eq!(bytes[0], LEVEL_KEEPING + 1);
    assert_eq!(decode_map(&bytes).unwrap(), samples::map_with_kept());
    let nothing = samples::cluster_map().speaking(LEVEL_KEEPING);
    assert_eq!(map_bytes(&nothing)[0], LEVEL_FIRST + 1);
    let envelopes = samples::envelopes();
    let (_, envelope) = envelopes.iter().find(|(name, _)| *name == "newer-map-kept").unwrap();
    let mut older = Outgoing::speaking(LEVEL_LISTING);
    let error = encode(envelope, &mut older).unwrap_err();
    assert!(error.message().contains("feature level 18"), "{error}");
}

/// One value has one encoding: what is placed by the whole key, and not guarded, is as in level 1.
#[test]
fn a_keyspace_of_level_3_is_placed_by_a_part_of_the_key_and_one_of_level_13_may_be_guarded() {
    for (placed_by, is_compressed, is_guarded, end, of_level) in [
        (PlacedBy::First(8), false, false, &[2, 0, 8][..], LEVEL_PLACED),
        (PlacedBy::UpTo(0xff), true, false, &[3, 1, 0xff], LEVEL_PLACED),
        (PlacedBy::Key, true, false, &[1], BEFORE_LEVELS),
        (PlacedBy::Key, false, true, &[4], LEVEL_GUARDING),
        (PlacedBy::First(8), true, true, &[7, 0, 8], LEVEL_GUARDING),
    ] {
        let config = KeyspaceConfig { placed_by, is_compressed, is_guarded, ..Default::default() };
        let config = config.explicit();
        let (level, bytes) = written(&config);
        assert_eq!(level, of_level);
        assert!(bytes.ends_with(end), "{bytes:?}");
        let read = |bytes: &[u8], level| {
            Input::new(&Bytes::copy_from_slice(bytes), None, 0, level).all::<KeyspaceConfig>(0)
        };
        assert_eq!(read(&bytes, level).unwrap(), config);
        if level > BEFORE_LEVELS {
            assert!(read(&bytes, level - 1).is_err(), "it is of a higher level than is said");
        }
        if level == LEVEL_PLACED {
            let start = &bytes[..bytes.len() - 3];
            let wrong = |end: &[u8]| read(&[start, end].concat(), LEVEL_PLACED).unwrap_err();
            assert!(wrong(&[2, 0, 0]).what().contains("out of range"));
            assert!(wrong(&[2, 2, 8]).is_unknown() && wrong(&[8]).is_unknown());
        }
    }
}

/// What levels 4, 6, 7, 10 and 15 brought: nobody begins it too early, and an older program does
/// not take it for something else.
#[test]
fn a_transaction_is_of_the_level_of_its_operations_and_an_older_program_says_so() {
    let find = |name: &str| samples::records().into_iter().find(|(it, _)| *it == name).unwrap().1;
    assert_eq!(record_bytes(&find("validated"))[0], BEFORE_LEVELS + 1);
    for (transaction, name, level) in [
        (samples::expecting(), "expect", LEVEL_EXPECTING),
        (samples::stamping(), "stamp", LEVEL_STAMPING),
        (samples::clearing(), "clear", LEVEL_CLEARING),
        (samples::uploading(), "uploaded", LEVEL_STAGING),
        (samples::listing(), "list", LEVEL_LISTING),
    ] {
        assert_eq!(level_of(&transaction), level);
        assert_eq!(written(&*transaction).0, level);
        assert_eq!(record_bytes(&find(&format!("validated-{name}")))[0], level + 1);
        let (envelopes, sample) = (samples::envelopes(), format!("submit-{name}"));
        let (_, envelope) = envelopes.iter().find(|(name, _)| **name == sample).unwrap();
        let error = encode(envelope, &mut Outgoing::speaking(level - 1)).unwrap_err();
        assert!(error.message().contains(&format!("feature level {level}")), "{error}");
        let mut older = Decoder::speaking(level - 1);
        older.feed(&frame_of(envelope));
        let Some(Frame::Unread(unread)) = older.frame().unwrap() else {
            panic!("it was understood")
        };
        assert_eq!((unread.level, unread.asked), (level, Some(Asked::Transaction(ID))));
    }
}

/// It is only told: who does not know of it gets the abort all the same.
#[test]
fn an_abort_reaches_a_program_of_before_without_the_operation_that_it_is_about() {
    let envelopes = samples::envelopes();
    let (_, envelope) = envelopes.iter().find(|(name, _)| *name == "abort").unwrap();
    let read = |level: u8| {
        let mut outgoing = Outgoing::speaking(level);
        encode(envelope, &mut outgoing).unwrap();
        let frame = outgoing.take_bytes();
        let Frame::Message(read) = decode_speaking(level, &frame).unwrap() else {
            panic!("it is understood")
        };
        let Body::Recovery(recovery::Message::Abort { abort, .. }) = read.body else {
            panic!("it is another message")
        };
        (frame[PREFIX_LEN + 1], abort)
    };
    let (level, whole) = read(LEVEL_EXPECTING);
    assert_eq!(level, LEVEL_EXPECTING);
    assert!(whole.operation.is_some());
    let (level, older) = read(LEVEL_PLACED);
    assert_eq!(level, LEVEL_FIRST);
    let mut outgoing = Outgoing::speaking(LEVEL_PLACED);
    encode(envelope, &mut outgoing).unwrap();
    assert_eq!(outgoing.take_bytes(), unhex(ABORT_OF_LEVEL_1), "as it was before");
    assert_eq!(older, Abort { operation: None, ..whole });
}

/// V2: what level 8 brought is only told. A program of before is told that somebody reads at any
/// moment from the oldest on, in the bytes that it always got.
#[test]
fn a_program_of_before_is_told_the_oldest_snapshot_and_tells_no_more() {
    let at = |clock| Timestamp { clock, ..Timestamp::ZERO };
    let usage = Usage::new(at(9), [at(5), at(7)]);
    let read = |level: u8| {
        let mut outgoing = Outgoing::speaking(level);
        let needed = Output::put(&usage, &mut outgoing);
        let bytes = outgoing.take_bytes();
        (bytes.clone(), Input::new(&bytes, None, 0, needed).all::<Usage>(0).unwrap())
    };
    assert_eq!(read(LEVEL_MOMENTS).1, usage);
    let (bytes, older) = read(LEVEL_SCANNING);
    assert_eq!(older, Usage::new(at(5), []));
    assert_eq!(bytes, [&timestamp_bytes(at(5))[..], &[0, 0]].concat(), "and an empty list");
}

/// A moment in the bytes of a message.
fn timestamp_bytes(at: Timestamp) -> Vec<u8> {
    let mut outgoing = Outgoing::new();
    Output::put(&at, &mut outgoing);
    outgoing.take_bytes().to_vec()
}

/// V2.
#[test]
fn usage_whose_moments_are_not_in_order_from_the_oldest_on_is_refused() {
    let at = |clock| timestamp_bytes(Timestamp { clock, ..Timestamp::ZERO });
    let read = |oldest: u64, list: u8, as_of: u64, moments: &[u64]| {
        let mut bytes = [&at(oldest)[..], &[0, list], &at(as_of), &[moments.len() as u8]].concat();
        moments.iter().for_each(|moment| bytes.extend(at(*moment)));
        Input::new(&Bytes::from(bytes), None, 0, LEVEL_MOMENTS).all::<Usage>(0).is_ok()
    };
    assert!(read(5, 0, 9, &[5, 7]) && read(9, 0, 9, &[]));
    let many: Vec<u64> = (5..70).collect();
    assert!(read(5, 0, 90, &many[..64]) && !read(5, 0, 90, &many));
    assert!(!read(5, 0, 9, &[5, 5]) && !read(5, 0, 9, &[5, 9]) && !read(5, 0, 9, &[6]));
    assert!(!read(4, 0, 9, &[5]) && !read(5, 0, 9, &[]) && !read(9, 1, 9, &[]));
}

/// A node that goes back to its release of before reads its log.
#[test]
fn an_abort_is_written_down_without_the_operation_that_it_is_about() {
    let operation = tyr_types::OperationId { blob: 0, operation: 2 };
    let blob = BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() };
    let abort = Abort::at(&blob, ErrorKind::Conflict, "it is not as expected");
    let plain = record_bytes(&Record::Aborted { id: ID, abort: abort.clone() });
    let told = Record::Aborted { id: ID, abort: abort.of_operation(operation) };
    assert_eq!(record_bytes(&told), plain);
    assert_eq!(plain[0], BEFORE_LEVELS + 1);
}

/// One value has one encoding: a keyspace that lost nothing says so with the byte of level 1.
#[test]
fn a_keyspace_of_level_2_has_lost_something() {
    let keyspace = samples::map_with_loss().keyspaces[&KeyspaceId(2)].clone();
    let whole = MapKeyspace { lost: [].into(), ..keyspace.clone() };
    let (lost, whole) = (written(&keyspace), written(&whole));
    assert_eq!((lost.0, whole.0), (LEVEL_ALONE, BEFORE_LEVELS));
    let state_at = whole.1.len() - 1;
    assert_eq!((whole.1[state_at], lost.1[state_at]), (0, 2));
    let read = |bytes: &[u8]| Input::new(bytes, None, 0, LEVEL_ALONE).all::<MapKeyspace>(0);
    assert_eq!(read(&lost.1).unwrap(), keyspace);
    let mut none = whole.1.to_vec();
    none[state_at] = 2;
    none.push(0);
    assert!(read(&none).unwrap_err().what().contains("nobody lost it"));
    none[state_at] = 4;
    assert!(read(&none).unwrap_err().is_unknown());
    let told = Input::new(&lost.1, None, 0, LEVEL_FIRST).all::<MapKeyspace>(0).unwrap_err();
    assert_eq!(told.what(), "something of a higher level than is said");
}

/// What its sender waits for, of each kind of message.
fn asked(body: &Body) -> (Option<Asked>, bool) {
    match body {
        Body::Commit(commit::Message::Forward { transaction, known: None, .. }) => {
            (Some(Asked::Transaction(transaction.id)), true)
        }
        Body::Submit { transaction, .. }
        | Body::Recovery(recovery::Message::Ask { transaction, .. }) => {
            (Some(Asked::Transaction(transaction.id)), false)
        }
        Body::Read(request) => (Some(Asked::Read(request.read)), false),
        Body::ListKeys(request) => (Some(Asked::Read(request.number)), false),
        Body::Scan(request) => (Some(Asked::Read(request.number)), false),
        Body::KeyLease(
            key_lease::Message::Ask { lease, .. } | key_lease::Message::AskGroup { lease, .. },
        ) => (Some(Asked::Read(*lease)), false),
        Body::KeyWatch(key_watch::Message::Ask { watch, .. }) => (Some(Asked::Read(*watch)), false),
        Body::KeyWatch(key_watch::Message::Notify { number, .. })
        | Body::Upload(
            upload::Message::Stage { number, .. } | upload::Message::Copy { number, .. },
        ) => (Some(Asked::Read(*number)), false),
        Body::Moment { read, .. } => (Some(Asked::Read(*read)), false),
        _ => (None, false),
    }
}

#[test]
fn of_every_message_of_a_later_level_the_sender_and_what_it_is_about_are_known() {
    let mut envelopes = samples::envelopes();
    // On its way, and not yet decided.
    let (_, mut forward) = envelopes.iter().find(|(name, _)| *name == "forward").cloned().unwrap();
    if let Body::Commit(commit::Message::Forward { known, .. }) = &mut forward.body {
        *known = None;
    }
    envelopes.push(("undecided", forward));
    for (name, envelope) in envelopes {
        let mut content = frame_of(&envelope)[PREFIX_LEN..].to_vec();
        content[1] = LEVEL + 3;
        content.extend_from_slice(b"and what that level adds");
        let unread = unread(&content);
        assert_eq!(unread.level, LEVEL + 3, "{name}");
        assert_eq!((unread.asked, unread.is_forwarded), asked(&envelope.body), "{name}");
        let from = (unread.epoch, unread.incarnation, unread.from);
        assert_eq!(from, (envelope.epoch, envelope.incarnation, envelope.from), "{name}");
    }
}

#[test]
fn a_later_level_may_add_to_the_head() {
    let mut content = content("submit");
    let len = usize::from(content[0]);
    content.splice(1 + len..1 + len, *b"more");
    content[0] += 4;
    assert!(message_of(&sealed(&content)).is_err(), "not in the level that is known");
    content[1] = LEVEL + 1;
    assert_eq!(unread(&content).asked, Some(Asked::Transaction(ID)));
}

#[test]
fn an_unknown_message_or_operation_is_not_understood_and_damage_is_damage() {
    let message = [5, LEVEL, 7, 1, 2, 0, 250];
    assert_eq!(unread(&message).what, "an unknown message");
    // One blob, keyspace 1, key "k", one operation, which nobody knows.
    let mut submit = vec![7, LEVEL, 7, 1, 2, 1, 1, 2];
    submit[0] = 6;
    submit.truncate(7);
    submit.push(2);
    submit.extend_from_slice(&ID.0.to_le_bytes());
    submit.extend_from_slice(&[1, 1, 1, b'k', 1, 99]);
    let unknown = unread(&submit);
    assert_eq!((unknown.what, unknown.level), ("an unknown operation", LEVEL));
    assert_eq!(unknown.asked, Some(Asked::Transaction(ID)));
    // The same with an unknown transform: apply, at 0, code 250.
    submit.pop();
    submit.extend_from_slice(&[5, 0, 250, 0]);
    assert_eq!(unread(&submit).what, "an unknown transform");
    let mut damaged = content("submit");
    damaged.pop();
    assert_eq!(decode(&sealed(&damaged)).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_stream_goes_on_after_what_is_not_understood() {
    let (_, next) =
        samples::envelopes().into_iter().find(|(name, _)| *name == "read-direct").unwrap();
    let mut decoder = Decoder::new();
    decoder.feed(&sealed(&[5, LEVEL, 7, 1, 2, 0, 250]));
    decoder.feed(&frame_of(&next));
    assert!(matches!(decoder.frame().unwrap(), Some(Frame::Unread(_))));
    assert_eq!(decoder.frame().unwrap(), Some(Frame::Message(next)));
    assert_eq!(decoder.frame().unwrap(), None);
}

#[test]
fn nothing_is_sent_to_one_that_does_not_speak_its_level() {
    let mut outgoing = Outgoing::speaking(BEFORE_LEVELS);
    let (_, envelope) = samples::envelopes().into_iter().next().unwrap();
    let error = encode(&envelope, &mut outgoing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("feature level 1"), "{error}");
    assert!(!outgoing.has_remaining());
}

#[test]
fn a_hello_of_a_later_level_is_understood_and_one_that_is_too_old_refused() {
    let long = |level: u8| {
        let mut bytes = Hello { level, ..hello() }.to_bytes().unwrap().to_vec();
        bytes.extend_from_slice(b"more");
        let len = (bytes.len() - 16) as u16;
        bytes[10..12].copy_from_slice(&len.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        Hello::take(&mut BytesMut::from(&bytes[..]))
    };
    let later = long(LEVEL_KNOWN + 1).unwrap().unwrap();
    assert_eq!(later, Hello { level: LEVEL_KNOWN + 1, ..hello() });
    assert!(long(LEVEL).is_err(), "this program knows what there is");
    let old = Hello { level: LEVEL_MIN - 1, ..hello() }.to_bytes().unwrap();
    let error = Hello::take(&mut BytesMut::from(&old[..])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("upgrade the peer"), "{error}");
}

/// As a later release might have them: a field and a variant that came with levels 3 and 4.
#[derive(Clone, Debug, PartialEq)]
struct Grown {
    first: u64,
    later: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Kinds {
    Old { grown: Grown, is_new: bool },
    New,
}

encoded_struct!(Grown, 1, { first } + 3 { later: 77 });
encoded_enum!(Kinds, "kind", {
    0 => Old { grown } + 2 { is_new: false },
    1 @ 4 => New,
});

fn written<T: Encoded>(value: &T) -> (u8, Bytes) {
    let mut outgoing = Outgoing::new();
    let level = Output::put(value, &mut outgoing);
    (level, outgoing.take_bytes())
}

#[test]
fn a_value_is_written_in_the_lowest_level_that_reads_it_and_missing_fields_have_a_value() {
    let old = Kinds::Old { grown: Grown { first: 5, later: 6 }, is_new: true };
    let (level, bytes) = written(&old);
    assert_eq!((level, &bytes[..]), (3, &[0, 5, 6, 1][..]));
    let read = |bytes: &[u8], level: u8| Input::new(bytes, None, 0, level).all::<Kinds>(0);
    assert_eq!(read(&bytes, 3).unwrap(), old);
    let before = Kinds::Old { grown: Grown { first: 5, later: 77 }, is_new: true };
    assert_eq!(read(&[0, 5, 1], 2).unwrap(), before);
    let first = Kinds::Old { grown: Grown { first: 5, later: 77 }, is_new: false };
    assert_eq!(
        read(&[0, 5], 1).unwrap_err().what(),
        "it is written in a higher level than it needs"
    );
    assert_eq!(read(&[0, 5], 0).unwrap(), first);
    let (level, bytes) = written(&Kinds::New);
    assert_eq!((level, &bytes[..]), (4, &[1][..]));
    assert_eq!(read(&bytes, 4).unwrap(), Kinds::New);
    assert!(read(&bytes, 3).is_err() && read(&[2], 4).unwrap_err().is_unknown());
}
