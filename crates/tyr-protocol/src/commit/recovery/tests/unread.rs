//! A node that does not understand a transaction, since its program is of an older release.

use super::*;

const LATER: u64 = 1;

/// The transaction that a message carries.
fn carried(mail: &Mail) -> Option<(u64, bool)> {
    match mail {
        Mail::Commit(commit::Message::Forward { transaction, .. }) => {
            Some((transaction.id.0 as u64, true))
        }
        Mail::Recovery(Message::Ask { transaction, .. }) => Some((transaction.id.0 as u64, false)),
        Mail::Commit(_) | Mail::Recovery(_) => None,
    }
}

impl Nodes {
    /// Delivers what is on its way; `older` understands nothing of the one transaction, and its
    /// answer reaches all others, of whom those care that have it.
    fn run_with_older(&mut self, older: u16) {
        let mut steps = 0;
        while !self.mail.is_empty() {
            steps += 1;
            assert!(steps < 1000, "it is sent for ever");
            let (to, mail) = self.mail.remove(0);
            match carried(&mail) {
                Some((LATER, is_forward)) if to.0 == older => {
                    let id = TransactionId(LATER.into());
                    if is_forward {
                        self.step(older, Event::Unread { id, level: 2 });
                    }
                    for other in (0..3).filter(|other| *other != older) {
                        self.step(other, Event::NotUnderstood { id });
                    }
                }
                Some(_) | None => self.deliver(to, mail),
            }
        }
    }

    fn is_over(&self) -> bool {
        self.nodes.iter().all(|(commit, _)| commit.is_empty())
    }
}

#[test]
fn what_a_node_of_the_chain_does_not_understand_is_aborted_everywhere_and_not_asked_about() {
    for older in [1, 2] {
        let mut nodes = Nodes::three();
        nodes.submit(writing(LATER));
        nodes.run_with_older(older);
        let [(LATER, Decision::Abort(abort))] = &nodes.replies[..] else {
            panic!("it was answered once: {:?}", nodes.replies)
        };
        assert_eq!(abort.kind, ErrorKind::Unavailable);
        assert!(abort.reason.contains("upgrade it"), "{}", abort.reason);
        assert!(nodes.is_over() && (0..3).all(|node| nodes.applied(node).is_empty()));
        // Of two ballots one may have come too late; it asks once more.
        for _ in 0..5 {
            nodes.wait(&[0, 1, 2]);
            nodes.run_with_older(older);
        }
        nodes.wait(&[0, 1, 2]);
        assert!(nodes.mail.is_empty(), "nobody asks any more: {:?}", nodes.mail);
        nodes.submit(writing(2));
        nodes.run_with_older(older);
        assert!((0..3).all(|node| nodes.applied(node) == [2]), "others go on");
    }
}

#[test]
fn who_has_it_finds_out_itself_when_who_should_does_not_understand_the_question() {
    let mut nodes = Nodes::three();
    nodes.submit(writing(LATER));
    nodes.run_losing(is_forward_to(2));
    // The head comes back with an older program and an empty disk.
    let map = Arc::clone(&nodes.map);
    nodes.nodes[0] = (Commit::clustered(NodeId(0)), Applied::default());
    nodes.step(0, Event::Install { map });
    for _ in 0..4 {
        nodes.wait(&[0, 1, 2]);
        nodes.run_with_older(0);
    }
    assert!(nodes.is_over(), "{}", nodes.nodes[1].0.brief());
    assert!((0..3).all(|node| nodes.applied(node).is_empty()));
}
