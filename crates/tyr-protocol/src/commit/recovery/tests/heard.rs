//! A commit that was heard of and cannot be applied yet is written down (F14).

use super::*;

/// The tail decides, and applies. Of the others one is asked and passes it on as known, which is
/// lost; some ticks later the tail is lost, then power, with what these two wrote down meanwhile.
fn shown_by_one_that_is_lost(broken: Option<Rule>) -> (Timestamp, Vec<(u64, Timestamp)>) {
    let mut nodes = Nodes::three();
    nodes.nodes.iter_mut().for_each(|(commit, _)| commit.rules.broken = broken);
    nodes.submit(writing(1));
    nodes.run_losing(is_backward_to(1));
    let (_, shown) = nodes.nodes[2].1.0[0];
    nodes.wait(&[0, 1]);
    // The head finds out, and the middle enters the pass; the tail has it, and is not heard.
    nodes.run_losing(is_backward_to(1));
    for _ in 0..2 {
        nodes.elapsed_us += 50_000;
        for node in [0, 1] {
            nodes.step(node, Event::Tick { elapsed_us: nodes.elapsed_us });
        }
    }
    nodes.lose(2, &[]);
    nodes.restart(|written| !matches!(written, Written::Own(it) if it.is_decided()));
    nodes.change(&Change::Down(NodeId(2)));
    for node in [0, 1] {
        nodes.step(node, Event::Install { map: Arc::clone(&nodes.map) });
    }
    nodes.run();
    (shown, nodes.nodes[1].1.0.clone())
}

#[test]
fn what_was_shown_stays_where_it_was_when_those_who_heard_of_it_start_again() {
    let (shown, applied) = shown_by_one_that_is_lost(None);
    assert_eq!(applied, [(1, shown)]);
}

#[test]
fn without_f14_what_was_shown_is_run_again_at_another_place() {
    let (shown, applied) = shown_by_one_that_is_lost(Some(Rule::F14));
    assert!(applied.len() == 1 && applied[0].1 > shown, "{applied:?}, shown at {shown}");
    println!("without F14: noticed: {applied:?}, shown at {shown}");
}
