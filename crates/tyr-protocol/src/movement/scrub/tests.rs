//! The scrubber by itself, over replicas that are some bytes each: what it asks, writes and tells.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::{BlobName, ByteRange, Bytes, Key, KeyspaceConfig, KeyspaceId, NodeId, Timestamp};

use super::scrubber::{COMPARED_MAX, REPAIR_LEN_MAX, STRETCH_COST_MIN, STRETCH_LEN_MAX};
use super::*;
use crate::map::ClusterMap;
use crate::movement::ChunkName;
use crate::rule::Rule;

const CHUNK: u64 = 4 << 20;
const TICK_US: u64 = 50_000;
const CONFIG: ScrubConfig = ScrubConfig { rate: 64 << 20, every_us: 3_600_000_000 };

/// What a node has of the one chunk there is.
#[derive(Clone, Default)]
struct Replica {
    bytes: Vec<u8>,
    /// Bytes of it that cannot be read.
    damaged: Vec<ByteRange>,
    /// Whether nothing can be known of it, nor written.
    is_broken: bool,
    /// Whether it does not answer.
    is_silent: bool,
}

struct Case {
    map: ClusterMap,
    scrubber: Scrubber,
    now_us: u64,
    replicas: BTreeMap<NodeId, Replica>,
    /// Whether what is written comes to nothing, as over what others keep writing.
    is_contended: bool,
    asked: u64,
    written: Vec<(u64, usize)>,
    found: Vec<Finding>,
}

fn chunk() -> ChunkName {
    (BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() }, 0)
}

impl Case {
    /// Three nodes that have the same `len` bytes.
    fn new(len: usize, config: ScrubConfig) -> Self {
        let keyspace =
            KeyspaceConfig { chunk_size: CHUNK, replication: 3, ..KeyspaceConfig::default() };
        let bytes: Vec<u8> = (0..len).map(|place| (place % 251) as u8 + 1).collect();
        let replica = Replica { bytes, ..Replica::default() };
        let replicas = (0..3).map(|node| (NodeId(node), replica.clone())).collect();
        let map = ClusterMap::of(3, &[keyspace]);
        let scrubber = Scrubber::new(NodeId(0), 1, config);
        let (asked, written, found) = (0, Vec::new(), Vec::new());
        Self { map, scrubber, now_us: 1, replicas, is_contended: false, asked, written, found }
    }

    fn replica(&mut self, node: u16) -> &mut Replica {
        self.replicas.get_mut(&NodeId(node)).unwrap()
    }

    fn step(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.scrubber.step(self.now_us, event, &self.map, &mut effects);
        self.scrubber.invariants();
        for effect in effects {
            match effect {
                Effect::Ask { to, read, chunk: of, range, at } => {
                    assert_eq!(of, chunk());
                    self.asked += 1;
                    if let Some(answer) = self.replicas[&to].answer(range, at) {
                        self.step(Event::Read { from: to, read, answer });
                    }
                }
                Effect::Rewrite { id, chunk: of, offset, bytes, at: _ } => {
                    assert!(is_repair(id) && of == chunk());
                    self.written.push((offset, bytes.len()));
                    if !self.is_contended {
                        self.replicas.values_mut().for_each(|it| it.write(offset, &bytes));
                    }
                }
                Effect::Tell(finding) => self.found.push(finding),
            }
        }
    }

    fn tick(&mut self) {
        self.now_us += TICK_US;
        if let Some(after) = self.scrubber.wanted(self.now_us) {
            assert_eq!(after, None);
            self.scrubber.list(vec![chunk()], None);
        }
        let clock = Timestamp { clock: self.now_us, ..Timestamp::ZERO };
        self.step(Event::Tick { clock, is_quiet: true });
    }

    /// Goes on until a round has ended.
    fn round(&mut self) {
        let rounds = self.scrubber.counts().rounds;
        let ended = (0..10_000).find(|_| {
            self.tick();
            self.scrubber.counts().rounds > rounds
        });
        ended.expect("a round ends");
    }

    fn whats(&self) -> Vec<(What, Vec<u16>)> {
        let of = |it: &Finding| (it.what, it.nodes.iter().map(|node| node.0).collect());
        self.found.iter().map(of).collect()
    }

    fn are_the_same(&self) -> bool {
        let contents: BTreeSet<&Vec<u8>> = self.replicas.values().map(|it| &it.bytes).collect();
        contents.len() == 1 && self.replicas.values().all(|it| it.damaged.is_empty())
    }
}

