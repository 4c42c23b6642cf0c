//! Where versions are still read (V2 to V4).
//!
//! A transaction carries, for each blob that it writes, the moments at which snapshots read it,
//! and from where on there may be others. Older versions go when they have lingered for a while and
//! were current at no such moment; without such news of a blob they stay for a read timeout. While
//! a fold is under way, what was current at its moment stays, too; and what was current at kept
//! moments, until a fold has passed them (V7).

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tyr_protocol::versions::{MOMENTS_MAX, Usage};
use tyr_store::recent::Readers;
use tyr_types::{BlobName, Timestamp};

/// Blobs of which the news of readers are remembered. Beyond, those are forgotten that are older
/// than a read timeout, and if none is, all: their versions stay for longer, no harm is done.
const BLOBS_MAX: usize = 1 << 18;

/// Moments that are remembered of all blobs together: 16 MiB. Beyond, what a blob is read at counts
/// as read from the oldest moment on.
const REMEMBERED_MAX: usize = 1 << 20;
const _: () = assert!(MOMENTS_MAX < REMEMBERED_MAX);

/// How long versions stay, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The read timeout: nothing in use is older (V3).
    pub read_timeout_us: u64,
    /// How long a version stays that nobody is known to use (V4).
    pub linger_us: u64,
}

/// How much memory there is for older versions (V4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// Enough.
    None,
    /// More is in memory than should be: nothing lingers.
    Short,
    /// Memory is nearly full of what cannot leave it: what is read goes, too, and who reads it is
    /// told that it is too old.
    Severe,
}

/// Where versions are read, by blob.
#[derive(Debug)]
pub struct Floors {
    retention: Retention,
    /// The newest news of the blob.
    by_blob: HashMap<BlobName, Usage, FixedState>,
    /// Moments in there.
    remembered: usize,
    /// The moment of the fold under way.
    fold: Option<Timestamp>,
    /// Kept moments that no fold has passed, ascending.
    kept: Vec<Timestamp>,
    /// The highest floor that was ever used.
    highest: Timestamp,
    shortage: Shortage,
}

impl Floors {
    /// Nothing is known.
    pub fn new(retention: Retention) -> Self {
        let by_blob = HashMap::default();
        let highest = Timestamp::ZERO;
        let shortage = Shortage::None;
        let kept = Vec::new();
        Self { retention, by_blob, remembered: 0, fold: None, kept, highest, shortage }
    }

    /// This is in use of the blob.
    pub fn update(&mut self, blob: &BlobName, usage: &Usage) {
        self.highest = self.highest.max(usage.as_of());
        let usage = usage.clone().within(REMEMBERED_MAX - self.remembered);
        if let Some(known) = self.by_blob.get_mut(blob) {
            self.remembered -= known.moments().len();
            known.update(&usage);
            self.remembered += known.moments().len();
            return;
        }
        if self.by_blob.len() >= BLOBS_MAX {
            let oldest = before(usage.as_of(), self.retention.read_timeout_us);
            self.by_blob.retain(|_, known| known.as_of() > oldest);
            if self.by_blob.len() >= BLOBS_MAX {
                self.by_blob.clear();
            }
            self.remembered = self.by_blob.values().map(|known| known.moments().len()).sum();
        }
        self.remembered += usage.moments().len();
        self.by_blob.insert(blob.clone(), usage);
        debug_assert!(self.by_blob.len() <= BLOBS_MAX, "news are remembered of so many");
        debug_assert!(self.remembered <= REMEMBERED_MAX, "and of so many moments");
    }

    /// Up to where all is known that reads this blob, as far as there are news.
    pub fn as_of(&self, blob: &BlobName) -> Option<Timestamp> {
        self.by_blob.get(blob).map(Usage::as_of)
    }

    /// Who may read older versions than what is written to the blob at `at`.
    pub fn readers(&self, blob: &BlobName, at: Timestamp, is_multi: bool) -> Readers<'_> {
        let known = self.by_blob.get(blob);
        let floor = match (known.map(Usage::as_of), self.shortage) {
            _ if !is_multi => Timestamp::MAX,
            (_, Shortage::Severe) => at,
            (Some(as_of), Shortage::Short) => at.min(as_of),
            (Some(as_of), Shortage::None) => before(at, self.retention.linger_us).min(as_of),
            (None, _) => before(at, self.retention.read_timeout_us),
        };
        debug_assert!(!is_multi || floor <= at, "what is written at {at} is read from {floor} on");
        let listed = match (known, self.shortage) {
            (Some(known), Shortage::None | Shortage::Short) if is_multi => known.moments(),
            (None, _) | (Some(_), _) => &[],
        };
        let fold = self.fold.unwrap_or(Timestamp::MAX);
        Readers::new(listed).and_from(floor).and_at(fold).and_kept(&self.kept)
    }

    /// Kept moments that no fold has passed, ascending; also those that the fold under way is to
    /// stop at, though they were dropped.
    pub fn kept(&self) -> &[Timestamp] {
        &self.kept
    }

    /// No fold has passed these kept moments, ascending. A fold under way may stop at those that it
    /// began with, until it has ended.
    pub(super) fn keep(&mut self, unfolded: Vec<Timestamp>) {
        match self.fold {
            None => self.kept = unfolded,
            Some(_) => {
                self.kept.extend(unfolded);
                self.kept.sort_unstable();
                self.kept.dedup();
            }
        }
    }

    /// How much memory there is from now on.
    pub fn set_shortage(&mut self, shortage: Shortage) {
        self.shortage = shortage;
    }

    /// A fold begins: what is current at its moment stays until it ends. Answers the moment: not
    /// below `clock`, nor where versions have gone already.
    pub fn begin_fold(&mut self, clock: Timestamp) -> Timestamp {
        debug_assert!(self.fold.is_none(), "a fold begins before the last has ended");
        let at = clock.max(self.highest);
        self.fold = Some(at);
        at
    }

    /// The fold is over.
    pub fn end_fold(&mut self) {
        self.fold = None;
    }

    /// Nothing is here any more.
    pub fn clear(&mut self) {
        self.by_blob.clear();
        self.remembered = 0;
    }
}

