//! How an outcome is known for good: aborts last, nobody forgets alone, questions run nothing (F8
//! to F12). With each rule taken away the same run goes wrong.

use smallvec::smallvec;

use super::*;
use crate::chain::{Hop, Part, Piece};
use crate::commit::OUTCOME_WINDOW_US;
use crate::commit::OutcomeRetention;

fn without(rule: Option<Rule>) -> Nodes {
    let mut nodes = Nodes::three();
    nodes.nodes.iter_mut().for_each(|(commit, _)| commit.rules.broken = rule);
    nodes
}

fn is_abort(decision: &Decision, kind: ErrorKind) -> bool {
    match decision {
        Decision::Abort(abort) => abort.kind == kind,
        Decision::Commit(_) => false,
    }
}

fn is_abort_to(node: u16) -> impl Fn(NodeId, &Mail) -> bool {
    move |to, mail| to.0 == node && matches!(mail, Mail::Recovery(Message::Abort { .. }))
}

/// Something newer is applied at this node alone, so that a read is refused there.
fn make_newer(nodes: &mut Nodes, node: u16) {
    let at = Timestamp { clock: 2_000_000_000, ..nodes.nodes[0].0.clock() };
    nodes.nodes[usize::from(node)].1.0.push((99, at));
}

/// A ballot runs a transaction again, its head refuses it then, and is lost; one that validated it
/// before has not heard that it was withdrawn. Answers whether the client was told, and what node 1
/// has applied afterwards.
fn head_aborts_a_later_attempt_and_is_lost(broken: Option<Rule>) -> (bool, Vec<u64>) {
    let mut nodes = without(broken);
    nodes.submit(reading(1, Timestamp::ZERO));
    nodes.run_losing(is_forward_to(2));
    make_newer(&mut nodes, 0);
    nodes.wait(&[0]);
    let is_clear = |mail: &Mail| matches!(mail, Mail::Recovery(Message::Clear { .. }));
    nodes.run_losing(|to, mail| is_clear(mail) || is_abort_to(1)(to, mail));
    let is_told = nodes.replies.iter().any(|(_, it)| is_abort(it, ErrorKind::Conflict));
    nodes.lose(0, &[1, 2]);
    nodes.run();
    (is_told, nodes.applied(1))
}

/// F9.
#[test]
fn an_abort_of_a_later_attempt_is_answered_when_all_have_it() {
    let (is_told, _) = head_aborts_a_later_attempt_and_is_lost(None);
    assert!(!is_told, "node 1 does not have it");
    let mut nodes = without(None);
    nodes.submit(reading(1, Timestamp::ZERO));
    nodes.run_losing(is_forward_to(2));
    make_newer(&mut nodes, 0);
    nodes.wait(&[0]);
    nodes.run();
    assert!(is_abort(&nodes.replies[0].1, ErrorKind::Conflict), "{:?}", nodes.replies);
    nodes.lose(0, &[1, 2]);
    nodes.run();
    nodes.retry(reading(1, Timestamp::ZERO));
    nodes.run();
    assert!(is_abort(&nodes.replies[1].1, ErrorKind::Conflict), "{:?}", nodes.replies);
    assert!(nodes.applied(1).is_empty() && nodes.applied(2).is_empty());
}

/// F9.
#[test]
fn without_f9_an_abort_that_was_answered_commits_when_its_head_is_lost() {
    let (is_told, applied) = head_aborts_a_later_attempt_and_is_lost(Some(Rule::F9));
    assert!(is_told && applied == [1], "told: {is_told}, applied: {applied:?}");
    println!("without F9: noticed: what was answered as aborted is applied");
}

