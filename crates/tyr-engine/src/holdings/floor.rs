//! Down to where versions are still read (V2 to V4).
//!
//! A transaction carries, for each blob that it writes, the timestamp below which nobody reads it
//! any more. Older versions go when they lie below that and have lingered for a while; without such
//! news of a blob they stay for a read timeout. While a fold is under way, what was current at its
//! moment stays, too.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tyr_store::recent::Readers;
use tyr_types::{BlobName, Timestamp};

/// Blobs of which the news of readers are remembered. Beyond, those are forgotten that are older
/// than a read timeout, and if none is, all: their versions stay for longer, no harm is done.
const BLOBS_MAX: usize = 1 << 18;

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

/// Down to where versions are read, by blob.
#[derive(Debug)]
pub struct Floors {
    retention: Retention,
    /// Nobody reads the blob below this timestamp.
    by_blob: HashMap<BlobName, Timestamp, FixedState>,
    /// The moment of the fold under way.
    fold: Option<Timestamp>,
    /// The highest floor that was ever used.
    highest: Timestamp,
    shortage: Shortage,
}

impl Floors {
    /// Nothing is known.
    pub fn new(retention: Retention) -> Self {
        let by_blob = HashMap::default();
        let highest = Timestamp::ZERO;
        Self { retention, by_blob, fold: None, highest, shortage: Shortage::None }
    }

    /// Nobody reads this blob below `as_of` any more.
    pub fn update(&mut self, blob: &BlobName, as_of: Timestamp) {
        self.highest = self.highest.max(as_of);
        if let Some(known) = self.by_blob.get_mut(blob) {
            *known = as_of.max(*known);
            return;
        }
        if self.by_blob.len() >= BLOBS_MAX {
            let oldest = before(as_of, self.retention.read_timeout_us);
            self.by_blob.retain(|_, known| *known > oldest);
            if self.by_blob.len() >= BLOBS_MAX {
                self.by_blob.clear();
            }
        }
        self.by_blob.insert(blob.clone(), as_of);
        debug_assert!(self.by_blob.len() <= BLOBS_MAX, "news are remembered of so many");
    }

    /// Since when nobody reads this blob below it, as far as is known.
    pub fn as_of(&self, blob: &BlobName) -> Option<Timestamp> {
        self.by_blob.get(blob).copied()
    }

    /// Who may read older versions than what is written to the blob at `at`.
    pub fn readers(&self, blob: &BlobName, at: Timestamp, is_multi: bool) -> Readers<'static> {
        let floor = match (self.by_blob.get(blob), self.shortage) {
            _ if !is_multi => Timestamp::MAX,
            (_, Shortage::Severe) => at,
            (Some(as_of), Shortage::Short) => at.min(*as_of),
            (Some(as_of), Shortage::None) => before(at, self.retention.linger_us).min(*as_of),
            (None, _) => before(at, self.retention.read_timeout_us),
        };
        debug_assert!(!is_multi || floor <= at, "what is written at {at} is read from {floor} on");
        Readers::from(floor).and_at(self.fold.unwrap_or(Timestamp::MAX))
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
        floors.update(&blob(), at(980));
        assert_eq!(from(&floors), 950, "it lingers");
        floors.set_shortage(Shortage::Short);
        assert_eq!(from(&floors), 980);
        floors.set_shortage(Shortage::Severe);
        assert_eq!(from(&floors), 1000);
    }

    #[test]
    fn a_fold_keeps_its_moment_however_short_memory_is_and_nothing_after_it() {
        let mut floors = Floors::new(Retention { read_timeout_us: 500, linger_us: 50 });
        floors.update(&blob(), at(980));
        assert_eq!(floors.begin_fold(at(970)), at(980), "below that versions may have gone");
        floors.set_shortage(Shortage::Severe);
        let readers = floors.readers(&blob(), at(1000), true);
        assert!(readers.need(at(960), at(990)) && !readers.need(at(985), at(1000)));
        floors.end_fold();
        assert!(!floors.readers(&blob(), at(1000), true).need(at(960), at(990)));
    }
}
