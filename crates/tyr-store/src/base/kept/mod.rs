//! Kept snapshots: moments with a name that can be read until they are dropped.
//!
//! ```text
//!   base                          as of now
//!     └ kept at K2                what was current at K2 and was replaced since
//!         └ kept at K1 < K2       what was current at K1 and was replaced before K2
//! ```
//!
//! A fold never passes a kept moment: it stops there first, so that at some time the base is as of
//! that moment. From then on whatever a fold replaces that was current then is *held*: the blob's
//! entry, and its bytes, in place or by the extent that has them ([`capture`]). What was replaced
//! is in one place only, the newest moment that it was current at; so a read at K looks at what is
//! held for K, then at what is held for the next moment, and so on to the base ([`read`]). When a
//! moment is dropped, what is held for it goes to the next older one, or is given back, in steps
//! ([`release`]). A node of a cluster also holds what came with a chunk from another one
//! ([`copied`]). [`row`] is the bytes, [`audit`] checks them.

mod audit;
mod capture;
mod copied;
mod read;
mod release;
mod row;

use std::collections::BTreeMap;

use bytes::Bytes;
use tyr_types::{
    BlobName, Epoch, Error, ErrorKind, KeptName, KeptSnapshot, Result, Timestamp, limits,
};

pub use copied::CopiedVersion;
pub use read::{KeptKeys, KeptStretches};

pub(super) use audit::{HeldRows, Met};
pub(super) use capture::Shown;
pub(super) use release::put_held;
pub(super) use row::{Held, HeldPiece};

use super::record::BlobEntry;
use super::{Base, FORMAT_WITH_KEPT, key};
use crate::index::{Index, IndexBatch, Table};

/// The kept moments.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    names: BTreeMap<KeptName, Timestamp>,
    /// How many names each moment has.
    named: BTreeMap<Timestamp, usize>,
    /// Moments that have a name, and those that are being given back.
    held: BTreeMap<Timestamp, Held>,
}

impl Kept {
    /// Reads what there is.
    pub fn load(index: &dyn Index) -> Result<Self> {
        let mut kept = Self::default();
        let wrong = |key: &[u8]| {
            let key = key.escape_ascii();
            Error::corrupt(format!("index table meta, key \"{key}\": no kept snapshot"))
        };
        let mut visit = |key: &[u8], value: &Bytes| {
            let name = row::name_of(key).ok_or_else(|| wrong(key))?;
            let at = row::decode_moment(value).ok_or_else(|| wrong(key))?;
            kept.insert(name, at);
            Ok(true)
        };
        index.scan(Table::Meta, key::KEPT, key::behind(key::KEPT).as_deref(), &mut visit)?;
        let mut visit = |key: &[u8], value: &Bytes| {
            let at = row::held_moment(key).ok_or_else(|| wrong(key))?;
            kept.held.insert(at, Held::decode(value).ok_or_else(|| wrong(key))?);
            Ok(true)
        };
        index.scan(Table::Meta, key::HELD, key::behind(key::HELD).as_deref(), &mut visit)?;
        Ok(kept)
    }

    /// Whether a moment has a name.
    fn is_named(&self, at: Timestamp) -> bool {
        self.named.contains_key(&at)
    }

    fn insert(&mut self, name: KeptName, at: Timestamp) {
        self.names.insert(name, at);
        *self.named.entry(at).or_default() += 1;
        self.held.entry(at).or_default();
    }

    /// Takes a name away; what is held for its moment stays.
    fn remove(&mut self, name: &KeptName) {
        let Some(at) = self.names.remove(name) else { return };
        let names = self.named.get(&at).copied().unwrap_or_default();
        match names {
            0 | 1 => {
                self.named.remove(&at);
                self.held.retain(|moment, held| *moment != at || *held != Held::default());
            }
            more => {
                self.named.insert(at, more - 1);
            }
        }
    }

    /// The newest moment with a name below this one.
    fn newest_below(&self, at: Timestamp) -> Option<Timestamp> {
        self.named.range(..at).next_back().map(|(at, _)| *at)
    }

    /// Moments without a name, oldest first.
    fn ending(&self) -> Vec<Timestamp> {
        if self.held.len() == self.named.len() {
            return Vec::new();
        }
        self.held.keys().copied().filter(|at| !self.is_named(*at)).collect()
    }
}

impl Base {
    /// All kept snapshots, oldest first.
    pub fn kept(&self) -> Vec<KeptSnapshot> {
        let kept = self.kept.read();
        let snapshot = |(name, at): (&KeptName, &Timestamp)| KeptSnapshot {
            name: name.clone(),
            at: *at,
            bytes: kept.held.get(at).map_or(0, |held| held.bytes),
            unreadable: None,
        };
        let mut all: Vec<KeptSnapshot> = kept.names.iter().map(snapshot).collect();
        all.sort_by_key(|snapshot| snapshot.at);
        all
    }

    /// Bytes that are held for kept snapshots.
    pub fn kept_bytes(&self) -> u64 {
        let kept = self.kept.read();
        let named = kept.held.iter().filter(|(at, _)| kept.is_named(**at));
        named.map(|(_, held)| held.bytes).sum()
    }

    /// The moment of a kept snapshot.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name.
    pub fn kept_moment(&self, name: &KeptName) -> Result<Timestamp> {
        self.kept.read().names.get(name).copied().ok_or_else(|| none(name))
    }

