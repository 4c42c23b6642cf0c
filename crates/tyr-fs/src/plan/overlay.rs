//! What several operations have drafted that are to be committed together: later ones see what
//! earlier ones did, and all that any of them went by becomes conditions of the one transaction.
//!
//! ```text
//!   base, as the store has it ──► changes of earlier drafts, played over it ──► what a plan sees
//! ```
//!
//! Conditions of a transaction are on what is there before it. One that is on bytes which an
//! earlier draft changed is therefore answered here, and what the answer follows from becomes the
//! condition. A blob that an earlier draft put or deleted, and one of a file that was made here,
//! depends on nothing in the store any more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tyr::{Bytes, Number, Timestamp, Transform, TransformKind};

use super::draft::{Change, Condition};
use super::known::Found;
use crate::error::Result;
use crate::layout::key::Blob;

/// A range of a blob's bytes.
pub type Part = Range<u64>;

/// Up to how many bytes changes of a blob that was put become one put again.
const IMAGE_LEN_MAX: u64 = 256 << 10;

/// What the drafts say of one blob.
#[derive(Debug, Default)]
struct Touched {
    conditions: Vec<Condition>,
    changes: Vec<Change>,
    /// Whether it was put or deleted, so that nothing of what the store has is left.
    is_detached: bool,
}

/// Drafts that are committed together.
#[derive(Debug, Default)]
pub struct Overlay {
    blobs: BTreeMap<Blob, Touched>,
    /// Numbers of files that are made here: the store has no blob of them.
    fresh: BTreeSet<u64>,
}

impl Overlay {
    /// A number is of a file that is made here, if any.
    pub fn add_fresh(&mut self, number: u64) {
        self.fresh.insert(number);
    }

    /// Whether the store has nothing that matters of a blob.
    fn is_detached(&self, blob: &Blob) -> bool {
        self.fresh.contains(&blob.number())
            || self.blobs.get(blob).is_some_and(|touched| touched.is_detached)
    }

    fn changes_of(&self, blob: &Blob) -> &[Change] {
        self.blobs.get(blob).map_or(&[], |touched| &touched.changes)
    }

    /// Whether anything is changed.
    pub fn is_change(&self) -> bool {
        self.blobs.values().any(|touched| !touched.changes.is_empty())
    }

    /// All conditions, then all changes.
    pub fn into_parts(self) -> (Vec<Condition>, Vec<Change>) {
        let (mut conditions, mut changes) = (Vec::new(), Vec::new());
        for touched in self.blobs.into_values() {
            conditions.extend(touched.conditions);
            changes.extend(touched.changes);
        }
        (conditions, changes)
    }

    /// The blobs that are changed here, of those from one on to another.
    pub fn changed(&self, from: &Blob, to: &Blob) -> impl Iterator<Item = &Blob> {
        let blobs = self.blobs.range(from..to);
        blobs.filter(|(_, touched)| !touched.changes.is_empty()).map(|(blob, _)| blob)
    }

    /// A part of a blob as it is here; `base` reads what the store has.
    pub fn see(
        &self,
        blob: &Blob,
        part: Part,
        base: impl FnOnce(Part) -> Result<Option<Found>>,
    ) -> Result<Option<Found>> {
        let changes = self.changes_of(blob);
        let grown = grown(changes, part.clone());
        let base = match self.is_detached(blob) {
            true => None,
            false => base(grown.clone())?,
        };
        match changes.is_empty() {
            true => Ok(base),
            false => Ok(play(base, changes, grown, part)),
        }
    }

    /// Notes a condition; answers whether it can hold. `base` reads what the store has of a blob.
    pub fn require(
        &mut self,
        condition: Condition,
        base: &mut dyn FnMut(&Blob, Part) -> Result<Option<Found>>,
    ) -> Result<bool> {
        let blob = condition.blob().clone();
        // What has no version was made here, of a blob that the store does not have: that stays so.
        if let Condition::Unchanged(_, Timestamp::ZERO) = condition {
            self.require_version(&blob, None);
            return Ok(true);
        }
        let (changes, is_detached) = (self.changes_of(&blob), self.is_detached(&blob));
        let part = condition.part();
        let is_untouched = match &condition {
            Condition::Unchanged(..) if is_detached => return Ok(true),
            Condition::Unchanged(..) => true,
            Condition::Absent(_) => changes.is_empty(),
            Condition::Bytes(..) | Condition::Number(..) => {
                !changes.iter().any(|change| is_touching(change, &part))
            }
        };
        if is_untouched && !is_detached {
            self.note(&blob, condition);
            return Ok(true);
        }
        let found = self.see(&blob, part.clone(), |part| base(&blob, part))?;
        if !condition.holds(found.as_ref()) {
            return Ok(false);
        }
        if !is_detached {
            let part = grown(self.changes_of(&blob), part);
            let found = base(&blob, part.clone())?;
            self.note(&blob, as_read(&blob, &part, found));
        }
        Ok(true)
    }

