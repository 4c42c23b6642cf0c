//! A node that comes back, beside the authority of all that it has (D5): what they say to each
//! other, and what is copied then.

use tyr_types::{ByteRange, Bytes, KeptName, NodeId};

use super::checkpoints::{NODE, at, first_map};
use super::difference::{AUTHORITY, chunk, chunks, returned, write_since};
use super::shelf::{CHUNK, Shelf};
use super::stand::Stand;
use crate::level::LEVEL_SUMMARIZING;
use crate::map::{Change, ClusterMap};
use crate::member::{ChunkName, Effect, Event, Member, MemberConfig, Store};
use crate::message::{Address, Body};
use crate::movement::{ChunkCopy, ChunkVersion, Message};
use crate::rule::Rule;

/// Whom the node that comes back asks: it has these chunks, each of this version.
fn authority(map: &ClusterMap, has: &[(u8, u64)], list_page: usize) -> Stand {
    let config = MemberConfig { list_page, ..MemberConfig::default() };
    let member = Member::new(AUTHORITY, map.incarnation(AUTHORITY).unwrap_or(1), config);
    let mut stand = Stand { member, shelf: Shelf::new(AUTHORITY), now_us: 1_000_000, asked: 0 };
    stand.learn(map);
    stand.lease();
    for (number, clock) in has {
        let version = ChunkVersion {
            version: at(*clock),
            bytes: Bytes::from_static(&[1; 32]),
            size: Some(Some(32)),
            size_version: at(*clock),
        };
        let range = ByteRange { start: 0, end: CHUNK };
        let copy = ChunkCopy::new(at(*clock), range, true, vec![version]);
        stand.shelf.await_base(&chunk(*number));
        stand.shelf.install(&chunk(*number), &copy);
    }
    stand
}

