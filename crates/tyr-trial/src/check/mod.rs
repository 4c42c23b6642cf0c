//! Whether a history can be: the first check, ours.
//!
//! ```text
//!   lines ─► deeds ─┬─► serial: lists, log, counters: who came before whom has no circle
//!                   ├─► bank: every audit finds the same sum
//!                   ├─► registers: each is linearizable
//!                   ├─► listings: each is of one moment, twice the same
//!                   ├─► stamps: they are commit timestamps
//!                   ├─► holes: sheets are what their writers made of them
//!                   ├─► locks: who holds one no more writes no more
//!                   ├─► uploads: what is read is whole, of one version
//!                   ├─► groups: headers are right
//!                   ├─► watches: who watches hears of each change
//!                   ├─► kept: what is kept stays as it was
//!                   ├─► shared_logs: one order, each entry once, to each reader and group
//!                   ├─► zlogs: each entry has one position, for ever, in order
//!                   └─► refusals: only those that may be
//! ```
//!
//! The second check, [`porcupine`], is somebody else's program on the same lines. The checks know
//! workloads by the names and steps in the lines, and nothing of the product.

pub mod bank;
pub mod groups;
pub mod holes;
pub mod kept;
pub mod listings;
pub mod locks;
pub mod order;
pub mod porcupine;
pub mod refusals;
pub mod registers;
pub mod serial;
pub mod shared_logs;
pub mod stamps;
#[cfg(test)]
mod tests;
pub mod uploads;
pub mod watches;
pub mod zlogs;

use std::collections::BTreeMap;

use crate::history::{Deed, Event, Fate, deeds};
use crate::workload::Workload;

/// What a history comes to.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Everything that is wrong, in words.
    pub anomalies: Vec<String>,
    /// How often each operation was done, failed, or ended unknown.
    pub tally: BTreeMap<String, Tally>,
}

/// How often something ended in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// It took effect.
    pub done: u64,
    /// It did not.
    pub failed: u64,
    /// Nobody knows.
    pub unknown: u64,
}

/// Checks all workloads of a history.
pub fn check(events: &[Event]) -> Verdict {
    let deeds = deeds(events);
    let mut verdict = Verdict { anomalies: refusals::check(&deeds), tally: tally(&deeds) };
    for workload in Workload::ALL {
        let own: Vec<&Deed> =
            deeds.iter().filter(|deed| deed.workload == workload.name()).collect();
        if own.is_empty() {
            continue;
        }
        let found = match workload {
            Workload::Lists | Workload::Log => serial::lists(&own),
            Workload::Counters => serial::counters(&own),
            Workload::Bank => bank::check(&own),
            Workload::Registers => registers::check(&own),
            Workload::Listings => listings::check(&own),
            Workload::Stamps => stamps::check(&own),
            Workload::Holes => holes::check(&own),
            Workload::Locks => locks::check(&own),
            Workload::Uploads => uploads::check(&own),
            Workload::Groups => groups::check(&own),
            Workload::Watches => watches::check(&own, &watches::troubles(events)),
            Workload::Kept => kept::check(&own, kept::is_disk_filled(events)),
            Workload::SharedLogs => shared_logs::check(&own),
            Workload::Zlogs => zlogs::check(&own),
        };
        let named = found.into_iter().map(|text| format!("{}: {text}", workload.name()));
        verdict.anomalies.extend(named);
    }
    verdict
}

fn tally(deeds: &[Deed]) -> BTreeMap<String, Tally> {
    let mut all = BTreeMap::<String, Tally>::new();
    for deed in deeds {
        let tally = all.entry(format!("{} {}", deed.workload, deed.operation)).or_default();
        match deed.fate {
            Fate::Done => tally.done += 1,
            Fate::Failed => tally.failed += 1,
            Fate::Unknown => tally.unknown += 1,
        }
    }
    all
}