impl Replica {
    fn answer(&self, range: ByteRange, at: Timestamp) -> Option<Answer> {
        if self.is_silent {
            return None;
        }
        if self.is_broken || self.damaged.iter().any(|damaged| damaged.overlaps(range)) {
            return Some(Answer::Unreadable);
        }
        let len = self.bytes.len();
        let [from, to] = [range.start, range.end].map(|end| len.min(end as usize));
        let bytes = Bytes::copy_from_slice(&self.bytes[from..to]);
        Some(Answer::Holds { at: Some(at), bytes, size: Some(Some(len as u64)) })
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        assert!(!self.is_broken, "what is written there would stop the node");
        let from = offset as usize;
        self.bytes[from..from + bytes.len()].copy_from_slice(bytes);
        let end = offset + bytes.len() as u64;
        let left = |it: &ByteRange| {
            [
                ByteRange { start: it.start, end: it.end.min(offset) },
                ByteRange { start: it.start.max(end), end: it.end },
            ]
        };
        self.damaged = self.damaged.iter().flat_map(left).collect();
        self.damaged.retain(|it| it.start < it.end);
    }
}

#[test]
fn what_is_the_same_everywhere_is_read_once_and_not_written() {
    let mut case = Case::new(3 << 20, CONFIG);
    case.round();
    let counts = case.scrubber.counts();
    assert_eq!((counts.chunks, counts.bytes, counts.differing), (1, 3 << 20, 0));
    // Six stretches, and a seventh that shows the end, at three replicas.
    assert_eq!(case.asked, 3 * (6 + 1));
    assert!(case.written.is_empty() && case.found.is_empty());
}

#[test]
fn what_differs_at_one_is_written_anew_as_most_have_it_and_nothing_else_is() {
    let mut case = Case::new(3 << 20, CONFIG);
    let place = (1 << 20) + 70_000;
    case.replica(2).bytes[place] = 0;
    case.round();
    let start = place as u64 / REPAIR_LEN_MAX * REPAIR_LEN_MAX;
    assert_eq!(case.written, [(start, REPAIR_LEN_MAX as usize)]);
    assert_eq!(case.whats(), [(What::Differs, vec![2]), (What::Repaired, vec![])]);
    assert!(case.are_the_same());
    let counts = case.scrubber.counts();
    assert_eq!((counts.chunks, counts.differing, counts.repaired), (1, 1, 1));
    assert_eq!((counts.bytes, counts.unrepaired), (3 << 20, 0));
}

#[test]
fn what_an_authority_cannot_read_comes_from_others() {
    let mut case = Case::new(100_000, CONFIG);
    case.replica(0).damaged.push(ByteRange { start: 65_000, end: 66_000 });
    case.round();
    // The damage lies in two stretches; the second is as long as the blob.
    assert_eq!(case.written, [(0, 65_536), (65_536, 34_464)]);
    assert!(case.are_the_same());
    assert_eq!(case.scrubber.counts().repaired, 2);
}

#[test]
fn what_nobody_can_read_is_told_and_left() {
    let mut case = Case::new(100_000, CONFIG);
    for node in 0..3 {
        case.replica(node).damaged.push(ByteRange { start: 10, end: 20 });
    }
    case.round();
    assert_eq!(case.whats(), [(What::Lost, vec![0, 1, 2])]);
    assert!(case.written.is_empty());
    assert_eq!(case.scrubber.counts().chunks, 1, "the rest of the chunk is compared");
}

#[test]
fn a_replica_that_could_not_apply_a_write_is_not_written_to() {
    let mut case = Case::new(1_000, CONFIG);
    case.replica(1).is_broken = true;
    case.round();
    assert_eq!(case.whats(), [(What::Unreadable, vec![1]), (What::Unrepaired, vec![1])]);
    assert!(case.written.is_empty());
}

#[test]
fn what_others_keep_writing_is_tried_in_smaller_parts_and_left_in_the_end() {
    let mut case = Case::new(100_000, CONFIG);
    case.replica(1).bytes[5] = 0;
    case.is_contended = true;
    case.round();
    let lens: Vec<usize> = case.written.iter().map(|(_, len)| *len).collect();
    assert_eq!(lens, [65_536, 65_536, 16_384, 4_096, 4_096]);
    assert_eq!(case.whats(), [(What::Differs, vec![1]), (What::Unrepaired, vec![1])]);
    assert_eq!(case.scrubber.counts().chunks, 1, "the rest of the chunk is compared");
}

