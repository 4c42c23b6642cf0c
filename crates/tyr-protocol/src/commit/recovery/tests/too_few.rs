//! Fewer replicas are up than their keyspace demands for a write: what has begun ends (F13).

use super::*;

/// Which of three nodes are lost after what they do not hear, so that one is left.
struct Lost {
    first: u16,
    second: u16,
    left: u16,
}

/// A transaction whose messages are lost where `is_lost` says, and then all nodes but one.
fn begun_before_two_are_lost(
    broken: Option<Rule>,
    is_lost: impl Fn(NodeId, &Mail) -> bool,
    lost: Lost,
) -> Nodes {
    let mut nodes = Nodes::three();
    nodes.nodes.iter_mut().for_each(|(commit, _)| commit.rules.broken = broken);
    nodes.submit(writing(1));
    nodes.run_losing(is_lost);
    nodes.lose(lost.first, &[lost.left]);
    nodes.mail.clear();
    nodes.lose(lost.second, &[lost.left]);
    nodes.run();
    for _ in 0..3 {
        nodes.wait(&[lost.left]);
        nodes.run();
    }
    nodes
}

const HEAD_IS_LEFT: Lost = Lost { first: 2, second: 1, left: 0 };
const MIDDLE_IS_LEFT: Lost = Lost { first: 2, second: 0, left: 1 };

#[test]
fn what_is_unknown_runs_again_and_is_answered_when_enough_are_up() {
    let mut nodes = begun_before_two_are_lost(None, is_forward_to(1), HEAD_IS_LEFT);
    assert!(nodes.applied(0) == [1] && nodes.nodes[0].0.is_empty());
    assert!(nodes.replies.is_empty(), "one has it where two are demanded: {:?}", nodes.replies);
    nodes.change(&back(1));
    nodes.change(&back(2));
    nodes.change(&Change::Settle([NodeId(1), NodeId(2)].into()));
    nodes.step(0, Event::Install { map: Arc::clone(&nodes.map) });
    nodes.retry(writing(1));
    nodes.committed_at(1);
}

/// All are killed at once, and one is there again before the others, which are declared down. That
/// it was decided was not durable there.
#[test]
fn what_was_answered_stands_though_who_is_left_has_forgotten_so() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(1));
    nodes.run();
    nodes.committed_at(1);
    nodes.replies.clear();
    nodes.lose_power();
    nodes.change(&Change::Down(NodeId(1)));
    nodes.change(&Change::Down(NodeId(2)));
    nodes.step(0, Event::Install { map: Arc::clone(&nodes.map) });
    nodes.run();
    assert_eq!(nodes.applied(0), [1]);
    assert!(nodes.replies.is_empty() && nodes.nodes[0].0.is_empty(), "{:?}", nodes.replies);
}

#[test]
fn without_f13_what_is_unknown_waits_while_too_few_are_up() {
    let nodes = begun_before_two_are_lost(Some(Rule::F13), is_forward_to(1), HEAD_IS_LEFT);
    assert!(nodes.replies.is_empty() && !nodes.nodes[0].0.is_empty());
    println!("without F13: noticed: it is in flight for ever");
}

#[test]
fn a_known_commit_stands_whoever_is_left() {
    let nodes = begun_before_two_are_lost(None, is_backward_to(0), MIDDLE_IS_LEFT);
    assert!(nodes.applied(1) == [1] && nodes.nodes[1].0.is_empty());
}
