//! How many transactions a node asks about at a time.

use super::inquiries::Turn;
use super::*;
use crate::commit::record::LOOKS;

const PLACES: usize = 2;

/// Three nodes that ask about two at a time, and so many transactions that only some have validated
/// before what is lost is lost.
fn in_flight(count: u64, is_lost: impl Fn(NodeId, &Mail) -> bool) -> Nodes {
    let mut nodes = Nodes::three();
    for (commit, _) in &mut nodes.nodes {
        commit.recovery.as_mut().unwrap().inquiries = Inquiries::with_places(PLACES);
    }
    (1..=count).for_each(|id| nodes.submit(writing(id)));
    nodes.run_losing(is_lost);
    nodes
}

/// The transactions that this mail asks about, in order.
fn asked(mail: &[(NodeId, Mail)]) -> Vec<u64> {
    let about = |(_, mail): &(NodeId, Mail)| match mail {
        Mail::Recovery(Message::Query { id, .. }) => Some(id.0 as u64),
        Mail::Recovery(Message::Ask { transaction, .. }) => Some(transaction.id.0 as u64),
        Mail::Recovery(_) | Mail::Commit(_) => None,
    };
    mail.iter().filter_map(about).collect()
}

impl Nodes {
    fn inquiries(&self, node: u16) -> &Inquiries {
        &self.nodes[usize::from(node)].0.recovery.as_ref().unwrap().inquiries
    }

    fn is_asked(&self, node: u16, id: u64) -> Option<bool> {
        let inquiry = self.inquiries(node).get(TransactionId(id.into()))?;
        Some(inquiry.turn != Turn::PutOff)
    }

    /// A map that changes nothing, at these nodes.
    fn renew_map(&mut self, nodes: &[u16]) {
        self.map = Arc::new(self.map.at(Epoch(self.map.epoch.0 + 1)));
        for node in nodes {
            self.step(*node, Event::Install { map: Arc::clone(&self.map) });
        }
    }

    fn tick(&mut self, node: u16, elapsed_us: u64) {
        self.elapsed_us = elapsed_us;
        self.step(node, Event::Tick { elapsed_us });
    }
}

#[test]
fn a_new_map_asks_about_few_at_a_time_the_oldest_first_and_about_all_in_the_end() {
    let mut nodes = in_flight(40, is_forward_to(1));
    nodes.lose(2, &[0, 1]);
    assert_eq!(asked(&nodes.mail), [1, 2]);
    let mut first_asked = asked(&nodes.mail);
    while !nodes.mail.is_empty() {
        let (to, mail) = nodes.mail.remove(0);
        let old = nodes.mail.len();
        nodes.deliver(to, mail);
        first_asked.extend(asked(&nodes.mail[old..]));
        let is_asked = |id: &u64| nodes.is_asked(0, *id) == Some(true);
        assert!((1..=40).filter(is_asked).count() <= PLACES);
    }
    assert_eq!(first_asked, (1..=40).collect::<Vec<_>>());
    assert_eq!(nodes.replies.len(), 40);
    assert!((0..2).all(|node| nodes.applied(node).len() == 40 && nodes.applied(node)[0] == 1));
    assert!(nodes.nodes[..2].iter().all(|(commit, _)| commit.is_empty()));
}

/// F2, F8: as if it had been asked about, and nobody had heard it.
#[test]
fn what_is_put_off_hears_no_older_attempt_any_more() {
    let mut nodes = in_flight(0, |_, _| false);
    (1..=5).for_each(|id| nodes.submit(writing(id)));
    let mut late = Vec::new();
    while !nodes.mail.is_empty() {
        match nodes.mail.remove(0) {
            (NodeId(0), mail) => late.push(mail),
            (to, mail) => nodes.deliver(to, mail),
        }
    }
    nodes.lose(2, &[0, 1]);
    let asked: Vec<_> = nodes.mail.drain(..).collect();
    late.into_iter().for_each(|mail| nodes.deliver(NodeId(0), mail));
    assert!(nodes.applied(0).is_empty() && nodes.replies.is_empty());
    assert_eq!(nodes.is_asked(0, 5), Some(false));
    nodes.mail = asked;
    nodes.run();
    assert_eq!(nodes.nodes[0].1.0, nodes.nodes[1].1.0, "what was decided stands");
    assert_eq!(nodes.replies.len(), 5);
}

/// C1, M3: what waits to be validated has to be validated where its chunks are now.
#[test]
fn what_waits_to_be_validated_when_the_map_changes_is_not_validated_before_its_turn() {
    let mut nodes = in_flight(0, |_, _| false);
    nodes.submit(reading(1, Timestamp::ZERO));
    (2..=6).for_each(|id| nodes.submit(writing(id)));
    nodes.mail.clear();
    nodes.lose(2, &[0, 1]);
    let records = &nodes.nodes[0].0.records;
    let states: Vec<_> = records.iter().map(|(_, record)| record.state).collect();
    assert!(states.iter().all(|state| !state.is_waiting()), "{states:?}");
    nodes.mail.clear();
    for seconds in 1..40 {
        nodes.tick(0, seconds * 1_000_000);
        nodes.run();
    }
    assert_eq!(nodes.replies.len(), 6, "{}", nodes.nodes[0].0.brief());
}

