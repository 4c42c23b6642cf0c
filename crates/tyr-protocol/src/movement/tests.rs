//! The recipient by itself, on maps of a few nodes: what it asks for, installs and says.

use tyr_types::{BlobName, Bytes, Key, KeyspaceConfig, KeyspaceId, NodeId, Timestamp};

use super::recipient::{COPIES_MAX, PATIENCE_US, SMALL_MAX, WRITTEN_MAX};
use super::*;
use crate::map::{Change, ClusterMap, Newcomer};
use crate::movement::ChunkName;
use crate::read::Kind;

fn pieces() -> PieceLengths {
    PieceLengths::default()
}

const JOINER: NodeId = NodeId(3);

/// Three nodes that hold everything, and one that is about to join.
fn joining(chunk_size: u64) -> ClusterMap {
    let keyspace = KeyspaceConfig { chunk_size, replication: 3, ..KeyspaceConfig::default() };
    let map = ClusterMap::of(3, &[keyspace]);
    let newcomer = Newcomer { node: JOINER, incarnation: 1, ..Newcomer::default() };
    map.changed(&Change::Join(vec![newcomer])).unwrap()
}

/// Chunks that the joiner is a recipient of.
fn gained(map: &ClusterMap, count: usize) -> Vec<ChunkName> {
    let name = |number: u64| {
        let key = Key::new(format!("blob {number:04}")).unwrap();
        (BlobName { keyspace: KeyspaceId(1), key }, 0)
    };
    let all = (0..).map(name);
    all.filter(|(blob, chunk)| map.recipients(blob, *chunk).contains(&JOINER)).take(count).collect()
}

fn copy_of(map: &ClusterMap, chunk: &ChunkName, offset: u64, clock: u64) -> ChunkCopy {
    let range = pieces().piece(map, chunk, offset).unwrap();
    let size = map.chunk_size(chunk.0.keyspace).unwrap();
    let at = Timestamp { clock, ..Timestamp::ZERO };
    let version = ChunkVersion {
        version: Timestamp { clock: 1, ..Timestamp::ZERO },
        bytes: Bytes::from_static(b"abc"),
        size: None,
        size_version: Timestamp::ZERO,
    };
    ChunkCopy::new(at, range, range.end == (chunk.1 + 1) * size, vec![version])
}

struct Case {
    map: ClusterMap,
    recipient: Recipient,
    now_us: u64,
}

impl Case {
    fn new(chunk_size: u64) -> (Self, Vec<Effect>) {
        let (map, recipient) = (joining(chunk_size), Recipient::new(JOINER, 1));
        let mut case = Self { map, recipient, now_us: 1 };
        let effects = case.step(Event::Map { is_moving: true, is_anew: true });
        (case, effects)
    }

    /// Where each copy takes a second.
    fn slow() -> Self {
        let (mut case, _) = Self::new(1 << 20);
        case.recipient = Recipient::new(JOINER, 1).at_rate(Some(3));
        case.step(Event::Map { is_moving: true, is_anew: true });
        case
    }

    fn step(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.recipient.step(self.now_us, event, &self.map, &mut effects);
        self.recipient.invariants();
        effects
    }

    fn listed(&mut self, from: u16, chunks: &[ChunkName]) -> Vec<Effect> {
        let (from, epoch, chunks) = (NodeId(from), self.map.epoch, chunks.to_vec());
        self.step(Event::Recalled { from, epoch, after: 0, next: None });
        self.step(Event::Listed { from, epoch, after: None, chunks, next: None, is_asked: false })
    }

    fn copied(&mut self, read: u64, copy: ChunkCopy, chunk: &ChunkName) -> Vec<Effect> {
        self.step(Event::Copied { read, chunk: chunk.clone(), copy })
    }
}

