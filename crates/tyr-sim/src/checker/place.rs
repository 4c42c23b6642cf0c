//! Where in the order of versions a read stood.
//!
//! A read at a timestamp says so itself. A single read of one chunk does not (R1): it stood where
//! the blob's bytes were those that it saw, no earlier than what was acknowledged before it began
//! and no later than what began after it ended. Mostly that is one place. Where it is several, as
//! when a version wrote the same bytes again, the read is given the benefit of the doubt: it came
//! after the first of them, and before what follows the last.

use std::collections::BTreeMap;

use tyr_types::{ByteRange, Timestamp};

use super::history::{Deed, Entry, Seen};
use super::model::{self, Blob, Ranges};
use super::replay::{Replayed, Version, depends_on, difference};
use super::timeline::BlobNumber;

/// A read with its place. Places count the versions of the blob before the read.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The read's entry in the history.
    pub entry: usize,
    /// When it began, in microseconds.
    pub start_us: u64,
    /// When it ended.
    pub end_us: u64,
    /// The blob.
    pub blob: BlobNumber,
    /// What the answer depends on.
    pub ranges: Ranges,
    /// It came after this many versions.
    pub after: usize,
    /// It came before those from this place on.
    pub before: usize,
}

/// Places all reads that real time holds for: single ones, and the first of each blob in a
/// transaction (R3). Later ones, and those of snapshots, are placed by their timestamp alone.
///
/// # Errors
/// A read that stood nowhere.
pub fn place(replayed: &Replayed) -> Result<Vec<Placed>, String> {
    let mut placed = Vec::new();
    let mut unplaced = Vec::new();
    let history = replayed.timeline.history;
    for (number, entry) in history.entries.iter().enumerate() {
        for seen in strict_reads(entry) {
            let Some(end_us) = seen.end_us else { continue };
            let blob = replayed.timeline.number(&seen.want.blob).expect("reads are numbered");
            let ranges = depends_on(seen);
            let after = seen.at.map_or(0, |at| count_up_to(&replayed.versions[blob], at));
            let start_us = seen.start_us;
            let its =
                Placed { entry: number, start_us, end_us, blob, ranges, after, before: after };
            match seen.at {
                Some(_) => placed.push(its),
                None => unplaced.push((its, seen)),
            }
        }
    }
    placed.extend(search(replayed, unplaced)?);
    Ok(placed)
}

/// The reads of an entry that must contain what was acknowledged before.
fn strict_reads(entry: &Entry) -> impl Iterator<Item = &Seen> {
    let seen = match &entry.deed {
        Deed::Read(_) | Deed::Transaction(_) => entry.seen(),
        Deed::Snapshot(_) | Deed::Moment(_) | Deed::ReadMany(_) => &[],
    };
    let is_first = |place: &usize| {
        let same = |other: &&Seen| other.want.blob == seen[*place].want.blob;
        !seen[..*place].iter().any(|other| same(&other))
    };
    let places = (0..seen.len()).filter(move |place| is_first(place));
    places.map(|place| &seen[place]).filter(|seen| seen.is_answered())
}

/// The number of versions at or below `at`.
pub fn count_up_to(versions: &[Version], at: Timestamp) -> usize {
    versions.partition_point(|version| version.at <= at)
}

/// Whether two sets of ranges share a byte.
pub fn overlap(left: &[ByteRange], right: &[ByteRange]) -> bool {
    left.iter().any(|left| right.iter().any(|right| left.overlaps(*right)))
}

/// Finds the places of reads that do not say, by doing the blobs' versions again.
fn search(replayed: &Replayed, mut reads: Vec<(Placed, &Seen)>) -> Result<Vec<Placed>, String> {
    let mut candidates: BTreeMap<(BlobNumber, usize), Vec<usize>> = BTreeMap::new();
    for (number, (read, _)) in reads.iter_mut().enumerate() {
        for place in possible(replayed, read) {
            candidates.entry((read.blob, place)).or_default().push(number);
        }
        (read.after, read.before) = (usize::MAX, usize::MAX);
    }
    let mut blob: (BlobNumber, usize, Blob) = (usize::MAX, 0, None);
    for ((number, place), at_place) in candidates {
        if blob.0 != number {
            blob = (number, 0, None);
        }
        while blob.1 < place {
            redo(replayed, number, blob.1, &mut blob.2);
            blob.1 += 1;
        }
        for read in at_place {
            let (read, seen) = &mut reads[read];
            if difference(&blob.2, seen).is_none() {
                read.after = read.after.min(place);
                read.before = place;
            }
        }
    }
    match reads.iter().find(|(read, _)| read.after == usize::MAX) {
        None => Ok(reads.into_iter().map(|(read, _)| read).collect()),
        Some((read, seen)) => Err(nowhere(replayed, read, seen)),
    }
}

/// The places where a read may have stood: after all that it depends on and that was acknowledged
/// before it, before all that began after it. One for each version that made a difference.
fn possible(replayed: &Replayed, read: &Placed) -> Vec<usize> {
    let versions = &replayed.versions[read.blob];
    let committed = &replayed.timeline.committed;
    let mut places = vec![0];
    for (number, version) in versions.iter().enumerate() {
        if !overlap(&version.changed, &read.ranges) {
            continue;
        }
        let writer = &committed[version.writer];
        if writer.start_us > read.end_us {
            break;
        }
        if writer.end_us < read.start_us {
            places.clear();
        }
        places.push(number + 1);
    }
    places
}

/// Does the `place`-th version of a blob again.
fn redo(replayed: &Replayed, blob: BlobNumber, place: usize, bytes: &mut Blob) {
    let writer = &replayed.timeline.committed[replayed.versions[blob][place].writer];
    let entries = writer.blobs.iter().zip(&writer.attempted.blobs);
    for (_, entry) in entries.filter(|(number, _)| **number == blob) {
        // One that fails was complained of before, and changes nothing.
        let _ = model::operate(bytes, &entry.operations, writer.at, &mut Ranges::new());
    }
}

fn nowhere(replayed: &Replayed, read: &Placed, seen: &Seen) -> String {
    let name = replayed.timeline.history.entries[read.entry].name();
    let places = possible(replayed, read);
    let mut blob = None;
    let first = places.first().copied().unwrap_or(0);
    for place in 0..first {
        redo(replayed, read.blob, place, &mut blob);
    }
    let difference = difference(&blob, seen).unwrap_or_default();
    let versions = &replayed.versions[read.blob];
    let since = match first.checked_sub(1) {
        None => "the beginning".to_owned(),
        Some(place) => replayed.timeline.name(versions[place].writer),
    };
    format!(
        "{name} stood nowhere: neither after {since} nor at any of the {} places until what began \
         after it; after the first, {difference}",
        places.len()
    )
}
