//! A chunk that leaves for another node, or comes from one.

use std::collections::BTreeSet;
use std::sync::Arc;

use tyr_protocol::member::LateAnswers;
use tyr_protocol::movement::{ChunkCopy, ChunkVersion};
use tyr_types::{ByteRange, Bytes, Timestamp};

use super::chunk::{Cause, Chunk, Oldest};
use super::content::Content;

impl Chunk {
    /// The share of `range` as it is at `at`, with the versions from the oldest on that `is_needed`
    /// says: between two of them a read would take the first for what it asks for. `None` when what
    /// there was at `at` is gone.
    pub fn export(
        &self,
        range: ByteRange,
        at: Timestamp,
        mut is_needed: impl FnMut(Oldest) -> bool,
    ) -> Option<ChunkCopy> {
        let mut kept: Vec<Timestamp> = self.kept().filter(|version| *version <= at).collect();
        let first = kept
            .windows(2)
            .position(|pair| is_needed(Oldest { version: pair[0], superseded_at: pair[1] }));
        kept.drain(..first.unwrap_or(kept.len()));
        kept.retain(|version| *version < at);
        kept.push(at);
        let held = |at: &Timestamp| self.content_at(Some(*at)).map_or(0, |it| it.bytes.len());
        let held = kept.iter().map(held).max().unwrap_or_default();
        let versions: Option<Vec<ChunkVersion>> =
            kept.into_iter().map(|at| self.version(range, at)).collect();
        let mut versions = versions?;
        versions.dedup();
        let end = self.range().start + held as u64;
        let is_last = range.end >= end;
        Some(ChunkCopy::new(at, range, is_last, versions))
    }

    fn version(&self, range: ByteRange, at: Timestamp) -> Option<ChunkVersion> {
        let content = self.content_at(Some(at))?;
        let from = (range.start - self.range().start) as usize;
        let to = ((range.end - self.range().start) as usize).min(content.bytes.len());
        let bytes = content.bytes.get(from..to.max(from)).unwrap_or(&[]);
        Some(ChunkVersion {
            version: self.newest(self.range(), false, at),
            bytes: Bytes::copy_from_slice(bytes),
            size: self.is_first().then_some(content.size),
            size_version: match self.is_first() {
                true => self.newest(ByteRange { start: 0, end: 0 }, true, at),
                false => Timestamp::ZERO,
            },
        })
    }

    /// Takes in a piece of a copy; with the last one it goes under what was applied above it, and
    /// that has its answers.
    ///
    /// # Panics
    /// When the pieces are not of one timestamp and one after the other.
    pub fn install(&mut self, copy: ChunkCopy) -> Vec<LateAnswers> {
        if !self.is_awaited() && self.has_base_at(copy.at) {
            return Vec::new(); // The log is read again over a base that has it.
        }
        if copy.at == Timestamp::ZERO && self.is_awaited_as_nothing() {
            return self.go_on_from_here();
        }
        let is_last = copy.is_last;
        let mut pieces = self.take_pieces();
        if copy.range.start == self.range().start {
            pieces.clear(); // It begins anew.
        }
        let next = pieces.last().map_or(self.range().start, |piece| piece.range.end);
        assert!(
            copy.range.start == next && pieces.iter().all(|piece| piece.at == copy.at),
            "violation: a piece {:?} at {} of a copy does not follow the one before, up to {next}",
            copy.range,
            copy.at
        );
        pieces.push(copy);
        if !is_last {
            self.await_base(pieces);
            return Vec::new();
        }
        let moments: BTreeSet<Timestamp> = pieces
            .iter()
            .flat_map(|piece| &piece.versions)
            .map(|version| version.version.max(version.size_version))
            .collect();
        let whole = |moment: Timestamp| (moment, Arc::new(join(&pieces, moment)));
        let versions: Vec<_> = moments.into_iter().map(whole).collect();
        let at = pieces[0].at;
        self.rebase(at, versions)
    }

    fn rebase(
        &mut self,
        at: Timestamp,
        versions: Vec<(Timestamp, Arc<Content>)>,
    ) -> Vec<LateAnswers> {
        let later = self.detach(at);
        let mut versions = versions.into_iter();
        let (floor, base) = versions.next().expect("a copy has a version");
        self.put_base(at, floor, base);
        for (version, content) in versions {
            self.push(version, Cause::Copy(content));
        }
        later
            .into_iter()
            .map(|(version, cause)| (version, self.push(version, cause).into_vec()))
            .collect()
    }
}

/// What the pieces held at `moment`, put together.
fn join(pieces: &[ChunkCopy], moment: Timestamp) -> Content {
    let mut content = Content::default();
    let start = pieces[0].range.start;
    for piece in pieces {
        let seen = |version: &&ChunkVersion| version.version.max(version.size_version) <= moment;
        let version = piece.versions.iter().rfind(seen).unwrap_or(&piece.versions[0]);
        if !version.bytes.is_empty() {
            content.bytes.resize((piece.range.start - start) as usize, 0);
            content.bytes.extend_from_slice(&version.bytes);
        }
        content.size = content.size.or(version.size.flatten());
    }
    content
}
