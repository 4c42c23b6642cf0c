//! Reads, when nodes answer.

use super::*;

/// R1.
#[test]
fn reads_inside_one_chunk_go_to_one_replica_each_in_turn() {
    let mut client = Client::new();
    let mut asked = Vec::new();
    for _ in 0..3 {
        client.read("a", range(10, 20), Place::Newest);
        let (to, request) = client.asked_one();
        assert_eq!((request.kind, request.range), (Kind::Direct, range(10, 20)));
        assert!(!request.is_attributes);
        client.receive(to, part(&request, None, &[3; 10], None));
        let seen = client.seen();
        assert_eq!((&seen.bytes[..], seen.at, seen.size), (&[3; 10][..], None, None));
        asked.push(to);
    }
    asked.sort_unstable();
    assert_eq!(asked, client.replicas("a", 0));
}

/// R3.
#[test]
fn a_read_of_several_chunks_asks_a_version_manager_for_s_and_the_others_at_s() {
    let mut client = Client::new();
    client.read("a", range(CHUNK - 4, 2 * CHUNK + 4), Place::Newest);
    let (manager, opening) = client.asked_one();
    assert!(client.replicas("a", 0).contains(&manager));
    assert_eq!((opening.kind, opening.range), (Kind::First, range(CHUNK - 4, CHUNK)));
    client.receive(manager, part(&opening, Some(50), &[1; 4], Some(9 * CHUNK)));
    let asked = client.asked();
    assert_eq!(asked.len(), 2);
    for (to, request) in asked.iter().rev() {
        assert_eq!(request.kind, Kind::At(time(50)));
        assert!(client.replicas("a", request.range.start / CHUNK).contains(to));
        let fill = (request.range.start / CHUNK) as u8 + 1;
        let bytes = vec![fill; request.range.len() as usize];
        client.receive(*to, part(request, Some(50), &bytes, None));
    }
    let seen = client.seen();
    assert_eq!(seen.at, Some(time(50)));
    assert_eq!(seen.bytes, [vec![1; 4], vec![2; CHUNK as usize], vec![3; 4]].concat());
    assert_eq!(seen.began, None);
    assert_eq!(client.ended(), [(manager, opening.read)], "V1: a read by itself needs it no more");
}

/// R3: what does not exist is not asked for.
#[test]
fn chunks_beyond_the_end_are_not_asked_for() {
    let mut client = Client::new();
    client.read("a", ByteRange::ALL, Place::Newest);
    let (manager, opening) = client.asked_one();
    client.receive(manager, part(&opening, Some(50), &[1; CHUNK as usize], Some(CHUNK + 2)));
    let (to, request) = client.asked_one();
    assert_eq!(request.range, range(CHUNK, CHUNK + 2));
    client.receive(to, part(&request, Some(50), &[2; 2], None));
    let seen = client.seen();
    assert_eq!((seen.bytes.len() as u64, seen.size), (CHUNK + 2, Some(Some(CHUNK + 2))));
}

/// R3, R4, V1.
#[test]
fn a_transaction_reads_a_blob_at_the_s_of_its_first_read_until_it_ends() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::Transaction);
    let (manager, opening) = client.asked_one();
    assert_eq!((opening.kind, opening.range), (Kind::First, range(0, 4)));
    client.receive(manager, part(&opening, Some(50), &[1; 4], Some(3 * CHUNK)));
    let first = client.seen();
    assert_eq!((first.at, first.size), (Some(time(50)), Some(Some(3 * CHUNK))));
    assert!(client.ended().is_empty());

    client.read("a", range(2 * CHUNK, 2 * CHUNK + 4), Place::At(time(50)));
    let (to, request) = client.asked_one();
    assert_eq!((request.kind, request.is_attributes), (Kind::At(time(50)), false));
    client.receive(to, part(&request, Some(50), &[2; 4], None));
    let check = client.seen().check().unwrap();
    assert_eq!((check.at, check.range), (time(50), range(2 * CHUNK, 2 * CHUNK + 4)));
    assert!(!check.is_attributes);

    client.call(Call::End { began: vec![first.began.unwrap()] });
    assert_eq!(client.answer(), Answer::Ended);
    assert_eq!(client.ended(), [(manager, opening.read)]);
}

