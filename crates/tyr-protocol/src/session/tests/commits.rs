//! Commits, answered and not.

use super::limits::{ROOM_PAUSE_US, ROOM_RESERVE};
use super::*;
use crate::commit::Answered;
use crate::level::LEVEL_PLACED;
use tyr_types::{Existence, Outcome};

/// The sequence in it.
fn number_of(id: TransactionId) -> u64 {
    id.0 as u64
}

#[test]
fn the_first_commit_asks_for_the_time_and_then_goes_to_the_head() {
    let mut client = Client::new();
    client.commit(vec![append("a", 10)]);
    let (to, request) = client.asked_one();
    assert_eq!(request.kind, Kind::Clock);
    client.pass(10_000);
    client.receive(to, part(&request, Some(6_000_000), &[], None));
    let submitted = client.submitted_one();
    assert_eq!(submitted.to, client.replicas("a", 0)[0], "the head");
    assert_eq!(submitted.begun_us, 6_000_000);
    assert!(!submitted.is_retry && submitted.settled == number_of(submitted.id));
    client.reply(submitted.to, submitted.id, Decision::Commit(time(70)));
    let Answer::Committed { transaction, at, .. } = client.answer() else { panic!("it commits") };
    assert_eq!((transaction.id, at), (submitted.id, time(70)));
    assert_eq!(submitted.id, TransactionId::new(CLIENT, number_of(submitted.id)));

    client.commit(vec![append("a", 10)]);
    let second = client.submitted_one();
    assert_eq!(second.settled, number_of(second.id), "the time is known now");
}

#[test]
fn a_client_that_was_idle_asks_for_the_time_again() {
    let mut client = Client::with_time();
    client.pass(3_600_000_000);
    client.commit(vec![append("a", 10)]);
    let (to, request) = client.asked_one();
    assert_eq!(request.kind, Kind::Clock, "an hour by its own clock alone is not handed back");
    client.receive(to, part(&request, Some(6_000_000), &[], None));
    assert_eq!(client.submitted_one().begun_us, 6_000_000);
}

#[test]
fn what_a_client_takes_for_the_day_does_not_matter() {
    let submitted = |wall_us| {
        let mut client = Client::with_time();
        client.now.wall_us = wall_us;
        client.commit(vec![append("a", 10)]);
        let first = client.submitted_one();
        client.pass(1_300_000);
        (first.begun_us, client.submitted_one().begun_us)
    };
    let a_year_us = 31_557_600_000_000;
    assert_eq!(submitted(1_800_000_000_000_000), submitted(1_800_000_000_000_000 + a_year_us));
    assert_eq!(submitted(0), submitted(u64::MAX));
}

#[test]
fn an_append_carries_the_end_that_the_one_before_was_answered() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    let first = client.submitted_one();
    assert!(first.ends.is_empty());
    let outcome = Outcome::Offset(3 * CHUNK);
    let outcomes = [Answered { blob: 0, operation: 0, outcome }].into_iter().collect();
    let (decision, clock) = (Decision::Commit(time(70)), time(5_000_000));
    client.receive(first.to, Body::Reply { id: first.id, decision, outcomes, clock });
    client.commit(vec![append("b", 1), append("a", 1)]);
    assert_eq!(client.submitted_one().ends[..], [(1, 3 * CHUNK + 10)]);
}

fn expecting(key: &str) -> BlobOperations {
    let operations = vec![Operation::Expect { existence: Existence::Present }];
    BlobOperations { blob: blob(key), operations }
}

#[test]
fn what_is_expected_of_a_blob_is_not_asked_before_all_nodes_know_it() {
    let mut client = Client::with(map().speaking(LEVEL_PLACED), SessionConfig::default());
    client.session.clock.observe(time(5_000_000), client.now.monotonic_us);
    client.commit(vec![expecting("a")]);
    let Answer::Failed(abort) = client.answer() else { panic!("it is refused") };
    assert_eq!(abort.kind, ErrorKind::Unavailable);
    assert!(abort.reason.contains("needs feature level 4"), "{abort:?}");
    assert!(client.submitted().is_empty());
}