#[test]
fn bytes_beyond_where_most_end_are_told_and_not_cut() {
    let mut case = Case::new(1_000, CONFIG);
    case.replica(2).bytes.push(1);
    case.round();
    let whats = case.whats();
    assert_eq!(whats[0], (What::Size, vec![0, 1, 2]));
    assert_eq!(whats[1..], [(What::Differs, vec![2]), (What::Unrepaired, vec![2])]);
    assert!(case.written.is_empty());
}

#[test]
fn a_holder_that_does_not_answer_is_asked_again_and_its_chunk_left_for_the_next_round() {
    let mut case = Case::new(1_000, CONFIG);
    case.replica(1).bytes[5] = 0;
    case.replica(2).is_silent = true;
    case.round();
    assert!(case.asked > 3 * 5, "asked {} times", case.asked);
    assert!(case.written.is_empty() && case.found.is_empty(), "two are no majority of three");
    assert_eq!(case.scrubber.counts().chunks, 0);
    case.replica(2).is_silent = false;
    case.now_us += CONFIG.every_us;
    case.round();
    assert!(case.are_the_same());
}

#[test]
fn only_answers_to_what_was_asked_count() {
    let mut case = Case::new(1_000, CONFIG);
    (0..3).for_each(|node| case.replica(node).is_silent = true);
    (0..6).for_each(|_| case.tick());
    assert_eq!(case.asked, 3);
    let at = |clock| Some(Timestamp { clock, ..Timestamp::ZERO });
    let read = case.scrubber.clone();
    let number = (1 << 32 | 1 << 31) + 2;
    let holds = |clock| Answer::Holds { at: at(clock), bytes: Bytes::new(), size: None };
    for (from, read, clock) in [(0, number, 7), (9, number, 100_001), (0, number + 2, 100_001)] {
        case.step(Event::Read { from: NodeId(from), read, answer: holds(clock) });
    }
    for from in [0, 0, 0, 1] {
        case.step(Event::Read { from: NodeId(from), read: number, answer: holds(100_001) });
    }
    assert_eq!(case.scrubber.counts(), read.counts(), "one has not answered");
    case.step(Event::Read { from: NodeId(2), read: number, answer: holds(100_001) });
    assert_eq!(case.scrubber.counts().chunks, 1);
}

#[test]
fn no_more_is_compared_than_the_rate_allows() {
    let rate = 1 << 20;
    let mut case = Case::new(4 << 20, ScrubConfig { rate, every_us: 0 });
    (0..200).for_each(|_| case.tick());
    let seconds = 200 * TICK_US / 1_000_000;
    let most = rate * seconds + COMPARED_MAX as u64 * STRETCH_LEN_MAX;
    let bytes = case.scrubber.counts().bytes;
    assert!((most / 4..=most).contains(&bytes), "{bytes} bytes in {seconds} s");
    assert_eq!(case.written.len(), 0);
    // What is small counts for what it costs to ask.
    let mut case = Case::new(1, ScrubConfig { rate, every_us: 0 });
    (0..200).for_each(|_| case.tick());
    assert!(case.scrubber.counts().chunks <= rate * (seconds + 1) / STRETCH_COST_MIN);
}

#[test]
fn a_round_begins_when_it_is_time_and_without_a_rate_none_does() {
    let mut case = Case::new(1_000, CONFIG);
    case.round();
    (0..100).for_each(|_| case.tick());
    assert_eq!(case.scrubber.counts().chunks, 1);
    case.now_us += CONFIG.every_us;
    case.round();
    assert_eq!(case.scrubber.counts().chunks, 2);
    let mut case = Case::new(1_000, ScrubConfig { rate: 0, ..CONFIG });
    (0..100).for_each(|_| case.tick());
    assert_eq!((case.asked, case.scrubber.counts()), (0, ScrubCounts::default()));
}

#[test]
fn by_another_map_what_is_under_way_begins_anew() {
    let mut case = Case::new(1_000, CONFIG);
    (0..3).for_each(|node| case.replica(node).is_silent = true);
    (0..6).for_each(|_| case.tick());
    case.step(Event::Map);
    (0..3).for_each(|node| case.replica(node).is_silent = false);
    case.round();
    assert_eq!(case.scrubber.counts().chunks, 1);
    assert_eq!(case.asked, 6);
}

/// D4.
#[test]
fn without_the_rule_what_differs_stays() {
    let mut case = Case::new(1_000, CONFIG);
    case.scrubber.rules.broken = Some(Rule::D4);
    case.replica(2).bytes[7] = 0;
    case.round();
    assert!(!case.are_the_same());
}
