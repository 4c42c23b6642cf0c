//! Moments of everything: who is asked, where they are, and what is ended (R6, V5).

use super::*;
use crate::level::LEVEL_MOMENTS;
use crate::map::Change;

/// A question for a moment: to whom, its number, and where it is placed.
type Question = (NodeId, u64, Option<(u64, Timestamp)>);

impl Client {
    /// The questions for moments since the last look; everything else sent is forgotten.
    fn moments_asked(&mut self) -> Vec<Question> {
        let of_moment = |(to, body)| match body {
            Body::Moment { read, placed } => Some((to, read, placed)),
            _ => None,
        };
        std::mem::take(&mut self.sent).into_iter().filter_map(of_moment).collect()
    }

    /// A node tells its clock, or that it knows where the moment is.
    fn tell(&mut self, from: NodeId, read: u64, at: u64) {
        let part = ReadPart {
            read,
            range: ByteRange::NOTHING,
            at: Some(time(at)),
            version: Timestamp::ZERO,
            bytes: Bytes::new(),
            size: None,
            clock: time(at),
        };
        self.receive(from, Body::Part(part));
    }

    fn moment(&mut self) -> (Option<Timestamp>, Option<Began>) {
        match self.answer() {
            Answer::Moment { at, began } => (at, began),
            other => panic!("a moment is answered, not {other:?}"),
        }
    }
}

/// V5.
#[test]
fn every_authority_is_asked_for_its_clock_and_told_the_highest_of_them() {
    let mut client = Client::new();
    client.call(Call::Moment);
    let asked = client.moments_asked();
    let authorities: Vec<NodeId> = client.session.map.authorities().into_iter().collect();
    assert_eq!(asked.iter().map(|(to, ..)| *to).collect::<Vec<_>>(), authorities);
    assert!(asked.len() > 1 && asked.iter().all(|(_, _, placed)| placed.is_none()));
    let first = asked[0].1;
    for ((node, read, _), clock) in asked.iter().zip([50, 70, 60, 65, 66]) {
        assert_eq!(*read, first);
        client.tell(*node, *read, clock);
    }
    let placed = client.moments_asked();
    assert!(client.done.is_empty() && placed.len() == asked.len(), "all have to know of it");
    for (node, read, at) in &placed {
        assert_eq!(*at, Some((first, time(70))));
        client.tell(*node, first, 99); // The first answer once more, or late.
        client.tell(*node, *read, 69);
        client.tell(*node, *read, 70);
    }
    let (at, began) = client.moment();
    let began = began.unwrap();
    assert_eq!((at, &began.nodes[..]), (Some(time(70)), &authorities[..]));
    assert!(client.session.is_empty() && client.session.due_us().is_none());
    let read = began.read;
    client.call(Call::End { began: vec![began] });
    let ended: Vec<_> = authorities.iter().map(|node| (*node, read)).collect();
    assert_eq!(client.ended(), ended);
}

#[test]
fn who_is_silent_or_not_ready_is_asked_again_and_nobody_else() {
    let mut client = Client::new();
    client.call(Call::Moment);
    let asked = client.moments_asked();
    let [silent, not_here, rest @ ..] = &asked[..] else { panic!("{asked:?}") };
    rest.iter().for_each(|(node, read, _)| client.tell(*node, *read, 50));
    client.receive(not_here.0, Body::NotHere(Asked::Read(not_here.1)));
    client.pass(30_000);
    assert_eq!(client.moments_asked(), [*silent, *not_here]);
    client.tell(not_here.0, not_here.1, 51);
    client.pass(600_000);
    assert_eq!(client.moments_asked(), [*silent]);
    client.tell(silent.0, silent.1, 52);
    let placed = client.moments_asked();
    assert!(placed.iter().all(|(_, _, placed)| *placed == Some((silent.1, time(52)))));
}

/// V5: what was to be read there may have gone.
#[test]
fn when_a_node_has_forgotten_the_question_or_others_are_authorities_all_begins_anew() {
    let mut client = Client::new();
    client.call(Call::Moment);
    let asked = client.moments_asked();
    asked.iter().for_each(|(node, read, _)| client.tell(*node, *read, 50));
    let placed = client.moments_asked();
    client.receive(placed[0].0, Body::NotHere(Asked::Read(placed[0].1)));
    let ended = client.ended();
    assert_eq!(ended.len(), 2 * asked.len(), "of both questions");
    client.pass(30_000);
    let again = client.moments_asked();
    assert!(again.len() == asked.len() && again[0].1 > placed[0].1 && again[0].2.is_none());
    let next = client.session.map.changed(&Change::Down(again[0].0)).unwrap();
    client.receive(again[1].0, Body::NewerMap(Arc::new(next)));
    let anew = client.moments_asked();
    assert!(anew.iter().all(|(node, read, _)| *node != again[0].0 && *read > again[0].1));
}

#[test]
fn what_is_given_up_is_ended() {
    for _ in 0..3 {
        let mut client = Client::new();
        let call = client.call(Call::Moment);
        let asked = client.moments_asked();
        client.tell(asked[0].0, asked[0].1, 50);
        client.step(Event::Cancel { call });
        assert_eq!(client.ended().len(), asked.len());
        client.call(Call::Moment);
        let (node, read, _) = client.moments_asked()[0];
        client.receive(node, Body::Refused { read, abort: abort(ErrorKind::Unavailable) });
        assert_eq!(client.refusal().kind, ErrorKind::Unavailable);
        client.call(Call::Moment);
        client.pass(40_000_000);
        assert_eq!(client.refusal().kind, ErrorKind::Unavailable);
        assert!(client.session.is_empty() && client.session.due_us().is_none());
    }
}

#[test]
fn a_cluster_of_before_is_asked_by_blobs_and_one_without_keyspaces_not_at_all() {
    let old = ClusterMap { level: LEVEL_MOMENTS, ..map() };
    let mut client = Client::with(old, SessionConfig::default());
    client.call(Call::Moment);
    let asked = client.asked();
    assert!(asked.iter().all(|(_, request)| request.kind == Kind::Clock));
    assert_eq!(asked.len(), client.session.map.authorities().len());
    let mut client = Client::with(ClusterMap::of(3, &[]), SessionConfig::default());
    client.call(Call::Moment);
    assert_eq!(client.moment(), (None, None));
    assert!(client.sent.is_empty());
}
