//! Reads, when nodes are silent, refuse, or know better.

use super::*;
use crate::level::LEVEL;
use crate::map::Change;

/// R1.
#[test]
fn when_a_replica_is_silent_another_is_asked_and_a_late_answer_counts() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::Newest);
    let (first, request) = client.asked_one();
    client.pass(300_000);
    let (second, again) = client.asked_one();
    assert_eq!(again, request, "the same read");
    assert_ne!(second, first);
    client.receive(first, part(&request, None, &[1; 4], None));
    assert_eq!(&client.seen().bytes[..], [1; 4]);
    let is_told = |(to, body): &(NodeId, Body)| {
        *to == second && *body == Body::CancelRead { read: request.read }
    };
    assert!(client.sent.iter().all(is_told) && client.sent.len() == 1);
    client.receive(second, part(&request, None, &[2; 4], None));
    assert!(client.done.is_empty(), "a doubled answer does nothing");
}

/// R1.
#[test]
fn a_replica_that_was_silent_is_not_asked_for_a_while() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::Newest);
    let (silent, _) = client.asked_one();
    client.pass(300_000);
    client.sent.clear();
    for _ in 0..6 {
        client.read("a", range(0, 4), Place::Newest);
        assert_ne!(client.asked_one().0, silent);
    }
}

#[test]
fn a_replica_that_refuses_is_passed_over_at_once() {
    let refusals: [fn(u64) -> Body; 3] = [
        |read| Body::Refused { read, abort: abort(ErrorKind::Unavailable) },
        |read| Body::Refused { read, abort: abort(ErrorKind::Corrupt) },
        |read| Body::NotHere(Asked::Read(read)),
    ];
    for refusal in refusals {
        let mut client = Client::new();
        client.read("a", range(0, 4), Place::Newest);
        let (first, request) = client.asked_one();
        let refusal = refusal(request.read);
        client.receive(first, refusal.clone());
        let (second, request) = client.asked_one();
        assert_ne!(second, first);
        client.receive(first, refusal);
        assert!(client.asked().is_empty(), "a doubled refusal does nothing");
        client.receive(second, part(&request, None, &[1; 4], None));
        client.seen();
    }
}

#[test]
fn when_all_replicas_refuse_they_are_asked_again_after_a_pause_until_the_deadline() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::Newest);
    let refuse = |client: &mut Client| {
        for _ in 0..3 {
            let (to, request) = client.asked_one();
            let abort = abort(ErrorKind::Unavailable);
            client.receive(to, Body::Refused { read: request.read, abort });
        }
        assert!(client.asked().is_empty());
    };
    refuse(&mut client);
    client.pass(600_000);
    client.asked_one();
    client.pass(31_000_000);
    let refusal = client.refusal();
    assert_eq!((refusal.kind, &*refusal.reason), (ErrorKind::Unavailable, "a test says so"));
    client.pass(31_000_000);
    assert!(client.session.is_empty() && client.session.due_us().is_none());
}

#[test]
fn a_refusal_that_no_other_replica_would_change_is_the_answer() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::Newest);
    let (to, request) = client.asked_one();
    let abort = abort(ErrorKind::PermissionDenied);
    client.receive(to, Body::Refused { read: request.read, abort: abort.clone() });
    assert_eq!(client.refusal(), abort);
}

/// V4.
#[test]
fn a_read_whose_versions_are_gone_everywhere_is_placed_anew_unless_the_caller_placed_it() {
    for (place, restarts) in [(Place::Newest, RESTARTS_MAX), (Place::At(time(50)), 0)] {
        let mut client = Client::new();
        client.session.sizes.note(&blob("a"), 3 * CHUNK);
        client.read("a", range(CHUNK, 3 * CHUNK), place);
        for _ in 0..=restarts {
            if place == Place::Newest {
                let (to, opening) = client.asked_one();
                client.receive(to, part(&opening, Some(50), &[], Some(3 * CHUNK)));
            }
            let asked = client.asked();
            assert_eq!(asked.len(), 2);
            let (mut to, request) = asked[0].clone();
            for refused in 0..3 {
                assert!(client.done.is_empty());
                let abort = abort(ErrorKind::SnapshotTooOld);
                client.receive(to, Body::Refused { read: request.read, abort });
                if refused < 2 {
                    to = client.asked_one().0;
                }
            }
        }
        assert_eq!(client.refusal().kind, ErrorKind::SnapshotTooOld);
    }
}

