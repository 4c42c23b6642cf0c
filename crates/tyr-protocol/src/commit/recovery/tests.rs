//! Each rule of recovery by itself, on three nodes that hold everything.

mod heard;
mod nodes;
mod too_few;
mod turns;
mod unread;
mod untold;

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Epoch, ErrorKind, Key, KeyspaceConfig, KeyspaceId,
    NodeId, Number, NumberType, Operation, Payload, ReadCheck, Timestamp, Transaction,
    TransactionId,
};

use self::nodes::*;
use super::*;
use crate::chain::{Chain, Ends};
use crate::commit::{self, Attempt, Commit, Decision, Effect, Event, Remembered};
use crate::level::LEVEL;
use crate::map::{Change, ClusterMap};
use crate::rule::Rule;
use crate::view::View;

mod outcomes;

/// When all transactions began, by the cluster's clock.
const BEGUN: Timestamp = Timestamp { epoch: Epoch(0), clock: 1_000_000_000, node: 0 };

/// F6, F3: what is lost is asked about, and goes over the chain again.
#[test]
fn a_lost_forward_pass_is_run_again_and_takes_effect_once() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run_losing(is_forward_to(2));
    assert!(nodes.replies.is_empty());
    nodes.wait(&[0, 1]);
    nodes.run();
    assert_eq!(nodes.replies.len(), 1);
    assert!((0..3).all(|node| nodes.applied(node) == [1]));
    assert!(nodes.nodes.iter().all(|(commit, _)| commit.is_empty()));
}

/// F6, F3: a decision that someone knows of stands, at its timestamp.
#[test]
fn a_lost_way_back_is_found_from_those_who_know_the_decision() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run_losing(is_backward_to(1));
    let (_, at) = nodes.nodes[2].1.0[0];
    nodes.wait(&[0, 1, 2]);
    nodes.run();
    assert_eq!(nodes.committed_at(1), at);
    assert!((0..3_u16).all(|node| nodes.nodes[usize::from(node)].1.0 == [(1, at)]));
}

/// F1, F3: nobody alive knows of a decision, so new proposals are made, above all older ones.
#[test]
fn when_the_tail_fails_the_others_conclude_in_the_new_epoch() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run_losing(|to, mail| is_backward_to(1)(to, mail) || is_forward_to(2)(to, mail));
    nodes.lose(2, &[0, 1]);
    nodes.run();
    assert_eq!(nodes.committed_at(1).epoch, nodes.map.epoch);
    assert!((0..2).all(|node| nodes.applied(node) == [1]));
}

/// F2, F7: the head fails after the tail decided.
#[test]
fn when_the_head_fails_the_next_node_finds_the_decision() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run_losing(|to, mail| is_backward_to(1)(to, mail));
    let decided = nodes.nodes[2].1.0.clone();
    nodes.lose(0, &[2, 1]);
    nodes.run();
    assert_eq!(nodes.nodes[1].1.0, decided);
    nodes.retry(writing(1));
    nodes.run();
    assert_eq!(nodes.committed_at(1), decided[0].1);
}

/// F2: messages of the attempt before the fence do nothing.
#[test]
fn a_late_message_of_an_older_attempt_does_nothing() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    let late: Vec<_> = nodes.mail.drain(..).collect();
    nodes.wait(&[0]);
    nodes.run();
    let at = nodes.committed_at(1);
    for (to, mail) in late {
        nodes.deliver(to, mail);
    }
    nodes.run();
    assert!((0..3_u16).all(|node| nodes.nodes[usize::from(node)].1.0 == [(1, at)]));
}

