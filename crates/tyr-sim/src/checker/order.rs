//! Strict serializability: who came before whom has no circle.
//!
//! Transactions and single reads are the places of a graph. Edges follow from the versions of each
//! range of bytes: who wrote it next, who read it, who wrote it after it was read; and from real
//! time: who ended before another began. A circle is a proof that no order explains what clients
//! saw. (Elle does the same on lists; here every byte knows its versions.)
//!
//! Real time would give an edge for nearly every pair. Instead the moments at which something ended
//! are places too, in a row: whoever ended then leads to the moment, the moment leads to the next
//! one and to all that began after it and before the next.

use std::collections::{BTreeSet, VecDeque};

use smallvec::SmallVec;
use tyr_protocol::Footprint;
use tyr_types::{ByteRange, Operation};

use super::model::{ATTRIBUTES, Ranges};
use super::place::Placed;
use super::replay::{Replayed, Version, depends_on};
use super::timeline::Committed;

/// Why one came before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It wrote what the other overwrote.
    Overwritten,
    /// It wrote what the other read.
    Read,
    /// It read what the other overwrote.
    ReadBefore,
    /// It ended before the other began.
    Time,
}

struct Graph {
    edges: Vec<Vec<(usize, Why)>>,
}

impl Graph {
    fn add(&mut self, from: usize, to: usize, why: Why) {
        if from != to {
            self.edges[from].push((to, why));
        }
    }
}

/// Checks that the committed transactions and these reads are strictly serializable.
///
/// # Errors
/// The circle, as short as one was found.
pub fn has_no_circle(replayed: &Replayed, reads: &[Placed]) -> Result<(), String> {
    let committed = &replayed.timeline.committed;
    let intervals: Vec<(u64, u64)> = committed
        .iter()
        .map(|its| (its.start_us, its.end_us))
        .chain(reads.iter().map(|read| (read.start_us, read.end_us)))
        .collect();
    let ends: BTreeSet<u64> = intervals.iter().map(|(_, end_us)| *end_us).collect();
    let moments: Vec<u64> = ends.into_iter().filter(|end_us| *end_us < u64::MAX).collect();
    let mut graph = Graph { edges: vec![Vec::new(); intervals.len() + moments.len()] };
    order_by_data(&mut graph, replayed, reads);
    order_by_time(&mut graph, &intervals, &moments);
    let Some(circle) = circle(&graph) else { return Ok(()) };
    Err(describe(replayed, reads, &circle, intervals.len()))
}

fn order_by_time(graph: &mut Graph, intervals: &[(u64, u64)], moments: &[u64]) {
    let first = intervals.len();
    for number in 1..moments.len() {
        graph.add(first + number - 1, first + number, Why::Time);
    }
    for (place, (start_us, end_us)) in intervals.iter().enumerate() {
        if let Ok(moment) = moments.binary_search(end_us) {
            graph.add(place, first + moment, Why::Time);
        }
        let before = moments.partition_point(|moment| moment < start_us);
        if let Some(moment) = before.checked_sub(1) {
            graph.add(first + moment, place, Why::Time);
        }
    }
}

fn order_by_data(graph: &mut Graph, replayed: &Replayed, reads: &[Placed]) {
    for versions in &replayed.versions {
        for (place, version) in versions.iter().enumerate() {
            for writer in covering(versions[..place].iter().rev(), &version.changed) {
                graph.add(writer, version.writer, Why::Overwritten);
            }
        }
    }
    for (place, its) in replayed.timeline.committed.iter().enumerate() {
        for (blob, ranges) in observed(replayed, its) {
            let versions = &replayed.versions[blob];
            let after = versions.partition_point(|version| version.at < its.at);
            let stood = (after, after);
            observe(graph, versions, place, &ranges, stood);
        }
    }
    let first = replayed.timeline.committed.len();
    for (number, read) in reads.iter().enumerate() {
        let versions = &replayed.versions[read.blob];
        observe(graph, versions, first + number, &read.ranges, (read.after, read.before));
    }
}

/// What a committed transaction saw when it took effect: what it read, required, or was answered.
fn observed(replayed: &Replayed, its: &Committed) -> Vec<(usize, Ranges)> {
    let mut observed = Vec::new();
    for seen in &its.attempted.reads {
        if let Some(blob) = replayed.timeline.number(&seen.want.blob) {
            observed.push((blob, depends_on(seen)));
        }
    }
    for (blob, entry) in its.blobs.iter().zip(&its.attempted.blobs) {
        let mut ranges = Ranges::new();
        for operation in &entry.operations {
            if let Some(required) = Footprint::required(operation) {
                ranges.extend((!required.range.is_empty()).then_some(required.range));
                ranges.extend(required.is_attributes.then_some(ATTRIBUTES));
            }
            let is_telling = matches!(operation, Operation::Append { .. } | Operation::Delete);
            ranges.extend(is_telling.then_some(ATTRIBUTES));
        }
        if !ranges.is_empty() {
            observed.push((*blob, ranges));
        }
    }
    observed
}