/// F9: where the chain has become one node there is nobody else to tell, but its log has the older
/// attempt as validated: without the abort it would run again after a restart.
#[test]
fn an_abort_of_a_later_attempt_is_in_the_log_where_only_its_head_is_left() {
    let mut nodes = without(None);
    let config =
        KeyspaceConfig { chunk_size: 4096, live_replicas_min: Some(1), ..Default::default() };
    nodes.map = Arc::new(ClusterMap::of(3, &[config]));
    nodes.submit(reading(1, Timestamp::ZERO));
    nodes.run_losing(is_forward_to(1));
    make_newer(&mut nodes, 0);
    nodes.lose(2, &[0]);
    nodes.mail.clear();
    nodes.lose(1, &[0]);
    nodes.run();
    assert!(is_abort(&nodes.replies[0].1, ErrorKind::Conflict), "{:?}", nodes.replies);
    let is_noted = |it: &Written| match it {
        Written::Own(Restored::Decided { id: TransactionId(1), decision }) => {
            is_abort(decision, ErrorKind::Conflict)
        }
        _ => false,
    };
    assert!(nodes.logs[0].iter().any(is_noted), "{:?}", nodes.logs[0]);
}

/// F9: a coordinator that was too late finds out what the newer one came to.
#[test]
fn an_abort_by_an_older_attempt_than_was_promised_to_is_not_taken() {
    let mut nodes = without(None);
    let attempt = |number| Attempt { epoch: nodes.map.epoch, number, coordinator: NodeId(2) };
    let (id, abort) = (TransactionId(1), crate::Abort::new(ErrorKind::Conflict, "it changed"));
    let (older, newer) = (attempt(1), attempt(2));
    nodes.step(0, Event::Recover(Message::Query { id, attempt: newer, begun: BEGUN }));
    nodes.mail.clear();
    nodes.step(0, Event::Recover(Message::Abort { id, attempt: older, abort: abort.clone() }));
    let behind = Message::Behind { id, attempt: older, promised: newer };
    assert!(matches!(&nodes.mail[..], [(NodeId(2), Mail::Recovery(it))] if *it == behind));
    nodes.mail.clear();
    nodes.step(0, Event::Recover(Message::Abort { id, attempt: newer, abort }));
    let aborted = Message::Aborted { id, attempt: newer, from: NodeId(0) };
    assert!(matches!(&nodes.mail[..], [(NodeId(2), Mail::Recovery(it))] if *it == aborted));
}

/// Two nodes, the first a recipient of what the second is the authority of. The tail has applied a
/// transaction and is done with it, and the head does not hear so for longer than outcomes are
/// remembered as a rule. Answers whether each has applied it in the end.
fn cut_off_for_long(broken: Option<Rule>) -> [bool; 2] {
    let mut nodes = without(broken);
    let piece = Piece {
        blob: blob(),
        range: ByteRange { start: 0, end: 4096 },
        is_attributes: false,
        is_written: true,
        authority: NodeId(1),
    };
    let hop = |node| Hop { node: NodeId(node), part: Part::Pieces(vec![piece.clone()]) };
    let chain = Chain::new(vec![hop(0), hop(1)], Ends::new()).unwrap();
    nodes.step(0, Event::Submit { transaction: writing(1).into(), chain, begun: BEGUN });
    nodes.run_losing(|to, _| to.0 == 0);
    assert!(nodes.applied(1) == [1] && nodes.nodes[1].0.is_empty(), "the tail is done with it");
    let seconds = 3 * OUTCOME_WINDOW_US / 1_000_000;
    for second in 1..seconds {
        nodes.elapsed_us = second * 1_000_000;
        for node in [0, 1] {
            let clock = Timestamp { clock: 1_000_000_000 + nodes.elapsed_us, ..BEGUN };
            nodes.nodes[usize::from(node)].0.observe(clock);
            nodes.step(node, Event::Tick { elapsed_us: nodes.elapsed_us });
        }
        nodes.mail.clear(); // They do not hear each other; both hear the monitors.
        let said = [0, 1].map(|node| {
            let commit = &nodes.nodes[usize::from(node)].0;
            let (clock_us, done_to_us) = (commit.clock().clock, commit.done_to_us());
            (NodeId(node), OutcomeRetention { clock_us, done_to_us, ..OutcomeRetention::UNKNOWN })
        });
        let of_all = OutcomeRetention::of_all(said);
        (0..2).for_each(|node| nodes.step(node, Event::Retain(of_all)));
    }
    nodes.elapsed_us += 20_000_000;
    for node in [0, 1] {
        nodes.step(node, Event::Tick { elapsed_us: nodes.elapsed_us });
    }
    nodes.run();
    [0, 1].map(|node| nodes.applied(node) == [1])
}