/// F2: also a node that has never heard of the transaction keeps its promise.
#[test]
fn a_fence_holds_at_a_node_that_does_not_know_the_transaction() {
    let mut nodes = Nodes::three();
    let attempt = |number| Attempt { epoch: nodes.map.epoch, number, coordinator: NodeId(0) };
    let (old, new) = (attempt(0), attempt(1));
    let id = TransactionId(1);
    nodes.step(2, Event::Recover(Message::Query { id, attempt: new, begun: BEGUN }));
    nodes.mail.clear();
    let transaction = Arc::new(writing(1));
    let chain = nodes.chain(&transaction);
    let begun = Timestamp { epoch: nodes.map.epoch, clock: 1_000_000_000, node: 0 };
    let forward = |attempt| commit::Message::Forward {
        transaction: Arc::clone(&transaction),
        chain: chain.clone(),
        attempt,
        begun,
        highest: begun,
        known: None,
        usages: vec![],
    };
    nodes.step(2, Event::Receive(forward(old)));
    assert!(nodes.mail.is_empty(), "{:?}", nodes.mail);
    nodes.step(2, Event::Receive(forward(new)));
    assert!(!nodes.mail.is_empty(), "the attempt promised to goes on");
}

/// F2, C6: what was validated still counts after a fence, for it may be decided.
#[test]
fn what_comes_after_a_fenced_transaction_still_waits_for_it() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run_losing(is_backward_to(1));
    nodes.submit(writing(2));
    let attempt = Attempt { epoch: nodes.map.epoch, number: 9, coordinator: NodeId(2) };
    nodes.step(1, Event::Recover(Message::Query { id: TransactionId(1), attempt, begun: BEGUN }));
    nodes.run_losing(|_, mail| matches!(mail, Mail::Recovery(_)));
    assert_eq!(nodes.applied(1), [0; 0], "the first was decided by the tail, below the second");
    assert_eq!(nodes.applied(2), [1, 2]);
}

/// F3: a new attempt waits for nobody who waits for the old.
#[test]
fn what_nobody_decided_is_withdrawn_before_it_runs_again() {
    let mut nodes = Nodes::three();
    nodes.submit(reading(1, Timestamp::ZERO));
    nodes.run_losing(is_forward_to(1));
    nodes.submit(writing(2));
    nodes.run();
    assert!(nodes.replies.is_empty(), "the second waits for the read of the first (C2)");
    nodes.wait(&[0]);
    nodes.run();
    assert_eq!(nodes.replies.len(), 2);
    let first = nodes.replies.iter().find(|(id, _)| *id == 1).unwrap();
    assert!(
        matches!(&first.1, Decision::Commit(_) | Decision::Abort(_)),
        "one of them came first: {first:?}"
    );
    nodes.committed_at(2);
}

/// F6: what was withdrawn is said again to who asks, though what comes anew was looked at just now.
#[test]
fn a_lost_clear_is_said_again_to_who_asks() {
    let mut nodes = Nodes::three();
    let first = reading(1, Timestamp::ZERO);
    let chain = nodes.chain(&first);
    nodes.submit(first.clone());
    nodes.run_losing(is_forward_to(2));
    nodes.submit(writing(2));
    nodes.run();
    nodes.wait(&[0]);
    let is_clear = |mail: &Mail| matches!(mail, Mail::Recovery(Message::Clear { .. }));
    nodes.run_losing(|to, mail| to.0 == 1 && is_clear(mail));
    assert!(nodes.replies.is_empty(), "the second waits for the first at node 1, before it at 0");
    nodes.step(0, Event::Recover(Message::Ask { transaction: first.into(), chain, begun: BEGUN }));
    nodes.run();
    assert_eq!(nodes.replies.len(), 2);
}

/// F6: the head runs it again over a chain that is shorter; who was in the longer one is not asked
/// by the ballots over this, and has not promised to their attempts. Seed 1795609532835 of the
/// simulator, scenario real-moves.
#[test]
fn who_holds_it_over_another_chain_is_asked_though_it_was_looked_at_just_now() {
    let mut nodes = Nodes::three();
    let long = nodes.chain(&writing(1));
    nodes.submit(writing(1));
    nodes.run_losing(is_forward_to(2));
    let hops = long.hops().iter().filter(|hop| hop.node.0 != 1).cloned().collect();
    let short = Chain::new(hops, Ends::new()).unwrap();
    nodes.nodes[0] = (Commit::clustered(NodeId(0)), Applied::default());
    nodes.step(0, Event::Install { map: Arc::clone(&nodes.map) });
    let transaction: Arc<Transaction> = writing(1).into();
    let begun = BEGUN;
    let submit = Event::Submit { transaction: Arc::clone(&transaction), chain: short, begun };
    nodes.step(0, submit);
    nodes.mail.clear();
    let ask = Message::Ask { transaction, chain: long, begun };
    nodes.step(0, Event::Recover(ask));
    let is_query = |(to, mail): &(NodeId, Mail)| {
        to.0 == 1 && matches!(mail, Mail::Recovery(Message::Query { .. }))
    };
    assert!(nodes.mail.iter().any(is_query), "{:?}", nodes.mail);
}

