//! Records of classes that are kept for a moment, so that a call asks the monitors nothing.
//!
//! ```text
//!   call ──► kept, and asked for less than KEPT_FOR ago? ── yes ──► that one
//!               └─ no ──► the monitors' leader, who knows the newest ──► kept
//!   a watch of classes/ ──► what has changed is kept no more           in milliseconds
//!   who takes something away ──► writes that ──► waits SETTLE ──► returns
//! ```
//!
//! The watch is for speed, the time for certainty: a watch may be cut off, or told late, and then
//! a record is used until its time is over, and not a moment longer. Whoever replaces, disables or
//! retires waits for longer than that before it says that it is done. So nobody who was told is
//! met by what was there before (O6). What a kept record does not permit is looked up anew, so what
//! is added needs no waiting.
//!
//! A record's time counts from when it was asked for, by the clock of whoever keeps it; `SETTLE` is
//! a tenth longer, for clocks that run apart, as with leases (K1).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr::blocking::Metadata;
use tyr::metadata::Changes;
use tyr::{ErrorKind, Result};

use crate::catalog::Found;
use crate::record::ClassRecord;

/// For so long a record is used after it was asked for.
pub(crate) const KEPT_FOR: Duration = Duration::from_millis(500);

/// So long waits who has taken something away.
pub(crate) const SETTLE: Duration = Duration::from_millis(550);

/// Records that are kept; when there are more, all are read anew.
pub(crate) const RECORDS_MAX: usize = 1_024;

/// How long the watch waits before it looks whether it is still needed.
const LOOK: Duration = Duration::from_secs(2);

const _: () = assert!(SETTLE.as_millis() * 10 >= KEPT_FOR.as_millis() * 11, "as leases have it");

/// Where classes are in the service metadata.
const PREFIX: &str = "classes/";

/// Records of classes, by name. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    records: Mutex<HashMap<String, Slot>>,
    /// Whether a watch runs, or may not.
    is_watched: AtomicBool,
}

/// What is known of a class.
#[derive(Default)]
struct Slot {
    /// The revision of its newest change that the watch told of.
    told: u64,
    kept: Option<(Arc<ClassRecord>, Instant)>,
}

impl Kept {
    /// The record of a class, if one may be used now.
    pub fn get(&self, class: &str, now: Instant) -> Option<Arc<ClassRecord>> {
        let records = self.shared.records.lock();
        let (record, asked) = records.get(class)?.kept.as_ref()?;
        (now.saturating_duration_since(*asked) < KEPT_FOR).then(|| Arc::clone(record))
    }

    /// Asks for the record of a class, and keeps the answer.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn ask(
        &self,
        class: &str,
        now: impl Fn() -> Instant,
        ask: impl FnOnce() -> Result<Found>,
    ) -> Result<Arc<ClassRecord>> {
        {
            // From now on it is noticed when the watch tells that it has changed.
            let mut records = self.shared.records.lock();
            if records.len() >= RECORDS_MAX && !records.contains_key(class) {
                records.clear();
            }
            records.entry(class.to_owned()).or_default();
        }
        let asked = now();
        let Found { record, changed } = ask()?;
        if let Some(slot) = self.shared.records.lock().get_mut(class)
            && slot.told <= changed
        {
            slot.kept = Some((Arc::clone(&record), asked));
        }
        Ok(record)
    }

    /// Has a thread drop what changes, for as long as this is there.
    pub fn watch(&self, metadata: &Metadata) {
        if self.shared.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let (shared, metadata) = (Arc::downgrade(&self.shared), metadata.clone());
        let thread = std::thread::Builder::new().name("tyr-classes".to_owned());
        let watching = thread.spawn(move || follow(&shared, &metadata));
        if let Err(error) = watching {
            tracing::debug!(%error, "no watch of classes: their records are read twice a second");
            self.shared.is_watched.store(false, Ordering::Release);
        }
    }
}

impl Shared {
    /// What changed is kept no more.
    fn told(&self, changes: &Changes) {
        let mut records = self.records.lock();
        for change in &changes.changes {
            let name = change.path.as_str().trim_start_matches(PREFIX);
            if let Some(slot) = records.get_mut(name) {
                *slot = Slot { told: change.revision, kept: None };
            }
        }
    }
}