/// V1.
#[test]
fn whoever_may_keep_a_snapshot_is_told_that_it_ended() {
    let mut client = Client::new();
    let replicas = client.replicas("a", 0);
    client.read("a", range(0, 4), Place::Snapshot);
    let (first, opening) = client.asked_one();
    client.pass(300_000);
    let (second, again) = client.asked_one();
    assert_eq!(again, opening);
    client.receive(replicas[0], part(&opening, Some(50), &[1; 4], Some(4)));
    let began = client.seen().began.unwrap();
    client.sent.clear();
    client.call(Call::End { began: vec![began] });
    let mut told = vec![first, second, replicas[0]];
    told.sort_unstable();
    told.dedup();
    let ended: Vec<NodeId> = client.ended().into_iter().map(|(node, _)| node).collect();
    assert_eq!(ended, told);
}

/// R6.
#[test]
fn a_snapshot_begins_at_a_version_manager_and_reads_other_blobs_at_its_s() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::Snapshot);
    let (manager, opening) = client.asked_one();
    assert_eq!(opening.kind, Kind::First);
    client.receive(manager, part(&opening, Some(50), &[1; 4], Some(4)));
    let at = client.seen().at.unwrap();
    client.read("b", range(0, 4), Place::At(at));
    let (to, request) = client.asked_one();
    assert_eq!(request.kind, Kind::At(time(50)));
    client.receive(to, part(&request, Some(50), &[2; 4], Some(4)));
    assert_eq!(&client.seen().bytes[..], [2; 4]);
}

/// R6.
#[test]
fn a_read_of_many_blobs_asks_all_authorities_for_their_clocks_and_reads_at_the_highest() {
    let mut client = Client::new();
    let wants = ["a", "b", "c"].map(|key| Want::bytes(blob(key), range(0, 4)));
    client.call(Call::ReadMany { wants: wants.to_vec() });
    let asked = client.asked();
    assert_eq!(asked.len(), 3);
    for ((to, request), clock) in asked.iter().zip([60, 90, 70]) {
        assert_eq!(request.kind, Kind::Clock);
        assert_eq!(*to, client.session.map.holders(&request.blob, 0)[0], "the authority");
        assert!(client.asked().is_empty(), "not before all clocks are in");
        client.receive(*to, part(request, Some(clock), &[], None));
    }
    let asked = client.asked();
    assert_eq!(asked.len(), 3);
    for (to, request) in asked.iter().rev() {
        assert_eq!(request.kind, Kind::At(time(90)));
        client.receive(*to, part(request, Some(90), &request.blob.key.as_bytes().repeat(4), None));
    }
    let Answer::Many { at, seen } = client.answer() else { panic!("many are answered") };
    assert_eq!(at, time(90));
    let bytes: Vec<_> = seen.iter().map(|seen| &seen.bytes[..]).collect();
    assert_eq!(bytes, [b"aaaa", b"bbbb", b"cccc"]);
}

/// R7, C4.
#[test]
fn a_direct_read_that_comes_out_short_in_the_first_chunk_is_asked_with_the_size() {
    let mut client = Client::new();
    client.read("a", range(0, 100), Place::Newest);
    let (to, request) = client.asked_one();
    client.receive(to, part(&request, None, &[1; 60], None));
    let (to, request) = client.asked_one();
    assert_eq!((request.kind, request.is_attributes), (Kind::Direct, true));
    client.receive(to, part(&request, None, &[1; 60], Some(80)));
    let seen = client.seen();
    assert_eq!(seen.bytes, [vec![1; 60], vec![0; 20]].concat(), "a hole, then the end");
    assert!(seen.is_sized && seen.size == Some(Some(80)));

    client.read("a", range(0, 100), Place::Newest);
    let (_, request) = client.asked_one();
    assert!(request.is_attributes, "it is expected to be short");
}

/// R7.
#[test]
fn a_direct_read_that_comes_out_short_in_another_chunk_is_asked_whole() {
    let mut client = Client::new();
    client.read("a", range(CHUNK, CHUNK + 100), Place::Newest);
    let (to, request) = client.asked_one();
    assert_eq!(request.kind, Kind::Direct);
    client.receive(to, part(&request, None, &[1; 60], None));
    let (to, request) = client.asked_one();
    assert_eq!((request.kind, request.range), (Kind::First, range(0, 0)));
    client.receive(to, part(&request, Some(50), &[], Some(CHUNK + 70)));
    let (to, request) = client.asked_one();
    assert_eq!((request.kind, request.range), (Kind::At(time(50)), range(CHUNK, CHUNK + 70)));
    client.receive(to, part(&request, Some(50), &[2; 60], None));
    assert_eq!(client.seen().bytes, [vec![2; 60], vec![0; 10]].concat());
}