#[test]
fn a_blob_that_is_not_there_as_expected_is_no_keyspace_that_is_unknown() {
    let mut client = Client::with_time();
    client.commit(vec![expecting("a")]);
    let submitted = client.submitted_one();
    assert_eq!(submitted.to, client.replicas("a", 0)[0], "the authority");
    let abort = Abort::at(&blob("a"), ErrorKind::NotFound, "it is absent");
    client.reply(submitted.to, submitted.id, Decision::Abort(abort.clone()));
    let Answer::Aborted { abort: told, .. } = client.answer() else { panic!("it aborts") };
    assert_eq!(told, abort);
    assert!(client.sent.is_empty(), "no map is asked for");
}

/// F4.
#[test]
fn a_commit_without_answer_is_asked_for_again_by_the_same_name_and_time() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    let first = client.submitted_one();
    client.pass(1_300_000);
    let second = client.submitted_one();
    assert!(second.is_retry && !first.is_retry);
    assert_eq!((second.id, second.begun_us), (first.id, first.begun_us));
    client.pass(600_000);
    assert!(client.submitted().is_empty(), "not at once again");
    client.reply(first.to, first.id, Decision::Commit(time(70)));
    assert!(matches!(client.answer(), Answer::Committed { .. }));
    client.reply(first.to, first.id, Decision::Commit(time(70)));
    client.pass(30_000_000);
    assert!(client.done.is_empty() && client.submitted().is_empty());
}

/// F4.
#[test]
fn a_commit_whose_outcome_is_unknown_can_be_asked_for_by_the_same_name() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    let first = client.submitted_one();
    client.pass(31_000_000);
    client.sent.clear();
    let Answer::Aborted { transaction, abort } = client.answer() else { panic!("it times out") };
    assert_eq!(abort.kind, ErrorKind::TimedOut);
    client.reply(first.to, first.id, Decision::Commit(time(70)));
    assert!(client.done.is_empty(), "nobody waits");

    client.commit(vec![append("b", 10)]);
    let other = client.submitted_one();
    assert_eq!(
        other.settled,
        number_of(first.id),
        "the first is not settled while it may be asked for"
    );
    client.call(Call::Ask { transaction: transaction.clone() });
    let asked = client.submitted_one();
    assert!(asked.is_retry);
    assert_eq!((asked.id, asked.begun_us), (first.id, first.begun_us));
    client.reply(asked.to, asked.id, Decision::Commit(time(70)));
    assert!(matches!(client.answer(), Answer::Committed { .. }));

    client.call(Call::Ask { transaction });
    assert_eq!(client.refusal().kind, ErrorKind::TimedOut, "it was answered");
    assert!(client.submitted().is_empty());
    client.commit(vec![append("c", 10)]);
    assert_eq!(client.submitted_one().settled, number_of(other.id));
}

/// F4: who only refuses says `NotHere`; an abort is remembered, so it says what became of it.
#[test]
fn an_abort_is_the_answer_to_every_try() {
    let kinds = [ErrorKind::Unavailable, ErrorKind::Conflict, ErrorKind::AlreadyExists];
    for (kind, is_again) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let mut client = Client::with_time();
        client.commit(vec![append("a", 10)]);
        let first = client.submitted_one();
        if is_again {
            client.pass(1_300_000);
            client.submitted_one();
        }
        client.reply(first.to, first.id, Decision::Abort(abort(kind)));
        assert_eq!(client.refusal().kind, kind);
        assert_eq!(client.session.unsettled.settled(), Numbers::least(2));
    }
}

/// How long a call waits for room.
fn room_wait_us(client: &Client) -> u64 {
    let all_us = client.session.config.deadline_us;
    all_us - all_us / ROOM_RESERVE
}

/// What a node says that did not let a transaction in.
fn refusal(id: TransactionId) -> Body {
    Body::Reply {
        id,
        decision: Decision::Abort(abort(ErrorKind::Unavailable)),
        outcomes: Outcomes::new(),
        clock: Timestamp::ZERO,
    }
}