/// V4.
#[test]
fn a_read_whose_versions_are_gone_does_not_wait_for_who_holds_the_chunk_no_more() {
    let mut client = Client::new();
    client.session.sizes.note(&blob("a"), 3 * CHUNK);
    client.read("a", range(CHUNK, 2 * CHUNK), Place::At(time(50)));
    let (silent, request) = client.asked_one();
    let mut newer = later(&client.session.map, 1);
    newer.nodes.get_mut(&silent).unwrap().state = crate::map::NodeState::Down;
    client.receive_of(newer.epoch, NodeId(0), Body::NewerMap(Arc::new(newer)));
    for _ in client.replicas("a", 1) {
        assert!(client.done.is_empty());
        let (to, again) = client.asked_one();
        assert!(to != silent && again == request);
        let abort = abort(ErrorKind::SnapshotTooOld);
        client.receive(to, Body::Refused { read: request.read, abort });
    }
    assert_eq!(client.refusal().kind, ErrorKind::SnapshotTooOld);
}

#[test]
fn a_newer_epoch_in_an_answer_makes_it_ask_for_the_map_once() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::Newest);
    client.read("b", range(0, 4), Place::Newest);
    let newer = later(&client.session.map, 2);
    for (to, request) in client.asked() {
        client.receive_of(newer.epoch, to, part(&request, None, &[1; 4], None));
    }
    let fetches = client.sent.iter().filter(|(_, body)| *body == Body::FetchMap).count();
    assert_eq!(fetches, 1);
    client.receive_of(newer.epoch, NodeId(0), Body::NewerMap(Arc::new(newer.clone())));
    assert_eq!(client.session.map.epoch, newer.epoch);
    client.receive(NodeId(0), Body::NewerMap(Arc::new(map())));
    assert_eq!(client.session.map.epoch, newer.epoch, "an older map is late");
}

#[test]
fn a_read_goes_elsewhere_when_by_the_newer_map_the_node_does_not_hold_it() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::Newest);
    let (gone, request) = client.asked_one();
    let mut newer = later(&client.session.map, 1);
    client.receive_of(newer.epoch, gone, Body::NewerMap(Arc::new(newer.clone())));
    assert!(client.asked().is_empty(), "the node handles what it got by an older map");
    newer = later(&newer, 1);
    newer.nodes.get_mut(&gone).unwrap().state = crate::map::NodeState::Down;
    client.receive_of(newer.epoch, NodeId(0), Body::NewerMap(Arc::new(newer)));
    let (to, again) = client.asked_one();
    assert!(again == request && to != gone);
}

/// R1: a replica that is not clean hands the read to the authority.
#[test]
fn a_refusal_of_the_authority_counts_as_one_of_the_replica_that_handed_the_read_on() {
    let mut client = Client::new();
    let authority = client.replicas("a", 0)[0];
    let (mut to, mut request);
    loop {
        client.read("a", range(0, 4), Place::Newest);
        (to, request) = client.asked_one();
        if to != authority {
            break;
        }
    }
    client.receive(authority, Body::NotHere(Asked::Read(request.read)));
    assert_ne!(client.asked_one().0, to);
}

#[test]
fn answers_of_nobodys_questions_or_of_another_form_do_nothing() {
    let mut client = Client::new();
    client.read("a", range(0, 4), Place::At(time(50)));
    let (to, request) = client.asked_one();
    let other = ReadRequest { read: 99, ..request.clone() };
    client.receive(to, part(&other, Some(50), &[1; 4], None));
    client.receive(to, part(&request, Some(51), &[1; 4], None));
    client.receive(to, part(&request, None, &[1; 4], None));
    client.receive(to, part(&request, Some(50), &[1; 5], None));
    let other = ReadRequest { range: range(0, 5), ..request.clone() };
    client.receive(to, part(&other, Some(50), &[1; 4], None));
    let id = TransactionId::new(CLIENT, client.session.numbers.of(1));
    client.receive(to, Body::NotHere(Asked::Transaction(id)));
    client.reply(to, id, Decision::Commit(time(9)));
    client.receive(to, Body::NotHere(Asked::Read(99)));
    client.receive(to, Body::Refused { read: 99, abort: abort(ErrorKind::NotFound) });
    client.receive(to, Body::Read(request.clone()));
    assert!(client.done.is_empty() && client.asked().is_empty());
    client.receive(to, part(&request, Some(50), &[1; 4], None));
    client.seen();
}

#[test]
fn a_keyspace_that_three_nodes_do_not_know_does_not_exist() {
    let elsewhere = BlobName { keyspace: KeyspaceId(9), ..blob("a") };
    let want = Want::bytes(elsewhere.clone(), range(0, 4));
    let payload = Payload::Inline(Bytes::from_static(b"x"));
    let operations = vec![Operation::Write { offset: 0, payload }];
    let blobs = vec![BlobOperations { blob: elsewhere, operations }];
    for what in [Call::Read { want, place: Place::Newest }, Call::Commit { blobs, reads: vec![] }] {
        let mut client = Client::new();
        client.call(what);
        for _ in 0..3 {
            assert!(client.done.is_empty());
            assert!(client.has_sent(|body| *body == Body::FetchMap));
            client.sent.clear();
            client.receive(NodeId(1), Body::NewerMap(Arc::new(map())));
            client.pass(250_000);
        }
        assert_eq!(client.refusal().kind, ErrorKind::NotFound);
    }
}

