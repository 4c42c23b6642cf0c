//! How many of what is stable a new authority tells the others of at a time (F5).

use super::*;

const PLACES: usize = 2;

/// Three nodes that tell of two at a time. So many transactions are applied at all of them, of
/// which the authority, which is gone, told nobody that they are stable; node 1 is the next, and
/// has just heard of it.
fn unknown_to_be_stable(count: u64) -> Nodes {
    let mut nodes = Nodes::three();
    for (commit, _) in &mut nodes.nodes {
        commit.recovery.as_mut().unwrap().inquiries = Inquiries::with_places(PLACES);
    }
    (1..=count).for_each(|id| nodes.submit(writing(id)));
    nodes.run_losing(|_, mail| matches!(mail, Mail::Commit(commit::Message::Stable { .. })));
    nodes.lose(0, &[2]);
    assert!(nodes.mail.is_empty(), "only the authority tells");
    nodes.step(1, Event::Install { map: Arc::clone(&nodes.map) });
    nodes
}

impl Nodes {
    /// What node 2 is told to be stable by the mail on its way, which is delivered.
    fn told(&mut self) -> Vec<u64> {
        let mail: Vec<_> = self.mail.drain(..).filter(|(to, _)| to.0 == 2).collect();
        let told = mail.iter().map(|(_, mail)| match mail {
            Mail::Commit(commit::Message::Stable { id, .. }) => id.0 as u64,
            Mail::Commit(_) | Mail::Recovery(_) => panic!("nobody asks: {mail:?}"),
        });
        let told = told.collect();
        mail.into_iter().for_each(|(to, mail)| self.deliver(to, mail));
        told
    }

    /// What node 2 is told with a tick of node 1, `since_us` after the last.
    fn told_with_tick(&mut self, since_us: u64) -> Vec<u64> {
        self.elapsed_us += since_us;
        self.step(1, Event::Tick { elapsed_us: self.elapsed_us });
        self.told()
    }
}

#[test]
fn a_new_authority_tells_of_few_at_once_and_with_each_tick_until_all_are_told() {
    let mut nodes = unknown_to_be_stable(7);
    assert_eq!(nodes.told(), [1, 2]);
    assert_eq!(nodes.told_with_tick(50_000), [3, 4]);
    // However long it has not got further: what will be told is not asked about (F6).
    assert_eq!(nodes.told_with_tick(10 * ASK_AFTER_US), [5, 6]);
    assert_eq!(nodes.told_with_tick(50_000), [7]);
    assert_eq!(nodes.told_with_tick(50_000), []);
    assert!(nodes.nodes[1..].iter().all(|(commit, _)| commit.is_empty()));
}

#[test]
fn what_was_not_told_when_the_next_map_comes_is_told_then() {
    let mut nodes = unknown_to_be_stable(5);
    assert_eq!(nodes.told(), [1, 2]);
    nodes.map = Arc::new(nodes.map.at(Epoch(nodes.map.epoch.0 + 1)));
    for node in 1..3 {
        nodes.step(node, Event::Install { map: Arc::clone(&nodes.map) });
    }
    assert_eq!(nodes.told(), [3, 4]);
    assert_eq!(nodes.told_with_tick(50_000), [5]);
    assert!(nodes.nodes[1..].iter().all(|(commit, _)| commit.is_empty()));
}

/// F6.
#[test]
fn who_asks_for_what_was_not_told_yet_is_answered_out_of_turn() {
    let mut nodes = unknown_to_be_stable(7);
    assert_eq!(nodes.told(), [1, 2]);
    let (by, from) = (NodeId(0), NodeId(2));
    let question = commit::Message::AskStable { id: TransactionId(6), by, from };
    nodes.step(1, Event::Receive(question));
    assert_eq!(nodes.told(), [6]);
    assert_eq!(nodes.told_with_tick(50_000), [3, 4]);
}