/// The timestamp this many microseconds before.
fn before(at: Timestamp, us: u64) -> Timestamp {
    Timestamp { clock: at.clock.saturating_sub(us), ..at }
}

#[cfg(test)]
mod tests {
    use tyr_types::{Epoch, Key, KeyspaceId};

    use super::*;

    fn at(clock: u64) -> Timestamp {
        Timestamp { epoch: Epoch(1), clock, node: 0 }
    }

    fn blob() -> BlobName {
        BlobName { keyspace: KeyspaceId(1), key: Key::new("blob").unwrap() }
    }

    #[test]
    fn the_shorter_memory_is_the_less_stays() {
        let mut floors = Floors::new(Retention { read_timeout_us: 500, linger_us: 50 });
        let from = |floors: &Floors| floors.readers(&blob(), at(1000), true).every_from().clock;
        assert_eq!(from(&floors), 500, "nobody has told who reads it");
        floors.update(&blob(), &Usage::new(at(980), []));
        assert_eq!(from(&floors), 950, "it lingers");
        floors.set_shortage(Shortage::Short);
        assert_eq!(from(&floors), 980);
        floors.set_shortage(Shortage::Severe);
        assert_eq!(from(&floors), 1000);
    }

    /// V2.
    #[test]
    fn a_snapshot_keeps_what_was_current_at_its_moment_and_not_what_came_after_it() {
        let mut floors = Floors::new(Retention { read_timeout_us: 500, linger_us: 50 });
        floors.update(&blob(), &Usage::new(at(980), [at(600), at(700)]));
        floors.update(&blob(), &Usage::new(at(970), [at(650)]));
        assert_eq!(floors.as_of(&blob()), Some(at(980)), "what is older and late says nothing");
        let needs = |floors: &Floors, from, until| {
            floors.readers(&blob(), at(1000), true).need(at(from), at(until))
        };
        assert!(needs(&floors, 590, 610) && needs(&floors, 700, 701), "somebody reads there");
        assert!(!needs(&floors, 610, 700) && !needs(&floors, 701, 950), "nobody does");
        assert!(needs(&floors, 940, 960), "it lingers");
        floors.set_shortage(Shortage::Short);
        assert!(needs(&floors, 590, 610) && !needs(&floors, 940, 960));
        floors.set_shortage(Shortage::Severe);
        assert!(!needs(&floors, 590, 610), "who reads it is told that it is too old");
        assert!(!floors.readers(&blob(), at(1000), false).need(at(590), at(610)));
    }

    /// V7.
    #[test]
    fn what_was_current_at_a_kept_moment_stays_however_short_memory_is() {
        let mut floors = Floors::new(Retention { read_timeout_us: 500, linger_us: 50 });
        floors.update(&blob(), &Usage::new(at(980), []));
        floors.keep(vec![at(600), at(700)]);
        floors.set_shortage(Shortage::Severe);
        for is_multi in [true, false] {
            let readers = floors.readers(&blob(), at(1000), is_multi);
            assert!(readers.need(at(590), at(610)) && readers.need(at(700), at(990)));
            assert!(!readers.need(at(610), at(700)) && !readers.need(at(701), at(990)));
        }
        floors.begin_fold(at(970));
        floors.keep(vec![at(700), at(990)]);
        assert_eq!(floors.kept(), [at(600), at(700), at(990)], "the fold stops there");
        floors.end_fold();
        floors.keep(vec![at(990)]);
        assert!(!floors.readers(&blob(), at(1000), true).need(at(590), at(610)));
    }

    #[test]
    fn a_fold_keeps_its_moment_however_short_memory_is_and_nothing_after_it() {
        let mut floors = Floors::new(Retention { read_timeout_us: 500, linger_us: 50 });
        floors.update(&blob(), &Usage::new(at(980), []));
        assert_eq!(floors.begin_fold(at(970)), at(980), "below that versions may have gone");
        floors.set_shortage(Shortage::Severe);
        let readers = floors.readers(&blob(), at(1000), true);
        assert!(readers.need(at(960), at(990)) && !readers.need(at(985), at(1000)));
        floors.end_fold();
        assert!(!floors.readers(&blob(), at(1000), true).need(at(960), at(990)));
    }
}
