//! The runs of a block: stretches of known bytes, each of one version.
//!
//! A block that is written here and there has hundreds. Where they lie is kept apart from whose
//! they are, so that looking for a place touches a few cache lines only.

use std::ops::Range;

use smallvec::SmallVec;
use tyr_types::Timestamp;

use super::readers::Readers;

/// A stretch of known bytes of one version, in offsets within its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first byte.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// The transaction that wrote them last.
    pub version: Timestamp,
    /// Whether the base lacks them.
    pub is_dirty: bool,
}

/// Where a run lies. An offset in a block, its end included, takes 15 bits.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u16,
    end: u16,
}

/// Whose bytes a run has.
#[derive(Clone, Copy, Debug)]
struct Mark {
    version: Timestamp,
    is_dirty: bool,
}

/// Runs, ascending and disjoint.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    spans: SmallVec<[Span; 2]>,
    /// As many, in the same order.
    marks: SmallVec<[Mark; 1]>,
}

impl Run {
    /// Whether `readers` cannot tell the bytes of both apart, and the base has both or neither.
    pub fn is_like(&self, other: &Self, readers: Readers) -> bool {
        self.is_dirty == other.is_dirty && readers.take_as_one(self.version, other.version)
    }

    /// Whether a fold up to `at` takes it.
    pub fn is_dirty_at(&self, at: Timestamp) -> bool {
        self.is_dirty && self.version <= at
    }

    fn span(self) -> Span {
        debug_assert!(self.start < self.end, "a run has a byte: {self:?}");
        debug_assert!(self.end <= u32::from(u16::MAX), "its end has 16 bits: {self:?}");
        Span { start: self.start as u16, end: self.end as u16 }
    }

    fn mark(self) -> Mark {
        Mark { version: self.version, is_dirty: self.is_dirty }
    }
}

impl Runs {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of memory held beside their own.
    pub fn memory(&self) -> usize {
        let spans =
            if self.spans.spilled() { self.spans.capacity() * size_of::<Span>() } else { 0 };
        let marks =
            if self.marks.spilled() { self.marks.capacity() * size_of::<Mark>() } else { 0 };
        spans + marks
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.range(0..self.len())
    }

    /// Those with these indices.
    pub fn range(&self, indices: Range<usize>) -> impl Iterator<Item = Run> + '_ {
        let (spans, marks) = (&self.spans[indices.clone()], &self.marks[indices]);
        spans.iter().zip(marks).map(|(span, mark)| run(*span, *mark))
    }

    /// The indices of those that share a byte with `start..end`.
    pub fn overlapping(&self, start: u32, end: u32) -> Range<usize> {
        self.met(start + 1, end)
    }

    /// The indices of those that share a byte with `start..end`, or touch it.
    pub fn touching(&self, start: u32, end: u32) -> Range<usize> {
        self.met(start, end + 1)
    }

    /// The stretches of `start..end` that none covers.
    pub fn gaps(&self, start: u32, end: u32) -> SmallVec<[(u32, u32); 4]> {
        let mut gaps = SmallVec::new();
        let mut at = start;
        for span in &self.spans[self.overlapping(start, end)] {
            if at < u32::from(span.start) {
                gaps.push((at, u32::from(span.start)));
            }
            at = u32::from(span.end);
        }
        if at < end {
            gaps.push((at, end));
        }
        debug_assert!(
            gaps.iter().all(|(from, to)| start <= *from && from < to && *to <= end),
            "gaps lie within {start}..{end}: {gaps:?}"
        );
        gaps
    }

    /// The only one.
    pub fn only(&self) -> Option<Run> {
        match (self.spans.as_slice(), self.marks.as_slice()) {
            ([span], [mark]) => Some(run(*span, *mark)),
            _ => None,
        }
    }

    /// Puts `new` in place of those with `indices`. Those behind move once at most.
    pub fn splice(&mut self, indices: Range<usize>, new: &[Run]) {
        let Range { start, end } = indices;
        debug_assert!(start <= end && end <= self.len(), "{start}..{end} of {}", self.len());
        let both = (end - start).min(new.len());
        for (offset, run) in new[..both].iter().enumerate() {
            self.spans[start + offset] = run.span();
            self.marks[start + offset] = run.mark();
        }
        if new.len() > both {
            self.spans.insert_many(end, new[both..].iter().map(|run| run.span()));
            self.marks.insert_many(end, new[both..].iter().map(|run| run.mark()));
        } else {
            self.spans.drain(start + both..end);
            self.marks.drain(start + both..end);
        }
        debug_assert_eq!(self.spans.len(), self.marks.len(), "a mark for each span");
        debug_assert!(self.is_ordered(start, start + new.len()), "runs overlap: {new:?}");
    }

    /// Whether those with these indices, and their neighbours, follow each other.
    fn is_ordered(&self, start: usize, end: usize) -> bool {
        let near = &self.spans[start.saturating_sub(1)..(end + 1).min(self.len())];
        near.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }

    /// Marks those of versions up to `at` as clean.
    pub fn clean(&mut self, at: Timestamp) {
        for mark in &mut self.marks {
            mark.is_dirty &= mark.version > at;
        }
    }

    /// The indices of those that end at `from` or behind it, and start before `until`. Appends find
    /// themselves behind all.
    fn met(&self, from: u32, until: u32) -> Range<usize> {
        let first = match self.spans.last() {
            Some(last) if u32::from(last.end) >= from => {
                self.spans.partition_point(|span| u32::from(span.end) < from)
            }
            _ => self.len(),
        };
        let met = self.spans[first..].iter().take_while(|span| u32::from(span.start) < until);
        first..first + met.count()
    }
}

impl Extend<Run> for Runs {
    /// They come behind all that are here.
    fn extend<I: IntoIterator<Item = Run>>(&mut self, runs: I) {
        for run in runs {
            let end = self.spans.last().map_or(0, |last| u32::from(last.end));
            debug_assert!(end <= run.start, "{run:?} does not come behind the last, at {end}");
            self.spans.push(run.span());
            self.marks.push(run.mark());
        }
    }
}

impl FromIterator<Run> for Runs {
    fn from_iter<I: IntoIterator<Item = Run>>(ascending: I) -> Self {
        let mut runs = Self::default();
        runs.extend(ascending);
        runs
    }
}

fn run(span: Span, mark: Mark) -> Run {
    let Span { start, end } = span;
    let Mark { version, is_dirty } = mark;
    Run { start: start.into(), end: end.into(), version, is_dirty }
}
