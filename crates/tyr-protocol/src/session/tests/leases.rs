//! Leases: when they are asked for, held, renewed and over (K1, K3).

use super::*;
use crate::key_lease::{Message, Wish};
use crate::level::LEVEL_MOMENTS;
use tyr_types::{LeaseMode, Leased, PlacedBy};

const SECOND_US: u64 = 1_000_000;
const DURATION_US: u64 = 10 * SECOND_US;

impl Client {
    fn lease(&mut self, key: &str, wait_us: Option<u64>) -> CallId {
        let (blob, mode, duration_us) = (blob(key), LeaseMode::Exclusive, DURATION_US);
        self.call(Call::Lease(LeaseCall { of: Leased::Key(blob), mode, duration_us, wait_us }))
    }

    /// What was said about leases since the last look; everything else sent is forgotten.
    fn said(&mut self) -> Vec<(NodeId, Message)> {
        let of_lease = |(to, body)| match body {
            Body::KeyLease(message) => Some((to, message)),
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_lease).collect()
    }

    /// The only lease asked for since the last look: of whom, its number, and when.
    fn asked_for(&mut self) -> (NodeId, u64, u64, Wish) {
        match &self.said()[..] {
            [(to, Message::Ask { lease, sent_us, wish, .. })] => (*to, *lease, *sent_us, *wish),
            said => panic!("one lease is asked for, not {said:?}"),
        }
    }

    fn hear(&mut self, from: NodeId, message: Message) {
        self.receive(from, Body::KeyLease(message));
    }

    /// A lease that is held, with who gave it.
    fn held(&mut self, key: &str) -> (NodeId, u64) {
        self.lease(key, None);
        let (to, lease, sent_us, _) = self.asked_for();
        self.hear(to, Message::Granted { lease, sent_us });
        let Answer::Leased { lease: given, .. } = self.answer() else { panic!("it was granted") };
        assert_eq!(given, lease);
        (to, lease)
    }
}

#[test]
fn a_lease_is_held_from_when_it_was_asked_for_and_renewed_with_all_others_of_the_node() {
    let mut client = Client::new();
    client.lease("a", None);
    let (authority, first, asked_us, wish) = client.asked_for();
    assert_eq!(wish, Wish::Try);
    assert_eq!(authority, client.replicas("a", 0)[0]);
    client.pass(SECOND_US / 2);
    client.hear(authority, Message::Granted { lease: first, sent_us: asked_us });
    let Answer::Leased { until_us, .. } = client.answer() else { panic!("it is held") };
    assert_eq!(until_us, asked_us + DURATION_US);
    let second = client.held("a").1;
    client.pass(2 * SECOND_US);
    let said = client.said();
    let [(to, Message::Renew { leases, sent_us })] = &said[..] else { panic!("{said:?}") };
    assert_eq!((*to, &leases[..]), (authority, &[first, second][..]));
    let (held, sent_us) = (leases.clone(), *sent_us);
    client.hear(authority, Message::Renewed { sent_us, held, unknown: vec![] });
    let until_us = sent_us + DURATION_US;
    let news = [first, second].map(|lease| (lease, LeaseNews::Held { until_us }));
    assert_eq!(std::mem::take(&mut client.news), news);
}

/// Found by the scenario `caches`, seed 135: of two renewals on their way the first was answered
/// when the second had been sent, and nobody looked when the lease was due by that.
#[test]
fn an_answer_to_the_renewal_before_the_last_is_gone_by() {
    let mut client = Client::new();
    let (blob, mode) = (blob("a"), LeaseMode::Shared);
    let (duration_us, wait_us) = (SECOND_US, None);
    client.call(Call::Lease(LeaseCall { of: Leased::Key(blob), mode, duration_us, wait_us }));
    let (to, lease, sent_us, _) = client.asked_for();
    client.hear(to, Message::Granted { lease, sent_us });
    client.pass(duration_us / 4);
    let [(_, Message::Renew { sent_us, .. })] = client.said()[..] else { panic!("it is due") };
    client.pass(duration_us / 4);
    assert_eq!(client.said().len(), 1, "that was not answered");
    client.pass(1_000);
    client.hear(to, Message::Renewed { sent_us, held: vec![lease], unknown: vec![] });
    client.pass(1);
    assert_eq!(client.said().len(), 1, "by that answer it is due already");
}