/// The reads among these effects: number and chunk.
fn asked(effects: &[Effect]) -> Vec<(u64, ChunkName)> {
    let ask = |effect: &Effect| match effect {
        Effect::Ask { read, chunk, .. } => Some((*read, chunk.clone())),
        Effect::List { .. } | Effect::Recall { .. } | Effect::Install { .. } | Effect::CaughtUp => {
            None
        }
    };
    effects.iter().filter_map(ask).collect()
}

fn is_caught_up(effects: &[Effect]) -> bool {
    effects.contains(&Effect::CaughtUp)
}

#[test]
fn everything_listed_is_copied_from_its_authority_and_then_it_says_so() {
    let (mut case, effects) = Case::new(4096);
    let lists = effects.iter().filter(|effect| matches!(effect, Effect::List { .. })).count();
    assert_eq!(lists, 3, "every node that serves is asked what is to come");
    let chunks = gained(&case.map, 2);
    assert!(asked(&case.listed(0, &chunks)).len() == 2);
    assert!(!is_caught_up(&case.listed(1, &[])));
    let effects = case.listed(2, &[]);
    assert!(!is_caught_up(&effects), "two are on their way");
    let reads: Vec<_> = chunks.iter().zip(1_u64..).map(|(chunk, n)| (1 << 32 | n, chunk)).collect();
    for (read, chunk) in reads {
        let copy = copy_of(&case.map, chunk, 0, 7);
        let effects = case.copied(read, copy, chunk);
        assert!(!is_caught_up(&effects), "it is not durable yet");
    }
    assert!(!is_caught_up(&case.step(Event::Stored(chunks[0].clone()))));
    assert!(is_caught_up(&case.step(Event::Stored(chunks[1].clone()))));
    let Progress { installed, missing, unlisted, .. } = case.recipient.progress();
    assert_eq!((installed, missing, unlisted), (2, 0, 0));
}

#[test]
fn a_chunk_that_a_chain_brings_is_copied_too() {
    let (mut case, _) = Case::new(4096);
    let chunk = gained(&case.map, 1).remove(0);
    let asks = asked(&case.step(Event::Heard(chunk.clone())));
    assert_eq!(asks.len(), 1);
    assert!(asked(&case.step(Event::Heard(chunk.clone()))).is_empty(), "once");
    assert!(asked(&case.listed(0, &[chunk])).is_empty(), "listed or heard of");
}

/// More and more small ones come at a time, and what has come waits for nothing but its sync.
#[test]
fn what_is_copied_at_a_time_is_bounded() {
    let (mut case, _) = Case::new(4096);
    let chunks = gained(&case.map, WRITTEN_MAX + 2 * SMALL_MAX);
    let mut under_way = asked(&case.listed(0, &chunks));
    assert_eq!(under_way.len(), COPIES_MAX);
    let (mut came, mut most) = (Vec::new(), 0);
    while let Some((read, chunk)) = under_way.pop() {
        let copy = copy_of(&case.map, &chunk, 0, 7);
        under_way.extend(asked(&case.copied(read, copy, &chunk)));
        most = most.max(under_way.len());
        came.push(chunk);
    }
    assert_eq!(most, SMALL_MAX);
    assert!((WRITTEN_MAX..WRITTEN_MAX + SMALL_MAX).contains(&came.len()), "{}", came.len());
    for chunk in came {
        under_way.extend(asked(&case.step(Event::Stored(chunk))));
    }
    assert_eq!(under_way.len(), SMALL_MAX, "it goes on when that is durable");
}

/// A chunk of more than its first piece shows that others may be as long.
#[test]
fn of_long_chunks_few_are_copied_at_a_time() {
    let (mut case, _) = Case::new(2 * pieces().other);
    let chunks = gained(&case.map, 4 * SMALL_MAX);
    let mut firsts = asked(&case.listed(0, &chunks));
    let mut long = Vec::new();
    while let Some((read, chunk)) = firsts.pop() {
        let first = copy_of(&case.map, &chunk, 0, 7);
        assert!(!first.is_last);
        long.extend(asked(&case.copied(read, first, &chunk)));
    }
    assert_eq!(long.len(), COPIES_MAX, "their second pieces, and nothing else: {long:?}");
    let (read, chunk) = &long[0];
    let rest = copy_of(&case.map, chunk, pieces().first, 7);
    assert!(asked(&case.copied(*read, rest, chunk)).iter().any(|(other, _)| other == read));
}