#[test]
fn what_is_more_than_a_full_node_takes_waits_a_moment_and_is_refused_without_being_sent() {
    let mut client = Client::with_time();
    client.session.config.deadline_us = 8_000_000; // Sooner than the limit is forgotten.
    (0..24).for_each(|_| _ = client.commit(vec![append("a", 10)]));
    let sent = client.submitted();
    assert_eq!(sent.len(), 24);
    for refused in &sent[12..] {
        client.receive(refused.to, refusal(refused.id));
    }
    let settled = client.session.unsettled.settled();
    client.commit(vec![append("a", 10)]);
    client.pass(1_000_000);
    assert!(client.done.is_empty() && client.submitted().is_empty(), "twelve are in flight");
    client.pass(room_wait_us(&client) - 1_000_000);
    assert_eq!(client.done.len(), 13);
    for (_, answer) in std::mem::take(&mut client.done) {
        let Answer::Aborted { abort: said, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(said, abort(ErrorKind::Unavailable), "in the node's words");
    }
    assert_eq!(client.session.unsettled.settled(), settled, "those in flight are not");
}

#[test]
fn what_waits_for_room_is_sent_once_and_in_turn_when_others_are_answered() {
    let mut client = Client::with_time();
    let crowd = [(); 24].map(|()| client.commit(vec![append("a", 10)]));
    let sent = client.submitted();
    for refused in &sent[12..] {
        client.receive(refused.to, refusal(refused.id));
    }
    crowd[12..].iter().for_each(|call| client.step(Event::Cancel { call: *call }));
    let calls = [(); 4].map(|()| client.commit(vec![append("a", 10)]));
    client.step(Event::Cancel { call: calls[0] });
    let mut newer = (**client.session.map()).clone();
    newer.epoch = map_without(&client, sent[0].to).epoch;
    client.step(Event::Learn(Arc::new(newer)));
    assert!(client.submitted().is_empty(), "twelve are in flight");

    let count_of = |id| (1..).find(|count| number_of(id) < Numbers::least(count + 1));
    let mut waiting = 26..;
    for answered in &sent[..3] {
        client.reply(answered.to, answered.id, Decision::Commit(time(70)));
        client.answer();
        assert_eq!(count_of(client.submitted_one().id), waiting.next(), "in turn");
    }
    client.reply(sent[3].to, sent[3].id, Decision::Commit(time(70)));
    client.answer();
    assert!(client.submitted().is_empty(), "nobody waits any more");
}

/// F4: who is at the door has only seen what came to the door.
#[test]
fn a_refusal_at_the_door_counts_only_of_what_was_sent_once() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    let first = client.submitted_one();
    client.pass(1_300_000);
    let second = client.submitted_one();
    client.receive(first.to, refusal(first.id));
    assert!(client.done.is_empty(), "what was sent again may be taken in");
    client.reply(second.to, second.id, Decision::Commit(time(70)));
    assert!(matches!(client.answer(), Answer::Committed { .. }));
}

/// F11: dated at the begin of time it would count as forgotten.
#[test]
fn a_refusal_at_the_door_says_no_clock_however_long_ago_one_was_said() {
    let mut client = Client::with_time();
    client.pass(15_000_000);
    client.commit(vec![append("a", 10)]);
    let refused = client.submitted_one();
    client.receive(refused.to, refusal(refused.id));
    client.commit(vec![append("a", 10)]);
    let next = client.submitted_one();
    assert!(next.id != refused.id && next.begun_us >= refused.begun_us, "{next:?}, {refused:?}");
}

#[test]
fn what_was_refused_at_the_door_is_sent_again_as_it_was_until_that_has_gone_on_for_long() {
    let mut client = Client::with_time();
    client.session.config.deadline_us = 10_000_000;
    client.commit(vec![append("a", 10)]);
    let first = client.submitted_one();
    client.receive(first.to, refusal(first.id));
    assert!(client.done.is_empty() && client.submitted().is_empty(), "it waits");
    client.pass(ROOM_PAUSE_US * 5 / 4);
    let second = client.submitted_one();
    assert_eq!(second, Submitted { settled: second.settled, ..first });
    client.reply(second.to, second.id, Decision::Commit(time(70)));
    assert!(matches!(client.answer(), Answer::Committed { .. }));
    assert_eq!(client.session.unsettled.settled(), Numbers::least(2), "it is over");

    client.commit(vec![append("a", 10)]);
    let (mut sent, mut waited_us) = (0, 0);
    while client.done.is_empty() {
        assert!(waited_us <= room_wait_us(&client), "no longer");
        for refused in client.submitted() {
            client.receive(refused.to, refusal(refused.id));
            sent += 1;
        }
        client.pass(ROOM_PAUSE_US);
        waited_us += ROOM_PAUSE_US;
    }
    assert_eq!(client.refusal(), abort(ErrorKind::Unavailable), "in the node's words");
    assert!((20..200).contains(&sent), "it was sent {sent} times");
}