#[test]
fn a_keyspace_that_was_just_created_is_found_in_the_newer_map() {
    let small = KeyspaceConfig { chunk_size: CHUNK, ..Default::default() };
    let mut client = Client::new();
    let want = Want::bytes(BlobName { keyspace: KeyspaceId(2), ..blob("a") }, range(0, 4));
    client.call(Call::Read { want, place: Place::Newest });
    let newer = later(&ClusterMap::of(5, &[small.clone(), small]), 1);
    client.receive_of(newer.epoch, NodeId(1), Body::NewerMap(Arc::new(newer)));
    client.asked_one();
}

#[test]
fn a_cancelled_read_is_withdrawn_and_never_answered() {
    let mut client = Client::new();
    let call = client.read("a", range(0, 2 * CHUNK), Place::Newest);
    let (to, request) = client.asked_one();
    client.step(Event::Cancel { call });
    let read = request.read;
    assert!(client.has_sent(|body| *body == Body::CancelRead { read }));
    assert!(client.has_sent(|body| *body == Body::SnapshotEnded { read }), "V1");
    client.receive(to, part(&request, Some(50), &[1; CHUNK as usize], Some(CHUNK)));
    client.pass(60_000_000);
    assert!(client.done.is_empty() && client.session.is_empty());
}

#[test]
fn more_calls_than_may_be_in_flight_are_refused() {
    let config = SessionConfig { in_flight_max: 2, ..Default::default() };
    let mut client = Client::with(map(), config);
    for _ in 0..2 {
        client.read("a", range(0, 4), Place::Newest);
    }
    client.asked();
    client.read("a", range(0, 4), Place::Newest);
    assert_eq!(client.refusal().kind, ErrorKind::Unavailable);
    assert!(client.asked().is_empty());
}

/// What has one replica, at a node that is down.
#[test]
fn what_only_a_node_has_that_is_down_is_refused_with_what_to_do() {
    let single = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..Default::default() };
    let map = ClusterMap::of(5, &[single]);
    let node = map.holders(&blob("a"), 0)[0];
    let down = map.changed(&Change::Down(node)).unwrap();
    let here = Change::Return { node, incarnation: 2, has_disk: true, level: LEVEL };
    let here = Arc::new(down.changed(&here).unwrap());
    for (is_read, is_back) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut client = Client::with(down.clone(), SessionConfig::default());
        client.session.clock.observe(time(5_000_000), client.now.monotonic_us);
        match is_read {
            true => client.read("a", range(0, 4), Place::Newest),
            false => client.commit(vec![append("a", 3)]),
        };
        assert!(client.done.is_empty() && client.has_sent(|body| *body == Body::FetchMap));
        if is_back {
            client.step(Event::Learn(Arc::clone(&here)));
            client.pass(1_000_000);
            let is_asked = |body: &Body| matches!(body, Body::Read(_) | Body::Submit { .. });
            assert!(client.has_sent(is_asked) && client.done.is_empty());
            continue;
        }
        client.pass(1_000_000);
        let abort = client.refusal();
        assert_eq!(abort.kind, ErrorKind::Unavailable);
        assert!(abort.reason.contains("tyr keyspace loss keyspace-1"), "{}", abort.reason);
        assert!(!client.has_sent(|body| *body != Body::FetchMap), "nothing else was sent");
    }
}

#[test]
fn who_waits_for_the_only_node_that_has_it_asks_others_for_the_map() {
    let single = KeyspaceConfig { chunk_size: CHUNK, replication: 1, ..Default::default() };
    let map = ClusterMap::of(5, &[single]);
    let node = map.holders(&blob("a"), 0)[0];
    let mut client = Client::with(map, SessionConfig::default());
    client.read("a", range(0, 4), Place::Newest);
    client.pass(1_000_000);
    assert!(client.sent.iter().any(|(to, body)| *to != node && *body == Body::FetchMap));
}

#[test]
fn many_that_wait_for_a_silent_node_ask_others_for_the_map_as_seldom_as_one() {
    let mut client = Client::with_time();
    (0..50).for_each(|_| _ = client.commit(vec![append("a", 10)]));
    let mut asked = 0;
    for _ in 0..400 {
        client.sent.clear();
        client.pass(5_000);
        if client.has_sent(|body| *body == Body::FetchMap) {
            asked += 1;
            client.receive(NodeId(1), Body::NewerMap(Arc::new(map())));
        }
    }
    assert!((1..=10).contains(&asked), "{asked} times in two seconds, each time answered");
}