#[test]
fn what_is_copied_in_a_second_is_bounded_where_that_is_asked_for() {
    let mut case = Case::slow();
    let chunks = gained(&case.map, COPIES_MAX + 2);
    let first = asked(&case.listed(0, &chunks));
    assert_eq!(first.len(), COPIES_MAX);
    for (read, chunk) in &first[..2] {
        assert!(asked(&case.copied(*read, copy_of(&case.map, chunk, 0, 5), chunk)).is_empty());
        case.step(Event::Stored(chunk.clone()));
    }
    case.now_us += 1_900_000;
    assert!(asked(&case.step(Event::Tick)).is_empty(), "two copies take two seconds");
    case.now_us += 200_000;
    assert!(asked(&case.step(Event::Tick)).len() >= 2);
}

#[test]
fn what_chains_write_to_is_copied_first_and_at_any_rate_when_much_waits_for_it() {
    let mut case = Case::slow();
    let chunks = gained(&case.map, COPIES_MAX + 5);
    let first = asked(&case.listed(0, &chunks));
    let last = chunks.last().unwrap();
    assert!(asked(&case.step(Event::Heard(last.clone()))).is_empty(), "all copies are under way");
    let (read, chunk) = &first[0];
    let next = asked(&case.copied(*read, copy_of(&case.map, chunk, 0, 5), chunk));
    assert!(next.is_empty(), "it is not paid for yet");
    case.step(Event::Stored(chunk.clone()));
    case.recipient.press(true);
    let next: Vec<_> = asked(&case.step(Event::Tick)).into_iter().map(|(_, it)| it).collect();
    assert_eq!(next, std::slice::from_ref(last), "nothing else, though others come before it");
}

#[test]
fn a_large_chunk_comes_in_pieces_at_one_timestamp() {
    let (mut case, _) = Case::new(2 * pieces().other);
    let chunk = gained(&case.map, 1).remove(0);
    let (read, _) = asked(&case.step(Event::Heard(chunk.clone())))[0];
    let first = copy_of(&case.map, &chunk, 0, 7);
    assert!(!first.is_last);
    let effects = case.copied(read, first, &chunk);
    let is_next = |effect: &Effect| match effect {
        Effect::Ask { range, kind, .. } => {
            let at = Timestamp { clock: 7, ..Timestamp::ZERO };
            range.start == pieces().first && *kind == Kind::At(at)
        }
        Effect::List { .. } | Effect::Recall { .. } | Effect::Install { .. } | Effect::CaughtUp => {
            false
        }
    };
    assert!(effects.iter().any(is_next), "{effects:?}");
    let other = copy_of(&case.map, &chunk, pieces().first, 8);
    assert!(case.copied(read, other, &chunk).is_empty(), "not of another timestamp");
    let second = copy_of(&case.map, &chunk, pieces().first, 7);
    assert_eq!(second.range.len(), pieces().other);
    case.copied(read, second, &chunk);
    let last = copy_of(&case.map, &chunk, pieces().first + pieces().other, 7);
    let effects = case.copied(read, last, &chunk);
    assert!(matches!(&effects[..], [Effect::Install { copy, .. }] if copy.is_last));
}