/// K2: there who writes waits for holders that are gone.
#[test]
fn in_a_guarded_keyspace_leases_last_three_seconds_at_most() {
    let mut client = Client::new();
    let mut guarded = later(&map(), 1);
    guarded.keyspaces.values_mut().for_each(|keyspace| keyspace.config.is_guarded = true);
    client.receive(NodeId(1), Body::NewerMap(Arc::new(guarded)));
    client.lease("a", None);
    let said = client.said();
    let [(_, Message::Ask { duration_us, .. })] = said[..] else { panic!("{said:?}") };
    assert_eq!(duration_us, 3 * SECOND_US);
}

/// K7.
#[test]
fn a_lease_of_a_group_is_asked_for_of_who_looks_after_its_keys_and_kept_where_that_moves() {
    let mut client = Client::new();
    let mut placed = later(&map(), 1);
    let by = PlacedBy::UpTo(b'/');
    placed.keyspaces.values_mut().for_each(|keyspace| keyspace.config.placed_by = by);
    client.receive(NodeId(1), Body::NewerMap(Arc::new(placed.clone())));
    let call = |client: &mut Client, name: &str| {
        let (of, mode, wait_us) = (Leased::Group(blob(name)), LeaseMode::Shared, None);
        client.call(Call::Lease(LeaseCall { of, mode, duration_us: DURATION_US, wait_us }))
    };
    call(&mut client, "a/");
    let said = client.said();
    let [(to, Message::AskGroup { lease, group, sent_us, .. })] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!((group, *to), (&blob("a/"), placed.holders(&blob("a/some"), 0)[0]));
    let (to, lease, sent_us) = (*to, *lease, *sent_us);
    client.hear(to, Message::Granted { lease, sent_us });
    assert!(matches!(client.answer(), Answer::Leased { .. }));
    client.pass(DURATION_US / 4);
    let (sent_us, held, unknown) = (client.now.monotonic_us, vec![], vec![lease]);
    client.said();
    client.hear(to, Message::Renewed { sent_us, held, unknown });
    let said = client.said();
    let is_kept = matches!(&said[..], [(_, Message::AskGroup { wish: Wish::Keep, .. })]);
    assert!(is_kept, "{said:?}");
    call(&mut client, "a");
    let Answer::Failed(abort) = client.answer() else { panic!("that names no group") };
    assert_eq!(abort.kind, ErrorKind::InvalidArgument);
}

/// K1: the holder knows by itself.
#[test]
fn what_nobody_renews_is_over_for_its_holder_after_its_duration() {
    let mut client = Client::new();
    let (_, lease) = client.held("a");
    client.pass(DURATION_US - 1);
    assert!(client.news.is_empty());
    let renewals = client.said().len();
    assert!((20..40).contains(&renewals), "it was asked for all the time: {renewals}");
    client.pass(1);
    assert_eq!(client.news, [(lease, LeaseNews::Lost)]);
    client.said();
    client.pass(DURATION_US);
    assert!(client.said().is_empty() && client.news.len() == 1, "nothing is left of it");
}

/// K1: an answer that comes late counts from its question.
#[test]
fn an_answer_to_an_old_question_holds_nothing_longer_than_that_question_asked_for() {
    let mut client = Client::new();
    client.lease("a", Some(60 * SECOND_US));
    let (to, lease, first_us, _) = client.asked_for();
    client.pass(DURATION_US);
    client.said();
    client.hear(to, Message::Granted { lease, sent_us: first_us });
    assert!(client.done.is_empty(), "that is over already");
    let now_us = client.now.monotonic_us;
    client.hear(to, Message::Granted { lease, sent_us: now_us + 1 });
    assert!(client.done.is_empty(), "nobody asked for that");
    client.hear(to, Message::Granted { lease, sent_us: now_us });
    assert!(matches!(client.answer(), Answer::Leased { .. }));
}

#[test]
fn who_waits_in_line_asks_again_and_gives_up_in_time_or_when_nobody_waits_any_more() {
    let mut client = Client::new();
    client.lease("a", Some(5 * SECOND_US));
    let (to, lease, _, wish) = client.asked_for();
    assert_eq!(wish, Wish::Wait);
    client.hear(to, Message::Waits { lease });
    client.pass(5 * SECOND_US - 1);
    assert_eq!(client.said().len(), 4);
    client.pass(1);
    let Answer::Failed(abort) = client.answer() else { panic!("it was not given") };
    assert_eq!(abort.kind, ErrorKind::Conflict);
    assert_eq!(client.said(), [(to, Message::GiveBack { lease })]);
    let call = client.lease("a", Some(u64::MAX));
    let (to, lease, ..) = client.asked_for();
    client.hear(to, Message::Waits { lease });
    client.pass(100 * SECOND_US);
    assert!(client.done.is_empty(), "for as long as it takes");
    client.said();
    client.step(Event::Cancel { call });
    assert_eq!(client.said(), [(to, Message::GiveBack { lease })]);
    client.hear(to, Message::Granted { lease, sent_us: client.now.monotonic_us });
    assert_eq!(client.said(), [(to, Message::GiveBack { lease })], "it crossed");
}