    /// Nothing of a blob may change that was read.
    pub fn require_version(&mut self, blob: &Blob, base: Option<&Found>) {
        if !self.is_detached(blob) {
            let condition = match base {
                Some(found) => Condition::Unchanged(blob.clone(), found.version),
                None => Condition::Absent(blob.clone()),
            };
            self.note(blob, condition);
        }
    }

    fn note(&mut self, blob: &Blob, condition: Condition) {
        let touched = self.blobs.entry(blob.clone()).or_default();
        if !touched.conditions.contains(&condition) {
            touched.conditions.push(condition);
        }
    }

    /// Adds a change.
    pub fn change(&mut self, change: Change) {
        self.blobs.entry(change.blob().clone()).or_default().add(change);
    }
}

impl Touched {
    fn add(&mut self, change: Change) {
        if let Change::Put(..) | Change::Delete(_) = change {
            self.is_detached = true;
            self.changes = vec![change];
            return;
        }
        if let [Change::Put(blob, bytes)] = &self.changes[..] {
            let size = size_after(&change, Some(bytes.len() as u64)).unwrap_or(0);
            if size <= IMAGE_LEN_MAX {
                let both = [Change::Put(blob.clone(), bytes.clone()), change];
                let all = play(None, &both, 0..size, 0..size).map(|found| found.bytes);
                self.changes = vec![Change::Put(blob.clone(), all.unwrap_or_default())];
                return;
            }
        }
        let Some(place) = place(&change) else {
            self.changes.push(change);
            return;
        };
        // What comes behind the one that it is merged with must not have to do with it.
        for earlier in self.changes.iter_mut().rev() {
            if let Some(merged) = merge(earlier, &change) {
                *earlier = merged;
                return;
            }
            if is_touching(earlier, &place) {
                break;
            }
        }
        self.changes.push(change);
    }
}

/// What is to be required for what was read of a part of a blob to be still so.
fn as_read(blob: &Blob, part: &Part, found: Option<Found>) -> Condition {
    match found {
        None => Condition::Absent(blob.clone()),
        Some(found) if found.bytes.len() as u64 == part.end - part.start => {
            Condition::Bytes(blob.clone(), part.start, found.bytes)
        }
        Some(found) => Condition::Unchanged(blob.clone(), found.version),
    }
}

impl Condition {
    /// The blob that it is on.
    pub fn blob(&self) -> &Blob {
        match self {
            Self::Bytes(blob, ..)
            | Self::Number(blob, ..)
            | Self::Absent(blob)
            | Self::Unchanged(blob, _) => blob,
        }
    }

    /// The bytes that it is on; of no bytes whether there is a blob.
    fn part(&self) -> Part {
        match self {
            Self::Bytes(_, offset, bytes) => *offset..offset + bytes.len() as u64,
            Self::Number(_, offset, _, number) => {
                *offset..offset + number.number_type().width() as u64
            }
            Self::Absent(_) | Self::Unchanged(..) => 0..0,
        }
    }

    /// Whether it holds for a blob of which its part was looked at.
    fn holds(&self, found: Option<&Found>) -> bool {
        let written = found.map(|found| &found.bytes[..]).unwrap_or_default();
        match self {
            Self::Bytes(_, _, bytes) => written == bytes,
            Self::Number(_, _, relation, number) => {
                relation.holds(Number::load_written(number.number_type(), written), *number)
            }
            Self::Absent(_) => found.is_none(),
            Self::Unchanged(..) => true,
        }
    }
}

impl Change {
    /// The blob that it is of.
    pub fn blob(&self) -> &Blob {
        match self {
            Self::Put(blob, _)
            | Self::Write(blob, ..)
            | Self::Append(blob, _)
            | Self::Truncate(blob, _)
            | Self::Clear(blob, ..)
            | Self::Delete(blob)
            | Self::Apply(blob, ..) => blob,
        }
    }
}

/// The bytes that a change has to do with, if it has with no others and leaves sizes alone where
/// there are so many.
fn place(change: &Change) -> Option<Part> {
    match change {
        Change::Write(_, offset, bytes) => Some(*offset..offset + bytes.len() as u64),
        Change::Apply(_, offset, transform) => Some(*offset..offset + transform.width() as u64),
        Change::Put(..)
        | Change::Append(..)
        | Change::Truncate(..)
        | Change::Clear(..)
        | Change::Delete(_) => None,
    }
}

fn is_touching(change: &Change, part: &Part) -> bool {
    place(change).is_none_or(|place| place.start < part.end && part.start < place.end)
}