/// F4.
#[test]
fn a_retry_is_answered_from_memory_and_takes_effect_once() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run();
    let at = nodes.committed_at(1);
    nodes.retry(writing(1));
    nodes.submit(writing(1));
    nodes.run();
    let answers: Vec<_> = nodes.replies.iter().map(|(_, decision)| decision.clone()).collect();
    assert_eq!(answers, vec![Decision::Commit(at); 3]);
    assert!((0..3).all(|node| nodes.applied(node) == [1]));
}

/// F4: an abort that was answered stays one, though what was in its way is gone.
#[test]
fn an_abort_that_was_answered_stays_one() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run();
    nodes.submit(reading(2, Timestamp::ZERO));
    nodes.run();
    let is_conflict = |decision: &Decision| match decision {
        Decision::Abort(abort) => abort.kind == ErrorKind::Conflict,
        Decision::Commit(_) => false,
    };
    assert!(is_conflict(&nodes.replies[1].1));
    nodes.retry(reading(2, nodes.committed_at(1)));
    nodes.run();
    assert!(is_conflict(&nodes.replies[2].1), "{:?}", nodes.replies);
}

/// F1.
#[test]
fn a_pass_over_a_chain_that_the_map_does_not_give_any_more_is_refused() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    let passes: Vec<_> = nodes.mail.drain(..).collect();
    nodes.lose(2, &[1]);
    for (to, mail) in passes {
        nodes.deliver(to, mail);
    }
    assert!(nodes.mail.is_empty(), "{:?}", nodes.mail);
    assert!(nodes.nodes[1].0.is_empty());
}

/// C5, F3: after a loss of power everywhere, validated to the tail is decided.
#[test]
fn what_was_acknowledged_survives_the_loss_of_power_everywhere() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run();
    let at = nodes.committed_at(1);
    nodes.lose_power();
    for node in 0..3 {
        nodes.step(node, Event::Install { map: Arc::clone(&nodes.map) });
    }
    nodes.run();
    assert!((0..3_u16).all(|node| nodes.nodes[usize::from(node)].1.0 == [(1, at)]));
}

/// F6, R2: a lost notice of stability is asked for.
#[test]
fn a_lost_notice_of_stability_is_asked_for() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run_losing(|_, mail| matches!(mail, Mail::Commit(commit::Message::Stable { .. })));
    assert!(!nodes.nodes[2].0.is_empty(), "it is not known to be stable");
    nodes.wait(&[1, 2]);
    nodes.run();
    assert!(nodes.nodes.iter().all(|(commit, _)| commit.is_empty()));
}

/// F6, R2: as a restart leaves it: much that is applied and not known to be stable.
#[test]
fn much_that_is_applied_does_not_wait_longer_to_be_asked_about() {
    let mut nodes = Nodes::three();
    for id in 1..=1000 {
        nodes.submit(writing(id));
        nodes.run_losing(|to, mail| {
            to.0 == 2 && matches!(mail, Mail::Commit(commit::Message::Stable { .. }))
        });
    }
    assert_eq!(nodes.nodes[2].0.len(), 1000);
    nodes.wait(&[2]);
    for _ in 0..1000_usize.div_ceil(BALLOTS_MAX) {
        nodes.step(2, Event::Tick { elapsed_us: nodes.elapsed_us });
        nodes.run();
    }
    assert!(nodes.nodes[2].0.is_empty());
}