#[test]
fn what_is_put_off_is_asked_about_under_the_map_that_comes_next() {
    let mut nodes = in_flight(9, is_forward_to(1));
    nodes.lose(2, &[0, 1]);
    nodes.renew_map(&[1, 0]);
    nodes.mail.retain(|(_, mail)| match mail {
        Mail::Recovery(Message::Query { attempt, .. }) => attempt.epoch == nodes.map.epoch,
        Mail::Recovery(_) | Mail::Commit(_) => true,
    });
    assert_eq!(asked(&nodes.mail), [1, 2]);
    nodes.run();
    assert_eq!(nodes.replies.len(), 9);
    assert!(nodes.nodes[..2].iter().all(|(commit, _)| commit.is_empty()));
}

#[test]
fn what_ends_otherwise_while_it_is_put_off_is_not_asked_about() {
    let mut nodes = in_flight(4, is_forward_to(1));
    nodes.lose(2, &[0, 1]);
    let held_back: Vec<_> = nodes.mail.drain(..).collect();
    let (transaction, epoch) = (Arc::new(writing(4)), nodes.map.epoch);
    let at = Timestamp { epoch, clock: BEGUN.clock + 500, node: 1 };
    let attempt = Attempt { epoch, number: 7, coordinator: NodeId(1) };
    let (chain, known) = (nodes.chain(&transaction), Some(at));
    let (begun, highest, usages) = (BEGUN, at, vec![]);
    let pass =
        commit::Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
    nodes.step(0, Event::Receive(pass));
    nodes.run();
    assert_eq!(nodes.is_asked(0, 4), Some(false));
    nodes.mail = held_back;
    nodes.run_losing(|_, mail| {
        let about = asked(&[(NodeId(0), mail.clone())]);
        assert!(!about.contains(&4), "it is known what became of it");
        false
    });
    assert_eq!(nodes.replies.len(), 4);
    assert_eq!(nodes.inquiries(0).iter().count(), 0);
}

#[test]
fn who_does_not_answer_holds_up_what_is_put_off_for_half_a_second_at_most() {
    let mut nodes = in_flight(6, is_forward_to(1));
    nodes.lose(2, &[0]);
    for expected in [[1, 2], [3, 4], [5, 6]] {
        assert_eq!(asked(&nodes.mail), expected);
        nodes.mail.clear();
        nodes.wait(&[0]);
    }
    assert_eq!(asked(&nodes.mail).len(), PLACES, "those that wait longest begin anew");
}

/// F6.
#[test]
fn what_is_held_up_is_asked_about_a_few_with_each_tick() {
    let mut nodes = in_flight(6, is_forward_to(2));
    nodes.tick(1, ASK_AFTER_US);
    assert_eq!(asked(&nodes.mail), [1, 2]);
    nodes.tick(1, ASK_AFTER_US + 50_000);
    nodes.tick(1, ASK_AFTER_US + 100_000);
    assert_eq!(asked(&nodes.mail), [1, 2, 3, 4, 5, 6]);
    nodes.tick(1, ASK_AFTER_US + 150_000);
    assert_eq!(asked(&nodes.mail).len(), 6);
    nodes.mail.clear();
    nodes.tick(0, ASK_AFTER_US + 150_000);
    nodes.tick(0, ASK_AFTER_US + 200_000);
    assert_eq!(asked(&nodes.mail), [1, 1, 2, 2], "of both others; there is no place for more");
    nodes.run();
    nodes.tick(0, ASK_AFTER_US + 250_000);
    assert_eq!(asked(&nodes.mail), [3, 3, 4, 4]);
    nodes.run();
    nodes.tick(0, ASK_AFTER_US + 300_000);
    nodes.run();
    assert_eq!(nodes.replies.len(), 6);
}

/// F10: who has yet to ask is not done.
#[test]
fn what_is_put_off_is_not_forgotten() {
    let mut nodes = in_flight(0, |_, _| false);
    nodes.tick(0, 0);
    for (id, ago_us) in [(1, 10), (2, 10), (3, 1_000)] {
        let begun = Timestamp { clock: BEGUN.clock - ago_us, ..BEGUN };
        let chain = nodes.chain(&writing(id));
        nodes.step(0, Event::Retry { transaction: writing(id).into(), chain, begun });
    }
    assert_eq!((nodes.is_asked(0, 2), nodes.is_asked(0, 3)), (Some(true), Some(false)));
    nodes.tick(0, 61_000_000);
    assert_eq!(nodes.nodes[0].0.done_to_us(), BEGUN.clock - 1_001);
    nodes.run();
    assert_eq!(nodes.replies.len(), 3, "each is told that nobody has it");
}

#[test]
fn a_tick_looks_once_at_what_is_in_flight_and_not_at_what_is_put_off() {
    let mut nodes = in_flight(40, is_forward_to(1));
    nodes.lose(2, &[0]);
    let (commit, applied) = &mut nodes.nodes[0];
    let (before, mut effects) = (LOOKS.get(), Vec::new());
    commit.step(0, Event::Tick { elapsed_us: 50_000 }, applied, &mut effects);
    let asked = 2 * PLACES as u64; // Are they overdue, are they late?
    assert_eq!(LOOKS.get() - before, 40 + asked);
}