/// One change that does what both do, one behind the other.
fn merge(earlier: &Change, later: &Change) -> Option<Change> {
    match (earlier, later) {
        (Change::Write(..), Change::Write(..)) if place(earlier) == place(later) => {
            Some(later.clone())
        }
        (Change::Apply(blob, at, one), Change::Apply(_, other_at, other))
            if at == other_at && one.kind() == other.kind() =>
        {
            let (kind, operand) = (one.kind(), one.operand());
            if operand.number_type() != other.operand().number_type() {
                return None;
            }
            let both = if [TransformKind::Add, TransformKind::Sub].contains(&kind) {
                Transform::add(other.operand())
            } else if kind == TransformKind::Max {
                *other
            } else {
                return None;
            };
            let mut bytes = [0; 16];
            operand.store(&mut bytes);
            let operand = both.apply(&mut bytes[..one.width()]);
            let transform = Transform::new(kind, operand).ok()?;
            Some(Change::Apply(blob.clone(), *at, transform))
        }
        _ => None,
    }
}

/// The part of a blob that has to be read to know this one: no number sticks out of it.
fn grown(changes: &[Change], part: Part) -> Part {
    let mut grown = part;
    loop {
        let before = grown.clone();
        for change in changes {
            if let (Change::Apply(..), Some(place)) = (change, place(change))
                && is_touching(change, &grown)
            {
                grown = grown.start.min(place.start)..grown.end.max(place.end);
            }
        }
        if grown == before {
            return grown;
        }
    }
}

fn size_after(change: &Change, size: Option<u64>) -> Option<u64> {
    let known = size.unwrap_or(0);
    match change {
        Change::Put(_, bytes) => Some(bytes.len() as u64),
        Change::Write(..) | Change::Apply(..) => {
            Some(known.max(place(change).map_or(0, |place| place.end)))
        }
        Change::Append(_, bytes) => Some(known + bytes.len() as u64),
        Change::Truncate(_, len) => Some(*len),
        Change::Clear(..) => size,
        Change::Delete(_) => None,
    }
}

/// Bytes of a part of a blob, zeros behind its end.
struct Image {
    start: u64,
    bytes: Vec<u8>,
}

impl Image {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = self.start + self.bytes.len() as u64;
        let (from, to) = (offset.max(self.start), (offset + bytes.len() as u64).min(end));
        if from < to {
            let source = &bytes[(from - offset) as usize..(to - offset) as usize];
            self.bytes[(from - self.start) as usize..(to - self.start) as usize]
                .copy_from_slice(source);
        }
    }

    fn clear(&mut self, part: Part) {
        let end = self.start + self.bytes.len() as u64;
        let (from, to) = (part.start.max(self.start), part.end.min(end));
        if from < to {
            self.bytes[(from - self.start) as usize..(to - self.start) as usize].fill(0);
        }
    }
}

/// What is seen of a part of a blob when changes are played over what was read of a larger one.
fn play(base: Option<Found>, changes: &[Change], read: Part, part: Part) -> Option<Found> {
    let (mut size, version) =
        base.as_ref().map_or((None, Timestamp::ZERO), |it| (Some(it.size), it.version));
    let mut longest = size.unwrap_or(0);
    let mut after = size;
    for change in changes {
        after = size_after(change, after);
        longest = longest.max(after.unwrap_or(0));
    }
    let end = read.end.min(longest).max(read.start);
    let mut image = Image { start: read.start, bytes: vec![0; (end - read.start) as usize] };
    if let Some(base) = &base {
        image.write(read.start, &base.bytes);
    }
    for change in changes {
        match change {
            Change::Put(_, bytes) => {
                image.clear(0..u64::MAX);
                image.write(0, bytes);
            }
            Change::Write(_, offset, bytes) => image.write(*offset, bytes),
            Change::Append(_, bytes) => image.write(size.unwrap_or(0), bytes),
            Change::Truncate(_, len) => image.clear(*len..u64::MAX),
            Change::Clear(_, offset, len) => image.clear(*offset..offset.saturating_add(*len)),
            Change::Delete(_) => image.clear(0..u64::MAX),
            Change::Apply(_, offset, transform) => {
                let at = offset.checked_sub(read.start).map(|at| at as usize);
                let place = at.and_then(|at| image.bytes.get_mut(at..at + transform.width()));
                if let Some(place) = place {
                    transform.apply(place);
                }
            }
        }
        size = size_after(change, size);
    }
    let size = size?;
    let start = part.start.clamp(read.start, end);
    let end = part.end.min(size).clamp(start, end);
    let bytes = &image.bytes[(start - read.start) as usize..(end - read.start) as usize];
    Some(Found { size, version, bytes: Bytes::copy_from_slice(bytes) })
}

#[cfg(test)]
mod tests;