fn movement(effects: &[Effect], whom: NodeId) -> Vec<Message> {
    let of = |effect: &Effect| match effect {
        Effect::Send { to: Address::Node(to), envelope } if *to == whom => match &envelope.body {
            Body::Movement(message) => Some(message.clone()),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

fn copied(effects: &[Effect]) -> Vec<ChunkName> {
    let of = |effect: &Effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.body {
            Body::Read(request) if request.is_copy => Some((request.blob.clone(), 0)),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

/// The authority says something to the node, which goes on until it waits for others.
fn told(node: &mut Stand, map: &ClusterMap, message: Message) -> Vec<Effect> {
    let mut effects = node.receive(map, Address::Node(AUTHORITY), Body::Movement(message));
    if effects.iter().any(|effect| matches!(effect, Effect::Yield)) {
        effects.extend(node.step(Event::Continue));
    }
    effects
}

/// Lets both speak about lists until nothing is left to be said: which questions were asked, and
/// what is copied.
fn exchange(
    node: &mut Stand,
    authority: &mut Stand,
    map: &ClusterMap,
) -> (Vec<&'static str>, Vec<ChunkName>) {
    let (mut asked, mut copies) = (Vec::new(), Vec::new());
    node.now_us += 400_000;
    let mut effects = node.step(Event::Tick);
    loop {
        copies.extend(copied(&effects));
        let mut answers = Vec::new();
        for question in movement(&effects, AUTHORITY) {
            match question {
                Message::Summarize { .. } => asked.push("summary"),
                Message::ListSince { .. } => asked.push("list"),
                Message::List { .. } => asked.push("all"),
                _ => continue,
            }
            let said = authority.receive(map, Address::Node(NODE), Body::Movement(question));
            answers.extend(movement(&said, NODE));
        }
        if answers.is_empty() {
            copies.sort();
            return (asked, copies);
        }
        let tell = |it| told(node, map, it);
        effects = answers.into_iter().flat_map(tell).collect();
    }
}

/// The node has chunk 1 of version 12, 2 of 14, 4 of 15, and is complete up to below 16.
fn exchanged(
    map: &ClusterMap,
    broken: Option<Rule>,
    has: &[(u8, u64)],
    list_page: usize,
) -> (Vec<&'static str>, Vec<ChunkName>) {
    let (mut node, map, _) = returned(map, broken);
    let mut authority = authority(&map, has, list_page);
    exchange(&mut node, &mut authority, &map)
}

/// Both sides walk over their names at the same time.
#[test]
fn the_next_stretch_is_asked_for_before_what_is_here_is_looked_at() {
    for (version_of_1, is_same) in [(12, true), (11, false)] {
        let (mut node, map, _) = returned(&first_map(3), None);
        let mut authority = authority(&map, &[(1, version_of_1), (2, 14), (4, 15)], 1024);
        let mut answer = |question: &Message| {
            let question = Body::Movement(question.clone());
            movement(&authority.receive(&map, Address::Node(NODE), question), NODE).remove(0)
        };
        node.now_us += 400_000;
        let question = movement(&node.step(Event::Tick), AUTHORITY).remove(0);
        // As if more might follow.
        let last = chunks(&[1, 2, 4]).pop();
        let mut summary = answer(&question);
        let Message::Summarized { next, since, .. } = &mut summary else { panic!("{summary:?}") };
        *next = last.clone();
        let since = *since;
        let from = Address::Node(AUTHORITY);
        let effects = node.receive(&map, from, Body::Movement(summary));
        let ahead = Message::Summarize { since, after: last };
        assert_eq!(movement(&effects, AUTHORITY), std::slice::from_ref(&ahead));
        let asked = movement(&node.step(Event::Continue), AUTHORITY);
        match is_same {
            true => assert_eq!(asked, [], "it was asked for before"),
            false => assert_eq!(asked, [Message::ListSince { since, after: None }]),
        }
        // What follows a stretch that is another here is asked for once more, after that.
        told(&mut node, &map, answer(&ahead));
        let is_listing = node.member.recipient.is_listing(AUTHORITY, None);
        assert_eq!(is_listing, !is_same);
    }
}

#[test]
fn where_nothing_has_changed_a_summary_is_all_that_is_said() {
    let asked = exchanged(&first_map(3), None, &[(1, 12), (2, 14), (4, 15)], 1024);
    assert_eq!(asked, (vec!["summary"], vec![]));
}

#[test]
fn what_has_changed_is_named_beside_the_summary() {
    let asked = exchanged(&first_map(3), None, &[(1, 12), (4, 15), (2, 30), (5, 31)], 1024);
    assert_eq!(asked, (vec!["summary"], chunks(&[2, 5])));
}

#[test]
fn where_summaries_differ_each_name_is_compared() {
    for (has, wanted) in [
        (&[(1, 12), (2, 14)][..], chunks(&[4])),
        (&[(1, 12), (2, 13), (4, 15)], chunks(&[2])),
        (&[(1, 12), (5, 13), (2, 14), (4, 15)], chunks(&[5])),
        (&[], chunks(&[1, 2, 4])),
    ] {
        let asked = exchanged(&first_map(3), None, has, 1024);
        assert_eq!(asked, (vec!["summary", "list"], wanted), "{has:?}");
    }
}

/// A stretch is four pages, here of one name each.
#[test]
fn only_the_stretch_in_which_they_differ_is_compared_by_names() {
    let changed = [(5, 30), (6, 31)];
    let has = [&[(1, 12), (2, 14), (4, 15)], &changed[..]].concat();
    let asked = exchanged(&first_map(3), None, &has, 1);
    assert_eq!(asked, (vec!["summary"; 2], chunks(&[5, 6])));
    let has = [&[(1, 12), (2, 13), (4, 15)], &changed[..]].concat();
    let (asked, copies) = exchanged(&first_map(3), None, &has, 1);
    // The second was asked for ahead, and is asked for again when all before it is known.
    assert_eq!(asked, ["summary", "summary", "list", "list", "list", "list", "summary"]);
    assert_eq!(copies, chunks(&[2, 5, 6]));
}

#[test]
fn who_speaks_no_summaries_is_asked_for_names_and_so_is_who_keeps_snapshots() {
    let has = [(1, 12), (2, 14), (4, 15)];
    let asked = exchanged(&first_map(3).speaking(LEVEL_SUMMARIZING - 1), None, &has, 1024);
    assert_eq!(asked, (vec!["list"], vec![]));
    let name = KeptName::new("monday").unwrap();
    let kept = first_map(3).changed(&Change::Keep { name, day_us: 0 }).unwrap();
    assert_eq!(exchanged(&kept, None, &has, 1024), (vec!["list"], vec![]));
}

#[test]
fn what_waits_for_a_chunk_is_applied_when_the_summary_says_that_it_stands() {
    let (mut node, map, _) = returned(&first_map(3), None);
    write_since(&mut node, &map);
    assert!(node.shelf.is_awaited(&chunk(1)));
    let mut authority = authority(&map, &[(1, 12), (2, 14), (4, 15)], 1024);
    assert_eq!(exchange(&mut node, &mut authority, &map), (vec!["summary"], vec![]));
    assert!(!node.shelf.is_awaited(&chunk(1)));
}

#[test]
fn without_d5_summaries_are_taken_to_be_the_same() {
    let asked = exchanged(&first_map(3), Some(Rule::D5), &[(1, 12), (2, 30)], 1024);
    assert_eq!(asked, (vec!["summary"], vec![]));
}