#[test]
fn a_head_that_is_none_any_more_is_replaced_by_the_one_of_the_newer_map() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    let first = client.submitted_one();
    let newer = map_without(&client, first.to);
    let epoch = newer.epoch;
    client.receive_of(epoch, first.to, Body::NewerMap(Arc::new(newer)));
    let second = client.submitted_one();
    assert!(second.is_retry && second.id == first.id && second.to != first.to);
    assert_eq!(second.to, client.replicas("a", 0)[0]);
    let not_here = Body::NotHere(Asked::Transaction(first.id));
    client.receive(first.to, not_here);
    assert!(client.submitted().is_empty(), "it was sent on already");
}

#[test]
fn a_head_without_a_lease_is_tried_again_after_a_pause() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    let first = client.submitted_one();
    for _ in 0..3 {
        client.receive(first.to, Body::NotHere(Asked::Transaction(first.id)));
        assert!(client.submitted().is_empty());
    }
    client.pass(260_000);
    assert!(client.submitted_one().is_retry);
}

#[test]
fn a_transaction_outside_of_the_limits_is_refused_at_once() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 1), append("a", 1)]);
    assert_eq!(client.refusal().kind, ErrorKind::InvalidArgument);
    assert!(client.sent.is_empty());
}

#[test]
fn a_transaction_of_nothing_is_committed_at_once() {
    let mut client = Client::new();
    client.commit(vec![]);
    assert!(matches!(client.answer(), Answer::Committed { .. }));
    assert!(client.sent.is_empty());
}

#[test]
fn a_commit_that_was_cancelled_stays_unsettled_once_it_was_sent() {
    let mut client = Client::with_time();
    let call = client.commit(vec![append("a", 10)]);
    let sequence = number_of(client.submitted_one().id);
    client.step(Event::Cancel { call });
    assert_eq!(client.session.unsettled.settled(), sequence);
    client.pass(REMEMBERED_US);
    assert!(client.session.unsettled.settled() > sequence);
    assert!(client.done.is_empty());

    let mut client = Client::new();
    let call = client.commit(vec![append("a", 10)]);
    client.step(Event::Cancel { call });
    assert_eq!(client.session.unsettled.settled(), Numbers::least(2), "it waited for the time");
    assert!(client.has_sent(|body| matches!(body, Body::CancelRead { .. })));
}

#[test]
fn without_a_live_replica_a_commit_that_was_never_sent_changed_nothing() {
    let mut down = map();
    down.nodes.values_mut().for_each(|node| node.state = crate::map::NodeState::Down);
    let mut client = Client::with(down, SessionConfig::default());
    client.commit(vec![append("a", 10)]);
    client.pass(31_000_000);
    assert_eq!(client.refusal().kind, ErrorKind::Unavailable);
    assert_eq!(client.session.unsettled.settled(), Numbers::least(2));
}

/// A newer map in which this node is down.
fn map_without(client: &Client, node: NodeId) -> ClusterMap {
    let mut newer = later(&client.session.map, 1);
    newer.nodes.get_mut(&node).unwrap().state = crate::map::NodeState::Down;
    newer
}

#[test]
fn while_a_head_is_silent_others_are_asked_for_the_map() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    let head = client.submitted_one().to;
    client.pass(1_300_000);
    let fetched = |(to, body): &(NodeId, Body)| (*body == Body::FetchMap).then_some(*to);
    let asked: Vec<NodeId> = client.sent.iter().filter_map(fetched).collect();
    assert!(asked.len() == 1 && asked[0] != head);
    let mut newer = later(&client.session.map, 1);
    newer.nodes.get_mut(&head).unwrap().state = crate::map::NodeState::Down;
    client.submitted();
    client.receive_of(newer.epoch, asked[0], Body::NewerMap(Arc::new(newer)));
    let again = client.submitted_one();
    assert!(again.is_retry && again.to != head);
}

