//! Kept snapshots, as the cluster map has them (V7).
//!
//! The moment of one is where the epoch begins of the first map that has it. So nobody has to fix
//! it: all timestamps of earlier epochs are below (F1), and who gives one of this epoch has the
//! map, as has who hears of one. What a node was told before it has the map is all of below the
//! moment, and what it folds until then is, too.

use tyr_types::{
    Epoch, Error, ErrorKind, KeptName, KeptSnapshot, KeyspaceId, Result, Timestamp, limits,
};

use super::ClusterMap;
use crate::level::LEVEL_KEEPING;

/// A kept snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapKept {
    /// The first map that has it.
    pub epoch: Epoch,
    /// The day that who kept it took it for, in microseconds since 1970; only to be shown.
    pub day_us: u64,
}

impl MapKept {
    /// Its moment: above all that was committed by earlier maps, and below all that is by this and
    /// later ones.
    pub fn at(&self) -> Timestamp {
        Timestamp { epoch: self.epoch, ..Timestamp::ZERO }
    }

    /// What its users are shown, with the bytes that are held for it.
    pub fn shown(&self, name: &KeptName, bytes: u64) -> KeptSnapshot {
        let at = Timestamp { clock: self.day_us, ..self.at() };
        KeptSnapshot { name: name.clone(), at, bytes, unreadable: None }
    }
}

impl ClusterMap {
    /// The kept snapshot of this name.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn kept_named(&self, name: &KeptName) -> Result<MapKept> {
        self.kept.get(name).copied().ok_or_else(|| {
            Error::not_found(format!("there is no kept snapshot \"{name}\", or not any more"))
        })
    }

    /// Whether what was there at this moment is kept.
    pub fn is_kept(&self, at: Timestamp) -> bool {
        self.kept.values().any(|kept| kept.at() == at)
    }

    /// The kept moments, ascending.
    pub fn kept_moments(&self) -> Vec<Timestamp> {
        let mut moments: Vec<Timestamp> = self.kept.values().map(MapKept::at).collect();
        moments.sort_unstable();
        debug_assert!(moments.is_sorted_by(|one, next| one < next), "one a map: {moments:?}");
        moments
    }

    /// Whether the only replica of something of the keyspace was given up after this moment: what
    /// was there then is not known any more.
    pub(super) fn is_lost_since(&self, keyspace: KeyspaceId, at: Timestamp) -> bool {
        let keyspace = self.keyspaces.get(&keyspace);
        keyspace.is_some_and(|it| it.lost.values().any(|epoch| *epoch >= at.epoch))
    }

    /// Why what was kept of the keyspace at this moment cannot be read any more, if it is so.
    pub fn kept_obstacle(&self, keyspace: KeyspaceId, at: Timestamp) -> Option<&'static str> {
        self.is_lost_since(keyspace, at).then_some(LOST_SINCE)
    }

    /// Keeps what is there where this epoch begins.
    pub(super) fn keep(&mut self, name: &KeptName, day_us: u64) -> Result<()> {
        self.check_level(LEVEL_KEEPING)?;
        if self.kept.contains_key(name) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a kept snapshot \"{name}\" already; drop it, or choose a name"),
            ));
        }
        if self.kept.len() >= limits::KEPT_MAX {
            return Err(Error::unavailable(format!(
                "{} snapshots are kept, and no more can be; drop one that is not needed",
                limits::KEPT_MAX
            )));
        }
        self.kept.insert(name.clone(), MapKept { epoch: self.epoch, day_us });
        Ok(())
    }

    /// Keeps it no more.
    pub(super) fn drop_kept(&mut self, name: &KeptName) -> Result<()> {
        self.kept_named(name)?;
        self.kept.remove(name);
        Ok(())
    }

    pub(super) fn check_kept(&self) -> Result<()> {
        let fail = |what: String| Err(Error::invalid(format!("a cluster map {what}")));
        if self.kept.len() > limits::KEPT_MAX {
            return fail(format!("keeps at most {} snapshots", limits::KEPT_MAX));
        }
        let mut epochs: Vec<Epoch> = self.kept.values().map(|kept| kept.epoch).collect();
        epochs.sort_unstable();
        if epochs.windows(2).any(|pair| pair[0] == pair[1]) {
            return fail("keeps one snapshot an epoch".into());
        }
        match epochs.last() {
            Some(last) if *last > self.epoch => {
                fail(format!("of epoch {} cannot keep what is at {}", self.epoch.0, last.0))
            }
            Some(_) | None => Ok(()),
        }
    }
}

const LOST_SINCE: &str = "what was kept of this keyspace was lost since with its only replica";