#[test]
fn a_holder_is_told_once_that_somebody_waits_and_gives_back_what_it_does_not_hold() {
    let mut client = Client::new();
    let (to, lease) = client.held("a");
    client.hear(to, Message::Recall { lease });
    client.hear(to, Message::Recall { lease });
    assert_eq!(std::mem::take(&mut client.news), [(lease, LeaseNews::Recalled)]);
    client.call(Call::GiveBack { lease });
    assert_eq!(client.answer(), Answer::Ended);
    assert_eq!(client.said(), [(to, Message::GiveBack { lease })]);
    client.hear(to, Message::Recall { lease });
    assert_eq!(client.said(), [(to, Message::GiveBack { lease })], "that was lost");
    client.pass(DURATION_US);
    assert!(client.said().is_empty() && client.news.is_empty());
}

/// K3.
#[test]
fn what_is_held_is_held_on_at_a_new_authority_or_lost() {
    let mut client = Client::new();
    let (first, lease) = client.held("a");
    let (_, refused) = client.held("a");
    let change = crate::map::Change::Down(first);
    let without = client.session.map.changed(&change).unwrap();
    client.receive(first, Body::NewerMap(Arc::new(without)));
    let second = client.replicas("a", 0)[0];
    assert_ne!(first, second);
    let said = client.said();
    let [(to, Message::Renew { leases, sent_us })] = &said[..] else { panic!("{said:?}") };
    assert_eq!(*to, second, "at once");
    let (unknown, sent_us) = (leases.clone(), *sent_us);
    client.hear(second, Message::Renewed { sent_us, held: vec![], unknown });
    let said = client.said();
    let keeps: Vec<_> = said
        .iter()
        .map(|said| match said {
            (to, Message::Ask { lease, wish: Wish::Keep, sent_us, .. }) => (*to, *lease, *sent_us),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        keeps.iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(),
        [(second, lease), (second, refused)]
    );
    client.news.clear();
    client.pass(1_000);
    client.hear(second, Message::Granted { lease, sent_us: keeps[0].2 });
    let abort = Abort::new(ErrorKind::Conflict, "it was over");
    client.receive(second, Body::Refused { read: refused, abort });
    assert_eq!(client.news, [(refused, LeaseNews::Lost)], "both were asked about at one moment");
    client.call(Call::GiveBack { lease });
    client.answer();
    assert!(client.said().contains(&(second, Message::GiveBack { lease })));
}

#[test]
fn a_node_that_gives_none_just_now_is_asked_again_soon_and_one_that_refuses_ends_it() {
    let mut client = Client::new();
    client.lease("a", None);
    let (to, lease, ..) = client.asked_for();
    client.receive(to, Body::NotHere(Asked::Read(lease)));
    client.pass(20_000);
    assert_eq!(client.asked_for().1, lease);
    let abort = Abort::at(&blob("a"), ErrorKind::Conflict, "another holds it");
    client.receive(to, Body::Refused { read: lease, abort: abort.clone() });
    assert_eq!(client.answer(), Answer::Failed(abort));
}

#[test]
fn a_lease_out_of_range_or_in_an_older_cluster_is_refused_in_words() {
    let mut client = Client::new();
    let (blob, mode, wait_us) = (blob("a"), LeaseMode::Shared, None);
    for duration_us in [0, DURATION_US + 1] {
        let blob = blob.clone();
        client.call(Call::Lease(LeaseCall { of: Leased::Key(blob), mode, duration_us, wait_us }));
        let Answer::Failed(abort) = client.answer() else { panic!("that is out of range") };
        assert!(abort.reason.contains("1 to 10 s"), "{}", abort.reason);
    }
    let older = later(&map(), 1).speaking(LEVEL_MOMENTS);
    client.receive(NodeId(1), Body::NewerMap(Arc::new(older)));
    client.lease("a", None);
    let Answer::Failed(abort) = client.answer() else { panic!("not all nodes have that") };
    assert_eq!(abort.kind, ErrorKind::Unavailable);
    assert!(abort.reason.contains("feature level 9"), "{}", abort.reason);
}