/// R7.
#[test]
fn a_read_at_s_that_comes_out_short_asks_a_version_manager_for_the_size_at_s() {
    let mut client = Client::new();
    client.read("a", range(CHUNK, CHUNK + 100), Place::At(time(50)));
    let (to, request) = client.asked_one();
    client.receive(to, part(&request, Some(50), &[1; 60], None));
    let (manager, request) = client.asked_one();
    assert!(client.replicas("a", 0).contains(&manager));
    assert_eq!((request.kind, request.range), (Kind::At(time(50)), range(0, 0)));
    assert!(request.is_attributes);
    client.receive(manager, part(&request, Some(50), &[], Some(CHUNK + 60)));
    let seen = client.seen();
    assert_eq!(seen.bytes.len(), 60);
    let check = seen.check().unwrap();
    assert_eq!((check.range, check.is_attributes), (range(CHUNK, CHUNK + 60), true), "C1");
}

#[test]
fn an_absent_blob_is_seen_as_absent_and_can_be_validated() {
    let mut client = Client::new();
    client.call(Call::Read { want: Want::stat(blob("a")), place: Place::Transaction });
    let (to, request) = client.asked_one();
    client.receive(to, part(&request, Some(50), &[], None));
    let seen = client.seen();
    assert!(seen.is_absent() && seen.bytes.is_empty());
    let check = seen.check().unwrap();
    assert!(check.is_attributes && check.range.is_empty());
}

#[test]
fn size_alone_is_asked_of_a_version_manager_directly() {
    let mut client = Client::new();
    client.call(Call::Read { want: Want::stat(blob("a")), place: Place::Newest });
    let (to, request) = client.asked_one();
    assert_eq!((request.kind, request.is_attributes), (Kind::Direct, true));
    assert!(client.replicas("a", 0).contains(&to));
    client.receive(to, part(&request, None, &[], Some(123)));
    assert_eq!(client.seen().size, Some(Some(123)));
}

#[test]
fn a_read_of_more_than_one_answer_may_hold_is_refused_when_there_is_that_much() {
    let mut client = Client::new();
    client.read("a", ByteRange::ALL, Place::Newest);
    let (manager, opening) = client.asked_one();
    client.receive(manager, part(&opening, Some(50), &[1; CHUNK as usize], Some(65 << 20)));
    assert_eq!(client.refusal().kind, ErrorKind::InvalidArgument);
    assert_eq!(client.ended(), [(manager, opening.read)]);
}

#[test]
fn a_long_read_has_only_so_many_questions_open() {
    let mut client = Client::new();
    let chunks = 100;
    client.read("a", range(0, chunks * CHUNK), Place::Newest);
    let (to, opening) = client.asked_one();
    client.receive(to, part(&opening, Some(50), &[0; CHUNK as usize], Some(chunks * CHUNK)));
    let mut open = client.asked();
    assert_eq!(open.len(), QUESTIONS_MAX);
    let mut answered = 0;
    while let Some((to, request)) = open.pop() {
        client.receive(to, part(&request, Some(50), &[9; CHUNK as usize], None));
        open.extend(client.asked());
        assert!(open.len() <= QUESTIONS_MAX);
        answered += 1;
    }
    assert_eq!(answered, chunks - 1);
    assert_eq!(client.seen().bytes.len() as u64, chunks * CHUNK);
}

#[test]
fn stretches_are_asked_of_a_chunk_at_s_and_bytes_that_tell_none_are_no_answer() {
    let mut client = Client::new();
    client.read("a", range(CHUNK, 2 * CHUNK), Place::Layout(time(50)));
    let (node, request) = client.asked_one();
    assert_eq!((request.kind, request.range), (Kind::Layout(time(50)), range(CHUNK, 2 * CHUNK)));
    client.receive(node, part(&request, Some(50), &[0xFF; 20], None));
    assert!(client.done.is_empty(), "not understood");
    client.receive(node, part(&request, Some(50), &[10, 20], None));
    let seen = client.seen();
    let written = crate::read::layout::decode(seen.want.range, &seen.bytes).unwrap();
    assert_eq!(written, [range(CHUNK + 10, CHUNK + 30)]);
    assert!(client.session.is_empty() && client.session.due_us().is_none());
}