/// F10.
#[test]
fn an_outcome_is_remembered_for_a_node_that_was_cut_off_for_long() {
    assert_eq!(cut_off_for_long(None), [true, true]);
}

/// F10.
#[test]
fn without_f10_half_of_a_transaction_is_lost_after_a_long_cut() {
    assert_eq!(cut_off_for_long(Some(Rule::F10)), [false, true]);
    println!("without F10: noticed: the tail has applied it, the head never does");
}

/// F10: what is noted of a transaction stays as long as it may be in flight, also at a node whose
/// clock was behind when it was asked.
#[test]
fn a_promise_outlives_what_began_before_the_transaction() {
    let mut nodes = without(None);
    let begun = Timestamp { clock: BEGUN.clock + 5_000_000, ..BEGUN };
    nodes.nodes[0].0.observe(begun);
    let (transaction, chain) = (reading(1, Timestamp::ZERO), nodes.chain(&reading(1, BEGUN)));
    nodes.step(0, Event::Submit { transaction: transaction.into(), chain, begun });
    let late = std::cell::RefCell::new(Vec::new());
    let hold = |to: NodeId, mail: &Mail| {
        let is_held = is_forward_to(2)(to, mail);
        late.borrow_mut().extend(is_held.then(|| (to, mail.clone())));
        is_held
    };
    nodes.run_losing(hold);
    make_newer(&mut nodes, 0);
    nodes.wait(&[0]);
    nodes.run();
    assert!(is_abort(&nodes.replies[0].1, ErrorKind::Conflict), "{:?}", nodes.replies);
    // Something else that began just before it is in flight yet, so everyone is done up to there.
    let done_to_us = begun.clock - 1;
    nodes.step(2, Event::Retain(OutcomeRetention { done_to_us, ..OutcomeRetention::UNKNOWN }));
    nodes.elapsed_us += 1_000_000;
    nodes.step(2, Event::Tick { elapsed_us: nodes.elapsed_us });
    nodes.mail.extend(late.into_inner());
    nodes.run();
    assert!(nodes.applied(2).is_empty(), "its client was told that it is aborted");
}

/// F10: who is full of outcomes can say for whom they are remembered.
#[test]
fn a_node_knows_whom_all_others_remember_for() {
    let mut nodes = without(None);
    assert_eq!(nodes.nodes[0].0.slowest(), None);
    let slowest = Some(NodeId(2));
    nodes.step(0, Event::Retain(OutcomeRetention { slowest, ..OutcomeRetention::UNKNOWN }));
    assert_eq!(nodes.nodes[0].0.slowest(), slowest);
}

/// F11: all have forgotten a commit; while a question about it is being given up, a pass of it
/// arrives that the network held back. Whoever takes it in must become rid of it again, or nobody
/// forgets anything any more (F10).
#[test]
fn that_nobody_could_tell_does_not_stand_against_a_known_commit() {
    let mut nodes = without(None);
    nodes.submit(writing(1));
    nodes.run();
    let at = nodes.committed_at(1);
    let done_to_us = nodes.nodes.iter().map(|(commit, _)| commit.clock().clock).max().unwrap() + 1;
    nodes.elapsed_us += 1_000_000;
    for node in 0..3 {
        let of_all = OutcomeRetention { done_to_us, ..OutcomeRetention::UNKNOWN };
        nodes.step(node, Event::Retain(of_all));
        nodes.step(node, Event::Tick { elapsed_us: nodes.elapsed_us });
        let clock = done_to_us + OUTCOME_WINDOW_US;
        nodes.nodes[usize::from(node)].0.observe(Timestamp { clock, ..at });
    }
    let (transaction, chain) = (Arc::new(writing(1)), nodes.chain(&writing(1)));
    let ask = Message::Ask { transaction: transaction.clone(), chain: chain.clone(), begun: BEGUN };
    nodes.step(1, Event::Recover(ask));
    nodes.run_losing(is_abort_to(0));
    let (attempt, highest) = (Attempt { number: 7, ..Attempt::default() }, at);
    let attempt = Attempt { epoch: nodes.map.epoch, coordinator: NodeId(0), ..attempt };
    let (known, usages) = (Some(at), vec![]);
    let begun = BEGUN;
    let pass =
        commit::Message::Forward { transaction, chain, attempt, begun, highest, known, usages };
    nodes.step(0, Event::Receive(pass));
    nodes.run();
    for _ in 0..6 {
        nodes.wait(&[0, 1, 2]);
        nodes.run();
    }
    for (node, (commit, _)) in nodes.nodes.iter().enumerate() {
        assert!(commit.is_empty(), "node {node} holds it for ever");
    }
    assert!((0..3).all(|node| nodes.applied(node) == [1]));
}

