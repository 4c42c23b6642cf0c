//! How a chunk gets its base: by a copy, or since what is here stands; with what waited on top of
//! it.
//!
//! Must not know: who decides which of the two, and why.

use tyr_protocol::member::{ChunkName, LateAnswers};
use tyr_protocol::movement::{ChunkCopy, ChunkVersion};
use tyr_store::recent::Attributes;
use tyr_store::recent::chunk::{HERE, Installed};
use tyr_store::store::chunks::{Since, stored_name};
use tyr_types::{BlobName, Error, Result, Timestamp};

use super::Holdings;
use super::expected::{Expected, LaidAside};

impl Holdings {
    /// The base of a chunk is complete.
    pub(super) fn install_whole(
        &mut self,
        name: &ChunkName,
        expected: Expected,
    ) -> Vec<LateAnswers> {
        let stands_at = expected.stands_at();
        let (copies, aside) = expected.into_parts();
        debug_assert!(copies.last().is_some_and(|copy| copy.is_last), "{name:?} is not all here");
        let place = self.place(name.0.keyspace, name.1);
        debug_assert!(
            copies.iter().all(|copy| place.range.contains(copy.range)),
            "{name:?} is {:?}, and gets bytes of others",
            place.range
        );
        let newest = |copy: &ChunkCopy| copy.newest().clone();
        let versions: Vec<ChunkVersion> = copies.iter().map(newest).collect();
        let pieces: Vec<_> = copies
            .iter()
            .zip(&versions)
            .map(|(copy, version)| (copy.range.start - place.range.start, version.bytes.clone()))
            .collect();
        let highest = |of: fn(&ChunkVersion) -> Timestamp| {
            versions.iter().map(of).max().unwrap_or(Timestamp::ZERO)
        };
        let copied_at = copies.iter().map(|copy| copy.at).max().unwrap_or(Timestamp::ZERO);
        let copy = Installed {
            at: copied_at,
            version: highest(|version| version.version),
            pieces: &pieces,
            size: place.is_first().then(|| versions.iter().find_map(|it| it.size.flatten())),
            size_version: highest(|version| version.size_version),
        };
        let stored = stored_name(&name.0, name.1);
        let install = || {
            let put_away = self.put_away(&stored, stands_at, copied_at);
            self.note(put_away.and_then(|()| self.store.install_chunk(&stored, place, copy)));
        };
        let kept = self.store.base().kept_moments();
        if kept.is_empty() {
            install();
            return self.lay_upon(name, copied_at, aside);
        }
        // A fold that took the chunk half way would take what waited for done, or let go of what
        // is still to be held.
        self.store.between_folds(|| {
            install();
            let mut late = Vec::with_capacity(aside.len());
            for (at, laid) in aside {
                // Also those that a fold has passed: it did not have the chunk.
                let readers = self.readers(&name.0, at).and_kept(&kept);
                let applied = self.store.chunk(&stored).and_then(|cell| {
                    self.store.apply_chunk(&cell, place, &laid.operations, laid.start, at, readers)
                });
                late.extend(self.note(applied).map(|answers| (at, answers.into_iter().collect())));
            }
            let held = self.hold_copied(name, &copies, copied_at, &kept);
            self.note(held);
            late
        })
    }

    /// What is here of a chunk makes room for a copy. Where there is nothing, what is held for kept
    /// moments stays under an empty base, and the deletion too that a fold has met; of a node that
    /// returns (D5) the base may have a chunk all the same, whose deletion no fold has met.
    fn put_away(
        &self,
        stored: &BlobName,
        stands_at: Option<Timestamp>,
        copied_at: Timestamp,
    ) -> Result<()> {
        let is_copied = copied_at > Timestamp::ZERO;
        let is_in_base = || {
            let in_base = self.store.base().attributes(stored)?;
            Ok::<_, Error>(in_base.is_some_and(|it| it.exists))
        };
        let keeps_deletion =
            !is_copied && !self.store.base().kept_moments().is_empty() && !is_in_base()?;
        let cell = self.store.chunk(stored)?;
        let mut state = cell.lock();
        let Attributes { exists, version, .. } = state.attributes();
        let is_newer = stands_at.is_some_and(|at| version > at) && !keeps_deletion;
        if exists || is_newer || is_copied && stands_at.is_some() {
            drop(state);
            return self.store.release_chunk(stored);
        }
        stands_at.into_iter().for_each(|at| state.stand_at(at.max(version)));
        Ok(())
    }

    /// What was laid aside goes on top of a chunk that is here as it was at `stands_at`, in one go:
    /// a fold that is under way may be of a later moment than some of it.
    pub(super) fn lay_upon(
        &self,
        name: &ChunkName,
        stands_at: Timestamp,
        aside: Vec<(Timestamp, LaidAside)>,
    ) -> Vec<LateAnswers> {
        if aside.is_empty() {
            return Vec::new();
        }
        let place = self.place(name.0.keyspace, name.1);
        let Some(cell) = self.note(self.store.chunk(&stored_name(&name.0, name.1))) else {
            return Vec::new();
        };
        let stands_at = stands_at.max(HERE);
        let since: Vec<Since<'_>> = aside
            .iter()
            .map(|(at, laid)| Since {
                operations: &laid.operations,
                start: laid.start,
                at: *at,
                readers: self.readers(&name.0, *at),
            })
            .collect();
        let confirmed = self.store.confirm_chunk(&cell, place, stands_at, &since);
        let answers = self.note(confirmed).unwrap_or_default();
        let late = aside.iter().map(|(at, _)| *at).zip(answers);
        late.map(|(at, answers)| (at, answers.into_iter().collect())).collect()
    }
}