#[test]
fn a_piece_whose_version_is_gone_begins_the_chunk_anew() {
    let (mut case, _) = Case::new(2 * pieces().other);
    let chunk = gained(&case.map, 1).remove(0);
    let (read, _) = asked(&case.step(Event::Heard(chunk.clone())))[0];
    let first = copy_of(&case.map, &chunk, 0, 7);
    case.copied(read, first, &chunk);
    case.step(Event::Refused { read });
    case.now_us += PATIENCE_US;
    let effects = case.step(Event::Tick);
    let is_first = |effect: &Effect| matches!(effect, Effect::Ask { kind: Kind::Whole, .. });
    assert!(effects.iter().any(is_first), "{effects:?}");
}

#[test]
fn a_damaged_copy_is_not_installed_and_asked_for_again() {
    let (mut case, _) = Case::new(4096);
    let chunk = gained(&case.map, 1).remove(0);
    let (read, _) = asked(&case.step(Event::Heard(chunk.clone())))[0];
    let mut copy = copy_of(&case.map, &chunk, 0, 7);
    copy.versions[0].bytes = Bytes::from_static(b"abd");
    assert!(case.copied(read, copy, &chunk).is_empty());
    case.now_us += PATIENCE_US;
    assert_eq!(asked(&case.step(Event::Tick)).len(), 1);
}

#[test]
fn a_list_by_another_map_counts_for_nothing() {
    let (mut case, _) = Case::new(4096);
    let chunks = gained(&case.map, 1);
    let (from, epoch) = (NodeId(0), tyr_types::Epoch(1));
    let effects =
        case.step(Event::Listed { from, epoch, after: None, chunks, next: None, is_asked: false });
    assert!(asked(&effects).is_empty());
    assert_eq!(case.recipient.progress().unlisted, 3);
}

#[test]
fn a_map_that_follows_keeps_what_is_installed_and_one_after_a_gap_does_not() {
    let (mut case, _) = Case::new(4096);
    let chunk = gained(&case.map, 1).remove(0);
    case.step(Event::Stored(chunk.clone()));
    let effects = case.step(Event::Map { is_moving: true, is_anew: false });
    assert!(case.recipient.has(&chunk));
    let lists = effects.iter().filter(|effect| matches!(effect, Effect::List { .. })).count();
    assert_eq!(lists, 3, "all are listed anew: {effects:?}");
    case.step(Event::Map { is_moving: true, is_anew: true });
    assert!(!case.recipient.has(&chunk));
}

/// F4: whoever holds a chunk answers for which transactions took effect in it.
#[test]
fn it_has_not_caught_up_before_all_have_told_what_they_remember() {
    let (mut case, effects) = Case::new(4096);
    let asks = effects.iter().filter(|effect| matches!(effect, Effect::Recall { after: 0, .. }));
    assert_eq!(asks.count(), 3, "every node that serves is asked");
    let epoch = case.map.epoch;
    let told = |case: &mut Case, from, after, next| {
        case.step(Event::Recalled { from: NodeId(from), epoch, after, next })
    };
    for from in 0..3 {
        let (from, chunks) = (NodeId(from), Vec::new());
        let effects = case.step(Event::Listed {
            from,
            epoch,
            after: None,
            chunks,
            next: None,
            is_asked: false,
        });
        assert!(!is_caught_up(&effects));
    }
    told(&mut case, 0, 0, None);
    let next = told(&mut case, 1, 0, Some(7));
    assert_eq!(next, [Effect::Recall { to: NodeId(1), after: 7 }], "page by page");
    assert!(told(&mut case, 1, 0, None).is_empty(), "the first page again");
    assert!(!is_caught_up(&told(&mut case, 1, 7, None)));
    assert!(is_caught_up(&told(&mut case, 2, 0, None)));
}

#[test]
fn without_a_move_nothing_is_asked_for() {
    let (mut case, _) = Case::new(4096);
    let chunk = gained(&case.map, 1).remove(0);
    assert!(case.step(Event::Map { is_moving: false, is_anew: false }).is_empty());
    assert!(case.step(Event::Heard(chunk)).is_empty());
    assert!(case.step(Event::Tick).is_empty());
}