/// Everyone is done, and has forgotten; then a message comes that the network held back.
fn late_message_after_all_have_forgotten(broken: Option<Rule>) -> Vec<u64> {
    let mut nodes = without(broken);
    nodes.submit(writing(1));
    let late = nodes.mail.clone();
    nodes.run();
    let done_to_us = nodes.nodes.iter().map(|(commit, _)| commit.clock().clock).max().unwrap() + 1;
    let of_all = OutcomeRetention { done_to_us, ..OutcomeRetention::UNKNOWN };
    nodes.elapsed_us += 1_000_000;
    for node in 0..3 {
        nodes.step(node, Event::Retain(of_all));
        nodes.step(node, Event::Tick { elapsed_us: nodes.elapsed_us });
    }
    nodes.mail.extend(late);
    nodes.run();
    for _ in 0..3 {
        nodes.wait(&[0, 1, 2]);
        nodes.run();
    }
    nodes.applied(1)
}

/// F11.
#[test]
fn what_all_have_forgotten_is_not_taken_in_again() {
    assert_eq!(late_message_after_all_have_forgotten(None), [1]);
}

/// F11.
#[test]
fn without_f11_a_message_that_comes_late_runs_a_transaction_twice() {
    assert_eq!(late_message_after_all_have_forgotten(Some(Rule::F11)), [1, 1]);
    println!("without F11: noticed: it is applied twice");
}

/// F4: two clients of one number, whose transactions meet at a node that is the head of neither.
#[test]
fn a_pass_of_another_transaction_of_the_same_id_is_refused_and_changes_nothing() {
    let mut nodes = without(None);
    nodes.submit(writing(1));
    nodes.run();
    let at = nodes.committed_at(1);
    for begun_us in [BEGUN.clock + 7, at.clock + 7] {
        let (transaction, chain) = (Arc::new(writing(1)), nodes.chain(&writing(1)));
        let pass = commit::Message::Forward {
            transaction,
            chain,
            attempt: Attempt { epoch: nodes.map.epoch, number: 3, coordinator: NodeId(2) },
            begun: Timestamp { clock: begun_us, ..BEGUN },
            highest: at,
            known: None,
            usages: vec![],
        };
        nodes.step(1, Event::Receive(pass));
        let is_refused = |(to, mail): (NodeId, Mail)| match mail {
            Mail::Commit(commit::Message::Backward { decision, .. }) => {
                to == NodeId(0) && is_abort(&decision, ErrorKind::TimedOut)
            }
            Mail::Commit(_) | Mail::Recovery(_) => false,
        };
        assert!(nodes.mail.drain(..).any(is_refused));
    }
    assert_eq!(nodes.committed_at(1), at);
    assert!((0..3).all(|node| nodes.applied(node) == [1]));
}