/// Whether the others know what is stable once the authority that told nobody is gone.
fn is_known_stable(broken: Option<Rule>) -> bool {
    let mut nodes = Nodes::three();
    nodes.nodes.iter_mut().for_each(|(commit, _)| commit.rules.broken = broken);
    nodes.submit(writing(1));
    nodes.run_losing(|_, mail| matches!(mail, Mail::Commit(commit::Message::Stable { .. })));
    nodes.lose(0, &[1, 2]);
    nodes.run();
    nodes.nodes[1..].iter().all(|(commit, _)| commit.is_empty())
}

/// F5: the authority is gone; the next one knows that it is stable.
#[test]
fn a_new_authority_tells_the_others_what_is_stable() {
    assert!(is_known_stable(None));
}

/// F5.
#[test]
fn without_a_word_from_the_new_authority_others_hold_on_to_what_is_stable() {
    assert!(!is_known_stable(Some(Rule::F5)));
    println!("without F5: noticed: what is stable is not known to be, and nothing is on its way");
}

/// Messages about nobody, from any attempt, in any state, do nothing wrong.
#[test]
fn messages_about_unknown_transactions_do_nothing() {
    let mut nodes = Nodes::three();
    let id = TransactionId(77);
    let attempt = Attempt { epoch: nodes.map.epoch, number: 3, coordinator: NodeId(1) };
    let abort = crate::Abort::new(ErrorKind::Conflict, "it changed");
    let messages = [
        Message::Report { id, attempt, from: NodeId(1), known: Known::Nothing },
        Message::Clear { id, attempt },
        Message::Behind { id, attempt, promised: attempt },
        Message::Abort { id, attempt, abort },
    ];
    for message in messages {
        nodes.step(0, Event::Recover(message.clone()));
        nodes.step(0, Event::Recover(message));
    }
    nodes.step(0, Event::Noted { id });
    nodes.step(0, Event::Fenced { id, attempt, is_cleared: true });
    nodes.run();
    assert!(nodes.nodes.iter().all(|(commit, _)| commit.is_empty()));
    assert!(nodes.replies.is_empty());
}

/// F2: admission keeps a message of an epoch that is not here yet; the machine by itself does not.
#[test]
fn a_ballot_goes_beyond_a_promise_of_an_epoch_that_is_not_here_yet() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.mail.clear();
    let id = TransactionId(1);
    let epoch = Epoch(nodes.map.epoch.0 + 1);
    let promised = Attempt { epoch, number: 3, coordinator: NodeId(2) };
    nodes.step(0, Event::Recover(Message::Query { id, attempt: promised, begun: BEGUN }));
    nodes.mail.clear();
    nodes.wait(&[0]);
    let asked_in = nodes.mail.iter().map(|(_, mail)| match mail {
        Mail::Recovery(Message::Query { attempt, .. }) => *attempt,
        Mail::Recovery(_) | Mail::Commit(_) => panic!("a ballot asks: {mail:?}"),
    });
    let asked_in: Vec<_> = asked_in.collect();
    assert_eq!(asked_in, [Attempt { epoch, number: 4, coordinator: NodeId(0) }; 2]);
    nodes.run();
    assert_eq!(nodes.replies.len(), 1);
}

/// Nodes answer out of order, twice, and some only later.
#[test]
fn reports_that_come_twice_or_late_conclude_once() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run_losing(is_forward_to(1));
    nodes.wait(&[0]);
    let queries: Vec<_> = nodes.mail.drain(..).collect();
    for (to, mail) in queries.iter().chain(&queries).cloned() {
        nodes.deliver(to, mail);
    }
    let reports: Vec<_> = nodes.mail.drain(..).collect();
    assert_eq!(reports.len(), 4, "each answered twice");
    for (to, mail) in reports.iter().rev().chain(&reports).cloned() {
        nodes.deliver(to, mail);
    }
    nodes.run();
    assert_eq!(nodes.replies.len(), 1);
    let counts: BTreeMap<u16, usize> =
        (0..3).map(|node| (node, nodes.applied(node).len())).collect();
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}