/// Watches classes until nobody keeps records any more, or the store is closed.
fn follow(shared: &Weak<Shared>, metadata: &Metadata) {
    let error = loop {
        let page = match metadata.list(PREFIX, None, 1) {
            Ok(page) => page,
            Err(error) => break error,
        };
        let mut watch = metadata.watch(PREFIX, page.revision);
        // What changed before that was not told.
        let Some(keeper) = shared.upgrade() else { return };
        keeper.records.lock().clear();
        drop(keeper);
        let ended = loop {
            match watch.next_within(LOOK) {
                Ok(told) => {
                    let Some(keeper) = shared.upgrade() else { return };
                    told.iter().for_each(|changes| keeper.told(changes));
                }
                Err(error) => break error,
            }
        };
        if ended.kind() != ErrorKind::SnapshotTooOld {
            break ended;
        }
    };
    tracing::debug!(%error, "no watch of classes: their records are read twice a second");
    // Who may not watch is not let do so the next time either.
    if let Some(keeper) = shared.upgrade() {
        let may_not = error.kind() == ErrorKind::PermissionDenied;
        keeper.is_watched.store(may_not, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use tyr::metadata::{KeyChange, Path};

    use super::*;

    /// A record whose current version says which revision it is of.
    fn found(revision: u64) -> Found {
        let current = u32::try_from(revision).ok();
        let record = ClassRecord { current, ..ClassRecord::default() };
        Found { record: Arc::new(record), changed: revision }
    }

    fn changed(class: &str, revision: u64) -> Changes {
        let path = Path::new(format!("{PREFIX}{class}")).unwrap();
        Changes { changes: vec![KeyChange { revision, path, value: None }], revision }
    }

    /// What is used of a class at a time.
    fn used(kept: &Kept, now: Instant) -> Option<u32> {
        kept.get("a", now).and_then(|record| record.current)
    }

    #[test]
    fn a_record_is_used_for_its_time_and_no_longer_where_no_watch_tells() {
        let (kept, begin) = (Kept::default(), Instant::now());
        assert_eq!(used(&kept, begin), None);
        kept.ask("a", || begin, || Ok(found(1))).unwrap();
        assert_eq!(used(&kept, begin + KEPT_FOR - Duration::from_millis(1)), Some(1));
        assert_eq!(used(&kept, begin + KEPT_FOR), None);
    }

    /// What is used of a class that was asked for so long before it was replaced, when who did
    /// that has waited for so long, and no watch has told.
    fn used_after(before_ms: u64, waited: Duration) -> Option<u32> {
        let (kept, begin) = (Kept::default(), Instant::now());
        kept.ask("a", || begin, || Ok(found(1))).unwrap();
        used(&kept, begin + Duration::from_millis(before_ms) + waited)
    }

    /// O6.
    #[test]
    fn what_was_replaced_is_not_used_when_who_did_it_has_waited() {
        for before_ms in [0, 1, 250, 499, 500, 700] {
            assert_eq!(used_after(before_ms, SETTLE), None, "replaced after {before_ms} ms");
        }
    }

    #[test]
    fn without_o6_who_has_replaced_a_class_is_met_by_what_was_there_before() {
        for before_ms in [0, 1, 250, 499] {
            assert_eq!(used_after(before_ms, Duration::ZERO), Some(1), "after {before_ms} ms");
        }
    }

    #[test]
    fn what_a_watch_tells_of_is_dropped_and_a_late_answer_is_not_kept() {
        let (kept, now) = (Kept::default(), Instant::now());
        kept.ask("a", || now, || Ok(found(1))).unwrap();
        kept.shared.told(&changed("b", 2));
        assert_eq!(used(&kept, now), Some(1));
        kept.shared.told(&changed("a", 3));
        assert_eq!(used(&kept, now), None);
        // The watch is faster than the answer.
        let answer = || {
            kept.shared.told(&changed("a", 5));
            Ok(found(4))
        };
        assert_eq!(kept.ask("a", || now, answer).unwrap().current, Some(4));
        assert_eq!(used(&kept, now), None);
        kept.ask("a", || now, || Ok(found(5))).unwrap();
        assert_eq!(used(&kept, now), Some(5));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (kept, now) = (Kept::default(), Instant::now());
        for number in 0..3 * RECORDS_MAX {
            kept.ask(&number.to_string(), || now, || Ok(found(1))).unwrap();
        }
        assert!(kept.shared.records.lock().len() <= RECORDS_MAX);
    }
}