/// F11: a known commit passes where it was forgotten, for the sake of who is not done with it.
#[test]
fn a_known_commit_passes_nodes_that_have_forgotten_it_and_changes_nothing_there() {
    let mut nodes = without(None);
    nodes.submit(writing(1));
    nodes.run_losing(is_backward_to(1));
    let (_, at) = nodes.nodes[2].1.0[0];
    let done_to_us = nodes.nodes[2].0.clock().clock + 1;
    // As if node 2 had been declared down and had come back with a copy.
    nodes.nodes[2].0 = Commit::clustered(NodeId(2));
    let map = Arc::clone(&nodes.map);
    nodes.step(2, Event::Install { map });
    nodes.step(2, Event::Retain(OutcomeRetention { done_to_us, ..OutcomeRetention::UNKNOWN }));
    let (transaction, chain) = (Arc::new(writing(1)), nodes.chain(&writing(1)));
    let attempt = Attempt { epoch: nodes.map.epoch, number: 7, coordinator: NodeId(0) };
    let pass = commit::Message::Forward {
        transaction,
        chain,
        attempt,
        begun: BEGUN,
        highest: at,
        known: Some(at),
        usages: vec![],
    };
    nodes.step(0, Event::Receive(pass));
    nodes.run();
    assert_eq!(nodes.committed_at(1), at);
    assert!((0..3).all(|node| nodes.applied(node) == [1]));
}

/// The head alone refuses a transaction, tells its client, and is lost; then the client's question,
/// which it asked before, reaches the new head.
fn question_after_its_answer(broken: Option<Rule>) -> (Vec<(u64, Decision)>, Vec<u64>) {
    let mut nodes = without(broken);
    make_newer(&mut nodes, 0);
    nodes.submit(reading(1, Timestamp::ZERO));
    nodes.run();
    assert!(is_abort(&nodes.replies[0].1, ErrorKind::Conflict));
    nodes.lose(0, &[1, 2]);
    nodes.retry(reading(1, Timestamp::ZERO));
    nodes.run();
    let applied = nodes.applied(1);
    (nodes.replies, applied)
}

/// F12.
#[test]
fn a_question_about_what_nobody_has_runs_nothing() {
    let (replies, applied) = question_after_its_answer(None);
    assert!(is_abort(&replies[1].1, ErrorKind::Unavailable), "{replies:?}");
    assert!(applied.is_empty());
}

/// F12.
#[test]
fn without_f12_a_question_runs_what_was_answered_as_aborted() {
    let (replies, applied) = question_after_its_answer(Some(Rule::F12));
    assert!(matches!(replies[1].1, Decision::Commit(_)), "{replies:?}");
    assert_eq!(applied, [1]);
    println!("without F12: noticed: what was answered as aborted is applied");
}

/// F12: what was closed so stays so, when the first message comes after all.
#[test]
fn what_came_after_the_question_about_it_is_answered_as_the_question_was() {
    let mut nodes = without(None);
    nodes.retry(writing(1));
    nodes.run();
    nodes.submit(writing(1));
    nodes.run();
    assert_eq!(nodes.replies.len(), 2);
    assert!(nodes.replies.iter().all(|(_, it)| is_abort(it, ErrorKind::Unavailable)));
    assert!((0..3).all(|node| nodes.applied(node).is_empty()));
}

/// A head gives its transaction to another head under a new attempt; then its client asks the old
/// one. Answers both attempts.
fn attempts_of_a_reroute_and_a_question(broken: Option<Rule>) -> (Attempt, Attempt) {
    let mut nodes = without(broken);
    nodes.submit(writing(1));
    nodes.mail.clear();
    let id = TransactionId(1);
    let attempt = Attempt { epoch: nodes.map.epoch, number: 0, coordinator: NodeId(0) };
    let commit = &mut nodes.nodes[0].0;
    let misplaced = commit::Message::Misplaced { id, attempt, blob: 0, end: 4096 };
    commit.step(0, Event::Receive(misplaced), &Applied::default(), &mut Vec::new());
    let hop = |node| Hop { node: NodeId(node), part: Part::Pieces(vec![]) };
    let chain = Chain::new(vec![hop(1), hop(2)], smallvec![(0, 4096)]).unwrap();
    nodes.step(0, Event::Reroute { id, chain });
    nodes.retry(writing(1));
    let begun = nodes.mail.iter().find_map(|(_, mail)| match mail {
        Mail::Commit(commit::Message::Forward { attempt, .. }) => Some(*attempt),
        _ => None,
    });
    let asked = nodes.mail.iter().find_map(|(_, mail)| match mail {
        Mail::Recovery(Message::Query { attempt, .. }) => Some(*attempt),
        _ => None,
    });
    (begun.unwrap(), asked.unwrap())
}