fn observe(
    graph: &mut Graph,
    versions: &[Version],
    observer: usize,
    ranges: &[ByteRange],
    (after, before): (usize, usize),
) {
    for writer in covering(versions[..after].iter().rev(), ranges) {
        graph.add(writer, observer, Why::Read);
    }
    let others = versions[before..].iter().filter(|version| version.writer != observer);
    for writer in covering(others, ranges) {
        graph.add(observer, writer, Why::ReadBefore);
    }
}

/// The writers of the first versions that, going through `versions`, changed each byte of `ranges`.
fn covering<'a>(
    versions: impl Iterator<Item = &'a Version>,
    ranges: &[ByteRange],
) -> SmallVec<[usize; 4]> {
    let mut left: Ranges = ranges.iter().copied().filter(|range| !range.is_empty()).collect();
    let mut writers = SmallVec::new();
    for version in versions {
        if left.is_empty() {
            break;
        }
        for changed in &version.changed {
            if take(&mut left, *changed) && writers.last() != Some(&version.writer) {
                writers.push(version.writer);
            }
        }
    }
    writers
}

/// Takes a range away from others. `false` when it was in none of them.
fn take(left: &mut Ranges, taken: ByteRange) -> bool {
    let mut was_there = false;
    let mut place = 0;
    while let Some(range) = left.get(place).copied() {
        if !range.overlaps(taken) {
            place += 1;
            continue;
        }
        was_there = true;
        let before = ByteRange { start: range.start, end: taken.start.max(range.start) };
        let after = ByteRange { start: taken.end.min(range.end), end: range.end };
        left.swap_remove(place);
        left.extend([before, after].into_iter().filter(|range| !range.is_empty()));
    }
    was_there
}

/// Starting points from which a short circle is looked for, when there is one at all.
const STARTS_MAX: usize = 32;

/// A circle of the graph, if there is one.
fn circle(graph: &Graph) -> Option<Vec<(usize, Why)>> {
    let mut is_left = vec![true; graph.edges.len()];
    let forward = |place: usize| graph.edges[place].iter().map(|(to, _)| *to);
    peel(&mut is_left, forward);
    if !is_left.contains(&true) {
        return None;
    }
    let mut backward = vec![Vec::new(); graph.edges.len()];
    for (from, edges) in graph.edges.iter().enumerate() {
        edges.iter().for_each(|(to, _)| backward[*to].push(from));
    }
    peel(&mut is_left, |place| backward[place].iter().copied());
    let left = (0..is_left.len()).filter(|place| is_left[*place]);
    let circles = left.filter_map(|start| shortest(graph, &is_left, start));
    circles.take(STARTS_MAX).min_by_key(Vec::len)
}

/// Takes away those that nobody comes before, again and again.
fn peel<I: Iterator<Item = usize>>(is_left: &mut [bool], next: impl Fn(usize) -> I) {
    let all = || 0..is_left.len();
    let mut before = vec![0usize; is_left.len()];
    for to in all().filter(|place| is_left[*place]).flat_map(&next) {
        before[to] += 1;
    }
    let is_free = |place: &usize| is_left[*place] && before[*place] == 0;
    let mut free: Vec<usize> = all().filter(is_free).collect();
    while let Some(place) = free.pop() {
        is_left[place] = false;
        for to in next(place) {
            before[to] -= 1;
            if before[to] == 0 && is_left[to] {
                free.push(to);
            }
        }
    }
}

/// The shortest way from `start` back to it, as steps: from where, and why to the next.
fn shortest(graph: &Graph, is_left: &[bool], start: usize) -> Option<Vec<(usize, Why)>> {
    let mut came: Vec<Option<(usize, Why)>> = vec![None; graph.edges.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(place) = queue.pop_front() {
        for (to, why) in graph.edges[place].iter().filter(|(to, _)| is_left[*to]) {
            if came[*to].is_none() {
                came[*to] = Some((place, *why));
                queue.push_back(*to);
            }
        }
        if came[start].is_some() {
            break;
        }
    }
    let mut steps = Vec::new();
    let mut place = start;
    loop {
        let (from, why) = came[place]?;
        steps.push((from, why));
        place = from;
        if place == start {
            steps.reverse();
            return Some(steps);
        }
    }
}

fn describe(
    replayed: &Replayed,
    reads: &[Placed],
    circle: &[(usize, Why)],
    observers: usize,
) -> String {
    let committed = replayed.timeline.committed.len();
    let name = |place: usize| match place < committed {
        true => replayed.timeline.name(place),
        false => replayed.timeline.history.entries[reads[place - committed].entry].name(),
    };
    let mut text = "not strictly serializable:".to_owned();
    let begin = circle.iter().position(|(place, _)| *place < observers).unwrap_or(0);
    let turned = circle[begin..].iter().chain(&circle[..begin]);
    for (place, why) in turned.filter(|(place, _)| *place < observers) {
        let why = match why {
            Why::Overwritten => "was overwritten by",
            Why::Read => "was read by",
            Why::ReadBefore => "did not see",
            Why::Time => "ended before the beginning of",
        };
        text.push_str(&format!(" {} {why}", name(*place)));
    }
    let first = circle.get(begin).map_or_else(String::new, |(place, _)| name(*place));
    format!("{text} {first}")
}