#[test]
fn nothing_new_is_done_in_a_keyspace_that_was_dropped() {
    let mut client = Client::with_time();
    let mut newer = later(&client.session.map, 1);
    newer.keyspaces.get_mut(&KeyspaceId(1)).unwrap().is_dropped = true;
    client.step(Event::Learn(Arc::new(map())));
    client.read("a", range(0, 4), Place::Newest);
    assert_eq!(client.asked().len(), 1, "an older map changes nothing");
    client.step(Event::Learn(Arc::new(newer)));
    client.commit(vec![append("a", 10)]);
    assert_eq!(client.refusal().kind, ErrorKind::NotFound);
    client.read("a", range(0, 4), Place::Newest);
    assert_eq!(client.refusal().kind, ErrorKind::NotFound);
    assert!(client.submitted().is_empty());
}

#[test]
fn what_the_cluster_does_not_speak_yet_is_refused_by_name_and_not_sent() {
    let mut older = map();
    older.level = 0;
    older.nodes.get_mut(&NodeId(1)).unwrap().level = 0;
    let mut client = Client::with(older, SessionConfig::default());
    client.commit(vec![append("a", 10)]);
    let abort = client.refusal();
    assert_eq!(abort.kind, ErrorKind::Unavailable);
    assert!(abort.reason.contains("node 1 is of an older release"), "{}", abort.reason);
    assert!(client.has_sent(|body| *body == Body::FetchMap), "there may be a newer map");
    assert!(client.submitted().is_empty());
    let newer = later(&map(), 1);
    client.step(Event::Learn(Arc::new(newer)));
    client.commit(vec![append("a", 10)]);
    assert!(client.done.is_empty(), "now it is begun");
}

#[test]
fn what_a_head_does_not_understand_fails_in_words_unless_it_was_sent_before() {
    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    let sent = client.submitted_one();
    let id = sent.id;
    let body = Body::NotUnderstood { asked: Asked::Transaction(id), level: 1 };
    client.receive(sent.to, body.clone());
    let Answer::Aborted { abort, .. } = client.answer() else { panic!("it is over") };
    assert_eq!(abort.kind, ErrorKind::Unavailable);
    assert!(abort.reason.contains("does not understand this"), "{}", abort.reason);

    let mut client = Client::with_time();
    client.commit(vec![append("a", 10)]);
    client.submitted_one();
    client.pass(1_300_000);
    let again = client.submitted_one();
    let asked = Asked::Transaction(again.id);
    client.receive(again.to, Body::NotUnderstood { asked, level: 1 });
    assert!(client.done.is_empty(), "another may have taken it in");
}

/// F4: a machine was copied. What one of the two is answered does nothing at the other.
#[test]
fn of_two_copies_of_a_session_neither_takes_the_others_answers_for_its_own() {
    let [mut one, mut other] = [1, 2].map(|us| {
        let mut client = Client::with_time();
        client.pass(1_000);
        client.pass(us);
        client
    });
    one.commit(vec![append("a", 10)]);
    other.commit(vec![append("b", 10)]);
    let (ours, theirs) = (one.submitted_one(), other.submitted_one());
    assert_ne!(ours.id, theirs.id, "nodes do not take the one for the other");
    one.reply(theirs.to, theirs.id, Decision::Commit(time(7_000_000)));
    assert!(one.done.is_empty());
    one.reply(ours.to, ours.id, Decision::Commit(time(7_000_001)));
    assert!(matches!(one.answer(), Answer::Committed { at, .. } if at == time(7_000_001)));
    one.read("a", range(0, 4), Place::Newest);
    other.read("b", range(0, 4), Place::Newest);
    let ((to, ours), (_, theirs)) = (one.asked_one(), other.asked_one());
    one.receive(to, part(&theirs, Some(50), &[2; 4], None));
    assert!(one.done.is_empty());
    one.receive(to, part(&ours, Some(50), &[1; 4], None));
    assert_eq!(one.seen().bytes, vec![1; 4]);
}