/// F8.
#[test]
fn a_node_begins_each_attempt_once() {
    let (begun, asked) = attempts_of_a_reroute_and_a_question(None);
    assert!(asked > begun, "{begun:?}, {asked:?}");
}

/// F8.
#[test]
fn without_f8_a_node_begins_one_attempt_twice() {
    let (begun, asked) = attempts_of_a_reroute_and_a_question(Some(Rule::F8));
    assert_eq!(begun, asked);
    println!("without F8: noticed: a pass and a ballot have one number");
}

/// The tail decides a transaction, the head does not hear so, and another node, told of it by the
/// tail, comes before both in the chain. Its client asks there; which of the replies it gets
/// before and after the head has heard.
fn asked_of_one_that_was_told() -> (Nodes, Chain) {
    let mut nodes = Nodes::three();
    nodes.lose(0, &[1, 2]);
    nodes.submit(writing(1));
    nodes.run_losing(is_backward_to(1));
    assert_eq!((nodes.applied(1), nodes.applied(2)), (vec![], vec![1]));
    let (told, _) = nodes.nodes[2].0.remembered(0, usize::MAX);
    told.into_iter().for_each(|it| nodes.nodes[0].0.recall(it));
    let back = Change::Return { node: NodeId(0), incarnation: 9, has_disk: true, level: LEVEL };
    nodes.map = Arc::new(nodes.map.changed(&back).unwrap());
    nodes.step(0, Event::Install { map: Arc::clone(&nodes.map) });
    nodes.mail.clear();
    let chain = nodes.chain(&writing(1));
    assert_eq!(chain.hops()[0].node, NodeId(0));
    (nodes, chain)
}

/// F4: what is answered by hearsay would be lost with those who said so and heard it.
#[test]
fn a_commit_that_a_node_was_only_told_of_passes_its_chain_before_it_is_answered() {
    for is_again in [true, false] {
        let (mut nodes, chain) = asked_of_one_that_was_told();
        let (transaction, begun) = (Arc::new(writing(1)), BEGUN);
        if !is_again {
            let (transaction, chain) = (Arc::clone(&transaction), chain.clone());
            nodes.step(0, Event::Submit { transaction, chain, begun });
            assert!(nodes.replies.is_empty() && nodes.mail.is_empty(), "who is told nothing asks");
        }
        nodes.step(0, Event::Retry { transaction, chain, begun });
        assert!(nodes.replies.is_empty(), "node 1 has not heard of it: {:?}", nodes.replies);
        for node in [1, 2] {
            nodes.step(node, Event::Install { map: Arc::clone(&nodes.map) });
        }
        nodes.run();
        let at = nodes.committed_at(1);
        assert_eq!(nodes.nodes[1].1.0, [(1, at)]);
        assert_eq!(nodes.applied(2), [1]);
        assert!(nodes.applied(0).is_empty(), "what it was told of is in what it copies");
        nodes.replies.clear();
        nodes.retry(writing(1));
        assert_eq!(nodes.committed_at(1), at, "at once: all have heard");
    }
}

/// F10: everyone is done with what began at or below the floor.
#[test]
fn a_commit_that_a_node_was_only_told_of_is_answered_at_once_below_the_floor() {
    let (mut nodes, chain) = asked_of_one_that_was_told();
    let retention = OutcomeRetention { done_to_us: BEGUN.clock, ..OutcomeRetention::UNKNOWN };
    nodes.step(0, Event::Retain(retention));
    let transaction = Arc::new(writing(1));
    nodes.step(0, Event::Retry { transaction, chain, begun: BEGUN });
    nodes.committed_at(1);
}