    /// The kept moments that the last checkpoint has not passed, oldest first: what is needed of
    /// them is in memory and in the log.
    pub fn kept_unfolded(&self) -> Vec<Timestamp> {
        let folded = self.last_checkpoint().timestamp;
        let kept = self.kept.read();
        kept.named.keys().copied().filter(|at| *at > folded).collect()
    }

    /// The newest kept moment.
    pub fn kept_to(&self) -> Timestamp {
        self.kept.read().named.keys().copied().next_back().unwrap_or(Timestamp::ZERO)
    }

    /// Keeps what can be read at `at`, durably. No fold may have passed it, and none may before
    /// this is known to whoever folds.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name; `Unavailable` when there are
    /// [`limits::KEPT_MAX`], or the disk refuses.
    pub fn keep(&self, name: &KeptName, at: Timestamp) -> Result<()> {
        let _alone = self.changing.lock();
        self.check_new(name)?;
        assert!(at >= self.last_checkpoint().timestamp, "the base has passed {at}");
        let mut batch = IndexBatch::new();
        self.raise_format(&mut batch, FORMAT_WITH_KEPT);
        batch.put(Table::Meta, row::name(name), row::encode_moment(at));
        self.index.commit(batch)?;
        self.record(self.last_checkpoint())?;
        self.kept.write().insert(name.clone(), at);
        Ok(())
    }

    /// Refuses a name that is taken, and one too many.
    ///
    /// # Errors
    /// As [`Base::keep`].
    pub fn check_new(&self, name: &KeptName) -> Result<()> {
        let kept = self.kept.read();
        if kept.names.contains_key(name) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a kept snapshot \"{name}\" already; drop it, or choose a name"),
            ));
        }
        if kept.names.len() >= limits::KEPT_MAX {
            return Err(Error::unavailable(format!(
                "{} snapshots are kept, and no more can be; drop one that is not needed",
                limits::KEPT_MAX
            )));
        }
        Ok(())
    }

    /// Drops a kept snapshot, durably. What was held for it goes by [`Base::release_some`].
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `Unavailable` when the disk refuses.
    pub fn unkeep(&self, name: &KeptName) -> Result<()> {
        let _alone = self.changing.lock();
        self.kept_moment(name)?;
        let mut batch = IndexBatch::new();
        batch.remove(Table::Meta, row::name(name));
        self.index.commit(batch)?;
        self.record(self.last_checkpoint())?;
        self.kept.write().remove(name);
        Ok(())
    }

    /// Keeps these snapshots and no others, of those that maps up to `epoch` can know of: what a
    /// node's map says (V7). While its log is played again, of a moment that the folds have passed
    /// it was known when they did: what is not there any more was dropped since.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn adopt_kept(&self, wanted: &BTreeMap<KeptName, Timestamp>, epoch: Epoch) -> Result<()> {
        let known = self.kept.read().names.clone();
        if known == *wanted {
            return Ok(());
        }
        for (name, at) in &known {
            if at.epoch <= epoch && wanted.get(name) != Some(at) {
                self.unkeep(name)?;
            }
        }
        let folded = self.last_checkpoint().timestamp;
        for (name, at) in wanted {
            // A name that is there was given again since, to a later moment.
            if *at >= folded && self.check_new(name).is_ok() {
                self.keep(name, *at)?;
            }
        }
        Ok(())
    }

    /// The kept moments, oldest first.
    pub fn kept_moments(&self) -> Vec<Timestamp> {
        self.kept.read().named.keys().copied().collect()
    }

    /// The newest kept moment below this one.
    pub fn newest_kept_below(&self, at: Timestamp) -> Option<Timestamp> {
        self.kept.read().newest_below(at)
    }

    /// Whether what was there at this moment is kept.
    pub fn is_kept(&self, at: Timestamp) -> bool {
        self.kept.read().is_named(at)
    }

    /// Whether something is held for moments that are kept, or were.
    pub fn holds_any(&self) -> bool {
        !self.kept.read().held.is_empty()
    }

    /// Fails when no snapshot is kept at this moment, or not any more.
    fn check_kept(&self, at: Timestamp) -> Result<()> {
        if self.kept.read().is_named(at) {
            return Ok(());
        }
        Err(Error::not_found("this kept snapshot was dropped, and can be read no more"))
    }

    /// The moments at or above `at` that something may be held for, oldest first.
    fn held_from(&self, at: Timestamp) -> Vec<Timestamp> {
        self.kept.read().held.range(at..).map(|(at, _)| *at).collect()
    }

    /// What is held of a blob's entry for a moment.
    pub(super) fn held_entry(&self, at: Timestamp, blob: &BlobName) -> Result<Option<BlobEntry>> {
        let value = self.index.get(Table::Meta, &row::entry(at, blob))?;
        value.map(|value| Self::decode_entry(blob, &value)).transpose()
    }

    /// Notes what became of what is held, once a batch that says the same is committed.
    pub(super) fn note_held(&self, changed: BTreeMap<Timestamp, Held>) {
        let mut kept = self.kept.write();
        for (at, held) in changed {
            if held == Held::default() && !kept.is_named(at) {
                kept.held.remove(&at);
            } else {
                kept.held.insert(at, held);
            }
        }
    }

    /// What is held for a moment, as far as is committed.
    pub(super) fn held_at(&self, at: Timestamp) -> Held {
        self.kept.read().held.get(&at).copied().unwrap_or_default()
    }
}

fn none(name: &KeptName) -> Error {
    Error::not_found(format!("there is no kept snapshot \"{name}\""))
}
